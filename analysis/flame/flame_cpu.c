#include "analysis/flame/flame.h"
#include "analysis/flame/flame_line.h"
#include "analysis/flame/flame_thread.h"
#include "analysis/flame/flame_time.h"
#include "analysis/flame/flame_walk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/** Whether a thread's time is nobody's. A part of a trace cannot tell: then it was found before. */
static bool is_left_out(const struct lac_flame_walk *walk, uint32_t track)
{
    const struct lac_model *model = walk->model;
    struct lac_flame_thread thread = {0};
    if (walk->whole != NULL) {
        return walk->whole->is_left_out[track] != 0;
    }
    lac_flame_thread_add(&thread, model, &model->slices, model->tracks[track].first,
                         model->tracks[track].first + model->tracks[track].count);
    return lac_flame_thread_is_left_out(&thread);
}

enum lac_status lac_flame_walk_cpu(struct lac_flame_walk *walk)
{
    const struct lac_model *model = walk->model;
    struct lac_flame_piece *at = calloc(walk->span_count, sizeof(*at));
    struct lac_flame_pieces pieces = {.at = at, .count = walk->span_count};
    enum lac_status status = at != NULL ? LAC_OK : LAC_ERR_NOMEM;
    enum lac_track_kind kind = walk->is_profile   ? LAC_TRACK_PROFILE
                               : walk->is_sampled ? LAC_TRACK_STACKS
                                                  : LAC_TRACK_THREAD;
    for (uint32_t i = 0; i < walk->span_count && at != NULL; i++) {
        at[i] = (struct lac_flame_piece){.start_ns = walk->spans[i].start_ns,
                                         .end_ns = walk->spans[i].end_ns};
    }
    for (uint32_t t = 0; t < model->recorded_track_count && status == LAC_OK; t++) {
        if (model->tracks[t].kind != kind) {
            continue; /* a row of counters has no slices to look at */
        }
        if (walk->is_profile ||
            (lac_flame_counts(walk->options, model, t) && !is_left_out(walk, t))) {
            lac_flame_line_next_group(walk->line);
            status = lac_flame_time(walk, t, &pieces, true);
        }
    }
    free(at);
    return status;
}
