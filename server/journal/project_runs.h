#ifndef LAC_SERVER_JOURNAL_PROJECT_RUNS_H
#define LAC_SERVER_JOURNAL_PROJECT_RUNS_H

/* What the handlers of a project's runs over time share. README.md has the picture. */

#include "analysis/journal/journal.h"  // IWYU pragma: export
#include "analysis/model/status.h"     // IWYU pragma: export
#include "server/api/app.h"            // IWYU pragma: export
#include "server/http/request.h"       // IWYU pragma: export
#include "server/store/journal_rows.h" // IWYU pragma: export
#include "server/store/store.h"        // IWYU pragma: export

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/** What one request makes of what is not kept yet: at least one of each, then until the time is up.
 *  Who asks waits no longer than a page may take, and asks again. */
enum { LAC_JOURNAL_FIGURES = 48, LAC_JOURNAL_COMPARISONS = 12, LAC_JOURNAL_WORK_MS = 80 };

/** Model FLOP/s used, of the peak, over the GPU time for which it is known; zeroed: none. */
struct lac_mfu_sum {
    double pct_ns; /**< percent x time */
    int64_t gpu_ns;
};

static inline void lac_mfu_add(struct lac_mfu_sum *sum, struct lac_mfu_sum more)
{
    sum->pct_ns += more.pct_ns;
    sum->gpu_ns += more.gpu_ns;
}

/** @return NaN where it is known for nothing */
static inline double lac_mfu_mean_pct(struct lac_mfu_sum sum)
{
    return sum.gpu_ns > 0 ? sum.pct_ns / (double)sum.gpu_ns : (double)NAN;
}

/** A run: one trace, or the traces of its ranks. */
struct lac_timed_run {
    const struct lac_point *lead; /**< the lowest rank's: its steps stand for the run */
    uint32_t trace_count;
    int64_t gpu_ns;
    int64_t part_ns[LAC_TIME_PART_COUNT];
    double energy_j; /**< NaN unknown */
    struct lac_mfu_sum mfu;
};

/** The runs of a project in order of recording. */
struct lac_timeline {
    struct lac_point_list points; /**< owner of the leads */
    struct lac_timed_run *runs;
    uint32_t count;
};

/** Make missing figures, and read all. @return false: the response says why */
bool lac_timeline_open(struct lac_app *app, const char *project, struct lac_response *response,
                       struct lac_timeline *ret_timeline);
/** A zeroed struct is allowed. */
void lac_timeline_close(struct lac_timeline *timeline);

/** Share of a run's GPU time in which no computing kernel ran, as time. */
int64_t lac_timed_run_wasted_ns(const struct lac_timed_run *run);

/** Make the figures of up to `limit` traces of a project that lack them (NULL: all projects). */
LAC_MUST_USE enum lac_status lac_journal_make_figures(struct lac_app *app, const char *project,
                                                      uint32_t limit, struct lac_error *reterr);

/** A trace against its project's baseline; verdict unknown: none, of another job, or a rank whose
 *  run another trace stands for. @return false: its figures are not made yet, ask again */
bool lac_journal_judge(struct lac_app *app, const char *project, const char *trace,
                       struct lac_regression *ret_regression);

/** Compare two neighbors and keep it. A pair that cannot be compared is kept as such. */
LAC_MUST_USE enum lac_status lac_journal_compare(struct lac_app *app, const char *a, const char *b,
                                                 struct lac_error *reterr);

#endif
