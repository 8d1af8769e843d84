/* Memory of the GPU over time: totals where they are recorded, else sums of the changes. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define OP(name, ts, dur)                                                                          \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":\"1\",\"ts\":" #ts   \
    ",\"dur\":" #dur "},"
#define MEMORY(ts, args)                                                                           \
    "{\"ph\":\"i\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":" #ts              \
    ",\"args\":{\"Device Type\":1,\"Device Id\":0," args "}},"
#define KERNEL                                                                                     \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":1,\"dur\":90,"     \
    "\"args\":{\"device\":0,\"stream\":7}}"

static struct lac_model *model_of(const char *text)
{
    struct imported imported = import_text(text);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    return imported.models[0];
}

static void check_holder(const struct lac_memory_facts *memory, uint32_t row, const char *name,
                         int64_t bytes)
{
    ck_assert_uint_lt(row, memory->holder_count);
    ck_assert_str_eq(memory->holders[row].name, name);
    ck_assert_int_eq(memory->holders[row].bytes, bytes);
}

/** The samples of the only counter. */
static void check_counter(struct lac_model *model, const struct lac_analysis *analysis,
                          const char *name, const double *values, uint64_t count)
{
    ck_assert_int_eq(lac_diagnose_add_tracks(analysis, model), LAC_OK);
    ck_assert(lac_model_is_valid(model));
    uint32_t found = 0;
    for (uint32_t t = 0; t < model->track_count; t++) {
        if (model->tracks[t].kind != LAC_TRACK_COUNTER) {
            continue;
        }
        found++;
        ck_assert_str_eq(lac_model_str(model, model->tracks[t].name), name);
        ck_assert_uint_eq(model->tracks[t].count, count);
        for (uint64_t i = 0; i < count; i++) {
            ck_assert_double_eq(model->sample_value[model->tracks[t].first + i], values[i]);
        }
    }
    ck_assert_uint_eq(found, 1);
}

START_TEST(changes_alone_are_summed_from_the_recordings_begin)
{
    struct lac_model *model =
        model_of("{\"traceEvents\":[" OP("aten::conv2d", 10, 20) OP("aten::relu", 40, 20)
                     MEMORY(5, "\"Bytes\":-7000000") /* what was there before is released */
                 MEMORY(15, "\"Bytes\":30000000") MEMORY(45, "\"Bytes\":20000000")
                     MEMORY(50, "\"Bytes\":4000000") MEMORY(55, "\"Bytes\":-4000000")
                         MEMORY(58, "\"Bytes\":-20000000") KERNEL "]}");
    struct lac_analysis *analysis = trace_diagnose(model);
    const struct lac_memory_facts *memory = &analysis->memory;
    ck_assert_uint_eq(memory->event_count, 6);
    ck_assert(memory->is_relative);
    ck_assert_int_eq(memory->peak_bytes, 47000000);
    ck_assert_int_eq(memory->start_bytes, LAC_UNKNOWN_NS);
    ck_assert_int_eq(memory->reserved_bytes, LAC_UNKNOWN_NS);
    ck_assert_str_eq(memory->peak_in, "aten::relu");
    check_holder(memory, 0, "aten::conv2d", 30000000);
    check_holder(memory, 1, "aten::relu", 24000000);
    for (uint32_t i = 0; i < analysis->not_recorded_count; i++) {
        ck_assert_ptr_null(strstr(analysis->not_recorded[i], "GPU memory"));
    }
    const double values[] = {-7.0, 23.0, 43.0, 47.0, 43.0, 23.0};
    check_counter(model, analysis, "GPU 0: tensors allocated since the recording began (MB)",
                  values, 6);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}
END_TEST

START_TEST(recorded_totals_and_addresses_say_what_is_held)
{
    struct lac_model *model = model_of(
        "{\"traceEvents\":[" OP("aten::linear", 10, 20) OP("aten::gelu", 40, 20) MEMORY(
            15, "\"Total Reserved\":900000000,\"Total Allocated\":130000000,\"Addr\":100,\"Bytes\":"
                "30000000")
            MEMORY(16, "\"Total Reserved\":900000000,\"Total Allocated\":160000000,\"Addr\":200,"
                       "\"Bytes\":30000000")
        /* the first of two of one size goes: by its address, not by its size */
        MEMORY(35, "\"Total Reserved\":900000000,\"Total Allocated\":130000000,\"Addr\":100,"
                   "\"Bytes\":-30000000")
            MEMORY(45, "\"Total Reserved\":950000000,\"Total Allocated\":180000000,\"Addr\":300,"
                       "\"Bytes\":50000000") KERNEL "]}");
    struct lac_analysis *analysis = trace_diagnose(model);
    const struct lac_memory_facts *memory = &analysis->memory;
    ck_assert(!memory->is_relative);
    ck_assert_int_eq(memory->peak_bytes, 180000000);
    ck_assert_int_eq(memory->start_bytes, 100000000);
    ck_assert_int_eq(memory->reserved_bytes, 950000000);
    ck_assert_str_eq(memory->peak_in, "aten::gelu");
    check_holder(memory, 0, "before the recording", 100000000);
    check_holder(memory, 1, "aten::gelu", 50000000);
    check_holder(memory, 2, "aten::linear", 30000000);
    const double values[] = {130.0, 160.0, 130.0, 180.0};
    check_counter(model, analysis, "GPU 0: tensors allocated (MB)", values, 4);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}
END_TEST

START_TEST(without_events_nothing_is_known)
{
    struct lac_model *model = model_of("{\"traceEvents\":[" KERNEL "]}");
    struct lac_analysis *analysis = trace_diagnose(model);
    ck_assert_uint_eq(analysis->memory.event_count, 0);
    ck_assert_uint_eq(analysis->memory.holder_count, 0);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}
END_TEST

START_TEST(numbers_of_a_hostile_file_stay_in_bounds)
{
    struct lac_model *model =
        model_of("{\"traceEvents\":[" MEMORY(1, "\"Bytes\":9223372036854775807")
                     MEMORY(2, "\"Bytes\":9223372036854775807")
                         MEMORY(3, "\"Bytes\":-9223372036854775808") KERNEL "]}");
    struct lac_analysis *analysis = trace_diagnose(model);
    ck_assert(lac_analysis_is_valid(analysis));
    ck_assert_int_le(analysis->memory.peak_bytes, ((int64_t)1 << 53) - 1);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpu_allocations");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, changes_alone_are_summed_from_the_recordings_begin);
    tcase_add_test(tcase, recorded_totals_and_addresses_say_what_is_held);
    tcase_add_test(tcase, without_events_nothing_is_known);
    tcase_add_test(tcase, numbers_of_a_hostile_file_stay_in_bounds);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
