#ifndef LAC_SERVER_STORE_CATALOG_H
#define LAC_SERVER_STORE_CATALOG_H

/* SQL of the catalog. Not thread-safe: the store holds its lock around every call. */

#include "analysis/model/status.h"
#include "server/store/database/database.h"
#include "server/store/database/postgres_catalog.h"
#include "server/store/store.h"
#include "server/store/trace/sql.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAC_CATALOG_VERSION = 13,
    LAC_CATALOG_CHECKED = 3, /**< since this one every page carries a checksum */
};

/** Open, create or migrate. @return as lac_store_open() */
LAC_MUST_USE enum lac_status lac_catalog_open(const char *path, struct lac_db **ret_db,
                                              struct lac_error *reterr);

/** The same in PostgreSQL. @param place without what the catalog itself says: `fresh_owner`,
 *  `migrations`, `version` */
LAC_MUST_USE enum lac_status lac_catalog_open_elsewhere(const struct lac_postgres_catalog *place,
                                                        struct lac_db **ret_db,
                                                        struct lac_error *reterr);

/**
 * Make a file with checksums and a rollback journal of a catalog of version 1 or 2; any other is
 * left alone. Nobody else may have it open. Where there is no room for the copy it stays as it is.
 * @return LAC_OK, LAC_ERR_CORRUPT, LAC_ERR_IO (somebody has it open), LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_catalog_convert(const char *path, struct lac_error *reterr);

/** Read all of it: every checksum, every index against its table. Cost: about 2 ns a byte.
 *  @return LAC_OK, LAC_ERR_CORRUPT, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_catalog_check(sqlite3 *file, struct lac_error *reterr);

/**
 * Copy what can be read of a damaged catalog into a new one, row by row: what is there already
 * stays.
 * @return LAC_OK also when nothing could be read; LAC_ERR_NOMEM, LAC_ERR_IO
 */
LAC_MUST_USE enum lac_status lac_catalog_salvage(sqlite3 *file, const char *damaged_path,
                                                 struct lac_error *reterr);

/** A finding, for table findings. */
struct lac_finding_row {
    char finding_id[40];
    char severity[16];
    bool has_cost_ns;
    int64_t cost_ns_per_step;
    double cost_pct, gain_low_pct, gain_mid_pct, gain_high_pct, confidence;
    char title[256];
};

/** Id of a project, added if new; 0 for "". */
LAC_MUST_USE enum lac_status lac_catalog_project(struct lac_db *db, const char *name,
                                                 int64_t *ret_id, struct lac_error *reterr);

/** Insert a row or, when its id is there, replace what publication sets. */
LAC_MUST_USE enum lac_status lac_catalog_put_trace(struct lac_db *db,
                                                   const struct lac_trace_row *row, int64_t project,
                                                   const char *original, struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_catalog_put_findings(struct lac_db *db, const char *trace,
                                                      const struct lac_finding_row *findings,
                                                      uint32_t count, struct lac_error *reterr);
/** Insert a run or, when its id is there, replace what it says. */
LAC_MUST_USE enum lac_status lac_catalog_put_run(struct lac_db *db, const char *id, int64_t project,
                                                 const char *name, int64_t created_ms,
                                                 struct lac_error *reterr);

struct lac_trace_facts;

/** All that the catalog says of a trace (trace_facts.h), whatever its state.
 *  @return LAC_OK or LAC_ERR_NOT_FOUND */
LAC_MUST_USE enum lac_status lac_catalog_facts(struct lac_db *db, const char *id,
                                               struct lac_trace_facts *ret_facts,
                                               struct lac_error *reterr);

/** Make the catalog say what the facts say: a row in state ready, its run and its project. */
LAC_MUST_USE enum lac_status lac_catalog_put_facts(struct lac_db *db,
                                                   const struct lac_trace_facts *facts,
                                                   struct lac_error *reterr);

LAC_MUST_USE enum lac_status lac_catalog_get(struct lac_db *db, const char *id, bool with_report,
                                             struct lac_trace_row *ret_row,
                                             struct lac_error *reterr);
/** Put what people call the traces over what their files say (store.h, lac_trace_labels). */
LAC_MUST_USE enum lac_status lac_catalog_read_labels(struct lac_db *db, struct lac_trace_row *rows,
                                                     uint32_t count, struct lac_error *reterr);

/** As lac_store_set_labels(). */
LAC_MUST_USE enum lac_status lac_catalog_put_labels(struct lac_db *db, const char *id,
                                                    const struct lac_trace_labels *labels,
                                                    struct lac_error *reterr);

LAC_MUST_USE enum lac_status lac_catalog_list(struct lac_db *db,
                                              const struct lac_trace_query *query,
                                              struct lac_trace_list *ret_list,
                                              struct lac_error *reterr);

/** The id under which a trace's original is kept: LAC_ID_SIZE bytes, "" none. @return LAC_OK or
 * LAC_ERR_NOT_FOUND */
LAC_MUST_USE enum lac_status lac_catalog_original(struct lac_db *db, const char *id,
                                                  char *ret_original, struct lac_error *reterr);

/** Remove a trace's rows. @param ret_original LAC_ID_SIZE bytes: an original that no trace needs
 * any more, or "". @return LAC_OK or LAC_ERR_NOT_FOUND */
LAC_MUST_USE enum lac_status lac_catalog_delete(struct lac_db *db, const char *id,
                                                char *ret_original, struct lac_error *reterr);

/** Remove what is kept of a trace for runs over time (journal_rows.h); not its baseline and pin. */
LAC_MUST_USE enum lac_status lac_catalog_forget_figures(struct lac_db *db, const char *trace,
                                                        struct lac_error *reterr);

/** Rows (seq, id, state, event_count, in_run) of the traces that belong to a run: where somebody put
 *  them, else where they came from. */
#define LAC_RUN_MEMBERS                                                                            \
    "SELECT m.seq, m.id, m.state, m.event_count, m.run AS in_run FROM traces m"                    \
    " WHERE m.run IS NOT NULL AND NOT EXISTS (SELECT 1 FROM labels n WHERE n.trace = m.id"         \
    " AND n.run IS NOT NULL) UNION ALL SELECT m.seq, m.id, m.state, m.event_count, n.run"          \
    " FROM labels n JOIN traces m ON m.id = n.trace WHERE n.run <> ''"

/** Run one statement with texts bound to ?1, ?2, ...; how many rows it changed. */
LAC_MUST_USE enum lac_status lac_catalog_change(struct lac_db *db, const char *sql,
                                                const char *const *texts, unsigned text_count,
                                                int *ret_changes, struct lac_error *reterr);

/** The same as a transaction of its own. */
LAC_MUST_USE enum lac_status lac_catalog_change_alone(struct lac_db *db, bool durable,
                                                      const char *sql, const char *const *texts,
                                                      unsigned text_count, int *ret_changes,
                                                      struct lac_error *reterr);

/**
 * Whether the catalog has all tables: an old one that there is no room to convert has not. `writes`:
 * begin a durable transaction, too, to be ended by lac_db_end().
 *
 * @param what of which the disk has no room then: "labels"
 */
LAC_MUST_USE enum lac_status lac_catalog_begin(struct lac_db *db, bool writes, const char *what,
                                               struct lac_error *reterr);

enum { LAC_NUMBER_SIZE = 24 };

/** A number as text, for lac_catalog_change(). @param out LAC_NUMBER_SIZE bytes @return out */
const char *lac_catalog_number_text(char *out, int64_t number);

/** A column as text, "" for null; borrowed until the next step. */
static inline const char *lac_catalog_text(struct lac_statement *get, int column)
{
    const char *text = lac_db_text(get, column);

    return text != NULL ? text : "";
}

/** A column of a trace's row as a number, 0 where it is null. @return LAC_OK or LAC_ERR_NOT_FOUND */
LAC_MUST_USE enum lac_status lac_catalog_number(struct lac_db *db, const char *column,
                                                const char *id, int64_t *ret_number,
                                                struct lac_error *reterr);

int64_t lac_now_unix_ms(void);

#endif
