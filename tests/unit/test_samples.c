/*
 * What the launcher samples, from the real lacuna-node running a real job: threads that compute,
 * that sleep and that write, and the facts about the host.
 */
#include "collector/include/lacuna/spool.h"
#include "collector/sample/sample_spool.h"
#include "tests/support/check_main.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where there is no network of one's own, a launcher of another test may be the
 * one that samples. */
enum { TRIES = 120, PAUSE_US = 500000 };

static struct lac_model *imported;

/* Run `script` with sh under lacuna-node, recording into the test's folder. */
static int record(const char *script)
{
    int status = 0;
    const pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)execl(lac_job_file("lacuna-node"), "lacuna-node", "run", "--quiet", "-o",
                    lac_job_folder(), "--", "sh", "-c", script, (char *)NULL);
        _exit(99);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static void import_ok(void)
{
    struct lac_error error = {0};

    imported = lac_job_import(&error);
    ck_assert_msg(imported != NULL, "%s", error.message);
    ck_assert(lac_model_is_valid(imported));
}

/* Mean over time and highest value of the counter whose name holds `what`, in a
 * process so named. */
static double highest(const char *process, const char *what, double *ret_mean)
{
    double best = -1;

    *ret_mean = 0;
    for (uint32_t i = 0; i < imported->track_count; i++) {
        const struct lac_track *const track = &imported->tracks[i];
        double sum = 0;
        double span = 0;

        if (track->kind != LAC_TRACK_COUNTER ||
            strcmp(lac_model_str(imported, imported->processes[track->process].name), process) !=
                0 ||
            strstr(lac_model_str(imported, track->name), what) == NULL) {
            continue;
        }
        for (uint64_t k = track->first; k < track->first + track->count; k++) {
            const double value = imported->sample_value[k];

            best = value > best ? value : best;
            if (k + 1 < track->first + track->count) {
                const double width =
                    (double)(imported->sample_ts_ns[k + 1] - imported->sample_ts_ns[k]);

                sum += value * width;
                span += width;
            }
        }
        *ret_mean = span > 0 ? sum / span : 0;
    }
    return best;
}

START_TEST(a_busy_thread_is_seen_busy_and_a_sleeping_one_is_not)
{
    double mean;
    double most = 0;

    /* the shell is busy, longer each time that others want the cores; `sleep` never is */
    for (int seconds = 2; most <= 8 && seconds <= 16; seconds *= 2) {
        char script[200];

        (void)snprintf(script, sizeof(script),
                       "sleep 2 & i=0; end=$(($(date +%%s) + %d)); "
                       "while [ $(date +%%s) -lt $end ]; do i=0; "
                       "while [ $i -lt 20000 ]; do i=$((i+1)); done; done; wait; exit 0",
                       seconds);
        lac_job_teardown();
        lac_job_setup();
        ck_assert_int_eq(record(script), 0);
        import_ok();
        most = highest("sh", ": on a core (%)", &mean);
    }
    ck_assert_msg(most > 8 && most < 130, "sh at most %f %% of a core", most);
    ck_assert_msg(highest("sleep", ": on a core (%)", &mean) < 5, "sleep computes");
}
END_TEST

/* CPU seconds of all threads of the job, as the counters tell them. */
static double cpu_seconds(void)
{
    double sum = 0;

    for (uint32_t i = 0; i < imported->track_count; i++) {
        const struct lac_track *const track = &imported->tracks[i];

        if (track->kind != LAC_TRACK_COUNTER ||
            strstr(lac_model_str(imported, track->name), ": on a core (%)") == NULL) {
            continue;
        }
        for (uint64_t k = track->first; k + 1 < track->first + track->count; k++) {
            sum += imported->sample_value[k] / 100.0 *
                   (double)(imported->sample_ts_ns[k + 1] - imported->sample_ts_ns[k]) / 1e9;
        }
        ck_assert_double_eq(imported->sample_value[track->first + track->count - 1], 0);
    }
    return sum;
}

START_TEST(threads_that_begin_after_their_process_are_counted_to_their_end)
{
    char script[900];
    char path[PATH_MAX];
    double used = 0;

    /* four threads begin when all processes have been seen, and end with the process: a second of
     * CPU time each, in SHA-256, which holds no lock */
    (void)snprintf(script, sizeof(script),
                   "python3 -c '\n"
                   "import hashlib, threading, time\n"
                   "data = bytes(1 << 20)\n"
                   "def work():\n"
                   "    while time.thread_time() < 1:\n"
                   "        hashlib.sha256(data).digest()\n"
                   "time.sleep(1.5)\n"
                   "threads = [threading.Thread(target=work) for _ in range(4)]\n"
                   "[thread.start() for thread in threads]\n"
                   "[thread.join() for thread in threads]\n"
                   "print(time.process_time())' >%s.cpu",
                   lac_job_folder());
    ck_assert_int_eq(record(script), 0);
    (void)snprintf(path, sizeof(path), "%s.cpu", lac_job_folder());
    FILE *const file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%lf", &used), 1);
    (void)fclose(file);
    (void)unlink(path);
    ck_assert_double_ge(used, 4.0);
    import_ok();
    const double told = cpu_seconds();
    ck_assert_msg(told > 0.8 * used && told < 1.2 * used, "%f s of %f", told, used);
}
END_TEST

START_TEST(a_thread_that_runs_another_program_has_another_row)
{
    bool has_program = false;

    ck_assert_int_eq(
        record(
            "i=0; end=$(($(date +%s) + 2)); while [ $(date +%s) -lt $end ]; do i=$((i+1)); done; "
            "exec python3 -c 'import time\nwhile time.process_time() < 1.5: pass'"),
        0);
    import_ok();
    for (uint32_t i = 0; i < imported->track_count; i++) {
        const char *const name = lac_model_str(imported, imported->tracks[i].name);

        has_program = has_program || (imported->tracks[i].kind == LAC_TRACK_COUNTER &&
                                      strncmp(name, "python", strlen("python")) == 0 &&
                                      strstr(name, ": on a core (%)") != NULL);
    }
    ck_assert(has_program);
    ck_assert_double_gt(cpu_seconds(), 1.0); /* and the row before ends with 0 */
}
END_TEST

START_TEST(what_a_process_writes_is_counted)
{
    double mean;
    double most = 0;

    /* longer each time: on a busy machine nobody may look in two seconds */
    for (int seconds = 2; most <= 50 && seconds <= 32; seconds *= 2) {
        char script[100];

        (void)snprintf(script, sizeof(script),
                       "timeout %d dd if=/dev/zero of=/dev/null bs=1M 2>/dev/null; true", seconds);
        lac_job_teardown();
        lac_job_setup();
        ck_assert_int_eq(record(script), 0);
        import_ok();
        most = highest("dd", "written by calls (MB/s)", &mean);
    }
    ck_assert_msg(most > 50, "dd writes %f MB/s at most", most);
}
END_TEST

START_TEST(facts_about_the_host_stand_beside_the_settings)
{
    const char *metadata;
    char cores[64];

    ck_assert_int_eq(record("true"), 0);
    import_ok();
    metadata = lac_model_str(imported, imported->info.metadata);
    for (int tries = 0; strstr(metadata, "\"sampled_here\":true") == NULL && tries < TRIES;
         tries++) {
        (void)usleep(PAUSE_US);
        lac_job_teardown();
        lac_job_setup();
        ck_assert_int_eq(record("true"), 0);
        import_ok();
        metadata = lac_model_str(imported, imported->info.metadata);
    }
    (void)snprintf(cores, sizeof(cores), "\"cores_online\":%ld", sysconf(_SC_NPROCESSORS_ONLN));
    ck_assert_msg(strstr(metadata, "\"host\":{") != NULL, "%s", metadata);
    ck_assert_msg(strstr(metadata, cores) != NULL, "%s", metadata);
    ck_assert_ptr_nonnull(strstr(metadata, "\"kernel\":"));
    ck_assert_ptr_nonnull(strstr(metadata, "\"memory_bytes\":"));
    ck_assert_ptr_nonnull(strstr(metadata, "\"gpu_monitor\":"));
    ck_assert_uint_eq(imported->slices.count, 0);
}
END_TEST

static void run_inner(void)
{
    char command[PATH_MAX + 64];

    (void)snprintf(command, sizeof(command), "\"%s\" run --quiet -o \"%s\" -- sleep 0.3",
                   lac_job_file("lacuna-node"), lac_job_folder());
    exit(WEXITSTATUS(record(command)));
}

/* Launchers of a job in a job that say that they sampled the host. */
static int count_samplers(void)
{
    char command[2048];

    ck_assert_int_eq(lac_job_run(run_inner), 0);
    /* the launcher inside finds the folder taken, and makes one of its own */
    (void)snprintf(command, sizeof(command), "mv %s-2/*.spool %s && rmdir %s-2", lac_job_folder(),
                   lac_job_folder(), lac_job_folder());
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(lac_job_spool_count(), 2);
    (void)snprintf(command, sizeof(command),
                   "exit $(cat %s/node-*.spool | tr -d '\\000' | grep -a -o "
                   "'host.sampled_here=True' | wc -l)",
                   lac_job_folder());
    return WEXITSTATUS(system(command));
}

START_TEST(only_one_launcher_of_a_host_samples_it)
{
    int count = count_samplers();

    for (int tries = 0; count == 0 && tries < TRIES; tries++) {
        (void)usleep(PAUSE_US);
        lac_job_teardown();
        lac_job_setup();
        count = count_samplers();
    }
    ck_assert_int_eq(count, 1);
}
END_TEST

START_TEST(samples_that_found_no_room_are_counted_in_the_spool)
{
    struct lac_sample_spool *spool = lac_sample_spool_create(lac_job_folder());
    struct lac_spool_header header;
    char path[PATH_MAX];
    glob_t found = {0};

    ck_assert_ptr_nonnull(spool);
    const uint32_t series = lac_sample_spool_name(spool, "cpu");
    ck_assert_uint_ne(series, 0);
    const struct rlimit full = {.rlim_cur = lac_sample_spool_bytes(spool),
                                .rlim_max = RLIM_INFINITY};
    ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &full), 0);
    for (int i = 0; i < 5; i++) {
        lac_sample_spool_value(spool, series, 1.0);
    }
    lac_sample_spool_value(spool, 0, 1.0); /* of a series whose name found no room */
    lac_sample_spool_destroy(spool);

    (void)snprintf(path, sizeof(path), "%s/node-*.spool", lac_job_folder());
    ck_assert_int_eq(glob(path, 0, NULL, &found), 0);
    FILE *file = fopen(found.gl_pathv[0], "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(&header, 1, sizeof(header), file), sizeof(header));
    (void)fclose(file);
    globfree(&found);
    ck_assert_uint_eq(header.dropped_count, 6);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("samples");
    TCase *const tcase = tcase_create("launcher");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, lac_job_setup_alone, lac_job_teardown);
    tcase_add_test(tcase, a_busy_thread_is_seen_busy_and_a_sleeping_one_is_not);
    tcase_add_test(tcase, threads_that_begin_after_their_process_are_counted_to_their_end);
    tcase_add_test(tcase, a_thread_that_runs_another_program_has_another_row);
    tcase_add_test(tcase, what_a_process_writes_is_counted);
    tcase_add_test(tcase, facts_about_the_host_stand_beside_the_settings);
    tcase_add_test(tcase, only_one_launcher_of_a_host_samples_it);
    tcase_add_test(tcase, samples_that_found_no_room_are_counted_in_the_spool);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
