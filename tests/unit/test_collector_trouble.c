/*
 * Programs that make a recorder's life hard: limits, closed descriptors, other users, threads by
 * the thousand. The job goes on as if we were not there, and what is lost is counted.
 */
#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "collector/inject/nvtx_abi.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/injected.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALIVE = 42 };

static void push_many(const char *name, int count)
{
    for (int i = 0; i < count; i++) {
        (void)push(name);
        (void)pop();
    }
}

static void check_alive(int status)
{
    ck_assert_msg(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
    ck_assert_int_eq(WEXITSTATUS(status), ALIVE);
}

static void limit(int which, rlim_t soft)
{
    struct rlimit limits;

    ck_assert_int_eq(getrlimit((__rlimit_resource_t)which, &limits), 0);
    limits.rlim_cur = soft;
    ck_assert_int_eq(setrlimit((__rlimit_resource_t)which, &limits), 0);
}

/* ---- limits of the process */

static void job_file_size(void)
{
    limit(RLIMIT_FSIZE, 300 * 1024);
    ck_assert(inject());
    push_many("x", 50000);
    _exit(ALIVE);
}

START_TEST(a_limit_of_file_sizes_is_no_signal_to_the_job)
{
    check_alive(lac_job_run(job_file_size));
    import_ok();
    ck_assert_uint_gt(count_named("x"), 1000);
    ck_assert_uint_eq(count_named("x") + report_count("not_recorded"), 50000);
}
END_TEST

static uint64_t folder_bytes(void)
{
    DIR *const folder = opendir(lac_job_folder());
    uint64_t bytes = 0;

    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        struct stat file;

        if (fstatat(dirfd(folder), entry->d_name, &file, 0) == 0 && S_ISREG(file.st_mode)) {
            bytes += (uint64_t)file.st_size;
        }
    }
    (void)closedir(folder);
    return bytes;
}

static uint64_t mapped_bytes(void)
{
    FILE *const file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    ck_assert_int_eq(fscanf(file, "%lu", &pages), 1);
    (void)fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void job_address_space(void)
{
    const struct timespec pause = {.tv_nsec = 20000000};

    ck_assert(inject());
    push_many("x", 10);
    limit(RLIMIT_AS, mapped_bytes());
    for (int i = 0; i < 30; i++) { /* each time it may try for another segment */
        push_many("x", 3000);
        (void)nanosleep(&pause, NULL);
    }
    _exit(ALIVE);
}

START_TEST(without_address_space_no_disk_is_spent)
{
    check_alive(lac_job_run(job_address_space));
    import_ok();
    ck_assert_uint_gt(report_count("not_recorded"), 0);
    ck_assert_uint_eq(count_named("x") + report_count("not_recorded"), 30 * 3000 + 10);
    ck_assert_uint_lt(folder_bytes(), 5 * 65536 + 1);
}
END_TEST

/* ---- descriptors */

static void job_closed_streams(void)
{
    for (int fd = 0; fd < 3; fd++) {
        (void)close(fd);
    }
    if (!inject()) {
        _exit(1);
    }
    push_many("x", 10);
    for (int fd = 0; fd < 3; fd++) {
        if (write(fd, "of the program", 14) >= 0) {
            _exit(2); /* into our spool */
        }
    }
    _exit(ALIVE);
}

START_TEST(closed_standard_streams_stay_closed)
{
    check_alive(lac_job_run(job_closed_streams));
    import_ok();
    ck_assert_uint_eq(count_named("x"), 10);
}
END_TEST

/* The descriptor of the process's spool, -1 when it has none. */
static int spool_descriptor(void)
{
    char path[64];
    char target[PATH_MAX];

    for (int fd = 0; fd < 1024; fd++) {
        ssize_t length;

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        length = readlink(path, target, sizeof(target) - 1);
        if (length > 6 && memcmp(target + length - 6, ".spool", 6) == 0) {
            return fd;
        }
    }
    return -1;
}

static void job_reuses_descriptor(void)
{
    int fd;
    int status = 0;

    ck_assert(inject());
    push_many("x", 10);
    fd = spool_descriptor();
    ck_assert_int_gt(fd, 2);
    ck_assert_int_eq(dup2(STDIN_FILENO, fd), fd); /* as a program that closes all and opens anew */
    if (fork() == 0) {
        struct stat mine;
        struct stat now;

        ck_assert_int_eq(fstat(STDIN_FILENO, &mine), 0);
        push_many("in a child", 10);
        _exit(fstat(fd, &now) == 0 && now.st_ino == mine.st_ino && now.st_dev == mine.st_dev ? 0
                                                                                             : 1);
    }
    (void)wait(&status);
    push_many("x", 20000);
    _exit(status == 0 ? ALIVE : 1);
}

START_TEST(a_child_closes_no_descriptor_of_the_program)
{
    check_alive(lac_job_run(job_reuses_descriptor));
    import_ok();
    ck_assert_uint_eq(count_named("in a child"), 10);
    ck_assert_uint_eq(count_named("x"), 20010);
}
END_TEST

static void job_broken_stderr(void)
{
    int pipe_ends[2];

    ck_assert_int_eq(pipe(pipe_ends), 0);
    (void)dup2(pipe_ends[1], STDERR_FILENO);
    (void)close(pipe_ends[0]);
    (void)close(pipe_ends[1]);
    (void)setenv("LACUNA_SPOOL", "/nonexistent/folder", 1);
    if (!inject()) {
        _exit(1);
    }
    push_many("x", 10);
    _exit(ALIVE);
}

START_TEST(a_complaint_that_nobody_reads_is_no_signal_to_the_job)
{
    check_alive(lac_job_run(job_broken_stderr));
}
END_TEST

/* ---- folders and users */

static void job_changes_folder(void)
{
    ck_assert_int_eq(chdir(lac_job_folder()), 0);
    (void)setenv("LACUNA_SPOOL", ".", 1);
    ck_assert(inject());
    ck_assert_int_eq(chdir("/"), 0);
    push_many("x", 10);
    if (fork() == 0) {
        push_many("x", 10);
        _exit(0);
    }
    (void)wait(NULL);
    _exit(ALIVE);
}

START_TEST(a_relative_folder_is_the_one_of_the_beginning)
{
    check_alive(lac_job_run(job_changes_folder));
    ck_assert_int_eq(lac_job_spool_count(), 2);
    import_ok();
    ck_assert_uint_eq(count_named("x"), 20);
}
END_TEST

/* A child that cannot reach the spools any more, and one of its own. */
static void lose_two_children(bool (*leave)(void))
{
    ck_assert_int_eq(chmod(lac_job_folder(), 0700), 0);
    ck_assert(inject());
    (void)freopen("/dev/null", "w", stderr);
    push_many("x", 10);
    if (fork() == 0) {
        if (!leave()) {
            _exit(0);
        }
        push_many("lost", 10);
        if (fork() == 0) {
            push_many("lost", 10);
            _exit(0);
        }
        (void)wait(NULL);
        _exit(0);
    }
    (void)wait(NULL);
    push_many("x", 10);
    _exit(ALIVE);
}

static bool become_nobody(void)
{
    return syscall(SYS_setresuid, 65534, 65534, 65534) == 0;
}

static bool go_to_an_empty_root(void)
{
    return chroot("/proc/self/fdinfo") == 0 && chdir("/") == 0;
}

static void job_drops_privileges(void)
{
    lose_two_children(become_nobody);
}

static void job_changes_root(void)
{
    lose_two_children(go_to_an_empty_root);
}

static void check_lost(void (*job)(void))
{
    if (geteuid() != 0) {
        (void)fprintf(stderr, "skip: not root: children cannot change their user or root\n");
        return;
    }
    check_alive(lac_job_run(job));
    import_ok();
    ck_assert_uint_eq(count_named("x"), 20);
    ck_assert_uint_eq(report_count("processes_not_recorded"), 2);
}

START_TEST(children_of_another_user_are_counted_by_their_parent)
{
    check_lost(job_drops_privileges);
}
END_TEST

START_TEST(children_in_another_root_are_counted_by_their_parent)
{
    check_lost(job_changes_root);
}
END_TEST

/* ---- programs one after the other in one process */

static void job_after_exec(const char *library) /* outside libcheck: nothing may be asserted */
{
    if (!inject_from(library)) {
        _exit(1);
    }
    push_many("second program", 3);
    _exit(ALIVE);
}

static void job_executes(void)
{
    ck_assert(inject());
    push_many("first program", 2);
    (void)setenv("TEST_AFTER_EXEC", lac_job_file("liblacuna.so"), 1);
    (void)execl("/proc/self/exe", "again", (char *)NULL);
    _exit(1);
}

START_TEST(a_program_that_executes_another_one_is_recorded_twice)
{
    check_alive(lac_job_run(job_executes));
    ck_assert_int_eq(lac_job_spool_count(), 2);
    import_ok();
    ck_assert_uint_eq(count_named("first program"), 2);
    ck_assert_uint_eq(count_named("second program"), 3);
}
END_TEST

/* ---- threads */

static void *record_once(void *unused)
{
    (void)unused;
    push_many("once", 1);
    return NULL;
}

static void job_short_threads(void)
{
    pthread_attr_t small_stack; /* the sanitizer clears what it knows of a stack at each start */
    pthread_t thread;

    ck_assert(inject());
    (void)pthread_attr_init(&small_stack);
    (void)pthread_attr_setstacksize(&small_stack, 65536);
    for (int i = 0; i < 3000; i++) {
        ck_assert_int_eq(pthread_create(&thread, &small_stack, record_once, NULL), 0);
        (void)pthread_join(thread, NULL);
    }
    _exit(ALIVE);
}

START_TEST(three_thousand_short_threads_share_segments)
{
    check_alive(lac_job_run(job_short_threads));
    import_ok();
    ck_assert_uint_eq(count_named("once"), 3000);
    ck_assert_uint_eq(imported->track_count, 3000);
    ck_assert_uint_eq(report_count("not_recorded"), 0);
    ck_assert_uint_lt(folder_bytes(), 10 * 65536);
}
END_TEST

static pthread_barrier_t all_there;

static void *record_together(void *number)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "thread %d", (int)(intptr_t)number);
    (void)pthread_setname_np(pthread_self(), name);
    push_many("one of many", 2);
    (void)pthread_barrier_wait(&all_there);
    push_many("one of many", 2);
    return NULL;
}

static void job_many_threads(void)
{
    enum { THREADS = 2000 };
    static pthread_t threads[THREADS];
    pthread_attr_t attributes;

    ck_assert(inject());
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, 65536);
    (void)pthread_barrier_init(&all_there, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(
            pthread_create(&threads[i], &attributes, record_together, (void *)(intptr_t)i), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    _exit(ALIVE);
}

START_TEST(two_thousand_threads_at_once_are_recorded_each)
{
    uint64_t named = 0;

    check_alive(lac_job_run(job_many_threads));
    import_ok();
    ck_assert_uint_eq(count_named("one of many"), 8000);
    ck_assert_uint_eq(imported->track_count, 2000);
    ck_assert_uint_eq(report_count("not_recorded"), 0);
    for (uint32_t i = 0; i < imported->track_count; i++) {
        named += strncmp(lac_model_str(imported, imported->tracks[i].name), "thread ", 7) == 0;
    }
    ck_assert_uint_eq(named, 2000);
}
END_TEST

static pthread_key_t late_key;

static void record_late(void *unused)
{
    (void)unused;
    push_many("late", 3000);
}

static void *record_and_end(void *unused)
{
    (void)pthread_setspecific(late_key, &late_key);
    push_many("early", 6000);
    (void)push("left open");
    return unused;
}

static void job_late_destructors(void)
{
    pthread_t thread;

    ck_assert(inject());
    push_many("first", 1);
    (void)pthread_key_create(&late_key, record_late); /* behind the recorder's own */
    (void)pthread_create(&thread, NULL, record_and_end, NULL);
    (void)pthread_join(thread, NULL);
    _exit(ALIVE);
}

START_TEST(what_destructors_of_a_thread_record_comes_behind_the_rest)
{
    int64_t early_end_ns = 0;
    int64_t late_start_ns = INT64_MAX;

    check_alive(lac_job_run(job_late_destructors));
    import_ok();
    ck_assert_uint_eq(count_named("early"), 6000);
    ck_assert_uint_eq(count_named("late"), 3000);
    ck_assert_uint_eq(count_named("left open"), 1);
    ck_assert_uint_eq(report_count("range_ends_alone"), 0);
    for (uint64_t i = 0; i < imported->slices.count; i++) {
        const char *const name = lac_model_str(imported, imported->slices.name[i]);
        const int64_t start_ns = imported->slices.start_ns[i];
        const int64_t end_ns = start_ns + imported->slices.dur_ns[i];

        if (strcmp(name, "late") == 0) {
            late_start_ns = start_ns < late_start_ns ? start_ns : late_start_ns;
            ck_assert_uint_eq(imported->slices.lane[i], 0);
        } else if (strcmp(name, "first") != 0) {
            early_end_ns = end_ns > early_end_ns ? end_ns : early_end_ns;
        }
    }
    ck_assert_int_le(early_end_ns, late_start_ns);
}
END_TEST

/* ---- names */

static void *named_by_another(void *tid)
{
    *(int *)tid = (int)syscall(SYS_gettid);
    push_many("worker", 1);
    return NULL;
}

static void job_names_threads(void)
{
    pthread_t thread;
    int tid = 0;

    ck_assert(inject());
    (void)pthread_create(&thread, NULL, named_by_another, &tid);
    (void)pthread_join(thread, NULL);
    push_many("main", 1);
    ((void (*)(uint32_t, const char *))core[NVTX_CORE_NAME_THREAD_A])((uint32_t)tid, "reader");
    ((void (*)(uint32_t, const char *))core[NVTX_CORE_NAME_THREAD_A])((uint32_t)getpid(), "boss");
    ((void (*)(uint32_t, const char *))core[NVTX_CORE_NAME_THREAD_A])(7, "nobody");
    _exit(ALIVE);
}

static const char *track_of(const char *name)
{
    for (uint64_t i = 0; i < imported->slices.count; i++) {
        if (strcmp(lac_model_str(imported, imported->slices.name[i]), name) == 0) {
            return lac_model_str(imported, imported->tracks[lac_model_track_of(imported, i)].name);
        }
    }
    return "";
}

START_TEST(a_thread_may_be_named_by_another_one)
{
    check_alive(lac_job_run(job_names_threads));
    import_ok();
    ck_assert_str_eq(track_of("worker"), "reader");
    ck_assert_str_eq(track_of("main"), "boss");
    ck_assert_uint_eq(imported->track_count, 2);
}
END_TEST

static void job_many_domains(void)
{
    const struct nvtx_attributes attributes = {.version = 3,
                                               .size = sizeof(attributes),
                                               .color_type = 1,
                                               .color = 0xff00aa11,
                                               .message_type = NVTX_MESSAGE_ASCII,
                                               .message = "plain"};
    char name[32];

    ck_assert(inject());
    (void)((int (*)(const struct nvtx_attributes *))core[NVTX_CORE_PUSH_EX])(&attributes);
    (void)pop();
    for (int i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof(name), "domain %d", i);
        (void)((const void *(*)(const char *))core2[NVTX_CORE2_DOMAIN_CREATE_A])(name);
    }
    _exit(ALIVE);
}

START_TEST(a_domain_too_many_does_not_name_the_default_one)
{
    char args[200];

    check_alive(lac_job_run(job_many_domains));
    import_ok();
    ck_assert_uint_eq(imported->slices.count, 1);
    (void)lac_args_format(imported, 0, args, sizeof(args));
    ck_assert_str_eq(args, "{\"color\":\"#00aa11\"}");
}
END_TEST

static void job_moving_text(void)
{
    char *const text = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert(inject());
    (void)memcpy(text, "in a library", 13);
    push_many(text, 2);
    (void)munmap(text, 4096); /* as dlclose() does */
    ck_assert_ptr_eq(
        mmap(text, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        text);
    (void)memcpy(text, "in another", 11);
    push_many(text, 2);
    (void)memset(text, '\xff', 4095); /* one name that fills its page and is not UTF-8 */
    push_many(text, 2);
    push_many(text + 4000, 1);
    _exit(ALIVE);
}

START_TEST(text_may_go_away_and_come_back_as_another)
{
    check_alive(lac_job_run(job_moving_text));
    import_ok();
    ck_assert_uint_eq(count_named("in a library"), 2);
    ck_assert_uint_eq(count_named("in another"), 2);
    ck_assert_uint_eq(imported->slices.count, 7);
}
END_TEST

static void job_long_names(void)
{
    static char name[10001];

    ck_assert(inject());
    memset(name, 'n', 10000);
    push_many(name, 3);
    name[4096] = '\0';
    push_many(name, 1); /* just as long as a name may be */
    _exit(ALIVE);
}

START_TEST(names_that_are_cut_are_counted)
{
    check_alive(lac_job_run(job_long_names));
    import_ok();
    ck_assert_uint_eq(imported->slices.count, 4);
    ck_assert_uint_eq(report_count("names_cut"), 3);
}
END_TEST

static void job_names_without_room(void)
{
    char name[300];

    (void)setenv("LACUNA_SPOOL_LIMIT", "262144", 1); /* one segment of names */
    ck_assert(inject());
    memset(name, 'n', sizeof(name));
    for (int i = 0; i < 600; i++) {
        (void)snprintf(name, sizeof(name), "%0*d", 290, i);
        push_many(name, 1);
        push_many("x", 1);
    }
    _exit(ALIVE);
}

START_TEST(names_that_have_no_room_are_counted)
{
    check_alive(lac_job_run(job_names_without_room));
    import_ok();
    ck_assert_uint_eq(count_named("x"), 600);
    ck_assert_uint_gt(report_count("names_not_recorded"), 0);
}
END_TEST

/* ---- nesting */

static void job_deep(void)
{
    ck_assert(inject());
    for (int i = 0; i < 5000; i++) {
        (void)push("deep");
    }
    for (int i = 0; i < 5000; i++) {
        (void)pop();
    }
    push_many("after", 1);
    if (fork() == 0) { /* within nothing */
        (void)pop();
        push_many("in a child", 1);
        _exit(0);
    }
    (void)wait(NULL);
    (void)push("around the fork");
    if (fork() == 0) {
        push_many("in a child", 1);
        (void)pop(); /* of the parent's */
        _exit(0);
    }
    (void)wait(NULL);
    (void)pop();
    _exit(ALIVE);
}

START_TEST(nesting_is_kept_or_counted_and_forks_do_not_mix_it_up)
{
    check_alive(lac_job_run(job_deep));
    import_ok();
    ck_assert_uint_eq(count_named("deep") + report_count("not_recorded") + report_count("not_kept"),
                      5000);
    ck_assert_uint_eq(count_named("after"), 1);
    ck_assert_uint_eq(count_named("in a child"), 2);
    ck_assert_uint_eq(count_named("around the fork"), 1);
    ck_assert_uint_eq(report_count("open_ranges"), 0);
    ck_assert_uint_eq(report_count("range_ends_alone"), 0);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("collector_trouble");
    TCase *const tcase = tcase_create("trouble");

    if (getenv("TEST_AFTER_EXEC") != NULL) {
        job_after_exec(getenv("TEST_AFTER_EXEC"));
    }
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, lac_job_setup, lac_job_teardown);
    tcase_add_test(tcase, a_limit_of_file_sizes_is_no_signal_to_the_job);
    tcase_add_test(tcase, without_address_space_no_disk_is_spent);
    tcase_add_test(tcase, closed_standard_streams_stay_closed);
    tcase_add_test(tcase, a_child_closes_no_descriptor_of_the_program);
    tcase_add_test(tcase, a_complaint_that_nobody_reads_is_no_signal_to_the_job);
    tcase_add_test(tcase, a_relative_folder_is_the_one_of_the_beginning);
    tcase_add_test(tcase, children_of_another_user_are_counted_by_their_parent);
    tcase_add_test(tcase, children_in_another_root_are_counted_by_their_parent);
    tcase_add_test(tcase, a_program_that_executes_another_one_is_recorded_twice);
    tcase_add_test(tcase, three_thousand_short_threads_share_segments);
    tcase_add_test(tcase, two_thousand_threads_at_once_are_recorded_each);
    tcase_add_test(tcase, what_destructors_of_a_thread_record_comes_behind_the_rest);
    tcase_add_test(tcase, a_thread_may_be_named_by_another_one);
    tcase_add_test(tcase, a_domain_too_many_does_not_name_the_default_one);
    tcase_add_test(tcase, text_may_go_away_and_come_back_as_another);
    tcase_add_test(tcase, names_that_are_cut_are_counted);
    tcase_add_test(tcase, names_that_have_no_room_are_counted);
    tcase_add_test(tcase, nesting_is_kept_or_counted_and_forks_do_not_mix_it_up);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
