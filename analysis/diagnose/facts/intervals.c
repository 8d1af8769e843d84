#include "analysis/diagnose/facts/intervals.h"

#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

void lac_spans_done(struct lac_spans *spans)
{
    free(spans->at);
    *spans = (struct lac_spans){0};
}

static enum lac_status push(struct lac_spans *spans, int64_t start_ns, int64_t end_ns)
{
    if (!LAC_RESERVE(spans->at, spans->capacity, spans->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    spans->at[spans->count++] = (struct lac_span){start_ns, end_ns};
    return LAC_OK;
}

enum lac_status lac_spans_add_bridged(struct lac_spans *spans, int64_t start_ns, int64_t end_ns,
                                      int64_t bridge_ns)
{
    if (end_ns <= start_ns) {
        return LAC_OK;
    }
    if (spans->count > 0) {
        struct lac_span *last = &spans->at[spans->count - 1];
        assert(start_ns >= last->start_ns);
        if (start_ns - last->end_ns <= bridge_ns) {
            if (end_ns > last->end_ns) {
                last->end_ns = end_ns;
            }
            return LAC_OK;
        }
    }
    return push(spans, start_ns, end_ns);
}

enum lac_status lac_spans_add(struct lac_spans *spans, int64_t start_ns, int64_t end_ns)
{
    return lac_spans_add_bridged(spans, start_ns, end_ns, 0);
}

enum lac_status lac_spans_add_unsorted_bridged(struct lac_spans *spans, int64_t start_ns,
                                               int64_t end_ns, int64_t bridge_ns)
{
    if (end_ns <= start_ns) {
        return LAC_OK;
    }
    if (spans->count > 0) {
        struct lac_span *last = &spans->at[spans->count - 1];
        if (start_ns >= last->start_ns && start_ns - last->end_ns <= bridge_ns) {
            if (end_ns > last->end_ns) {
                last->end_ns = end_ns;
            }
            return LAC_OK;
        }
    }
    return push(spans, start_ns, end_ns);
}

enum lac_status lac_spans_add_unsorted(struct lac_spans *spans, int64_t start_ns, int64_t end_ns)
{
    return lac_spans_add_unsorted_bridged(spans, start_ns, end_ns, 0);
}

static int by_start(const void *a, const void *b)
{
    const struct lac_span *x = a;
    const struct lac_span *y = b;
    const int order = LAC_ORDER(x->start_ns, y->start_ns);
    return order != 0 ? order : LAC_ORDER(x->end_ns, y->end_ns);
}

void lac_spans_normalize(struct lac_spans *spans, int64_t bridge_ns)
{
    bool is_sorted = true;
    for (uint64_t i = 1; i < spans->count && is_sorted; i++) {
        is_sorted = spans->at[i].start_ns >= spans->at[i - 1].start_ns;
    }
    if (!is_sorted) {
        qsort(spans->at, spans->count, sizeof(*spans->at), by_start);
    }
    uint64_t kept = 0;
    for (uint64_t i = 0; i < spans->count; i++) {
        struct lac_span span = spans->at[i];
        if (kept > 0 && span.start_ns - spans->at[kept - 1].end_ns <= bridge_ns) {
            struct lac_span *last = &spans->at[kept - 1];
            if (span.end_ns > last->end_ns) {
                last->end_ns = span.end_ns;
            }
        } else {
            spans->at[kept++] = span;
        }
    }
    spans->count = kept;
}

int64_t lac_spans_length(const struct lac_spans *spans)
{
    int64_t sum = 0;
    for (uint64_t i = 0; i < spans->count; i++) {
        sum += spans->at[i].end_ns - spans->at[i].start_ns;
    }
    return sum;
}

uint64_t lac_spans_first_after(const struct lac_spans *spans, int64_t t_ns)
{
    uint64_t low = 0;
    LAC_BISECT(low, spans->count, middle, spans->at[middle].end_ns <= t_ns);
    return low;
}

static int64_t overlap(struct lac_span a, struct lac_span b)
{
    int64_t start = a.start_ns > b.start_ns ? a.start_ns : b.start_ns;
    int64_t end = a.end_ns < b.end_ns ? a.end_ns : b.end_ns;
    return end > start ? end - start : 0;
}

int64_t lac_spans_length_inside(const struct lac_spans *spans, int64_t start_ns, int64_t end_ns)
{
    int64_t sum = 0;
    struct lac_span window = {start_ns, end_ns};
    uint64_t i = lac_spans_first_after(spans, start_ns);
    for (; i < spans->count && spans->at[i].start_ns < end_ns; i++) {
        sum += overlap(spans->at[i], window);
    }
    return sum;
}

int64_t lac_spans_intersection_length(const struct lac_spans *a, const struct lac_spans *b)
{
    int64_t sum = 0;
    uint64_t i = 0;
    uint64_t j = 0;
    while (i < a->count && j < b->count) {
        sum += overlap(a->at[i], b->at[j]);
        if (a->at[i].end_ns < b->at[j].end_ns) {
            i++;
        } else {
            j++;
        }
    }
    return sum;
}

enum lac_status lac_spans_intersect(const struct lac_spans *a, const struct lac_spans *b,
                                    struct lac_spans *result)
{
    assert(result->count == 0);
    uint64_t i = 0;
    uint64_t j = 0;
    while (i < a->count && j < b->count) {
        struct lac_span x = a->at[i];
        struct lac_span y = b->at[j];
        int64_t start = x.start_ns > y.start_ns ? x.start_ns : y.start_ns;
        int64_t end = x.end_ns < y.end_ns ? x.end_ns : y.end_ns;
        enum lac_status status = lac_spans_add(result, start, end);
        if (status) {
            return status;
        }
        if (x.end_ns < y.end_ns) {
            i++;
        } else {
            j++;
        }
    }
    return LAC_OK;
}

enum lac_status lac_spans_subtract(const struct lac_spans *a, const struct lac_spans *b,
                                   struct lac_spans *result)
{
    assert(result->count == 0);
    uint64_t j = 0;
    for (uint64_t i = 0; i < a->count; i++) {
        int64_t at = a->at[i].start_ns;
        int64_t end = a->at[i].end_ns;
        while (j < b->count && b->at[j].end_ns <= at) {
            j++;
        }
        for (uint64_t k = j; k < b->count && b->at[k].start_ns < end; k++) {
            if (b->at[k].start_ns > at) {
                enum lac_status status = lac_spans_add(result, at, b->at[k].start_ns);
                if (status) {
                    return status;
                }
            }
            at = b->at[k].end_ns;
            j = k;
        }
        if (at >= end) {
            continue;
        }
        enum lac_status status = lac_spans_add(result, at, end);
        if (status) {
            return status;
        }
    }
    return LAC_OK;
}

enum lac_status lac_spans_unite(const struct lac_spans *a, const struct lac_spans *b,
                                struct lac_spans *result)
{
    assert(result->count == 0);
    uint64_t i = 0;
    uint64_t j = 0;
    while (i < a->count || j < b->count) {
        bool takes_a = j >= b->count || (i < a->count && a->at[i].start_ns <= b->at[j].start_ns);
        struct lac_span span = takes_a ? a->at[i++] : b->at[j++];
        enum lac_status status = lac_spans_add(result, span.start_ns, span.end_ns);
        if (status) {
            return status;
        }
    }
    return LAC_OK;
}

int64_t *lac_spans_prefix(const struct lac_spans *spans)
{
    int64_t *prefix = malloc((spans->count + 1) * sizeof(*prefix));
    if (prefix == NULL) {
        return NULL;
    }
    prefix[0] = 0;
    for (uint64_t i = 0; i < spans->count; i++) {
        prefix[i + 1] = prefix[i] + spans->at[i].end_ns - spans->at[i].start_ns;
    }
    return prefix;
}

int64_t lac_spans_length_up_to(const struct lac_spans *spans, const int64_t *prefix, int64_t t_ns)
{
    uint64_t first = lac_spans_first_after(spans, t_ns);
    int64_t length_ns = prefix[first];
    if (first < spans->count && spans->at[first].start_ns < t_ns) {
        length_ns += t_ns - spans->at[first].start_ns;
    }
    return length_ns;
}

bool lac_spans_is_valid(const struct lac_spans *spans)
{
    for (uint64_t i = 0; i < spans->count; i++) {
        if (spans->at[i].end_ns <= spans->at[i].start_ns) {
            return false;
        }
        if (i > 0 && spans->at[i].start_ns <= spans->at[i - 1].end_ns) {
            return false;
        }
    }
    return true;
}
