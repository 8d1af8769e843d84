/* Event files of TensorBoard: records, scalars of three kinds, damage. The samples are made by
 * tests/integration/tfevents.py. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/model/model.h"
#include "analysis/model/setting_rows.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *seed(size_t *ret_size)
{
    unsigned char *const bytes = read_whole("tests/fuzz/corpus/import/tensorboard", ret_size);
    ck_assert_ptr_nonnull(bytes);
    return bytes;
}

static double counter_at(const struct lac_model *model, const char *name, uint64_t index)
{
    const uint32_t track = find_track(model, LAC_TRACK_COUNTER, name);
    ck_assert_msg(track != LAC_NONE, "%s", name);
    ck_assert_uint_lt(index, model->tracks[track].count);
    return model->sample_value[model->tracks[track].first + index];
}

static const char *result(const struct lac_model *model, const char *name)
{
    const uint32_t host = lac_settings_find(&model->settings, UINT32_MAX, "host");
    const uint32_t row = lac_settings_find(&model->settings, host, name);
    ck_assert_msg(row != UINT32_MAX, "%s", name);
    return lac_settings_value(&model->settings, row);
}

START_TEST(scalars_become_counters_and_results)
{
    size_t size = 0;
    unsigned char *bytes = seed(&size);
    struct imported got = import_sized(bytes, size);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    const struct lac_model *model = got.models[0];
    ck_assert(lac_model_is_valid(model));
    ck_assert_int_eq(model->info.format, LAC_FORMAT_TENSORBOARD);
    ck_assert_int_eq(model->info.t0_ns, INT64_C(1795408040500000000));
    ck_assert_int_eq(model->info.duration_ns, INT64_C(9500000000));
    ck_assert_uint_eq(model->info.event_count, 22);
    ck_assert_double_eq(counter_at(model, "train/loss", 0), 2.0);
    ck_assert_double_eq(counter_at(model, "train/loss", 3), 0.5);
    ck_assert_double_eq(counter_at(model, "val/accuracy", 0), 1 - 0.5 / 9);
    ck_assert_double_eq(counter_at(model, "val/accuracy", 1), 1 - 0.5 / 19);
    ck_assert_str_eq(result(model, "metric.train/loss"),
                     "0.100000001 0.100000001 20 1795408050000000000");
    ck_assert_str_eq(result(model, "metric.val/accuracy"),
                     "0.973684211 0.973684211 2 1795408050000000000");
    ck_assert_uint_eq(report_count(model, "no_scalars"), 1);
    imported_done(&got);
    free(bytes);
}
END_TEST

START_TEST(scalars_alone_are_no_trace_of_the_host)
{
    size_t size = 0;
    unsigned char *bytes = seed(&size);
    struct imported got = import_sized(bytes, size);
    struct lac_analysis *analysis = NULL;
    struct lac_error error = {0};
    ck_assert_int_eq(lac_diagnose(got.models[0], NULL, &analysis, &error), LAC_OK);
    ck_assert_str_eq(analysis->verdict.text,
                     "scalars of a training, as TensorBoard shows them, nothing of the GPU");
    lac_analysis_destroy(analysis);
    imported_done(&got);
    free(bytes);
}
END_TEST

START_TEST(numbers_of_16_bits_are_read)
{
    static const char *const names[] = {"half/content",     "half/packed",     "half/alone",
                                        "bfloat16/content", "bfloat16/packed", "bfloat16/alone"};
    size_t size = 0;
    unsigned char *bytes = read_whole("tests/fuzz/corpus/import/tensorboard_half", &size);
    ck_assert_ptr_nonnull(bytes);
    struct imported got = import_sized(bytes, size);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    const struct lac_model *model = got.models[0];
    ck_assert(lac_model_is_valid(model));
    for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
        ck_assert_double_eq(counter_at(model, names[i], 0), 1.5);
        ck_assert_double_eq(counter_at(model, names[i], 1), -0.15625);
        ck_assert_double_eq(counter_at(model, names[i], 2), 0.0);
    }
    ck_assert_double_eq(counter_at(model, "half/smallest", 0), 0x1p-24);
    ck_assert_double_eq(counter_at(model, "half/largest", 0), 65504.0);
    ck_assert_double_eq(counter_at(model, "half/below zero", 0), -0x3ffp-24);
    ck_assert_uint_eq(model->info.event_count, 21);
    ck_assert_uint_eq(report_count(model, "not_finite"), 3);
    ck_assert_uint_eq(report_count(model, "no_scalars"), 3);
    imported_done(&got);
    free(bytes);
}
END_TEST

START_TEST(a_file_cut_anywhere_gives_what_came_before)
{
    size_t size = 0;
    unsigned char *bytes = seed(&size);
    uint64_t before = 0;
    for (size_t cut = 0; cut <= size; cut++) {
        struct imported got = import_sized(bytes, cut);
        if (got.status == LAC_OK) {
            ck_assert(lac_model_is_valid(got.models[0]));
            ck_assert_uint_ge(got.models[0]->info.event_count, before);
            before = got.models[0]->info.event_count;
        } else {
            ck_assert_uint_eq(before, 0);
            ck_assert(got.error.message[0] != '\0');
        }
        imported_done(&got);
    }
    ck_assert_uint_eq(before, 22);
    free(bytes);
}
END_TEST

START_TEST(wrong_checksums_cost_a_record_or_what_follows)
{
    size_t size = 0;
    unsigned char *bytes = seed(&size);
    unsigned char *end = bytes + size;
    /* the last record: its data end before a checksum of 4 bytes */
    end[-6] ^= 1;
    struct imported got = import_sized(bytes, size);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_uint_eq(report_count(got.models[0], "record_damaged"), 1);
    ck_assert_uint_eq(got.models[0]->info.event_count, 20);
    imported_done(&got);
    end[-6] ^= 1;
    /* the length of the 13th record: behind the version, a picture and ten losses */
    size_t at = 0;
    for (int i = 0; i < 12; i++) {
        at += 16 + bytes[at] + ((size_t)bytes[at + 1] << 8);
    }
    bytes[at + 5] = 0x7f;
    got = import_sized(bytes, size);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_uint_eq(report_count(got.models[0], "length_damaged"), 1);
    ck_assert_uint_eq(got.models[0]->info.event_count, 11);
    imported_done(&got);
    free(bytes);
}
END_TEST

START_TEST(a_file_without_scalars_says_so)
{
    size_t size = 0;
    unsigned char *bytes = seed(&size);
    struct imported got = import_sized(bytes, 16 + (size_t)bytes[0]);
    ck_assert_int_eq(got.status, LAC_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(got.error.message, "no scalar"));
    imported_done(&got);
    free(bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_tensorboard");
    TCase *tcase = tcase_create("import_tensorboard");
    tcase_add_test(tcase, scalars_become_counters_and_results);
    tcase_add_test(tcase, scalars_alone_are_no_trace_of_the_host);
    tcase_add_test(tcase, numbers_of_16_bits_are_read);
    tcase_add_test(tcase, a_file_cut_anywhere_gives_what_came_before);
    tcase_add_test(tcase, wrong_checksums_cost_a_record_or_what_follows);
    tcase_add_test(tcase, a_file_without_scalars_says_so);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
