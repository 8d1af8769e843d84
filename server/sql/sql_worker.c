/* The child's side of sql_child.h: standard input holds the paths of the trace files and the query. */

#include "analysis/model/model.h"
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
#include <poll.h>
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

/** What standard input says. */
struct words {
    char *bytes; /**< owned */
    const char *paths[LAC_SQL_TRACES_MAX];
    unsigned count;
    const char *query;
};

/** The traces. */
struct sources {
    struct lac_trace_file *files[LAC_SQL_TRACES_MAX];
    struct lac_sql_trace traces[LAC_SQL_TRACES_MAX];
    char *names[LAC_SQL_TRACES_MAX];
    unsigned count;
};

/** Asks to end with the server. @return false where it has ended already: nobody reads the answer */
static bool end_with_server(void)
{
    struct pollfd answer = {.fd = STDOUT_FILENO};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return poll(&answer, 1, 0) == 0 || (answer.revents & POLLERR) == 0;
}

/** Before the first byte of a trace or the query. */
static bool limit_self(const struct words *words, const struct lac_sql_limits *limits)
{
    uint64_t size_bytes = 0;
    if (!end_with_server()) {
        return false;
    }
    (void)setpriority(PRIO_PROCESS, 0, 5);
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) != 0) {
        for (int fd = STDERR_FILENO + 1; fd < 4096; fd++) {
            (void)close(fd); /* before Linux 5.9 */
        }
    }
    for (unsigned i = 0; i < words->count; i++) {
        struct stat info;
        if (stat(words->paths[i], &info) != 0) {
            return false;
        }
        size_bytes += (uint64_t)info.st_size;
    }
    if (!lac_host_limit_set(LAC_HOST_CORE, 0) ||
        !lac_host_limit_set(LAC_HOST_CPU, limits->seconds + 1) ||
        !lac_host_limit_set(LAC_HOST_FILE, 0) ||
        !lac_host_limit_set(LAC_HOST_DESCRIPTORS, 32 + 4 * (uint64_t)words->count)) {
        return false;
    }
    uint64_t addresses = limits->memory_bytes + TRACE_BYTES + 2 * size_bytes;
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

/** @return false: they are not all there, or memory is not */
static bool read_words(uint64_t count, struct words *ret_words)
{
    if (count == 0 || count > LAC_SQL_TRACES_MAX) {
        return false;
    }
    const size_t room = (size_t)count * PATH_MAX + (size_t)LAC_SQL_TEXT_BYTES_MAX;
    ret_words->bytes = malloc(room + 1);
    int64_t got =
        ret_words->bytes != NULL ? lac_read_full(STDIN_FILENO, ret_words->bytes, room) : 0;
    if (got <= 0) {
        return false;
    }
    char *at = ret_words->bytes;
    char *const end = at + got;
    *end = '\0';
    for (; ret_words->count < count && at < end; at += strlen(at) + 1) {
        ret_words->paths[ret_words->count++] = at;
    }
    ret_words->query = at;
    return ret_words->count == count && at <= end;
}

static int answer(struct sources *sources, const struct words *words, bool is_many,
                  const struct lac_sql_limits *limits, struct lac_sql_result *result)
{
    struct lac_error error = {0};
    struct lac_sql_sink sink = lac_sql_result_sink(result);
    struct lac_sql_many many = {.traces = sources->traces,
                                .names = (const char *const *)sources->names,
                                .count = sources->count};
    enum lac_status status =
        is_many ? lac_sql_query_many(&many, words->query, limits, &sink, &error)
                : lac_sql_query(sources->traces, words->query, limits, &sink, &error);
    status = status ? status : lac_sql_result_finish(result);
    if (status) {
        return tell_failure(status, &error);
    }
    return lac_write_full(STDOUT_FILENO, "r", 1) &&
                   lac_write_full(STDOUT_FILENO, result->out.bytes, result->out.size_bytes)
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}

static enum lac_status open_sources(const struct words *words, struct sources *sources,
                                    struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;
    for (unsigned i = 0; i < words->count && !status; i++) {
        const struct lac_sql_many many = {.names = (const char *const *)sources->names,
                                          .count = sources->count};
        status = lac_trace_file_open(words->paths[i], CACHE_BYTES, &sources->files[i], reterr);
        if (!status) {
            const struct lac_model *head = lac_trace_file_head(sources->files[i]);
            sources->names[i] = lac_sql_many_name(&many, lac_model_str(head, head->info.name));
            lac_sql_trace_init(&sources->traces[i], sources->files[i]);
            sources->count++;
            status = sources->names[i] != NULL ? LAC_OK : LAC_ERR_NOMEM;
        }
    }
    return status;
}

static void close_sources(struct sources *sources)
{
    for (unsigned i = 0; i < sources->count; i++) {
        lac_sql_trace_done(&sources->traces[i]);
        lac_trace_file_close(sources->files[i]);
        free(sources->names[i]);
    }
}

int lac_cmd_sql_worker(int argc, char **argv)
{
    enum { NUMBERS = 6 };
    uint64_t numbers[NUMBERS] = {0};
    static struct sources sources; /* large, and there is one */
    static struct words words;
    struct lac_error error = {0};
    for (int i = 0; i < NUMBERS && i + 1 < argc; i++) {
        numbers[i] = strtoull(argv[i + 1], NULL, 10);
    }
    const struct lac_sql_limits limits = {.memory_bytes = numbers[0],
                                          .seconds = (unsigned)numbers[1]};
    struct lac_sql_result result = {
        .form = (numbers[5] & LAC_SQL_WORKER_CSV) != 0 ? LAC_SQL_FORM_CSV : LAC_SQL_FORM_JSON,
        .row_max = numbers[2],
        .bytes_max = numbers[3]};
    int exit_status = EXIT_FAILURE;
    if (argc != NUMBERS + 1 || !read_words(numbers[4], &words) || !limit_self(&words, &limits)) {
        free(words.bytes);
        return EXIT_FAILURE;
    }
    enum lac_status status = open_sources(&words, &sources, &error);
    if (status == LAC_OK) {
        if (!HAS_SHADOW_MEMORY) {
            (void)lac_host_limit_set(LAC_HOST_PROCESSES, 0);
        }
        (void)lac_sandbox_enter(-1, -1); /* all that it needs is open */
        exit_status =
            answer(&sources, &words, (numbers[5] & LAC_SQL_WORKER_MANY) != 0, &limits, &result);
    } else {
        exit_status = tell_failure(status, &error);
    }
    free(words.bytes);
    lac_sql_result_done(&result);
    close_sources(&sources);
    return exit_status;
}
