#include "analysis/crew/crew.h"
#include "analysis/model/builder.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lac_builder *new_builder(void)
{
    struct lac_builder *builder = NULL;

    ck_assert_int_eq(lac_builder_create(&builder), LAC_OK);
    return builder;
}

static uint32_t intern(struct lac_builder *builder, const char *text)
{
    uint32_t id = UINT32_MAX;

    ck_assert_int_eq(
        lac_strings_intern(&lac_builder_model(builder)->strings, text, strlen(text), &id), LAC_OK);
    return id;
}

static uint32_t track(struct lac_builder *builder, enum lac_track_kind kind, const char *id_text)
{
    uint32_t process = UINT32_MAX;
    uint32_t id = UINT32_MAX;

    ck_assert_int_eq(lac_builder_process(builder, intern(builder, "1"), 1, &process), LAC_OK);
    ck_assert_int_eq(lac_builder_track(builder, kind, process, intern(builder, id_text),
                                       strtol(id_text, NULL, 10), &id),
                     LAC_OK);
    return id;
}

static void add(struct lac_builder *builder, uint32_t track_id, enum lac_slice_kind kind,
                const char *name, int64_t start_ns, int64_t dur_ns, uint32_t corr)
{
    struct lac_slice_in slice = {.start_ns = start_ns,
                                 .dur_ns = dur_ns,
                                 .track = track_id,
                                 .name = intern(builder, name),
                                 .corr = corr,
                                 .detail = LAC_NONE,
                                 .kind = kind};

    ck_assert_int_eq(lac_builder_slice(builder, &slice), LAC_OK);
}

static struct lac_model *finish(struct lac_builder *builder, int64_t base_ns)
{
    struct lac_model *model = NULL;

    ck_assert_int_eq(lac_builder_finish(builder, base_ns, &model), LAC_OK);
    ck_assert(lac_model_is_valid(model));
    return model;
}

static uint64_t find(const struct lac_model *model, const char *name)
{
    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (strcmp(lac_model_str(model, model->slices.name[i]), name) == 0) {
            return i;
        }
    }
    ck_abort_msg("no slice %s", name);
    return 0;
}

START_TEST(an_empty_builder_makes_an_empty_valid_model)
{
    struct lac_model *model = finish(new_builder(), 5);

    ck_assert_uint_eq(model->slices.count, 0);
    ck_assert_int_eq(model->info.t0_ns, 5);
    ck_assert_int_eq(model->info.duration_ns, 0);
    lac_model_destroy(model);
}
END_TEST

START_TEST(slices_are_sorted_by_track_start_longest_first_then_input)
{
    struct lac_builder *builder = new_builder();
    uint32_t a = track(builder, LAC_TRACK_THREAD, "10");
    uint32_t b = track(builder, LAC_TRACK_THREAD, "20");
    struct lac_model *model;
    static const char *const wanted[] = {"a0", "a1", "a2", "a3", "b0", "b1"};

    add(builder, b, LAC_SLICE_OP, "b1", 1500, 10, 0);
    add(builder, a, LAC_SLICE_OP, "a1", 1100, 50, 0);
    add(builder, a, LAC_SLICE_OP, "a3", 1200, 10, 0);
    add(builder, a, LAC_SLICE_OP, "a2", 1100, 50, 0); /* equal to a1, later in the input */
    add(builder, a, LAC_SLICE_OP, "a0", 1100, 90, 0);
    add(builder, b, LAC_SLICE_OP, "b0", 1000, 10, 0);
    model = finish(builder, 7000);
    ck_assert_uint_eq(model->slices.count, 6);
    for (uint64_t i = 0; i < 6; i++) {
        ck_assert_str_eq(lac_model_str(model, model->slices.name[i]), wanted[i]);
    }
    ck_assert_int_eq(model->info.t0_ns, 8000);
    ck_assert_int_eq(model->slices.start_ns[0], 100);
    ck_assert_int_eq(model->info.duration_ns, 510);
    ck_assert_uint_eq(lac_model_track_of(model, 3), a);
    ck_assert_uint_eq(lac_model_track_of(model, 4), b);
    ck_assert_uint_eq(lac_model_lower_bound(model, a, 100), 0);
    ck_assert_uint_eq(lac_model_lower_bound(model, a, 101), 3);
    ck_assert_uint_eq(lac_model_lower_bound(model, b, 9999), 6);
    lac_model_destroy(model);
}
END_TEST

/** With no helper, and with two. */
START_TEST(every_column_goes_where_its_slice_goes)
{
    enum { SLICES = 4000, TRACKS = 5, NAMES = 7 };
    struct lac_builder *builder = new_builder();
    struct lac_crew *crew = NULL;
    struct lac_model *model;
    uint32_t tracks[TRACKS];
    uint32_t names[NAMES];
    struct lac_slice_in *put = calloc(SLICES, sizeof(*put));
    bool *is_there = calloc(SLICES, sizeof(*is_there));
    unsigned random = 1;

    ck_assert(lac_crew_create(2U * (unsigned)_i, NULL, NULL, &crew));
    lac_builder_use_crew(builder, crew);
    for (int t = 0; t < TRACKS; t++) {
        tracks[t] = track(builder, LAC_TRACK_THREAD, (const char *[]){"1", "2", "3", "4", "5"}[t]);
    }
    for (int n = 0; n < NAMES; n++) {
        names[n] = intern(builder, (const char *[]){"a", "b", "c", "d", "e", "f", "g"}[n]);
    }
    for (uint32_t i = 0; i < SLICES; i++) {
        random = random * 1103515245U + 12345U;
        put[i] = (struct lac_slice_in){.start_ns = (random >> 8) % 1000,
                                       .dur_ns = (random >> 4) % 50,
                                       .track = tracks[random / 7 % TRACKS],
                                       .name = names[i % NAMES],
                                       .corr = i + 1,
                                       .detail = LAC_NONE,
                                       .kind = i % 3 ? LAC_SLICE_OP : LAC_SLICE_RANGE};
        ck_assert_int_eq(lac_builder_arg_numbers(builder, &put[i].start_ns, 1, &put[i].arg_num),
                         LAC_OK);
        ck_assert_int_eq(lac_builder_slice(builder, &put[i]), LAC_OK);
    }
    model = finish(builder, 0);
    ck_assert_uint_eq(model->slices.count, SLICES);
    for (uint64_t s = 0; s < SLICES; s++) {
        const uint32_t i = model->slices.corr[s] - 1;

        ck_assert_uint_lt(i, SLICES);
        ck_assert(!is_there[i]);
        is_there[i] = true;
        ck_assert_int_eq(model->slices.start_ns[s], put[i].start_ns - model->info.t0_ns);
        ck_assert_int_eq(model->slices.dur_ns[s], put[i].dur_ns);
        ck_assert_uint_eq(model->slices.name[s], put[i].name);
        ck_assert_uint_eq(model->slices.arg_num[s], put[i].arg_num);
        ck_assert_uint_eq(model->slices.kind[s], put[i].kind);
        ck_assert_uint_eq(model->slices.link[s], LAC_NONE);
        ck_assert_uint_eq(lac_model_track_of(model, s), put[i].track);
    }
    lac_model_destroy(model);
    lac_crew_destroy(crew);
    free(is_there);
    free(put);
}
END_TEST

START_TEST(processes_tracks_devices_and_configs_are_found_again)
{
    struct lac_builder *builder = new_builder();
    struct lac_kernel_config config = {.grid = {1, 2, 3}, .occupancy_pct = 50.0F};
    uint32_t row = 9;
    uint32_t again = 9;
    uint32_t t = track(builder, LAC_TRACK_THREAD, "5");

    ck_assert_uint_eq(track(builder, LAC_TRACK_THREAD, "5"), t);
    ck_assert_uint_ne(track(builder, LAC_TRACK_MARKS, "5"), t);
    ck_assert_int_eq(lac_builder_process(builder, intern(builder, "2"), 2, &row), LAC_OK);
    ck_assert_int_eq(
        lac_builder_track(builder, LAC_TRACK_THREAD, row, intern(builder, "5"), 5, &again), LAC_OK);
    ck_assert_uint_ne(again, t); /* the same thread id in another process */
    ck_assert_int_eq(lac_builder_kernel_config(builder, &config, &row), LAC_OK);
    config.grid[0] = 9;
    ck_assert_int_eq(lac_builder_kernel_config(builder, &config, &again), LAC_OK);
    ck_assert_uint_ne(row, again);
    config.grid[0] = 1;
    ck_assert_int_eq(lac_builder_kernel_config(builder, &config, &again), LAC_OK);
    ck_assert_uint_eq(row, again);
    for (int64_t id = 3; id >= -1; id--) {
        ck_assert_ptr_nonnull(lac_builder_device(builder, id));
        lac_builder_device(builder, id)->sm_count = (int32_t)id + 100;
    }
    struct lac_model *model = finish(builder, 0);
    ck_assert_uint_eq(model->process_count, 2);
    ck_assert_uint_eq(model->track_count, 3);
    ck_assert_uint_eq(model->device_count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_int_eq(model->devices[i].id, (int64_t)i - 1);
        ck_assert_int_eq(model->devices[i].sm_count, (int32_t)i + 99);
        ck_assert_uint_eq(lac_model_device_index(model, (int64_t)i - 1), i);
    }
    ck_assert_uint_eq(lac_model_device_index(model, 77), LAC_NONE);
    lac_model_destroy(model);
}
END_TEST

START_TEST(kernels_link_to_their_launch_and_the_launch_to_its_first_kernel)
{
    /* dense ids, then ids so far apart that no table fits them */
    for (uint32_t scale = 1; scale <= 100000000; scale *= 100000000) {
        struct lac_builder *builder = new_builder();
        uint32_t cpu = track(builder, LAC_TRACK_THREAD, "1");
        uint32_t gpu = track(builder, LAC_TRACK_STREAM, "7");
        struct lac_model *model;

        uint32_t other = track(builder, LAC_TRACK_STREAM, "8");
        add(builder, gpu, LAC_SLICE_KERNEL, "graph_b", 300, 10, 2 * scale);
        add(builder, other, LAC_SLICE_KERNEL, "graph_a", 200, 10, 2 * scale);
        add(builder, gpu, LAC_SLICE_KERNEL, "k", 100, 10, 1 * scale);
        add(builder, gpu, LAC_SLICE_KERNEL, "orphan", 400, 10, 9 * scale);
        add(builder, gpu, LAC_SLICE_KERNEL, "without", 500, 10, 0);
        add(builder, cpu, LAC_SLICE_API, "cudaLaunchKernel", 50, 5, 1 * scale);
        add(builder, cpu, LAC_SLICE_API, "cudaGraphLaunch", 60, 5, 2 * scale);
        add(builder, cpu, LAC_SLICE_API, "cudaStreamSynchronize", 70, 5, 3 * scale);
        add(builder, cpu, LAC_SLICE_OP, "op", 40, 50, 1 * scale);
        model = finish(builder, 0);
        const uint32_t *link = model->slices.link;
        ck_assert_uint_eq(link[find(model, "k")], find(model, "cudaLaunchKernel"));
        ck_assert_uint_eq(link[find(model, "cudaLaunchKernel")], find(model, "k"));
        ck_assert_uint_eq(link[find(model, "graph_a")], find(model, "cudaGraphLaunch"));
        ck_assert_uint_eq(link[find(model, "graph_b")], find(model, "cudaGraphLaunch"));
        ck_assert_uint_eq(link[find(model, "cudaGraphLaunch")], find(model, "graph_a"));
        ck_assert_uint_eq(link[find(model, "cudaStreamSynchronize")], LAC_NONE);
        ck_assert_uint_eq(link[find(model, "orphan")], LAC_NONE);
        ck_assert_uint_eq(link[find(model, "without")], LAC_NONE);
        ck_assert_uint_eq(link[find(model, "op")], LAC_NONE);
        lac_model_destroy(model);
    }
}
END_TEST

START_TEST(of_several_calls_with_one_id_the_one_that_submits_is_bound)
{
    struct lac_builder *builder = new_builder();
    uint32_t cpu = track(builder, LAC_TRACK_THREAD, "1");
    uint32_t gpu = track(builder, LAC_TRACK_STREAM, "7");
    struct lac_model *model;

    add(builder, cpu, LAC_SLICE_API, "cudaMemcpyAsync", 10, 50, 4);
    add(builder, cpu, LAC_SLICE_API, "cudaEventQuery", 20, 5, 4);
    add(builder, gpu, LAC_SLICE_COPY, "copy", 100, 10, 4);
    /* two processes that both count from 1: the later launch has the later kernel */
    add(builder, cpu, LAC_SLICE_API, "cudaLaunchKernel", 200, 5, 5);
    add(builder, cpu, LAC_SLICE_API, "cuLaunchKernel", 300, 5, 5);
    add(builder, gpu, LAC_SLICE_KERNEL, "early", 250, 10, 5);
    add(builder, gpu, LAC_SLICE_KERNEL, "late", 350, 10, 5);
    add(builder, gpu, LAC_SLICE_KERNEL, "before_all", 150, 10, 5);
    model = finish(builder, 0);
    const uint32_t *link = model->slices.link;
    ck_assert_uint_eq(link[find(model, "copy")], find(model, "cudaMemcpyAsync"));
    ck_assert_uint_eq(link[find(model, "cudaEventQuery")], LAC_NONE);
    ck_assert_uint_eq(link[find(model, "early")], find(model, "cudaLaunchKernel"));
    ck_assert_uint_eq(link[find(model, "before_all")], find(model, "cudaLaunchKernel"));
    ck_assert_uint_eq(link[find(model, "late")], find(model, "cuLaunchKernel"));
    ck_assert_uint_eq(link[find(model, "cudaLaunchKernel")], find(model, "before_all"));
    lac_model_destroy(model);
}
END_TEST

START_TEST(samples_are_sorted_per_counter_and_counters_come_last)
{
    struct lac_builder *builder = new_builder();
    uint32_t c1 = track(builder, LAC_TRACK_COUNTER, "mem");
    uint32_t cpu = track(builder, LAC_TRACK_THREAD, "1");
    uint32_t c2 = track(builder, LAC_TRACK_COUNTER, "util");
    struct lac_model *model;

    ck_assert_int_eq(lac_builder_sample(builder, c2, 1030, 3.0), LAC_OK);
    ck_assert_int_eq(lac_builder_sample(builder, c1, 1020, 2.0), LAC_OK);
    ck_assert_int_eq(lac_builder_sample(builder, c1, 1010, 1.0), LAC_OK);
    add(builder, cpu, LAC_SLICE_OP, "op", 1000, 5, 0);
    model = finish(builder, 0);
    ck_assert_uint_eq(model->track_count, 3);
    ck_assert_int_eq(model->tracks[0].kind, LAC_TRACK_THREAD);
    ck_assert_uint_eq(model->tracks[1].count, 2);
    ck_assert_uint_eq(model->tracks[2].first, 2);
    ck_assert_int_eq(model->sample_ts_ns[0], 10);
    ck_assert_double_eq(model->sample_value[0], 1.0);
    ck_assert_double_eq(model->sample_value[1], 2.0);
    ck_assert_double_eq(model->sample_value[2], 3.0);
    ck_assert_int_eq(model->info.duration_ns, 30);
    ck_assert_uint_eq(lac_model_track_of(model, 0), 0);
    lac_model_destroy(model);
}
END_TEST

START_TEST(what_is_too_far_from_t0_is_dropped_and_counted)
{
    struct lac_builder *builder = new_builder();
    uint32_t cpu = track(builder, LAC_TRACK_THREAD, "1");
    uint32_t counter = track(builder, LAC_TRACK_COUNTER, "mem");
    struct lac_model *model;

    add(builder, cpu, LAC_SLICE_OP, "kept", INT64_MIN + 10, LAC_TIME_MAX_NS, 0);
    add(builder, cpu, LAC_SLICE_OP, "too_long", INT64_MIN + 11, LAC_TIME_MAX_NS, 0);
    add(builder, cpu, LAC_SLICE_OP, "far", INT64_MAX, INT64_MAX, 0);
    ck_assert_int_eq(lac_builder_sample(builder, counter, 0, 1.0), LAC_OK);
    model = finish(builder, -100);
    ck_assert_uint_eq(model->slices.count, 1);
    ck_assert_str_eq(lac_model_str(model, model->slices.name[0]), "kept");
    ck_assert_uint_eq(model->sample_count, 0);
    ck_assert_uint_eq(model->info.dropped_count, 3);
    ck_assert_uint_eq(model->report_count, 1);
    ck_assert_int_eq(model->info.duration_ns, LAC_TIME_MAX_NS);
    ck_assert_int_eq(model->info.t0_ns, INT64_MIN);
    lac_model_destroy(model);
}
END_TEST

START_TEST(a_time_that_makes_no_slice_still_decides_t0)
{
    struct lac_builder *builder = new_builder();
    uint32_t cpu = track(builder, LAC_TRACK_THREAD, "1");
    struct lac_model *model;

    add(builder, cpu, LAC_SLICE_OP, "op", 500, 10, 0);
    lac_builder_saw_time(builder, 400);
    lac_builder_saw_time(builder, 600);
    model = finish(builder, 0);
    ck_assert_int_eq(model->info.t0_ns, 400);
    ck_assert_int_eq(model->slices.start_ns[0], 100);
    ck_assert_int_eq(model->info.duration_ns, 200);
    lac_model_destroy(model);
}
END_TEST

START_TEST(arrows_join_the_innermost_slices)
{
    struct lac_builder *builder = new_builder();
    uint32_t a = track(builder, LAC_TRACK_THREAD, "1");
    uint32_t b = track(builder, LAC_TRACK_THREAD, "2");
    uint32_t name = intern(builder, "fwdbwd");
    struct lac_model *model;

    add(builder, a, LAC_SLICE_OP, "outer", 0, 100, 0);
    add(builder, a, LAC_SLICE_OP, "inner", 10, 20, 0);
    add(builder, b, LAC_SLICE_OP, "middle", 40, 10, 0);
    add(builder, b, LAC_SLICE_OP, "next", 60, 10, 0);
    ck_assert_int_eq(lac_builder_flow(builder, 'f', 1, name, b, 55, false), LAC_OK);
    ck_assert_int_eq(lac_builder_flow(builder, 't', 1, name, b, 40, true),
                     LAC_OK); /* its first ns */
    ck_assert_int_eq(lac_builder_flow(builder, 's', 1, name, a, 15, true), LAC_OK);
    ck_assert_int_eq(lac_builder_flow(builder, 's', 2, name, a, 35, true), LAC_OK);
    ck_assert_int_eq(lac_builder_flow(builder, 'f', 2, name, b, 65, true), LAC_OK);
    ck_assert_int_eq(lac_builder_flow(builder, 's', 3, name, b, 55, true),
                     LAC_OK); /* in no slice */
    ck_assert_int_eq(lac_builder_flow(builder, 'f', 3, name, b, 65, true), LAC_OK);
    model = finish(builder, 0);
    ck_assert_uint_eq(model->flow_count, 3);
    ck_assert_uint_eq(model->flows[0].src, find(model, "outer"));
    ck_assert_uint_eq(model->flows[0].dst, find(model, "next"));
    ck_assert_uint_eq(model->flows[1].src, find(model, "inner"));
    ck_assert_uint_eq(model->flows[1].dst, find(model, "middle"));
    ck_assert_uint_eq(model->flows[2].src, find(model, "middle"));
    ck_assert_uint_eq(model->flows[2].dst, find(model, "next"));
    ck_assert_uint_eq(model->report_count, 1);
    ck_assert_uint_eq(model->report[0].count, 1);
    ck_assert_uint_eq(model->info.dropped_count, 0);
    lac_model_destroy(model);
}
END_TEST

START_TEST(derived_tracks_are_appended_behind_all_recorded_slices)
{
    struct lac_builder *builder = new_builder();
    uint32_t counter = track(builder, LAC_TRACK_COUNTER, "mem");
    uint32_t cpu = track(builder, LAC_TRACK_THREAD, "1");
    uint32_t name = intern(builder, "step 1");
    struct lac_derived_slice steps[] = {{0, 10, name, LAC_NONE, LAC_SLICE_STEP},
                                        {5, 10, name, 0, LAC_SLICE_STEP},
                                        {20, 10, name, LAC_NONE, LAC_SLICE_STEP}};
    struct lac_track derived = {.kind = LAC_TRACK_STEPS, .name = name, .device = -1};
    struct lac_model *model;

    ck_assert_int_eq(lac_builder_sample(builder, counter, 3, 1.0), LAC_OK);
    add(builder, cpu, LAC_SLICE_OP, "op", 0, 5, 0);
    model = finish(builder, 0);
    ck_assert_int_eq(lac_model_add_track(model, &derived, steps, 3), LAC_OK);
    ck_assert(lac_model_is_valid(model));
    ck_assert_uint_eq(model->track_count, 3);
    ck_assert_uint_eq(model->recorded_track_count, 2);
    ck_assert_uint_eq(model->slices.count, 4);
    ck_assert_uint_eq(model->tracks[2].lane_count, 2);
    ck_assert_uint_eq(lac_model_track_of(model, 0), 0);
    for (uint64_t i = 1; i < 4; i++) {
        ck_assert_uint_eq(lac_model_track_of(model, i), 2);
    }
    steps[2].start_ns = 4;
    ck_assert_int_eq(lac_model_add_track(model, &derived, steps, 3), LAC_ERR_MISUSE);
    ck_assert_int_eq(lac_model_add_track(model, &derived, NULL, 0), LAC_OK);
    ck_assert(lac_model_is_valid(model));
    lac_model_destroy(model);
}
END_TEST

START_TEST(the_report_sums_equal_codes_and_what_goes_beyond_its_lines)
{
    struct lac_model *model = finish(new_builder(), 0);

    for (int i = 0; i < 100; i++) {
        char code[40];

        (void)snprintf(code, sizeof(code), "code_%d", i);
        lac_model_report(model, LAC_REPORT_REPAIRED, code, 2, 50, "text");
        lac_model_report(model, LAC_REPORT_REPAIRED, code, 1, 40, "text");
    }
    ck_assert_uint_eq(model->report_count, LAC_REPORT_LINES_MAX);
    ck_assert_uint_eq(model->info.repaired_count, 300);
    ck_assert_uint_eq(model->report[0].count, 3);
    ck_assert_uint_eq(model->report[0].first_offset_bytes, 40);
    ck_assert_uint_eq(model->report[LAC_REPORT_LINES_MAX - 1].count, 3u * (100 - 63));
    lac_model_destroy(model);
}
END_TEST

START_TEST(argument_numbers_and_details_are_kept)
{
    struct lac_builder *builder = new_builder();
    uint32_t cpu = track(builder, LAC_TRACK_STREAM, "1");
    struct lac_copy copy = {.bytes = 4096, .copy_kind = LAC_COPY_HTOD, .src = LAC_MEMORY_PAGEABLE};
    struct lac_alloc alloc = {.bytes = -5, .total_allocated = 1, .device = 0};
    struct lac_loader_info info = {.batch = 3, .cpu_ns = -1, .worker = 2};
    int64_t numbers[] = {537, -1};
    struct lac_slice_in slice = {.track = cpu, .detail = LAC_NONE, .kind = LAC_SLICE_COPY};
    uint32_t row = 0;
    struct lac_model *model;

    ck_assert_int_eq(lac_builder_arg_numbers(builder, numbers, 1, &row), LAC_OK);
    ck_assert_int_eq(lac_builder_arg_numbers(builder, numbers, 2, &slice.arg_num), LAC_OK);
    ck_assert_uint_eq(slice.arg_num, 1);
    ck_assert_int_eq(lac_builder_copy(builder, &copy, &slice.detail), LAC_OK);
    ck_assert_int_eq(lac_builder_copy(builder, &copy, &row), LAC_OK);
    ck_assert_uint_eq(row, slice.detail);
    ck_assert_int_eq(lac_builder_alloc(builder, &alloc, &row), LAC_OK);
    ck_assert_int_eq(lac_builder_loader_info(builder, &info, &row), LAC_OK);
    ck_assert_int_eq(lac_builder_slice(builder, &slice), LAC_OK);
    model = finish(builder, 0);
    ck_assert_int_eq(model->arg_numbers[model->slices.arg_num[0] + 1], -1);
    ck_assert_int_eq(model->copies[model->slices.detail[0]].bytes, 4096);
    ck_assert_int_eq(model->allocs[0].bytes, -5);
    ck_assert_int_eq(model->loader_infos[0].batch, 3);
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("builder");
    TCase *tests = tcase_create("builder");

    tcase_add_test(tests, an_empty_builder_makes_an_empty_valid_model);
    tcase_add_test(tests, slices_are_sorted_by_track_start_longest_first_then_input);
    tcase_add_loop_test(tests, every_column_goes_where_its_slice_goes, 0, 2);
    tcase_add_test(tests, processes_tracks_devices_and_configs_are_found_again);
    tcase_add_test(tests, kernels_link_to_their_launch_and_the_launch_to_its_first_kernel);
    tcase_add_test(tests, of_several_calls_with_one_id_the_one_that_submits_is_bound);
    tcase_add_test(tests, samples_are_sorted_per_counter_and_counters_come_last);
    tcase_add_test(tests, what_is_too_far_from_t0_is_dropped_and_counted);
    tcase_add_test(tests, a_time_that_makes_no_slice_still_decides_t0);
    tcase_add_test(tests, arrows_join_the_innermost_slices);
    tcase_add_test(tests, derived_tracks_are_appended_behind_all_recorded_slices);
    tcase_add_test(tests, the_report_sums_equal_codes_and_what_goes_beyond_its_lines);
    tcase_add_test(tests, argument_numbers_and_details_are_kept);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
