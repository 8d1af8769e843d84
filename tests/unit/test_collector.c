/*
 * The real liblacuna.so, loaded the way NVTX loads it: each test forks a process that plays the
 * job, lets it end in its own way, then imports the spools that it left.
 */
#include "analysis/model/args.h"
#include "collector/base/count_of.h"
#include "collector/inject/nvtx_abi.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/injected.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

/* ---- tests */

static void *record_thread(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20000; i++) { /* more than one segment */
        (void)push("outer");
        (void)push("inner");
        (void)pop();
        (void)pop();
    }
    return NULL;
}

static void job_threads(void)
{
    pthread_t threads[4];

    ck_assert(inject());
    for (int i = 0; i < 4; i++) {
        (void)pthread_create(&threads[i], NULL, record_thread, NULL);
    }
    for (int i = 0; i < 4; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

START_TEST(every_range_of_every_thread_is_kept_and_nested)
{
    ck_assert_int_eq(lac_job_run(job_threads), 0);
    import_ok();
    ck_assert_uint_eq(count_named("outer"), 80000);
    ck_assert_uint_eq(count_named("inner"), 80000);
    ck_assert_uint_eq(imported->track_count, 4);
    for (uint64_t i = 0; i < imported->slices.count; i++) {
        const bool inner = strcmp(lac_model_str(imported, imported->slices.name[i]), "inner") == 0;

        ck_assert_uint_eq(imported->slices.lane[i], inner ? 1 : 0);
    }
    ck_assert_uint_eq(imported->info.dropped_count, 0);
}
END_TEST

static void job_killed(void)
{
    ck_assert(inject());
    for (int i = 0; i < 5000; i++) {
        (void)push("step");
        (void)pop();
    }
    (void)push("last words");
    (void)kill(getpid(), SIGKILL);
}

START_TEST(sigkill_loses_nothing_that_was_recorded)
{
    ck_assert(WIFSIGNALED(lac_job_run(job_killed)));
    import_ok();
    ck_assert_uint_eq(count_named("step"), 5000);
    ck_assert_uint_eq(count_named("last words"), 1);
    ck_assert_uint_eq(report_count("open_ranges"), 1);
}
END_TEST

static void job_forks(void)
{
    ck_assert(inject());
    (void)push("parent");
    for (int i = 0; i < 8; i++) {
        if (fork() == 0) {
            (void)push("batch");
            (void)pop();
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
    (void)pop();
}

START_TEST(forked_children_write_spools_of_their_own)
{
    ck_assert_int_eq(lac_job_run(job_forks), 0);
    ck_assert_int_eq(lac_job_spool_count(), 9);
    import_ok();
    ck_assert_uint_eq(count_named("parent"), 1);
    ck_assert_uint_eq(count_named("batch"), 8);
    ck_assert_uint_eq(imported->process_count, 9);
}
END_TEST

static void job_quiet_children(void)
{
    ck_assert(inject());
    (void)push("parent");
    for (int i = 0; i < 200; i++) {
        const pid_t pid = fork();

        if (pid == 0) {
            _exit(0);
        }
        (void)waitpid(pid, NULL, 0);
    }
    (void)pop();
}

START_TEST(two_hundred_children_that_record_nothing_leave_no_file)
{
    ck_assert_int_eq(lac_job_run(job_quiet_children), 0);
    ck_assert_int_eq(lac_job_spool_count(), 1);
}
END_TEST

static void job_raw_clone(void)
{
    pid_t pid;

    ck_assert(inject());
    (void)push("parent");
    pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        (void)push("clone");
        (void)pop();
        _exit(0);
    }
    (void)waitpid(pid, NULL, 0);
    (void)pop();
}

START_TEST(a_raw_clone_is_noticed_without_atfork_handlers)
{
    ck_assert_int_eq(lac_job_run(job_raw_clone), 0);
    ck_assert_int_eq(lac_job_spool_count(), 2);
    import_ok();
    ck_assert_uint_eq(count_named("clone"), 1);
    ck_assert_uint_eq(count_named("parent"), 1);
}
END_TEST

static uint64_t range_started_elsewhere;

static void *start_range(void *unused)
{
    (void)unused;
    range_started_elsewhere = ((uint64_t(*)(const char *))core[NVTX_CORE_START_A])("wandering");
    return NULL;
}

static void job_start_end(void)
{
    pthread_t thread;

    ck_assert(inject());
    (void)pthread_create(&thread, NULL, start_range, NULL);
    (void)pthread_join(thread, NULL);
    ((void (*)(uint64_t))core[NVTX_CORE_END])(range_started_elsewhere);
}

START_TEST(a_range_may_end_on_another_thread)
{
    ck_assert_int_eq(lac_job_run(job_start_end), 0);
    import_ok();
    ck_assert_uint_eq(count_named("wandering"), 1);
    ck_assert_uint_eq(report_count("open_ranges"), 0);
    ck_assert_int_eq(imported->tracks[lac_model_track_of(imported, 0)].kind, LAC_TRACK_ASYNC);
}
END_TEST

static void job_size_limit(void)
{
    (void)setenv("LACUNA_SPOOL_LIMIT", "262144", 1); /* three segments, one of them for names */
    ck_assert(inject());
    for (int i = 0; i < 20000; i++) {
        (void)push("x");
        (void)pop();
    }
}

START_TEST(what_exceeds_the_size_limit_is_counted)
{
    uint64_t recorded;

    ck_assert_int_eq(lac_job_run(job_size_limit), 0);
    import_ok();
    recorded = count_named("x");
    ck_assert_uint_gt(recorded, 1000);
    ck_assert_uint_lt(recorded, 20000);
    ck_assert_uint_gt(report_count("not_recorded"), 0);
    /* every push is either recorded or counted; its pop is only attempted when it was recorded */
    ck_assert_uint_ge(recorded + report_count("not_recorded"), 20000 - 3);
}
END_TEST

static void job_names(void)
{
    char name[64];
    const wchar_t wide[] = {L'l', 0xe4, L'n', L'g', 0x1f600, 0};
    char *const monster = calloc(1, 100001);

    ck_assert(inject());
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(name, sizeof(name), "layer %d", i);
        (void)push(name);
        (void)pop();
    }
    (void)((int (*)(const wchar_t *))core[NVTX_CORE_PUSH_W])(wide);
    (void)pop();
    (void)push(NULL);
    (void)pop();
    (void)push("");
    (void)pop();
    memset(monster, 'm', 100000);
    (void)push(monster);
    (void)pop();
    free(monster);
}

START_TEST(ten_thousand_names_and_odd_ones_are_kept)
{
    ck_assert_int_eq(lac_job_run(job_names), 0);
    import_ok();
    ck_assert_uint_eq(count_named("layer 0"), 1);
    ck_assert_uint_eq(count_named("layer 9999"), 1);
    ck_assert_uint_eq(count_named("l\xc3\xa4ng\xf0\x9f\x98\x80"), 1);
    ck_assert_uint_eq(imported->slices.count, 10004);
    ck_assert_uint_eq(imported->info.dropped_count, 0);
}
END_TEST

static void job_closes_descriptors(void)
{
    ck_assert(inject());
    (void)push("before");
    (void)pop();
    for (int fd = 3; fd < 64; fd++) {
        (void)close(fd);
    }
    for (int i = 0; i < 20000; i++) {
        (void)push("after");
        (void)pop();
    }
}

START_TEST(a_program_that_closes_all_descriptors_is_still_recorded)
{
    ck_assert_int_eq(lac_job_run(job_closes_descriptors), 0);
    import_ok();
    ck_assert_uint_eq(count_named("before"), 1);
    ck_assert_uint_eq(count_named("after"), 20000);
}
END_TEST

static void job_disabled(void)
{
    (void)setenv("LACUNA_DISABLE", "1", 1);
    _exit(inject() ? 1 : 0);
}

START_TEST(disable_declines_the_injection)
{
    struct lac_error error = {0};

    ck_assert_int_eq(lac_job_run(job_disabled), 0);
    ck_assert_int_eq(lac_job_spool_count(), 0);
    ck_assert_ptr_null(lac_job_import(&error));
    ck_assert_int_eq(error.status, LAC_ERR_NOT_FOUND);
}
END_TEST

/* ---- what ranges carry beside their names */

static const void *make_domain(const char *name)
{
    return ((const void *(*)(const char *))core2[NVTX_CORE2_DOMAIN_CREATE_A])(name);
}

static void push_with(const void *domain, const char *name, uint32_t category, int32_t payload_type,
                      uint64_t payload)
{
    const struct nvtx_attributes attributes = {.version = 3,
                                               .size = sizeof(attributes),
                                               .category = category,
                                               .color_type = 1,
                                               .color = 0xff00aa11,
                                               .payload_type = payload_type,
                                               .payload = payload,
                                               .message_type = NVTX_MESSAGE_ASCII,
                                               .message = name};

    (void)((int (*)(const void *, const struct nvtx_attributes *))core2[NVTX_CORE2_PUSH_EX])(
        domain, &attributes);
}

static void pop_in(const void *domain)
{
    (void)((int (*)(const void *))core2[NVTX_CORE2_POP])(domain);
}

static void *push_in_thread(void *domain)
{
    push_with(domain, "elsewhere", 7, LAC_PAYLOAD_INT64, 41);
    pop_in(domain);
    return NULL;
}

static void job_attributes(void)
{
    const double three_quarters = 0.75;
    uint64_t bits;
    const void *domain;
    pthread_t thread;

    ck_assert(inject());
    (void)push("before any name");
    (void)pop();
    domain = make_domain("NCCL");
    ((void (*)(const void *, uint32_t, const char *))core2[NVTX_CORE2_NAME_CATEGORY_A])(
        domain, 7, "ring \"a\"");
    memcpy(&bits, &three_quarters, sizeof(bits));
    push_with(domain, "all-reduce", 7, LAC_PAYLOAD_DOUBLE, bits);
    pop_in(domain);
    push_with(domain, "a hash", 0, LAC_PAYLOAD_UINT64, UINT64_MAX - 1);
    pop_in(domain);
    (void)pthread_create(&thread, NULL, push_in_thread, (void *)(uintptr_t)domain);
    (void)pthread_join(thread, NULL);
    if (fork() == 0) {
        push_with(domain, "in a child", 7, LAC_PAYLOAD_UINT32, 5);
        pop_in(domain);
        _exit(0);
    }
    (void)wait(NULL);
}

static const char *args_of(const char *name)
{
    static char text[512];
    const uint32_t id = lac_strings_find(&imported->strings, name, strlen(name));

    text[0] = '\0';
    for (uint64_t i = 0; i < imported->slices.count; i++) {
        if (imported->slices.name[i] == id) {
            (void)lac_args_format(imported, i, text, sizeof(text));
        }
    }
    return text;
}

START_TEST(payload_category_colour_and_domain_are_kept_in_forked_children_too)
{
    ck_assert_int_eq(lac_job_run(job_attributes), 0);
    import_ok();
    ck_assert_str_eq(args_of("before any name"), "");
    ck_assert_str_eq(args_of("all-reduce"), "{\"domain\":\"NCCL\",\"category\":\"ring "
                                            "\\\"a\\\"\",\"color\":\"#00aa11\",\"payload\":0.75}");
    ck_assert_str_eq(args_of("a hash"), "{\"domain\":\"NCCL\",\"color\":\"#00aa11\","
                                        "\"payload\":\"18446744073709551614\"}");
    ck_assert_str_eq(args_of("elsewhere"), "{\"domain\":\"NCCL\",\"category\":\"ring "
                                           "\\\"a\\\"\",\"color\":\"#00aa11\",\"payload\":41}");
    ck_assert_str_eq(args_of("in a child"), "{\"domain\":\"NCCL\",\"category\":\"ring "
                                            "\\\"a\\\"\",\"color\":\"#00aa11\",\"payload\":5}");
}
END_TEST

/* ---- nesting survives what could not be kept */

static void job_drops_in_the_middle(void)
{
    (void)setenv("LACUNA_SPOOL_LIMIT", "262144", 1);
    ck_assert(inject());
    (void)push("outermost");
    for (int i = 0; i < 10000; i++) {
        (void)push("a");
        (void)push("b");
        (void)pop();
        (void)pop();
    }
    (void)pop();
}

START_TEST(a_full_spool_still_takes_the_ends_of_what_is_open)
{
    ck_assert_int_eq(lac_job_run(job_drops_in_the_middle), 0);
    import_ok();
    ck_assert_uint_gt(report_count("not_recorded"), 0);
    ck_assert_uint_eq(report_count("open_ranges"), 0);
    ck_assert_uint_eq(report_count("range_ends_alone"), 0);
    ck_assert_uint_eq(count_named("outermost"), 1);
    ck_assert_uint_eq(count_named("a") + count_named("b") + report_count("not_recorded"), 20000);
    for (uint64_t i = 0; i < imported->slices.count; i++) {
        const char *const name = lac_model_str(imported, imported->slices.name[i]);

        ck_assert_uint_eq(imported->slices.lane[i], name[0] == 'o' ? 0 : name[0] == 'a' ? 1 : 2);
    }
}
END_TEST

/* ---- signal handlers that fork and record, while names are being defined */

static void on_alarm(int signal)
{
    pid_t pid;

    (void)signal;
    (void)push("from a handler");
    (void)pop();
    pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    (void)waitpid(pid, NULL, 0);
}

/* Alarms by the time that the job itself computes: a fork takes longer than 4 ms on a busy machine,
 * and by the wall clock the next alarm would then always be due before the job went on. */
static void job_signals(void)
{
    const struct itimerval often = {{0, 4000}, {0, 4000}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    char name[32];

    ck_assert(inject());
    (void)sigaction(SIGVTALRM, &action, NULL);
    (void)setitimer(ITIMER_VIRTUAL, &often, NULL);
    for (int i = 0; i < 60000; i++) {
        (void)snprintf(name, sizeof(name), "name %d", i);
        (void)push(name);
        (void)pop();
    }
    (void)setitimer(ITIMER_VIRTUAL, &never, NULL);
}

START_TEST(handlers_that_fork_and_record_neither_block_nor_lose_silently)
{
    uint64_t mine = 0;

    ck_assert_int_eq(lac_job_run(job_signals), 0);
    import_ok();
    for (int i = 0; i < 60000; i += 500) {
        char name[32];

        (void)snprintf(name, sizeof(name), "name %d", i);
        mine += count_named(name);
    }
    ck_assert_uint_eq(mine, 120);
    ck_assert_uint_eq(imported->info.dropped_count,
                      report_count("not_recorded") + report_count("not_kept"));
}
END_TEST

/* ---- a kernel before 4.14: no MADV_WIPEONFORK */

static void refuse_wipe_on_fork(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 18, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {LAC_COUNT_OF(code), code};

    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    ck_assert_int_eq(madvise(&code, 4096, 18), -1);
}

static void job_forks_on_an_old_kernel(void)
{
    refuse_wipe_on_fork();
    job_forks();
}

START_TEST(a_kernel_without_wipe_on_fork_is_served_by_the_fork_handlers)
{
    ck_assert_int_eq(lac_job_run(job_forks_on_an_old_kernel), 0);
    ck_assert_int_eq(lac_job_spool_count(), 9);
    import_ok();
    ck_assert_uint_eq(count_named("batch"), 8);
    ck_assert_uint_eq(count_named("parent"), 1);
}
END_TEST

/* ---- a disk that is full for real */

static void job_fills_the_disk(void)
{
    ck_assert(inject());
    for (int i = 0; i < 400000; i++) {
        (void)push("x");
        (void)pop();
    }
    _exit(42);
}

START_TEST(a_full_disk_is_counted_and_does_not_kill_the_job)
{
    int status;

    if (mount("none", lac_job_folder(), "tmpfs", 0, "size=2m") != 0) {
        (void)fprintf(stderr, "skip: no tmpfs can be mounted here (%s): the disk is not filled\n",
                      strerror(errno));
        return;
    }
    status = lac_job_run(job_fills_the_disk);
    import_ok();
    (void)umount(lac_job_folder());
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 42);
    ck_assert_uint_gt(count_named("x"), 10000);
    ck_assert_uint_eq(count_named("x") + report_count("not_recorded"), 400000);
}
END_TEST

/* ---- the extension's entry point */

static void job_extension(void)
{
    void *library;
    int (*initialize)(const void *);

    ck_assert(inject());
    library = dlopen(lac_job_file("liblacuna.so"), RTLD_LAZY);
    *(void **)&initialize = dlsym(library, "InitializeInjectionNvtxExtension");
    ck_assert_int_eq(initialize(NULL), 1);
    (void)push("x");
    (void)pop();
}

START_TEST(the_entry_point_for_payload_schemas_is_accepted)
{
    ck_assert_int_eq(lac_job_run(job_extension), 0);
    import_ok();
    ck_assert_uint_eq(count_named("x"), 1);
}
END_TEST

static void job_no_folder(void)
{
    (void)setenv("LACUNA_SPOOL", "/nonexistent/folder", 1);
    (void)freopen("/dev/null", "w", stderr);
    ck_assert(inject());
    for (int i = 0; i < 100; i++) {
        (void)push("x");
        (void)pop();
    }
    _exit(42);
}

START_TEST(a_folder_that_cannot_be_written_does_not_disturb_the_job)
{
    const int status = lac_job_run(job_no_folder);

    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 42);
}
END_TEST

static void damage(const char *name, off_t at, char byte)
{
    char path[PATH_MAX + 300];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", lac_job_folder(), name);
    file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseeko(file, at, SEEK_SET), 0);
    ck_assert_int_eq(fputc(byte, file), (unsigned char)byte);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(any_damaged_byte_gives_a_valid_model_or_an_error)
{
    DIR *directory;
    const struct dirent *entry;
    char name[300] = "";

    ck_assert_int_eq(lac_job_run(job_forks), 0);
    directory = opendir(lac_job_folder());
    for (entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (strstr(entry->d_name, "-0.spool") != NULL) {
            (void)snprintf(name, sizeof(name), "%s", entry->d_name);
        }
    }
    (void)closedir(directory);
    for (off_t at = 0; at < 300; at++) {
        struct lac_error error = {0};

        damage(name, at < 150 ? at : LAC_SPOOL_SEGMENTS_OFFSET + at - 150, (char)(0x7f ^ at));
        imported = lac_job_import(&error);
        if (imported != NULL) {
            ck_assert(lac_model_is_valid(imported));
        } else {
            ck_assert_str_ne(error.message, "");
        }
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("collector");
    TCase *const tcase = tcase_create("inject");

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, lac_job_setup, lac_job_teardown);
    tcase_add_test(tcase, every_range_of_every_thread_is_kept_and_nested);
    tcase_add_test(tcase, sigkill_loses_nothing_that_was_recorded);
    tcase_add_test(tcase, forked_children_write_spools_of_their_own);
    tcase_add_test(tcase, two_hundred_children_that_record_nothing_leave_no_file);
    tcase_add_test(tcase, a_raw_clone_is_noticed_without_atfork_handlers);
    tcase_add_test(tcase, a_range_may_end_on_another_thread);
    tcase_add_test(tcase, what_exceeds_the_size_limit_is_counted);
    tcase_add_test(tcase, ten_thousand_names_and_odd_ones_are_kept);
    tcase_add_test(tcase, a_program_that_closes_all_descriptors_is_still_recorded);
    tcase_add_test(tcase, payload_category_colour_and_domain_are_kept_in_forked_children_too);
    tcase_add_test(tcase, a_full_spool_still_takes_the_ends_of_what_is_open);
    tcase_add_test(tcase, handlers_that_fork_and_record_neither_block_nor_lose_silently);
    tcase_add_test(tcase, a_kernel_without_wipe_on_fork_is_served_by_the_fork_handlers);
    tcase_add_test(tcase, a_full_disk_is_counted_and_does_not_kill_the_job);
    tcase_add_test(tcase, the_entry_point_for_payload_schemas_is_accepted);
    tcase_add_test(tcase, disable_declines_the_injection);
    tcase_add_test(tcase, a_folder_that_cannot_be_written_does_not_disturb_the_job);
    tcase_add_test(tcase, any_damaged_byte_gives_a_valid_model_or_an_error);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
