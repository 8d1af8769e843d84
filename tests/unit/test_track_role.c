/* Which thread trains, which runs the backward pass, which are workers: from what they did. */
#include "analysis/import/import.h"
#include "server/store/trace/trace_write_private.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lac_model *imported;

static enum lac_status keep(void *context, struct lac_model *model, struct lac_error *reterr)
{
    (void)context;
    (void)reterr;
    imported = model;
    return LAC_OK;
}

/* The role of a row of that kind and number in a trace of these events; "-" for none. */
static const char *role_of_row(const char *events, enum lac_track_kind kind, int64_t tid)
{
    struct lac_import_options options = {0};
    struct lac_error error = {0};
    char json[8192];
    const int length =
        snprintf(json, sizeof(json), "{\"schemaVersion\":1,\"traceEvents\":[%s]}", events);
    const char **roles;
    const char *role = "-";

    lac_import_limits_default(&options.limits);
    ck_assert_int_eq(
        lac_import_bytes((const uint8_t *)json, (size_t)length, &options, keep, NULL, &error),
        LAC_OK);
    roles = calloc(imported->track_count, sizeof(*roles));
    ck_assert_int_eq(lac_track_roles(imported, roles), LAC_OK);
    for (uint32_t t = 0; t < imported->track_count; t++) {
        if (imported->tracks[t].kind == kind && imported->tracks[t].tid == tid &&
            roles[t] != NULL) {
            role = roles[t];
        }
    }
    free(roles);
    lac_model_destroy(imported);
    return role;
}

static const char *role_of(const char *events, int64_t tid)
{
    return role_of_row(events, LAC_TRACK_THREAD, tid);
}

#define ON_STREAM(stream, category, name, dur)                                                     \
    "{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"" name "\",\"pid\":0,\"tid\":" #stream      \
    ",\"ts\":" #stream ",\"dur\":" #dur ",\"args\":{\"device\":0,\"stream\":" #stream "}}"
#define X(tid, name, ts, dur)                                                                      \
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"" name "\",\"pid\":1,\"tid\":" #tid      \
    ",\"ts\":" #ts ",\"dur\":" #dur "}"
#define OP(tid, name, ts, dur)                                                                     \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":" #tid               \
    ",\"ts\":" #ts ",\"dur\":" #dur "}"

START_TEST(the_thread_with_the_steps_is_main_however_busy_another_is)
{
    static const char events[] = X(5, "ProfilerStep#1", 0, 10) "," OP(
        9, "aten::add", 0, 5000) "," OP(7, "AddBackward0", 20, 900);

    ck_assert_str_eq(role_of(events, 5), "main");
    ck_assert_str_eq(role_of(events, 7), "autograd");
    ck_assert_str_eq(role_of(events, 9), "-");
}
END_TEST

START_TEST(loading_in_the_training_thread_does_not_make_it_a_worker)
{
    static const char alone[] = X(5, "loader.wait", 0, 10) "," X(5, "loader.fetch", 1, 8);
    static const char with_worker[] = X(5, "loader.wait", 0, 10) "," X(6, "loader.fetch", 1, 8);

    ck_assert_str_eq(role_of(alone, 5), "main");
    ck_assert_str_eq(role_of(with_worker, 5), "main");
    ck_assert_str_eq(role_of(with_worker, 6), "worker");
}
END_TEST

START_TEST(one_busy_thread_is_main_whatever_it_runs)
{
    ck_assert_str_eq(role_of(OP(3, "MulBackward0", 0, 10), 3), "main");
    ck_assert_str_eq(role_of(OP(3, "aten::mul", 0, 10), 3), "main");
}
END_TEST

START_TEST(threads_that_are_none_are_not_chosen)
{
    static const char events[] =
        X(-549452224, "ProfilerStep#1", 0, 900) "," OP(3, "aten::mul", 0, 10);

    ck_assert_str_ne(role_of(events, -549452224), "autograd");
}
END_TEST

START_TEST(a_stream_is_called_by_what_fills_it)
{
    static const char events[] = ON_STREAM(7, "kernel", "volta_sgemm_128x64_nn", 900) "," ON_STREAM(
        20, "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        90) "," ON_STREAM(21, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 50);
    static const char mixed[] = ON_STREAM(7, "kernel", "volta_sgemm_128x64_nn", 50) "," ON_STREAM(
        7, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 50);

    ck_assert_str_eq(role_of_row(events, LAC_TRACK_STREAM, 7), "-");
    ck_assert_str_eq(role_of_row(events, LAC_TRACK_STREAM, 20), "collectives");
    ck_assert_str_eq(role_of_row(events, LAC_TRACK_STREAM, 21), "copies");
    ck_assert_str_eq(role_of_row(mixed, LAC_TRACK_STREAM, 7), "-");
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("track_role");
    TCase *const tcase = tcase_create("roles");

    tcase_add_test(tcase, the_thread_with_the_steps_is_main_however_busy_another_is);
    tcase_add_test(tcase, loading_in_the_training_thread_does_not_make_it_a_worker);
    tcase_add_test(tcase, one_busy_thread_is_main_whatever_it_runs);
    tcase_add_test(tcase, threads_that_are_none_are_not_chosen);
    tcase_add_test(tcase, a_stream_is_called_by_what_fills_it);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
