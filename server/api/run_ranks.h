#ifndef LAC_SERVER_API_RUN_RANKS_H
#define LAC_SERVER_API_RUN_RANKS_H

/* The ranks of a stored run, for what compares runs. One rank is in memory at a time. */

#include "analysis/diagnose/ranks/ranks_align.h" // IWYU pragma: export
#include "server/api/app.h"
#include "server/http/request.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_run_ranks;

/** The ready traces of the run `id`. @return NULL: the response says why */
struct lac_run_ranks *lac_run_ranks_open(struct lac_app *app, const char *id,
                                         struct lac_response *response);
/** NULL is allowed. */
void lac_run_ranks_close(struct lac_run_ranks *ranks);

/** Stands for which traces in which generations these are. */
uint64_t lac_run_ranks_stamp(const struct lac_run_ranks *ranks);

/** Trace of the lowest rank. Borrowed. */
const char *lac_run_ranks_lowest(const struct lac_run_ranks *ranks);

/**
 * Load and diagnose one rank after the other, and join them. Call it between
 * lac_document_cache_begin_work() and lac_document_cache_end_work().
 *
 * @param ret_run NULL for a run of one trace; the caller frees it with lac_run_destroy()
 * @return false: the response says why
 */
bool lac_run_ranks_join(struct lac_run_ranks *ranks, struct lac_response *response,
                        struct lac_run **ret_run);

/* ---- for a picture of them ---- */

/** The run that the path names. @return NULL: the response says why */
struct lac_run_ranks *lac_run_ranks_of_path(struct lac_app *app, const struct lac_request *request,
                                            struct lac_response *response);

uint32_t lac_run_ranks_count(const struct lac_run_ranks *ranks);
/** By rank, where all know theirs. Borrowed. */
const char *lac_run_ranks_trace(const struct lac_run_ranks *ranks, uint32_t index);

/** What a rank's place on the common clock stands on. */
enum lac_clock {
    LAC_CLOCK_NONE = 0,    /**< nothing: its time 0 is that of the picture */
    LAC_CLOCK_COLLECTIVES, /**< it leaves matched collectives with the others */
    LAC_CLOCK_RECORDED,    /**< its own clock, as recorded */
};

/** A rank on the clock of the run, whose time 0 is that of the rank that was recorded first. */
struct lac_rank_clock {
    int32_t rank;     /**< as recorded, else its place */
    uint8_t how;      /**< enum lac_clock */
    bool has_device;  /**< else the next three are 0 */
    int64_t device;   /**< the one that is compared */
    int64_t first_ns; /**< of its operations, on the trace's clock */
    int64_t span_ns;
    int64_t offset_ns;   /**< what to add to the trace's clock; 0 or more */
    int64_t duration_ns; /**< of the trace */
};

/** One for each rank, kept in memory until a trace comes or goes. @param ret_clocks the caller frees
 *  @return false: the response says why */
bool lac_run_ranks_clocks(struct lac_run_ranks *ranks, const char *run,
                          struct lac_response *response, struct lac_rank_clock **ret_clocks);

/** Load the ranks' tables and align them. Call it between lac_document_cache_begin_work() and
 *  lac_document_cache_end_work(). @param ret_alignment must not outlive the ranks */
enum lac_status lac_run_ranks_align(struct lac_run_ranks *ranks,
                                    struct lac_ranks_alignment *ret_alignment,
                                    struct lac_error *reterr);

/** Answer with why the ranks could not be read. */
void lac_run_ranks_fail(struct lac_response *response, enum lac_status status,
                        const struct lac_error *error);

#endif
