#include "collector/hang/hang_watch.h"

#include "collector/base/debug.h"
#include "collector/base/io_full.h"
#include "collector/base/monotonic.h"
#include "collector/base/progress_line.h"
#include "collector/gather/drain.h"
#include "collector/hang/hang_dumps.h"
#include "collector/hang/hang_flight.h"
#include "collector/hang/hang_gpus.h"
#include "collector/hang/hang_json.h"
#include "collector/hang/hang_peers.h"
#include "collector/hang/hang_process.h"
#include "collector/hang/hang_ras.h"
#include "collector/hang/hang_ras_client.h"
#include "collector/hang/hang_rule.h"
#include "collector/hang/hang_said.h"
#include "collector/hang/hang_verdict.h"
#include "collector/sample/nvml.h"
#include "collector/sample/proc_files.h"
#include "collector/sample/sampler.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_MS = 250,
    CPU_MS = 1000,     /* over which a thread counts as busy or not */
    BUSY_PERCENT = 40, /* of a core */
    ANSWER_MS = 1500,
    NCCL_MS = 3000,   /* that NCCL may take beyond the processes' own answers */
    DUMPS_MS = 15000, /* PyTorch looks into its pipe once a second, and writes megabytes */
    DUMP_LOOK_MS = 1000,
    DUMPS_MAX = 64,
    PROCESSES_MAX = 256,
    JUDGED_MAX = 4096, /* with those of other launchers */
    QUIET_MS = 1000,
    SHARE_MS = 500,     /* with other launchers, in a quiet time */
    HELP_MS = 4000,     /* our processes are asked so often because other launchers wish it */
    ALARMED_MS = 60000, /* by then the others have been told, too */
    GPUS_MAX = 64,
    STACKS_TOLD = 32,   /* in the recording, of all threads */
    ANSWERS_MAX = 4096, /* files looked at, a round */
};

struct watched {
    struct lac_hang_process it;
    bool is_there; /* in the last look */
    uint64_t cpu_looked_ns;
    uint64_t io_bytes; /* read and written until then */
};

struct lac_hang_watch {
    const char *spool_folder;
    bool is_quiet;
    struct lac_hang_rule rule;
    struct lac_hang_verdict verdict;
    struct watched processes[PROCESSES_MAX];
    uint32_t count;
    struct lac_hang_process judged[JUDGED_MAX]; /* copies of these, then of other launchers' */
    uint32_t judged_count;
    uint64_t next_look_ns;
    uint64_t asked_ns;      /* 0: no answer is waited for */
    uint64_t gone_progress; /* of processes that have ended */
    unsigned alarms;
    void (*tell)(void *context, const char *json); /* NULL: nobody */
    void *tell_context;
    /* other launchers of the job */
    struct lac_hang_peers *peers; /* NULL: there are none */
    struct lac_hang_look own;     /* the last one */
    uint64_t own_progress_ns;     /* of our processes */
    uint64_t next_share_ns;
    uint64_t helped_ns;
    uint64_t alarmed_ns;
    bool is_helping;  /* the answer that is waited for is for the others */
    bool has_answers; /* of this quiet time */
    bool was_stopped; /* taken for a job that is stopped as a whole */
    struct lac_ras_client *client;
    struct lac_ras ras; /* what it said in this quiet time */
    bool has_ras;
    bool waits_for_nccl;
    /* dumps of the flight recorder, after the first alarm */
    uint64_t dumps_until_ns; /* 0: none are waited for */
    uint64_t next_dump_ns;
    int64_t dumps_since_s;
    uint32_t flight_count;
    struct lac_flight flights[DUMPS_MAX];
};

/* LACUNA_HANG_SCALE is for tests, which cannot wait. */
static double scale(void)
{
    const char *const value = getenv("LACUNA_HANG_SCALE");
    const double number = value != NULL ? strtod(value, NULL) : 1;

    return number > 0.01 && number <= 100 ? number : 1;
}

struct lac_hang_watch *lac_hang_watch_create(const char *spool_folder, bool is_quiet)
{
    assert(spool_folder != NULL);
    const char *const nccl_ras = getenv("NCCL_RAS_ENABLE");
    struct lac_hang_watch *const watch = calloc(1, sizeof(*watch));

    if (watch != NULL) {
        watch->spool_folder = spool_folder;
        watch->is_quiet = is_quiet;
        lac_hang_rule_begin(&watch->rule, scale());
        if (nccl_ras == NULL || strcmp(nccl_ras, "0") != 0) {
            watch->client = lac_ras_client_create(getenv("NCCL_RAS_ADDR")); /* NULL: without it */
        }
    }
    return watch;
}

void lac_hang_watch_meet(struct lac_hang_watch *watch, const char *base, const char *name)
{
    assert(base != NULL && name != NULL);
    if (watch != NULL) {
        watch->peers = lac_hang_peers_create(base, name, watch->rule.scale);
    }
}

void lac_hang_watch_tell(struct lac_hang_watch *watch,
                         void (*tell)(void *context, const char *json), void *context)
{
    if (watch != NULL) {
        watch->tell = tell;
        watch->tell_context = context;
    }
}

static void free_answer(struct lac_hang_process *process)
{
    free(process->text);
    free(process->threads);
    process->text = NULL;
    process->threads = NULL;
    process->has_answered = false;
}

void lac_hang_watch_destroy(struct lac_hang_watch *watch)
{
    if (watch != NULL) {
        for (uint32_t i = 0; i < watch->count; i++) {
            free_answer(&watch->processes[i].it);
        }
        lac_ras_client_destroy(watch->client);
        lac_hang_peers_destroy(watch->peers);
        free(watch);
    }
}

/* ---- who is there */

static void see(void *context, const struct lac_drain_process *process)
{
    struct lac_hang_watch *const watch = context;
    struct watched *found = NULL;

    for (uint32_t i = 0; i < watch->count && found == NULL; i++) {
        found = watch->processes[i].it.pid == process->pid ? &watch->processes[i] : NULL;
    }
    if (found == NULL && watch->count < PROCESSES_MAX) {
        found = &watch->processes[watch->count++];
        memset(found, 0, sizeof(*found));
        found->it.pid = process->pid;
        found->it.rank = process->rank;
    }
    if (found == NULL) {
        return;
    }
    found->is_there = true;
    found->it.has_ended = false;
    found->it.parent = process->parent_pid;
    found->it.tid = process->training_tid > 0 ? process->training_tid : process->pid;
    found->it.steps = process->steps;
    found->it.progress = process->progress;
    found->it.is_rank = process->steps > 0;
}

/* A rank that has ended is one that the others may wait for; anything else is forgotten. So are all
 * when none trains any more. */
static void forget(struct lac_hang_watch *watch)
{
    uint32_t kept = 0;
    bool is_training = false;

    for (uint32_t i = 0; i < watch->count; i++) {
        is_training =
            is_training || (watch->processes[i].is_there && watch->processes[i].it.is_rank);
    }
    for (uint32_t i = 0; i < watch->count; i++) {
        struct watched *const at = &watch->processes[i];

        if (!at->is_there && (!at->it.is_rank || !is_training)) {
            watch->gone_progress += at->it.progress;
            free_answer(&at->it);
            continue;
        }
        at->it.has_ended = !at->is_there;
        watch->processes[kept++] = *at;
    }
    watch->count = kept;
}

/* Whether the thread that trains has had a core in the last second, or wanted one; and what its
 * process has read and written. */
static bool look_at_life(struct watched *at, uint64_t now_ns)
{
    struct lac_thread_counters counters;

    if (now_ns - at->cpu_looked_ns < CPU_MS * UINT64_C(1000000)) {
        return at->it.is_busy;
    }
    at->io_bytes = lac_hang_native_io(at->it.pid);
    if (lac_proc_thread(at->it.pid, at->it.tid, &counters)) {
        const uint64_t wanted_ns =
            counters.run_ns + counters.wait_ns; /* had, or stood in line for */

        at->it.is_busy =
            at->cpu_looked_ns != 0 && wanted_ns > at->it.cpu_ns &&
            (wanted_ns - at->it.cpu_ns) * 100 > (now_ns - at->cpu_looked_ns) * BUSY_PERCENT;
        at->it.cpu_ns = wanted_ns;
        at->it.native.state = counters.state;
    }
    at->cpu_looked_ns = now_ns;
    return at->it.is_busy;
}

/* How long our own processes have made no progress; the rule counts that of other launchers, too. */
static bool is_own_quiet(const struct lac_hang_watch *watch, uint64_t now_ns)
{
    return (double)(now_ns - watch->own_progress_ns) > QUIET_MS * 1e6 * watch->rule.scale;
}

static void note_own_progress(struct lac_hang_watch *watch, const struct lac_hang_look *look,
                              uint64_t now_ns)
{
    if (look->progress > watch->own.progress || look->steps > watch->own.steps ||
        watch->own_progress_ns == 0) {
        watch->own_progress_ns = now_ns;
        watch->has_answers = false;
        watch->was_stopped = false;
        watch->helped_ns = 0;
    }
    watch->own = *look;
}

static bool is_down(const struct lac_hang_process *process)
{
    const char state = process->native.state;

    return process->has_ended || state == '\0' || strchr("TtZX", state) != NULL;
}

/* Whether a rank of another launcher could run. */
static bool do_others_run(const struct lac_hang_watch *watch)
{
    const struct lac_hang_said *said;

    for (uint32_t i = 0;
         watch->peers != NULL && (said = lac_hang_peers_at(watch->peers, i)) != NULL; i++) {
        for (uint32_t k = 0; k < said->count; k++) {
            if (said->processes[k].is_rank && !is_down(&said->processes[k])) {
                return true;
            }
        }
    }
    return false;
}

/* All of ours are stopped. Where other launchers' run, that is no pause of the job: it counts from the
 * beginning. */
static bool is_whole_job_stopped(struct lac_hang_watch *watch)
{
    if (!do_others_run(watch)) {
        watch->was_stopped = true;
        return true;
    }
    if (watch->was_stopped) {
        watch->was_stopped = false;
        lac_hang_rule_not_stopped(&watch->rule, watch->own_progress_ns);
    }
    return false;
}

static struct lac_hang_look look_at(struct lac_hang_watch *watch, struct lac_drain *drain,
                                    const struct lac_sampler *sampler, uint64_t now_ns)
{
    const bool is_quiet =
        watch->peers != NULL && watch->own_progress_ns != 0
            ? is_own_quiet(watch, now_ns)
            : lac_hang_rule_quiet_ns(&watch->rule, now_ns) > QUIET_MS * UINT64_C(1000000);
    struct lac_hang_look look = {.progress = watch->gone_progress,
                                 .births = lac_sampler_births(sampler)};
    bool has_running = false;

    for (uint32_t i = 0; i < watch->count; i++) {
        watch->processes[i].is_there = false;
    }
    lac_drain_visit(drain, see, watch);
    forget(watch);
    look.progress = watch->gone_progress;
    for (uint32_t i = 0; i < watch->count; i++) {
        struct watched *const at = &watch->processes[i];

        look.progress += at->it.progress;
        look.steps += at->it.steps;
        if (is_quiet && !at->it.has_ended) { /* while it goes on, that is not needed */
            look.is_working = look_at_life(at, now_ns) || look.is_working;
            look.io_bytes += at->io_bytes;
            has_running = has_running || (at->it.native.state != 'T' && at->it.native.state != 't');
        }
    }
    note_own_progress(watch, &look, now_ns);
    look.is_stopped = is_quiet && !has_running && is_whole_job_stopped(watch);
    return look;
}

/* ---- answers */

static struct watched *process_of(struct lac_hang_watch *watch, long pid)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        if (watch->processes[i].it.pid == pid && !watch->processes[i].it.has_ended) {
            return &watch->processes[i];
        }
    }
    return NULL;
}

static bool reserve_answer(struct lac_hang_process *process)
{
    if (process->text == NULL) {
        process->text = malloc(LAC_HANG_TEXT_BYTES);
    }
    if (process->threads == NULL) {
        process->threads = calloc(LAC_HANG_THREADS, sizeof(*process->threads));
        process->thread_room = LAC_HANG_THREADS;
    }
    return process->text != NULL && process->threads != NULL;
}

/* One file, which is removed; it may be anything. */
static void take_answer(struct lac_hang_watch *watch, int folder, const char *name)
{
    const long pid = strtol(name + 5, NULL, 10);
    struct watched *const at = process_of(watch, pid);
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int64_t length = -1;

    if (fd >= 0 && at != NULL && lac_file_is_regular(fd) && reserve_answer(&at->it)) {
        length = lac_read_full(fd, at->it.text, LAC_HANG_TEXT_BYTES - 1);
    }
    if (length >= 0) {
        at->it.text[length] = '\0';
        lac_hang_process_parse(&at->it);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    (void)unlinkat(folder, name, 0);
}

static void take_answers(struct lac_hang_watch *watch)
{
    static const char ending[] = ".stacks";
    DIR *const folder = opendir(watch->spool_folder);
    const int fd = folder != NULL ? dirfd(folder) : -1;
    unsigned looked = 0;

    if (fd < 0) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL && looked < ANSWERS_MAX;
         entry = readdir(folder), looked++) {
        const size_t length = strlen(entry->d_name);

        if (strncmp(entry->d_name, "hang-", 5) == 0 && length > sizeof(ending) &&
            strcmp(entry->d_name + length - (sizeof(ending) - 1), ending) == 0) {
            take_answer(watch, fd, entry->d_name);
        }
    }
    (void)closedir(folder);
}

static bool have_all_answered(const struct lac_hang_watch *watch)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        if (!watch->processes[i].it.has_ended && !watch->processes[i].it.has_answered) {
            return false;
        }
    }
    return true;
}

static void ask(struct lac_hang_watch *watch, struct lac_drain *drain, uint64_t now_ns)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        watch->processes[i].it.has_answered = false;
    }
    watch->asked_ns = now_ns;
    watch->is_helping = false;
    LAC_DEBUG(LAUNCH, 1, "no progress for %lu ms, the pace is %lu ms: asks %u processes",
              (unsigned long)(lac_hang_rule_quiet_ns(&watch->rule, now_ns) / 1000000),
              (unsigned long)(lac_hang_rule_pace_ns(&watch->rule) / 1000000),
              (unsigned)watch->count);
    lac_drain_ask(drain);
    if (watch->client != NULL) {
        lac_ras_client_begin(watch->client, now_ns);
        watch->waits_for_nccl = true;
    }
}

/* What NCCL's service has said by now. */
static void hear_nccl(struct lac_hang_watch *watch, uint64_t now_ns)
{
    enum lac_ras_progress progress;

    if (!watch->waits_for_nccl) {
        return;
    }
    progress = lac_ras_client_go_on(watch->client, now_ns);
    if (progress == LAC_RAS_WAITS) {
        return;
    }
    watch->waits_for_nccl = false;
    watch->has_ras = lac_ras_client_parse(watch->client, &watch->ras);
    LAC_DEBUG(LAUNCH, 1, "NCCL's RAS service: %s",
              watch->has_ras ? watch->ras.version : lac_ras_client_why(watch->client));
}

/* A job that has made no step has ranks, too: who called a collective, else all that were not forked. */
static void find_ranks(struct lac_hang_watch *watch)
{
    bool has_ranks = false;
    bool has_collectives = false;

    for (uint32_t i = 0; i < watch->count; i++) {
        has_ranks = has_ranks || watch->judged[i].is_rank;
        has_collectives = has_collectives || watch->judged[i].collective_total > 0;
    }
    for (uint32_t i = 0; i < watch->count && !has_ranks; i++) {
        watch->judged[i].is_rank =
            has_collectives ? watch->judged[i].collective_total > 0 : watch->judged[i].rank >= 0;
    }
}

/* What other launchers say of theirs, behind ours. Of one that has not asked its processes yet, only
 * what the kernel says without doubt. */
static void add_others(struct lac_hang_watch *watch)
{
    const struct lac_hang_said *said;

    for (uint32_t i = 0;
         watch->peers != NULL && (said = lac_hang_peers_at(watch->peers, i)) != NULL; i++) {
        for (uint32_t k = 0; k < said->count && watch->judged_count < JUDGED_MAX; k++) {
            if (said->report.has_asked || is_down(&said->processes[k])) {
                watch->judged[watch->judged_count++] = said->processes[k];
            }
        }
    }
    for (uint32_t i = 0; watch->judged_count > watch->count && i < watch->count; i++) {
        watch->judged[i].host = lac_hang_peers_host(watch->peers);
    }
}

/* All that is known of the job now, into `judged`. */
static void gather(struct lac_hang_watch *watch)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        lac_hang_native_read(&watch->processes[i].it);
        watch->judged[i] = watch->processes[i].it;
        watch->judged[i].has_answered = watch->has_answers && watch->judged[i].has_answered;
    }
    watch->judged_count = watch->count;
    find_ranks(watch);
    add_others(watch);
    if (watch->has_ras && !lac_hang_note_nccl(watch->judged, watch->judged_count, &watch->ras)) {
        LAC_DEBUG(LAUNCH, 1, "NCCL's RAS service speaks of another job");
        watch->has_ras = false;
    }
}

/* What another launcher has found for us all; NULL: that is up to us. */
static const struct lac_hang_said *found_elsewhere(const struct lac_hang_watch *watch)
{
    return watch->peers != NULL ? lac_hang_peers_judge(watch->peers) : NULL;
}

static void find_verdict(struct lac_hang_watch *watch)
{
    const struct lac_hang_said *const elsewhere = found_elsewhere(watch);

    gather(watch);
    if (elsewhere != NULL) {
        watch->verdict = elsewhere->report.verdict;
    } else {
        lac_hang_judge(watch->judged, watch->judged_count, watch->has_ras ? &watch->ras : NULL,
                       &watch->verdict);
    }
}

static void judge(struct lac_hang_watch *watch, uint64_t now_ns)
{
    watch->asked_ns = 0;
    watch->has_answers = true;
    watch->next_share_ns = now_ns; /* the other launchers wait for it */
    find_verdict(watch);
    if (!watch->is_helping) {
        lac_hang_rule_answer(&watch->rule, now_ns, watch->verdict.kind);
    }
    LAC_DEBUG(LAUNCH, 1, "%s%s%s", watch->verdict.doing,
              watch->verdict.others[0] != '\0' ? "; " : "", watch->verdict.others);
}

/* ---- other launchers */

/* What others hear of our processes is of these alone: what we heard of others would go round. */
static uint64_t told_life_ns(const struct lac_hang_watch *watch)
{
    const uint64_t others_ns =
        lac_hang_peers_judges_all(watch->peers) ? lac_hang_peers_life_ns(watch->peers) : 0;

    return others_ns > watch->rule.life_ns ? others_ns : watch->rule.life_ns;
}

static void tell_others(struct lac_hang_watch *watch, bool is_asking, uint64_t now_ns)
{
    struct lac_hang_report report = {
        .quiet_ms = (now_ns - watch->own_progress_ns) / 1000000,
        .alive_ms = (now_ns - told_life_ns(watch)) / 1000000,
        .has_asked = watch->has_answers,
        .has_verdict = watch->has_answers && lac_hang_peers_judges_all(watch->peers),
        .verdict_quiet_ms = lac_hang_rule_quiet_ns(&watch->rule, now_ns) / 1000000,
        .verdict = watch->verdict};

    lac_hang_peers_tell(watch->peers, now_ns, is_asking, &report, watch->judged, watch->count);
}

/* Say what ours do, and hear what the others do, as long as somebody's processes stand still. */
static void share(struct lac_hang_watch *watch, struct lac_drain *drain, uint64_t now_ns)
{
    const bool is_quiet = is_own_quiet(watch, now_ns);
    const bool is_waiting = watch->asked_ns != 0;
    const bool is_suspected = watch->rule.asked_ns != 0 || (is_waiting && !watch->is_helping);
    const bool is_asking =
        is_suspected &&
        (!watch->rule.is_alarmed || now_ns - watch->alarmed_ns < ALARMED_MS * UINT64_C(1000000));

    lac_hang_peers_look(watch->peers, now_ns, is_quiet);
    if (!is_asking && !lac_hang_peers_is_asked(watch->peers)) {
        lac_hang_peers_leave(watch->peers);
        return;
    }
    if (now_ns < watch->next_share_ns) {
        return;
    }
    watch->next_share_ns = now_ns + (uint64_t)(SHARE_MS * 1e6 * watch->rule.scale);
    if (!is_waiting && is_quiet && !is_asking &&
        (double)(now_ns - watch->helped_ns) > HELP_MS * 1e6 * watch->rule.scale) {
        watch->helped_ns = now_ns;
        ask(watch, drain, now_ns);
        watch->is_helping = true;
    }
    if (watch->asked_ns != 0 && watch->has_answers) {
        return; /* again, and some have not answered yet */
    }
    find_verdict(watch);
    tell_others(watch, is_asking, now_ns);
    if (is_quiet) {
        lac_hang_rule_elsewhere(&watch->rule, lac_hang_peers_progress_ns(watch->peers),
                                lac_hang_peers_life_ns(watch->peers));
    }
    if (watch->rule.asked_ns != 0) {
        lac_hang_rule_learn(&watch->rule, watch->verdict.kind);
    }
}

/* ---- the alarm */

static void note(struct lac_sampler *sampler, const char *what, const char *value)
{
    char key[64];

    (void)snprintf(key, sizeof(key), "hang.%s", what);
    if (value[0] != '\0') {
        lac_sampler_note(sampler, key, value);
    }
}

/* "rank 1 [123] MainThread: f (a.py:3) < g (a.py:9)", innermost first, of every thread. */
static void note_stacks(const struct lac_hang_watch *watch, struct lac_sampler *sampler)
{
    unsigned told = 0;

    for (uint32_t i = 0; i < watch->count; i++) {
        const struct lac_hang_process *const process = &watch->judged[i];

        for (uint32_t k = 0; process->has_answered && k < process->thread_count; k++) {
            const struct lac_hang_thread *const thread = &process->threads[k];
            char key[32];
            char who[24] = "";
            char text[480];
            size_t used;

            if (told == STACKS_TOLD) {
                return;
            }
            if (process->rank >= 0) {
                (void)snprintf(who, sizeof(who), "rank %d ", (int)process->rank);
            }
            (void)snprintf(text, sizeof(text), "%s[%d] %.40s:", who, (int)process->pid,
                           thread->name);
            used = strlen(text);
            for (uint32_t f = 0; f < thread->frame_count && used < sizeof(text) - 1; f++) {
                const int length = snprintf(text + used, sizeof(text) - used, "%s%s (%s:%u)",
                                            f > 0 ? " < " : " ", thread->frames[f].function,
                                            thread->frames[f].path, thread->frames[f].line);

                used += length > 0 ? (size_t)length : 0;
            }
            (void)snprintf(key, sizeof(key), "stack.%u", told++);
            note(sampler, key, text);
        }
    }
}

/* How many operations of each collective the ranks have launched. */
static void note_communicators(const struct lac_hang_watch *watch, struct lac_sampler *sampler)
{
    for (uint32_t i = 0; watch->has_ras && i < watch->ras.communicator_count; i++) {
        char key[32];
        char text[480];

        lac_ras_say_communicator(&watch->ras.communicators[i], text, sizeof(text));
        (void)snprintf(key, sizeof(key), "nccl.%u", (unsigned)i);
        note(sampler, key, text);
    }
}

/* Of the rank that came furthest. */
static uint64_t most_steps(const struct lac_hang_watch *watch)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < watch->judged_count; i++) {
        most = watch->judged[i].steps > most ? watch->judged[i].steps : most;
    }
    return most;
}

static bool is_shm_full(void)
{
    struct statvfs space;

    return statvfs("/dev/shm", &space) == 0 && space.f_blocks > 0 &&
           space.f_bavail < space.f_blocks / 100;
}

/* ---- dumps of the flight recorder */

static void ask_for_dumps(struct lac_hang_watch *watch, uint64_t now_ns)
{
    const uint64_t quiet_ns = lac_hang_rule_quiet_ns(&watch->rule, now_ns);

    watch->dumps_since_s = (int64_t)time(NULL) - (int64_t)(quiet_ns / 1000000000);
    watch->dumps_until_ns = now_ns + DUMPS_MS * UINT64_C(1000000);
    for (uint32_t i = 0; i < watch->count; i++) {
        if (watch->judged[i].is_rank && watch->judged[i].rank >= 0) {
            (void)lac_hang_dumps_ask(watch->judged[i].rank);
        }
    }
}

static bool has_flight(const struct lac_hang_watch *watch, int32_t rank)
{
    for (uint32_t i = 0; i < watch->flight_count; i++) {
        if (watch->flights[i].rank == rank) {
            return true;
        }
    }
    return false;
}

/* @return whether all that may come have come */
static bool take_dumps(struct lac_hang_watch *watch)
{
    bool have_all = true;

    for (uint32_t i = 0; i < watch->count && watch->flight_count < DUMPS_MAX; i++) {
        const struct lac_hang_process *const process = &watch->judged[i];

        if (process->is_rank && process->rank >= 0 && !has_flight(watch, process->rank)) {
            const bool is_there = lac_hang_dumps_read(process->rank, watch->dumps_since_s,
                                                      &watch->flights[watch->flight_count]);

            watch->flight_count += is_there;
            have_all = have_all && is_there;
        }
    }
    return have_all;
}

static void tell_dumps(const struct lac_hang_watch *watch, struct lac_sampler *sampler)
{
    char text[480];
    char key[32];

    for (uint32_t i = 0; i < watch->flight_count; i++) {
        lac_flight_say(&watch->flights[i], text, sizeof(text));
        (void)snprintf(key, sizeof(key), "flight.%d", (int)watch->flights[i].rank);
        note(sampler, key, text);
    }
    if (lac_flight_compare(watch->flights, watch->flight_count, text, sizeof(text))) {
        note(sampler, "flight", text);
        if (!watch->is_quiet) {
            lac_progress_line_clear();
            (void)fprintf(stderr, "lacuna: flight recorder: %s\n", text);
        }
    }
}

static void look_for_dumps(struct lac_hang_watch *watch, struct lac_sampler *sampler,
                           uint64_t now_ns)
{
    if (watch->dumps_until_ns == 0 || now_ns < watch->next_dump_ns) {
        return;
    }
    watch->next_dump_ns = now_ns + DUMP_LOOK_MS * UINT64_C(1000000);
    if (take_dumps(watch) || now_ns >= watch->dumps_until_ns) {
        watch->dumps_until_ns = 0;
        tell_dumps(watch, sampler);
    }
}

/* ---- the GPUs */

static void note_gpus(struct lac_sampler *sampler, char *text, size_t capacity)
{
    struct lac_gpu_now gpus[GPUS_MAX];
    const unsigned count = lac_sampler_gpus_now(sampler, gpus, GPUS_MAX);
    char key[32];
    char line[256];

    for (unsigned i = 0; i < count; i++) {
        lac_hang_say_gpu(&gpus[i], line, sizeof(line));
        (void)snprintf(key, sizeof(key), "gpu.%u", gpus[i].index);
        note(sampler, key, line);
    }
    lac_hang_say_gpus(gpus, count, text, capacity);
    note(sampler, "gpus", text);
}

/* Launchers of which nothing is known, behind what the others do. */
static void add_unknown(struct lac_hang_watch *watch)
{
    char *const others = watch->verdict.others;
    const size_t used = strlen(others);
    char unknown[200] = "";

    if (watch->peers != NULL) {
        lac_hang_peers_say_unknown(watch->peers, unknown, sizeof(unknown));
    }
    if (unknown[0] != '\0') {
        (void)snprintf(others + used, sizeof(watch->verdict.others) - used, "%s%s",
                       used > 0 ? "; " : "", unknown);
    }
}

static void tell_server(const struct lac_hang_watch *watch, double quiet_s)
{
    static char json[LAC_HANG_JSON_BYTES];

    if (watch->tell != NULL && lac_hang_json(&watch->verdict, quiet_s, most_steps(watch), json)) {
        watch->tell(watch->tell_context, json);
    }
}

static void alarm_about(struct lac_hang_watch *watch, struct lac_sampler *sampler, uint64_t now_ns)
{
    struct lac_hang_verdict *const verdict = &watch->verdict;
    const double quiet_s = (double)lac_hang_rule_quiet_ns(&watch->rule, now_ns) / 1e9;
    const char *const others = verdict->others;
    const char *const shm = is_shm_full() ? "; /dev/shm is full" : "";
    const char *doing;
    char gpus[256] = "";
    char text[32];

    find_verdict(watch); /* a process may have gone since */
    doing = verdict->doing[0] != '\0' ? verdict->doing : "no process trains";
    add_unknown(watch);
    watch->alarmed_ns = now_ns;
    tell_server(watch, quiet_s);
    if (watch->alarms++ == 0) { /* the first of a job is the one to understand */
        (void)snprintf(text, sizeof(text), "%.1f", quiet_s);
        note(sampler, "after_s", text);
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)most_steps(watch));
        note(sampler, "steps", text);
        (void)snprintf(text, sizeof(text), "%d", (int)verdict->rank);
        note(sampler, "rank", verdict->rank >= 0 ? text : "");
        note(sampler, "doing", doing);
        note(sampler, "where", verdict->where);
        note(sampler, "source", verdict->source);
        note(sampler, "others", others);
        note(sampler, "nccl", verdict->nccl);
        note(sampler, "shm", shm[0] != '\0' ? "full" : "");
        note_stacks(watch, sampler);
        note_communicators(watch, sampler);
        note_gpus(sampler, gpus, sizeof(gpus));
        ask_for_dumps(watch, now_ns);
    }
    if (!watch->is_quiet &&
        found_elsewhere(watch) == NULL) { /* of a thousand launchers one speaks */
        lac_progress_line_clear();
        (void)fprintf(stderr, "lacuna: no progress for %.0f s: %s%s%s%s%s%s%s%s%s%s\n", quiet_s,
                      doing, verdict->source[0] != '\0' ? ": " : "", verdict->source,
                      others[0] != '\0' ? "; " : "", others,
                      verdict->nccl[0] != '\0' ? "; NCCL: " : "", verdict->nccl,
                      gpus[0] != '\0' ? "; " : "", gpus, shm);
    }
}

static void say_resumed(const struct lac_hang_watch *watch, struct lac_sampler *sampler)
{
    if (watch->alarms == 1) {
        note(sampler, "resumed", "True");
    }
    if (watch->tell != NULL) {
        watch->tell(watch->tell_context, NULL);
    }
    if (!watch->is_quiet) {
        lac_progress_line_clear();
        (void)fputs("lacuna: the job goes on\n", stderr);
    }
}

/* Whether it is worth waiting for an answer. */
static bool is_answer_due(const struct lac_hang_watch *watch, uint64_t now_ns)
{
    const uint64_t waited_ms = (now_ns - watch->asked_ns) / 1000000;

    return (waited_ms < ANSWER_MS && !have_all_answered(watch)) ||
           (waited_ms < NCCL_MS && watch->waits_for_nccl);
}

void lac_hang_watch_round(struct lac_hang_watch *watch, struct lac_drain *drain,
                          struct lac_sampler *sampler)
{
    const uint64_t now_ns = lac_monotonic_ns();
    struct lac_hang_look look;

    if (watch == NULL) {
        return;
    }
    hear_nccl(watch, now_ns);
    look_for_dumps(watch, sampler, now_ns);
    if (now_ns < watch->next_look_ns) {
        return;
    }
    watch->next_look_ns = now_ns + LOOK_MS * UINT64_C(1000000);
    look = look_at(watch, drain, sampler, now_ns);
    if (watch->peers != NULL) {
        share(watch, drain, now_ns);
    }
    if (watch->asked_ns != 0) {
        take_answers(watch);
        if (is_answer_due(watch, now_ns)) {
            return;
        }
        judge(watch, now_ns);
    }
    switch (lac_hang_rule_next(&watch->rule, now_ns, &look)) {
    case LAC_HANG_ASK:
        ask(watch, drain, now_ns);
        break;
    case LAC_HANG_ALARM:
        alarm_about(watch, sampler, now_ns);
        break;
    case LAC_HANG_RESUMED:
        say_resumed(watch, sampler);
        break;
    case LAC_HANG_GO_ON:
        watch->has_ras = watch->has_ras && watch->rule.asked_ns != 0; /* of an earlier quiet time */
        break;
    }
}
