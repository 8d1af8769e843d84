#ifndef LAC_TESTS_SUPPORT_MANY_RUNS_H
#define LAC_TESTS_SUPPORT_MANY_RUNS_H

/* A project with many runs as rows of a catalog: what imports and comparisons leave there. */

#include "server/store/database/database.h"

/** Project "many": `count` ready traces, an hour apart, with labels on every fifth, figures, two
 *  settings, and the comparison of each with the one before. Run i was recorded after run i + 1;
 *  its id is i in 26 digits. No trace file is written. Into a catalog without traces. */
LAC_MUST_USE enum lac_status lac_many_runs_write(struct lac_db *catalog, unsigned count,
                                                 struct lac_error *reterr);

#endif
