#include "collector/base/count_of.h"
#include "collector/base/debug.h"
#include "collector/base/monotonic.h"
#include "collector/base/old_symbols.h"
#include "collector/base/write_signals.h"
#include "collector/inject/capture.h"
#include "collector/inject/cupti_abi.h"
#include "collector/inject/cupti_graphs.h"
#include "collector/inject/gpu.h"
#include "collector/inject/recorder.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 *   NONE -> (cuInit) -> FULL | WITHOUT_KERNELS | RANGES_ONLY
 *    |                    |  \
 *    |                    |   +-> (the launcher switches off) kinds disabled -> back
 *    |                    |   +-> (it ends the recording) ENDED: CUPTI is given back for good
 *    |                    +-> (another profiler asks) YIELDED -> (it is done) back
 *    |                    +-> (fork) the child: DEAD, it may touch neither CUDA nor CUPTI
 *    +-> (another profiler asks first) YIELDED before the start
 */

enum {
    FLUSH_EVERY_MS = 1000,
    WATCH_EVERY_MS = 50,
    FLUSH_AT_EXIT_MS = 2000,
    IN_PROGRESS_WAIT_MS = 200, /* for operations that are still running when recording ends */
    GRAPH_DECISIONS_TOLD = 8,
    SILENT_MS = 30000,
    SILENT_STEPS = 3,
    LIBRARIES_TRIED = 4,
    HOLDER_BYTES = 128,
};

static const char REFUSED[] = "CUPTI refused us";

static struct cupti_functions cupti;
static uint32_t cupti_version;
static void *subscriber; /* NULL too while another one keeps its subscription: see come_back() */
static uint32_t session_epoch; /* process that owns the session; 0 none */
static uint32_t yielded_epoch; /* process in which another profiler uses CUPTI; 0 none */
static pthread_t flusher;
static volatile int flusher_stop;
static volatile int flush_done;
/* guards what follows; held while calling CUPTI, but never taken in its callbacks */
static pthread_mutex_t session_mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_active;
static bool was_active;      /* at the start: there is something to come back to */
static bool waits_for_other; /* the start was put off until another profiler is done */
static bool has_ended;       /* nothing is recorded in this process any more */
static bool is_off;          /* active, but the launcher wants no kind enabled */
/* since CUPTI came back from another profiler, until it is known whose clock it has */
static bool doubts_clock;
static uint64_t stamps_at_return;
static uint64_t completed_at_return;
static bool measures_graphs; /* only the thread that flushes, once it runs */
static bool wants_whole_graphs;

/* What CUPTI is to stamp records with; that it asks shows whose clock it has. */
static uint64_t stamp_count;

static uint64_t stamp_ns(void)
{
    (void)__atomic_add_fetch(&stamp_count, 1, __ATOMIC_RELAXED);
    return lac_monotonic_ns();
}

/* Records that were made on the way to another callback come with CUPTI's own clock, so it is
 * registered once, and again only where another tool has replaced it. */
static void register_clock(void)
{
    if (cupti.register_timestamp != NULL && cupti.register_timestamp(stamp_ns) == CUPTI_OK) {
        lac_gpu_writer_clock(LAC_GPU_CLOCK_MONOTONIC);
    }
}

/* Nothing is enabled but calls that mark a range to capture, and those only where that is wanted:
 * CUPTI wants a callback even from those who enable none. */
static void on_callback(void *user, int domain, uint32_t number, const void *data)
{
    int32_t site = CUPTI_SITE_ENTER;

    (void)user;
    if (data != NULL) {
        memcpy(&site, data, sizeof(site));
    }
    if (domain == CUPTI_DOMAIN_DRIVER || domain == CUPTI_DOMAIN_RUNTIME) {
        const bool is_driver = domain == CUPTI_DOMAIN_DRIVER;

        if (site == CUPTI_SITE_EXIT &&
            number == (is_driver ? CUPTI_DRIVER_PROFILER_START : CUPTI_RUNTIME_PROFILER_START)) {
            lac_capture_profiler(true);
        } else if (site == CUPTI_SITE_ENTER &&
                   number ==
                       (is_driver ? CUPTI_DRIVER_PROFILER_STOP : CUPTI_RUNTIME_PROFILER_STOP)) {
            lac_capture_profiler(false);
        }
    }
}

/* Calls of cudaProfilerStart and cudaProfilerStop, for a job that says itself what to record. */
static void hear_profiler_calls(void)
{
    static const struct {
        int domain;
        uint32_t number;
    } calls[] = {
        {CUPTI_DOMAIN_DRIVER, CUPTI_DRIVER_PROFILER_START},
        {CUPTI_DOMAIN_DRIVER, CUPTI_DRIVER_PROFILER_STOP},
        {CUPTI_DOMAIN_RUNTIME, CUPTI_RUNTIME_PROFILER_START},
        {CUPTI_DOMAIN_RUNTIME, CUPTI_RUNTIME_PROFILER_STOP},
    };
    bool is_heard = lac_capture.profiler_api && cupti.enable_callback != NULL;

    for (size_t i = 0; i < LAC_COUNT_OF(calls) && is_heard; i++) {
        is_heard =
            cupti.enable_callback(1, subscriber, calls[i].domain, calls[i].number) == CUPTI_OK;
    }
    if (lac_capture.profiler_api && !is_heard) {
        lac_setting("capture_profiler_api", "CUPTI does not tell of these calls");
    }
}

/* Before error 39 existed, 12 said so. */
static bool is_busy(int result)
{
    return result == CUPTI_RESULT_MULTIPLE_SUBSCRIBERS || result == CUPTI_RESULT_MAX_LIMIT;
}

/* @param holder set to the name of another profiler that holds CUPTI, if it told one
 * @return what CUPTI says, which is the caller's to tell */
static int subscribe(char holder[HOLDER_BYTES])
{
    struct cupti_subscriber_parameters parameters = {.size_bytes = sizeof(parameters),
                                                     .name = "lacuna",
                                                     .holder = holder,
                                                     .holder_bytes = HOLDER_BYTES};
    int result = CUPTI_RESULT_MULTIPLE_SUBSCRIBERS;

    holder[0] = '\0';
    if (cupti.subscribe_named != NULL) {
        result = cupti.subscribe_named(&subscriber, on_callback, NULL, &parameters);
    }
    if (cupti.subscribe_named == NULL || (result != CUPTI_OK && !is_busy(result))) {
        result = cupti.subscribe(&subscriber, on_callback, NULL);
    }
    if (result == CUPTI_OK) {
        hear_profiler_calls();
    } else {
        subscriber = NULL;
    }
    return result;
}

/* LACUNA_GRAPHS=launches: whole launches; =measured: what costs less, as it is measured here. */
static void choose_graphs(void)
{
    const char *const asked = getenv("LACUNA_GRAPHS");

    measures_graphs = asked != NULL && strcmp(asked, "measured") == 0 && cupti.disable != NULL;
    if (asked != NULL && strcmp(asked, "launches") == 0) {
        wants_whole_graphs = cupti.enable(CUPTI_KIND_GRAPH_TRACE) == CUPTI_OK;
        lac_setting("graph_recording", wants_whole_graphs ? "launches" : "nodes");
    }
}

/* Node records or whole launches, based on measurements since the last decision. */
static void consider_graphs(void)
{
    struct lac_gpu_writer *const writer = lac_gpu_writer_take();
    struct lac_graphs *const graphs = lac_gpu_graphs(writer);
    const bool is_news = lac_graphs_decide(graphs);
    const bool whole = graphs->mode != LAC_GRAPHS_NODES;
    static unsigned told;
    char reason[300];
    char key[40] = "graph_recording";

    (void)lac_graphs_explain(graphs, reason, sizeof(reason));
    lac_gpu_writer_give(writer); /* from here on CUPTI may call us back */
    if (whole != wants_whole_graphs) {
        const int result =
            whole ? cupti.enable(CUPTI_KIND_GRAPH_TRACE) : cupti.disable(CUPTI_KIND_GRAPH_TRACE);

        if (result != CUPTI_OK) {
            measures_graphs = false; /* as they are from now on */
            lac_cupti_note_result(&cupti, "launches of graphs cannot be recorded whole", result);
            return;
        }
        wants_whole_graphs = whole;
    }
    if (is_news && told < GRAPH_DECISIONS_TOLD) {
        if (told++ > 0) {
            (void)snprintf(key, sizeof(key), "graph_recording_%u", told);
        }
        lac_setting(key, whole ? "launches" : "nodes");
        (void)strncat(key, "_reason", sizeof(key) - strlen(key) - 1);
        lac_setting(key, reason);
    }
}

/* ---- the thread that flushes */

/* @param is_first none has ever come */
static void tell_silence(bool is_first)
{
    if (is_first) { /* a job that uses CUDA for little else may be as it should */
        lac_setting("gpu_recording_unseen",
                    "no GPU record came in the first 30 s of steps: they do not use the GPU, or "
                    "another tool has taken CUPTI's buffers");
        lac_gpu_tell_state(LAC_GPU_STATE_UNSEEN);
        return;
    }
    lac_setting("gpu_recording_silent",
                "no GPU record came for 30 s although steps went on: another tool may have "
                "taken CUPTI's buffers");
    lac_gpu_tell_state(LAC_GPU_STATE_SILENT);
}

/* Each told once: records stay away although the program goes on. */
static void watch_silence(void)
{
    static uint64_t completed_before;
    static uint64_t steps_before;
    static uint64_t since_ns;
    static bool is_told[2]; /* [1]: that none has ever come */
    const struct lac_spool_header *const header = lac_spool_header();
    const uint64_t now_ns = lac_monotonic_ns();
    const uint64_t completed = lac_cupti_buffers_completed();
    const uint64_t steps = header != NULL ? header->step_count : 0;

    if (completed != completed_before || is_off || since_ns == 0) {
        completed_before = completed;
        steps_before = steps;
        since_ns = now_ns;
    } else if (!is_told[completed == 0] && steps - steps_before >= SILENT_STEPS &&
               now_ns - since_ns >= SILENT_MS * 1000000ull) {
        is_told[completed == 0] = true;
        tell_silence(completed == 0);
    }
}

static void leave(void);

/* The launcher wants nothing for long, or no more: CUPTI is to cost nothing then. */
static void obey_launcher(void)
{
    const enum lac_spool_stop wish = lac_gpu_watch_pause();
    const bool wants_off = wish == LAC_SPOOL_OFF;

    if ((wants_off == is_off && wish != LAC_SPOOL_STOP) || cupti.disable == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&session_mutex);
    if (flusher_stop) { /* the process ends: what is called then may have been destroyed */
        (void)pthread_mutex_unlock(&session_mutex);
        return;
    }
    if (wish == LAC_SPOOL_STOP) {
        LAC_DEBUG(CUPTI, 1, "the launcher ends the recording");
        has_ended = true;
        if (is_active) {
            leave();
            lac_cupti_buffers_give_back();
        }
    } else if (is_active) {
        LAC_DEBUG(CUPTI, 1, "the launcher switches %s", wants_off ? "off" : "on");
        is_off = wants_off;
        if (wants_off) {
            lac_cupti_disable(&cupti);
        } else {
            (void)lac_cupti_enable(&cupti, wants_whole_graphs);
        }
    }
    (void)pthread_mutex_unlock(&session_mutex);
}

/* After another profiler had CUPTI: records came that were not stamped by us. */
static void watch_clock(void)
{
    if (!doubts_clock || lac_cupti_buffers_completed() == completed_at_return) {
        return;
    }
    doubts_clock = false;
    if (__atomic_load_n(&stamp_count, __ATOMIC_RELAXED) == stamps_at_return) {
        LAC_DEBUG(CUPTI, 1, "CUPTI does not ask for our clock anymore: registered again");
        register_clock();
    }
}

/* What a killed process loses: the last second, and buffers with an operation in progress. */
static void *flush_now_and_then(void *unused)
{
    (void)unused;
    while (!flusher_stop && !has_ended) {
        const struct timespec pause = {.tv_nsec = WATCH_EVERY_MS * 1000000L};

        for (int ms = 0; ms < FLUSH_EVERY_MS && !flusher_stop && !has_ended; ms += WATCH_EVERY_MS) {
            (void)nanosleep(&pause, NULL);
            obey_launcher();
        }
        (void)pthread_mutex_lock(&session_mutex);
        if (!flusher_stop && is_active) {
            if (!is_off || lac_cupti_buffers_out() > 0) {
                lac_cupti_flush(0);
            }
            watch_silence();
            watch_clock();
            if (measures_graphs && !is_off) {
                consider_graphs();
            }
        }
        (void)pthread_mutex_unlock(&session_mutex);
    }
    return NULL;
}

static void tell_count(const char *key, uint64_t count)
{
    char text[32];

    if (count > 0) {
        (void)snprintf(text, sizeof(text), "%" PRIu64, count);
        lac_setting(key, text);
    }
}

static void tell_losses(void)
{
    tell_count("gpu_recording_untimed", lac_gpu_writer_untimed());
    tell_count("gpu_recording_unread_buffers", lac_cupti_buffers_unread());
}

static void *flush_last(void *unused)
{
    (void)unused;
    lac_cupti_flush_patiently(IN_PROGRESS_WAIT_MS);
    flush_done = 1;
    return NULL;
}

/* Without this only the last second would be lost. A driver that is gone can hang here, hence
 * the limit. */
static void at_exit(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    pthread_t thread;
    int waited_ms = 0;

    if (session_epoch != *lac_epoch_page) {
        return;
    }
    flusher_stop = 1;
    while (pthread_mutex_trylock(&session_mutex) != 0) {
        if (waited_ms++ >= FLUSH_AT_EXIT_MS) {
            tell_losses();
            return; /* whoever has it is in CUPTI, and does not come back */
        }
        (void)nanosleep(&pause, NULL);
    }
    if (!is_active) {
        (void)pthread_mutex_unlock(&session_mutex);
        return;
    }
    if (!lac_quiet_thread(&thread, flush_last, NULL)) {
        (void)flush_last(NULL); /* without the limit: better than without the records */
    }
    for (; !flush_done && waited_ms < FLUSH_AT_EXIT_MS; waited_ms++) {
        (void)nanosleep(&pause, NULL);
    }
    (void)pthread_mutex_unlock(&session_mutex);
    tell_losses();
    LAC_DEBUG(CUPTI, 1, "at exit: %s",
              flush_done ? "all buffers came back" : "CUPTI did not return its buffers in 2 s");
}

/* ---- beside other profilers */

/* Nothing may be enabled when the buffers are asked for: what came after that would end up in the
 * other profiler's hands. */
static void leave(void)
{
    lac_cupti_disable(&cupti);
    lac_cupti_flush_patiently(IN_PROGRESS_WAIT_MS);
    if (subscriber != NULL && cupti.unsubscribe != NULL) {
        (void)cupti.unsubscribe(subscriber);
        subscriber = NULL;
    }
    is_active = false;
    tell_losses();
}

static void tell_reached(const char *reached)
{
    lac_gpu_tell_state(strcmp(reached, "full") == 0              ? LAC_GPU_STATE_FULL
                       : strcmp(reached, "without-kernels") == 0 ? LAC_GPU_STATE_NO_KERNELS
                                                                 : LAC_GPU_STATE_REFUSED);
}

/* Activity records need no subscription, and releases of the other profiler that never give theirs
 * back are common: then we go on without one. */
static void come_back(void)
{
    char holder[HOLDER_BYTES];
    const int result = subscribe(holder);
    const char *reached;

    if (result != CUPTI_OK && !is_busy(result)) {
        lac_cupti_note_result(&cupti, REFUSED, result);
    }
    if ((result != CUPTI_OK && !is_busy(result)) ||
        lac_cupti_buffers_register(&cupti, cupti_version) != CUPTI_OK) {
        lac_setting("gpu_recording_after_yield", "ranges-only");
        lac_gpu_tell_state(LAC_GPU_STATE_ENDED);
        return;
    }
    if (is_busy(result)) {
        lac_setting("gpu_recording_subscription", "another profiler's, which keeps it");
    }
    is_off = false;
    doubts_clock = true;
    stamps_at_return = __atomic_load_n(&stamp_count, __ATOMIC_RELAXED);
    completed_at_return = lac_cupti_buffers_completed();
    reached = lac_cupti_enable(&cupti, wants_whole_graphs);
    lac_setting("gpu_recording_after_yield", reached);
    tell_reached(reached);
    is_active = true;
}

/* ---- the start */

static void tell_holder(const char *holder)
{
    char line[HOLDER_BYTES + 40];

    (void)snprintf(line, sizeof(line), "another profiler holds CUPTI: %.127s",
                   holder[0] != '\0' ? holder : "unnamed");
    lac_setting("gpu_recording_reason", line);
}

/* @return false after telling why */
static bool register_buffers(void)
{
    const int result = lac_cupti_buffers_register(&cupti, cupti_version);

    if (result != CUPTI_OK) {
        lac_cupti_note_result(&cupti, REFUSED, result);
        if (cupti.unsubscribe != NULL) {
            (void)cupti.unsubscribe(subscriber);
            subscriber = NULL;
        }
    }
    return result == CUPTI_OK;
}

/* A library that is there and does not fit the driver refuses everything: then the next one. What is
 * told is the one that is used and what it says, else the first one that refused. */
static bool start_library(void)
{
    static char refused_path[PATH_MAX];
    struct cupti_functions refusing = {0};
    int refused = CUPTI_OK;

    for (unsigned tried = 0; tried < LIBRARIES_TRIED; tried++) {
        char holder[HOLDER_BYTES];
        const char *path = NULL;
        int result;

        if (!lac_cupti_find(tried, &cupti, &path)) {
            break;
        }
        (void)cupti.get_version(&cupti_version);
        LAC_DEBUG(CUPTI, 1, "%s, API version %u", path, cupti_version);
        result = subscribe(holder);
        if (is_busy(result)) {
            tell_holder(holder);
        }
        if (result == CUPTI_OK || is_busy(result) ||
            result == CUPTI_RESULT_INSUFFICIENT_PRIVILEGES) {
            lac_setting("cupti_library", path);
        }
        if (result == CUPTI_OK) {
            lac_cupti_names_load(&cupti);
            return register_buffers();
        }
        if (result == CUPTI_RESULT_INSUFFICIENT_PRIVILEGES) {
            lac_cupti_note_result(&cupti, REFUSED, result);
        }
        if (is_busy(result) || result == CUPTI_RESULT_INSUFFICIENT_PRIVILEGES) {
            return false; /* another library would hear the same */
        }
        if (refused == CUPTI_OK) {
            refused = result;
            refusing = cupti;
            (void)snprintf(refused_path, sizeof(refused_path), "%s", path);
        }
    }
    if (refused == CUPTI_OK) {
        lac_setting("gpu_recording_reason", "libcupti was not found; "
                                            "LACUNA_CUPTI=/path/to/libcupti.so names it");
    } else {
        lac_setting("cupti_library", refused_path);
        lac_cupti_note_result(&refusing, REFUSED, refused);
    }
    return false;
}

static void start(void)
{
    const char *reached;

    if (!start_library()) {
        lac_setting("gpu_recording", "ranges-only");
        lac_gpu_tell_state(LAC_GPU_STATE_REFUSED);
        return;
    }
    lac_gpu_writer_give(lac_gpu_writer_take()); /* it notes since when times can be */
    register_clock(); /* before anything is enabled, or records come with CUPTI's own clock */
    if (cupti.set_thread_id_type != NULL) {
        (void)cupti.set_thread_id_type(1);
    }
    choose_graphs();
    reached = lac_cupti_enable(&cupti, wants_whole_graphs);
    lac_setting("gpu_recording", reached);
    tell_reached(reached);
    if (strcmp(reached, "ranges-only") == 0 && cupti.unsubscribe != NULL) {
        (void)cupti.unsubscribe(subscriber); /* others may be luckier */
        subscriber = NULL;
        return;
    }
    is_active = true;
    was_active = true;
    (void)lac_quiet_thread(&flusher, flush_now_and_then, NULL);
    (void)atexit(at_exit);
}

void lac_gpu_yield(bool yield, const char *to)
{
    const bool has_session = session_epoch != 0 && session_epoch == *lac_epoch_page;

    (void)pthread_mutex_lock(&session_mutex);
    if (yield) {
        if (is_active && has_session && cupti.unsubscribe != NULL && cupti.disable != NULL) {
            leave();
            lac_setting("gpu_recording_yielded_to", to);
        }
        yielded_epoch = *lac_epoch_page; /* also before CUDA is initialized: the wish is kept */
    } else {
        yielded_epoch = 0;
        if (has_ended) {
            waits_for_other = false;
        } else if (has_session && !is_active && was_active && cupti.unsubscribe != NULL) {
            come_back();
        } else if (has_session && waits_for_other) {
            waits_for_other = false;
            start();
        }
    }
    (void)pthread_mutex_unlock(&session_mutex);
}

void lac_gpu_session_forget(void)
{
    lac_mutex_renew(&session_mutex);
}

bool lac_gpu_stream_number(const void *stream, uint32_t *ret_device, uint32_t *ret_number)
{
    return session_epoch != 0 && session_epoch == *lac_epoch_page && is_active &&
           cupti.get_stream_id != NULL && cupti.get_device_id != NULL &&
           cupti.get_device_id(NULL, ret_device) == CUPTI_OK &&
           cupti.get_stream_id(NULL, stream, 0, ret_number) == CUPTI_OK;
}

__attribute__((visibility("default"))) int InitializeInjection(void);

/** Called by libcuda when the process initializes CUDA. 1: we are there. */
int InitializeInjection(void)
{
    lac_cuda_injection_chain(); /* first: what another tool has without us, it has with us */
    if (!lac_settings.enabled || session_epoch != 0) {
        return 1;
    }
    (void)pthread_mutex_lock(&session_mutex);
    session_epoch = *lac_epoch_page;
    if (yielded_epoch == session_epoch) { /* it would lose CUPTI to us, for good */
        waits_for_other = true;
        lac_setting("gpu_recording_waited_for", "the job's own profiler, which was there first");
    } else {
        start();
    }
    (void)pthread_mutex_unlock(&session_mutex);
    return 1;
}
