#ifndef LAC_SERVER_CLI_READ_RANKS_H
#define LAC_SERVER_CLI_READ_RANKS_H

/*
 * The ranks of a run on the command line: files, archives of ranks, folders of traces and folders
 * that `lacuna run` recorded. Two traces are read at a time, and of each only what compares ranks
 * is kept, so that memory does not grow with their number.
 */

#include "analysis/diagnose/diagnose.h"        // IWYU pragma: export
#include "analysis/diagnose/ranks/ranks.h"     // IWYU pragma: export
#include "analysis/diagnose/result/analysis.h" // IWYU pragma: export
#include "analysis/model/model.h"              // IWYU pragma: export
#include "analysis/model/status.h"             // IWYU pragma: export

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What is kept of a rank; all owned. */
struct lac_read_rank {
    struct lac_rank_table *table;
    char *document; /**< its `lacuna.analysis/1`, or NULL */
    int64_t step_mean_ns;
    int64_t start_ns, end_ns;                  /**< absolute time, as the trace says it */
    struct lac_rank_what_if what_if;           /**< of a question; its reason is the next but one */
    char *what_if_assumption, *what_if_reason; /**< NULL without a question */
    size_t path, member;                       /**< where it came from */
    bool is_named;                             /**< its file's name says which rank it is */
};

struct lac_read_ranks_options {
    const char *command; /**< "lacuna analyze": begins lines on stderr */
    char *const *paths;
    size_t path_count;
    const struct lac_diagnose_options *diagnose; /**< may be NULL */
    bool wants_documents;                        /**< when there is more than one rank */
    bool keeps_lowest;  /**< keep model and analysis of the lowest rank, not of a single one only */
    bool keeps_waiting; /**< the same, but of a rank that waits for data for much longer */
    bool tells_runs;    /**< the caller tells that traces are runs; else stderr is told */
};

struct lac_read_ranks {
    struct lac_read_rank *ranks; /**< by rank when each knows its own, else as given */
    size_t count;
    struct lac_model *model; /**< of ranks[0] when it is the only one, or the one that is kept */
    struct lac_analysis *analysis;
    int64_t kept_key[3]; /**< of that one: its rank, path and member */
    bool is_waiting;     /**< it is not the lowest: it waits for data */
    bool are_runs;       /**< none says its rank, and no two were recorded at a time */
    bool has_rank;       /**< one says its rank */
};

/** @return LAC_OK with one rank at least, or a failure that stderr was told */
LAC_MUST_USE enum lac_status lac_read_ranks(const struct lac_read_ranks_options *options,
                                            struct lac_read_ranks *ret_ranks);

/** A zeroed struct is allowed. */
void lac_read_ranks_done(struct lac_read_ranks *ranks);

/** Join what was read. @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_read_ranks_join(const struct lac_read_ranks *ranks,
                                                 struct lac_run **ret_run);

/** What was asked, of the run. @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_read_ranks_what_if(const struct lac_read_ranks *ranks,
                                                    struct lac_run *run,
                                                    struct lac_run_what_if *ret_what_if);

#endif
