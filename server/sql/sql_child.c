#include "server/sql/sql_child.h"

#include "analysis/model/status.h"
#include "collector/base/io_full.h"
#include "server/base/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* After its time the child has so long to say so itself. */
enum { GRACE_MS = 2000, READ_BYTES = 65536, NUMBERS = 6 };

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* NOLINT(misc-include-cleaner): time.h has it */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/** The paths and the query for the child to read, with a NUL behind each: arguments are for all users
 *  to see. */
static int words_to_read(const struct lac_sql_request *request)
{
    int fd = memfd_create("query", MFD_CLOEXEC);
    bool is_written = fd >= 0;
    for (unsigned i = 0; i < request->trace_count && is_written; i++) {
        const char *path = request->trace_paths[i];
        is_written = lac_write_full(fd, path, strlen(path) + 1);
    }
    if (fd >= 0 && (!is_written || !lac_write_full(fd, request->query, strlen(request->query)) ||
                    lseek(fd, 0, SEEK_SET) != 0)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/** A descriptor out of the way of those that the child gets. The given one is closed. */
static int moved_up(int fd)
{
    int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 16) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    return high;
}

/** `fds`: words, pipe to write to. @return 0 or an errno */
static int spawn(const struct lac_sql_request *request, const int *fds, pid_t *ret_pid)
{
    char numbers[NUMBERS][24];
    char self[] = "lacuna";
    char word[] = "sql-worker";
    char *argv[] = {self,       word,       numbers[0], numbers[1], numbers[2],
                    numbers[3], numbers[4], numbers[5], NULL};
    char *const environment[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t all;
    (void)snprintf(numbers[0], sizeof(numbers[0]), "%" PRIu64, request->memory_bytes);
    (void)snprintf(numbers[1], sizeof(numbers[1]), "%u", request->seconds);
    (void)snprintf(numbers[2], sizeof(numbers[2]), "%" PRIu64, request->row_max);
    (void)snprintf(numbers[3], sizeof(numbers[3]), "%" PRIu64, request->bytes_max);
    (void)snprintf(numbers[4], sizeof(numbers[4]), "%u", request->trace_count);
    (void)snprintf(numbers[5], sizeof(numbers[5]), "%d",
                   (request->is_many ? LAC_SQL_WORKER_MANY : 0) |
                       (request->is_csv ? LAC_SQL_WORKER_CSV : 0));
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_adddup2(&actions, fds[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETPGROUP);
    int error = posix_spawn(ret_pid, "/proc/self/exe", &actions, &attributes, argv, environment);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return error;
}

/** Start the child. @return the end to read from, or -1 */
static int start(const struct lac_sql_request *request, pid_t *ret_pid, struct lac_error *reterr)
{
    int ends[2] = {-1, -1};
    int fds[2] = {-1, -1};
    int error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
    fds[0] = moved_up(words_to_read(request));
    fds[1] = moved_up(ends[1]);
    if (error == 0) {
        error = fds[0] < 0 || fds[1] < 0 ? EMFILE : spawn(request, fds, ret_pid);
    }
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
    if (error != 0) {
        if (ends[0] >= 0) {
            (void)close(ends[0]);
        }
        errno = error;
        (void)lac_fail(reterr, LAC_ERR_IO, 0, "the query could not be started: %s",
                       strerror(error));
        return -1;
    }
    return ends[0];
}

/** Take all that the child says. @return false when it took too long, or says too much */
static bool listen_to(int fd, const struct lac_sql_request *request, struct lac_buffer *heard)
{
    int64_t late_ms = now_ms() + (int64_t)request->seconds * 1000 + GRACE_MS;
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    char bytes[READ_BYTES];
    for (;;) {
        int64_t left_ms = late_ms - now_ms();
        if (left_ms <= 0 || heard->size_bytes > request->bytes_max + READ_BYTES) {
            return false;
        }
        if (poll(&poller, 1, left_ms > 1000 ? 1000 : (int)left_ms) <= 0) {
            continue;
        }
        ssize_t got = read(fd, bytes, sizeof(bytes));
        if (got == 0) {
            return heard->status == LAC_OK;
        }
        if (got > 0) {
            lac_buffer_add(heard, bytes, (size_t)got);
        } else if (errno != EINTR && errno != EAGAIN) {
            return false;
        }
    }
}

/** What the child said: 'r' and the document, or 'e', a status and a sentence. */
static enum lac_status take(const struct lac_buffer *heard, bool is_ended, int wait_status,
                            const struct lac_sql_request *request, struct lac_buffer *ret_text,
                            struct lac_error *reterr)
{
    const char *text = heard->bytes;
    bool has_exited = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    if (is_ended && has_exited && heard->size_bytes > 1 && text[0] == 'r') {
        lac_buffer_add(ret_text, text + 1, heard->size_bytes - 1);
        return ret_text->status;
    }
    if (is_ended && has_exited && heard->size_bytes > 1 && text[0] == 'e') {
        char *rest = NULL;
        long status = strtol(text + 1, &rest, 10);
        bool is_known = status > LAC_OK && status < LAC_STATUS_COUNT_;
        return lac_fail(reterr, is_known ? (enum lac_status)status : LAC_ERR_IO, 0, "%.190s",
                        rest + strspn(rest, " "));
    }
    bool is_late = !is_ended || (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGXCPU);
    return is_late ? lac_fail(reterr, LAC_ERR_LIMIT, 0, "the query took longer than %u s",
                              request->seconds)
                   : lac_fail(reterr, LAC_ERR_LIMIT, 0,
                              "the query ended its process: it may need more memory than it gets");
}

enum lac_status lac_sql_child_run(const struct lac_sql_request *request,
                                  struct lac_buffer *ret_text, struct lac_error *reterr)
{
    struct lac_buffer heard = {0};
    pid_t pid = -1;
    int wait_status = 0;
    int fd = start(request, &pid, reterr);
    if (fd < 0) {
        return LAC_ERR_IO;
    }
    bool is_ended = listen_to(fd, request, &heard);
    (void)close(fd);
    if (!is_ended) {
        (void)kill(-pid, SIGKILL);
    }
    while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
    }
    enum lac_status status = take(&heard, is_ended, wait_status, request, ret_text, reterr);
    lac_buffer_done(&heard);
    return status;
}
