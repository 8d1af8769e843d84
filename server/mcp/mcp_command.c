#include "server/mcp/mcp_command.h"

#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STDOUT, STDERR, PIPES };

struct running {
    pid_t pid;
    int from[PIPES]; /**< -1: at its end */
    size_t complaint_bytes;
};

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void limit(int resource, uint64_t value)
{
    const struct rlimit both = {(rlim_t)value, (rlim_t)value};
    (void)setrlimit(resource, &both);
}

static _Noreturn void become(const struct lac_mcp_command *command, const int *pipes, pid_t parent)
{
    const struct lac_mcp_options *options = command->options;
    const char *program = options->program != NULL ? options->program : "/proc/self/exe";
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* a conversation that ends takes its commands along */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(pipes[STDOUT], STDOUT_FILENO) < 0 || dup2(pipes[STDERR], STDERR_FILENO) < 0) {
        _exit(127);
    }
    if (options->memory_bytes_max != 0) {
        limit(RLIMIT_AS, options->memory_bytes_max);
    }
    limit(RLIMIT_CPU, (uint64_t)options->seconds_max * 2);
    limit(RLIMIT_CORE, 0);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setenv("NO_COLOR", "1", 1);
    (void)setenv("LC_ALL", "C.UTF-8", 1);
    char *argv[LAC_MCP_WORDS_MAX + 1] = {NULL}; /* exec does not write to them */
    size_t count = 0;
    while (count < LAC_MCP_WORDS_MAX && command->argv[count] != NULL) {
        count++;
    }
    memcpy(argv, command->argv, count * sizeof(argv[0]));
    (void)execv(program, argv);
    _exit(127);
}

static enum lac_status start(const struct lac_mcp_command *command, struct running *running,
                             struct lac_mcp_outcome *outcome)
{
    int read_from[PIPES] = {-1, -1}, write_to[PIPES] = {-1, -1};
    bool is_open = true;
    for (int i = 0; i < PIPES && is_open; i++) {
        int pipes[2];
        is_open = pipe2(pipes, O_CLOEXEC) == 0;
        if (is_open) {
            read_from[i] = pipes[0];
            write_to[i] = pipes[1];
        }
    }
    const pid_t parent = getpid();
    const pid_t pid = is_open ? fork() : -1;
    if (pid == 0) {
        become(command, write_to, parent);
    }
    const int error = errno;
    for (int i = 0; i < PIPES; i++) {
        if (write_to[i] >= 0) {
            (void)close(write_to[i]);
        }
        if (pid < 0 && read_from[i] >= 0) {
            (void)close(read_from[i]);
        }
        running->from[i] = read_from[i];
    }
    if (pid < 0) {
        (void)snprintf(outcome->complaint, sizeof(outcome->complaint),
                       "the command could not be started: %s", strerror(error));
        return LAC_ERR_IO;
    }
    running->pid = pid;
    return LAC_OK;
}

/** Read what there is. */
static void take(struct running *running, int which, struct lac_mcp_outcome *outcome)
{
    char bytes[65536];
    const ssize_t size = read(running->from[which], bytes, sizeof(bytes));
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (size <= 0) {
        (void)close(running->from[which]);
        running->from[which] = -1;
    } else if (which == STDOUT) {
        lac_buffer_add(&outcome->output, bytes, (size_t)size);
    } else {
        const size_t room = sizeof(outcome->complaint) - 1 - running->complaint_bytes;
        const size_t kept = (size_t)size < room ? (size_t)size : room;
        memcpy(outcome->complaint + running->complaint_bytes, bytes, kept);
        running->complaint_bytes += kept;
    }
}

/** Listen until both pipes end. @return why it was to be ended before, or NULL */
static const char *listen_to(const struct lac_mcp_command *command, struct running *running,
                             struct lac_mcp_outcome *outcome)
{
    const double end_s = now_s() + command->options->seconds_max;
    while (running->from[STDOUT] >= 0 || running->from[STDERR] >= 0) {
        struct pollfd fds[] = {{running->from[STDOUT], POLLIN, 0},
                               {running->from[STDERR], POLLIN, 0},
                               {command->output_fd, 0, 0}};
        const double left_s = end_s - now_s();
        if (left_s <= 0.0) {
            return "it took too long";
        }
        if (poll(fds, 3, (int)(left_s * 1e3) + 1) < 0 && errno != EINTR) {
            return "its output could not be read";
        }
        for (int i = 0; i < PIPES; i++) {
            if (fds[i].fd >= 0 && fds[i].revents != 0) {
                take(running, i, outcome);
            }
        }
        if ((fds[2].revents & (POLLHUP | POLLERR)) != 0) {
            outcome->is_client_gone = true;
            return "the client is gone";
        }
        if (outcome->output.status == LAC_ERR_LIMIT) {
            return "it answered more than 64 MiB";
        }
        if (outcome->output.status) {
            return "there is not enough memory for its answer";
        }
    }
    return NULL;
}

enum lac_status lac_mcp_command_run(const struct lac_mcp_command *command,
                                    struct lac_mcp_outcome *ret_outcome)
{
    struct running running = {.from = {-1, -1}};
    ret_outcome->output.size_bytes_max = LAC_MCP_OUTPUT_BYTES_MAX;
    enum lac_status status = start(command, &running, ret_outcome);
    if (status) {
        return status;
    }
    const char *ended = listen_to(command, &running, ret_outcome);
    int how = 0;
    if (ended != NULL) {
        (void)kill(running.pid, SIGKILL);
    }
    for (int i = 0; i < PIPES; i++) {
        if (running.from[i] >= 0) {
            (void)close(running.from[i]);
        }
    }
    while (waitpid(running.pid, &how, 0) < 0 && errno == EINTR) {
    }
    ret_outcome->exit_status = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
    if (ended != NULL) {
        (void)snprintf(ret_outcome->complaint, sizeof(ret_outcome->complaint),
                       "the command was ended: %s", ended);
    } else if (WIFSIGNALED(how)) {
        (void)snprintf(ret_outcome->complaint, sizeof(ret_outcome->complaint),
                       WTERMSIG(how) == SIGXCPU ? "the command was ended: it took too long"
                                                : "the command was ended by signal %d",
                       WTERMSIG(how));
    }
    return LAC_OK;
}
