/* What `run --server` does beside a job and behind it. */

#include "collector/base/debug.h"
#include "collector/base/monotonic.h"
#include "collector/base/old_symbols.h" /* IWYU pragma: keep */
#include "collector/base/write_signals.h"
#include "collector/push/http_client.h"
#include "collector/push/push.h"
#include "collector/push/push_stream.h"
#include "collector/push/push_upload.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    LOOK_EVERY_MS = 2000,
    SLICE_MS = 50,
    TRIES_MAX = 12,        /* behind the job, in a row without a byte more */
    HANG_EVERY_MS = 60000, /* the server forgets one that it does not hear of */
    HANG_AGAIN_MS = 2000,  /* it heard nothing */
    HANG_BYTES = 8192,
    FIRST_TRIES_MAX = 4, /* when the server was never reached */
    POLITENESS = 10,
};

enum wish { GO_ON, FINISH, DROP };

struct lac_push_run {
    const struct lac_push_target *target;
    const char *folder;
    struct lac_http *http;
    char problem[200];
    struct lac_push_stream *stream;
    enum lac_push_stream_answer answer;
    int wish; /* enum wish, set by the other thread */
    /* whether the job hangs, set by the other thread */
    pthread_mutex_t lock;
    unsigned hang_number;  /* of what was said last; 0: nothing yet */
    char hang[HANG_BYTES]; /* "": the job goes on */
    unsigned tried_number;
    uint64_t tell_ns; /* when it is to be told (again) */
    pthread_t thread;
    bool has_thread;
};

static enum wish wish_of(const struct lac_push_run *run)
{
    return (enum wish)__atomic_load_n(&run->wish, __ATOMIC_ACQUIRE);
}

static unsigned hang_number_of(const struct lac_push_run *run)
{
    return __atomic_load_n(&run->hang_number, __ATOMIC_ACQUIRE);
}

static void rest(const struct lac_push_run *run, long ms, enum wish until_other_than)
{
    const unsigned number = hang_number_of(run);

    for (long slept_ms = 0; slept_ms < ms && wish_of(run) == until_other_than &&
                            (until_other_than != GO_ON || hang_number_of(run) == number);
         slept_ms += SLICE_MS) {
        lac_push_sleep_ms(SLICE_MS);
    }
}

/* Before the next try. */
static void pause_after(const struct lac_push_run *run, enum wish until_other_than)
{
    const unsigned tries = lac_push_stream_tries(run->stream);

    LAC_DEBUG(PUSH, 1, "try %u failed; again in %ld ms", tries, lac_push_pause_ms(tries));
    rest(run, lac_push_pause_ms(tries), until_other_than);
}

/* What was said last of a hang, where the server has not heard it, or not for a while. */
static void tell_hang(struct lac_push_run *run)
{
    const uint64_t now_ns = lac_monotonic_ns();
    char hang[HANG_BYTES];

    if (hang_number_of(run) == 0 ||
        (hang_number_of(run) == run->tried_number && now_ns < run->tell_ns)) {
        return;
    }
    (void)pthread_mutex_lock(&run->lock);
    run->tried_number = run->hang_number;
    memcpy(hang, run->hang, sizeof(hang));
    (void)pthread_mutex_unlock(&run->lock);
    if (!lac_push_stream_hang(run->stream, hang[0] != '\0' ? hang : NULL)) {
        run->tell_ns = now_ns + HANG_AGAIN_MS * UINT64_C(1000000);
    } else if (hang[0] != '\0') {
        run->tell_ns = now_ns + HANG_EVERY_MS * UINT64_C(1000000);
    } else {
        run->tell_ns = UINT64_MAX;
    }
}

/* While the job runs: as long as it takes. */
static bool follow(struct lac_push_run *run)
{
    while (wish_of(run) == GO_ON) {
        tell_hang(run);
        run->answer = lac_push_stream_step(run->stream, false);
        if (run->answer == LAC_STREAM_REFUSED || run->answer == LAC_STREAM_UNSUPPORTED) {
            return false;
        }
        if (run->answer == LAC_STREAM_WAIT) {
            rest(run, LOOK_EVERY_MS, GO_ON);
        } else if (run->answer == LAC_STREAM_AWAY) {
            pause_after(run, GO_ON);
        }
    }
    return true;
}

/* Behind it: what is left, with as much patience as `push` has. */
static void finish(struct lac_push_run *run)
{
    lac_push_stream_forgive(run->stream);
    do {
        run->answer = lac_push_stream_step(run->stream, true);
        if (run->answer == LAC_STREAM_AWAY) {
            const unsigned tries = lac_push_stream_tries(run->stream);

            if (tries >= (lac_push_stream_was_reached(run->stream) ? TRIES_MAX : FIRST_TRIES_MAX)) {
                lac_push_stream_give_up(run->stream);
                return;
            }
            pause_after(run, FINISH);
        }
    } while (run->answer == LAC_STREAM_SENT || run->answer == LAC_STREAM_AWAY);
}

static void *stream_all(void *context)
{
    struct lac_push_run *const run = context;

    (void)setpriority(PRIO_PROCESS, 0, POLITENESS); /* of this thread: the job goes first */
    run->answer = LAC_STREAM_REFUSED;
    run->http = lac_http_open(run->problem, sizeof(run->problem));
    if (run->http == NULL) {
        return NULL;
    }
    run->stream = lac_push_stream_create(run->http, run->target, run->folder);
    if (run->stream == NULL) {
        (void)fprintf(stderr, "lacuna push: %s: out of memory\n", run->folder);
    } else if (follow(run) && wish_of(run) == FINISH) {
        finish(run);
    }
    return NULL;
}

struct lac_push_run *lac_push_run_begin(const struct lac_push_target *target, const char *folder)
{
    struct lac_push_run *const run = calloc(1, sizeof(*run));

    if (run == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&run->lock, NULL);
    run->target = target;
    run->folder = folder;
    run->has_thread = lac_quiet_thread(&run->thread, stream_all, run);
    return run;
}

void lac_push_run_hang(void *context, const char *json)
{
    struct lac_push_run *const run = context;

    if (run == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&run->lock);
    (void)snprintf(run->hang, sizeof(run->hang), "%s", json != NULL ? json : "");
    __atomic_store_n(&run->hang_number, run->hang_number + 1, __ATOMIC_RELEASE);
    (void)pthread_mutex_unlock(&run->lock);
}

/* To a server that does not know uploads that grow. */
static bool send_whole(struct lac_push_run *run, char *url, size_t capacity)
{
    struct lac_push_clock clock = {0};

    lac_push_probe(run->http, run->target, &clock);
    return lac_push_path(run->http, run->target, run->folder, NULL, &clock, url, capacity);
}

static void say_option(const char *option, const char *value)
{
    if (value != NULL && value[0] != '\0') {
        (void)fprintf(stderr, "%s%s", option, value);
    }
}

static void conclude(struct lac_push_run *run)
{
    char url[640];
    bool is_sent = run->answer == LAC_STREAM_DONE;

    if (run->http == NULL) {
        (void)fprintf(stderr, "lacuna: %s; the recording stays in %s\n", run->problem, run->folder);
        lac_push_explain(run->target, run->folder);
        return;
    }
    if (is_sent) {
        (void)snprintf(url, sizeof(url), "%s/t/%s", run->target->server,
                       lac_push_stream_trace(run->stream));
    } else if (run->answer == LAC_STREAM_UNSUPPORTED) {
        is_sent = send_whole(run, url, sizeof(url));
    }
    if (!is_sent) {
        (void)fprintf(stderr,
                      "lacuna: the recording stays in %s; to continue: lacuna push %s --server %s",
                      run->folder, run->folder, run->target->server);
        say_option(" --token-file ", run->target->token_file);
        say_option(" --project ", run->target->project);
        say_option(" --run ", run->target->run);
        (void)fputc('\n', stderr);
    } else if (!run->target->is_quiet) {
        (void)fprintf(stderr, "lacuna: %s\n", url);
    }
}

void lac_push_run_end(struct lac_push_run *run, bool is_wanted)
{
    if (run == NULL) {
        return;
    }
    __atomic_store_n(&run->wish, is_wanted ? FINISH : DROP, __ATOMIC_RELEASE);
    if (run->has_thread) {
        (void)pthread_join(run->thread, NULL);
    } else {
        (void)stream_all(run);
    }
    if (is_wanted) {
        conclude(run);
    }
    lac_push_stream_destroy(run->stream);
    lac_http_close(run->http);
    (void)pthread_mutex_destroy(&run->lock);
    free(run);
}
