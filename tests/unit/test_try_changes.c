/* The changes that `lacuna try` takes. */

#include "collector/base/count_of.h"
#include "server/cli/try/try_changes.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdbool.h>
#include <string.h>

static struct lac_try_changes changes;
static struct lac_error error;

static bool is_refused(const char *text, const char *why)
{
    memset(&error, 0, sizeof(error));
    return lac_try_changes_parse(text, &changes, &error) == LAC_ERR_MISUSE &&
           strstr(error.message, why) != NULL;
}

START_TEST(changes_are_kept_as_the_hook_reads_them)
{
    ck_assert_int_eq(lac_try_changes_parse("workers=7,pinned=1", &changes, &error), LAC_OK);
    ck_assert_str_eq(changes.text, "workers=7,pinned=1");
    ck_assert_str_eq(changes.what_if, "workers=7,pinned=1");
    ck_assert_uint_eq(changes.count, 2);
    ck_assert_int_eq(changes.threads, 0);
    ck_assert_int_eq(lac_try_changes_parse("threads=4,prefetch=8,persistent=0,batch=cached,tf32=1,"
                                           "cudnn_benchmark=0,optimizer=fused,workers=0,pinned=0",
                                           &changes, &error),
                     LAC_OK);
    ck_assert_uint_eq(changes.count, 9);
    ck_assert_int_eq(changes.threads, 4);
}
END_TEST

START_TEST(a_replay_answers_for_all_changes_or_for_none)
{
    static const char *const unpredictable[] = {"workers=7,tf32=1", "pinned=0", "batch=cached",
                                                "prefetch=8"};
    for (size_t i = 0; i < LAC_COUNT_OF(unpredictable); i++) {
        ck_assert_int_eq(lac_try_changes_parse(unpredictable[i], &changes, &error), LAC_OK);
        ck_assert_str_eq(changes.what_if, "");
    }
}
END_TEST

START_TEST(what_is_wrong_is_said)
{
    ck_assert(is_refused("", "KEY=VALUE"));
    ck_assert(is_refused("workers", "KEY=VALUE"));
    ck_assert(is_refused("workers=7,", "KEY=VALUE"));
    ck_assert(is_refused("workers=", "a number from 0 to 4096"));
    ck_assert(is_refused("workers=-1", "a number from 0 to 4096"));
    ck_assert(is_refused("workers=4097", "a number from 0 to 4096"));
    ck_assert(is_refused("workers=99999999999999999999", "a number from 0 to 4096"));
    ck_assert(is_refused("workers=7x", "a number from 0 to 4096"));
    ck_assert(is_refused("prefetch=0", "a number from 1 to 1024"));
    ck_assert(is_refused("pinned=yes", "a number from 0 to 1"));
    ck_assert(is_refused("optimizer=", "foreach|fused"));
    ck_assert(is_refused("optimizer=fore", "foreach|fused"));
    ck_assert(is_refused("optimizer=foreach|fused", "foreach|fused"));
    ck_assert(is_refused("batch=cache", "batch must be cached"));
    ck_assert(is_refused("workers=1,workers=2", "given twice"));
    ck_assert(is_refused("colour=red", "unknown change; there are: workers=N"));
    char many[4 * LAC_TRY_TEXT_BYTES];
    memset(many, 'x', sizeof(many));
    many[sizeof(many) - 1] = '\0';
    ck_assert(is_refused(many, "too many"));
}
END_TEST

START_TEST(what_needs_the_script_names_its_line)
{
    ck_assert(is_refused("async=1", "lacuna explain blocking-copy"));
    ck_assert(is_refused("layout=nhwc", "channels_last"));
    ck_assert(is_refused("compile=1", "torch.compile(model)"));
    ck_assert(is_refused("workers=2,sync=0", "lacuna explain sync-stall"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("try_changes");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, changes_are_kept_as_the_hook_reads_them);
    tcase_add_test(tcase, a_replay_answers_for_all_changes_or_for_none);
    tcase_add_test(tcase, what_is_wrong_is_said);
    tcase_add_test(tcase, what_needs_the_script_names_its_line);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
