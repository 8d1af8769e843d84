/*
 * What the model costs: append, finish, chunks there and back, the pyramid, tiles from chunks.
 *
 *   build/release/bench/bench_model [slices, 20 M by default]
 *
 * The trace is made up but shaped like a training loop: threads with nested operators and their
 * calls, streams with the kernels these launch, arguments with counting numbers.
 */

#include "analysis/model/builder.h"
#include "analysis/model/chunk.h"
#include "analysis/model/tile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { THREADS = 4, STREAMS = 4, NAMES = 300, MIN_SLICES = 2048, TILE_ROUNDS = 2000 };

static double cpu_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void must(enum lac_status status, const char *what)
{
    if (status != LAC_OK) {
        (void)fprintf(stderr, "bench_model: %s: %s\n", what, lac_status_name(status));
        exit(1);
    }
}

static uint64_t rng_state = 88172645463325252u;

static uint64_t rng(uint64_t below)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state % below;
}

struct shape {
    struct lac_builder *builder;
    uint32_t thread[THREADS];
    uint32_t stream[STREAMS];
    uint32_t name[NAMES];
    uint32_t launch_name;
    uint32_t op_args;
    uint32_t call_args;
    uint32_t corr;
    int64_t external_id;
    int64_t now_ns[THREADS];
    int64_t stream_ns[STREAMS];
};

static uint32_t intern(struct lac_builder *builder, const char *text)
{
    uint32_t id = 0;

    must(lac_strings_intern(&lac_builder_model(builder)->strings, text, strlen(text), &id),
         "intern");
    return id;
}

static struct shape new_shape(void)
{
    struct shape shape = {0};
    uint32_t process = 0;

    must(lac_builder_create(&shape.builder), "create");
    must(lac_builder_process(shape.builder, 0, 1, &process), "process");
    for (int i = 0; i < THREADS; i++) {
        char text[16];

        (void)snprintf(text, sizeof(text), "%d", i);
        must(lac_builder_track(shape.builder, LAC_TRACK_THREAD, process,
                               intern(shape.builder, text), i, &shape.thread[i]),
             "track");
        must(lac_builder_track(shape.builder, LAC_TRACK_STREAM, process,
                               intern(shape.builder, text), i, &shape.stream[i]),
             "track");
    }
    for (int i = 0; i < NAMES; i++) {
        char text[32];

        (void)snprintf(text, sizeof(text), "aten::operator_%d", i);
        shape.name[i] = intern(shape.builder, text);
    }
    shape.launch_name = intern(shape.builder, "cudaLaunchKernel");
    shape.op_args = intern(shape.builder, "{\"External id\":\x01,\"Input Dims\":[[32,3,224,224]]}");
    shape.call_args =
        intern(shape.builder, "{\"External id\":\x01,\"cbid\":211,\"correlation\":\x01}");
    return shape;
}

static void append(struct shape *shape, const struct lac_slice_in *in, int64_t external_id)
{
    struct lac_slice_in slice = *in;
    int64_t numbers[2] = {external_id, slice.corr};

    must(lac_builder_arg_numbers(shape->builder, numbers, slice.corr != 0 ? 2 : 1, &slice.arg_num),
         "numbers");
    must(lac_builder_slice(shape->builder, &slice), "slice");
}

/* One operator with an inner one that launches a kernel: four slices. As recorders write them: the
 * thread's in order of their ends, so not sorted. */
static void append_operator(struct shape *shape, uint32_t step)
{
    uint32_t t = step / 64 % THREADS;
    uint32_t name = step % (NAMES - 1);
    int64_t start_ns = shape->now_ns[t] + 500 + (int64_t)rng(2000);
    int64_t launch_ns = start_ns + 2000 + (int64_t)rng(1000);
    int64_t kernel_ns = launch_ns + 4000;
    int64_t dur_ns = 3000 + (int64_t)name * 100 + (int64_t)rng(500);
    struct lac_slice_in slice = {.detail = LAC_NONE};

    kernel_ns = kernel_ns > shape->stream_ns[t] ? kernel_ns : shape->stream_ns[t] + 900;
    shape->stream_ns[t] = kernel_ns + dur_ns;
    shape->now_ns[t] = launch_ns + 6000;
    shape->corr++;
    slice.track = shape->stream[t];
    slice.kind = LAC_SLICE_KERNEL;
    slice.name = shape->name[name + 1];
    slice.corr = shape->corr;
    slice.args = shape->call_args;
    slice.start_ns = kernel_ns;
    slice.dur_ns = dur_ns;
    append(shape, &slice, shape->external_id + 1);
    slice.track = shape->thread[t];
    slice.kind = LAC_SLICE_API;
    slice.name = shape->launch_name;
    slice.detail = 0;
    slice.start_ns = launch_ns;
    slice.dur_ns = 3000;
    append(shape, &slice, shape->external_id + 1);
    slice.kind = LAC_SLICE_OP;
    slice.name = shape->name[name];
    slice.corr = 0;
    slice.detail = LAC_NONE;
    slice.args = shape->op_args;
    slice.start_ns = start_ns + 800;
    slice.dur_ns = launch_ns + 3500 - slice.start_ns;
    append(shape, &slice, shape->external_id + 1);
    slice.name = shape->name[name + 1];
    slice.start_ns = start_ns;
    slice.dur_ns = launch_ns + 4000 - start_ns;
    append(shape, &slice, shape->external_id);
    shape->external_id += 2;
}

struct chunk {
    uint64_t first;
    uint32_t count;
    uint32_t track;
    size_t offset;
    size_t size;
};

struct chunks {
    struct chunk *at;
    uint64_t count;
    uint8_t *bytes;
    size_t size;
};

static struct chunks encode_all(struct lac_chunk_codec *codec, const struct lac_model *model)
{
    struct chunks chunks = {
        .at = calloc(model->slices.count / LAC_CHUNK_SLICES + 1000, sizeof(*chunks.at)),
        .bytes = malloc(model->slices.count * 16 + 65536)};

    if (chunks.at == NULL || chunks.bytes == NULL) {
        must(LAC_ERR_NOMEM, "chunks");
    }
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];

        for (uint64_t done = 0; done < track->count;) {
            uint64_t left = track->count - done;
            struct chunk chunk = {.first = track->first + done,
                                  .track = t,
                                  .offset = chunks.size,
                                  .count =
                                      left < LAC_CHUNK_SLICES ? (uint32_t)left : LAC_CHUNK_SLICES};
            const uint8_t *bytes = NULL;

            must(lac_chunk_encode(codec, model, chunk.first, chunk.count, &bytes, &chunk.size),
                 "encode");
            memcpy(chunks.bytes + chunks.size, bytes, chunk.size);
            chunks.size += chunk.size;
            chunks.at[chunks.count++] = chunk;
            done += chunk.count;
        }
    }
    return chunks;
}

struct room {
    struct lac_slices at;
    int64_t *numbers;
    uint64_t number_count;
    uint64_t number_capacity;
};

static struct room new_room(void)
{
    size_t n = (size_t)LAC_CHUNK_SLICES * 2;
    struct room room = {.at = {.start_ns = calloc(n, 8),
                               .dur_ns = calloc(n, 8),
                               .name = calloc(n, 4),
                               .corr = calloc(n, 4),
                               .link = calloc(n, 4),
                               .detail = calloc(n, 4),
                               .args = calloc(n, 4),
                               .arg_num = calloc(n, 4),
                               .lane = calloc(n, 2),
                               .kind = calloc(n, 1)}};

    return room;
}

static void decode(struct lac_chunk_codec *codec, const struct lac_model *model,
                   const struct chunks *chunks, const struct chunk *chunk, unsigned columns,
                   struct room *room, uint32_t at)
{
    struct lac_slices to = {.start_ns = room->at.start_ns + at,
                            .dur_ns = room->at.dur_ns + at,
                            .name = room->at.name + at,
                            .corr = room->at.corr + at,
                            .link = room->at.link + at,
                            .detail = room->at.detail + at,
                            .args = room->at.args + at,
                            .arg_num = room->at.arg_num + at,
                            .lane = room->at.lane + at,
                            .kind = room->at.kind + at};
    struct lac_chunk_out out = {.at = to,
                                .strings = &model->strings,
                                .numbers = &room->numbers,
                                .number_count = &room->number_count,
                                .number_capacity = &room->number_capacity};

    room->number_count = 0;
    must(lac_chunk_decode(codec, chunks->bytes + chunk->offset, chunk->size, chunk->count,
                          chunk->first, columns, &out, NULL),
         "decode");
}

struct tally {
    uint64_t tiles;
    uint64_t bytes;
    uint8_t *buffer;
    size_t capacity;
};

static enum lac_status count_tile(void *context, const struct lac_tile *tile)
{
    struct tally *tally = context;
    size_t size = 0;
    enum lac_status status = lac_tile_encode(tile, &tally->buffer, &size, &tally->capacity);

    tally->tiles++;
    tally->bytes += size;
    return status;
}

static struct lac_tile_source source_of(const struct lac_slices *slices, uint64_t first,
                                        uint64_t at, uint64_t count)
{
    return (struct lac_tile_source){.first_slice = first,
                                    .count = count,
                                    .start_ns = slices->start_ns + at,
                                    .dur_ns = slices->dur_ns + at,
                                    .name = slices->name + at,
                                    .lane = slices->lane + at,
                                    .kind = slices->kind + at};
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* A tile that is not stored: its one or two chunks are decoded, then it is built and encoded. */
static void bench_tiles(struct lac_chunk_codec *codec, const struct lac_model *model,
                        const struct chunks *chunks, struct room *room)
{
    static double times_ms[TILE_ROUNDS];
    struct tally tally = {0};

    for (int i = 0; i < TILE_ROUNDS; i++) {
        uint64_t c = rng(chunks->count);
        const struct chunk *chunk = &chunks->at[c];
        bool two = c + 1 < chunks->count && chunk[1].track == chunk->track;
        uint64_t slice = chunk->first + rng(chunk->count);
        double before = cpu_s();
        struct lac_tile tile = {0};
        uint8_t level = 4; /* 2 ms: the finest that hundreds of slices lie in */
        uint32_t index =
            (uint32_t)(model->slices.start_ns[slice] / (LAC_TILE_CELLS * lac_tile_cell_ns(level)));

        decode(codec, model, chunks, chunk, LAC_COLUMNS_TILE, room, 0);
        if (two) {
            decode(codec, model, chunks, chunk + 1, LAC_COLUMNS_TILE, room, chunk->count);
        }
        struct lac_tile_source source =
            source_of(&room->at, chunk->first, 0, chunk->count + (two ? chunk[1].count : 0));
        must(lac_tile_build(&source, chunk->track, level, index, &tile), "tile");
        must(count_tile(&tally, &tile), "encode tile");
        lac_tile_done(&tile);
        times_ms[i] = (cpu_s() - before) * 1e3;
    }
    qsort(times_ms, TILE_ROUNDS, sizeof(times_ms[0]), by_value);
    printf("tile from two chunks    p50 %.3f ms  p99 %.3f ms  worst %.3f ms\n",
           times_ms[TILE_ROUNDS / 2], times_ms[TILE_ROUNDS * 99 / 100], times_ms[TILE_ROUNDS - 1]);
    free(tally.buffer);
}

static void bench_chunks(const struct lac_model *model)
{
    struct lac_chunk_codec *codec = NULL;
    struct room room = new_room();
    double millions = (double)model->slices.count / 1e6;
    double before;
    struct chunks chunks;

    must(lac_chunk_codec_create(&codec), "codec");
    before = cpu_s();
    chunks = encode_all(codec, model);
    printf("encode chunks           %6.1f Mslices/s  %.2f bytes a slice\n",
           millions / (cpu_s() - before), (double)chunks.size / (double)model->slices.count);
    before = cpu_s();
    for (uint64_t c = 0; c < chunks.count; c++) {
        decode(codec, model, &chunks, &chunks.at[c], LAC_COLUMNS_ALL, &room, 0);
    }
    printf("decode all columns      %6.1f Mslices/s\n", millions / (cpu_s() - before));
    before = cpu_s();
    for (uint64_t c = 0; c < chunks.count; c++) {
        decode(codec, model, &chunks, &chunks.at[c], LAC_COLUMNS_TILE, &room, 0);
    }
    printf("decode tile columns     %6.1f Mslices/s\n", millions / (cpu_s() - before));
    bench_tiles(codec, model, &chunks, &room);
    lac_chunk_codec_destroy(codec);
    free(chunks.at);
    free(chunks.bytes);
    free(room.at.start_ns);
    free(room.at.dur_ns);
    free(room.at.name);
    free(room.at.corr);
    free(room.at.link);
    free(room.at.detail);
    free(room.at.args);
    free(room.at.arg_num);
    free(room.at.lane);
    free(room.at.kind);
    free(room.numbers);
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000000;
    struct shape shape = new_shape();
    struct lac_model *model = NULL;
    struct tally tally = {0};
    double millions;
    double before = cpu_s();
    struct rusage usage;

    for (uint32_t step = 0; (uint64_t)step * 4 < count; step++) {
        append_operator(&shape, step);
    }
    millions = (double)lac_builder_model(shape.builder)->slices.count / 1e6;
    printf("slices                  %6.1f M\n", millions);
    printf("append                  %6.1f Mslices/s (the generator included)\n",
           millions / (cpu_s() - before));
    before = cpu_s();
    must(lac_builder_finish(shape.builder, 0, &model), "finish");
    printf("finish                  %6.1f Mslices/s  %.0f ms\n", millions / (cpu_s() - before),
           (cpu_s() - before) * 1e3);
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("peak memory             %6.1f bytes a slice\n",
           (double)usage.ru_maxrss * 1024 / (millions * 1e6));
    before = cpu_s();
    for (uint32_t t = 0; t < model->track_count; t++) {
        struct lac_tile_source source = source_of(&model->slices, model->tracks[t].first,
                                                  model->tracks[t].first, model->tracks[t].count);

        must(lac_tile_pyramid(&source, t, MIN_SLICES, count_tile, &tally), "pyramid");
    }
    printf("pyramid                 %6.1f Mslices/s  %.2f bytes a slice, %llu tiles\n",
           millions / (cpu_s() - before), (double)tally.bytes / (millions * 1e6),
           (unsigned long long)tally.tiles);
    bench_chunks(model);
    free(tally.buffer);
    lac_model_destroy(model);
    return 0;
}
