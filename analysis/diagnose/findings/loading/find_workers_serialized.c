/* Workers take turns: a lock, one open file, one service, or the interpreter's lock. */

#include "analysis/diagnose/loading/loading.h"

#include <math.h>
#include <stdint.h>

enum { ENDS_MIN = 12, ENDS_OF_TWO_MIN = 24, ENDS_MANY = 48, ALONE_MIN = 4, BESIDE_MIN = 16 };

/* One after the other, with less than a thirtieth of the time shared. */
#define ALONE_PCT_MIN   97.0
#define COVERED_PCT_MIN 80.0
/* Ends are apart when even the closest tenth keeps half of the usual distance. */
#define CLOSE_MIN      0.5
#define SPACED_PCT_MIN 95.0
#define GROWTH_MIN     0.7
/* Independent pieces whose lengths differ by as much end anyhow. */
#define SPREAD_MIN 0.7

#define STORAGE_MB_S  20.0
#define DISK_PCT      20.0
#define READY_PCT_MAX 20.0
#define READ_SHARE    0.4

enum sign {
    NO_SIGN = 0,
    ONE_AT_A_TIME, /**< fetches of different workers do not overlap */
    ONE_BY_ONE,    /**< however long each takes, they end as far apart as ever */
    GROWTH,        /**< a piece takes as many times longer as others are under way */
    ONE_CORE,      /**< all together compute on one core, one after the other */
};

/** What would explain the same picture in another way. */
static bool is_something_else(const struct lac_loading *loading)
{
    const struct lac_loading_samples *samples = &loading->samples;
    bool waits_for_cores = samples->has_threads && samples->ready_pct >= READY_PCT_MAX;
    bool reads = samples->has_threads &&
                 (samples->disk_pct >= DISK_PCT || samples->storage_mb_s >= STORAGE_MB_S);
    const struct lac_batch_reads *in_reads = &loading->reads; /* a wait that has its place */
    bool waits_in_reads = in_reads->count > 0 && in_reads->cpu_ns < 0.5 * in_reads->ns &&
                          in_reads->ns >= READ_SHARE * loading->wall_ns;
    return waits_for_cores || reads || waits_in_reads;
}

static enum sign sign_of(const struct lac_diagnosis *diagnosis)
{
    const struct lac_loading *loading = diagnosis->loading;
    const struct lac_turns *turns = &loading->turns;
    /* two are evenly apart by chance sooner than more are */
    uint64_t ends_min = loading->workers > 2 ? ENDS_MIN : ENDS_OF_TWO_MIN;
    if (loading->workers < 2 || is_something_else(loading)) {
        return NO_SIGN;
    }
    if (loading->alone_pct >= ALONE_PCT_MIN && loading->covered_pct >= COVERED_PCT_MIN &&
        turns->count >= ends_min) {
        return ONE_AT_A_TIME;
    }
    bool is_apart = turns->count >= ends_min && turns->close_ns >= CLOSE_MIN * turns->between_ns;
    if (!is_apart || loading->overlap < 1.5) {
        return NO_SIGN;
    }
    bool grows = turns->alone_count >= ALONE_MIN && turns->beside_count >= BESIDE_MIN &&
                 turns->beside_ns >= GROWTH_MIN * turns->beside_workers * turns->alone_ns;
    if (grows) {
        return GROWTH;
    }
    bool has_company = isnan(turns->alone_ns) || turns->beside_ns > 1.5 * turns->alone_ns;
    if (has_company && turns->count >= ENDS_MANY &&
        turns->spread_ns >= SPREAD_MIN * turns->between_ns) {
        return ONE_BY_ONE;
    }
    bool has_cores = diagnosis->settings.allowed_cores >= 2;
    bool is_one_core =
        turns->cpu_cores >= 0.8 && turns->cpu_cores <= 1.15 && turns->spaced_pct >= SPACED_PCT_MIN;
    return has_cores && is_one_core && turns->alone_count < ALONE_MIN ? ONE_CORE : NO_SIGN;
}

double lac_turns_factor(const struct lac_diagnosis *diagnosis, int32_t workers)
{
    int32_t now = diagnosis->analysis->loader.num_workers;
    if (!diagnosis->loading || now < 2 || workers < 1) {
        return 1.0;
    }
    enum sign sign = sign_of(diagnosis);
    double alike = sign == ONE_AT_A_TIME ? 1.0 : now; /* the turns of others are in it, or not */
    return sign == NO_SIGN ? 1.0 : workers / alike;
}

static const char *say_sign(struct lac_diagnosis *diagnosis, enum sign sign)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    const struct lac_loading *loading = diagnosis->loading;
    const struct lac_turns *turns = &loading->turns;
    const char *piece = isnan(loading->items_per_batch) ? "batch" : "item";
    const char *cores =
        isnan(loading->cpu_cores)
            ? ""
            : lac_texts_add(&analysis->texts, " Together they compute on %.1f cores.",
                            loading->cpu_cores);
    const char *idle = "";
    if (loading->samples.has_threads) {
        idle = lac_texts_add(&analysis->texts,
                             " They wait %.0f %% of their time for a core and read %.1f MB/s from "
                             "storage: neither is what they wait for.",
                             loading->samples.ready_pct, loading->samples.storage_mb_s);
    }
    if (sign == ONE_AT_A_TIME) {
        return lac_texts_add(&analysis->texts,
                             "%s, but for %.0f %% of the time only one of them makes a batch: each "
                             "begins when another one has ended.%s%s",
                             lac_say_count(loading->workers, "worker").text, loading->alone_pct,
                             cores, idle);
    }
    if (sign == GROWTH) {
        return lac_texts_add(
            &analysis->texts,
            "%s take turns: one %s takes %s while no other worker is at one and %s beside %.1f "
            "others; whoever makes it, one is ready every %s.%s%s",
            lac_say_count(loading->workers, "worker").text, piece,
            lac_say_ns(llround(turns->alone_ns)).text, lac_say_ns(llround(turns->beside_ns)).text,
            turns->beside_workers - 1.0, lac_say_ns(llround(turns->between_ns)).text, cores, idle);
    }
    if (sign == ONE_BY_ONE) {
        return lac_texts_add(&analysis->texts,
                             "%s take turns: how long one %s takes differs by %s, yet whoever "
                             "makes it, they end one "
                             "by one, %s apart and hardly ever closer than %s. Work side by side "
                             "would end anyhow.%s%s",
                             lac_say_count(loading->workers, "worker").text, piece,
                             lac_say_ns(llround(turns->spread_ns)).text,
                             lac_say_ns(llround(turns->between_ns)).text,
                             lac_say_ns(llround(turns->close_ns)).text, cores, idle);
    }
    return lac_texts_add(
        &analysis->texts,
        "%s take turns: together they compute on %.1f of %d cores, and no %s ends sooner after "
        "another than it takes to compute (one every %s).%s",
        lac_say_count(loading->workers, "worker").text, turns->cpu_cores,
        (int)diagnosis->settings.allowed_cores, piece, lac_say_ns(llround(turns->between_ns)).text,
        idle);
}

static void say_change(struct lac_diagnosis *diagnosis, struct lac_finding *finding)
{
    if (diagnosis->loading->is_threads) {
        finding->brief = "workers in processes";
        finding->change = "The workers are threads of the training process and share Python's "
                          "interpreter lock: use worker processes, or decoders that release it "
                          "(torchvision.io, Pillow-SIMD, OpenCV).";
        finding->costs = "Processes copy their batches through shared memory.";
        return;
    }
    finding->brief = "let workers work side by side";
    finding->change =
        "# More workers won't help: they queue for a lock, for one open file or for one service.\n"
        "# Open it in each worker, not before the workers are started:\n"
        "def __getitem__(self, index):\n"
        "    if self.file is None:                     # set to None in __init__\n"
        "        self.file = h5py.File(self.path, \"r\")   # or the connection, the archive, ...\n"
        "# and take out locks that workers share (multiprocessing.Lock, file locks)";
    finding->costs = "One open file or connection for each worker.";
}

bool lac_find_workers_serialized(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    const struct lac_step_time *time = diagnosis->time;
    enum sign sign = sign_of(diagnosis);
    if (sign == NO_SIGN || analysis->loader.num_workers < 2) {
        return false;
    }
    struct lac_finding *finding = lac_loading_open(diagnosis, "workers-serialized");
    if (!finding) {
        return false;
    }
    /* what one worker alone would take for a batch */
    double alone_ns =
        sign == ONE_AT_A_TIME ? (double)analysis->loader.fetch_mean_ns : time->data_ns;
    double best_ns = fmin(time->step_ns, lac_loading_step(diagnosis, alone_ns));
    lac_loading_price(diagnosis, finding, best_ns, best_ns, time->step_ns);
    finding->why = lac_texts_add(&analysis->texts, "%s%s", say_sign(diagnosis, sign),
                                 lac_batch_parts_text(diagnosis));
    say_change(diagnosis, finding);
    finding->where = diagnosis->settings.loader_at;
    finding->expect = lac_texts_add(
        &analysis->texts, "%s, if a batch then takes each worker %s, as it does alone.",
        lac_finding_expect(diagnosis, finding), lac_say_ns(llround(alone_ns)).text);
    finding->wrong_if =
        "with num_workers=1 a step takes much longer than now: then they do not take "
        "turns.";
    finding->check = lac_texts_add(
        &analysis->texts, "record ten steps with num_workers=1: about %s a step, as with %d",
        lac_say_ns(analysis->step_mean_ns).text, (int)analysis->loader.num_workers);
    finding->confidence -= sign == ONE_CORE ? 0.2 : 0.0;
    lac_loading_evidence(diagnosis, finding);
    return true;
}
