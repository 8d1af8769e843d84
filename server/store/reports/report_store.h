#ifndef LAC_SERVER_STORE_REPORTS_REPORT_STORE_H
#define LAC_SERVER_STORE_REPORTS_REPORT_STORE_H

/*
 * Reports that people write: their text in all its versions, the snapshots of their parts, comments,
 * the state of findings, and the links that share them. All of it is in the catalog; every change is
 * on disk when the call returns. From any thread.
 *
 * Statuses: LAC_ERR_NOT_FOUND no such object; LAC_ERR_BUSY somebody else's change came first;
 * LAC_ERR_LIMIT too many; LAC_ERR_MISUSE a bad cursor; LAC_ERR_IO, LAC_ERR_NOMEM.
 */

#include "analysis/model/status.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAC_REPORT_TITLE_BYTES = 256,
    LAC_REPORT_TEXT_BYTES = 128 << 10, /**< of Markdown, with its NUL */
    LAC_REPORT_PARTS_MAX = 32,
    LAC_REPORT_PART_BYTES = 1024,
    LAC_REPORT_PART_HISTORY_MAX = 256, /**< snapshots of all its versions together */
    LAC_REPORT_VERSIONS_MAX = 1000,
    LAC_COMMENT_BYTES = 8192,
    LAC_COMMENTS_MAX = 2000, /**< of one report */
    LAC_SHARES_MAX = 200,    /**< of one report or trace */
};

/** One report. Strings are UTF-8, owned by the row. */
struct lac_written_report {
    char id[LAC_ID_SIZE];
    char *project; /**< name, "" none */
    char *title;
    char *markdown; /**< NULL in lists */
    char *author;   /**< who wrote the first version */
    char *editor;   /**< and the last */
    int64_t version;
    int64_t created_unix_ms, updated_unix_ms;
    uint32_t open_thread_count;
};

/** Zeroed structs are allowed, here and below. */
void lac_written_report_done(struct lac_written_report *row);

struct lac_written_report_list {
    struct lac_written_report *rows;
    uint32_t count;
    bool has_more;
    char next[64];
};

struct lac_written_report_query {
    const char *project; /**< NULL all */
    const char *text;    /**< case-insensitive part of the title, NULL or "" all */
    const char *mention; /**< only those in whose open threads this person is mentioned; NULL all */
    const char *after;   /**< cursor, NULL from the newest change */
    uint32_t limit;      /**< 1..1000 */
    const char *among;   /**< only of these projects, a JSON array of names; NULL all */
};

LAC_MUST_USE enum lac_status lac_reports_list(struct lac_store *store,
                                              const struct lac_written_report_query *query,
                                              struct lac_written_report_list *ret_list,
                                              struct lac_error *reterr);
void lac_reports_list_done(struct lac_written_report_list *list);

LAC_MUST_USE enum lac_status lac_reports_get(struct lac_store *store, const char *id,
                                             struct lac_written_report *ret_row,
                                             struct lac_error *reterr);

/** The evidence that a part of a report shows, as it was when it was first saved. */
struct lac_report_snapshot {
    const char *part; /**< the part's line (server/reports/part.h) */
    const char *text; /**< server/reports/snapshot.h */
};

/** What a person saves. NULL: as it was; of a new report all is given. */
struct lac_report_change {
    const char *project, *title, *markdown;
    const char *author;
    const struct lac_report_snapshot *snapshots; /**< kept beside those that are there already */
    uint32_t snapshot_count;
};

LAC_MUST_USE enum lac_status lac_reports_create(struct lac_store *store,
                                                const struct lac_report_change *change,
                                                char *ret_id, struct lac_error *reterr);

/** Save the next version. @param base the version that the change was made of
 *  @return LAC_ERR_BUSY when it is not the newest: nothing was changed */
LAC_MUST_USE enum lac_status lac_reports_change(struct lac_store *store, const char *id,
                                                int64_t base,
                                                const struct lac_report_change *change,
                                                struct lac_error *reterr);

/** With all that belongs to it, its links too. */
LAC_MUST_USE enum lac_status lac_reports_delete(struct lac_store *store, const char *id,
                                                struct lac_error *reterr);

/** Called for each row, with the store's lock held: no call of the store from within. */
typedef void lac_report_version_fn(void *context, int64_t version, const char *title,
                                   const char *author, int64_t at_unix_ms, int64_t size_bytes);
/** Newest first. */
LAC_MUST_USE enum lac_status lac_reports_versions(struct lac_store *store, const char *id,
                                                  lac_report_version_fn *visit, void *context,
                                                  struct lac_error *reterr);
/** One version, as a row whose `version`, `title`, `markdown`, `editor` and time are of that one. */
LAC_MUST_USE enum lac_status lac_reports_version(struct lac_store *store, const char *id,
                                                 int64_t version,
                                                 struct lac_written_report *ret_row,
                                                 struct lac_error *reterr);

/** The snapshot of a part. @param ret_text the caller frees @param ret_at_unix_ms may be NULL */
LAC_MUST_USE enum lac_status lac_reports_snapshot(struct lac_store *store, const char *id,
                                                  const char *part, char **ret_text,
                                                  int64_t *ret_at_unix_ms,
                                                  struct lac_error *reterr);

/* ---- comments ---- */

struct lac_comment {
    const char *id;            /**< "": a new one */
    const char *thread;        /**< id of the thread's first comment; "" begins one */
    const char *part;          /**< what it is about: a part's line, or "" the whole report */
    const char *body, *author; /**< both "": deleted, and its answers are still there */
    const char *mentions;      /**< names, '\n' around each */
    int64_t at_unix_ms, edited_unix_ms, resolved_unix_ms; /**< 0: never */
    const char *resolved_by;                              /**< "" open */
};

/** As lac_report_version_fn. */
typedef void lac_comment_fn(void *context, const struct lac_comment *comment);
/** Oldest first. @param id NULL: of all; or one comment's */
LAC_MUST_USE enum lac_status lac_comments_list(struct lac_store *store, const char *report,
                                               const char *id, lac_comment_fn *visit, void *context,
                                               struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_comments_add(struct lac_store *store, const char *report,
                                              const struct lac_comment *comment, char *ret_id,
                                              struct lac_error *reterr);
/** Change the text. @param author only a comment of this person; NULL: of anybody */
LAC_MUST_USE enum lac_status lac_comments_edit(struct lac_store *store, const char *report,
                                               const char *id, const char *author, const char *body,
                                               const char *mentions, struct lac_error *reterr);
/** Close a thread, or open it again (`by` NULL). @param id of its first comment
 *  @param author only a thread that this person began; NULL: of anybody */
LAC_MUST_USE enum lac_status lac_comments_resolve(struct lac_store *store, const char *report,
                                                  const char *id, const char *author,
                                                  const char *by, struct lac_error *reterr);
/** A thread's first comment takes the thread with it, unless others than its author have answered:
 *  then it stays with an empty body and author for as long as they do. @param author as above; NULL
 *  takes any thread */
LAC_MUST_USE enum lac_status lac_comments_delete(struct lac_store *store, const char *report,
                                                 const char *id, const char *author,
                                                 struct lac_error *reterr);

/* ---- findings ---- */

typedef void lac_finding_state_fn(void *context, const char *part, const char *state,
                                  const char *note, const char *author, int64_t at_unix_ms);
LAC_MUST_USE enum lac_status lac_finding_states(struct lac_store *store, const char *report,
                                                lac_finding_state_fn *visit, void *context,
                                                struct lac_error *reterr);
/** @param state "open", "in_work", "fixed" or "wont_fix" @param note of a fixed one the run that
 *         shows it, of one that will not be fixed the reason */
LAC_MUST_USE enum lac_status lac_finding_set_state(struct lac_store *store, const char *report,
                                                   const char *part, const char *state,
                                                   const char *note, const char *author,
                                                   struct lac_error *reterr);

/* ---- links ---- */

enum { LAC_SHARE_TOKEN_LENGTH = 32 }; /**< characters of base32: 160 random bits */

struct lac_share {
    const char *id;       /**< says nothing of the token */
    const char *kind;     /**< "report", "trace" or "view" */
    const char *target;   /**< id of the report or trace */
    const char *redact;   /**< what is left out, with commas */
    const char *snapshot; /**< of a view; else NULL */
    const char *author;
    int64_t created_unix_ms, expires_unix_ms, used_unix_ms; /**< 0: never */
    int64_t used_count;
};

/** Make a link. @param ret_token LAC_SHARE_TOKEN_LENGTH + 1 bytes: told once, only its hash is kept */
LAC_MUST_USE enum lac_status lac_shares_create(struct lac_store *store,
                                               const struct lac_share *share, char *ret_id,
                                               char *ret_token, struct lac_error *reterr);

typedef void lac_share_fn(void *context, const struct lac_share *share);
/** @param target NULL: all. Newest first; snapshots are left out. Links that expired long ago are
 *         not there. */
LAC_MUST_USE enum lac_status lac_shares_list(struct lac_store *store, const char *target,
                                             lac_share_fn *visit, void *context,
                                             struct lac_error *reterr);
/** What a link shows, and count its use. @return LAC_ERR_NOT_FOUND also for one that expired */
LAC_MUST_USE enum lac_status lac_shares_open(struct lac_store *store, const char *token,
                                             lac_share_fn *visit, void *context,
                                             struct lac_error *reterr);
/** @param ret_target LAC_ID_SIZE bytes: what it showed */
LAC_MUST_USE enum lac_status lac_shares_revoke(struct lac_store *store, const char *id,
                                               char *ret_target, struct lac_error *reterr);
/** What a link belongs to, for who may revoke it. */
LAC_MUST_USE enum lac_status lac_shares_target(struct lac_store *store, const char *id,
                                               char *ret_target, struct lac_error *reterr);

#endif
