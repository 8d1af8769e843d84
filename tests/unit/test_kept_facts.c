/* What an import keeps for comparisons and reports says what the trace itself says. */

#include "analysis/compare/compare.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis_pack.h"
#include "analysis/import/import.h"
#include "server/base/buffer.h"
#include "server/export/report.h"
#include "server/ingest/convert.h"
#include "server/json/compare_json.h"
#include "server/json/flame_json.h"
#include "server/json/flame_pack.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/trace_file.h"
#include "tests/support/check_main.h"
#include "tests/support/pick.h"
#include "tests/support/rounds.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static char path[128];

/** A training loop of 12 steps that waits for its loader, as the profiler records it. */
static void write_loop(int workers, int wait_us)
{
    FILE *out = fopen(path, "w");
    int at = 0;
    ck_assert_ptr_nonnull(out);
    (void)fprintf(out,
                  "{\"lacuna\":{\"version\":1,\"settings\":{\"num_workers\":%d,\"batch_size\":64,"
                  "\"lr\":[0.1,{\"x\":null}]}},\"traceEvents\":["
                  "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":"
                  "\"python train.py\"}}",
                  workers);
    for (int step = 0; step < 12; step++) {
        int wait = wait_us + (step * 37) % 23;
        int length = wait + 1000;
        int launch = at + wait + 20;
        (void)fprintf(out,
                      ",\n{\"ph\":\"X\",\"name\":\"ProfilerStep#%d\",\"cat\":\"user_annotation\","
                      "\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":%d}",
                      step, at, length);
        (void)fprintf(out,
                      ",\n{\"ph\":\"X\",\"name\":\"enumerate(DataLoader)#_MultiProcessingDataLoader"
                      "Iter.__next__\",\"cat\":\"user_annotation\",\"pid\":1,\"tid\":1,\"ts\":%d,"
                      "\"dur\":%d}",
                      at + 2, wait);
        (void)fprintf(out,
                      ",\n{\"ph\":\"X\",\"name\":\"loader.fetch\",\"cat\":\"user_annotation\","
                      "\"pid\":%d,\"tid\":1,\"ts\":%d,\"dur\":%d,\"args\":{\"batch\":%d,"
                      "\"worker\":%d}}",
                      100 + step % workers, at > length ? at - length * (workers - 1) + 1 : at + 1,
                      at > length ? length * workers - 20 : wait, step, step % workers);
        (void)fprintf(out,
                      ",\n{\"ph\":\"X\",\"name\":\"aten::linear\",\"cat\":\"cpu_op\",\"pid\":1,"
                      "\"tid\":1,\"ts\":%d,\"dur\":60}"
                      ",\n{\"ph\":\"X\",\"name\":\"cudaLaunchKernel\",\"cat\":\"cuda_runtime\","
                      "\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":8,\"args\":{\"correlation\":%d}}"
                      ",\n{\"ph\":\"X\",\"name\":\"volta_sgemm_128x64_nn\",\"cat\":\"kernel\","
                      "\"pid\":0,\"tid\":7,\"ts\":%d,\"dur\":800,\"args\":{\"correlation\":%d,"
                      "\"device\":0,\"stream\":7}}",
                      launch - 10, launch, step + 1, launch + 20, step + 1);
        (void)fprintf(out,
                      ",\n{\"ph\":\"X\",\"name\":\"Optimizer.step#SGD.step\",\"cat\":\"cpu_op\","
                      "\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":60}"
                      ",\n{\"ph\":\"X\",\"name\":\"loss: %d.5\",\"cat\":\"user_annotation\","
                      "\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":5}",
                      launch + 80, 30 - step, at + length - 20);
        at += length;
    }
    (void)fprintf(out, "]}\n");
    ck_assert_int_eq(fclose(out), 0);
}

/** A trace by both ways: diagnosed now, and read from what its import kept. */
struct trace {
    struct lac_model *model;
    struct lac_analysis *analysis;
    struct lac_trace_file *file;
    struct lac_analysis *kept;
    struct lac_compare_facts *facts;
};

static enum lac_status take_model(void *context, struct lac_model *model, struct lac_error *reterr)
{
    (void)reterr;
    *(struct lac_model **)context = model;
    return LAC_OK;
}

static struct trace make(int workers, int wait_us)
{
    const struct lac_diagnose_options diagnose = {.wants_worker_steps = true};
    struct lac_error error = {0};
    struct trace trace = {0};
    struct lac_convert_result result;
    char stored[160];
    char *bytes = NULL;
    size_t size_bytes = 0;

    write_loop(workers, wait_us);
    struct lac_import_options import = {.name = "loop"};
    lac_import_limits_default(&import.limits);
    ck_assert_msg(lac_import_file(path, &import, take_model, (void *)&trace.model, &error) ==
                      LAC_OK,
                  "%s", error.message);
    ck_assert_int_eq(lac_diagnose(trace.model, &diagnose, &trace.analysis, &error), LAC_OK);
    ck_assert_int_eq(lac_diagnose_add_tracks(trace.analysis, trace.model), LAC_OK);

    const struct lac_convert_options convert = {
        .input_path = path, .output_dir = folder, .name = "loop", .limits = import.limits};
    ck_assert_msg(lac_convert(&convert, &result, &error) == LAC_OK, "%s", error.message);
    (void)snprintf(stored, sizeof(stored), "%s/trace-0.db", folder);
    ck_assert_msg(lac_trace_file_open(stored, 0, &trace.file, &error) == LAC_OK, "%s",
                  error.message);
    (void)unlink(stored);
    ck_assert_msg(lac_trace_file_analysis(trace.file, &trace.kept, &error) == LAC_OK, "%s",
                  error.message);
    ck_assert_int_eq(
        lac_trace_file_document(trace.file, LAC_DOCUMENT_COMPARE, &bytes, &size_bytes, &error),
        LAC_OK);
    ck_assert_int_eq(lac_compare_facts_unpack((uint8_t *)bytes, size_bytes, &trace.facts), LAC_OK);
    return trace;
}

static void destroy(struct trace *trace)
{
    lac_analysis_destroy(trace->analysis);
    lac_model_destroy(trace->model);
    lac_analysis_destroy(trace->kept);
    lac_compare_facts_destroy(trace->facts);
    lac_trace_file_close(trace->file);
}

static void setup(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/loop.json", folder);
}

static void teardown(void)
{
    (void)unlink(path);
    (void)rmdir(folder);
}

/** Steps that are not those of the analysis are damage; the first change is none. */
START_TEST(lies_about_steps_are_found)
{
    static const char *const lies[] = {
        "SELECT 1",
        "DELETE FROM step",
        "UPDATE step SET count = count + 1",
        "UPDATE step SET data = x'00'",
        "UPDATE meta SET value = value + 1 WHERE key = 'step_count'",
        "UPDATE meta SET value = -1 WHERE key = 'step_count'",
        "DELETE FROM meta WHERE key = 'step_count'",
        "DROP TABLE step",
    };
    struct lac_convert_options convert = {.input_path = path, .output_dir = folder, .name = "loop"};
    struct lac_convert_result result;
    struct lac_trace_file *file = NULL;
    struct lac_analysis *analysis = NULL;
    struct lac_error error = {0};
    sqlite3 *db = NULL;
    char stored[160];

    write_loop(2, 900);
    lac_import_limits_default(&convert.limits);
    ck_assert_int_eq(lac_convert(&convert, &result, &error), LAC_OK);
    (void)snprintf(stored, sizeof(stored), "%s/trace-0.db", folder);
    ck_assert_int_eq(sqlite3_open(stored, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, lies[_i], NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert_int_eq(lac_checked_stamp(stored, &error), LAC_OK);
    ck_assert_int_eq(lac_trace_file_open(stored, 0, &file, &error), LAC_OK);
    ck_assert_msg((lac_trace_file_analysis(file, &analysis, &error) == LAC_OK) == (_i == 0),
                  "%s: %s", lies[_i], error.message);
    lac_analysis_destroy(analysis);
    lac_trace_file_close(file);
    (void)unlink(stored);
}
END_TEST

/** The comparison as JSON; the caller frees it. */
static struct lac_buffer compared(const struct lac_compare_side *a,
                                  const struct lac_compare_side *b)
{
    struct lac_comparison *comparison = NULL;
    struct lac_buffer out = {0};
    ck_assert_int_eq(lac_compare(a, b, &comparison), LAC_OK);
    lac_compare_write_json(&out, a, b, comparison, NULL, NULL, 0);
    ck_assert_int_eq(out.status, LAC_OK);
    lac_comparison_destroy(comparison);
    return out;
}

static struct lac_compare_side kept_side(const struct trace *trace)
{
    return (struct lac_compare_side){lac_trace_file_head(trace->file), trace->kept, trace->facts};
}

START_TEST(kept_facts_compare_as_the_traces_do)
{
    struct trace traces[] = {make(2, 900), make(5, 400), make(3, 700)};
    for (int i = 0; i < 9; i++) {
        const struct trace *a = &traces[i / 3];
        const struct trace *b = &traces[i % 3];
        const struct lac_compare_side whole[] = {{a->model, a->analysis, NULL},
                                                 {b->model, b->analysis, NULL}};
        const struct lac_compare_side kept[] = {kept_side(a), kept_side(b)};
        struct lac_buffer expected = compared(&whole[0], &whole[1]);
        struct lac_buffer got = compared(&kept[0], &kept[1]);
        ck_assert_str_eq(got.bytes, expected.bytes);
        lac_buffer_done(&expected);
        lac_buffer_done(&got);
    }
    /* one of them was given another number of workers than it was advised to have */
    ck_assert_uint_eq(traces[0].kept->worker_step_count, LAC_WORKER_STEPS_MAX);
    for (int i = 0; i < 3; i++) {
        destroy(&traces[i]);
    }
}
END_TEST

START_TEST(kept_steps_are_the_steps)
{
    struct trace trace = make(2, 900);
    ck_assert_uint_eq(trace.kept->step_count, 12);
    ck_assert_uint_eq(trace.kept->step_count, trace.analysis->step_count);
    for (uint32_t s = 0; s < trace.kept->step_count; s++) {
        const struct lac_step *kept = &trace.kept->steps[s];
        const struct lac_step *step = &trace.analysis->steps[s];
        ck_assert_int_eq(kept->start_ns, step->start_ns);
        ck_assert_int_eq(kept->dur_ns, step->dur_ns);
        ck_assert_int_eq(kept->host_start_ns, step->host_start_ns);
        ck_assert_int_eq(kept->host_dur_ns, step->host_dur_ns);
        ck_assert_int_eq(kept->wait_ns, step->wait_ns);
        ck_assert_int_eq(kept->starved_ns, step->starved_ns);
        ck_assert_uint_eq(kept->op_count, step->op_count);
        ck_assert_uint_eq(kept->name, step->name);
        ck_assert_uint_eq(kept->slice, step->slice);
        ck_assert_uint_eq(kept->left_out, step->left_out);
        ck_assert_uint_eq(kept->kind, step->kind);
        ck_assert_int_eq(kept->is_outlier, step->is_outlier);
    }
    destroy(&trace);
}
END_TEST

static struct lac_buffer reported(const struct lac_report_source *source)
{
    struct lac_report_source copy = *source;
    struct lac_redactor redactor = {0};
    struct lac_buffer out = {0};
    ck_assert_int_eq(lac_redactor_init(&redactor, NULL, source->model, NULL), LAC_OK);
    copy.redactor = &redactor;
    lac_report_html(&out, &copy);
    lac_report_markdown(&out, &copy);
    ck_assert_int_eq(out.status, LAC_OK);
    lac_redactor_done(&redactor);
    return out;
}

START_TEST(a_report_of_kept_facts_is_that_of_the_trace)
{
    struct trace trace = make(2, 900);
    struct lac_error error = {0};
    struct lac_flame_options options;
    struct lac_flame *made = NULL;
    struct lac_flame *flame = NULL;
    struct lac_model *views[LAC_VIEW_COUNT] = {NULL};
    uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    lac_flame_report_options(&options);
    ck_assert_int_eq(lac_flame_create(trace.model, &options, &made), LAC_OK);
    ck_assert_int_eq(lac_flame_pack(made, &bytes, &size_bytes), LAC_OK);
    ck_assert_int_eq(lac_flame_unpack(bytes, size_bytes, lac_trace_file_head(trace.file), &flame),
                     LAC_OK);
    const struct lac_report_source whole = {.model = trace.model, .analysis = trace.analysis};
    struct lac_report_source kept = {
        .model = lac_trace_file_head(trace.file), .analysis = trace.kept, .flame = flame};
    int view_count = 0;
    for (int i = 0; i < LAC_VIEW_COUNT; i++) {
        const struct lac_view *view = &trace.kept->views[i];
        if (view->is_known) {
            ck_assert_int_eq(
                lac_trace_file_stretch(trace.file, view->t0_ns, view->t1_ns, &views[i], &error),
                LAC_OK);
            ck_assert_uint_lt(views[i]->slices.count, trace.model->slices.count);
            kept.views[i] = views[i];
            view_count++;
        }
    }
    ck_assert_int_gt(view_count, 0);
    struct lac_buffer expected = reported(&whole);
    struct lac_buffer got = reported(&kept);
    ck_assert_str_eq(got.bytes, expected.bytes);
    lac_buffer_done(&expected);
    lac_buffer_done(&got);
    for (int i = 0; i < LAC_VIEW_COUNT; i++) {
        lac_trace_stretch_destroy(views[i]);
    }
    lac_flame_destroy(flame);
    lac_flame_destroy(made);
    free(bytes);
    destroy(&trace);
}
END_TEST

static uint8_t *copy_of(const uint8_t *bytes, size_t size_bytes)
{
    uint8_t *copy = malloc(size_bytes);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size_bytes);
    return copy;
}

/** A few bytes of it are others, or it ends too early. */
static uint8_t *damage(const uint8_t *bytes, size_t *size_bytes)
{
    uint8_t *copy = copy_of(bytes, *size_bytes);
    for (uint32_t flips = 1 + pick(4); flips > 0; flips--) {
        copy[pick((uint32_t)*size_bytes)] = (uint8_t)pick(256);
    }
    *size_bytes = pick(8) == 0 ? 1 + pick((uint32_t)*size_bytes) : *size_bytes;
    return copy;
}

START_TEST(damaged_facts_are_refused_or_harmless)
{
    int rounds = rounds_are_all() ? 50000 : rounds_of(1500);
    struct trace trace = make(2, 900);
    const struct lac_model *head = lac_trace_file_head(trace.file);
    uint8_t *analysis_bytes = NULL;
    uint8_t *facts_bytes = NULL;
    size_t analysis_size = 0;
    size_t facts_size = 0;
    int taken = 0;
    ck_assert_int_eq(
        lac_analysis_pack(trace.analysis, trace.model, &analysis_bytes, &analysis_size), LAC_OK);
    ck_assert_int_eq(lac_compare_facts_pack(trace.facts, &facts_bytes, &facts_size), LAC_OK);
    for (int i = 0; i < rounds; i++) {
        size_t sizes[] = {analysis_size, facts_size};
        struct lac_analysis *analysis = NULL;
        struct lac_compare_facts *facts = NULL;
        uint8_t *damaged = damage(analysis_bytes, &sizes[0]);
        enum lac_status status = lac_analysis_unpack(damaged, sizes[0], head, &analysis);
        ck_assert(status == LAC_OK || status == LAC_ERR_CORRUPT);
        damaged = damage(facts_bytes, &sizes[1]);
        status = lac_compare_facts_unpack(damaged, sizes[1], &facts);
        ck_assert(status == LAC_OK || status == LAC_ERR_CORRUPT);
        if (analysis != NULL && facts != NULL) {
            const struct lac_compare_side side = {head, analysis, facts};
            const struct lac_compare_side whole = kept_side(&trace);
            struct lac_buffer out = compared(&side, &whole);
            lac_buffer_done(&out);
            const struct lac_report_source source = {.model = trace.model, .analysis = analysis};
            out = reported(&source);
            lac_buffer_done(&out);
            taken++;
        }
        lac_analysis_destroy(analysis);
        lac_compare_facts_destroy(facts);
    }
    ck_assert_int_gt(taken, rounds / 50); /* else the test tests only the door */
    free(analysis_bytes);
    free(facts_bytes);
    destroy(&trace);
}
END_TEST

START_TEST(devices_without_a_main_one_are_refused)
{
    struct trace trace = make(2, 900);
    uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    struct lac_analysis *analysis = NULL;

    ck_assert_uint_gt(trace.analysis->device_count, 0);
    trace.analysis->main_device = LAC_NONE;
    ck_assert_int_eq(lac_analysis_pack(trace.analysis, trace.model, &bytes, &size_bytes), LAC_OK);
    ck_assert_int_eq(
        lac_analysis_unpack(bytes, size_bytes, lac_trace_file_head(trace.file), &analysis),
        LAC_ERR_CORRUPT);
    destroy(&trace);
}
END_TEST

START_TEST(facts_of_another_version_are_not_read)
{
    struct trace trace = make(2, 900);
    struct lac_analysis *analysis = NULL;
    struct lac_error error = {0};
    uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    ck_assert_int_eq(lac_analysis_pack(trace.analysis, trace.model, &bytes, &size_bytes), LAC_OK);
    bytes[0] += 2; /* zigzag: the next number */
    ck_assert_int_eq(
        lac_analysis_unpack(bytes, size_bytes, lac_trace_file_head(trace.file), &analysis),
        LAC_ERR_CORRUPT);
    destroy(&trace);
    struct lac_trace_file *file = NULL;
    ck_assert_int_eq(lac_trace_file_open("tests/unit/data/trace_v2.db", 0, &file, &error), LAC_OK);
    ck_assert_int_eq(lac_trace_file_analysis(file, &analysis, &error), LAC_ERR_NOT_FOUND);
    lac_trace_file_close(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kept_facts");
    TCase *cases = tcase_create("kept_facts");
    tcase_set_timeout(cases, 1200);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, kept_facts_compare_as_the_traces_do);
    tcase_add_test(cases, kept_steps_are_the_steps);
    tcase_add_loop_test(cases, lies_about_steps_are_found, 0, 8);
    tcase_add_test(cases, a_report_of_kept_facts_is_that_of_the_trace);
    tcase_add_test(cases, damaged_facts_are_refused_or_harmless);
    tcase_add_test(cases, facts_of_another_version_are_not_read);
    tcase_add_test(cases, devices_without_a_main_one_are_refused);
    suite_add_tcase(suite, cases);
    return check_main(suite);
}
