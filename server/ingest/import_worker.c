/*
 * The child that reads what strangers uploaded. It is started with three descriptors (the upload,
 * a folder to write into, a pipe to report through) and a few numbers, gives up everything else,
 * and only then looks at the first byte.
 */

#include "server/ingest/import_worker.h"

#include "analysis/crew/crew.h"
#include "analysis/diagnose/names/names.h"
#include "analysis/import/import.h"
#include "analysis/model/status.h"
#include "collector/base/io_full.h"
#include "server/ingest/convert.h"
#include "server/ingest/host_limits.h"
#include "server/ingest/ingest_private.h"
#include "server/ingest/original.h"
#include "server/ingest/sandbox.h"
#include "server/store/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <malloc.h>
#include <pwd.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HAS_SHADOW_MEMORY = 1 }; /* sanitizers want terabytes of address space */
#else
enum { HAS_SHADOW_MEMORY = 0 };
#endif

#define INPUT_PATH "/proc/self/fd/3"

/** One line to the parent, short enough that a pipe takes it whole. @return false when the parent
 * is gone */
__attribute__((format(printf, 1, 2))) static bool report(const char *fmt, ...)
{
    char line[512];
    va_list args;
    int length;

    va_start(args, fmt);
    length = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (length > 0) {
        size_t size = (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1;

        line[size - 1] = '\n'; /* also when it was cut */
        while (write(LAC_WORKER_REPORT_FD, line, size) < 0) {
            if (errno != EINTR) {
                return false;
            }
        }
    }
    return true;
}

/** Whether we are root of a container whose owner has no user but one: outside it is that user, and
 *  nobody else can be become. */
static bool is_root_of_one_user(void)
{
    char text[8] = "";
    const int fd = geteuid() == 0 ? open("/proc/self/setgroups", O_RDONLY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        (void)!read(fd, text, sizeof(text) - 1);
        (void)close(fd);
    }
    return strncmp(text, "deny", 4) == 0;
}

/** Of this thread, and of those that it starts. */
static bool drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

    return syscall(SYS_capset, &header, none) == 0;
}

/** Become nobody when started by root; staying root is worse than not importing only if the
 *  system has no such user, then it stays as limited as it can be. */
static bool drop_user(bool is_a_users_root)
{
    const struct passwd *nobody;

    if (geteuid() != 0 || is_a_users_root) {
        return true;
    }
    nobody = getpwnam("nobody");
    if (nobody == NULL) {
        return true;
    }
    return setgroups(0, NULL) == 0 &&
           setresgid(nobody->pw_gid, nobody->pw_gid, nobody->pw_gid) == 0 &&
           setresuid(nobody->pw_uid, nobody->pw_uid, nobody->pw_uid) == 0;
}

/** Threads start while threads may be started, and wait for the rights to be gone before they do
 *  anything: one that keeps the original, and those that help with the rest. */
struct threads {
    struct lac_original_task *keeping;
    struct lac_crew *crew;
    sem_t rights_are_gone; /**< once for each of them */
};

static bool enter_sandbox(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return false;
    }
    (void)lac_sandbox_enter(LAC_WORKER_INPUT_FD, LAC_WORKER_FOLDER_FD);
    return true;
}

static bool thread_enters(void *context)
{
    struct threads *threads = context;

    while (sem_wait(&threads->rights_are_gone) != 0) {
    }
    return enter_sandbox(); /* both belong to a thread */
}

static bool begin_threads(bool keeps_original, struct threads *threads)
{
    static const struct lac_original_options original = {.input_path = INPUT_PATH,
                                                         .output_path = LAC_STAGED_ORIGINAL};

    (void)mallopt(M_ARENA_MAX,
                  1); /* another would take 128 MiB of the addresses that it may have */
    return sem_init(&threads->rights_are_gone, 0, 0) == 0 &&
           (!keeps_original || lac_original_task_begin(&original, thread_enters, threads,
                                                       &threads->keeping, NULL) == LAC_OK) &&
           lac_crew_create(lac_crew_helpers(LAC_CONVERT_HELPERS), thread_enters, threads,
                           &threads->crew);
}

static void let_threads_go(struct threads *threads)
{
    for (unsigned i = 0; i <= lac_crew_size(threads->crew); i++) {
        (void)sem_post(&threads->rights_are_gone);
    }
}

static bool give_up_rights(const struct lac_worker_limits *limits, struct threads *threads)
{
    const bool is_a_users_root = is_root_of_one_user();

    (void)setpriority(PRIO_PROCESS, 0, 5); /* the people who look at traces come first */
    if (syscall(SYS_close_range, LAC_WORKER_REPORT_FD + 1, ~0U, 0) != 0) {
        for (int fd = LAC_WORKER_REPORT_FD + 1; fd < 4096; fd++) {
            (void)close(fd); /* before Linux 5.9 */
        }
    }
    if (fchdir(LAC_WORKER_FOLDER_FD) != 0 || !lac_host_limit_set(LAC_HOST_CORE, 0) ||
        !lac_host_limit_set(LAC_HOST_CPU, limits->cpu_seconds) ||
        !lac_host_limit_set(LAC_HOST_FILE, limits->file_bytes) ||
        !lac_host_limit_set(LAC_HOST_DESCRIPTORS, 32)) {
        return false;
    }
    if (limits->memory_bytes > 0 && !HAS_SHADOW_MEMORY &&
        !lac_host_limit_set(LAC_HOST_ADDRESSES, limits->memory_bytes)) {
        return false;
    }
    if ((is_a_users_root && !drop_capabilities()) ||
        !begin_threads(limits->keep_original, threads) || !drop_user(is_a_users_root)) {
        return false;
    }
    if (!HAS_SHADOW_MEMORY) {
        (void)lac_host_limit_set(LAC_HOST_PROCESSES,
                                 0); /* the leak checker starts a thread at the end */
    }
    /* after a change of user /proc/self belongs to root unless this says otherwise */
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (!enter_sandbox()) {
        return false;
    }
    let_threads_go(threads);
    return true;
}

static bool report_progress(void *context, uint64_t done_bytes, uint64_t total_bytes,
                            uint64_t event_count)
{
    double *told_s = context;
    double now_s = lac_ingest_now_s();

    if (now_s - *told_s < 0.2) {
        return true;
    }
    *told_s = now_s;
    return report("p %llu %llu %llu\n", (unsigned long long)done_bytes,
                  (unsigned long long)total_bytes, (unsigned long long)event_count);
}

static enum lac_status import(const char *name, const struct lac_names *names,
                              struct lac_crew *crew, struct lac_convert_result *result,
                              struct lac_error *error)
{
    double told_s = 0;
    struct lac_convert_options convert = {.input_path = INPUT_PATH,
                                          .output_dir = ".",
                                          .name = name,
                                          .names = names,
                                          .crew = crew,
                                          .progress = report_progress,
                                          .progress_context = &told_s};

    lac_import_limits_default(&convert.limits);
    return lac_convert(&convert, result, error);
}

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 10);
}

/** The trace's name and the names of kernels, each with a NUL behind it, from standard input. @return NULL when it cannot be read */
static char *read_name(void)
{
    enum { NAME_BYTES_MAX = 1 << 20 };
    char *name = malloc(NAME_BYTES_MAX + 2);
    const int64_t got = name != NULL ? lac_read_full(STDIN_FILENO, name, NAME_BYTES_MAX) : -1;

    if (name != NULL) {
        name[got > 0 ? got : 0] = '\0';
        name[(got > 0 ? got : 0) + 1] = '\0';
    }
    return name;
}

/** argv: memory bytes, file bytes, CPU seconds, keep the original (0 or 1).
 *  Standard input: name, NUL, names of kernels. */
int lac_cmd_import_worker(int argc, char **argv)
{
    struct lac_worker_limits limits;
    struct lac_convert_result result = {0};
    struct lac_error error = {0};
    enum lac_status status;
    struct lac_names *names = NULL;
    struct threads threads = {.keeping = NULL};
    uint64_t size_bytes = 0;
    char *name;

    if (argc != 5) {
        (void)fprintf(stderr, "lacuna import-worker: started by lacuna serve, not by people\n");
        return 2;
    }
    limits = (struct lac_worker_limits){.memory_bytes = number(argv[1]),
                                        .file_bytes = number(argv[2]),
                                        .cpu_seconds = (uint32_t)number(argv[3]),
                                        .keep_original = strcmp(argv[4], "1") == 0};
    if (!give_up_rights(&limits, &threads)) {
        (void)report("e %d 0 cannot limit the importing process: %s\n", LAC_ERR_IO,
                     strerror(errno));
        return 1;
    }
    name = read_name();
    status = name != NULL ? LAC_OK : lac_fail(&error, LAC_ERR_NOMEM, 0, "out of memory");
    if (status == LAC_OK) {
        const char *text = name + strlen(name) + 1; /* behind the name; read_name() ends it, too */
        status = lac_names_parse(text, strlen(text), &names, &error);
    }
    if (status == LAC_OK) {
        status = import(name[0] != '\0' ? name : "trace", names, threads.crew, &result, &error);
    }
    if (status == LAC_OK) { /* after a failure the process ends, and the thread with it */
        status = lac_original_task_end(threads.keeping, &size_bytes, &error);
    }
    lac_names_destroy(names);
    free(name);
    status = lac_ingest_sort_io(status, &error);
    if (status != LAC_OK) {
        (void)report("e %d %llu %s\n", (int)status, (unsigned long long)error.offset_bytes,
                     error.message);
        return 1;
    }
    (void)report("r %u %llu %llu\n", result.trace_count, (unsigned long long)result.event_count,
                 (unsigned long long)result.slice_count);
    return 0;
}
