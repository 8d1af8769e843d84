/*
 * Any bytes as calls of the builder: the model must be valid, its chunks must come back the same,
 * and its pyramid must hold what its tiles are when they are built one by one.
 */

#include "analysis/model/builder.h"
#include "analysis/model/chunk.h"
#include "analysis/model/tile.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TRACKS = 7 };

struct tape {
    const uint8_t *data;
    size_t size;
    size_t at;
};

static uint64_t next(struct tape *tape, uint32_t bytes)
{
    uint64_t value = 0;

    while (bytes-- > 0) {
        value = value << 8 | (tape->at < tape->size ? tape->data[tape->at++] : 0);
    }
    return value;
}

/* Small times mostly, so that slices meet; now and then one of any size. */
static int64_t next_time(struct tape *tape)
{
    uint64_t how = next(tape, 1);

    return how < 200   ? (int64_t)(how * 4)
           : how < 250 ? (int64_t)next(tape, 4)
                       : (int64_t)next(tape, 8);
}

static void append(struct lac_builder *builder, struct tape *tape, const uint32_t *tracks)
{
    uint32_t track = (uint32_t)next(tape, 1) % TRACKS;
    uint64_t what = next(tape, 1);
    int64_t time_ns = next_time(tape);
    struct lac_slice_in slice = {.track = tracks[track], .start_ns = time_ns, .detail = LAC_NONE};

    if (track == LAC_TRACK_COUNTER) {
        require(lac_builder_sample(builder, tracks[track], time_ns, (double)what) == LAC_OK);
        return;
    }
    if (what >= 240) {
        static const char steps[] = "stf";

        require(lac_builder_flow(builder, steps[what % 3], next(tape, 1) % 4, 0, tracks[track],
                                 time_ns, what % 2 == 0) == LAC_OK);
        return;
    }
    slice.dur_ns = next_time(tape) & INT64_MAX;
    slice.corr = (uint32_t)next(tape, what % 5 == 0 ? 4 : 1) % 16;
    slice.kind = (enum lac_slice_kind)(what % LAC_SLICE_KIND_COUNT_);
    require(lac_builder_slice(builder, &slice) == LAC_OK);
}

static struct lac_model *model_of(struct tape *tape)
{
    struct lac_builder *builder = NULL;
    struct lac_model *model = NULL;
    uint32_t tracks[TRACKS];
    uint32_t process = 0;

    require(lac_builder_create(&builder) == LAC_OK);
    require(lac_builder_process(builder, 0, 1, &process) == LAC_OK);
    for (uint32_t t = 0; t < TRACKS; t++) { /* one of each kind */
        require(lac_builder_track(builder, (enum lac_track_kind)t, process, 0, t, &tracks[t]) ==
                LAC_OK);
    }
    while (tape->at < tape->size) {
        append(builder, tape, tracks);
    }
    require(lac_builder_finish(builder, (int64_t)next(tape, 1), &model) == LAC_OK);
    return model;
}

static void check_chunk(const struct lac_model *model, const struct lac_track *track)
{
    static struct lac_chunk_codec *codec; /* one for all runs: contexts are dear to make */
    uint32_t count = (uint32_t)track->count;
    const struct lac_slices *s = &model->slices;
    const uint8_t *bytes = NULL;
    size_t size = 0;
    struct lac_slices at = {.start_ns = malloc(count * sizeof(int64_t)),
                            .dur_ns = malloc(count * sizeof(int64_t)),
                            .corr = malloc(count * sizeof(uint32_t)),
                            .link = malloc(count * sizeof(uint32_t)),
                            .lane = malloc(count * sizeof(uint16_t)),
                            .kind = malloc(count)};
    struct lac_chunk_out out = {.at = at, .strings = &model->strings};

    require(codec != NULL || lac_chunk_codec_create(&codec) == LAC_OK);
    require(lac_chunk_encode(codec, model, track->first, count, &bytes, &size) == LAC_OK);
    require(
        lac_chunk_decode(codec, bytes, size, count, track->first,
                         LAC_COLUMNS_ALL & ~(1u << LAC_COLUMN_NUMBERS | 1u << LAC_COLUMN_DETAIL),
                         &out, NULL) == LAC_OK);
    require(memcmp(at.start_ns, s->start_ns + track->first, count * sizeof(int64_t)) == 0);
    require(memcmp(at.dur_ns, s->dur_ns + track->first, count * sizeof(int64_t)) == 0);
    require(memcmp(at.corr, s->corr + track->first, count * sizeof(uint32_t)) == 0);
    require(memcmp(at.link, s->link + track->first, count * sizeof(uint32_t)) == 0);
    require(memcmp(at.lane, s->lane + track->first, count * sizeof(uint16_t)) == 0);
    require(memcmp(at.kind, s->kind + track->first, count) == 0);
    free(at.start_ns);
    free(at.dur_ns);
    free(at.corr);
    free(at.link);
    free(at.lane);
    free(at.kind);
}

static enum lac_status check_tile(void *context, const struct lac_tile *tile)
{
    const struct lac_tile_source *source = context;
    struct lac_tile built = {0};
    uint8_t *bytes[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    size_t capacities[2] = {0, 0};

    require(lac_tile_build(source, tile->track, tile->level, tile->index, &built) == LAC_OK);
    require(lac_tile_encode(tile, &bytes[0], &sizes[0], &capacities[0]) == LAC_OK);
    require(lac_tile_encode(&built, &bytes[1], &sizes[1], &capacities[1]) == LAC_OK);
    require(sizes[0] == sizes[1] && memcmp(bytes[0], bytes[1], sizes[0]) == 0);
    lac_tile_done(&built);
    free(bytes[0]);
    free(bytes[1]);
    return LAC_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tape tape = {data, size < 4096 ? size : 4096, 0};
    struct lac_model *model = model_of(&tape);

    require(lac_model_is_valid(model));
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        const struct lac_slices *s = &model->slices;

        if (track->kind != LAC_TRACK_COUNTER && track->count > 0) {
            struct lac_tile_source source = {.first_slice = track->first,
                                             .count = track->count,
                                             .start_ns = s->start_ns + track->first,
                                             .dur_ns = s->dur_ns + track->first,
                                             .name = s->name + track->first,
                                             .lane = s->lane + track->first,
                                             .kind = s->kind + track->first};

            check_chunk(model, track);
            require(lac_tile_pyramid(&source, t, (uint32_t)(size % 8), check_tile, &source) ==
                    LAC_OK);
        }
    }
    for (uint64_t i = 0; i < model->slices.count; i++) {
        const struct lac_track *track = &model->tracks[lac_model_track_of(model, i)];

        require(i >= track->first && i - track->first < track->count);
        require(track->kind != LAC_TRACK_COUNTER);
    }
    lac_model_destroy(model);
    return 0;
}
