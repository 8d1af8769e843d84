#include "analysis/flame/flame_time.h"
#include "analysis/flame/flame_walk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>

enum lac_status lac_flame_walk_cpu(struct lac_flame_walk *walk)
{
    const struct lac_model *model = walk->model;
    struct lac_flame_piece area = {.start_ns = walk->t0_ns, .end_ns = walk->t1_ns};
    struct lac_flame_pieces pieces = {.at = &area, .count = 1};
    enum lac_status status = LAC_OK;
    for (uint32_t t = 0; t < model->recorded_track_count && status == LAC_OK; t++) {
        if (model->tracks[t].kind == LAC_TRACK_THREAD) {
            status = lac_flame_time(walk, t, &pieces, true);
        }
    }
    for (uint32_t i = 1; i < walk->tree.count; i++) {
        walk->tree.frames[0].count += walk->tree.frames[i].count;
    }
    return status;
}
