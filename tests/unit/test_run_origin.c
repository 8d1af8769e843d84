/* Who started a run, and of which commit: repositories of every shape, written by hand. */

#include "collector/base/count_of.h"
#include "collector/sample/run_origin.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ONE   "0123456789abcdef0123456789abcdef01234567"
#define OTHER "89abcdef0123456789abcdef0123456789abcdef"
#define LONG  ONE "0123456789abcdef01234567"

static char root[64];

static void make_root(void)
{
    (void)snprintf(root, sizeof(root), "/tmp/lacuna-origin-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void remove_root(void)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

/** A file, with the folders that it needs. */
static void put(const char *name, const char *text)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s", path_of(name));
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert(fputs(text, file) >= 0);
    ck_assert_int_eq(fclose(file), 0);
}

/** @param want NULL: none */
static void expect(const char *folder, const char *want)
{
    char commit[LAC_COMMIT_BYTES];

    ck_assert_msg(lac_run_commit_of(path_of(folder), commit) == (want != NULL), "%s: %s", folder,
                  commit);
    if (want != NULL) {
        ck_assert_str_eq(commit, want);
    }
}

START_TEST(a_branch_is_loose_or_packed)
{
    static const char packed[] = "# pack-refs with: peeled fully-peeled sorted\n" OTHER
                                 " refs/heads/feature/topic2\n" ONE " refs/heads/feature/topic\n";

    put("a/.git/HEAD", "ref: refs/heads/main\n");
    put("a/.git/refs/heads/main", ONE "\n");
    put("a/deep/inside/file", "");
    expect("a/deep/inside", ONE);
    put("b/.git/HEAD", "ref: refs/heads/feature/topic\r\n");
    put("b/.git/packed-refs", packed);
    expect("b", ONE);
    put("b/.git/refs/heads/feature/topic", LONG "\n");
    expect("b", LONG);
    put("c/.git/HEAD", OTHER "\n");
    expect("c", OTHER);
}
END_TEST

START_TEST(packed_references_may_be_many)
{
    const size_t room = (size_t)4 << 20;
    char *text = malloc(room);
    size_t used = 0;

    ck_assert_ptr_nonnull(text);
    for (int i = 0; i < 40000; i++) {
        used += (size_t)snprintf(text + used, room - used, "%s refs/tags/release-%d\n", OTHER, i);
    }
    (void)snprintf(text + used, room - used, "%s refs/heads/main", ONE); /* the last has no end */
    put("a/.git/HEAD", "ref: refs/heads/main\n");
    put("a/.git/packed-refs", text);
    expect("a", NULL);
    (void)snprintf(text + used, room - used, "%s refs/heads/main\n", ONE);
    put("a/.git/packed-refs", text);
    expect("a", ONE);
    memset(text, 'a', (size_t)1 << 20);
    text[(size_t)1 << 20] = '\0';
    put("a/.git/packed-refs", text);
    expect("a", NULL);
    free(text);
}
END_TEST

START_TEST(worktrees_and_submodules_say_where_their_repository_is)
{
    put("main/.git/HEAD", "ref: refs/heads/main\n");
    put("main/.git/refs/heads/main", OTHER "\n");
    put("main/.git/refs/heads/topic", ONE "\n");
    put("main/.git/worktrees/topic/HEAD", "ref: refs/heads/topic\n");
    put("main/.git/worktrees/topic/commondir", "../..\n");
    put("topic/.git", "gitdir: ../main/.git/worktrees/topic\n");
    expect("topic", ONE);
    put("main/.git/modules/part/HEAD", LONG "\n");
    put("main/part/.git", "gitdir: ../.git/modules/part\n");
    expect("main/part", LONG);
    expect("main", OTHER);
}
END_TEST

START_TEST(what_is_no_repository_names_no_commit)
{
    static const char upper[] = "ABCDEF\n";
    static const char longer[] = ONE "x\n";
    static const char *const heads[] = {"",
                                        "ref: ",
                                        "ref: refs/heads/none\n",
                                        "ref: /etc/passwd\n",
                                        "ref: refs/../../../secret\n",
                                        "0123",
                                        longer,
                                        upper};

    put("secret", ONE "\n");
    put("plain/file", "");
    expect("plain", NULL);
    for (size_t i = 0; i < LAC_COUNT_OF(heads); i++) {
        put("a/.git/HEAD", heads[i]);
        expect("a", NULL);
    }
    put("b/.git", "gitdir: /nowhere/at/all\n");
    expect("b", NULL);
    /* a new repository inside of another has no commit: the outer one's is not what runs */
    put("outer/.git/HEAD", ONE "\n");
    put("outer/new/.git/HEAD", "ref: refs/heads/main\n");
    expect("outer/new", NULL);
    put("outer/lost/.git", "gitdir: /nowhere/at/all\n");
    expect("outer/lost", NULL);
    put("outer/empty/.git/file", ""); /* git looks further, too */
    expect("outer/empty", ONE);
    put("c/.git", "something else\n");
    expect("c", NULL);
    put("d/.git/file", "");
    ck_assert_int_eq(mkfifo(path_of("d/.git/HEAD"), 0600), 0); /* nobody writes: it must not wait */
    expect("d", NULL);
}
END_TEST

START_TEST(variables_say_what_files_do_not)
{
    char commit[LAC_COMMIT_BYTES];

    ck_assert_int_eq(chdir(root), 0);
    ck_assert_int_eq(unsetenv("LACUNA_COMMIT") | unsetenv("GITHUB_SHA") |
                         unsetenv("CI_COMMIT_SHA") | setenv("GIT_COMMIT", "main", 1),
                     0);
    ck_assert(!lac_run_commit(commit));
    ck_assert_int_eq(setenv("CI_COMMIT_SHA", OTHER, 1), 0);
    ck_assert(lac_run_commit(commit));
    ck_assert_str_eq(commit, OTHER);
    put(".git/HEAD", ONE "\n");
    ck_assert(lac_run_commit(commit));
    ck_assert_str_eq(commit, ONE);
    ck_assert_int_eq(setenv("LACUNA_COMMIT", LONG, 1), 0);
    ck_assert(lac_run_commit(commit));
    ck_assert_str_eq(commit, LONG);
    ck_assert_int_eq(unsetenv("LACUNA_PERSON") | unsetenv("SLURM_JOB_USER") |
                         setenv("USER", "root", 1) | setenv("LOGNAME", "kim", 1),
                     0);
    ck_assert_str_eq(lac_run_person(), "kim");
    ck_assert_int_eq(setenv("SLURM_JOB_USER", "ana", 1), 0);
    ck_assert_str_eq(lac_run_person(), "ana");
    ck_assert_int_eq(setenv("LACUNA_PERSON", "root", 1), 0);
    ck_assert_str_eq(lac_run_person(), "root");
    ck_assert_int_eq(unsetenv("LACUNA_PERSON") | unsetenv("SLURM_JOB_USER") | unsetenv("LOGNAME"),
                     0);
    ck_assert_str_eq(lac_run_person(), "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run_origin");
    TCase *tests = tcase_create("run_origin");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, make_root, remove_root);
    tcase_add_test(tests, a_branch_is_loose_or_packed);
    tcase_add_test(tests, packed_references_may_be_many);
    tcase_add_test(tests, worktrees_and_submodules_say_where_their_repository_is);
    tcase_add_test(tests, what_is_no_repository_names_no_commit);
    tcase_add_test(tests, variables_say_what_files_do_not);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
