#include "collector/inject/recorder.h"

#include "collector/base/debug.h"
#include "collector/base/old_symbols.h"
#include "lacuna/spool.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct lac_thread *lac_self __attribute__((tls_model("initial-exec")));

static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;
static uint32_t domains_epoch;          /* whose spool knows the domains */
static struct lac_thread *free_threads; /* states of threads that ended; under lac_lock() */

/* Sync points let a reader convert ticks piece by piece; one a second per thread that records. */
enum { SYNC_EVERY_NS = 1000000000, RETRIES_PER_S = 100, RESERVE_MAX = 2048 };
static __thread volatile bool entering __attribute__((tls_model("initial-exec")));

/* Room for THREAD, SYNC, SYNC_NS and something to say. */
enum { ADOPT_EVENTS_MIN = 64 };

/* Whether the next thread may continue in the segment: some programs start thousands of threads. */
static bool is_adoptable(const struct lac_thread *self)
{
    return self->segment != NULL && self->reserve == 0 &&
           self->end - self->next >= ADOPT_EVENTS_MIN;
}

static void on_thread_exit(void *value)
{
    struct lac_thread *const self = value;

    lac_self = NULL;
    if (self->epoch != *lac_epoch_page) {
        return; /* the parent's thread, seen in a forked child */
    }
    if (self->segment != NULL && !is_adoptable(self)) {
        lac_spool_release(self->segment, self->segment_index);
        self->segment = NULL;
    }
    lac_lock();
    self->next_free = free_threads;
    free_threads = self;
    lac_unlock();
}

static void make_exit_key(void)
{
    (void)pthread_key_create(&exit_key, on_thread_exit);
}

/* What remains of a thread that ended: its segment, and the names it knew. */
static void adopt(struct lac_thread *self)
{
    /* not that of a process that forked us, nor one that was given back */
    const bool goes_on = self->segment != NULL && self->epoch == *lac_epoch_page;
    struct lac_event *const next = goes_on ? self->next : NULL;
    struct lac_event *const end = goes_on ? self->end : NULL;
    struct lac_segment_header *const segment = goes_on ? self->segment : NULL;
    const uint32_t index = self->segment_index;

    memset(self, 0, offsetof(struct lac_thread, names));
    self->next = next;
    self->end = end;
    self->segment = segment;
    self->segment_index = index;
}

static struct lac_thread *thread_state(void)
{
    struct lac_thread *self = NULL;

    lac_lock();
    if (free_threads != NULL) {
        self = free_threads;
        free_threads = self->next_free;
    }
    lac_unlock();
    if (self != NULL) {
        adopt(self);
        return self;
    }
    self = mmap(NULL, sizeof(*self), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return self == MAP_FAILED ? NULL : self;
}

static void put_thread(struct lac_thread *self);

/* The state of a thread that records for the first time in this process; NULL if it cannot. */
static struct lac_thread *make_self(void)
{
    struct lac_thread *self;

    if (!lac_spool_open()) {
        return NULL;
    }
    (void)pthread_once(&exit_key_once, make_exit_key);
    self = thread_state();
    if (self == NULL) {
        lac_spool_count_dropped(1, false);
        return NULL;
    }
    self->stop = &lac_spool_header()->stop;
    self->epoch = *lac_epoch_page;
    self->tid = (int32_t)syscall(SYS_gettid);
    self->busy = 1;
    LAC_DEBUG(PROCESS, 3, "thread %d records", (int)self->tid);
    lac_self = self;
    (void)pthread_setspecific(exit_key, self);
    if (self->segment != NULL) {
        put_thread(self);
    }
    if (__atomic_exchange_n(&domains_epoch, self->epoch, __ATOMIC_RELAXED) != self->epoch) {
        lac_domains_define(self);
        lac_categories_define(self);
        lac_schemas_define(self);
    }
    return self;
}

struct lac_thread *lac_recorder_enter_slow(void)
{
    struct lac_thread *self;

    if (!lac_settings.enabled) {
        return NULL;
    }
    if (lac_lock_is_mine() || entering) {
        LAC_DEBUG(SPOOL, 2, "an event is lost: a signal handler interrupted the recorder");
        lac_spool_count_dropped(1, false); /* a signal handler interrupted us in here */
        return NULL;
    }
    lac_notice_fork();
    self = lac_self;
    if (self != NULL && self->epoch == *lac_epoch_page) {
        self->dropped_count++; /* busy: a signal handler interrupted the recorder */
        lac_spool_count_dropped(1, false);
        return NULL;
    }
    entering = true;
    self = make_self();
    entering = false;
    return self;
}

static uint64_t ticks_of_a_second(void)
{
    static uint64_t known;

    if (lac_clock == LAC_SPOOL_CLOCK_MONOTONIC) {
        return SYNC_EVERY_NS;
    }
    if (known == 0) {
        const struct lac_sync_point now = lac_clock_sync();
        const struct lac_sync_point *const first = &lac_spool_header()->first;
        const uint64_t passed_ns = now.monotonic_ns - first->monotonic_ns;

        if (passed_ns < 1000000) {
            return 1000000000; /* too early to know the rate: any guess near 1 GHz will do */
        }
        known = (uint64_t)((double)(now.ticks - first->ticks) / (double)passed_ns * 1e9);
    }
    return known;
}

static void put_sync(struct lac_thread *self)
{
    const struct lac_sync_point now = lac_clock_sync();

    lac_recorder_put(self, now.ticks, 0, 0, 0, LAC_EVENT_SYNC);
    lac_recorder_put(self, now.monotonic_ns, 0, 0, 0, LAC_EVENT_SYNC_NS);
    self->next_sync_ticks = now.ticks + ticks_of_a_second();
}

/* Continue in the segment of a thread that ended. */
static void put_thread(struct lac_thread *self)
{
    char name[16];

    lac_spool_thread_name(name);
    self->seq = 1; /* what is left of this segment is its number 0 */
    (void)__atomic_fetch_add(&self->segment->thread_count, 1u, __ATOMIC_RELAXED);
    lac_recorder_put(self, (uint32_t)self->tid, lac_recorder_name(self, name, strlen(name)), 0, 0,
                     LAC_EVENT_THREAD);
    put_sync(self);
}

uint32_t lac_recorder_name_cut(void)
{
    (void)__atomic_fetch_add(&lac_spool_header()->cut_name_count, 1u, __ATOMIC_RELAXED);
    LAC_DEBUG(NAMES, 2, "a name is cut to %d bytes", LAC_NAME_BYTES_MAX);
    return LAC_NAME_BYTES_MAX;
}

bool lac_recorder_refill(struct lac_thread *self, uint32_t count)
{
    struct lac_segment_header *segment;

    uint32_t index;

    if (*self->stop == LAC_SPOOL_STOP) { /* the launcher ended the recording: nothing is lost */
        lac_nvtx_let_go();
        return false;
    }
    if (*self->stop != LAC_SPOOL_RECORD && !self->always) {
        return false;
    }
    if (self->reserve > RESERVE_MAX) {
        LAC_DEBUG(SPOOL, 3, "thread %d loses an event: %u ends of ranges are open", (int)self->tid,
                  self->reserve);
        lac_spool_count_dropped(1, false); /* nested so deep that a segment is but ends of ranges */
        return false;
    }
    /* the old segment is kept until there is another: the ends of open ranges still fit in it */
    segment = self->retry_ticks == 0 || lac_clock_now() >= self->retry_ticks
                  ? lac_spool_segment(LAC_SEGMENT_EVENTS, self->tid, self->seq, &index)
                  : NULL;
    if (segment == NULL) {
        if (self->retry_ticks <= lac_clock_now()) {
            self->retry_ticks = lac_clock_now() + ticks_of_a_second() / RETRIES_PER_S;
        }
        self->dropped_count += count > LAC_RANGE_END_EVENTS ? 1 : count;
        LAC_DEBUG(SPOOL, 3, "thread %d loses an event: no segment", (int)self->tid);
        lac_spool_count_dropped(1, true);
        return false;
    }
    self->retry_ticks = 0;
    if (self->segment != NULL) {
        lac_spool_release(self->segment, self->segment_index);
    }
    self->segment_index = index;
    self->seq++;
    self->segment = segment;
    self->next = (struct lac_event *)(void *)((char *)segment + LAC_SEGMENT_HEADER_BYTES);
    self->end = (struct lac_event *)(void *)((char *)segment + lac_settings.segment_bytes);
    self->next_sync_ticks = segment->sync.ticks + ticks_of_a_second();
    if (self->dropped_count > self->dropped_told) {
        lac_recorder_put(self, self->dropped_count - self->dropped_told, 0, 0, 0,
                         LAC_EVENT_DROPPED);
        self->dropped_told = self->dropped_count;
    }
    return true;
}

bool lac_recorder_resumes(struct lac_thread *self, struct lac_depth *depth)
{
    if (depth->open > 0 || depth->is_loss || *self->stop != LAC_SPOOL_RECORD) {
        return false;
    }
    depth->below += depth->skipped;
    depth->skipped = 0;
    return true;
}

void lac_recorder_skip(struct lac_thread *self, struct lac_depth *depth)
{
    if (depth->skipped == 0) {
        depth->is_loss = *self->stop == LAC_SPOOL_RECORD; /* counted by the refill that failed */
    } else if (depth->is_loss) {
        self->dropped_count++;
        lac_spool_count_dropped(1, true);
    }
    depth->skipped++;
}

void lac_recorder_sync(struct lac_thread *self)
{
    if (self->end - self->next >= 2 + (ptrdiff_t)self->reserve) {
        put_sync(self);
    }
}

void lac_recorder_put_name(struct lac_thread *self, uint64_t what, uint32_t name, uint16_t domain,
                           uint8_t type)
{
    lac_recorder_put(self, what, name, domain, 0, type);
    if (type == LAC_EVENT_DOMAIN_NAME || type == LAC_EVENT_CATEGORY_NAME) {
        (void)__atomic_fetch_add(&lac_spool_header()->named_count, 1u, __ATOMIC_RELAXED);
    }
}

uint32_t lac_recorder_name_slow(struct lac_thread *self, const char *text, uint32_t length,
                                uint32_t hash)
{
    struct lac_name_slot *slot = lac_name_slot(self, hash, 0);
    const char *kept;
    const uint32_t id = lac_names_define(text, length, hash, &kept);

    if (slot->epoch == self->epoch && lac_name_slot(self, hash, 1)->epoch != self->epoch) {
        slot = lac_name_slot(self, hash, 1);
    }

    if (id != 0) {
        *slot = (struct lac_name_slot){
            .text = kept, .length = length, .hash = hash, .id = id, .epoch = self->epoch};
    }
    return id;
}

uint32_t lac_recorder_name_new(struct lac_thread *self, const char *text, uint32_t place)
{
    const size_t length = strlen(text);
    const uint32_t id = lac_recorder_name(self, text, length);

    /* a name that was cut is not what stands at that address */
    if (id != 0 && length <= LAC_NAME_BYTES_MAX) {
        const uint32_t hash = lac_names_hash(text, length);
        const uint32_t way = lac_name_slot(self, hash, 0)->id == id ? 0 : 1;

        self->by_pointer[place] = (uint16_t)((hash & (LAC_NAME_CACHE_SLOTS - 1)) ^ way);
    }
    return id;
}

__attribute__((constructor)) static void on_load(void)
{
    (void)lac_debug_begin(getenv("LACUNA_DEBUG"));
    lac_settings_read();
    if (lac_settings.enabled) {
        lac_clock_choose();
        lac_lock_install_fork_handlers();
        LAC_DEBUG(PROCESS, 1, "loaded by %s, child of %d; records into %s",
                  program_invocation_short_name, (int)getppid(), lac_settings.directory);
    } else {
        LAC_DEBUG(PROCESS, 1, "loaded by %s; records nothing: LACUNA_SPOOL=%s LACUNA_DISABLE=%s",
                  program_invocation_short_name, getenv("LACUNA_SPOOL"), getenv("LACUNA_DISABLE"));
    }
}
