#include "server/export/step_spans.h"

#include "analysis/diagnose/result/analysis.h"
#include "analysis/flame/flame.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum lac_status lac_step_spans_init(struct lac_step_spans *spans, uint32_t step_count_max)
{
    assert(spans != NULL);
    *spans = (struct lac_step_spans){
        .spans = calloc((size_t)step_count_max + 1, sizeof(*spans->spans)),
    };
    return spans->spans != NULL ? LAC_OK : LAC_ERR_NOMEM;
}

void lac_step_spans_add(struct lac_step_spans *spans, int64_t start_ns, int64_t dur_ns)
{
    spans->step_count++;
    if (dur_ns > 0) {
        spans->spans[spans->span_count++] = (struct lac_flame_span){start_ns, start_ns + dur_ns};
    }
}

static int by_start(const void *a, const void *b)
{
    return LAC_ORDER(((const struct lac_flame_span *)a)->start_ns,
                     ((const struct lac_flame_span *)b)->start_ns);
}

void lac_step_spans_join(struct lac_step_spans *spans)
{
    uint32_t kept = 0;

    if (spans->span_count == 0) {
        spans->step_count = 0;
        return;
    }
    qsort(spans->spans, spans->span_count, sizeof(*spans->spans), by_start);
    for (uint32_t i = 1; i < spans->span_count; i++) {
        struct lac_flame_span *last = &spans->spans[kept];

        if (spans->spans[i].start_ns > last->end_ns) {
            spans->spans[++kept] = spans->spans[i];
        } else if (spans->spans[i].end_ns > last->end_ns) {
            last->end_ns = spans->spans[i].end_ns;
        }
    }
    spans->span_count = kept + 1;
}

enum lac_status lac_step_spans_measured(const struct lac_analysis *analysis, bool is_host,
                                        struct lac_step_spans *ret_spans)
{
    assert(analysis != NULL);
    const enum lac_status status = lac_step_spans_init(ret_spans, analysis->step_count);

    for (uint32_t s = 0; s < analysis->step_count && status == LAC_OK; s++) {
        const struct lac_step *step = &analysis->steps[s];

        if (step->left_out == LAC_STEP_KEPT) {
            lac_step_spans_add(ret_spans, is_host ? step->host_start_ns : step->start_ns,
                               is_host ? step->host_dur_ns : step->dur_ns);
        }
    }
    if (status == LAC_OK) {
        lac_step_spans_join(ret_spans);
    }
    return status;
}

void lac_step_spans_use(const struct lac_step_spans *spans, struct lac_flame_options *options)
{
    if (spans->span_count > 0) {
        options->spans = spans->spans;
        options->span_count = spans->span_count;
        options->t0_ns = spans->spans[0].start_ns;
        options->t1_ns = spans->spans[spans->span_count - 1].end_ns;
    }
}

void lac_step_spans_done(struct lac_step_spans *spans)
{
    free(spans->spans);
    *spans = (struct lac_step_spans){0};
}
