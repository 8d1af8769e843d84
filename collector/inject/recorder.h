#ifndef LAC_COLLECTOR_INJECT_RECORDER_H
#define LAC_COLLECTOR_INJECT_RECORDER_H

/*
 * The recorder: 16-byte events of this process into its spool.
 *
 *   OFF -> (first event) OPEN -> (fork) child: OFF again with an epoch of its own
 *                         |
 *                         +-> DEAD: on trouble; one line on stderr, losses counted
 *
 * Rules of this folder: C and pthreads only; no lock, no allocation and no system call on the hot
 * path; nothing depends on exit handlers; on trouble the job continues and recording stops. All
 * memory is mapped, never malloc'ed: the host program may have replaced malloc or be inside it.
 *
 * A thread owns one open segment at a time, which a later thread continues when it ends. When it is
 * full the thread marks it so and takes another: one that a drainer has emptied if there is one
 * (its pages are already there, which halves the cost of an event), else a new one at the end of
 * the file.
 */

#include "lacuna/spool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LAC_LIKELY(x)   __builtin_expect(!!(x), 1)
#define LAC_UNLIKELY(x) __builtin_expect(!!(x), 0)

enum {
    LAC_NAME_CACHE_SLOTS = 2048, /* power of two; two places for a name, per thread */
    LAC_POINTER_SLOTS = 4096,    /* power of two */
    LAC_NAME_BYTES_MAX = 4096,   /* longer names are cut, and counted as such */
    LAC_DOMAINS_MAX = 256,
    LAC_RANGE_END_EVENTS = 2, /* CPU time and POP */
};

/** A name this thread has seen, so that the usual push needs one hash and one compare. */
struct lac_name_slot {
    const char *text; /**< in the process's string table, NUL-terminated */
    uint32_t length;
    uint32_t hash;
    uint32_t id;
    uint32_t epoch; /**< lac_epoch at which `id` was defined in the spool */
};

/** Push ranges of one domain that are open in this thread. */
struct lac_depth {
    int32_t open;    /**< recorded: their ends will be */
    int32_t skipped; /**< innermost ones that were not recorded: their ends are not either */
    int32_t below;   /**< of a pause, outside of those that are recorded: their ends are not */
    bool is_loss;    /**< the outermost of the skipped ones had no room */
};

/** One per thread, mapped on its first event. */
struct lac_thread {
    struct lac_event *next;        /**< where the next event goes */
    struct lac_event *end;         /**< end of the open segment */
    const volatile uint32_t *stop; /**< of the spool's header */
    uint32_t reserve;              /**< events that the ends of open ranges will need */
    struct lac_segment_header *segment;
    uint32_t segment_index;
    uint32_t epoch; /**< of the process when this was set up; another one: forked since */
    uint32_t seq;
    int32_t tid;
    bool always;       /**< record although recording pauses */
    volatile int busy; /**< inside the recorder: an event from a signal handler is dropped */
    struct lac_depth depth[LAC_DOMAINS_MAX];
    uint32_t capture_level; /**< ranges of `capture_domain` open from the captured one on; 0 none */
    uint16_t capture_domain;
    uint32_t step_level; /**< the same of ranges of `step_domain` from a step's on */
    uint16_t step_domain;
    uint32_t wait_level; /**< ranges of the hook open from a loader.wait on; 0: it does not wait */
    uint64_t wait_began_ns;
    uint64_t retry_ticks;   /**< after a full disk: when to ask for room again */
    uint64_t dropped_count; /**< not yet told by a LAC_EVENT_DROPPED */
    uint64_t dropped_told;
    uint64_t next_sync_ticks; /**< when to write a sync point again */
    uint64_t next_range_id;   /**< of this thread's block of ids for start/end ranges */
    uint64_t end_range_id;
    struct lac_thread *next_free;
    struct lac_name_slot names[LAC_NAME_CACHE_SLOTS];
    uint16_t by_pointer[LAC_POINTER_SLOTS]; /**< where in `names` the text at an address was */
};

extern __thread struct lac_thread *lac_self __attribute__((tls_model("initial-exec")));

/** Grows by one with every fork; 0 in a child that has not noticed yet (MADV_WIPEONFORK). */
extern volatile uint32_t *lac_epoch_page;

/* ---- hot path */

/** Id of a name in this process's spool, defining it there when new; 0 when it cannot be kept. */
static inline uint32_t lac_recorder_name(struct lac_thread *self, const char *text, size_t length);
static inline uint32_t lac_recorder_name_z(struct lac_thread *self, const char *text);
uint32_t lac_recorder_name_slow(struct lac_thread *self, const char *text, uint32_t length,
                                uint32_t hash);

/** Counts a name that is too long; the length that is kept. */
uint32_t lac_recorder_name_cut(void);

/** Ready to record: the thread's state, or NULL. */
struct lac_thread *lac_recorder_enter_slow(void);

static inline struct lac_thread *lac_recorder_enter(void)
{
    struct lac_thread *const self = lac_self;

    if (LAC_LIKELY(self != NULL && self->epoch == *lac_epoch_page && !self->busy)) {
        self->busy = 1;
        return self;
    }
    return lac_recorder_enter_slow();
}

static inline void lac_recorder_leave(struct lac_thread *self)
{
    __asm__ volatile("" ::: "memory");
    self->busy = 0;
}

/** Open another segment for `count` more events; false: dropped and counted. */
bool lac_recorder_refill(struct lac_thread *self, uint32_t count);
/** Write a sync point; called when self->next_sync_ticks has passed. */
void lac_recorder_sync(struct lac_thread *self);

/** Room for `count` events and the ends of what is open; false: dropped and counted. */
static inline bool lac_recorder_room(struct lac_thread *self, uint32_t count)
{
    return LAC_LIKELY(self->end - self->next >= (int64_t)count + self->reserve &&
                      *self->stop == LAC_SPOOL_RECORD) ||
           lac_recorder_refill(self, count);
}

/** The same also while recording pauses: ends of what was recorded, names and settings. */
static inline bool lac_recorder_room_always(struct lac_thread *self, uint32_t count)
{
    bool ok;

    self->always = true;
    ok = self->end - self->next >= (int64_t)count + self->reserve ||
         lac_recorder_refill(self, count);
    self->always = false;
    return ok;
}

/** A push range that is not recorded: counted when it is lost, not when recording pauses. */
void lac_recorder_skip(struct lac_thread *self, struct lac_depth *depth);

/** Whether recording went on since the ranges around this one were opened, which are not recorded:
 * this one can be. */
bool lac_recorder_resumes(struct lac_thread *self, struct lac_depth *depth);

/** Whether to record the push range being opened, which takes `count` events. */
static inline bool lac_recorder_opens(struct lac_thread *self, struct lac_depth *depth,
                                      uint32_t count)
{
    if ((LAC_LIKELY(depth->skipped == 0) || lac_recorder_resumes(self, depth)) &&
        lac_recorder_room(self, count + LAC_RANGE_END_EVENTS)) {
        depth->open++;
        self->reserve += LAC_RANGE_END_EVENTS;
        return true;
    }
    lac_recorder_skip(self, depth);
    return false;
}

/** Whether to record the end of the innermost push range. Its room was reserved. */
static inline bool lac_recorder_closes(struct lac_thread *self, struct lac_depth *depth)
{
    if (LAC_UNLIKELY(depth->skipped > 0)) {
        depth->skipped--;
        return false;
    }
    /* a range that was opened before we recorded has no beginning here: its end says nothing */
    if (LAC_UNLIKELY(depth->open == 0)) {
        depth->below -= depth->below > 0;
        return false;
    }
    depth->open--;
    self->reserve -= LAC_RANGE_END_EVENTS;
    return LAC_LIKELY(self->end - self->next >= LAC_RANGE_END_EVENTS);
}

static inline void lac_recorder_put(struct lac_thread *self, uint64_t ts, uint32_t name,
                                    uint16_t domain, uint8_t flags, uint8_t type)
{
    struct lac_event *const event = self->next;

    event->ts = ts;
    event->name = name;
    event->domain = domain;
    event->flags = flags;
    /* valid from here on: a killed process leaves whole events only */
    __atomic_store_n(&event->type, type, __ATOMIC_RELEASE);
    self->next = event + 1;
}

/** The event that names a domain or a category; a reader then looks for those first. */
void lac_recorder_put_name(struct lac_thread *self, uint64_t what, uint32_t name, uint16_t domain,
                           uint8_t type);

/* ---- clock.c */
extern enum lac_spool_clock lac_clock;
void lac_clock_choose(void);
uint64_t lac_clock_now_slow(void);
struct lac_sync_point lac_clock_sync(void);

static inline uint64_t lac_clock_now(void)
{
#if defined(__x86_64__)
    if (LAC_LIKELY(lac_clock == LAC_SPOOL_CLOCK_TSC)) {
        return __builtin_ia32_rdtsc();
    }
#endif
    return lac_clock_now_slow();
}

/* ---- spool_file.c: the file and its segments; all take the process lock themselves */
bool lac_spool_open(void);
void lac_spool_forget(void); /**< in a forked child: the file belongs to the parent */
struct lac_segment_header *lac_spool_segment(enum lac_segment_kind kind, int32_t tid, uint32_t seq,
                                             uint32_t *ret_index);
/** The segment is full: a drainer may take it. `index` as lac_spool_segment() gave it. */
void lac_spool_release(struct lac_segment_header *segment, uint32_t index);
void lac_spool_count_dropped(uint64_t events, bool disk);
/** What the calling thread is called; "" when that cannot be read. */
void lac_spool_thread_name(char out[16]);
struct lac_spool_header *lac_spool_header(void); /**< NULL before the first event */

/* ---- name_table.c */
void lac_names_reset(void); /**< in a forked child: define every name again when used */
uint32_t lac_names_define(const char *text, uint32_t length, uint32_t hash, const char **ret_text);

static inline uint64_t lac_load64(const char *text)
{
    uint64_t word;

    memcpy(&word, text, sizeof(word));
    return word;
}

/* Two chains of multiplications side by side, the last 16 bytes read again where they overlap: a
 * name of 30 bytes costs a few ns. Weak is good enough: every hit is compared byte for byte. */
static inline uint32_t lac_names_hash(const char *text, size_t length)
{
    uint64_t a = 0x9e3779b97f4a7c15u ^ length;
    uint64_t b = 0xd6e8feb86659fd93u;

    if (LAC_LIKELY(length >= 16)) {
        for (size_t at = 0; at + 16 < length; at += 16) {
            a = (a ^ lac_load64(text + at)) * 0xff51afd7ed558ccdu;
            b = (b ^ lac_load64(text + at + 8)) * 0xc4ceb9fe1a85ec53u;
        }
        a ^= lac_load64(text + length - 16);
        b ^= lac_load64(text + length - 8);
    } else if (length >= 8) {
        a ^= lac_load64(text);
        b ^= lac_load64(text + length - 8);
    } else {
        uint64_t word = 0;

        memcpy(&word, text, length);
        a ^= word;
    }
    a = (a ^ a >> 32) * 0xff51afd7ed558ccdu;
    b = (b ^ b >> 29) * 0xc4ceb9fe1a85ec53u;
    a ^= b >> 31;
    return (uint32_t)(a ^ a >> 32);
}

/* Whether `size_bytes` from both are equal; eight and more bytes at a time, the last ones twice. */
static inline bool lac_same_bytes(const char *a, const char *b, size_t size_bytes)
{
    size_t at = 0;

    if (size_bytes < 8) {
        while (at < size_bytes && a[at] == b[at]) {
            at++;
        }
        return at == size_bytes;
    }
    for (; at + 16 < size_bytes; at += 16) {
        if (((lac_load64(a + at) ^ lac_load64(b + at)) |
             (lac_load64(a + at + 8) ^ lac_load64(b + at + 8))) != 0) {
            return false;
        }
    }
    if (at + 8 < size_bytes && lac_load64(a + at) != lac_load64(b + at)) {
        return false;
    }
    return lac_load64(a + size_bytes - 8) == lac_load64(b + size_bytes - 8);
}

static inline struct lac_name_slot *lac_name_slot(struct lac_thread *self, uint32_t hash,
                                                  uint32_t way)
{
    return &self->names[(hash & (LAC_NAME_CACHE_SLOTS - 1)) ^ way];
}

static inline uint32_t lac_recorder_name(struct lac_thread *self, const char *text, size_t length)
{
    const uint32_t cut =
        LAC_UNLIKELY(length > LAC_NAME_BYTES_MAX) ? lac_recorder_name_cut() : (uint32_t)length;
    const uint32_t hash = lac_names_hash(text, cut);

    for (uint32_t way = 0; way < 2; way++) {
        const struct lac_name_slot *const slot = lac_name_slot(self, hash, way);

        if (LAC_LIKELY(slot->hash == hash && slot->length == cut && slot->epoch == self->epoch &&
                       lac_same_bytes(slot->text, text, cut))) {
            return slot->id;
        }
    }
    return lac_recorder_name_slow(self, text, cut, hash);
}

uint32_t lac_recorder_name_new(struct lac_thread *self, const char *text, uint32_t place);

/*
 * The same for a C string. A program usually passes a name from the same address again, so what
 * stood there last time is compared with what stands there now, NUL included, before anything is
 * measured or hashed. Reading as far as the old name went must not leave the page that the text
 * begins in: the new one may be shorter and the next page not there.
 */
static inline uint32_t lac_recorder_name_z(struct lac_thread *self, const char *text)
{
    const uint32_t place =
        (uint32_t)((uintptr_t)text * 0x9e3779b97f4a7c15u >> 40) & (LAC_POINTER_SLOTS - 1);
    const struct lac_name_slot *const slot = &self->names[self->by_pointer[place]];

    if (LAC_LIKELY(slot->epoch == self->epoch &&
                   ((uintptr_t)text & 4095) + slot->length + 1 <= 4096 &&
                   lac_same_bytes(slot->text, text, (size_t)slot->length + 1))) {
        return slot->id;
    }
    return lac_recorder_name_new(self, text, place);
}

/* ---- nvtx_slots.c */
/** Take our functions out of NVTX's tables: nothing is recorded in this process any more. */
void lac_nvtx_let_go(void);

/* ---- nvtx.c: tell a new spool what the domains are called; the caller is inside the recorder */
void lac_domains_define(struct lac_thread *self);
/* ---- categories.c: the same for categories; text lives forever */
void lac_categories_define(struct lac_thread *self);
void lac_categories_remember(uint16_t domain, uint32_t category, const char *text, size_t length);

/* ---- nvtx_payload.c: the same for schemas of payloads */
void lac_schemas_define(struct lac_thread *self);

/* ---- environment.c: LACUNA_* variables, read once at load */
struct lac_recorder_settings {
    bool enabled;
    char directory[512];       /**< LACUNA_SPOOL */
    uint64_t size_limit_bytes; /**< LACUNA_SPOOL_LIMIT */
    uint32_t segment_bytes;
    bool on_demand; /**< LACUNA_ON_DEMAND=1: nothing until somebody asks for it */
};
extern struct lac_recorder_settings lac_settings;
void lac_settings_read(void);

/** One line on stderr, once per process, then never again. */
void lac_complain(const char *what, int error);

/* ---- lock.c: held over fork by pthread_atfork, so that a child never inherits it locked */
void lac_lock(void);
void lac_unlock(void);
/** In a forked child, where a thread that is not there may hold it. */
void lac_mutex_renew(pthread_mutex_t *renewed);
bool lac_lock_is_mine(void); /**< in a signal handler that interrupted the holder */
void lac_lock_install_fork_handlers(void);
void lac_notice_fork(void);    /**< start afresh in a child that pthread_atfork did not see */
uint32_t lac_fork_depth(void); /**< forks since exec */

#endif
