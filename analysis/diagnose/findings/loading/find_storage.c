/* Workers wait for storage: for its latency, or for very many small files. */

#include "analysis/diagnose/findings/loading/loading_findings.h"

#include <math.h>
#include <stdint.h>

enum { SMALL_FILE_BYTES = 256 * 1024, OPENS_MIN = 4 };

/** Reading takes much of a batch and computes little meanwhile. Files from memory compute: they
 *  are copied. */
static bool waits_for_storage(const struct lac_facts *facts)
{
    const struct lac_loading *loading = facts->loading;
    const struct lac_batch_reads *reads = &loading->reads;
    if (reads->count == 0 || facts->fetch_count == 0 || isnan(reads->cpu_ns)) {
        return false;
    }
    double fetch_ns = loading->parts_of_ns;
    bool is_much =
        reads->ns >= READ_SHARE_MIN * fetch_ns && reads->ns <= READS_OF_FETCH_MAX * fetch_ns;
    return is_much && reads->cpu_ns < READ_CPU_MAX * reads->ns && !loading->samples.wait_for_cores;
}

/** Bytes of a file, on average; NaN unknown. */
static double file_bytes(const struct lac_batch_reads *reads)
{
    double files = reads->opens > 0 ? (double)reads->opens : (double)reads->count;
    return reads->bytes / files;
}

static double per_batch(const struct lac_facts *facts, double value)
{
    return value / (double)facts->analysis->loading.batch_count;
}

static bool are_small_files(const struct lac_facts *facts)
{
    const struct lac_batch_reads *reads = &facts->loading->reads;
    return !isnan(reads->bytes) && reads->opens > 0 &&
           per_batch(facts, (double)reads->opens) >= OPENS_MIN &&
           file_bytes(reads) < SMALL_FILE_BYTES;
}

/** "Reading takes 61 % of a batch: 190 ms for 64 files of 110 KB, 37 MB/s a worker, ..." */
static const char *say_reads(const struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loading *loading = facts->loading;
    const struct lac_batch_reads *reads = &loading->reads;
    double fetch_ns = loading->parts_of_ns;
    const char *what =
        lac_texts_add(&analysis->texts, "%.0f reads", per_batch(facts, (double)reads->count));
    const char *rate = "";
    if (!isnan(reads->bytes)) {
        what =
            lac_texts_add(&analysis->texts, "%s of %s",
                          reads->opens > 0 ? lac_texts_add(&analysis->texts, "%.0f files",
                                                           per_batch(facts, (double)reads->opens))
                                           : what,
                          lac_format_bytes(lac_round(fmin(file_bytes(reads), 9e18))).text);
        rate = lac_texts_add(&analysis->texts, ", %s MB/s per worker",
                             lac_format_rate(1000.0 * reads->bytes / fmax(reads->ns, 1.0)).text);
    }
    const char *storage = loading->samples.has_io
                              ? lac_texts_add(&analysis->texts,
                                              " The kernel read %.1f MB/s from storage for all of "
                                              "them.",
                                              loading->samples.storage_mb_s)
                              : "";
    return lac_texts_add(&analysis->texts,
                         "Reading takes %.0f %% of a batch: %s for %s%s; %.0f %% of that is CPU "
                         "time, the rest waiting.%s",
                         100.0 * reads->ns / fetch_ns,
                         lac_format_ns(lac_round(per_batch(facts, reads->ns))).text, what, rate,
                         100.0 * reads->cpu_ns / fmax(reads->ns, 1.0), storage);
}

/** A batch without the waiting for storage. */
static double fetch_without_waits(const struct lac_facts *facts)
{
    const struct lac_batch_reads *reads = &facts->loading->reads;
    double waits_ns = per_batch(facts, reads->ns - reads->cpu_ns);
    return fmax(0.0, (double)facts->analysis->loader.fetch_mean_ns - waits_ns);
}

static void propose_faster_reads(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_step_time *time = facts->time;
    double best_ns = time->is_in_process ? time->step_ns - lac_fetch_per_step_ns(facts) +
                                               time->batches * fetch_without_waits(facts)
                                         : lac_loading_step(facts, fetch_without_waits(facts));
    best_ns = fmin(fmax(best_ns, 0.0), time->step_ns);
    lac_loading_estimate(facts, finding, best_ns, 0.5 * (best_ns + time->step_ns), time->step_ns);
    finding->expect = lac_texts_add(&facts->analysis->texts,
                                    "%s. Assumes that half of the storage waiting disappears.",
                                    lac_finding_expect(facts, finding));
    finding->costs = "Local disk space, and time to prepare it.";
    finding->wrong_if = "a second epoch over the same files (then cached) is as slow.";
    finding->check = "record ten steps of a second epoch over a subset that fits in memory";
    finding->confidence -= 0.1;
}

static bool find_reads(const struct lac_facts *facts, struct lac_finding *finding, const char *pack,
                       const char *brief)
{
    struct lac_analysis *analysis = facts->analysis;
    lac_loading_open(facts, finding);
    if (lac_propose_workers(facts, finding)) { /* waiting is what workers can overlap */
        finding->change =
            lac_texts_add(&analysis->texts, "%s\n# Alternative: %s", finding->change, pack);
        finding->change_kind = LAC_CHANGE_CODE;
        finding->effort = LAC_EFFORT_SETTING;
    } else {
        propose_faster_reads(facts, finding);
        finding->change = pack;
        finding->brief = brief;
    }
    finding->why = say_reads(facts);
    if (facts->loading->reads.longest != LAC_NONE) {
        lac_evidence_slice(facts, finding, facts->loading->reads.longest, "the longest read");
    }
    lac_loading_evidence(facts, finding);
    return true;
}

bool lac_find_small_files(const struct lac_facts *facts, struct lac_finding *finding)
{
    return waits_for_storage(facts) && are_small_files(facts) &&
           find_reads(facts, finding,
                      "Pack the files into sequential shards of about 100 MB (WebDataset tar "
                      "files, LMDB, Parquet) on a local disk.",
                      "shards instead of small files");
}

bool lac_find_storage_latency(const struct lac_facts *facts, struct lac_finding *finding)
{
    return waits_for_storage(facts) &&
           find_reads(facts, finding,
                      "Copy the data to a local disk before training, or cache it after the first "
                      "read (in memory if it fits).",
                      "data on a local disk");
}
