/* The child's side of sql_child.h: standard input holds the path of the trace file and the query. */

#include "analysis/model/status.h"
#include "collector/base/io_full.h"
#include "server/base/buffer.h"
#include "server/ingest/host_limits.h"
#include "server/ingest/sandbox.h"
#include "server/sql/result_text.h"
#include "server/sql/sql_child.h"
#include "server/sql/sql_query.h"
#include "server/sql/sql_trace.h"
#include "server/store/trace/trace_file.h"

#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HAS_SHADOW_MEMORY = 1 }; /* sanitizers want terabytes of address space */
#else
enum { HAS_SHADOW_MEMORY = 0 };
#endif

/* What the trace itself may take beside SQLite's memory: names, indexes, caches. */
#define TRACE_BYTES ((uint64_t)2 << 30)
#define CACHE_BYTES ((uint64_t)256 << 20)

/** Before the first byte of the trace or the query. */
static bool limit_self(const char *path, const struct lac_sql_limits *limits)
{
    struct stat info;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)setpriority(PRIO_PROCESS, 0, 5);
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) != 0) {
        for (int fd = STDERR_FILENO + 1; fd < 4096; fd++) {
            (void)close(fd); /* before Linux 5.9 */
        }
    }
    if (stat(path, &info) != 0 || !lac_host_limit_set(LAC_HOST_CORE, 0) ||
        !lac_host_limit_set(LAC_HOST_CPU, limits->seconds + 1) ||
        !lac_host_limit_set(LAC_HOST_FILE, 0) || !lac_host_limit_set(LAC_HOST_DESCRIPTORS, 32)) {
        return false;
    }
    uint64_t addresses = limits->memory_bytes + TRACE_BYTES + 2 * (uint64_t)info.st_size;
    return (HAS_SHADOW_MEMORY || lac_host_limit_set(LAC_HOST_ADDRESSES, addresses)) &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static int tell_failure(enum lac_status status, const struct lac_error *error)
{
    char line[300];
    int length = snprintf(line, sizeof(line), "e%d %s", (int)status,
                          error->message[0] != '\0' ? error->message : lac_status_name(status));
    return length > 0 && lac_write_full(STDOUT_FILENO, line, (size_t)length) ? EXIT_SUCCESS
                                                                             : EXIT_FAILURE;
}

/** Path and query from standard input, each with a NUL behind it; the caller frees. */
static char *read_words(void)
{
    const size_t room = PATH_MAX + (size_t)LAC_SQL_TEXT_BYTES_MAX;
    char *text = malloc(room + 2);
    int64_t got = text != NULL ? lac_read_full(STDIN_FILENO, text, room) : 0;
    if (text != NULL) {
        text[got > 0 ? got : 0] = '\0';
        text[(got > 0 ? got : 0) + 1] = '\0';
    }
    return text;
}

static int answer(struct lac_trace_file *file, const char *query,
                  const struct lac_sql_limits *limits, struct lac_sql_result *result)
{
    struct lac_sql_trace trace;
    struct lac_error error = {0};
    struct lac_sql_sink sink = lac_sql_result_sink(result);
    lac_sql_trace_init(&trace, file);
    enum lac_status status = lac_sql_query(&trace, query, limits, &sink, &error);
    status = status ? status : lac_sql_result_finish(result);
    lac_sql_trace_done(&trace);
    if (status) {
        return tell_failure(status, &error);
    }
    return lac_write_full(STDOUT_FILENO, "r", 1) &&
                   lac_write_full(STDOUT_FILENO, result->out.bytes, result->out.size_bytes)
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}

int lac_cmd_sql_worker(int argc, char **argv)
{
    uint64_t numbers[4] = {0};
    struct lac_error error = {0};
    struct lac_trace_file *file = NULL;
    for (int i = 0; i < 4 && i + 1 < argc; i++) {
        numbers[i] = strtoull(argv[i + 1], NULL, 10);
    }
    const struct lac_sql_limits limits = {.memory_bytes = numbers[0],
                                          .seconds = (unsigned)numbers[1]};
    struct lac_sql_result result = {
        .form = LAC_SQL_FORM_JSON, .row_max = numbers[2], .bytes_max = numbers[3]};
    char *words = argc == 5 ? read_words() : NULL;
    int exit_status = EXIT_FAILURE;
    if (words == NULL || !limit_self(words, &limits)) {
        free(words);
        return EXIT_FAILURE;
    }
    enum lac_status status = lac_trace_file_open(words, CACHE_BYTES, &file, &error);
    if (status == LAC_OK) {
        if (!HAS_SHADOW_MEMORY) {
            (void)lac_host_limit_set(LAC_HOST_PROCESSES, 0);
        }
        (void)lac_sandbox_enter(-1, -1); /* all that it needs is open */
        exit_status = answer(file, words + strlen(words) + 1, &limits, &result);
    } else {
        exit_status = tell_failure(status, &error);
    }
    free(words);
    lac_sql_result_done(&result);
    lac_trace_file_close(file);
    return exit_status;
}
