/* Documents that were computed: found by key and stamp, replaced, and forgotten oldest first. */

#include "server/api/document_cache.h"
#include "server/base/buffer.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct lac_document_cache *cache;

static void setup(void)
{
    cache = lac_document_cache_create(100);
    ck_assert_ptr_nonnull(cache);
}

static void teardown(void)
{
    lac_document_cache_destroy(cache);
}

static void put(const char *key, const char *stamp, const char *text)
{
    lac_document_cache_put(cache, key, stamp, text, strlen(text));
}

static void require(const char *key, const char *stamp, const char *text)
{
    struct lac_buffer out = {0};

    ck_assert_int_eq(lac_document_cache_get(cache, key, stamp, &out), text != NULL);
    ck_assert_str_eq(out.bytes != NULL ? out.bytes : "", text != NULL ? text : "");
    lac_buffer_done(&out);
}

START_TEST(a_document_is_found_by_its_key_and_its_stamp)
{
    require("run a", "1", NULL);
    put("run a", "1", "first");
    require("run a", "1", "first");
    require("run a", "2", NULL);
    require("run b", "1", NULL);
    require("", "", NULL);
}
END_TEST

START_TEST(another_stamp_replaces_it)
{
    put("run a", "1", "first");
    put("run a", "2", "second");
    require("run a", "1", NULL);
    require("run a", "2", "second");
}
END_TEST

START_TEST(what_was_not_used_for_longest_goes_first)
{
    char text[41];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    put("a", "1", text);
    put("b", "1", text);
    require("a", "1", text);
    put("c", "1", text);
    require("b", "1", NULL);
    require("a", "1", text);
    require("c", "1", text);
}
END_TEST

START_TEST(what_is_larger_than_the_cache_pushes_nothing_out)
{
    char text[102];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    put("a", "1", "small");
    put("b", "1", text);
    require("a", "1", "small");
    require("b", "1", NULL);
}
END_TEST

START_TEST(many_small_ones_push_each_other_out)
{
    char key[16];

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof(key), "key %d", i);
        put(key, "1", "");
    }
    require("key 999", "1", "");
    require("key 0", "1", NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("document_cache");
    TCase *tests = tcase_create("cache");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_document_is_found_by_its_key_and_its_stamp);
    tcase_add_test(tests, another_stamp_replaces_it);
    tcase_add_test(tests, what_was_not_used_for_longest_goes_first);
    tcase_add_test(tests, what_is_larger_than_the_cache_pushes_nothing_out);
    tcase_add_test(tests, many_small_ones_push_each_other_out);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
