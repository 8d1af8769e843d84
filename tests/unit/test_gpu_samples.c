/*
 * What the launcher samples of GPUs, from the real lacuna-node beside a stand-in for the driver's
 * library (tests/stand_in/nvml_stand_in.c, which has the figures): each with its unit, GPM where
 * the driver has it, and nothing where something is refused.
 */
#include "analysis/import/spool/spool_import.h"
#include "collector/base/count_of.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/made_spool.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct lac_model *imported;
static char said[4096]; /* what the launcher and the stand-in printed, in this order */

static void in_folder(char *path, size_t size, const char *name)
{
    (void)snprintf(path, size, "%s/%s", lac_job_folder(), name);
}

static void read_said(const char *path)
{
    FILE *const file = fopen(path, "r");
    const size_t used = strlen(said);

    ck_assert_ptr_nonnull(file);
    said[used + fread(said + used, 1, sizeof(said) - 1 - used, file)] = '\0';
    (void)fclose(file);
    (void)unlink(path);
}

/* Record `seconds` of a job that sleeps, beside the stand-in in `folder`. */
static void record_once(const char *folder, const char *seconds)
{
    struct lac_error error = {0};
    char spoken[PATH_MAX];
    char log[PATH_MAX];
    int status = 0;
    pid_t pid;

    in_folder(spoken, sizeof(spoken), "stderr");
    in_folder(log, sizeof(log), "nvml.log");
    said[0] = '\0';
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)setenv("LD_LIBRARY_PATH", lac_job_file(folder), 1);
        (void)setenv("NVML_STAND_IN_LOG", log, 1);
        (void)!freopen(spoken, "w", stderr);
        (void)execl(lac_job_file("lacuna-node"), "lacuna-node", "run", "--quiet", "-o",
                    lac_job_folder(), "--", "sleep", seconds, (char *)NULL);
        _exit(99);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    read_said(spoken);
    if (access(log, F_OK) == 0) {
        read_said(log);
    }
    imported = lac_job_import(&error);
    ck_assert_msg(imported != NULL, "%s", error.message);
    ck_assert(lac_model_is_valid(imported));
}

static const char *facts(void)
{
    return lac_model_str(imported, imported->info.metadata);
}

/* Where there is no network of one's own, a launcher of another test may be the
 * one that samples. */
static void record(const char *folder, const char *seconds)
{
    record_once(folder, seconds);
    for (int tries = 0; strstr(facts(), "\"sampled_here\":true") == NULL; tries++) {
        ck_assert_int_lt(tries, 120);
        (void)usleep(500000);
        lac_job_teardown();
        lac_job_setup();
        record_once(folder, seconds);
    }
}

/* NULL: there is none of that name. */
static const struct lac_track *counter(const char *name)
{
    for (uint32_t i = 0; i < imported->track_count; i++) {
        const struct lac_track *const track = &imported->tracks[i];

        if (track->kind == LAC_TRACK_COUNTER &&
            strcmp(lac_model_str(imported, track->name), name) == 0) {
            return track;
        }
    }
    return NULL;
}

/* From its first sample to its last, the counter has this value and no other. */
static void check_counter(const char *name, double value)
{
    const struct lac_track *const track = counter(name);

    ck_assert_msg(track != NULL && track->count > 0, "no counter %s", name);
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        ck_assert_msg(imported->sample_value[i] == value, "%s: %f instead of %f", name,
                      imported->sample_value[i], value);
    }
}

static void check_silent(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(counter(names[i]) == NULL, "%s is recorded", names[i]);
    }
}
#define CHECK_SILENT(names) check_silent(names, LAC_COUNT_OF(names))

static const char *const gpm_only[] = {
    "GPU 0: SMs active (%)",       "GPU 0: SM occupancy (%)",   "GPU 0: tensor cores active (%)",
    "GPU 0: memory bandwidth (%)", "GPU 0: NVLink sent (MB/s)", "GPU 0: NVLink received (MB/s)",
};

START_TEST(the_figures_of_each_gpu_have_their_units)
{
    const struct lac_track *energy;

    (void)setenv("NVML_STAND_IN_GPUS", "2", 1);
    record("stand_in/nvml", "0.9");
    check_counter("GPU 0: GPU utilization (%)", 97);
    check_counter("GPU 1: GPU utilization (%)", 98);
    check_counter("GPU 0: memory utilization (%)", 41);
    check_counter("GPU 0: SM clock (MHz)", 1755);
    check_counter("GPU 1: SM clock (MHz)", 1756);
    check_counter("GPU 0: memory clock (MHz)", 2619);
    check_counter("GPU 0: memory used (MB)", 30000);
    check_counter("GPU 1: memory used (MB)", 30001);
    check_counter("GPU 0: memory total (MB)", 80000);
    check_counter("GPU 0: power (W)", 612.5);
    check_counter("GPU 0: temperature (C)", 61);
    check_counter("GPU 0: clocks held down (reasons)", 4);
    energy = counter("GPU 0: energy (J)");
    ck_assert_ptr_nonnull(energy);
    for (uint64_t i = energy->first; i < energy->first + energy->count; i++) {
        ck_assert(imported->sample_value[i] > 5e6 && imported->sample_value[i] < 5e6 + 100);
    }
    ck_assert_int_eq(counter("GPU 1: power (W)")->device, 1);
    ck_assert_ptr_nonnull(strstr(facts(), "\"driver_version\":\"999.01\""));
    ck_assert_ptr_nonnull(strstr(facts(), "Stand-in GPU 1"));
    /* what their own counters say */
    check_counter("GPU 0: SMs active (%)", 38.5);
    check_counter("GPU 1: SMs active (%)", 39.5);
    check_counter("GPU 0: SM occupancy (%)", 12.25);
    check_counter("GPU 0: tensor cores active (%)", 7.75);
    check_counter("GPU 0: memory bandwidth (%)", 22.5);
    check_counter("GPU 0: PCIe sent (MB/s)", 100 * 1.048576);
    check_counter("GPU 1: PCIe received (MB/s)", 2001 * 1.048576);
    check_counter("GPU 0: NVLink sent (MB/s)", 400 * 1.048576);
    check_counter("GPU 0: NVLink received (MB/s)", 300 * 1.048576);
    ck_assert_msg(strstr(said, "wrong 0 pcie 0 ") != NULL, "%s", said);
    ck_assert_msg(strstr(said, " left 0 open 0") != NULL, "%s", said);
    ck_assert_ptr_nonnull(strstr(facts(), "\"gpm.0\":true"));
    ck_assert_ptr_nonnull(strstr(facts(), "\"gpm.1\":true"));
    ck_assert_ptr_nonnull(strstr(facts(), "\"gpm_reading_us.1\":")); /* what that cost */
}
END_TEST

START_TEST(a_mean_stands_where_it_begins_and_comes_again)
{
    const struct lac_track *active;
    const struct lac_track *clock;

    record("stand_in/nvml", "2.6");
    active = counter("GPU 0: SMs active (%)");
    clock = counter("GPU 0: SM clock (MHz)");
    ck_assert_ptr_nonnull(active);
    ck_assert_ptr_nonnull(clock);
    /* it never changes: told again, so that a reader knows that it still held */
    ck_assert_uint_ge(active->count, 2);
    ck_assert_uint_le(active->count, 4);
    for (uint64_t i = active->first + 1; i < active->first + active->count; i++) {
        const int64_t apart_ns = imported->sample_ts_ns[i] - imported->sample_ts_ns[i - 1];

        ck_assert_msg(apart_ns >= 1000000000 && apart_ns < 10 * 1000000000ll, "%lld",
                      (long long)apart_ns);
    }
    /* the first reading was complete when the launcher had taken its first figures */
    ck_assert_int_le(imported->sample_ts_ns[active->first],
                     imported->sample_ts_ns[clock->first] + 100000000);
}
END_TEST

START_TEST(a_driver_without_gpm_leaves_its_figures_out)
{
    record("stand_in/nvml-old", "0.9");
    CHECK_SILENT(gpm_only);
    check_counter("GPU 0: PCIe sent (MB/s)", 3);
    check_counter("GPU 0: PCIe received (MB/s)", 12);
    check_counter("GPU 0: temperature (C)", 61); /* by the functions' old names */
    check_counter("GPU 0: clocks held down (reasons)", 4);
    ck_assert_msg(strstr(facts(), "\"gpm.0\":\"this driver does not have it\"") != NULL, "%s",
                  facts());
}
END_TEST

START_TEST(a_gpu_without_gpm_says_why)
{
    static const struct {
        const char *script;
        const char *why;
    } cases[] = {
        {"no", "\"gpm.0\":\"not this GPU, or not while it is divided (MIG) or virtual\""},
        {"mig", "\"gpm.0\":\"not this GPU, or not while it is divided (MIG) or virtual\""},
        {"admin", "\"gpm.0\":\"the driver keeps them for administrators\""},
    };

    (void)setenv("NVML_STAND_IN_GPM", cases[_i].script, 1);
    record("stand_in/nvml", "0.9");
    CHECK_SILENT(gpm_only);
    check_counter("GPU 0: SM clock (MHz)", 1755);
    check_counter("GPU 0: PCIe received (MB/s)", 12);
    ck_assert_msg(strstr(facts(), cases[_i].why) != NULL, "%s", facts());
    ck_assert_msg(strstr(said, "wrong 0 ") != NULL && strstr(said, " left 0 open 0") != NULL, "%s",
                  said);
}
END_TEST

START_TEST(a_metric_with_an_error_is_left_out_and_never_zero)
{
    static const char *const gone[] = {"GPU 0: tensor cores active (%)",
                                       "GPU 0: NVLink sent (MB/s)",
                                       "GPU 0: NVLink received (MB/s)"};

    (void)setenv("NVML_STAND_IN_NO_METRICS", "5,20,21,60,61", 1);
    record("stand_in/nvml", "0.9");
    CHECK_SILENT(gone);
    check_counter("GPU 0: SMs active (%)", 38.5);
    check_counter("GPU 0: PCIe sent (MB/s)", 3); /* the slow call tells it then */
    check_counter("GPU 0: PCIe received (MB/s)", 12);
}
END_TEST

START_TEST(readings_that_take_long_become_rare_and_end)
{
    (void)setenv("NVML_STAND_IN_SLOW_MS", "35", 1);
    record("stand_in/nvml", "6"); /* twice what is needed on a machine that is not busy */
    check_counter("GPU 0: SMs active (%)", 38.5); /* what was read until then stays */
    ck_assert_msg(strstr(facts(), "\"gpm_off.0\":\"a reading took ") != NULL, "%s", facts());
    ck_assert_msg(
        strstr(said, "lacuna: the counters of GPU 0 are no longer read: a reading took ") != NULL,
        "%s", said);
    /* one to begin with and three a second apart */
    ck_assert_msg(strstr(said, " samples 4 left 0 ") != NULL, "%s", said);
    ck_assert_uint_le(counter("GPU 0: SMs active (%)")->count, 3);
}
END_TEST

START_TEST(counters_that_break_off_end_once)
{
    /* PCIe goes on by the slow call, longer each time: it comes late on a busy machine */
    static const char *const seconds[] = {"2.5", "5", "10", "20"};

    (void)setenv("NVML_STAND_IN_GPM", "breaks", 1);
    record("stand_in/nvml", seconds[0]);
    for (size_t i = 1; i < LAC_COUNT_OF(seconds) && strstr(said, "pcie 0 ") != NULL; i++) {
        lac_job_teardown();
        lac_job_setup();
        record("stand_in/nvml", seconds[i]);
    }
    ck_assert_ptr_null(strstr(said, "pcie 0 "));
    check_counter("GPU 0: SMs active (%)", 38.5);
    ck_assert_ptr_nonnull(strstr(facts(), "\"gpm_off.0\":\"not this GPU"));
    ck_assert_msg(strstr(said, " samples 8 ") != NULL, "%s", said);
    ck_assert_ptr_nonnull(strstr(said, "lacuna: the counters of GPU 0"));
    ck_assert_ptr_null(strstr(strstr(said, "lacuna: the counters of GPU 0") + 1, "lacuna: "));
}
END_TEST

START_TEST(what_a_gpu_refuses_is_not_recorded)
{
    (void)setenv("NVML_STAND_IN_REFUSE", "1", 1);
    record("stand_in/nvml", "0.9");
    for (uint32_t i = 0; i < imported->track_count; i++) {
        const char *const name = lac_model_str(imported, imported->tracks[i].name);

        ck_assert_msg(strncmp(name, "GPU ", 4) != 0, "%s is recorded", name);
    }
    ck_assert_ptr_nonnull(strstr(facts(), "Stand-in GPU 0"));
    ck_assert_ptr_nonnull(strstr(facts(), "\"gpm.0\":\"not this GPU"));
}
END_TEST

START_TEST(a_gpu_that_is_lost_does_not_shift_the_numbers)
{
    (void)setenv("NVML_STAND_IN_GPUS", "2", 1);
    (void)setenv("NVML_STAND_IN_LOST", "0", 1);
    record("stand_in/nvml", "0.9");
    ck_assert_ptr_null(counter("GPU 0: SM clock (MHz)"));
    check_counter("GPU 1: SM clock (MHz)", 1756);
    check_counter("GPU 1: SMs active (%)", 39.5);
}
END_TEST

START_TEST(counters_can_be_left_to_another_profiler)
{
    (void)setenv("LACUNA_GPM", "0", 1);
    record("stand_in/nvml", "0.9");
    CHECK_SILENT(gpm_only);
    check_counter("GPU 0: PCIe received (MB/s)", 12);
    ck_assert_ptr_nonnull(strstr(facts(), "\"gpm.0\":\"turned off by LACUNA_GPM=0\""));
    ck_assert_msg(strstr(said, " samples 0 ") != NULL, "%s", said);
}
END_TEST

START_TEST(a_driver_that_begins_late_is_waited_for_beside_the_job)
{
    (void)setenv("NVML_STAND_IN_INIT_MS", "700", 1);
    record("stand_in/nvml", "1.6");
    check_counter("GPU 0: SM clock (MHz)", 1755);
    ck_assert_ptr_nonnull(strstr(facts(), "\"gpu_monitor\":\"nvml\""));
    ck_assert_ptr_nonnull(strstr(facts(), "Stand-in GPU 0"));
    ck_assert_ptr_nonnull(strstr(facts(), "\"gpm.0\":true"));
}
END_TEST

START_TEST(a_driver_that_hangs_does_not_keep_the_launcher)
{
    static const struct {
        const char *variable;
        const char *value;
        const char *fact;
    } cases[] = {
        {"NVML_STAND_IN_INIT_MS", "600000", "\"gpu_monitor\":\"the driver does not answer\""},
        {"NVML_STAND_IN_HANG", "1", "\"gpu_monitor_end\":\"the driver does not answer\""},
    };
    struct timespec before;
    struct timespec after;

    (void)setenv(cases[_i].variable, cases[_i].value, 1);
    (void)clock_gettime(CLOCK_MONOTONIC, &before);
    record_once("stand_in/nvml", "0.4");
    (void)clock_gettime(CLOCK_MONOTONIC, &after);
    ck_assert_int_lt(after.tv_sec - before.tv_sec, 30);
    if (strstr(facts(), "\"sampled_here\":true") == NULL) {
        lac_job_teardown();
        lac_job_setup();
        record("stand_in/nvml", "0.4");
    }
    ck_assert_msg(strstr(facts(), cases[_i].fact) != NULL, "%s", facts());
}
END_TEST

START_TEST(a_driver_without_a_gpu_says_so)
{
    (void)setenv("NVML_STAND_IN_GPUS", "0", 1);
    record("stand_in/nvml", "0.4");
    ck_assert_ptr_nonnull(strstr(facts(), "\"gpu_monitor\":\"the driver shows no GPU\""));
}
END_TEST

/* ---- the importer alone */

static size_t add_segment(uint8_t *bytes, enum lac_segment_kind kind, const void *records,
                          uint32_t size_bytes)
{
    const uint8_t head[4] = {(uint8_t)kind};

    memcpy(bytes, head, sizeof(head));
    memcpy(bytes + 4, &size_bytes, sizeof(size_bytes));
    memcpy(bytes + 8, records, size_bytes);
    return 8 + (size_t)size_bytes;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static enum lac_status keep(void *context, struct lac_model *model, struct lac_error *reterr)
{
    (void)context;
    (void)reterr;
    imported = model;
    return LAC_OK;
}

/* Two series, of GPU 0 and of a thread, in four rounds; the third holds a kind of sample that this
 * version does not know. */
static void import_made(void)
{
    static const char gpu[] = "\037\037\037\037GPU 0: power\037W";
    static const char thread[] = "7\037sh\0377\037sh\037on a core\037%";
    static const struct lac_import_options options;
    const struct lac_sample samples[] = {
        {.bits = bits_of(1), .series = 1, .type = LAC_SAMPLE_VALUE}, /* of no time */
        {.bits = 1000000000, .type = LAC_SAMPLE_TIME},
        {.bits = 1100000000, .type = LAC_SAMPLE_TIME},
        {.bits = bits_of(300), .series = 1, .type = LAC_SAMPLE_VALUE},
        {.bits = bits_of(50), .series = 2, .type = LAC_SAMPLE_VALUE},
        {.bits = 1200000000, .type = LAC_SAMPLE_TIME},
        {.bits = bits_of(7), .series = 1, .type = 200},
        {.bits = bits_of(310), .series = 1, .type = LAC_SAMPLE_VALUE},
        {.bits = 1150000000, .type = LAC_SAMPLE_TIME}, /* of a mean that began before */
        {.bits = bits_of(305), .series = 1, .type = LAC_SAMPLE_VALUE},
    };
    struct {
        struct lac_string_record gpu_head;
        char gpu[24];
        struct lac_string_record thread_head;
        char thread[24];
    } names = {.gpu_head = {1, sizeof(gpu) - 1}, .thread_head = {2, sizeof(thread) - 1}};
    static uint8_t bytes[4096];
    struct lac_error error = {0};
    char path[64];
    size_t used;
    int fd;

    memcpy(names.gpu, gpu, sizeof(gpu) - 1);
    memcpy(names.thread, thread, sizeof(thread) - 1);
    used = add_segment(bytes, LAC_SEGMENT_STRINGS, &names, sizeof(names));
    used += add_segment(bytes + used, LAC_SEGMENT_SAMPLES, samples, sizeof(samples));
    fd = lac_made_spool(bytes, used);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ck_assert_msg(lac_spool_import(path, &options, keep, NULL, &error) == LAC_OK, "%s",
                  error.message);
    (void)close(fd);
}

static uint64_t reported(const char *code)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < imported->report_count; i++) {
        count += strcmp(imported->report[i].code, code) == 0 ? imported->report[i].count : 0;
    }
    return count;
}

START_TEST(a_gpus_series_begins_with_its_first_value)
{
    const struct lac_track *power;
    const struct lac_track *core;

    import_made();
    power = counter("GPU 0: power (W)");
    core = counter("sh 7: on a core (%)");
    ck_assert_ptr_nonnull(power);
    ck_assert_ptr_nonnull(core);
    ck_assert_double_eq(imported->sample_value[power->first], 300);
    /* a thread's is written from when it is not nothing any more */
    ck_assert_uint_eq(core->count, 2);
    ck_assert_double_eq(imported->sample_value[core->first], 0);
    ck_assert_double_eq(imported->sample_value[core->first + 1], 50);
    lac_model_destroy(imported);
}
END_TEST

START_TEST(a_kind_of_sample_that_is_not_known_is_skipped_and_counted)
{
    const struct lac_track *power;

    import_made();
    power = counter("GPU 0: power (W)");
    ck_assert_uint_eq(power->count, 3);
    ck_assert_double_eq(imported->sample_value[power->first], 300);
    ck_assert_double_eq(imported->sample_value[power->first + 1], 305); /* in order of time */
    ck_assert_double_eq(imported->sample_value[power->first + 2], 310);
    ck_assert_uint_eq(reported("events_not_understood"), 2);
    lac_model_destroy(imported);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("gpu samples");
    TCase *const recorded = tcase_create("recorded");
    TCase *const made = tcase_create("made");

    tcase_set_timeout(recorded, 240);
    tcase_add_checked_fixture(recorded, lac_job_setup_alone, lac_job_teardown);
    tcase_add_test(recorded, the_figures_of_each_gpu_have_their_units);
    tcase_add_test(recorded, a_mean_stands_where_it_begins_and_comes_again);
    tcase_add_test(recorded, a_driver_without_gpm_leaves_its_figures_out);
    tcase_add_loop_test(recorded, a_gpu_without_gpm_says_why, 0, 3);
    tcase_add_test(recorded, a_metric_with_an_error_is_left_out_and_never_zero);
    tcase_add_test(recorded, readings_that_take_long_become_rare_and_end);
    tcase_add_test(recorded, counters_that_break_off_end_once);
    tcase_add_test(recorded, what_a_gpu_refuses_is_not_recorded);
    tcase_add_test(recorded, a_gpu_that_is_lost_does_not_shift_the_numbers);
    tcase_add_test(recorded, counters_can_be_left_to_another_profiler);
    tcase_add_test(recorded, a_driver_that_begins_late_is_waited_for_beside_the_job);
    tcase_add_loop_test(recorded, a_driver_that_hangs_does_not_keep_the_launcher, 0, 2);
    tcase_add_test(recorded, a_driver_without_a_gpu_says_so);
    suite_add_tcase(suite, recorded);
    tcase_add_test(made, a_gpus_series_begins_with_its_first_value);
    tcase_add_test(made, a_kind_of_sample_that_is_not_known_is_skipped_and_counted);
    suite_add_tcase(suite, made);
    return check_main_apart(suite);
}
