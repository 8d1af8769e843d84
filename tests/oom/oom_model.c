/*
 * The n-th allocation fails, for every n: the model, its chunks and its tiles answer LAC_ERR_NOMEM,
 * and what was made until then can be destroyed (the leak check of the sanitizer build sees the
 * rest).
 */

#include "analysis/model/builder.h"
#include "analysis/model/chunk.h"
#include "analysis/model/tile.h"
#include "tests/support/oom.h"

#include <stdio.h>
#include <stdlib.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum lac_status try_status = (call);                                                       \
        if (try_status != LAC_OK) {                                                                \
            return try_status;                                                                     \
        }                                                                                          \
    } while (0)

/* Enough of everything that arrays grow more than once; threads out of order, so that they are
 * sorted; ids of calls that are used twice, so that launches are bound by the slow way. */
static enum lac_status fill(struct lac_builder *builder)
{
    struct lac_strings *strings = &lac_builder_model(builder)->strings;
    uint32_t process;
    uint32_t track;
    uint32_t counter;
    uint32_t row;
    uint32_t args;

    TRY(lac_strings_intern(strings, "{\"External id\":\x01}", 17, &args));
    for (uint32_t i = 0; i < 700; i++) {
        struct lac_kernel_config config = {.grid = {i}};
        struct lac_copy copy = {.bytes = i};
        struct lac_loader_info info = {.batch = i};
        struct lac_alloc alloc = {.bytes = i};
        int64_t number = i;
        char name[64];
        struct lac_slice_in slice = {.start_ns = (int64_t)(i * 7919 % 1000) * 100,
                                     .dur_ns = 150,
                                     .args = args,
                                     .detail = LAC_NONE,
                                     .corr = i / 3,
                                     .kind = i % 3 ? LAC_SLICE_API : LAC_SLICE_SYNC};
        int length = snprintf(name, sizeof(name), i % 8 ? "n%u" : "_Z1fILi%uEE4pairIT_iEPKS0_", i);

        TRY(lac_strings_intern(strings, name, (size_t)length, &slice.name));
        TRY(lac_builder_process(builder, slice.name % 100, (int64_t)i, &process));
        TRY(lac_builder_track(builder, i % 5 ? LAC_TRACK_THREAD : LAC_TRACK_STREAM, process,
                              slice.name % 50, 1, &track));
        TRY(lac_builder_track(builder, LAC_TRACK_COUNTER, process, slice.name % 50, 1, &counter));
        if (lac_builder_device(builder, (int64_t)i) == NULL) {
            return LAC_ERR_NOMEM;
        }
        TRY(lac_builder_kernel_config(builder, &config, &row));
        TRY(lac_builder_copy(builder, &copy, &row));
        TRY(lac_builder_loader_info(builder, &info, &row));
        TRY(lac_builder_alloc(builder, &alloc, &row));
        TRY(lac_builder_arg_numbers(builder, &number, 1, &slice.arg_num));
        slice.track = track;
        TRY(lac_builder_slice(builder, &slice));
        slice.kind = LAC_SLICE_KERNEL;
        TRY(lac_builder_slice(builder, &slice));
        TRY(lac_builder_sample(builder, counter, (int64_t)i, 1.0));
        TRY(lac_builder_flow(builder, i % 2 ? 'f' : 's', i / 2, 0, track, slice.start_ns, true));
    }
    return LAC_OK;
}

static enum lac_status make_model(struct lac_model **ret_model)
{
    struct lac_builder *builder = NULL;
    enum lac_status status = lac_builder_create(&builder);

    if (status == LAC_OK) {
        lac_builder_demangle(builder);
        status = fill(builder);
    }
    if (status == LAC_OK) {
        status = lac_builder_finish(builder, 0, ret_model);
    }
    if (status != LAC_OK) {
        lac_builder_destroy(builder);
    }
    return status;
}

static enum lac_status add_steps(struct lac_model *model)
{
    struct lac_derived_slice steps[] = {{0, 10, 0, LAC_NONE, LAC_SLICE_STEP},
                                        {10, 10, 0, LAC_NONE, LAC_SLICE_STEP}};
    struct lac_track track = {.kind = LAC_TRACK_STEPS, .device = -1};
    uint64_t before = model->slices.count;
    enum lac_status status = lac_model_add_track(model, &track, steps, 2);

    oom_require(status == LAC_OK || model->slices.count == before,
                "a failed add_track had an effect");
    return status;
}

static enum lac_status use_chunks(const struct lac_model *model)
{
    struct lac_chunk_codec *codec = NULL;
    enum lac_status status = lac_chunk_codec_create(&codec);
    const struct lac_track *track = &model->tracks[0];
    const uint8_t *bytes = NULL;
    size_t size = 0;
    int64_t *numbers = NULL;
    uint64_t number_count = 0;
    uint64_t number_capacity = 0;
    static uint32_t arg_num[2000];
    struct lac_chunk_out out = {.at = {.arg_num = arg_num},
                                .strings = &model->strings,
                                .numbers = &numbers,
                                .number_count = &number_count,
                                .number_capacity = &number_capacity};

    if (status == LAC_OK) {
        status =
            lac_chunk_encode(codec, model, track->first, (uint32_t)track->count, &bytes, &size);
    }
    if (status == LAC_OK) {
        struct lac_error error = {0};

        status = lac_chunk_decode(codec, bytes, size, (uint32_t)track->count, track->first,
                                  1u << LAC_COLUMN_NUMBERS, &out, &error);
        oom_require(status == LAC_OK || error.message[0] != '\0', "a failure without a message");
    }
    free(numbers);
    lac_chunk_codec_destroy(codec);
    return status;
}

struct wire {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
};

static enum lac_status keep_tile(void *context, const struct lac_tile *tile)
{
    struct wire *wire = context;

    return lac_tile_encode(tile, &wire->bytes, &wire->size, &wire->capacity);
}

static enum lac_status use_tiles(const struct lac_model *model)
{
    const struct lac_slices *s = &model->slices;
    struct lac_tile_source source = {.count = model->tracks[0].count,
                                     .start_ns = s->start_ns,
                                     .dur_ns = s->dur_ns,
                                     .name = s->name,
                                     .lane = s->lane,
                                     .kind = s->kind};
    struct wire wire = {0};
    struct lac_tile tile = {0};
    struct lac_error error = {0};
    enum lac_status status = lac_tile_pyramid(&source, 0, 0, keep_tile, &wire);

    if (status == LAC_OK) {
        status = lac_tile_build(&source, 0, 3, 0, &tile);
        lac_tile_done(&tile);
    }
    if (status == LAC_OK) {
        status = lac_tile_decode(wire.bytes, wire.size, &tile, &error);
        lac_tile_done(&tile);
    }
    free(wire.bytes);
    return status;
}

static enum lac_status everything(void *context)
{
    (void)context;
    struct lac_model *model = NULL;
    enum lac_status status = make_model(&model);

    if (status == LAC_OK) {
        status = add_steps(model);
    }
    if (status == LAC_OK) {
        status = use_chunks(model);
    }
    if (status == LAC_OK) {
        status = use_tiles(model);
    }
    if (status == LAC_OK) {
        bool valid = lac_model_is_valid(model); /* which takes memory of its own */

        oom_require(valid || oom_has_refused(), "the model is not valid");
        status = valid ? LAC_OK : LAC_ERR_NOMEM;
    }
    lac_model_destroy(model);
    return status;
}

int main(void)
{
    uint64_t tried = oom_each("oom_model", everything, NULL, 1);

    oom_require(tried > 100, "fewer allocations than there are arrays");
    printf("ok: each of %llu allocations may fail\n", (unsigned long long)tried);
    return 0;
}
