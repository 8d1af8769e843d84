/* The doctor on machines that are laid out as files: containers, cgroups, drivers. */
#include "server/doctor/doctor.h"
#include "tests/support/check_main.h"
#include "tests/support/made_file.h"
#include "tests/support/recorded_job.h"

#include <arpa/inet.h>
#include <check.h>
#include <dlfcn.h>
#include <ftw.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];
static struct lac_doctor doctor;

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void begin(void)
{
    (void)snprintf(root, sizeof(root), "/tmp/lacuna-doctor-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    memset(&doctor, 0, sizeof(doctor));
    doctor.root = root;
    doctor.server = "http://127.0.0.1:1";
    (void)clearenv();
}

static void end(void)
{
    (void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Lay out one file of the machine. */
static void put(const char *path, const char *text)
{
    make_file(root, path, text);
}

static const struct lac_doctor_line *line(const char *id)
{
    for (unsigned i = 0; i < doctor.line_count; i++) {
        if (strcmp(doctor.line[i].id, id) == 0) {
            return &doctor.line[i];
        }
    }
    ck_abort_msg("no line %s", id);
    return NULL;
}

static void expect(const char *id, enum lac_doctor_state state, const char *part)
{
    const struct lac_doctor_line *found = line(id);

    ck_assert_msg(found->state == state && strstr(found->text, part) != NULL, "%s: state %d: %s",
                  id, found->state, found->text);
    ck_assert_msg((found->fix[0] != '\0') == (state == LAC_DOCTOR_AMBER),
                  "%s: amber lines, and only those, carry a fix: '%s'", id, found->fix);
}

START_TEST(a_kubernetes_quota_below_the_cores_is_amber)
{
    put("/proc/self/cgroup", "0::/kube/pod1\n");
    put("/sys/fs/cgroup/kube/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/kube/pod1/cpu.max", "50000 100000\n");
    put("/sys/fs/cgroup/kube/pod1/cpu.stat",
        "usage_usec 5\nnr_periods 9\nnr_throttled 7\nthrottled_usec 2500000\n");
    lac_doctor_cores(&doctor);
    expect("quota", LAC_DOCTOR_AMBER, "quota of 0.5 cores");
    expect("throttling", LAC_DOCTOR_AMBER, "throttled 7 times so far, 2.5 s");
}
END_TEST

START_TEST(the_tightest_quota_above_is_the_one_that_holds)
{
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/cpu.max", "20000 100000\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "100000 100000\n");
    put("/sys/fs/cgroup/a/b/cpu.stat", "nr_throttled 0\nthrottled_usec 0\n");
    lac_doctor_cores(&doctor);
    expect("quota", LAC_DOCTOR_AMBER, "quota of 0.2 cores");
    expect("throttling", LAC_DOCTOR_OK, "not throttled");
}
END_TEST

START_TEST(version_1_cgroups_are_read_too)
{
    put("/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/docker/1\n0::/\n");
    put("/sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "30000\n");
    put("/sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu/docker/1/cpu.stat",
        "nr_periods 10\nnr_throttled 3\nthrottled_time 4000000000\n");
    lac_doctor_cores(&doctor);
    expect("quota", LAC_DOCTOR_AMBER, "quota of 0.3 cores");
    expect("throttling", LAC_DOCTOR_AMBER, "3 times so far, 4.0 s");
}
END_TEST

START_TEST(without_cgroups_it_says_that_it_cannot_see)
{
    lac_doctor_cores(&doctor);
    expect("quota", LAC_DOCTOR_UNSEEN, "no cgroup");
    lac_doctor_memory(&doctor);
    expect("memory", LAC_DOCTOR_UNSEEN, "meminfo");
    expect("shm", LAC_DOCTOR_UNSEEN, "/dev/shm");
    lac_doctor_system(&doctor);
    expect("clock", LAC_DOCTOR_UNSEEN, "clock source");
    expect("governor", LAC_DOCTOR_UNSEEN, "cannot see");
    lac_doctor_gpus(&doctor);
    expect("gpu", LAC_DOCTOR_UNSEEN, "no NVIDIA driver");
}
END_TEST

START_TEST(an_srun_without_its_cores_is_amber_with_the_line_to_export)
{
    setenv("SLURM_JOB_ID", "77", 1);
    setenv("SLURM_CPUS_PER_TASK", "100000", 1);
    lac_doctor_cores(&doctor);
    expect("slurm", LAC_DOCTOR_AMBER, "100000 cores per task");
    ck_assert_ptr_nonnull(
        strstr(line("slurm")->fix, "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"));
}
END_TEST

START_TEST(a_memory_limit_is_found_where_it_is_set)
{
    put("/proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable: 8000000 kB\n");
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/memory.max", "2147483648\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    lac_doctor_memory(&doctor);
    expect("memory", LAC_DOCTOR_AMBER, "limited to 2.0 GiB");
}
END_TEST

START_TEST(a_driver_that_restricts_profiling_is_amber_for_users)
{
    put("/proc/driver/nvidia/version", "NVRM version: x\n");
    put("/proc/driver/nvidia/params", "A: 1\nRmProfilingAdminOnly: 1\nB: 0\n");
    lac_doctor_gpus(&doctor);
    if (geteuid() == 0) {
        expect("profiling", LAC_DOCTOR_OK, "permits");
    } else {
        expect("profiling", LAC_DOCTOR_AMBER, "RmProfilingAdminOnly: 1");
    }
}
END_TEST

/* Ask the stand-in for the driver's library in this folder (tests/stand_in/nvml_stand_in.c). */
static void ask_stand_in(const char *library)
{
    /* by its own name it is found from now on */
    ck_assert_msg(dlopen(lac_job_file(library), RTLD_NOW) != NULL, "%s", dlerror());
    lac_doctor_ask_driver(&doctor);
}

START_TEST(a_driver_tells_whether_it_reads_counters)
{
    (void)setenv("NVML_STAND_IN_GPUS", "2", 1);
    ask_stand_in("stand_in/nvml/libnvidia-ml.so.1");
    expect("gpu driver", LAC_DOCTOR_OK, "NVIDIA driver 999.01");
    expect("gpu", LAC_DOCTOR_OK, "GPU 0: Stand-in GPU 0");
    expect("gpu clocks", LAC_DOCTOR_AMBER, "power cap");
    expect("gpu counters", LAC_DOCTOR_OK, "GPU 0 reports SM and tensor core activity");
    ck_assert_uint_eq(doctor.gpu_count, 2);
}
END_TEST

START_TEST(a_driver_that_reads_no_counters_says_why)
{
    static const struct {
        const char *library;
        const char *script;
        const char *why;
    } cases[] = {
        {"stand_in/nvml/libnvidia-ml.so.1", "no", "GPM: Hopper and later"},
        {"stand_in/nvml/libnvidia-ml.so.1", "mig", "GPM: not with MIG"},
        {"stand_in/nvml-old/libnvidia-ml.so.1", "", "GPM: the driver is too old"},
    };

    (void)setenv("NVML_STAND_IN_GPM", cases[_i].script, 1);
    ask_stand_in(cases[_i].library);
    expect("gpu counters", LAC_DOCTOR_OK, "GPU 0 does not report SM activity");
    expect("gpu counters", LAC_DOCTOR_OK, cases[_i].why);
    expect("gpu clocks", LAC_DOCTOR_AMBER, "power cap"); /* by the function's old name, too */
}
END_TEST

START_TEST(a_gpus_own_cores_are_told)
{
    put("/proc/driver/nvidia/version", "NVRM version: x\n");
    put("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: x\n");
    put("/sys/bus/pci/devices/0000:01:00.0/numa_node", "1\n");
    put("/sys/bus/pci/devices/0000:01:00.0/local_cpulist", "0-15000\n");
    lac_doctor_gpus(&doctor);
    expect("gpu socket", LAC_DOCTOR_OK, "NUMA node 1: ");
    expect("profiling", LAC_DOCTOR_UNSEEN, "cannot see");
    doctor.line_count = 0;
    put("/sys/bus/pci/devices/0000:01:00.0/local_cpulist", "16000,16100-16101\n");
    lac_doctor_gpus(&doctor);
    expect("gpu socket", LAC_DOCTOR_AMBER, "of which none is allowed");
}
END_TEST

START_TEST(variables_that_slow_or_intrude_are_amber)
{
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    setenv("TORCH_DISTRIBUTED_DEBUG", "off", 1);
    setenv("LD_PRELOAD", "/x/libother.so", 1);
    setenv("NVTX_INJECTION64_PATH", "/x/liblacuna.so", 1);
    setenv("OMP_NUM_THREADS", "100000", 1);
    doctor.allowed_cores = 4;
    lac_doctor_environment(&doctor);
    expect("switches", LAC_DOCTOR_AMBER, "CUDA_LAUNCH_BLOCKING is set");
    ck_assert_str_eq(line("switches")->fix, "unset CUDA_LAUNCH_BLOCKING");
    expect("injections", LAC_DOCTOR_AMBER, "LD_PRELOAD=/x/libother.so");
    expect("threads", LAC_DOCTOR_AMBER, "only 4 cores");
    for (unsigned i = 0; i < doctor.line_count; i++) {
        ck_assert_ptr_null(strstr(doctor.line[i].text, "NVTX_INJECTION"));
        ck_assert_ptr_null(strstr(doctor.line[i].text, "DISTRIBUTED_DEBUG"));
    }
}
END_TEST

START_TEST(a_quiet_environment_is_green)
{
    lac_doctor_environment(&doctor);
    expect("switches", LAC_DOCTOR_OK, "no debug switch");
    expect("injections", LAC_DOCTOR_OK, "no other tool");
    expect("threads", LAC_DOCTOR_OK, "OMP_NUM_THREADS is not set");
}
END_TEST

START_TEST(a_slow_clock_and_a_lowest_governor_are_amber)
{
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "acpi-cpufreq\n");
    lac_doctor_system(&doctor);
    expect("clock", LAC_DOCTOR_AMBER, "hpet");
    expect("governor", LAC_DOCTOR_AMBER, "lowest clock");
    doctor.line_count = 0;
    put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n");
    lac_doctor_system(&doctor);
    expect("governor", LAC_DOCTOR_OK, "intel_pstate");
}
END_TEST

START_TEST(a_data_folder_that_does_not_exist_yet_is_judged_by_its_parent)
{
    char folder[128];

    (void)snprintf(folder, sizeof(folder), "%s/not/yet/there", root);
    doctor.data_dir = folder;
    lac_doctor_disk(&doctor);
    ck_assert_ptr_nonnull(line("data"));
    ck_assert_ptr_nonnull(line("space"));
    doctor.line_count = 0;
    doctor.data_dir = NULL;
    lac_doctor_disk(&doctor);
    expect("data", LAC_DOCTOR_UNSEEN, "--data");
}
END_TEST

START_TEST(a_server_that_is_not_there_is_amber_and_https_is_not_guessed)
{
    lac_doctor_reach(&doctor);
    expect("server", LAC_DOCTOR_AMBER, "no server answers");
    doctor.line_count = 0;
    doctor.server = "https://x";
    lac_doctor_reach(&doctor);
    expect("server", LAC_DOCTOR_UNSEEN, "only http://");
}
END_TEST

struct listener {
    int fd;
    const char *reply;
};

/* Answers whoever comes until the socket is shut down. */
static void *answer(void *context)
{
    const struct listener *listener = context;
    char request[1024];

    for (int fd; (fd = accept(listener->fd, NULL, NULL)) >= 0; (void)close(fd)) {
        if (recv(fd, request, sizeof(request), 0) > 0) {
            (void)send(fd, listener->reply, strlen(listener->reply), MSG_NOSIGNAL);
        }
    }
    return NULL;
}

/* What the doctor says of a server that replies so: `want`, soon, or else what it says. */
static void expect_reach(const char *reply, enum lac_doctor_state state, const char *want)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct listener listener = {.fd = socket(AF_INET, SOCK_STREAM, 0), .reply = reply};
    socklen_t length = sizeof(address);
    char server[64];
    pthread_t thread;

    ck_assert_int_ge(listener.fd, 0);
    ck_assert_int_eq(bind(listener.fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(listener.fd, 8), 0);
    ck_assert_int_eq(getsockname(listener.fd, (struct sockaddr *)&address, &length), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, answer, &listener), 0);
    (void)snprintf(server, sizeof(server), "http://127.0.0.1:%d", (int)ntohs(address.sin_port));
    doctor.server = server;
    for (int tries = 0; tries < 100; tries++) { /* a busy machine answers later than it waits */
        doctor.line_count = 0;
        lac_doctor_reach(&doctor);
        if (strstr(line("server")->text, want) != NULL) {
            break;
        }
    }
    expect("server", state, want);
    (void)shutdown(listener.fd, SHUT_RDWR);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    (void)close(listener.fd);
}

START_TEST(only_a_reply_of_ours_is_a_server)
{
    expect_reach("HTTP/1.1 200 OK\r\n\r\n{\"status\":\"ok\",\"version\":\"1\"}\n", LAC_DOCTOR_OK,
                 "answers");
    expect_reach("HTTP/1.1 200 OK\r\n\r\n<p>\"status\":\"ok\"</p>", LAC_DOCTOR_AMBER,
                 "another program");
    expect_reach("HTTP/1.1 404 \r\n\r\n{\"checks\":{\"status\":\"ok\"}}", LAC_DOCTOR_AMBER,
                 "another program");
    expect_reach("SSH-2.0 \"status\":\"ok\"", LAC_DOCTOR_AMBER, "another program");
}
END_TEST

START_TEST(the_whole_runs_here)
{
    doctor.root = "";
    doctor.data_dir = root;
    lac_doctor_run(&doctor);
    ck_assert_uint_ge(doctor.line_count, 15);
    ck_assert_uint_lt(doctor.line_count, LAC_DOCTOR_LINES_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("doctor");
    TCase *tests = tcase_create("doctor");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_kubernetes_quota_below_the_cores_is_amber);
    tcase_add_test(tests, the_tightest_quota_above_is_the_one_that_holds);
    tcase_add_test(tests, version_1_cgroups_are_read_too);
    tcase_add_test(tests, without_cgroups_it_says_that_it_cannot_see);
    tcase_add_test(tests, an_srun_without_its_cores_is_amber_with_the_line_to_export);
    tcase_add_test(tests, a_memory_limit_is_found_where_it_is_set);
    tcase_add_test(tests, a_driver_that_restricts_profiling_is_amber_for_users);
    tcase_add_test(tests, a_gpus_own_cores_are_told);
    tcase_add_test(tests, a_driver_tells_whether_it_reads_counters);
    tcase_add_loop_test(tests, a_driver_that_reads_no_counters_says_why, 0, 3);
    tcase_add_test(tests, variables_that_slow_or_intrude_are_amber);
    tcase_add_test(tests, a_quiet_environment_is_green);
    tcase_add_test(tests, a_slow_clock_and_a_lowest_governor_are_amber);
    tcase_add_test(tests, a_data_folder_that_does_not_exist_yet_is_judged_by_its_parent);
    tcase_add_test(tests, a_server_that_is_not_there_is_amber_and_https_is_not_guessed);
    tcase_add_test(tests, only_a_reply_of_ours_is_a_server);
    tcase_add_test(tests, the_whole_runs_here);
    suite_add_tcase(suite, tests);
    return check_main_apart(suite);
}
