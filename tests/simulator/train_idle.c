#include "tests/simulator/train_idle.h"

#include "analysis/model/status.h"
#include "server/demo/pipeline.h"
#include "tests/simulator/train_loop.h"

#include <stdint.h>
#include <stdlib.h>

struct operation {
    int64_t start_ns;
    int64_t end_ns;
    int64_t launch_ns; /* INT64_MIN: before the window */
};

enum lac_status lac_demo_line_add(struct lac_demo_line *line, int64_t start_ns, int64_t end_ns,
                                  enum lac_demo_blame blame)
{
    if (line->count == line->capacity) {
        uint64_t wanted = line->capacity == 0 ? 16384 : line->capacity * 2;
        void *moved = realloc(line->pieces, wanted * sizeof(*line->pieces));
        if (moved == NULL) {
            return LAC_ERR_NOMEM;
        }
        line->pieces = moved;
        line->capacity = wanted;
    }
    line->pieces[line->count++] = (struct lac_demo_piece){start_ns, end_ns, blame};
    return LAC_OK;
}

void lac_demo_line_done(struct lac_demo_line *line)
{
    free(line->pieces);
    *line = (struct lac_demo_line){0};
}

static int by_start(const void *a, const void *b)
{
    const struct operation *left = a;
    const struct operation *right = b;
    if (left->start_ns != right->start_ns) {
        return left->start_ns < right->start_ns ? -1 : 1;
    }
    return left->launch_ns < right->launch_ns ? -1 : left->launch_ns > right->launch_ns;
}

/* First piece that ends after `at_ns`. */
static uint64_t piece_at(const struct lac_demo_line *line, int64_t at_ns)
{
    uint64_t low = 0;
    uint64_t high = line->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (line->pieces[middle].end_ns > at_ns) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static void split_gap(struct lac_demo_loop_run *run, const struct lac_demo_line *line, int64_t a,
                      const struct operation *op)
{
    int64_t b = op->start_ns;
    int64_t launched_ns = op->launch_ns < a ? a : op->launch_ns > b ? b : op->launch_ns;
    uint64_t first = piece_at(line, a);
    bool is_drained = first < line->count && line->pieces[first].blame == LAC_DEMO_BLAME_SYNC;
    run->idle_ns[LAC_DEMO_BLAME_LAUNCH] += b - launched_ns;
    for (uint64_t i = first; i < line->count && line->pieces[i].start_ns < launched_ns; i++) {
        const struct lac_demo_piece *piece = &line->pieces[i];
        int64_t from_ns = piece->start_ns > a ? piece->start_ns : a;
        int64_t to_ns = piece->end_ns < launched_ns ? piece->end_ns : launched_ns;
        enum lac_demo_blame blame =
            piece->blame == LAC_DEMO_BLAME_HOST && is_drained ? LAC_DEMO_BLAME_SYNC : piece->blame;
        run->idle_ns[blame] += to_ns - from_ns;
    }
}

enum lac_status lac_demo_measure_idle(struct lac_demo_loop_run *run,
                                      const struct lac_demo_line *line)
{
    uint32_t last = 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < run->event_count; i++) {
        last = run->events[i].correlation > last ? run->events[i].correlation : last;
    }
    int64_t *launch_ns = malloc(((size_t)last + 1) * sizeof(*launch_ns));
    struct operation *ops = calloc(run->event_count + 1, sizeof(*ops));
    if (launch_ns == NULL || ops == NULL) {
        free(launch_ns);
        free(ops);
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i <= last; i++) {
        launch_ns[i] = INT64_MIN;
    }
    for (uint64_t i = 0; i < run->event_count; i++) {
        if (run->events[i].kind == LAC_DEMO_EVENT_API) {
            launch_ns[run->events[i].correlation] = run->events[i].start_ns;
        }
    }
    for (uint64_t i = 0; i < run->event_count; i++) {
        const struct lac_demo_event *e = &run->events[i];
        if (e->kind == LAC_DEMO_EVENT_KERNEL || e->kind == LAC_DEMO_EVENT_COPY) {
            ops[count++] =
                (struct operation){e->start_ns, e->start_ns + e->dur_ns, launch_ns[e->correlation]};
        }
    }
    qsort(ops, count, sizeof(*ops), by_start);
    int64_t until_ns = count > 0 ? ops[0].start_ns : 0;
    for (uint64_t i = 0; i < count; i++) {
        if (ops[i].start_ns > until_ns) {
            split_gap(run, line, until_ns, &ops[i]);
            until_ns = ops[i].start_ns;
        }
        if (ops[i].end_ns > until_ns) {
            run->busy_ns += ops[i].end_ns - until_ns;
            until_ns = ops[i].end_ns;
        }
    }
    run->span_ns = count > 0 ? until_ns - ops[0].start_ns : 0;
    free(launch_ns);
    free(ops);
    return LAC_OK;
}

const char *lac_demo_blame_name(enum lac_demo_blame blame)
{
    static const char *const NAMES[LAC_DEMO_BLAME_COUNT_] = {
        "data_wait", "sync", "launch", "copy_wait", "allocator", "module_load", "comm", "host"};
    return NAMES[blame];
}
