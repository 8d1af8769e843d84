#include "collector/launch/rescue.h"

#include "collector/base/count_of.h"
#include "collector/launch/signals.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_EVERY_MS = 100, OTHERS_GO_ON_S = 10, STACK_BYTES = 64 * 1024 };

static volatile pid_t job;
static volatile int status = -1; /* of the job, once it has ended */

static void say(const char *words)
{
    const ssize_t told = write(STDERR_FILENO, words, strlen(words));

    (void)told;
}

/* Takes the place of the thread that broke and never comes back. Nothing here may
 * lock or allocate. */
static _Noreturn void stand_in(void)
{
    const bool is_alone = syscall(SYS_gettid) == getpid();
    const struct timespec pause = {.tv_sec = OTHERS_GO_ON_S};

    say("lacuna: the launcher is broken; the job goes on, unrecorded\n");
    while (status < 0) {
        struct lac_signal signal;
        siginfo_t ended;

        if (lac_signals_wait(&signal, LOOK_EVERY_MS) && !lac_signal_is_of_child(&signal)) {
            lac_signal_pass_on(&signal, signal.is_from_terminal ? -job : job);
        }
        memset(&ended, 0, sizeof(ended));
        if (waitid(P_PID, (id_t)job, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) {
            break; /* another thread was first */
        }
        if (ended.si_pid == job) {
            status = ended.si_code == CLD_EXITED ? ended.si_status : 128 + ended.si_status;
        }
    }
    if (!is_alone) { /* the main thread is whole, and has things to finish */
        (void)nanosleep(&pause, NULL);
    }
    _exit(status >= 0 ? status : 1);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (status >= 0) {
        say("lacuna: the launcher is broken; the recording may not be whole\n");
        _exit(status);
    }
    if (info->si_code <= 0 && info->si_pid != getpid()) {
        (void)kill(job, number);
    } else {
        stand_in();
    }
}

void lac_rescue_begin(pid_t pid)
{
    static const int faults[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
    static uint8_t stack[STACK_BYTES];
    const stack_t place = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action;

    job = pid;
    (void)sigaltstack(&place, NULL);
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (size_t i = 0; i < LAC_COUNT_OF(faults); i++) {
        (void)sigaction(faults[i], &action, NULL);
    }
}

void lac_rescue_end(int exit_status)
{
    status = exit_status;
}
