#ifndef LAC_SERVER_BASE_LOG_H
#define LAC_SERVER_BASE_LOG_H

/*
 * The server's log: one line an event on stderr, logfmt: `ts=... level=info msg="..." key=value`.
 *
 * Secrets never enter: callers log paths without their query, and no header. Strings from outside
 * are quoted and escaped, so that nobody can forge a line. After lac_log_start() lines go through a
 * ring to a thread of its own: a terminal that does not read cannot stop the server; lines that do
 * not fit are dropped, counted, and the count is logged.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

enum lac_log_level { LAC_LOG_ERROR = 0, LAC_LOG_WARN, LAC_LOG_INFO, LAC_LOG_DEBUG };

/** "error", "warn", "info" or "debug". @return false for anything else */
bool lac_log_level_parse(const char *text, enum lac_log_level *ret_level);

/** Lines above this level are not written. Default: info. */
void lac_log_set_level(enum lac_log_level level);
bool lac_log_is_on(enum lac_log_level level);

/** Start the writing thread. Without it lines are written at once. @return LAC_OK or LAC_ERR_IO */
LAC_MUST_USE enum lac_status lac_log_start(void);

/** Write what is left (waits at most a second for a reader that stalls) and stop the thread. */
void lac_log_stop(void);

/** Lines dropped so far because nobody read. */
uint64_t lac_log_dropped(void);

/** One field of a line. Made by the functions below. */
struct lac_log_field {
    const char *key; /**< static; NULL ends the list */
    const char *text;
    int64_t number;
    double real;
    enum { LAC_FIELD_TEXT, LAC_FIELD_INT, LAC_FIELD_REAL } type;
};

static inline struct lac_log_field lac_log_text(const char *key, const char *text)
{
    return (struct lac_log_field){.key = key, .text = text, .type = LAC_FIELD_TEXT};
}
static inline struct lac_log_field lac_log_int(const char *key, int64_t number)
{
    return (struct lac_log_field){.key = key, .number = number, .type = LAC_FIELD_INT};
}
static inline struct lac_log_field lac_log_real(const char *key, double real)
{
    return (struct lac_log_field){.key = key, .real = real, .type = LAC_FIELD_REAL};
}

/** Log one line. Use LAC_LOG. */
void lac_log_write(enum lac_log_level level, const char *message,
                   const struct lac_log_field *fields);

/** LAC_LOG(LAC_LOG_INFO, "listening", lac_log_int("port", 7070)); at least one field. */
#define LAC_LOG(level_, message_, ...)                                                             \
    do {                                                                                           \
        if (lac_log_is_on(level_)) {                                                               \
            lac_log_write((level_), (message_), (const struct lac_log_field[]){__VA_ARGS__, {0}}); \
        }                                                                                          \
    } while (0)

#endif
