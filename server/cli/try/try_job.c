#include "server/cli/try/try_job.h"

#include "collector/base/count_of.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_MS = 50, /* how often the job is looked at */
    GRACE_S = 60, /* for a job that was told to end, before it is killed */
    NUMBER_BYTES = 24
};

static const int ENDING[] = {SIGINT, SIGTERM, SIGHUP};

static volatile sig_atomic_t ended_by;

static void note(int number)
{
    ended_by = number;
}

static void catch_all(struct sigaction *before)
{
    struct sigaction catching = {.sa_handler = note};
    ended_by = 0;
    for (size_t i = 0; i < LAC_COUNT_OF(ENDING); i++) {
        (void)sigaction(ENDING[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) {
            (void)sigaction(ENDING[i], &catching, NULL);
        }
    }
}

static void let_go(const struct sigaction *before)
{
    for (size_t i = 0; i < LAC_COUNT_OF(ENDING); i++) {
        (void)sigaction(ENDING[i], &before[i], NULL);
    }
}

/* `lacuna run -o` takes '%' for a pattern. */
static bool escape(const char *folder, char *out, size_t capacity)
{
    size_t used = 0;
    for (; *folder != '\0' && used + 3 < capacity; folder++) {
        out[used++] = *folder;
        if (*folder == '%') {
            out[used++] = '%';
        }
    }
    out[used] = '\0';
    return *folder == '\0';
}

static void set_number(const char *name, long value)
{
    char text[NUMBER_BYTES];
    (void)snprintf(text, sizeof(text), "%ld", value);
    (void)setenv(name, text, 1);
}

static _Noreturn void become(const struct lac_try_job *job, char **arguments, pid_t parent)
{
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) { /* it ended before we asked to be told */
        _exit(127);
    }
    if (job->changes != NULL) {
        (void)setenv("LACUNA_TRY", job->changes, 1);
    } else {
        (void)unsetenv("LACUNA_TRY");
    }
    set_number("LACUNA_TRY_STEPS", job->steps);
    if (job->threads > 0) {
        set_number("OMP_NUM_THREADS", job->threads);
    }
    (void)unsetenv("LACUNA_SERVER"); /* an experiment is no run of the project */
    if (nothing >= 0) {
        (void)dup2(nothing, STDIN_FILENO);
    }
    (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* our own output is the result */
    (void)execv("/proc/self/exe", arguments);
    _exit(127);
}

static char **arguments_of(const struct lac_try_job *job, const char *folder)
{
    static const char *const first[] = {"lacuna", "run", "--quiet", "--all", "-o"};
    static const char *const end[] = {"--"};
    size_t count = 0, used = 0;
    while (job->command[count] != NULL) {
        count++;
    }
    char **arguments = calloc(count + LAC_COUNT_OF(first) + 3, sizeof(*arguments));
    if (arguments == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(first); i++) {
        memcpy(&arguments[used++], &first[i],
               sizeof(first[i])); /* execv() leaves them as they are */
    }
    memcpy(&arguments[used++], &folder, sizeof(folder));
    memcpy(&arguments[used++], end, sizeof(end));
    memcpy(&arguments[used], job->command, count * sizeof(*arguments));
    return arguments;
}

static double now_s(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Until it has ended: by itself, when its time is over, or because somebody ends us. */
static struct lac_try_end wait_for(pid_t pid, int seconds_max)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    struct lac_try_end end = {.status = 0};
    double told_at_s = -1.0;
    const double begin_s = now_s();
    int status = 0;
    pid_t ended;
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        const double at_s = now_s();
        end.is_late = end.is_late || (seconds_max > 0 && at_s - begin_s > seconds_max);
        end.interrupted = ended_by;
        if (told_at_s < 0.0 && (end.is_late || end.interrupted != 0)) {
            told_at_s = at_s;
            (void)kill(pid, SIGTERM);
        } else if (told_at_s >= 0.0 && at_s - told_at_s > GRACE_S) {
            (void)kill(pid, SIGKILL);
        }
        (void)nanosleep(&pause, NULL);
    }
    end.interrupted = ended_by;
    end.status = ended < 0             ? -1
                 : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                       : WEXITSTATUS(status);
    return end;
}

struct lac_try_end lac_try_job_run(const struct lac_try_job *job)
{
    struct lac_try_end end = {.status = -1};
    struct sigaction before[LAC_COUNT_OF(ENDING)];
    const size_t capacity = 2 * strlen(job->folder) + 4;
    char *folder = malloc(capacity);
    char **arguments =
        folder != NULL && escape(job->folder, folder, capacity) ? arguments_of(job, folder) : NULL;
    if (arguments == NULL) {
        free(folder);
        errno = ENOMEM;
        return end;
    }
    const pid_t parent = getpid();
    catch_all(before);
    const pid_t pid = fork();
    if (pid == 0) {
        let_go(before);
        become(job, arguments, parent);
    }
    if (pid > 0) {
        end = wait_for(pid, job->seconds_max);
    }
    const int error = errno;
    let_go(before);
    free(arguments);
    free(folder);
    errno = error;
    return end;
}
