/* Nsight Systems exports of others against their truth, and damaged ones. */

#include "tests/support/check_main.h"
#include "tests/support/nsys_file.h"
#include "tests/support/real_traces.h"

#include <check.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PID(p)    "(281474976710656+" #p "*16777216)"
#define TID(p, t) "(281474976710656+" #p "*16777216+" #t ")"

/* ---- damaged files ---- */

static uint32_t random_state = 1;

static uint32_t upto(uint32_t below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)random_state * below) >> 32);
}

/* Whatever is damaged: an error with a sentence, or a model that holds together. */
static void survive(const char *path, const char *bytes, size_t size)
{
    struct lac_import_options options = nsys_file_options();
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    enum lac_status status = lac_import_file(path, &options, nsys_file_keep, &model, &error);
    if (status == LAC_OK) {
        ck_assert(lac_model_is_valid(model));
        lac_model_destroy(model);
    } else {
        ck_assert_ptr_null(model);
        ck_assert_uint_gt(strlen(error.message), 5);
    }
}

static void damage(const char *bytes, size_t size, int rounds)
{
    char path[64];
    char *copy = malloc(size);
    ck_assert_ptr_nonnull(copy);
    (void)snprintf(path, sizeof(path), "/tmp/lac_damaged_%d.sqlite", (int)getpid());
    for (int round = 0; round < rounds; round++) {
        memcpy(copy, bytes, size);
        size_t kept = size;
        uint32_t flips = 1 + upto(30);
        for (uint32_t i = 0; i < flips; i++) {
            /* half of them where it hurts: the first page and the headers of pages */
            size_t at = upto(2) == 0 ? upto((uint32_t)size)
                                     : upto((uint32_t)(size / 4096)) * 4096 + upto(100);
            copy[at < size ? at : size - 1] = (char)upto(256);
        }
        if (upto(5) == 0) {
            kept = 100 + upto((uint32_t)size - 100);
        }
        memcpy(copy, "SQLite format 3", 16);
        survive(path, copy, kept);
    }
    ck_assert_int_eq(unlink(path), 0);
    free(copy);
}

START_TEST(a_damaged_file_harms_nobody)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_tables(&m);
    nsys_file_sql(
        &m, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<800) INSERT INTO "
            "CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,streamId,correlationId,globalPid,"
            "demangledName,graphNodeId) SELECT x*100, x*100+50, x%2, 7, x, " PID(9) ", 1+x%7, x "
                                                                                    "FROM n");
    nsys_file_sql(
        &m, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<800) INSERT INTO "
            "CUPTI_ACTIVITY_KIND_RUNTIME SELECT x*100-50, x*100-20, 0, " TID(9, 9) ", x, 3, 0 "
                                                                                   "FROM n");
    nsys_file_sql(
        &m, "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
            "globalTid INTEGER, textId INTEGER);"
            "INSERT INTO NVTX_EVENTS SELECT start, end, 59, 'aten::x, op_id = ' || start, " TID(
                9, 9) ", NULL FROM CUPTI_ACTIVITY_KIND_KERNEL");
    nsys_file_done(&m);
    size_t size = 0;
    char *bytes = nsys_file_bytes(m.path, &size);
    random_state = (uint32_t)_i + 1;
    damage(bytes, size, 40);
    free(bytes);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

/* A B-tree of a handful of pages whose parents name the same child over and over: SQLite walks it
 * and finds millions of rows. */
static size_t repeat_pages(const uint8_t *whole, size_t page_size, uint8_t *out)
{
    size_t pages = 1;
    uint32_t at = 2; /* the only table's root */
    memcpy(out, whole, page_size);
    for (;; pages++) {
        uint8_t *page = out + pages * page_size;
        memcpy(page, whole + (at - 1) * page_size, page_size);
        if (page[0] != 5) {
            break; /* a leaf */
        }
        uint32_t cells = (uint32_t)page[3] << 8 | page[4];
        uint32_t next = (uint32_t)pages + 2;
        for (uint32_t i = 0; i <= cells; i++) {
            uint8_t *child =
                i == cells ? page + 8 : page + ((uint32_t)page[12 + 2 * i] << 8 | page[13 + 2 * i]);
            at = i == 0 ? (uint32_t)child[2] << 8 | child[3] | (uint32_t)child[1] << 16 : at;
            child[0] = 0;
            child[1] = 0;
            child[2] = (uint8_t)(next >> 8);
            child[3] = (uint8_t)next;
        }
    }
    pages++;
    memset(out + 28, 0, 12); /* size in pages, free list */
    out[31] = (uint8_t)pages;
    return pages * page_size;
}

START_TEST(pages_that_name_each_other_do_not_multiply)
{
    struct nsys_file m = nsys_file_begin();
    nsys_file_sql(
        &m, "PRAGMA page_size=512; CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<60000) INSERT "
            "INTO StringIds SELECT x, 'name' FROM n");
    nsys_file_done(&m);
    size_t size = 0;
    char *whole = nsys_file_bytes(m.path, &size);
    uint8_t small[512 * 8];
    size_t small_size = repeat_pages((const uint8_t *)whole, 512, small);
    FILE *file = fopen(m.path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(small, 1, small_size, file), small_size);
    ck_assert_int_eq(fclose(file), 0);
    struct lac_error error = {0};
    ck_assert_int_eq(nsys_file_refused(m.path, &error), LAC_ERR_CORRUPT);
    ck_assert_msg(strstr(error.message, "more rows than the file can hold") != NULL, "%s",
                  error.message);
    free(whole);
    ck_assert_int_eq(unlink(m.path), 0);
}
END_TEST

/* ---- real files ---- */

static struct json_object *member(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;
    ck_assert_msg(json_object_object_get_ex(object, key, &value), "no %s", key);
    return value;
}

/* Microseconds with three decimals, exactly. */
static int64_t ns_of(struct json_object *value)
{
    return llround(json_object_get_double(value) * 1000.0);
}

struct work {
    int64_t start_ns;
    int64_t end_ns;
};

static int by_start(const void *a, const void *b)
{
    const struct work *left = a;
    const struct work *right = b;
    if (left->start_ns != right->start_ns) {
        return left->start_ns < right->start_ns ? -1 : 1;
    }
    return left->end_ns < right->end_ns ? -1 : left->end_ns > right->end_ns;
}

static bool is_work(uint8_t kind)
{
    return kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET;
}

static void check_device(const struct lac_model *model, int64_t id, struct json_object *truth)
{
    struct work *work = calloc(model->slices.count + 1, sizeof(*work));
    uint64_t count = 0;
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        for (uint64_t i = track->first; track->device == id && i < track->first + track->count;
             i++) {
            if (is_work(model->slices.kind[i])) {
                work[count++] = (struct work){model->slices.start_ns[i],
                                              model->slices.start_ns[i] + model->slices.dur_ns[i]};
            }
        }
    }
    qsort(work, count, sizeof(*work), by_start);
    int64_t end_ns = work[0].end_ns;
    int64_t busy_ns = work[0].end_ns - work[0].start_ns;
    int64_t gaps_ns = 0;
    int64_t longest_ns = 0;
    int64_t gap_count = 0;
    for (uint64_t i = 1; i < count; i++) {
        int64_t gap_ns = work[i].start_ns - end_ns;
        if (gap_ns >= 10000) {
            gap_count++;
            gaps_ns += gap_ns;
            longest_ns = gap_ns > longest_ns ? gap_ns : longest_ns;
        }
        int64_t from = gap_ns > 0 ? work[i].start_ns : end_ns;
        busy_ns += work[i].end_ns > from ? work[i].end_ns - from : 0;
        end_ns = work[i].end_ns > end_ns ? work[i].end_ns : end_ns;
    }
    ck_assert_uint_eq(count, (uint64_t)json_object_get_int64(member(truth, "gpu_events")));
    ck_assert_int_eq(end_ns - work[0].start_ns, ns_of(member(truth, "span_us")));
    ck_assert_int_eq(busy_ns, ns_of(member(truth, "busy_us")));
    ck_assert_int_eq(gap_count, json_object_get_int64(member(truth, "idle_gaps_ge_10us")));
    ck_assert_int_eq(gaps_ns, ns_of(member(truth, "idle_gaps_ge_10us_total_us")));
    ck_assert_int_eq(longest_ns, ns_of(member(truth, "longest_gap_us")));
    free(work);
}

static void check_kernels(const struct lac_model *model, struct json_object *truth)
{
    int64_t total_ns = 0;
    int64_t count = 0;
    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (model->slices.kind[i] == LAC_SLICE_KERNEL) {
            total_ns += model->slices.dur_ns[i];
            count++;
        }
    }
    ck_assert_int_eq(count, json_object_get_int64(member(truth, "kernels")));
    ck_assert_int_eq(total_ns, ns_of(member(truth, "kernel_time_us")));
    struct json_object *top = member(truth, "top10_kernels");
    for (size_t k = 0; k < json_object_array_length(top); k++) {
        struct json_object *row = json_object_array_get_idx(top, k);
        const char *name = json_object_get_string(member(row, "name"));
        total_ns = 0;
        count = 0;
        for (uint64_t i = 0; i < model->slices.count; i++) {
            if (model->slices.kind[i] == LAC_SLICE_KERNEL &&
                strcmp(lac_model_str(model, model->slices.name[i]), name) == 0) {
                total_ns += model->slices.dur_ns[i];
                count++;
            }
        }
        ck_assert_int_eq(count, json_object_get_int64(member(row, "count")));
        ck_assert_int_eq(total_ns, ns_of(member(row, "total_us")));
    }
}

static void check_copies(const struct lac_model *model, struct json_object *truth)
{
    struct json_object *rows = NULL;
    if (!json_object_object_get_ex(truth, "memcpy", &rows)) {
        return;
    }
    static const char *const MEMORY[] = {"Unknown", "Pageable", "Pinned",
                                         "Device",  "Array",    "Managed"};
    for (size_t r = 0; r < json_object_array_length(rows); r++) {
        struct json_object *row = json_object_array_get_idx(rows, r);
        const char *src = json_object_get_string(member(row, "src"));
        const char *dst = json_object_get_string(member(row, "dst"));
        const char *kind = json_object_get_string(member(row, "kind"));
        enum lac_copy_kind wanted = strcmp(kind, "Host-to-Device") == 0     ? LAC_COPY_HTOD
                                    : strcmp(kind, "Device-to-Host") == 0   ? LAC_COPY_DTOH
                                    : strcmp(kind, "Device-to-Device") == 0 ? LAC_COPY_DTOD
                                    : strcmp(kind, "Peer-to-Peer") == 0     ? LAC_COPY_PTOP
                                                                            : LAC_COPY_UNKNOWN;
        int64_t count = 0;
        int64_t bytes = 0;
        int64_t total_ns = 0;
        ck_assert_int_ne(wanted, LAC_COPY_UNKNOWN);
        for (uint64_t i = 0; i < model->slices.count; i++) {
            const struct lac_copy *copy = &model->copies[model->slices.detail[i]];
            if (model->slices.kind[i] == LAC_SLICE_COPY && copy->copy_kind == wanted &&
                strcmp(MEMORY[copy->src], src) == 0 && strcmp(MEMORY[copy->dst], dst) == 0) {
                count++;
                bytes += copy->bytes;
                total_ns += model->slices.dur_ns[i];
            }
        }
        ck_assert_int_eq(count, json_object_get_int64(member(row, "count")));
        ck_assert_int_eq(bytes, json_object_get_int64(member(row, "bytes")));
        ck_assert_int_eq(total_ns, ns_of(member(row, "total_us")));
    }
}

/* Every operation whose call is in the file is linked to it, in its own process. */
static void check_links(const struct lac_model *model)
{
    uint64_t work = 0;
    uint64_t linked = 0;
    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (!is_work(model->slices.kind[i])) {
            continue;
        }
        work++;
        uint32_t link = model->slices.link[i];
        linked += link != LAC_NONE;
        ck_assert(link == LAC_NONE || model->slices.corr[link] == model->slices.corr[i]);
        ck_assert(link == LAC_NONE || model->slices.start_ns[link] <= model->slices.start_ns[i]);
    }
    ck_assert_uint_ge(linked * 100, work * 90);
}

static const char *const REAL_NAMES[] = {"nevakrien_report1", "nsysai_mfu_2gpu_before",
                                         "nsysai_mock", "pipit_perlmutter-cloverleaf-cuda"};

START_TEST(real_exports_equal_their_truth)
{
    char name[128];
    (void)snprintf(name, sizeof(name), "truth/nsys__%s.nsys.json", REAL_NAMES[_i]);
    struct json_object *truth = json_object_from_file(real_trace(name));
    ck_assert_ptr_nonnull(truth);
    (void)snprintf(name, sizeof(name), "nsys/%s.sqlite", REAL_NAMES[_i]);
    struct lac_model *model = nsys_file_import(real_trace(name));
    check_kernels(model, truth);
    check_copies(model, truth);
    check_links(model);
    struct json_object *devices = member(truth, "devices");
    uint32_t device_count = 0;
    json_object_object_foreach(devices, id, device)
    {
        check_device(model, atoll(id), device);
        device_count++;
    }
    ck_assert_uint_eq(model->device_count, device_count);
    struct json_object *nvtx = NULL;
    if (json_object_object_get_ex(truth, "nvtx_ranges", &nvtx)) {
        int64_t ranges = 0;
        for (uint64_t i = 0; i < model->slices.count; i++) {
            ranges +=
                model->slices.kind[i] == LAC_SLICE_RANGE || model->slices.kind[i] == LAC_SLICE_OP;
        }
        ck_assert_int_eq(ranges, json_object_get_int64(member(nvtx, "count")));
    }
    ck_assert_uint_eq(model->info.dropped_count, 0);
    json_object_put(truth);
    lac_model_destroy(model);
}
END_TEST

START_TEST(damaged_real_exports_harm_nobody)
{
    char name[128];
    (void)snprintf(name, sizeof(name), "nsys/%s.sqlite", REAL_NAMES[2]);
    size_t size = 0;
    char *bytes = nsys_file_bytes(real_trace(name), &size);
    random_state = (uint32_t)_i + 100;
    damage(bytes, size, 25);
    free(bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_nsys_real");
    TCase *damaged = tcase_create("damaged");
    tcase_set_timeout(damaged, 120);
    tcase_add_loop_test(damaged, a_damaged_file_harms_nobody, 0, 4);
    tcase_add_test(damaged, pages_that_name_each_other_do_not_multiply);
    suite_add_tcase(suite, damaged);
    if (access(real_trace("nsys"), R_OK) == 0) {
        TCase *real = tcase_create("real");
        tcase_set_timeout(real, 60);
        tcase_add_loop_test(real, real_exports_equal_their_truth, 0, 4);
        tcase_add_loop_test(real, damaged_real_exports_harm_nobody, 0, 2);
        suite_add_tcase(suite, real);
    } else {
        printf("skip: real Nsight Systems exports: no %s (make traces)\n", real_trace("nsys"));
    }
    return check_main(suite);
}
