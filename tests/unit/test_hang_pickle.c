/* collector/hang: pickles of protocols 2 to 5 as plain values, and bytes that are none. */

#include "collector/base/count_of.h"
#include "collector/base/io_full.h"
#include "collector/hang/hang_pickle.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST = 2, PROTOCOLS = 6, BYTES_MAX = 65536, VALUES_MAX = 10000 };

static char bytes[BYTES_MAX];

static size_t load(const char *name)
{
    char path[128];
    int fd;
    int64_t size;

    (void)snprintf(path, sizeof(path), "tests/fuzz/corpus/hang_pickle/%s", name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    size = lac_read_full(fd, bytes, sizeof(bytes));
    (void)close(fd);
    ck_assert_int_gt(size, 0);
    return (size_t)size;
}

static const struct lac_hang_value *nth(const struct lac_hang_value *of, unsigned n)
{
    const struct lac_hang_item *item = of->items;

    while (n-- > 0 && item != NULL) {
        item = item->next;
    }
    ck_assert_ptr_nonnull(item);
    return item->value;
}

static void check_entry(const struct lac_hang_value *entry, int64_t id)
{
    const struct lac_hang_value *const group = lac_hang_value_get(entry, "process_group");
    const struct lac_hang_value *const sizes = lac_hang_value_get(entry, "sizes");

    ck_assert_int_eq(lac_hang_value_integer(lac_hang_value_get(entry, "record_id"), -1), id);
    ck_assert(lac_hang_value_is_text(lac_hang_value_get(entry, "state"),
                                     id > 0 ? "completed" : "started"));
    ck_assert_int_eq(lac_hang_value_integer(lac_hang_value_get(entry, "big"), 0),
                     (INT64_C(1) << 40) + id);
    ck_assert_int_eq(lac_hang_value_integer(lac_hang_value_get(entry, "neg"), 0), -3);
    ck_assert_int_eq(lac_hang_value_integer(lac_hang_value_get(entry, "yes"), 0), 1);
    ck_assert_int_eq((int)lac_hang_value_get(entry, "yes")->kind, (int)LAC_HANG_VALUE_BOOL);
    ck_assert_int_eq((int)lac_hang_value_get(entry, "none")->kind, (int)LAC_HANG_VALUE_NONE);
    ck_assert_double_eq(lac_hang_value_get(entry, "real")->real, 1.5);
    ck_assert_int_eq((int)group->kind, (int)LAC_HANG_VALUE_TUPLE);
    ck_assert(lac_hang_value_is_text(nth(group, 1), "default_pg"));
    ck_assert_uint_eq(sizes->item_count, 2);
    ck_assert_int_eq(lac_hang_value_integer(nth(nth(sizes, 0), 1), 0), 3);
}

START_TEST(every_protocol_gives_the_same_values)
{
    char name[32];
    size_t at = 0;
    size_t size;
    struct lac_hang_pickle *pickle;
    const struct lac_hang_value *root;

    (void)snprintf(name, sizeof(name), "protocol-%d", _i);
    size = load(name);
    pickle = lac_hang_pickle_read(bytes, size, VALUES_MAX, NULL, &at);
    ck_assert_ptr_nonnull(pickle);
    ck_assert_uint_eq(at, size);
    root = lac_hang_pickle_root(pickle);
    for (unsigned i = 0; i < 2; i++) {
        check_entry(nth(lac_hang_value_get(root, "entries"), i), (int64_t)i);
    }
    ck_assert(lac_hang_value_is_text(lac_hang_value_get(root, "text"), "\u00e9\n\\\u20ac"));
    ck_assert_double_eq(lac_hang_value_get(root, "long")->real, -1180591620717411303424.0);
    ck_assert_ptr_null(lac_hang_value_get(root, "nothing"));
    ck_assert_ptr_null(lac_hang_value_get(NULL, "nothing"));
    lac_hang_pickle_free(pickle);
}
END_TEST

START_TEST(a_list_may_hold_itself)
{
    const size_t size = load("circle");
    struct lac_hang_pickle *const pickle =
        lac_hang_pickle_read(bytes, size, VALUES_MAX, NULL, NULL);
    const struct lac_hang_value *list;

    ck_assert_ptr_nonnull(pickle);
    list = lac_hang_value_get(lac_hang_pickle_root(pickle), "l");
    ck_assert_ptr_eq(nth(list, 0), list);
    lac_hang_pickle_free(pickle);
}
END_TEST

/* A list of numbers, as PyTorch's C++ code may write it: a call that returns its argument. */
START_TEST(a_call_is_its_arguments)
{
    static const char list[] = "\x80\x02"
                               "ctorch.jit._pickle\nbuild_intlist\n](K\x05K\x06"
                               "e\x85R.";
    struct lac_hang_pickle *const pickle =
        lac_hang_pickle_read(list, sizeof(list) - 1, VALUES_MAX, NULL, NULL);

    ck_assert_ptr_nonnull(pickle);
    ck_assert_int_eq(lac_hang_value_integer(nth(nth(lac_hang_pickle_root(pickle), 0), 1), 0), 6);
    lac_hang_pickle_free(pickle);
}
END_TEST

START_TEST(an_object_is_refused)
{
    const size_t size = load("object");
    const char *why = NULL;

    ck_assert_ptr_null(lac_hang_pickle_read(bytes, size, VALUES_MAX, &why, NULL));
    ck_assert_ptr_nonnull(why);
}
END_TEST

/* The byte just before the place that is told must be in the bytes, however they are cut. */
START_TEST(a_cut_pickle_is_refused_with_a_reason)
{
    char name[32];
    size_t size;

    (void)snprintf(name, sizeof(name), "protocol-%d", _i);
    size = load(name);
    for (size_t cut = 0; cut < size; cut++) {
        char *const part = malloc(cut > 0 ? cut : 1);
        const char *why = NULL;
        size_t at = SIZE_MAX;

        ck_assert_ptr_nonnull(part);
        memcpy(part, bytes, cut);
        ck_assert_ptr_null(lac_hang_pickle_read(part, cut, VALUES_MAX, &why, &at));
        ck_assert_ptr_nonnull(why);
        ck_assert_uint_le(at, cut);
        free(part);
    }
}
END_TEST

#define BAD(TEXT)                                                                                  \
    {                                                                                              \
        TEXT, sizeof(TEXT) - 1                                                                     \
    }

static const struct {
    const char *text;
    size_t size;
} bad[] = {
    BAD("."),       /* nothing to return */
    BAD("(."),      /* a mark is no value */
    BAD("(K\x01."), /* a mark is left */
    BAD("K\x01"
        "a."), /* nothing to append to */
    BAD("K\x01K\x02"
        "a."),                  /* to a number */
    BAD("}(K\x01u."),           /* a key alone */
    BAD("(e."),                 /* below the mark is nothing */
    BAD("t."),                  /* no mark */
    BAD("h\x05."),              /* never kept */
    BAD("Nr\xff\xff\xff\xff."), /* kept far away */
    BAD("X\xff\xff\xff\xff"
        "ab."), /* longer than all bytes */
    BAD("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
        "ab."),
    BAD("\x95\xff\xff\xff\xff\xff\xff\xff\xffN."),
    BAD("\x80\x06N."), /* a later protocol */
    BAD("\x85."),      /* a tuple of nothing */
    BAD("(R."),        /* a call below a mark */
    BAD("cab\nc"),     /* a line that does not end */
    BAD("\xff."),      /* no instruction */
    BAD("N"),          /* no end */
};

START_TEST(bytes_that_make_no_sense_are_refused)
{
    const char *why = NULL;

    ck_assert_ptr_null(lac_hang_pickle_read(bad[_i].text, bad[_i].size, VALUES_MAX, &why, NULL));
    ck_assert_ptr_nonnull(why);
}
END_TEST

START_TEST(more_values_than_allowed_are_refused)
{
    const size_t size = load("protocol-4");
    const char *why = NULL;

    ck_assert_ptr_null(lac_hang_pickle_read(bytes, size, 20, &why, NULL));
    ck_assert_str_eq(why, "it holds too many values");
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("hang_pickle");
    TCase *const tcase = tcase_create("all");

    tcase_add_loop_test(tcase, every_protocol_gives_the_same_values, FIRST, PROTOCOLS);
    tcase_add_test(tcase, a_list_may_hold_itself);
    tcase_add_test(tcase, a_call_is_its_arguments);
    tcase_add_test(tcase, an_object_is_refused);
    tcase_add_loop_test(tcase, a_cut_pickle_is_refused_with_a_reason, FIRST, PROTOCOLS);
    tcase_add_loop_test(tcase, bytes_that_make_no_sense_are_refused, 0, LAC_COUNT_OF(bad));
    tcase_add_test(tcase, more_values_than_allowed_are_refused);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
