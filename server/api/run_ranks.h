#ifndef LAC_SERVER_API_RUN_RANKS_H
#define LAC_SERVER_API_RUN_RANKS_H

/* The ranks of a stored run, for what compares runs. One rank is in memory at a time. */

#include "analysis/diagnose/ranks/ranks.h"
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

#endif
