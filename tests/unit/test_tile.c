#include "analysis/model/builder.h"
#include "analysis/model/tile.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* A small generator: the tests are the same on every run. */
static uint64_t rng_state = 1;

static uint64_t rng(uint64_t below)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state % below;
}

/* Durations of all magnitudes up to `bits`, among them 0 and exact powers of 8. */
static int64_t any_ns(uint32_t bits)
{
    uint64_t value = rng(UINT64_C(1) << rng(bits + 1));

    switch (rng(10)) {
    case 0:
        return 0;
    case 1:
        return (int64_t)1 << (3 * rng(bits / 3 + 1));
    case 2:
        return ((int64_t)1 << (3 * rng(bits / 3 + 1))) - 1;
    default:
        return (int64_t)value;
    }
}

static struct lac_model *random_model(uint32_t count, uint32_t span_bits, uint32_t dur_bits,
                                      enum lac_track_kind kind)
{
    struct lac_builder *builder = NULL;
    struct lac_model *model = NULL;
    uint32_t process = 0;
    uint32_t track = 0;
    int64_t burst_ns = 0;

    ck_assert_int_eq(lac_builder_create(&builder), LAC_OK);
    ck_assert_int_eq(lac_builder_process(builder, 0, 1, &process), LAC_OK);
    ck_assert_int_eq(lac_builder_track(builder, kind, process, 0, 1, &track), LAC_OK);
    lac_builder_saw_time(builder, 0);
    for (uint32_t i = 0; i < count; i++) {
        struct lac_slice_in slice = {.track = track, .detail = LAC_NONE};

        if (rng(4) == 0) { /* bursts: several slices close together, some at the same time */
            burst_ns = (int64_t)rng(UINT64_C(1) << span_bits);
        }
        burst_ns += any_ns(span_bits / 3);
        slice.start_ns = burst_ns;
        slice.dur_ns = any_ns(dur_bits);
        slice.kind = (enum lac_slice_kind)rng(LAC_SLICE_KIND_COUNT_);
        slice.name = 0;
        ck_assert_int_eq(lac_builder_slice(builder, &slice), LAC_OK);
    }
    ck_assert_int_eq(lac_builder_finish(builder, 0, &model), LAC_OK);
    for (uint64_t i = 0; i < model->slices.count; i++) {
        model->slices.name[i] = (uint32_t)i * 3 + 1; /* only tiles look at them here */
    }
    return model;
}

static struct lac_tile_source source_of(const struct lac_model *model)
{
    return (struct lac_tile_source){.first_slice = 0,
                                    .count = model->slices.count,
                                    .start_ns = model->slices.start_ns,
                                    .dur_ns = model->slices.dur_ns,
                                    .name = model->slices.name,
                                    .lane = model->slices.lane,
                                    .kind = model->slices.kind};
}

/* ---- the definition in tile.h, word by word ---- */

static bool is_native(int64_t dur_ns, uint8_t level)
{
    int64_t low = 1;

    for (uint8_t k = 0; k < level; k++) {
        low *= 8;
    }
    return dur_ns < low * 8 && (dur_ns >= low || level == 0);
}

static bool is_finer(int64_t dur_ns, uint8_t level)
{
    int64_t low = 1;

    for (uint8_t k = 0; k < level; k++) {
        low *= 8;
    }
    return level > 0 && dur_ns < low;
}

static void check_natives(const struct lac_tile_source *s, const struct lac_tile *tile, int64_t t0,
                          int64_t t1)
{
    uint32_t expected = 0;

    for (uint32_t lane = 0; lane <= LAC_LANE_MAX; lane++) {
        int64_t last_mark = -1;
        bool any = false;

        for (uint64_t i = 0; i < s->count; i++) {
            int64_t end = s->start_ns[i] + s->dur_ns[i];
            bool overlaps = s->dur_ns[i] == 0 ? s->start_ns[i] >= t0 && s->start_ns[i] < t1
                                              : s->start_ns[i] < t1 && end > t0;

            any = any || s->lane[i] > lane;
            if (s->lane[i] != lane || !is_native(s->dur_ns[i], tile->level) || !overlaps) {
                continue;
            }
            if (s->dur_ns[i] == 0 && s->start_ns[i] == last_mark) {
                continue;
            }
            last_mark = s->dur_ns[i] == 0 ? s->start_ns[i] : last_mark;
            ck_assert_uint_lt(expected, tile->native_count);
            ck_assert_uint_eq(tile->natives[expected].slice, i);
            ck_assert_uint_eq(tile->natives[expected].name, s->name[i]);
            ck_assert_int_eq(tile->natives[expected].start_ns, s->start_ns[i]);
            ck_assert_int_eq(tile->natives[expected].dur_ns, s->dur_ns[i]);
            ck_assert_uint_eq(tile->natives[expected].lane, lane);
            ck_assert_uint_eq(tile->natives[expected].kind, s->kind[i]);
            expected++;
        }
        if (!any) {
            break;
        }
    }
    ck_assert_uint_eq(tile->native_count, expected);
}

static void check_cells(const struct lac_tile_source *s, const struct lac_tile *tile, int64_t t0,
                        int64_t t1)
{
    int64_t width = lac_tile_cell_ns(tile->level);
    uint64_t merged = 0;
    uint64_t starting = 0;

    for (uint64_t i = 0; i < s->count; i++) {
        starting +=
            s->start_ns[i] >= t0 && s->start_ns[i] < t1 && is_finer(s->dur_ns[i], tile->level);
    }
    for (uint32_t c = 0; c < tile->cell_count; c++) {
        const struct lac_tile_cell *cell = &tile->cells[c];
        uint32_t count = 0;
        int64_t busy = 0;
        int64_t longest_ns = -1;
        uint64_t longest = 0;

        for (uint64_t i = 0; i < s->count; i++) {
            if (s->lane[i] == cell->lane && is_finer(s->dur_ns[i], tile->level) &&
                s->start_ns[i] >= t0 + cell->cell * width &&
                s->start_ns[i] < t0 + (cell->cell + 1) * width) {
                count++;
                busy += s->dur_ns[i];
                if (s->dur_ns[i] > longest_ns) {
                    longest_ns = s->dur_ns[i];
                    longest = i;
                }
            }
        }
        ck_assert_uint_gt(count, 0);
        ck_assert_uint_eq(cell->count, count);
        ck_assert_int_eq(cell->busy_ns, busy < width ? busy : width);
        ck_assert_uint_eq(cell->slice, longest);
        ck_assert_uint_eq(cell->name, s->name[longest]);
        ck_assert_uint_eq(cell->kind, s->kind[longest]);
        merged += count;
        if (c > 0) {
            ck_assert(cell->lane > cell[-1].lane ||
                      (cell->lane == cell[-1].lane && cell->cell > cell[-1].cell));
        }
    }
    ck_assert_uint_eq(merged, starting); /* so no cell is missing */
}

static void check_tile(const struct lac_tile_source *source, const struct lac_tile *tile)
{
    int64_t t0 = (int64_t)tile->index * LAC_TILE_CELLS * lac_tile_cell_ns(tile->level);
    int64_t t1 = t0 + LAC_TILE_CELLS * lac_tile_cell_ns(tile->level);

    check_natives(source, tile, t0, t1);
    check_cells(source, tile, t0, t1);
}

static bool tiles_equal(const struct lac_tile *a, const struct lac_tile *b)
{
    if (a->track != b->track || a->level != b->level || a->index != b->index ||
        a->native_count != b->native_count || a->cell_count != b->cell_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->native_count; i++) {
        const struct lac_tile_native *x = &a->natives[i];
        const struct lac_tile_native *y = &b->natives[i];

        if (x->slice != y->slice || x->name != y->name || x->start_ns != y->start_ns ||
            x->dur_ns != y->dur_ns || x->lane != y->lane || x->kind != y->kind) {
            return false;
        }
    }
    for (uint32_t i = 0; i < a->cell_count; i++) {
        const struct lac_tile_cell *x = &a->cells[i];
        const struct lac_tile_cell *y = &b->cells[i];

        if (x->cell != y->cell || x->lane != y->lane || x->count != y->count ||
            (float)x->busy_ns != (float)y->busy_ns || x->name != y->name || x->slice != y->slice ||
            x->kind != y->kind) {
            return false;
        }
    }
    return true;
}

START_TEST(levels_are_powers_of_8)
{
    ck_assert_int_eq(lac_tile_cell_ns(0), 1);
    ck_assert_int_eq(lac_tile_cell_ns(3), 512);
    ck_assert_uint_eq(lac_tile_native_level(0), 0);
    ck_assert_uint_eq(lac_tile_native_level(7), 0);
    ck_assert_uint_eq(lac_tile_native_level(8), 1);
    ck_assert_uint_eq(lac_tile_native_level(63), 1);
    ck_assert_uint_eq(lac_tile_native_level(64), 2);
    ck_assert_uint_eq(lac_tile_native_level(LAC_TIME_MAX_NS), LAC_TILE_LEVEL_COUNT - 1);
    for (int64_t ns = 1; ns < LAC_TIME_MAX_NS / 3; ns = ns * 3 + 1) {
        uint8_t level = lac_tile_level_max(ns);

        ck_assert_int_gt(LAC_TILE_CELLS * lac_tile_cell_ns(level), ns);
        ck_assert_uint_ge(level, lac_tile_native_level(ns));
    }
}
END_TEST

START_TEST(the_finest_level_is_the_one_whose_tiles_can_be_named)
{
    int64_t edge_ns = ((int64_t)UINT32_MAX + 1) * LAC_TILE_CELLS;

    ck_assert_uint_eq(lac_tile_level_min(0), 0);
    ck_assert_uint_eq(lac_tile_level_min(edge_ns - 1), 0);
    ck_assert_uint_eq(lac_tile_level_min(edge_ns), 1);
    ck_assert_uint_eq(lac_tile_level_min(edge_ns * 8), 2);
    ck_assert_uint_eq(lac_tile_level_min(LAC_TIME_MAX_NS), 4);
}
END_TEST

START_TEST(a_tile_is_what_its_definition_says)
{
    for (uint32_t round = 0; round < 40; round++) {
        uint32_t span_bits = 10 + round % 10 * 3;
        struct lac_model *model = random_model(
            60, span_bits, span_bits - 4, round % 2 == 0 ? LAC_TRACK_THREAD : LAC_TRACK_STREAM);
        struct lac_tile_source source = source_of(model);

        ck_assert(lac_model_is_valid(model) || model->strings.count < 200); /* names are ours */
        for (uint8_t level = 0; level < LAC_TILE_LEVEL_COUNT; level++) {
            for (int i = 0; i < 6; i++) { /* tiles around slices, and one of nothing */
                int64_t at = i == 0 ? 0 : source.start_ns[rng(source.count)];
                int64_t width = LAC_TILE_CELLS * lac_tile_cell_ns(level);
                uint32_t index = (uint32_t)(at / width) + (i == 5);
                struct lac_tile tile = {0};

                if (at / width > UINT32_MAX - 1) {
                    continue;
                }
                ck_assert_int_eq(lac_tile_build(&source, 9, level, index, &tile), LAC_OK);
                ck_assert_uint_eq(tile.track, 9);
                ck_assert_uint_eq(tile.level, level);
                ck_assert_uint_eq(tile.index, index);
                check_tile(&source, &tile);
                lac_tile_done(&tile);
            }
        }
        lac_model_destroy(model);
    }
}
END_TEST

struct stored {
    const struct lac_tile_source *source;
    uint32_t min_slices;
    uint64_t count;
    uint64_t refuse_after;
};

static uint64_t slices_to_build(const struct lac_tile_source *s, uint8_t level, uint32_t index)
{
    int64_t t0 = (int64_t)index * LAC_TILE_CELLS * lac_tile_cell_ns(level);
    int64_t t1 = t0 + LAC_TILE_CELLS * lac_tile_cell_ns(level);
    uint64_t count = 0;

    for (uint64_t i = 0; i < s->count; i++) {
        count += s->start_ns[i] >= t0 - 8 * lac_tile_cell_ns(level) && s->start_ns[i] < t1;
    }
    return count;
}

static enum lac_status compare_stored(void *context, const struct lac_tile *tile)
{
    struct stored *stored = context;
    struct lac_tile built = {0};

    if (stored->count == stored->refuse_after) {
        return LAC_ERR_IO;
    }
    stored->count++;
    ck_assert_uint_gt(slices_to_build(stored->source, tile->level, tile->index),
                      stored->min_slices);
    ck_assert_int_eq(lac_tile_build(stored->source, tile->track, tile->level, tile->index, &built),
                     LAC_OK);
    ck_assert(tiles_equal(tile, &built));
    lac_tile_done(&built);
    return LAC_OK;
}

START_TEST(the_pyramid_holds_exactly_the_tiles_that_are_dear_to_build)
{
    for (uint32_t round = 0; round < 40; round++) {
        uint32_t span_bits = 10 + round % 8 * 5;
        struct lac_model *model =
            random_model(400 + round, span_bits, span_bits - 3,
                         round % 2 == 0 ? LAC_TRACK_THREAD : LAC_TRACK_STREAM);
        struct lac_tile_source source = source_of(model);
        struct stored stored = {&source, round % 4 == 0 ? 0 : round * 3, 0, UINT64_MAX};
        uint64_t expected = 0;

        ck_assert_int_eq(lac_tile_pyramid(&source, 4, stored.min_slices, compare_stored, &stored),
                         LAC_OK);
        for (uint8_t level = 0; level < LAC_TILE_LEVEL_COUNT; level++) {
            int64_t width = LAC_TILE_CELLS * lac_tile_cell_ns(level);
            int64_t last = -1;

            for (uint64_t i = 0; i < source.count; i++) { /* own tile and the one it reaches into */
                for (int64_t at = source.start_ns[i] / width;
                     at <= (source.start_ns[i] + width / 64) / width; at++) {
                    if (at > last) {
                        last = at;
                        expected +=
                            at <= UINT32_MAX &&
                            slices_to_build(&source, level, (uint32_t)at) > stored.min_slices;
                    }
                }
            }
        }
        ck_assert_uint_eq(stored.count, expected);
        lac_model_destroy(model);
    }
}
END_TEST

START_TEST(the_pyramid_of_a_long_trace_holds_no_tile_without_a_name)
{
    struct lac_model *model = random_model(500, 53 - 1, 40, LAC_TRACK_STREAM);
    struct lac_tile_source source = source_of(model);
    struct stored stored = {&source, 0, 0, UINT64_MAX};

    ck_assert_int_eq(lac_tile_pyramid(&source, 4, 0, compare_stored, &stored), LAC_OK);
    ck_assert_uint_gt(stored.count, 500);
    lac_model_destroy(model);
}
END_TEST

START_TEST(the_pyramid_stops_when_its_sink_refuses)
{
    struct lac_model *model = random_model(300, 20, 10, LAC_TRACK_THREAD);
    struct lac_tile_source source = source_of(model);
    struct stored stored = {&source, 0, 0, 3};

    ck_assert_int_eq(lac_tile_pyramid(&source, 4, 0, compare_stored, &stored), LAC_ERR_IO);
    ck_assert_uint_eq(stored.count, 3);
    lac_model_destroy(model);
}
END_TEST

START_TEST(tiles_survive_the_wire)
{
    uint8_t *buffer = NULL;
    size_t size = 0;
    size_t capacity = 0;
    struct lac_model *model = random_model(2000, 30, 20, LAC_TRACK_STREAM);
    struct lac_tile_source source = source_of(model);

    for (uint8_t level = 0; level < LAC_TILE_LEVEL_COUNT; level++) {
        struct lac_tile tile = {0};
        struct lac_tile back = {0};
        struct lac_error error = {0};
        size_t at = size;

        ck_assert_int_eq(lac_tile_build(&source, 1, level, 0, &tile), LAC_OK);
        ck_assert_int_eq(lac_tile_encode(&tile, &buffer, &size, &capacity), LAC_OK);
        ck_assert_uint_eq(size % 8, 0);
        ck_assert_int_eq(lac_tile_decode(buffer + at, size - at, &back, &error), LAC_OK);
        ck_assert(tiles_equal(&tile, &back));
        lac_tile_done(&back);
        for (size_t cut = 0; cut < size - at; cut += 7) {
            ck_assert_int_eq(lac_tile_decode(buffer + at, cut, &back, &error), LAC_ERR_CORRUPT);
        }
        lac_tile_done(&tile);
    }
    free(buffer);
    lac_model_destroy(model);
}
END_TEST

START_TEST(damaged_tiles_are_refused)
{
    /* offsets into a section with one native and one cell: header 32, then columns of 8 bytes */
    static const struct {
        size_t offset;
        uint8_t value;
    } damages[] = {
        {20, LAC_TILE_LEVEL_COUNT},  /* level */
        {0, 1},                      /* size */
        {12, 2},                     /* native_count */
        {39, 0xff},                  /* start is not a number */
        {47, 0xc0},                  /* duration below zero */
        {72, LAC_SLICE_KIND_COUNT_}, /* kind of the native */
        {83, 0x7f},                  /* cell is too busy */
        {88, 0},                     /* a cell of no slices */
        {113, 2},                    /* cell 512 and more */
        {128, LAC_SLICE_KIND_COUNT_},
    };
    struct lac_tile_native native = {
        .slice = 3, .name = 1, .start_ns = 600, .dur_ns = 9, .kind = 1};
    struct lac_tile_cell cell = {.cell = 5, .count = 1, .busy_ns = 3, .name = 1, .slice = 2};
    struct lac_tile tile = {.track = 1,
                            .level = 1,
                            .natives = &native,
                            .native_count = 1,
                            .cells = &cell,
                            .cell_count = 1};
    uint8_t *buffer = NULL;
    size_t size = 0;
    size_t capacity = 0;
    struct lac_tile back = {0};
    struct lac_error error = {0};

    ck_assert_int_eq(lac_tile_encode(&tile, &buffer, &size, &capacity), LAC_OK);
    ck_assert_uint_eq(size, 136);
    ck_assert_int_eq(lac_tile_decode(buffer, size, &back, &error), LAC_OK);
    ck_assert(tiles_equal(&tile, &back));
    lac_tile_done(&back);
    for (size_t i = 0; i < LAC_COUNT_OF(damages); i++) {
        uint8_t good = buffer[damages[i].offset];

        buffer[damages[i].offset] = damages[i].value;
        ck_assert_msg(lac_tile_decode(buffer, size, &back, &error) == LAC_ERR_CORRUPT,
                      "damage at %zu went through", damages[i].offset);
        ck_assert_int_ne(error.message[0], 0);
        buffer[damages[i].offset] = good;
    }
    struct lac_tile_cell twins[2] = {cell, cell};
    tile.cells = twins;
    tile.cell_count = 2;
    size = 0;
    ck_assert_int_eq(lac_tile_encode(&tile, &buffer, &size, &capacity), LAC_OK);
    ck_assert_int_eq(lac_tile_decode(buffer, size, &back, &error), LAC_ERR_CORRUPT);
    free(buffer);
}
END_TEST

START_TEST(a_slice_that_reaches_in_from_almost_8_cells_before_is_found)
{
    int64_t start[] = {2 * 4096 - 64 * 8 + 1,
                       2 * 4096}; /* level 2: cells of 64, tiles of 32768 ns */
    int64_t dur[] = {64 * 8 - 1, 64};
    uint32_t name[] = {1, 2};
    uint16_t lane[] = {0, 1};
    uint8_t kind[] = {0, 0};
    struct lac_tile_source source = {0, 2, start, dur, name, lane, kind};
    struct lac_tile tile = {0};

    start[0] += 3 * 32768 - 2 * 4096;
    start[1] += 3 * 32768 - 2 * 4096;
    dur[0]++; /* would be of the next level */
    ck_assert_int_eq(lac_tile_build(&source, 0, 2, 3, &tile), LAC_OK);
    ck_assert_uint_eq(tile.native_count, 1);
    lac_tile_done(&tile);
    dur[0]--;
    start[0]++;
    ck_assert_int_eq(lac_tile_build(&source, 0, 2, 3, &tile), LAC_OK);
    ck_assert_uint_eq(tile.native_count, 2);
    ck_assert_int_eq(tile.natives[0].start_ns, start[0]);
    lac_tile_done(&tile);
}
END_TEST

START_TEST(marks_at_one_place_are_given_once)
{
    int64_t start[] = {5, 5, 5, 6, 6};
    int64_t dur[] = {3, 0, 0, 0, 0};
    uint32_t name[] = {1, 2, 3, 4, 5};
    uint16_t lane[] = {0, 1, 1, 1, 2};
    uint8_t kind[] = {0, 0, 0, 0, 0};
    struct lac_tile_source source = {100, 5, start, dur, name, lane, kind};
    struct lac_tile tile = {0};

    ck_assert_int_eq(lac_tile_build(&source, 0, 0, 0, &tile), LAC_OK);
    ck_assert_uint_eq(tile.native_count, 4);
    ck_assert_uint_eq(tile.natives[1].slice, 101);
    ck_assert_uint_eq(tile.natives[2].slice, 103);
    lac_tile_done(&tile);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tile");
    TCase *tests = tcase_create("tile");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, levels_are_powers_of_8);
    tcase_add_test(tests, a_tile_is_what_its_definition_says);
    tcase_add_test(tests, the_pyramid_holds_exactly_the_tiles_that_are_dear_to_build);
    tcase_add_test(tests, the_finest_level_is_the_one_whose_tiles_can_be_named);
    tcase_add_test(tests, the_pyramid_of_a_long_trace_holds_no_tile_without_a_name);
    tcase_add_test(tests, the_pyramid_stops_when_its_sink_refuses);
    tcase_add_test(tests, tiles_survive_the_wire);
    tcase_add_test(tests, damaged_tiles_are_refused);
    tcase_add_test(tests, a_slice_that_reaches_in_from_almost_8_cells_before_is_found);
    tcase_add_test(tests, marks_at_one_place_are_given_once);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
