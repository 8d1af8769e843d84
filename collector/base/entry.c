#include "collector/base/entry.h"

#include "collector/base/count_of.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Held, a fault would end us at once; sent by somebody, they are passed on by their handler. */
static const int faults[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
enum { FAULT_COUNT = LAC_COUNT_OF(faults) };

static uint64_t mask_before;
static uint64_t ignored;
static struct sigaction child_before;
static struct sigaction fault_before[FAULT_COUNT];
static struct rlimit files_before;
static bool is_taken;
static bool has_files;

void lac_entry_hold(uint64_t set)
{
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &set, NULL, sizeof(set));
}

uint64_t lac_entry_held(void)
{
    uint64_t set = UINT64_MAX;

    for (int i = 0; i < FAULT_COUNT; i++) {
        set &= ~LAC_SIGNAL_BIT(faults[i]);
    }
    return set;
}

bool lac_entry_ignores(int signal)
{
    return (ignored & LAC_SIGNAL_BIT(signal)) != 0;
}

void lac_entry_take(void)
{
    struct sigaction as_usual;

    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &mask_before, sizeof(mask_before));
    for (int i = 1; i <= LAC_SIGNAL_MAX; i++) {
        struct sigaction action;

        if (sigaction(i, NULL, &action) == 0 && action.sa_handler == SIG_IGN) {
            ignored |= LAC_SIGNAL_BIT(i);
        }
    }
    for (int i = 0; i < FAULT_COUNT; i++) {
        (void)sigaction(faults[i], NULL, &fault_before[i]);
    }
    lac_entry_hold(lac_entry_held());
    /* ignored, it would take the job's status away before we have read it */
    memset(&as_usual, 0, sizeof(as_usual));
    as_usual.sa_handler = SIG_DFL;
    (void)sigaction(SIGCHLD, &as_usual, &child_before);
    has_files = getrlimit(RLIMIT_NOFILE, &files_before) == 0;
    is_taken = true;
}

void lac_entry_give_back(void)
{
    if (!is_taken) {
        return;
    }
    if (has_files) {
        (void)setrlimit(RLIMIT_NOFILE, &files_before);
    }
    (void)sigaction(SIGCHLD, &child_before, NULL);
    for (int i = 0; i < FAULT_COUNT; i++) {
        (void)sigaction(faults[i], &fault_before[i], NULL);
    }
    lac_entry_hold(mask_before); /* last: what has come meanwhile comes now */
}
