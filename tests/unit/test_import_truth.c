/*
 * Every real trace that has a truth file: what the importer made of it is counted here again, in
 * the plainest way, and must equal the truth, exactly.
 */

#include "analysis/import/import.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/real_traces.h"

#include <check.h>
#include <dirent.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct kept {
    struct lac_model *models[16];
    size_t count;
};

static enum lac_status keep(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct kept *kept = context;
    (void)reterr;
    ck_assert_uint_lt(kept->count, 16);
    kept->models[kept->count++] = model;
    return LAC_OK;
}

static void forget(struct kept *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        lac_model_destroy(kept->models[i]);
}

static void import_file(const char *path, struct kept *kept)
{
    struct lac_import_options options = {0};
    struct lac_error error = {0};
    lac_import_limits_default(&options.limits);
    enum lac_status status = lac_import_file(path, &options, keep, kept, &error);
    ck_assert_msg(status == LAC_OK, "%s: %s", path, error.message);
}

/* --- reading the truth -------------------------------------------------------------------------*/

static json_object *member(json_object *object, const char *key)
{
    json_object *value = NULL;
    ck_assert_msg(json_object_object_get_ex(object, key, &value), "truth lacks %s", key);
    return value;
}

static uint64_t truth_count(json_object *object, const char *key)
{
    return (uint64_t)json_object_get_int64(member(object, key));
}

/* Microseconds with three decimals, to nanoseconds. */
static int64_t truth_ns(json_object *object, const char *key)
{
    return llround(json_object_get_double(member(object, key)) * 1000.0);
}

/* --- the model, counted plainly ----------------------------------------------------------------*/

struct interval {
    int64_t start_ns, end_ns;
};

static int by_start(const void *left, const void *right)
{
    const struct interval *a = left, *b = right;
    return a->start_ns != b->start_ns ? (a->start_ns < b->start_ns ? -1 : 1)
                                      : (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

static bool is_gpu_kind(uint8_t kind)
{
    return kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET;
}

struct device_figures {
    uint64_t count[3]; /* kernels, copies, memsets */
    int64_t time_ns[3];
    int64_t span_ns, busy_ns;
    uint64_t gap_count;
    int64_t gaps_ns, longest_ns;
};

static void sum_up(struct interval *intervals, size_t count, struct device_figures *figures)
{
    qsort(intervals, count, sizeof(*intervals), by_start);
    int64_t end_ns = intervals[0].start_ns;
    for (size_t i = 0; i < count; i++) {
        int64_t hole_ns = intervals[i].start_ns - end_ns;
        if (hole_ns >= 10000) {
            figures->gap_count++;
            figures->gaps_ns += hole_ns;
            figures->longest_ns = hole_ns > figures->longest_ns ? hole_ns : figures->longest_ns;
        }
        int64_t from_ns = hole_ns > 0 ? intervals[i].start_ns : end_ns;
        if (intervals[i].end_ns > from_ns) {
            figures->busy_ns += intervals[i].end_ns - from_ns;
            end_ns = intervals[i].end_ns;
        } else if (hole_ns > 0) {
            end_ns = intervals[i].start_ns;
        }
    }
    figures->span_ns = end_ns - intervals[0].start_ns;
}

static void check_device(const struct lac_model *model, const char *name, json_object *truth)
{
    int64_t device = strtoll(name, NULL, 10);
    struct device_figures figures = {0};
    struct interval *intervals = calloc(model->slices.count + 1, sizeof(*intervals));
    size_t count = 0, stream_count = 0;
    json_object *streams = member(truth, "streams");
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind != LAC_TRACK_STREAM || track->device != device)
            continue;
        char stream[32];
        snprintf(stream, sizeof(stream), "%lld", (long long)track->tid);
        ck_assert_uint_eq(track->count, truth_count(streams, stream));
        stream_count++;
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            uint8_t kind = model->slices.kind[i];
            ck_assert(is_gpu_kind(kind));
            size_t which = (size_t)(kind - LAC_SLICE_KERNEL);
            figures.count[which]++;
            figures.time_ns[which] += model->slices.dur_ns[i];
            intervals[count++] = (struct interval){
                model->slices.start_ns[i], model->slices.start_ns[i] + model->slices.dur_ns[i]};
        }
    }
    ck_assert_uint_eq(count, truth_count(truth, "gpu_events"));
    ck_assert_uint_eq(stream_count, (uint64_t)json_object_object_length(streams));
    static const char *const kinds[] = {"kernel", "gpu_memcpy", "gpu_memset"};
    for (size_t i = 0; i < 3; i++) {
        json_object *counts = member(truth, "events_by_cat"),
                    *times = member(truth, "time_by_cat_us");
        bool there = json_object_object_get_ex(counts, kinds[i], NULL);
        ck_assert_uint_eq(figures.count[i], there ? truth_count(counts, kinds[i]) : 0);
        ck_assert_int_eq(figures.time_ns[i], there ? truth_ns(times, kinds[i]) : 0);
    }
    sum_up(intervals, count, &figures);
    free(intervals);
    ck_assert_int_eq(figures.span_ns, truth_ns(truth, "span_us"));
    ck_assert_int_eq(figures.busy_ns, truth_ns(truth, "busy_us"));
    ck_assert_uint_eq(figures.gap_count, truth_count(truth, "idle_gaps_ge_10us"));
    ck_assert_int_eq(figures.gaps_ns, truth_ns(truth, "idle_gaps_ge_10us_total_us"));
    ck_assert_int_eq(figures.longest_ns, truth_ns(truth, "longest_gap_us"));
}

static void check_devices(const struct lac_model *model, json_object *truth)
{
    json_object *devices = member(truth, "devices");
    uint64_t operations = 0, expected = 0;
    json_object_object_foreach(devices, name, device)
    {
        check_device(model, name, device);
        expected += truth_count(device, "gpu_events");
    }
    for (uint64_t i = 0; i < model->slices.count; i++)
        operations += is_gpu_kind(model->slices.kind[i]);
    ck_assert_uint_eq(operations, expected);
}

/* Count and time of the kernels of one name. */
static void check_kernel_name(const struct lac_model *model, json_object *row)
{
    const char *name = json_object_get_string(member(row, "name"));
    uint32_t id = lac_strings_find(&model->strings, name, strlen(name));
    uint64_t count = 0;
    int64_t total_ns = 0;
    for (uint64_t i = 0; i < model->slices.count; i++)
        if (model->slices.kind[i] == LAC_SLICE_KERNEL && model->slices.name[i] == id) {
            count++;
            total_ns += model->slices.dur_ns[i];
        }
    ck_assert_msg(count == truth_count(row, "count") && total_ns == truth_ns(row, "total_us"),
                  "kernel %.80s: %llu, %lld ns", name, (unsigned long long)count,
                  (long long)total_ns);
}

static void check_kernels(const struct lac_model *model, json_object *truth)
{
    uint64_t count = 0;
    int64_t total_ns = 0;
    for (uint64_t i = 0; i < model->slices.count; i++)
        if (model->slices.kind[i] == LAC_SLICE_KERNEL) {
            count++;
            total_ns += model->slices.dur_ns[i];
        }
    ck_assert_uint_eq(count, truth_count(truth, "kernels"));
    ck_assert_int_eq(total_ns, truth_ns(truth, "kernel_time_us"));
    json_object *top = member(truth, "top10_kernels");
    for (size_t i = 0; i < json_object_array_length(top); i++)
        check_kernel_name(model, json_object_array_get_idx(top, i));
}

static void check_steps(const struct lac_model *model, json_object *truth)
{
    uint64_t steps = 0, loads = 0;
    int64_t steps_ns = 0, loads_ns = 0;
    for (uint64_t i = 0; i < model->slices.count; i++) {
        const char *name = lac_model_str(model, model->slices.name[i]);
        uint8_t kind = model->slices.kind[i];
        if (is_gpu_kind(kind) || kind == LAC_SLICE_GPU_RANGE)
            continue;
        if (strncmp(name, "ProfilerStep", 12) == 0) {
            ck_assert_int_eq(kind, LAC_SLICE_RANGE);
            steps++;
            steps_ns += model->slices.dur_ns[i];
        } else if (strncmp(name, "enumerate(DataLoader)", 21) == 0 && kind != LAC_SLICE_PYTHON) {
            loads++;
            loads_ns += model->slices.dur_ns[i];
        }
    }
    json_object *step = member(truth, "profiler_steps"), *load = member(truth, "dataloader");
    ck_assert_uint_eq(steps, truth_count(step, "count"));
    ck_assert_int_eq(steps_ns, truth_ns(step, "sum_us"));
    ck_assert_uint_eq(loads, truth_count(load, "count"));
    ck_assert_int_eq(loads_ns, truth_ns(load, "sum_us"));
}

static void check_copies(const struct lac_model *model, json_object *truth)
{
    json_object *names = member(truth, "memcpy_names");
    json_object_object_foreach(names, name, expected)
    {
        uint32_t id = lac_strings_find(&model->strings, name, strlen(name));
        int64_t count = 0;
        for (uint64_t i = 0; i < model->slices.count; i++) {
            if (model->slices.kind[i] != LAC_SLICE_COPY || model->slices.name[i] != id)
                continue;
            count++;
            const struct lac_copy *copy = &model->copies[model->slices.detail[i]];
            if (strstr(name, "HtoD") != NULL)
                ck_assert_int_eq(copy->copy_kind, LAC_COPY_HTOD);
            if (strstr(name, "(Pageable") != NULL)
                ck_assert_int_eq(copy->src, LAC_MEMORY_PAGEABLE);
            if (strstr(name, "-> Pinned") != NULL)
                ck_assert_int_eq(copy->dst, LAC_MEMORY_PINNED);
        }
        ck_assert_int_eq(count, json_object_get_int64(expected));
    }
}

static void check_model(const struct lac_model *model, json_object *truth)
{
    const struct lac_trace_info *info = &model->info;
    ck_assert(lac_model_is_valid(model));
    ck_assert_uint_eq(info->event_count, truth_count(truth, "events_all_phases"));
    ck_assert_uint_eq(info->dropped_count, 0);
    json_object *phases = member(truth, "events_by_phase");
    json_object_object_foreach(phases, phase, count) ck_assert_uint_eq(
        info->phase_count[phase[0] & 0x7f], (uint64_t)json_object_get_int64(count));
    uint64_t pairs = info->phase_count['B'] < info->phase_count['E'] ? info->phase_count['B']
                                                                     : info->phase_count['E'];
    ck_assert_uint_le(info->slice_count, truth_count(truth, "complete_events") + pairs);
    ck_assert_uint_ge(info->slice_count, truth_count(truth, "complete_events"));
    ck_assert_uint_eq(info->expanded_bytes, truth_count(truth, "uncompressed_bytes"));
    check_devices(model, truth);
    check_kernels(model, truth);
    check_steps(model, truth);
    check_copies(model, truth);
}

/* The file of a truth file's name: its first "__" is the folder, the rest may hold more. */
static bool find_trace(const char *truth_name, char *path, size_t capacity, char *part,
                       size_t part_capacity)
{
    static const char *const endings[] = {".json.gz", ".json", ".tar.gz", ".json.zst"};
    const char *split = strstr(truth_name, "__");
    const char *dot = strrchr(truth_name, '.');
    if (split == NULL || dot == NULL)
        return false;
    part[0] = 0;
    for (size_t i = 0; i < LAC_COUNT_OF(endings); i++) {
        snprintf(path, capacity, "%s/%.*s/%.*s%s", real_traces(), (int)(split - truth_name),
                 truth_name, (int)(dot - split - 2), split + 2, endings[i]);
        if (access(path, R_OK) == 0)
            return true;
    }
    /* a member of an archive: FOLDER__ARCHIVE__MEMBER */
    const char *second = strstr(split + 2, "__");
    if (second == NULL)
        return false;
    snprintf(path, capacity, "%s/%.*s/%.*s.tar.gz", real_traces(), (int)(split - truth_name),
             truth_name, (int)(second - split - 2), split + 2);
    snprintf(part, part_capacity, "%.*s", (int)(dot - second - 2), second + 2);
    return access(path, R_OK) == 0;
}

static void check_truth(const char *truth_name)
{
    char path[1024], part[512], truth_path[1024];
    snprintf(truth_path, sizeof(truth_path), "%s/truth/%s", real_traces(), truth_name);
    json_object *truth = json_object_from_file(truth_path);
    ck_assert_msg(truth != NULL, "%s", truth_path);
    if (strcmp(json_object_get_string(member(truth, "kind")), "chrome") != 0) {
        json_object_put(truth);
        return;
    }
    ck_assert_msg(find_trace(truth_name, path, sizeof(path), part, sizeof(part)), "no trace for %s",
                  truth_name);
    struct kept kept = {0};
    import_file(path, &kept);
    bool found = false;
    for (size_t i = 0; i < kept.count; i++) {
        const char *name = lac_model_str(kept.models[i], kept.models[i]->info.name);
        size_t length = strlen(name);
        if (part[0] && strncmp(part, name, length) != 0)
            continue;
        check_model(kept.models[i], truth);
        found = true;
    }
    ck_assert_msg(found, "%s has no member %s", path, part);
    forget(&kept);
    json_object_put(truth);
}

static int is_truth(const struct dirent *entry)
{
    return strstr(entry->d_name, ".json") != NULL;
}

START_TEST(every_real_trace_gives_the_figures_of_its_truth)
{
    char folder[256];
    struct dirent **entries = NULL;
    snprintf(folder, sizeof(folder), "%s/truth", real_traces());
    int count = scandir(folder, &entries, is_truth, alphasort);
    if (count < 0) {
        printf("skip: no real traces in %s (make traces)\n", real_traces());
        return;
    }
    ck_assert_int_gt(count, 20);
    for (int i = 0; i < count; i++) {
        check_truth(entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_truth");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, every_real_trace_gives_the_figures_of_its_truth);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
