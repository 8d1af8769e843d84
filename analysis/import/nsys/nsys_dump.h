#ifndef LAC_ANALYSIS_IMPORT_NSYS_NSYS_DUMP_H
#define LAC_ANALYSIS_IMPORT_NSYS_NSYS_DUMP_H

/*
 * A database as SQL text (sqlite3 FILE .dump). No statement of it is run: CREATE TABLE gives names
 * of columns, INSERT gives literals, both written anew into a database in memory; everything else
 * is skipped. A statement is bounded by 16 MiB, the database by 1 GiB.
 */

#include "analysis/import/source/source.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sqlite3;

/** Whether text begins as a dump of a profiler's database. */
bool lac_nsys_is_dump(const uint8_t *head, size_t size_bytes);

/** Fill an empty database. @return LAC_OK, LAC_ERR_LIMIT, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_nsys_load_dump(struct sqlite3 *sqlite, struct lac_source *source,
                                                uint64_t *ret_bytes, struct lac_error *reterr);

#endif
