#include "collector/gather/drain.h"

#include "collector/base/debug.h"
#include "collector/base/io_full.h"
#include "collector/base/monotonic.h"
#include "collector/gather/drain_private.h"
#include "collector/gather/shared_spool.h"
#include "collector/sample/proc_files.h"
#include "lacuna/spool.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* So old may the output be, should we not live to the end. */
static const uint64_t REFRESH_NS = 5000000000;

/* So long may the spool of a process that has ended stay. */
static const uint64_t ASK_NS = 500000000;

/* A change of the folder shows in its time of change, which is as coarse as the kernel's tick. */
static const int64_t COARSE_NS = 100000000;
static const uint64_t FOLDER_NS_MAX = 1000000000;

/* Where very many processes have nothing new, each is looked at the less often. */
static const uint64_t PAUSE_NS = 200000, PAUSE_NS_MAX = 400000000;

enum {
    FEW_SOURCES = 16,
    OPEN_FILES = 48, /* that others here have open, beside those that the sampler keeps */
    OPEN_MAX = 4096,
    OPEN_MIN = 2,
    NAMES_TRIED = 16,
    MISSES_MAX = 4096, /* names in the folder that are no spools, a round */
    PATH_BYTES = 4096
};

/* The buffer takes one segment of the largest size that was seen. */
static bool make_room(struct lac_drain *drain, size_t size_bytes)
{
    uint8_t *const grown =
        size_bytes > drain->buffer_bytes ? realloc(drain->buffer, size_bytes) : drain->buffer;

    if (grown != NULL) {
        drain->buffer = grown;
        drain->buffer_bytes = size_bytes > drain->buffer_bytes ? size_bytes : drain->buffer_bytes;
    }
    return grown != NULL;
}

static void read_pid_namespace(char *out, size_t capacity)
{
    const ssize_t length = readlink("/proc/self/ns/pid", out, capacity - 1);

    out[length > 0 ? length : 0] = '\0';
}

struct lac_drain *lac_drain_create(const char *spool_folder, const char *output_folder)
{
    struct lac_drain *const drain = calloc(1, sizeof(*drain));

    if (drain == NULL) {
        return NULL;
    }
    drain->spool_folder = spool_folder;
    drain->output_folder = output_folder;
    if (!make_room(drain, LAC_DRAIN_BUFFER_BYTES)) {
        free(drain);
        return NULL;
    }
    drain->open_max = OPEN_MIN;
    read_pid_namespace(drain->pid_namespace, sizeof(drain->pid_namespace));
    return drain;
}

/* Two descriptors a process: as many as we may have. Not before the first round, so that a job that
 * was started before keeps the limit it had. */
static void raise_limit(struct lac_drain *drain)
{
    struct rlimit limit;
    rlim_t others;

    if (drain->open_max != OPEN_MIN || getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return;
    }
    if (limit.rlim_cur < limit.rlim_max) {
        const struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};

        limit.rlim_cur = setrlimit(RLIMIT_NOFILE, &raised) == 0 ? limit.rlim_max : limit.rlim_cur;
    }
    others = OPEN_FILES + limit.rlim_cur / LAC_PROC_FILES_FRACTION;
    if (limit.rlim_cur > others + (rlim_t)2 * OPEN_MIN) {
        drain->open_max = (limit.rlim_cur - others) / 2 >= OPEN_MAX
                              ? OPEN_MAX
                              : (size_t)(limit.rlim_cur - others) / 2;
    }
}

/* ---- one source */

static bool is_open(const struct lac_drain_source *source)
{
    return source->spool.shared != NULL;
}

static void close_source(struct lac_drain *drain, struct lac_drain_source *source)
{
    drain->open_count -= is_open(source);
    lac_shared_close(&source->spool);
    if (source->output_fd >= 0) {
        (void)close(source->output_fd);
    }
    source->output_fd = -1;
}

/* Where there are more processes than descriptors, they take turns. */
static void close_surplus(struct lac_drain *drain, struct lac_drain_source *source)
{
    if (drain->open_count > drain->open_max) {
        close_source(drain, source);
    }
}

static void free_source(struct lac_drain *drain, struct lac_drain_source *source)
{
    close_source(drain, source);
    free(source->places);
    free(source->kept);
    free(source);
}

static void path_of(char path[PATH_BYTES], const char *folder, const char *name)
{
    (void)snprintf(path, PATH_BYTES, "%s/%s", folder, name);
}

static enum lac_shared_opening open_spool(struct lac_drain *drain, struct lac_drain_source *source,
                                          struct lac_spool_header *ret_header)
{
    char path[PATH_BYTES];
    enum lac_shared_opening opening;

    path_of(path, drain->spool_folder, source->name);
    opening = lac_shared_open(&source->spool, path, !drain->only_looks, ret_header);
    if (opening == LAC_SHARED_NO_ACCESS) {
        drain->open_error = errno;
    }
    return opening;
}

static bool open_output(struct lac_drain *drain, struct lac_drain_source *source, int flags)
{
    char path[PATH_BYTES];

    path_of(path, drain->output_folder, source->output_name);
    source->output_fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (source->output_fd < 0) {
        drain->open_error = errno;
    }
    return source->output_fd >= 0;
}

/* Processes of other pid namespaces may have the same name. What was gathered before, or moved by a
 * launcher that was killed, is added to. */
static bool make_output(struct lac_drain *drain, struct lac_drain_source *source,
                        const struct lac_spool_header *header)
{
    const int stem = (int)(strlen(source->name) - 6);

    (void)snprintf(source->output_name, sizeof(source->output_name), "%s", source->name);
    for (unsigned i = 1; i <= NAMES_TRIED; i++) {
        if (open_output(drain, source, O_CREAT | O_EXCL)) {
            return true;
        }
        if (errno != EEXIST) {
            return false;
        }
        if (drain->only_looks && open_output(drain, source, 0)) {
            if (lac_drain_resume(drain, source, header)) {
                return true;
            }
            (void)close(source->output_fd);
            source->output_fd = -1;
        }
        (void)snprintf(source->output_name, sizeof(source->output_name), "%.*s-%u.spool", stem,
                       source->name, i);
    }
    return false;
}

/* A process with ranges to capture tells itself when one begins and ends; others record beside it. What
 * it changed since we looked stays: to tell it WAIT then would lose what it captures. */
static void follow(struct lac_drain *drain, const struct lac_drain_source *source)
{
    const struct lac_shared_look look = lac_shared_look(&source->spool);
    const bool decides = look.captures_begun > 0;
    const bool is_on = decides ? look.captures_open > 0 : drain->wish == LAC_SPOOL_RECORD;
    const enum lac_spool_stop wish = is_on ? LAC_SPOOL_RECORD : LAC_SPOOL_WAIT;

    drain->has_captured = drain->has_captured || decides;
    if (look.stop == (uint32_t)wish || !lac_shared_replace(&source->spool, look.stop, wish)) {
        return;
    }
    /* one that began meanwhile found RECORD and left it */
    if (!is_on && lac_shared_look(&source->spool).captures_open > 0) {
        (void)lac_shared_replace(&source->spool, wish, LAC_SPOOL_RECORD);
    }
}

static void tell(struct lac_drain *drain, const struct lac_drain_source *source)
{
    if (drain->follows_captures) {
        follow(drain, source);
    } else {
        lac_shared_tell(&source->spool, drain->wish);
    }
}

/* For its turn, when it was closed after the last one. */
static bool reopen(struct lac_drain *drain, struct lac_drain_source *source)
{
    struct lac_spool_header header;

    if (is_open(source)) {
        return true;
    }
    if (open_spool(drain, source, &header) == LAC_SHARED_OPENED) {
        drain->open_count++;
        if (header.segment_bytes == source->segment_bytes && open_output(drain, source, 0)) {
            tell(drain, source);
            return true;
        }
    }
    close_source(drain, source);
    return false;
}

/* "pid_ns=pid:[4026531836]" */
static bool is_in_our_namespace(const struct lac_drain *drain,
                                const struct lac_spool_header *header)
{
    static const char key[] = "pid_ns=";

    for (uint32_t at = 0; at < header->text_bytes;) {
        const size_t length = strnlen(header->text + at, header->text_bytes - at);

        if (length >= sizeof(key) && length < header->text_bytes - at &&
            memcmp(header->text + at, key, sizeof(key) - 1) == 0) {
            return strcmp(header->text + at + sizeof(key) - 1, drain->pid_namespace) == 0;
        }
        at += (uint32_t)length + 1;
    }
    return false;
}

/* A process that has ended writes no more; one that waits for its parent has, too, but tells less
 * often. */
static bool has_ended(struct lac_drain_source *source, bool final, uint64_t now_ns)
{
    if (!source->can_end || (!final && now_ns < source->next_ask_ns)) {
        return false;
    }
    source->next_ask_ns = now_ns + ASK_NS;
    return kill(source->pid, 0) != 0 && errno == ESRCH;
}

/* ---- finding them */

/* FNV-1a */
static struct lac_drain_source **bucket_of(struct lac_drain *drain, const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    }
    return &drain->buckets[hash % LAC_DRAIN_BUCKETS];
}

static bool is_known(struct lac_drain *drain, const char *name)
{
    const struct lac_drain_source *source = *bucket_of(drain, name);

    while (source != NULL && strcmp(source->name, name) != 0) {
        source = source->next_bucket;
    }
    return source != NULL;
}

static void link_source(struct lac_drain *drain, struct lac_drain_source *source)
{
    struct lac_drain_source **const bucket = bucket_of(drain, source->name);

    source->next_bucket = *bucket;
    *bucket = source;
    source->next = drain->sources;
    drain->sources = source;
    drain->source_count++;
}

/* @return what follows it */
static struct lac_drain_source *unlink_source(struct lac_drain *drain,
                                              struct lac_drain_source **link)
{
    struct lac_drain_source *const source = *link;
    struct lac_drain_source **in_bucket = bucket_of(drain, source->name);

    while (*in_bucket != source) {
        in_bucket = &(*in_bucket)->next_bucket;
    }
    *in_bucket = source->next_bucket;
    *link = source->next;
    drain->source_count--;
    return *link;
}

/* A spool that was not there before, into the list. @return whether it is one */
static bool adopt(struct lac_drain *drain, const char *name, bool final)
{
    struct lac_drain_source *const source = calloc(1, sizeof(*source));
    struct lac_spool_header header;
    enum lac_shared_opening opening = LAC_SHARED_NO_ACCESS;

    if (source != NULL) {
        source->output_fd = -1;
        source->spool.fd = -1;
        (void)snprintf(source->name, sizeof(source->name), "%s", name);
        opening = open_spool(drain, source, &header);
        drain->open_count += opening == LAC_SHARED_OPENED;
        source->segment_bytes = opening == LAC_SHARED_OPENED ? header.segment_bytes : 0;
    }
    if (opening == LAC_SHARED_OPENED &&
        !(make_room(drain, header.segment_bytes) && make_output(drain, source, &header))) {
        opening = LAC_SHARED_NO_ACCESS;
    }
    if (opening != LAC_SHARED_OPENED) {
        LAC_DEBUG(GATHER, 2, "%s: %s%s", name,
                  opening == LAC_SHARED_NO_ACCESS  ? "cannot be opened"
                  : opening == LAC_SHARED_NOT_OURS ? "is no spool"
                                                   : "is not ready",
                  final ? "" : "; looks again");
        drain->looks_again = drain->looks_again || opening != LAC_SHARED_NOT_OURS;
        drain->counts.unopened += final && opening == LAC_SHARED_NO_ACCESS;
        drain->counts.damaged += final && opening == LAC_SHARED_NOT_OURS;
        if (source != NULL) {
            free_source(drain, source);
        }
        return false;
    }
    LAC_DEBUG(GATHER, 1, "%s of process %d goes into %s", name, (int)header.pid,
              source->output_name);
    source->ring_tail = header.free_tail;
    source->pid = header.pid;
    lac_drain_know(source, &header);
    source->can_end =
        header.pid > 0 && drain->pid_namespace[0] != '\0' && is_in_our_namespace(drain, &header);
    source->next_refresh_ns = lac_monotonic_ns() + REFRESH_NS;
    drain->counts.failed_writes += !lac_drain_begin(source, &header);
    tell(drain, source);
    link_source(drain, source);
    drain->counts.processes++;
    drain->counts.bytes += LAC_SPOOL_HEADER_BYTES;
    close_surplus(drain, source);
    return true;
}

/* Whether the folder may hold other names than when it was last read. */
static bool may_have_changed(struct lac_drain *drain, bool final)
{
    const uint64_t now_ns = lac_monotonic_ns();
    const int64_t changed_ns = lac_path_changed_ns(drain->spool_folder);
    struct timespec wall;
    int64_t wall_ns;
    bool is_same;

    (void)clock_gettime(CLOCK_REALTIME, &wall);
    wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec;
    is_same = !final && !drain->looks_again && changed_ns > 0 &&
              changed_ns == drain->folder_changed_ns &&
              now_ns - drain->looked_at_ns < FOLDER_NS_MAX;
    if (!is_same) {
        drain->looked_at_ns = now_ns;
        drain->folder_changed_ns = wall_ns - changed_ns > COARSE_NS ? changed_ns : 0;
    }
    return !is_same;
}

static void look_for_new(struct lac_drain *drain, bool final)
{
    unsigned misses = 0;
    DIR *folder;

    if (!may_have_changed(drain, final)) {
        return;
    }
    folder = opendir(drain->spool_folder);
    if (folder == NULL) {
        drain->open_error = errno;
        drain->folder_changed_ns = 0;
        return;
    }
    drain->looks_again = false;
    for (const struct dirent *entry = readdir(folder);
         entry != NULL && (final || misses < MISSES_MAX); entry = readdir(folder)) {
        if (lac_spool_is_name(entry->d_name) &&
            strlen(entry->d_name) < sizeof(drain->sources->name) &&
            !is_known(drain, entry->d_name)) {
            misses += !adopt(drain, entry->d_name, final);
        }
    }
    (void)closedir(folder);
}

/* ---- rounds */

/* Its spool is moved whole: nothing is left to do for it, or in the folder. */
static void remove_spool(const struct lac_drain *drain, const struct lac_drain_source *source)
{
    char path[PATH_BYTES];

    path_of(path, drain->spool_folder, source->name);
    (void)unlink(path);
}

static uint64_t pause_ns(const struct lac_drain *drain)
{
    const uint64_t pause = drain->source_count > FEW_SOURCES ? drain->source_count * PAUSE_NS : 0;

    return pause < PAUSE_NS_MAX ? pause : PAUSE_NS_MAX;
}

/* @return whether nothing is left to do for it */
static bool take_turn(struct lac_drain *drain, struct lac_drain_source *source, bool final,
                      uint64_t now_ns)
{
    /* first: what it wrote last is there now */
    const bool is_over = has_ended(source, final, now_ns);
    const bool refreshes = now_ns >= source->next_refresh_ns;
    bool has_moved;

    if (!reopen(drain, source)) {
        source->is_complete = false;
        source->next_look_ns = now_ns + PAUSE_NS_MAX;
        drain->counts.unopened += final;
        return false;
    }
    has_moved = lac_drain_move(drain, source, final || is_over, refreshes);
    if (refreshes) {
        source->next_refresh_ns = now_ns + REFRESH_NS;
    }
    source->next_look_ns = has_moved ? 0 : now_ns + (is_over ? PAUSE_NS_MAX : pause_ns(drain));
    close_surplus(drain, source);
    return is_over && source->is_complete && !drain->only_looks;
}

void lac_drain_round(struct lac_drain *drain, bool final)
{
    assert(drain != NULL);
    const uint64_t now_ns = lac_monotonic_ns();
    struct lac_drain_source **link = &drain->sources;
    uint64_t dropped = drain->ended_dropped;
    uint64_t dropped_else = drain->ended_dropped_else;

    raise_limit(drain);
    if (final) {
        drain->counts.unopened = drain->counts.damaged = 0;
    }
    look_for_new(drain, final);
    while (*link != NULL) {
        struct lac_drain_source *const source = *link;

        if ((final || now_ns >= source->next_look_ns) && take_turn(drain, source, final, now_ns)) {
            LAC_DEBUG(GATHER, 1, "%s: the process has ended, %lu segments, %lu events lost",
                      source->name, (unsigned long)source->output_segments,
                      (unsigned long)source->dropped);
            drain->ended_dropped = lac_drain_sum(drain->ended_dropped, source->dropped);
            drain->ended_dropped_else =
                lac_drain_sum(drain->ended_dropped_else, source->dropped_else);
            dropped = lac_drain_sum(dropped, source->dropped);
            dropped_else = lac_drain_sum(dropped_else, source->dropped_else);
            drain->counts.gpu_buffers += source->gpu_buffers_out;
            remove_spool(drain, source);
            (void)unlink_source(drain, link);
            free_source(drain, source);
            continue;
        }
        dropped = lac_drain_sum(dropped, source->dropped);
        dropped_else = lac_drain_sum(dropped_else, source->dropped_else);
        link = &source->next;
    }
    drain->counts.dropped = lac_drain_sum(dropped, drain->lost_events);
    drain->counts.dropped_else = dropped_else;
    if (final) {
        LAC_DEBUG(GATHER, 1, "%lu processes, %lu segments, %lu events lost, %lu spools unopened",
                  (unsigned long)drain->counts.processes, (unsigned long)drain->counts.segments,
                  (unsigned long)drain->counts.dropped, (unsigned long)drain->counts.unopened);
    }
}

void lac_drain_destroy(struct lac_drain *drain)
{
    if (drain == NULL) {
        return;
    }
    while (drain->sources != NULL) {
        struct lac_drain_source *const source = drain->sources;

        if (source->is_complete && !drain->only_looks) {
            remove_spool(drain, source);
        }
        drain->sources = source->next;
        free_source(drain, source);
    }
    free(drain->buffer);
    free(drain);
}

uint64_t lac_drain_steps(struct lac_drain *drain)
{
    assert(drain != NULL);
    for (const struct lac_drain_source *source = drain->sources; source != NULL;
         source = source->next) {
        if (is_open(source)) {
            const uint64_t steps = lac_shared_look(&source->spool).step_count;

            drain->counts.steps = steps > drain->counts.steps ? steps : drain->counts.steps;
        }
    }
    return drain->counts.steps;
}

void lac_drain_limit(struct lac_drain *drain, uint64_t limit_bytes)
{
    drain->limit_bytes = limit_bytes;
}

void lac_drain_others(struct lac_drain *drain, uint64_t bytes)
{
    drain->others_bytes = bytes;
}

void lac_drain_gather(struct lac_drain *drain)
{
    drain->only_looks = true;
    lac_drain_round(drain, true);
}

void lac_drain_want(struct lac_drain *drain, enum lac_spool_stop wish)
{
    assert(drain != NULL);
    if (drain->wish == wish && !drain->follows_captures) {
        return;
    }
    drain->follows_captures = false;
    LAC_DEBUG(GATHER, 2, "tells the processes to %s",
              wish == LAC_SPOOL_RECORD  ? "record"
              : wish == LAC_SPOOL_PAUSE ? "pause"
              : wish == LAC_SPOOL_OFF   ? "pause, with the GPU's recording off"
              : wish == LAC_SPOOL_WAIT  ? "wait for a range"
                                        : "stop");
    drain->wish = wish;
    for (struct lac_drain_source *source = drain->sources; source != NULL; source = source->next) {
        if (reopen(drain, source)) { /* which tells it, too, when it was closed */
            lac_shared_tell(&source->spool, wish);
            close_surplus(drain, source);
        }
    }
}

bool lac_drain_follow_captures(struct lac_drain *drain)
{
    assert(drain != NULL);
    bool is_any_open = false;

    for (const struct lac_drain_source *source = drain->sources; source != NULL;
         source = source->next) {
        is_any_open =
            is_any_open || (is_open(source) && lac_shared_look(&source->spool).captures_open > 0);
    }
    drain->wish = is_any_open ? LAC_SPOOL_RECORD : LAC_SPOOL_WAIT;
    drain->follows_captures = true;
    for (const struct lac_drain_source *source = drain->sources; source != NULL;
         source = source->next) {
        if (is_open(source)) {
            follow(drain, source);
        }
    }
    return is_any_open;
}

bool lac_drain_has_captured(const struct lac_drain *drain)
{
    return drain->has_captured;
}

uint64_t lac_drain_loader_wait_ns(const struct lac_drain *drain)
{
    return drain->loader_wait_ns;
}

struct lac_drain_counts lac_drain_counts(const struct lac_drain *drain)
{
    return drain->counts;
}

void lac_drain_say_missing(const struct lac_drain *drain, const char *who, const char *limit)
{
    assert(drain != NULL);
    const struct lac_drain_counts *const counts = &drain->counts;
    const uint64_t no_space = counts->dropped - counts->dropped_else;

    if (no_space > 0) {
        (void)fprintf(stderr, "%s: %llu events were not recorded (no space, or %s)\n", who,
                      (unsigned long long)no_space, limit);
    }
    if (counts->dropped_else > 0) {
        (void)fprintf(stderr,
                      "%s: %llu events were not recorded (GPU operations that had not ended, or "
                      "that CUPTI dropped; very deep ranges)\n",
                      who, (unsigned long long)counts->dropped_else);
    }

    if (counts->gpu_buffers > 0) {
        (void)fprintf(stderr,
                      "%s: GPU operations were lost with processes that were killed: %llu buffers "
                      "of CUPTI, with up to a thousand launches each\n",
                      who, (unsigned long long)counts->gpu_buffers);
    }
    if (counts->unopened > 0) {
        (void)fprintf(stderr,
                      "%s: %llu recorded processes are not in the recording: their spools could "
                      "not be opened: %s\n",
                      who, (unsigned long long)counts->unopened, strerror(drain->open_error));
    }
    if (counts->damaged > 0) {
        (void)fprintf(stderr,
                      "%s: %llu files named .spool are not spools that this version reads\n", who,
                      (unsigned long long)counts->damaged);
    }
}
