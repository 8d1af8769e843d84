#include "collector/gather/shared_spool.h"

#include "collector/base/io_full.h"
#include "collector/gather/spool_bounds.h"
#include "lacuna/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- a page whose file may become shorter */

/* The shared page that is being touched right now; only one thread drains. */
static char *volatile touched;

static struct sigaction before;

/* A page beyond the end of its file is SIGBUS: zeros take its place, which say that nothing is
 * there. What is not ours goes where it went before. */
static void on_bus_error(int signal, siginfo_t *info, void *context)
{
    const int error = errno;
    char *const page = touched;
    const char *const at = info->si_addr;
    const bool is_ours = info->si_code > 0 && page != NULL && at >= page &&
                         at < page + LAC_SPOOL_HEADER_BYTES &&
                         mmap(page, LAC_SPOOL_HEADER_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;

    if (!is_ours && (before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(signal, info, context);
    } else if (!is_ours) {
        (void)sigaction(signal, &before, NULL);
        (void)raise(signal); /* once this handler is left; a fault comes again anyway */
    }
    errno = error;
}

/* Not before the first spool: a job that was started before has what its parent had. */
static void expect_bus_errors(void)
{
    static bool is_done;
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};

    if (!is_done) {
        action.sa_sigaction = on_bus_error;
        is_done = sigaction(SIGBUS, &action, &before) == 0;
    }
}

static void touch(const struct lac_shared_spool *spool)
{
    touched = (char *)spool->shared;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void untouch(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    touched = NULL;
}

/* ---- opening */

static enum lac_shared_opening look_inside(const struct lac_shared_spool *spool,
                                           struct lac_spool_header *ret_header)
{
    static const char no_magic[sizeof(ret_header->magic)];

    if (!lac_file_is_regular(spool->fd)) {
        return LAC_SHARED_NOT_OURS;
    }
    if (!lac_shared_read(spool, ret_header, sizeof(*ret_header), 0) ||
        memcmp(ret_header->magic, no_magic, sizeof(no_magic)) == 0) {
        return LAC_SHARED_NOT_YET;
    }
    if (!lac_spool_header_check(ret_header)) {
        return LAC_SHARED_NOT_OURS;
    }
    return LAC_SHARED_OPENED;
}

enum lac_shared_opening lac_shared_open(struct lac_shared_spool *spool, const char *path,
                                        bool is_writable, struct lac_spool_header *ret_header)
{
    const int mode = is_writable ? O_RDWR : O_RDONLY;
    enum lac_shared_opening opening;
    void *memory;

    *spool = (struct lac_shared_spool){.is_writable = is_writable};
    spool->fd = open(path, mode | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (spool->fd < 0) {
        return errno == ELOOP || errno == EISDIR || errno == ENXIO ? LAC_SHARED_NOT_OURS
                                                                   : LAC_SHARED_NO_ACCESS;
    }
    opening = look_inside(spool, ret_header);
    if (opening != LAC_SHARED_OPENED) {
        lac_shared_close(spool);
        return opening;
    }
    memory = mmap(NULL, LAC_SPOOL_HEADER_BYTES, PROT_READ | (is_writable ? PROT_WRITE : 0),
                  MAP_SHARED, spool->fd, 0);
    if (memory == MAP_FAILED) {
        const int error = errno;

        lac_shared_close(spool);
        errno = error;
        return LAC_SHARED_NO_ACCESS;
    }
    spool->shared = memory;
    expect_bus_errors();
    return LAC_SHARED_OPENED;
}

void lac_shared_close(struct lac_shared_spool *spool)
{
    if (spool->shared != NULL) {
        (void)munmap(spool->shared, LAC_SPOOL_HEADER_BYTES);
    }
    if (spool->fd >= 0) {
        (void)close(spool->fd);
    }
    spool->shared = NULL;
    spool->fd = -1;
}

/* ---- an open one */

struct lac_shared_look lac_shared_look(const struct lac_shared_spool *spool)
{
    const struct lac_spool_header *const shared = spool->shared;
    struct lac_shared_look look;

    touch(spool);
    look.stop = __atomic_load_n(&shared->stop, __ATOMIC_SEQ_CST); /* before the captures */
    look.segment_count = __atomic_load_n(&shared->segment_count, __ATOMIC_ACQUIRE);
    look.dropped_count = __atomic_load_n(&shared->dropped_count, __ATOMIC_RELAXED);
    look.dropped_disk_count = __atomic_load_n(&shared->dropped_disk_count, __ATOMIC_RELAXED);
    look.gpu_buffers_out = __atomic_load_n(&shared->gpu_buffers_out, __ATOMIC_RELAXED);
    look.step_count = __atomic_load_n(&shared->step_count, __ATOMIC_RELAXED);
    look.gpu_state = __atomic_load_n(&shared->gpu_state, __ATOMIC_ACQUIRE);
    look.free_head = __atomic_load_n(&shared->free_head, __ATOMIC_ACQUIRE);
    look.progress_count = __atomic_load_n(&shared->progress_count, __ATOMIC_RELAXED);
    look.training_tid = __atomic_load_n(&shared->training_tid, __ATOMIC_RELAXED);
    look.loader_wait_ns = __atomic_load_n(&shared->loader_wait_ns, __ATOMIC_RELAXED);
    look.captures_begun = __atomic_load_n(&shared->captures_begun, __ATOMIC_SEQ_CST);
    look.captures_open = __atomic_load_n(&shared->captures_open, __ATOMIC_SEQ_CST);
    untouch();
    return look;
}

uint64_t lac_shared_size(const struct lac_shared_spool *spool)
{
    const off_t size = lseek(spool->fd, 0, SEEK_END);

    return size > 0 ? (uint64_t)size : 0;
}

bool lac_shared_read(const struct lac_shared_spool *spool, void *bytes, size_t size_bytes,
                     uint64_t offset)
{
    return lac_file_read_at(spool->fd, bytes, size_bytes, offset);
}

void lac_shared_tell(const struct lac_shared_spool *spool, enum lac_spool_stop wish)
{
    if (spool->is_writable) {
        touch(spool);
        __atomic_store_n(&spool->shared->stop, (uint32_t)wish, __ATOMIC_RELEASE);
        (void)syscall(SYS_futex, &spool->shared->stop, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        untouch();
    }
}

bool lac_shared_replace(const struct lac_shared_spool *spool, uint32_t from,
                        enum lac_spool_stop wish)
{
    bool is_told = false;

    if (spool->is_writable) {
        touch(spool);
        is_told = __atomic_compare_exchange_n(&spool->shared->stop, &from, (uint32_t)wish, false,
                                              __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        if (is_told) {
            (void)syscall(SYS_futex, &spool->shared->stop, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        }
        untouch();
    }
    return is_told;
}

void lac_shared_ask(const struct lac_shared_spool *spool)
{
    if (spool->is_writable) {
        touch(spool);
        (void)__atomic_fetch_add(&spool->shared->ask_count, 1u, __ATOMIC_RELEASE);
        (void)syscall(SYS_futex, &spool->shared->ask_count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        untouch();
    }
}

void lac_shared_give(const struct lac_shared_spool *spool, uint64_t tail, uint32_t index)
{
    if (spool->is_writable) {
        touch(spool);
        spool->shared->free_ring[tail % LAC_SPOOL_FREE_RING] = index;
        __atomic_store_n(&spool->shared->free_tail, tail + 1, __ATOMIC_RELEASE);
        untouch();
    }
}
