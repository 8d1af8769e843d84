#include "collector/python/run_mark.h"

#include "collector/base/old_symbols.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define SIGNATURE 0x53053053u /* glibc's; the kernel wants it before the address of an abort */
#elif defined(__aarch64__)
#define SIGNATURE 0xd428bc00u
#endif

/* linux/rseq.h, which older systems lack. */
struct area {
    uint32_t cpu_id_start;
    uint32_t cpu_id;
    uint64_t sequence; /* address of a struct sequence */
};

enum { CPU_ID_REGISTERED_MAX = INT32_MAX }; /* above: not registered */

struct sequence {
    uint32_t version;
    uint32_t flags;
    uint64_t start;
    uint64_t length;
    uint64_t abort;
} __attribute__((aligned(32)));

#ifdef SIGNATURE

static const uint32_t abort_at[2] = {SIGNATURE, 0};
static struct sequence never_run; /* stays where it is: Python unloads no extension */
static ptrdiff_t area_offset;
static bool is_there;

static struct area *area(void)
{
#ifdef __x86_64__
    uintptr_t thread;

    __asm__("mov %%fs:0, %0" : "=r"(thread));
#else
    const uintptr_t thread = (uintptr_t)__builtin_thread_pointer();
#endif
    return (struct area *)(thread + (uintptr_t)area_offset);
}

void lac_run_mark_begin(void)
{
    const unsigned *const size = dlsym(RTLD_DEFAULT, "__rseq_size");
    const ptrdiff_t *const offset = dlsym(RTLD_DEFAULT, "__rseq_offset");

    if (is_there || size == NULL || offset == NULL || *size == 0) {
        return;
    }
    area_offset = *offset;
    if (__atomic_load_n(&area()->cpu_id, __ATOMIC_RELAXED) > CPU_ID_REGISTERED_MAX) {
        return;
    }
    never_run.start = (uintptr_t)&never_run;
    never_run.length = 1;
    never_run.abort = (uintptr_t)&abort_at[1];
    is_there = true;
}

void lac_run_mark_set(void)
{
    if (is_there) {
        __atomic_store_n(&area()->sequence, (uintptr_t)&never_run, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
}

bool lac_run_mark_holds(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return is_there &&
           __atomic_load_n(&area()->sequence, __ATOMIC_RELAXED) == (uintptr_t)&never_run;
}

void lac_run_mark_drop(void)
{
    if (lac_run_mark_holds()) {
        __atomic_store_n(&area()->sequence, 0, __ATOMIC_RELAXED);
    }
}

#else

void lac_run_mark_begin(void)
{
}

void lac_run_mark_set(void)
{
}

bool lac_run_mark_holds(void)
{
    return false;
}

void lac_run_mark_drop(void)
{
}

#endif
