#include "collector/base/debug.h"
#include "collector/inject/gpu.h"
#include "collector/inject/recorder.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Two mechanisms make a forked child start afresh: pthread_atfork, and a page that the kernel wipes
 * in the child (MADV_WIPEONFORK), which also covers a raw clone(2). Kernels before 4.14 have only
 * the first.
 */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile uint32_t epoch_without_page = 1;
static uint32_t forks_seen;
static int lock_owner_pid; /* 0: the handlers have not run in this process */

volatile uint32_t *lac_epoch_page = &epoch_without_page;

static __thread volatile bool mine __attribute__((tls_model("initial-exec")));
static __thread bool fork_inside __attribute__((tls_model("initial-exec")));

/* A signal handler that runs between the two lines must find that the lock is ours, or it would
 * wait for itself. */
void lac_lock(void)
{
    mine = true;
    (void)pthread_mutex_lock(&mutex);
}

void lac_unlock(void)
{
    (void)pthread_mutex_unlock(&mutex);
    mine = false;
}

bool lac_lock_is_mine(void)
{
    return mine;
}

/* A signal handler may fork while its thread holds the lock: waiting for it would never end. */
static void before_fork(void)
{
    fork_inside = mine;
    if (!fork_inside) {
        lac_lock();
    }
}

static void after_fork_in_parent(void)
{
    if (!fork_inside) {
        lac_unlock();
    }
}

void lac_mutex_renew(pthread_mutex_t *renewed)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    *renewed = fresh;
}

static void start_afresh(void)
{
    lac_mutex_renew(&mutex);
    mine = false;
    forks_seen++;
    lac_spool_forget();
    lac_names_reset();
    lac_gpu_writer_forget();
    lac_gpu_pauses_forget();
    lac_cupti_buffers_forget();
    lac_gpu_session_forget();
    lac_self = NULL; /* the parent's segment is not mapped here (MADV_DONTFORK) */
    *lac_epoch_page = forks_seen + 1;
    LAC_DEBUG(PROCESS, 2, "forked by %d, fork %u since exec", (int)getppid(), forks_seen);
}

static void after_fork_in_child(void)
{
    start_afresh();
}

/* A child made by a raw clone(2) gets here with its first event. */
void lac_notice_fork(void)
{
    if (*lac_epoch_page == 0) {
        start_afresh();
    }
}

uint32_t lac_fork_depth(void)
{
    return forks_seen;
}

void lac_lock_install_fork_handlers(void)
{
    void *page;

    if (lock_owner_pid != 0) {
        return;
    }
    lock_owner_pid = getpid();
    page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) {
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
        if (madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) == 0) {
            *(volatile uint32_t *)page = 1;
            lac_epoch_page = page;
        } else {
            (void)munmap(page, (size_t)sysconf(_SC_PAGESIZE));
        }
    }
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
