#include "collector/base/count_of.h"
#include "server/http/principal.h"
#include "server/people/password.h"
#include "server/people/people.h"
#include "server/people/throttle.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"
#include "tests/support/catalog_place.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static struct lac_store *store;
static struct lac_people *people;

static void setup(void)
{
    struct lac_error error = {0};

    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    place_catalog(folder);
    const struct lac_store_options options = {.data_dir = folder};

    ck_assert_msg(lac_store_open(&options, &store, &error) == LAC_OK, "%s", error.message);
    ck_assert_int_eq(lac_people_create(store, &people, &error), LAC_OK);
}

static void teardown(void)
{
    char command[128];

    lac_people_destroy(people);
    lac_store_close(store);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

/* -- words ------------------------------------------------------------------------------------- */

START_TEST(names_of_users_and_projects)
{
    static const char *const good[] = {"a", "ann", "Ann.B-c_d@example.org", "9lives"};
    static const char *const bad[] = {"", "local", "-a", ".a", "a b", "a/b", "a\n", "\xc3\xa4"};
    char name[LAC_USER_NAME_MAX + 2];

    for (size_t i = 0; i < LAC_COUNT_OF(good); i++) {
        ck_assert_msg(lac_user_name_is_valid(good[i]), "%s", good[i]);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(bad); i++) {
        ck_assert_msg(!lac_user_name_is_valid(bad[i]), "%s", bad[i]);
    }
    memset(name, 'a', sizeof(name));
    name[LAC_USER_NAME_MAX + 1] = '\0';
    ck_assert(!lac_user_name_is_valid(name));
    name[LAC_USER_NAME_MAX] = '\0';
    ck_assert(lac_user_name_is_valid(name));
    ck_assert(lac_project_name_is_valid("vision 2"));
    ck_assert(!lac_project_name_is_valid("-"));
    ck_assert(!lac_project_name_is_valid(".."));
    ck_assert(!lac_project_name_is_valid("a/b"));
    ck_assert(!lac_project_name_is_valid("a\nb"));
}
END_TEST

START_TEST(roles_and_scopes)
{
    ck_assert_uint_eq(lac_role_rights("read"), LAC_RIGHT_READ | LAC_RIGHT_COMMENT);
    ck_assert_uint_eq(lac_scope_rights("read"), LAC_RIGHT_READ);
    ck_assert_uint_eq(lac_role_rights("admin"), LAC_RIGHTS_ALL);
    ck_assert_uint_eq(lac_role_rights("upload"), 0);
    ck_assert_uint_eq(lac_role_rights(""), 0);
    ck_assert_uint_eq(lac_scope_rights("upload"), LAC_RIGHT_UPLOAD);
    ck_assert_uint_eq(lac_scope_rights("write"),
                      LAC_RIGHT_READ | LAC_RIGHT_COMMENT | LAC_RIGHT_UPLOAD | LAC_RIGHT_WRITE);
    ck_assert_uint_eq(lac_scope_rights("root"), 0);
}
END_TEST

/* -- guessing ---------------------------------------------------------------------------------- */

START_TEST(failures_make_one_wait_longer_each_time)
{
    static struct lac_throttle throttle;
    int64_t now_ms = 1000000;

    for (int i = 0; i < LAC_THROTTLE_FREE; i++) {
        ck_assert_int_eq(lac_throttle_wait_s(&throttle, "name", "ann", now_ms), 0);
        lac_throttle_failed(&throttle, "name", "ann", now_ms);
    }
    ck_assert_int_eq(lac_throttle_wait_s(&throttle, "name", "ann", now_ms), 2);
    ck_assert_int_eq(lac_throttle_wait_s(&throttle, "name", "bob", now_ms), 0);
    ck_assert_int_eq(lac_throttle_wait_s(&throttle, "peer", "ann", now_ms), 0);
    now_ms += 2000;
    ck_assert_int_eq(lac_throttle_wait_s(&throttle, "name", "ann", now_ms), 0);
    lac_throttle_failed(&throttle, "name", "ann", now_ms);
    ck_assert_int_eq(lac_throttle_wait_s(&throttle, "name", "ann", now_ms), 4);
    for (int i = 0; i < 5000; i++) {
        lac_throttle_failed(&throttle, "name", "ann", now_ms);
    }
    ck_assert_int_eq(lac_throttle_wait_s(&throttle, "name", "ann", now_ms),
                     LAC_THROTTLE_WAIT_S_MAX);
    ck_assert_int_eq(lac_throttle_wait_s(&throttle, "name", "ann", now_ms + 3600001), 0);
    lac_throttle_succeeded(&throttle, "name", "ann");
    ck_assert_int_eq(lac_throttle_wait_s(&throttle, "name", "ann", now_ms), 0);
}
END_TEST

START_TEST(a_full_table_forgets_the_oldest)
{
    static struct lac_throttle throttle;
    char word[32];

    for (int n = 0; n < LAC_THROTTLE_WORDS + 1; n++) {
        (void)snprintf(word, sizeof(word), "word%d", n);
        for (int i = 0; i < LAC_THROTTLE_FREE; i++) {
            lac_throttle_failed(&throttle, "name", word, 1000 + n);
        }
    }
    ck_assert_int_eq(lac_throttle_wait_s(&throttle, "name", "word0", 5000), 0);
    (void)snprintf(word, sizeof(word), "word%d", LAC_THROTTLE_WORDS);
    ck_assert_int_gt(lac_throttle_wait_s(&throttle, "name", word, 1000 + LAC_THROTTLE_WORDS), 0);
}
END_TEST

/* -- rights ------------------------------------------------------------------------------------ */

START_TEST(a_token_has_at_most_what_its_maker_has)
{
    struct lac_token_row row = {.label = "t", .scope = "admin", .project = "vision"};
    char secret[LAC_SECRET_TEXT_BYTES];
    struct lac_principal ann;
    struct lac_principal who;
    struct lac_error error = {0};

    ck_assert_int_eq(lac_people_put_user(people, "ann", NULL, false, &error), LAC_OK);
    ck_assert(lac_people_named(people, "ann", &ann));
    ck_assert_uint_eq(lac_people_rights_anywhere(people, &ann), 0);
    ck_assert_int_eq(lac_people_put_member(people, "vision", "ann", "write", &error), LAC_OK);
    ck_assert_uint_eq(lac_people_rights(people, &ann, "vision"), lac_role_rights("write"));
    ck_assert_uint_eq(lac_people_rights(people, &ann, "audio"), 0);
    ck_assert_uint_eq(lac_people_rights(people, &ann, ""), 0);
    ck_assert_int_eq(lac_people_make_token(people, &ann, &row, secret, &error), LAC_OK);
    ck_assert(!lac_people_identify(people, LAC_PROOF_COOKIE, secret, &who));
    ck_assert(lac_people_identify(people, LAC_PROOF_BEARER, secret, &who));
    ck_assert_uint_eq(lac_people_rights(people, &who, "vision"), lac_role_rights("write"));
    ck_assert_int_eq(lac_people_put_member(people, "vision", "ann", "read", &error), LAC_OK);
    ck_assert_uint_eq(lac_people_rights(people, &who, "vision"), lac_role_rights("read"));
    ck_assert_int_eq(lac_people_put_settings(people, "audio", "write", "", &error), LAC_OK);
    ck_assert_uint_eq(lac_people_rights(people, &ann, "audio"), lac_role_rights("write"));
    ck_assert_uint_eq(lac_people_rights(people, &who, "audio"), 0);
    ck_assert_int_eq(lac_people_remove_user(people, "ann", &error), LAC_OK);
    ck_assert(!lac_people_identify(people, LAC_PROOF_BEARER, secret, &who));
}
END_TEST

START_TEST(a_token_ends_when_it_expires)
{
    struct lac_token_row row = {.label = "t", .scope = "read", .expires_unix_ms = 1000};
    const struct lac_principal key = {.kind = LAC_PRINCIPAL_KEY,
                                      .name = "local",
                                      .scope = LAC_RIGHTS_ALL,
                                      .is_service_admin = true};
    char secret[LAC_SECRET_TEXT_BYTES];
    struct lac_principal who;
    struct lac_error error = {0};

    ck_assert_int_eq(lac_people_make_token(people, &key, &row, secret, &error), LAC_OK);
    ck_assert(!lac_people_identify(people, LAC_PROOF_BEARER, secret, &who));
    row.expires_unix_ms = 0;
    ck_assert_int_eq(lac_people_make_token(people, &key, &row, secret, &error), LAC_OK);
    ck_assert(lac_people_identify(people, LAC_PROOF_BEARER, secret, &who));
    ck_assert_uint_eq(lac_people_rights(people, &who, "any"), LAC_RIGHT_READ);
    secret[0] = secret[0] == 'a' ? 'b' : 'a';
    ck_assert(!lac_people_identify(people, LAC_PROOF_BEARER, secret, &who));
}
END_TEST

START_TEST(signing_in)
{
    char first[LAC_SECRET_TEXT_BYTES];
    char second[LAC_SECRET_TEXT_BYTES];
    struct lac_principal who;
    struct lac_error error = {0};

    ck_assert_int_eq(lac_people_put_user(people, "ann", "short", false, &error), LAC_ERR_MISUSE);
    ck_assert_int_eq(lac_people_put_user(people, "ann", "long enough", true, &error), LAC_OK);
    ck_assert_int_eq(lac_people_sign_in(people, "ann", "wrong one", "", first, &who, &error),
                     LAC_ERR_NOT_FOUND);
    ck_assert_int_eq(lac_people_sign_in(people, "ann", "long enough", "", first, &who, &error),
                     LAC_OK);
    ck_assert(who.is_service_admin);
    ck_assert_int_eq(lac_people_sign_in(people, "ann", "long enough", "", second, &who, &error),
                     LAC_OK);
    ck_assert_str_ne(first, second);
    ck_assert(!lac_people_identify(people, LAC_PROOF_BEARER, first, &who));
    ck_assert(lac_people_identify(people, LAC_PROOF_COOKIE, first, &who));
    ck_assert_int_eq(lac_people_sign_out(people, first, &error), LAC_OK);
    ck_assert(!lac_people_identify(people, LAC_PROOF_COOKIE, first, &who));
    ck_assert(lac_people_identify(people, LAC_PROOF_COOKIE, second, &who));
    ck_assert_int_eq(lac_people_put_user(people, "ann", "another one", true, &error), LAC_OK);
    ck_assert(!lac_people_identify(people, LAC_PROOF_COOKIE, second, &who));
    /* a user without a password cannot sign in with an empty one */
    ck_assert_int_eq(lac_people_put_user(people, "bob", NULL, false, &error), LAC_OK);
    ck_assert_int_eq(lac_people_sign_in(people, "bob", "", "", first, &who, &error),
                     LAC_ERR_NOT_FOUND);
}
END_TEST

START_TEST(whom_another_process_adds_signs_in_at_once)
{
    const struct lac_store_options options = {.data_dir = folder};
    struct lac_store *other = NULL;
    struct lac_people *admin = NULL;
    char secret[LAC_SECRET_TEXT_BYTES];
    struct lac_principal who;
    struct lac_error error = {0};

    ck_assert_int_eq(lac_store_open(&options, &other, &error), LAC_OK);
    ck_assert_int_eq(lac_people_create(other, &admin, &error), LAC_OK);
    ck_assert_int_eq(lac_people_put_user(admin, "ann", "long enough", false, &error), LAC_OK);
    ck_assert_int_eq(lac_people_sign_in(people, "ann", "long enough", "", secret, &who, &error),
                     LAC_OK);
    ck_assert_int_eq(lac_people_put_user(admin, "ann", "another one", false, &error), LAC_OK);
    ck_assert_int_eq(lac_people_sign_in(people, "ann", "long enough", "", secret, &who, &error),
                     LAC_ERR_NOT_FOUND);
    ck_assert_int_eq(lac_people_put_user(admin, "bob", NULL, false, &error), LAC_OK);
    ck_assert_int_eq(lac_people_sign_in_named(people, "bob", secret, &who, &error), LAC_OK);
    lac_people_destroy(admin);
    lac_store_close(other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("people");
    TCase *tcase = tcase_create("people");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, names_of_users_and_projects);
    tcase_add_test(tcase, roles_and_scopes);
    tcase_add_test(tcase, failures_make_one_wait_longer_each_time);
    tcase_add_test(tcase, a_full_table_forgets_the_oldest);
    tcase_add_test(tcase, a_token_has_at_most_what_its_maker_has);
    tcase_add_test(tcase, a_token_ends_when_it_expires);
    tcase_add_test(tcase, signing_in);
    tcase_add_test(tcase, whom_another_process_adds_signs_in_at_once);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
