#ifndef LAC_SERVER_EXPORT_REDACT_H
#define LAC_SERVER_EXPORT_REDACT_H

/*
 * What leaves with an export: host names, user names, paths, command lines and names that people
 * gave. Every text goes through lac_redact(), which leaves out what was asked for and remembers
 * what it met, so that the person who shares is told exactly what is in the file.
 */

#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/model/model.h"
#include "server/base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

enum lac_redact_kind {
    LAC_REDACT_HOSTS = 0, /**< the host's name, addresses of IPv4 */
    LAC_REDACT_USERS,     /**< "kim" of /home/kim */
    LAC_REDACT_PATHS,     /**< paths and folders of source files, down to the last component */
    LAC_REDACT_ARGV,      /**< command lines, down to the program */
    LAC_REDACT_NAMES, /**< of the trace, ranges, Python functions, processes, threads, own rows */
    LAC_REDACT_KIND_COUNT_
};
/** Whether people chose the name of such a slice (enum lac_slice_kind): ranges, marks, functions. */
bool lac_redact_is_given(uint8_t kind, const char *name);

/** By kind: "hosts", "users", "paths", "argv", "names". */
extern const struct lac_word lac_redact_words[LAC_REDACT_KIND_COUNT_];

enum { LAC_REDACT_SHOWN_MAX = 6, LAC_REDACT_ITEM_BYTES = 120 };

struct lac_redactor {
    bool leave_out[LAC_REDACT_KIND_COUNT_];
    const char *hosts; /**< '\n' between them, "" unknown; borrowed */
    const char *user;  /**< who ran the job, NULL unknown; borrowed */
    struct {
        uint64_t count;                                         /**< times met */
        char item[LAC_REDACT_SHOWN_MAX][LAC_REDACT_ITEM_BYTES]; /**< distinct ones */
        unsigned item_count;
    } met[LAC_REDACT_KIND_COUNT_];
    struct lac_buffer text; /**< private: what lac_redact() gave last */
};

/** Prepare. @param list "hosts,paths" or NULL. LAC_ERR_MISUSE names a word that is none of ours. */
LAC_MUST_USE enum lac_status lac_redactor_init(struct lac_redactor *redactor, const char *list,
                                               const struct lac_model *model,
                                               struct lac_error *reterr);
/** The same for a text about several traces. @param hosts '\n' between them; borrowed */
LAC_MUST_USE enum lac_status lac_redactor_init_hosts(struct lac_redactor *redactor,
                                                     const char *list, const char *hosts,
                                                     struct lac_error *reterr);
void lac_redactor_done(struct lac_redactor *redactor);

/** The text without what is to be left out. Borrowed until the next call. Never NULL. */
const char *lac_redact(struct lac_redactor *redactor, const char *text);

/** The same, of a name that a person has here ("@kim"). */
const char *lac_redact_user(struct lac_redactor *redactor, const char *name);

/** The same for a command line, and for a name that a person gave (`fallback` is what is written
 *  instead of it). */
const char *lac_redact_argv(struct lac_redactor *redactor, const char *text);
const char *lac_redact_given(struct lac_redactor *redactor, const char *text, const char *fallback);

/** The name of a process: a command line, or chosen by a person. */
const char *lac_redact_process(struct lac_redactor *redactor, const char *name);

/** The name of a row of the timeline. People chose that of a thread, of a stream that is not called so, of
 *  a counter that is no measurement of ours, and of what overlaps. */
const char *lac_redact_track(struct lac_redactor *redactor, const struct lac_model *model,
                             uint32_t track);

#endif
