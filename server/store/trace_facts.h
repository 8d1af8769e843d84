#ifndef LAC_SERVER_STORE_TRACE_FACTS_H
#define LAC_SERVER_STORE_TRACE_FACTS_H

/*
 * What the catalog says of a trace, kept behind the pages of its trace file (FORMAT.md, "Facts"),
 * so that a catalog can be made again from the files alone, and a row be compared with its file.
 * Publication writes them: the child that made the file neither knows nor may say them.
 */

#include "analysis/model/status.h"
#include "server/store/catalog.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_trace_facts {
    struct lac_trace_row row; /**< of a ready trace, with its report */
    char *run_name;           /**< NULL when it has no run */
    int64_t run_created_ms;
    char original[LAC_ID_SIZE]; /**< in originals/, "" none */
    struct lac_finding_row *findings;
    uint32_t finding_count;
    char upload[LAC_ID_SIZE]; /**< staging folder that it came from: one for all ranks of a file */
    uint32_t ordinal;         /**< which of the upload's traces, from 0 */
    uint32_t upload_count;    /**< how many it had */
};

/** Free the contents; a zeroed struct is allowed. */
void lac_trace_facts_done(struct lac_trace_facts *facts);

/**
 * As text: the same facts are the same bytes. The upload's three are left out unless `whole`: a
 * catalog does not know them.
 * @param ret_text the caller frees. @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT (more than 8 MiB)
 */
LAC_MUST_USE enum lac_status lac_trace_facts_encode(const struct lac_trace_facts *facts, bool whole,
                                                    char **ret_text, size_t *ret_size_bytes,
                                                    struct lac_error *reterr);

/** @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_CORRUPT */
LAC_MUST_USE enum lac_status lac_trace_facts_decode(const char *text, size_t size_bytes,
                                                    struct lac_trace_facts *ret_facts,
                                                    struct lac_error *reterr);

/** Write facts at an offset, and nothing behind them; syncs. */
LAC_MUST_USE enum lac_status lac_facts_to(int fd, uint64_t offset,
                                          const struct lac_trace_facts *facts,
                                          struct lac_error *reterr);

/** Put facts behind the pages of a trace file, instead of what is there, and sync it. */
LAC_MUST_USE enum lac_status lac_trace_facts_write(const char *path,
                                                   const struct lac_trace_facts *facts,
                                                   struct lac_error *reterr);

/**
 * Read the facts of a trace file, without opening it.
 * @return LAC_OK; LAC_ERR_NOT_FOUND (a file of version 1, or one not published yet has none, or
 * what should be them is cut off), LAC_ERR_CORRUPT (checksum), LAC_ERR_IO, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status
lac_trace_facts_read(const char *path, struct lac_trace_facts *ret_facts, struct lac_error *reterr);

#endif
