/* How many batches lay ready: from what the workers made and what the training thread took. */

#include "analysis/diagnose/facts/prefetch_queue_depth.h"
#include "analysis/diagnose/result/analysis.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct lac_model *model;

/** Draw, count, and write the samples down: "us:value us:value ...", "" without the counter. */
static const char *counted(const char *drawing)
{
    static char text[512];
    size_t used = 0;
    text[0] = '\0';
    model = trace_draw(drawing);
    const uint32_t tracks = model->track_count;
    ck_assert_int_eq(lac_prefetch_queue_depth_add(model), LAC_OK);
    ck_assert(lac_model_is_valid(model));
    if (model->track_count == tracks) {
        lac_model_destroy(model);
        return text;
    }
    const struct lac_track *track = &model->tracks[tracks];
    ck_assert_int_eq((int)track->kind, (int)LAC_TRACK_COUNTER);
    ck_assert_str_eq(lac_model_str(model, track->name), "batches ready");
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%lld:%g", used ? " " : "",
                                 (long long)model->sample_ts_ns[i] / 1000, model->sample_value[i]);
    }
    lac_model_destroy(model);
    return text;
}

START_TEST(a_batch_is_ready_from_the_end_of_its_fetch_until_it_is_taken)
{
    ck_assert_str_eq(counted("w0   fetch   0  50 batch=0 worker=0\n"
                             "w1   fetch   0  70 batch=1 worker=1\n"
                             "w0   fetch  50  50 batch=2 worker=0\n"
                             "main wait    5  50 batch=0\n"
                             "main wait   80  10 batch=1\n"
                             "main wait  110   5 batch=2\n"),
                     "0:0 50:1 55:0 70:1 90:0 100:1 115:0");
}
END_TEST

START_TEST(a_pinned_batch_is_ready_when_it_is_pinned)
{
    ck_assert_str_eq(counted("w0   fetch   0  50 batch=0 worker=0\n"
                             "pin  part   50  20 loader.pin batch=0\n"
                             "main wait   10  65 batch=0\n"),
                     "0:0 70:1 75:0");
}
END_TEST

START_TEST(batches_of_the_last_epoch_that_nobody_took_lie_there_until_the_end)
{
    /* batch 9 belongs to an epoch that was left early: the numbers begin again */
    ck_assert_str_eq(counted("w0   fetch   0  10 batch=8 worker=0\n"
                             "w1   fetch   0  12 batch=9 worker=1\n"
                             "main wait   15   5 batch=8\n"
                             "w0   fetch  30  10 batch=0 worker=0\n"
                             "w1   fetch  30  20 batch=1 worker=1\n"
                             "main wait   41   4 batch=0\n"),
                     "0:0 10:1 20:0 40:1 45:0 50:1");
}
END_TEST

START_TEST(what_cannot_be_known_is_not_counted)
{
    /* loads by itself */
    ck_assert_str_eq(counted("main wait    0 50 batch=0\nmain fetch   1 40 batch=0\n"), "");
    /* no numbers */
    ck_assert_str_eq(counted("w0   fetch   0 50 worker=0\nmain wait    0 60\n"), "");
    /* workers only, or waits only */
    ck_assert_str_eq(counted("w0   fetch   0 50 batch=0 worker=0\n"), "");
    ck_assert_str_eq(counted("main wait    0 60 batch=0\n"), "");
    /* two processes wait: whose batch 0 it is nobody says */
    ck_assert_str_eq(counted("w0   fetch   0 50 batch=0 worker=0\n"
                             "main wait    0 60 batch=0\n"
                             "w7   wait    0 65 batch=0\n"),
                     "");
}
END_TEST

START_TEST(it_is_counted_once)
{
    model = trace_draw("w0   fetch   0 50 batch=0 worker=0\nmain wait    0 60 batch=0\n");
    ck_assert_int_eq(lac_prefetch_queue_depth_add(model), LAC_OK);
    const uint32_t tracks = model->track_count;
    ck_assert_int_eq(lac_prefetch_queue_depth_add(model), LAC_OK);
    ck_assert_uint_eq(model->track_count, tracks);
    lac_model_destroy(model);
}
END_TEST

START_TEST(a_counter_comes_before_derived_tracks_or_not_at_all)
{
    model = trace_draw("main range 0 100 ProfilerStep#1\n");
    const struct lac_track track = {.process = 0};
    const int64_t ts_ns[] = {5, 4};
    const double values[] = {1.0, 2.0};
    ck_assert_int_eq(lac_model_add_counter(model, &track, ts_ns, values, 2), LAC_ERR_MISUSE);
    ck_assert_int_eq(lac_model_add_counter(model, &track, ts_ns, values, 1), LAC_OK);
    ck_assert(lac_model_is_valid(model));
    struct lac_analysis *analysis = trace_diagnose(model);
    ck_assert_int_eq(lac_diagnose_add_tracks(analysis, model), LAC_OK);
    ck_assert_int_eq(lac_model_add_counter(model, &track, ts_ns, values, 1), LAC_ERR_MISUSE);
    ck_assert(lac_model_is_valid(model));
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batches_ready");
    TCase *tcase = tcase_create("batches_ready");
    tcase_add_test(tcase, a_batch_is_ready_from_the_end_of_its_fetch_until_it_is_taken);
    tcase_add_test(tcase, a_pinned_batch_is_ready_when_it_is_pinned);
    tcase_add_test(tcase, batches_of_the_last_epoch_that_nobody_took_lie_there_until_the_end);
    tcase_add_test(tcase, what_cannot_be_known_is_not_counted);
    tcase_add_test(tcase, it_is_counted_once);
    tcase_add_test(tcase, a_counter_comes_before_derived_tracks_or_not_at_all);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
