/* Workers take turns: a lock, one open file, one service, or the interpreter's lock. */

#include "analysis/diagnose/findings/loading/loading_findings.h"

#include <math.h>
#include <stdint.h>

static const char *say_sign(const struct lac_facts *facts, enum lac_serialization sign)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loading *loading = facts->loading;
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
                             "storage: neither is the limit.",
                             loading->samples.ready_pct, loading->samples.storage_mb_s);
    }
    if (sign == LAC_SERIAL_ONE_AT_A_TIME) {
        return lac_texts_add(&analysis->texts,
                             "%s, but for %.0f %% of the time only one makes a batch: each begins "
                             "when another ends.%s%s",
                             lac_format_count(loading->workers, "worker").text, loading->alone_pct,
                             cores, idle);
    }
    if (sign == LAC_SERIAL_GROWTH) {
        return lac_texts_add(&analysis->texts,
                             "%s run serialized: one %s takes %s alone and %s next to %.1f others; "
                             "one is ready every %s either way.%s%s",
                             lac_format_count(loading->workers, "worker").text, piece,
                             lac_format_ns(lac_round(turns->alone_ns)).text,
                             lac_format_ns(lac_round(turns->beside_ns)).text,
                             turns->beside_workers - 1.0,
                             lac_format_ns(lac_round(turns->between_ns)).text, cores, idle);
    }
    if (sign == LAC_SERIAL_ONE_BY_ONE) {
        return lac_texts_add(
            &analysis->texts,
            "%s run serialized: the time of one %s varies by %s, yet they end one by one, %s apart "
            "and rarely closer than %s. Parallel work would end at random.%s%s",
            lac_format_count(loading->workers, "worker").text, piece,
            lac_format_ns(lac_round(turns->spread_ns)).text,
            lac_format_ns(lac_round(turns->between_ns)).text,
            lac_format_ns(lac_round(turns->close_ns)).text, cores, idle);
    }
    return lac_texts_add(&analysis->texts,
                         "%s run serialized: together they use %.1f of %d cores, and no %s ends "
                         "sooner after another than its CPU time (one every %s).%s",
                         lac_format_count(loading->workers, "worker").text, turns->cpu_cores,
                         (int)facts->settings.allowed_cores, piece,
                         lac_format_ns(lac_round(turns->between_ns)).text, idle);
}

static void say_change(const struct lac_facts *facts, struct lac_finding *finding)
{
    if (facts->loading->is_threads) {
        finding->brief = "workers in processes";
        finding->change_kind = LAC_CHANGE_TEXT;
        finding->change =
            "The workers are threads of the training process and share the GIL: use worker "
            "processes, or decoders that release it (torchvision.io, Pillow-SIMD, OpenCV).";
        finding->costs = "Processes copy their batches through shared memory.";
        return;
    }
    finding->brief = "let workers run in parallel";
    finding->change =
        "# More workers won't help: they queue for a lock, one open file or one service.\n"
        "# Open it in each worker, not before the workers start:\n"
        "def __getitem__(self, index):\n"
        "    if self.file is None:                     # set to None in __init__\n"
        "        self.file = h5py.File(self.path, \"r\")   # or the connection, the archive, ...\n"
        "# and remove locks shared by workers (multiprocessing.Lock, file locks)";
    finding->costs = "One open file or connection for each worker.";
}

bool lac_find_workers_serialized(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    enum lac_serialization sign = facts->loading->serialization;
    if (sign == LAC_SERIAL_NOT || analysis->loader.num_workers < 2) {
        return false;
    }
    lac_loading_open(facts, finding);
    /* what one worker alone would take for a batch */
    double alone_ns = sign == LAC_SERIAL_ONE_AT_A_TIME ? (double)analysis->loader.fetch_mean_ns
                                                       : time->data_ns / time->batches;
    double best_ns = fmin(time->step_ns, lac_loading_step(facts, alone_ns));
    lac_loading_estimate(facts, finding, best_ns, best_ns, time->step_ns);
    finding->why = lac_texts_add(&analysis->texts, "%s%s", say_sign(facts, sign),
                                 lac_fetch_breakdown_text(facts));
    say_change(facts, finding);
    finding->where = facts->settings.loader_at;
    finding->expect = lac_texts_add(
        &analysis->texts, "%s. Assumes that a batch then takes each worker %s, as it does alone.",
        lac_finding_expect(facts, finding), lac_format_ns(lac_round(alone_ns)).text);
    finding->wrong_if =
        "with num_workers=1 a step takes much longer than now: then they are not serialized.";
    finding->check = lac_texts_add(
        &analysis->texts,
        "record ten steps with num_workers=1; expect about %s per step, as with %d workers",
        lac_format_ns(analysis->step_mean_ns).text, (int)analysis->loader.num_workers);
    finding->confidence -= sign == LAC_SERIAL_ONE_CORE ? 0.2 : 0.0;
    lac_loading_evidence(facts, finding);
    return true;
}
