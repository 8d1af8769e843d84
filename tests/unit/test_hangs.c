/* Jobs that hang, as a server keeps them: one per upload, once per run, for as long as they are heard of; and what a launcher
 * sends. */

#include "collector/hang/hang_json.h"
#include "server/hangs/hangs.h"
#include "server/json/json_read.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

static struct lac_hang hang_of(int upload, const char *project, const char *run, uint64_t heard_s)
{
    struct lac_hang hang = {
        .rank = 1, .since_unix_ms = 1000 * (int64_t)heard_s, .heard_ns = heard_s * SECOND};

    (void)snprintf(hang.upload, sizeof(hang.upload), "%026d", upload);
    (void)snprintf(hang.project, sizeof(hang.project), "%s", project);
    (void)snprintf(hang.run, sizeof(hang.run), "%s", run);
    (void)snprintf(hang.doing, sizeof(hang.doing), "rank 1 waits, said at %d", (int)heard_s);
    return hang;
}

static enum lac_hangs_answer put(struct lac_hangs *hangs, int upload, const char *project,
                                 const char *run, uint64_t heard_s)
{
    const struct lac_hang hang = hang_of(upload, project, run, heard_s);

    return lac_hangs_put(hangs, &hang);
}

static bool is_third(void *context, const char *upload)
{
    (void)context;
    return upload[25] == '3';
}

START_TEST(one_for_each_upload_and_once_for_each_run)
{
    struct lac_hangs *const hangs = lac_hangs_create();
    const struct lac_hang first = hang_of(1, "", "", 0);
    struct lac_hang hang;
    bool is_last = false;

    ck_assert_ptr_nonnull(hangs);
    ck_assert_int_eq((int)put(hangs, 1, "vision", "job", 10), (int)LAC_HANGS_NEW);
    ck_assert_int_eq((int)put(hangs, 2, "vision", "job", 11), (int)LAC_HANGS_MORE);
    ck_assert_int_eq((int)put(hangs, 3, "speech", "job", 11), (int)LAC_HANGS_NEW);
    ck_assert_int_eq((int)put(hangs, 4, "vision", "", 11), (int)LAC_HANGS_NEW);
    ck_assert_int_eq((int)put(hangs, 5, "vision", "", 11), (int)LAC_HANGS_NEW); /* no run is none */
    ck_assert_int_eq((int)put(hangs, 1, "vision", "job", 60), (int)LAC_HANGS_KNOWN);
    ck_assert(lac_hangs_at(hangs, 0, &hang));
    ck_assert_int_eq(hang.since_unix_ms, 10000);
    ck_assert_str_eq(hang.doing, "rank 1 waits, said at 60");
    ck_assert(lac_hangs_remove(hangs, first.upload, &hang, &is_last));
    ck_assert(!is_last); /* the second one of the run hangs */
    ck_assert(!lac_hangs_remove(hangs, first.upload, &hang, &is_last));
    ck_assert(lac_hangs_at(hangs, 0, &hang));
    ck_assert(lac_hangs_remove(hangs, hang.upload, &hang, &is_last));
    ck_assert(is_last);
    lac_hangs_destroy(hangs);
}
END_TEST

START_TEST(who_is_not_heard_of_is_forgotten)
{
    struct lac_hangs *const hangs = lac_hangs_create();
    struct lac_hang hang;

    ck_assert_ptr_nonnull(hangs);
    for (int i = 0; i < LAC_HANGS_MAX; i++) {
        ck_assert_int_eq((int)put(hangs, i, "", "", (uint64_t)i), (int)LAC_HANGS_NEW);
    }
    ck_assert_int_eq((int)put(hangs, 1000, "", "", 9), (int)LAC_HANGS_FULL);
    ck_assert_int_eq((int)put(hangs, 7, "", "", 7), (int)LAC_HANGS_KNOWN);
    lac_hangs_sweep(hangs, (LAC_HANG_LEASE_S + 100) * SECOND, is_third, NULL);
    ck_assert(lac_hangs_at(hangs, 0, &hang)); /* the first 100 are gone, and each that ends in 3 */
    ck_assert_uint_eq(hang.heard_ns, 100 * SECOND);
    ck_assert(lac_hangs_at(hangs, 3, &hang));
    ck_assert_uint_eq(hang.heard_ns, 104 * SECOND);
    lac_hangs_sweep(hangs, 10000 * SECOND, is_third, NULL);
    ck_assert(!lac_hangs_at(hangs, 0, &hang));
    ck_assert_int_eq((int)put(hangs, 1000, "", "", 10000), (int)LAC_HANGS_NEW);
    lac_hangs_destroy(hangs);
}
END_TEST

static struct json_object *read_json(const struct lac_hang_verdict *verdict)
{
    static const struct lac_json_limits limits = {.size_bytes_max = 8192, .depth_max = 4};
    static char json[LAC_HANG_JSON_BYTES];
    struct json_object *object = NULL;
    struct lac_error error = {0};

    ck_assert(lac_hang_json(verdict, 8.4, 81, json));
    ck_assert_int_eq((int)lac_json_read(json, strlen(json), &limits, &object, &error), (int)LAC_OK);
    return object;
}

START_TEST(what_a_launcher_sends_is_json_whatever_it_found)
{
    static struct lac_hang_verdict verdict = {.rank = 3};
    struct lac_error error = {0};
    struct json_object *object;
    char text[513];
    int64_t number = 0;

    (void)snprintf(verdict.doing, sizeof(verdict.doing), "rank 3 \"x\\\" \xff\xc3 \xc3\xa4\n\x7f");
    memset(verdict.others, '"', sizeof(verdict.others) - 1); /* each takes two bytes */
    memset(verdict.where, '\\', sizeof(verdict.where) - 1);
    memset(verdict.source, '\xe2', sizeof(verdict.source) - 1);
    object = read_json(&verdict);
    ck_assert_int_eq((int)lac_json_read_text(object, "doing", text, sizeof(text), &error),
                     (int)LAC_OK);
    ck_assert_str_eq(text, "rank 3 \"x\\\" ?? \xc3\xa4  ");
    ck_assert_int_eq((int)lac_json_read_text(object, "others", text, 512, &error), (int)LAC_OK);
    ck_assert_uint_eq(strlen(text), 511);
    ck_assert_int_eq((int)lac_json_read_text(object, "source", text, 256, &error), (int)LAC_OK);
    ck_assert_int_eq((int)lac_json_read_int(object, "steps", &number, &error), (int)LAC_OK);
    ck_assert_int_eq(number, 81);
    ck_assert_int_eq((int)lac_json_read_int(object, "after_s", &number, &error), (int)LAC_OK);
    ck_assert_int_eq(number, 8);
    lac_json_read_done(object);
    memset(&verdict, 0, sizeof(verdict));
    verdict.rank = -1;
    object = read_json(&verdict); /* nothing is known */
    ck_assert_int_eq((int)lac_json_read_text(object, "doing", text, sizeof(text), &error),
                     (int)LAC_OK);
    ck_assert_str_eq(text, "no process trains");
    lac_json_read_done(object);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("hangs");
    TCase *const tests = tcase_create("hangs");

    tcase_add_test(tests, one_for_each_upload_and_once_for_each_run);
    tcase_add_test(tests, who_is_not_heard_of_is_forgotten);
    tcase_add_test(tests, what_a_launcher_sends_is_json_whatever_it_found);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
