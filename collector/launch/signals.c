#include "collector/launch/signals.h"

#include "collector/base/count_of.h"
#include "collector/base/entry.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int last_status;
static const char *last_words = "";

/* By the system call: the C library's function leaves out two of the 64. */
static int take_one(siginfo_t *info, const struct timespec *time)
{
    const uint64_t set = lac_entry_held();

    return (int)syscall(SYS_rt_sigtimedwait, &set, info, time, sizeof(set));
}

/* What the kernel sends for something that we did ourselves, in our name or its own. */
static bool is_our_own(int number, const siginfo_t *info)
{
    const bool is_ours =
        info->si_code == SI_KERNEL || (info->si_code == SI_USER && info->si_pid == getpid());

    return (number == SIGPIPE || number == SIGXFSZ || number == SIGXCPU) && is_ours;
}

static bool comes_from_terminals(int number)
{
    return number == SIGINT || number == SIGQUIT || number == SIGHUP || number == SIGTSTP ||
           number == SIGWINCH || number == SIGCONT;
}

static uint64_t now_ns(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

bool lac_signals_wait(struct lac_signal *ret, long ms)
{
    const uint64_t end_ns = now_ns() + (uint64_t)ms * 1000000u;

    for (;;) {
        const uint64_t at_ns = now_ns();
        const uint64_t left_ns = at_ns < end_ns ? end_ns - at_ns : 0;
        const struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000u),
                                      .tv_nsec = (long)(left_ns % 1000000000u)};

        memset(ret, 0, sizeof(*ret));
        ret->number = take_one(&ret->info, &left);
        if (ret->number > 0 && !is_our_own(ret->number, &ret->info)) {
            ret->is_from_terminal =
                ret->info.si_code == SI_KERNEL && comes_from_terminals(ret->number);
            return true;
        }
        if (ret->number < 0 && errno != EINTR) {
            return false; /* the time is over */
        }
    }
}

bool lac_signal_is_of_child(const struct lac_signal *signal)
{
    return signal->number == SIGCHLD && signal->info.si_code > 0;
}

void lac_signal_pass_on(const struct lac_signal *signal, pid_t pid)
{
    siginfo_t info = signal->info;

    if (pid > 0 && info.si_code == SI_QUEUE &&
        syscall(SYS_rt_sigqueueinfo, pid, signal->number, &info) == 0) {
        return;
    }
    (void)kill(pid, signal->number);
}

void lac_signals_let(int signal)
{
    const uint64_t go_on = LAC_SIGNAL_BIT(SIGCONT);
    const struct timespec now = {0};

    lac_entry_hold(lac_entry_held() & ~LAC_SIGNAL_BIT(signal));
    lac_entry_hold(lac_entry_held());
    (void)syscall(SYS_rt_sigtimedwait, &go_on, NULL, &now, sizeof(go_on));
}

static void end_now(int signal)
{
    const ssize_t told = write(STDERR_FILENO, last_words, strlen(last_words));

    (void)signal;
    (void)told;
    _exit(last_status);
}

void lac_signals_end_with(int exit_status, const char *words)
{
    static const int ends[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    uint64_t held = lac_entry_held();
    struct sigaction action;

    last_status = exit_status;
    last_words = words;
    memset(&action, 0, sizeof(action));
    action.sa_handler = end_now;
    for (size_t i = 0; i < LAC_COUNT_OF(ends); i++) {
        if (!lac_entry_ignores(ends[i])) {
            (void)sigaction(ends[i], &action, NULL);
            held &= ~LAC_SIGNAL_BIT(ends[i]);
        }
    }
    lac_entry_hold(held);
}
