#include "collector/base/debug.h"
#include "collector/inject/nvtx_abi.h"
#include "collector/inject/nvtx_private.h"
#include "collector/inject/recorder.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * A program carries NVTX in several libraries, each with tables of some fifty functions. Ours are
 * taken out of them again when nothing is recorded any more: then a call costs what it does without
 * a tool, a look at an empty slot.
 */
enum { SLOTS_MAX = 4096 };

struct taken_slot {
    void **slot;
    void *function;
};

static struct taken_slot taken[SLOTS_MAX]; /* guarded by lac_lock() */
static uint32_t taken_count;
static bool has_let_go;

static void remember(void **slot, void *function)
{
    for (uint32_t i = 0; i < taken_count; i++) { /* a library that was loaded where another was */
        if (taken[i].slot == slot) {
            taken[i].function = function;
            return;
        }
    }
    if (taken_count < SLOTS_MAX) {
        taken[taken_count++] = (struct taken_slot){slot, function};
    }
}

void lac_nvtx_take_slot(void *slot, nvtx_function function)
{
    void *address;

    memcpy(&address, &function, sizeof(address));
    __atomic_store_n((void **)slot, address, __ATOMIC_RELEASE);
    lac_lock();
    remember(slot, address);
    lac_unlock();
}

bool lac_nvtx_has_let_go(void)
{
    return __atomic_load_n(&has_let_go, __ATOMIC_RELAXED);
}

static bool is_in(const struct dl_phdr_info *object, const void *address)
{
    const uintptr_t place = (uintptr_t)address - object->dlpi_addr;

    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *const segment = &object->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) != 0 &&
            place >= segment->p_vaddr && place - segment->p_vaddr < segment->p_memsz) {
            return true;
        }
    }
    return false;
}

/* The loader's lock is held: what is in an object now stays there meanwhile. */
static int empty_slots_of(struct dl_phdr_info *object, size_t size_bytes, void *context)
{
    uint32_t *const emptied = context;

    (void)size_bytes;
    for (uint32_t i = 0; i < taken_count; i++) {
        void *expected = taken[i].function;

        if (is_in(object, taken[i].slot) &&
            __atomic_compare_exchange_n(taken[i].slot, &expected, NULL, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
            (*emptied)++;
        }
    }
    return 0;
}

void lac_nvtx_let_go(void)
{
    uint32_t emptied = 0;

    if (!__atomic_exchange_n(&has_let_go, true, __ATOMIC_ACQ_REL)) {
        /* a library may have been unloaded since: only what an object has now is written to */
        (void)dl_iterate_phdr(empty_slots_of, &emptied);
        LAC_DEBUG(NVTX, 1, "the recording has ended: %u of %u functions are taken out", emptied,
                  taken_count);
    }
}
