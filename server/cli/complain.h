#ifndef LAC_SERVER_CLI_COMPLAIN_H
#define LAC_SERVER_CLI_COMPLAIN_H

#include "analysis/model/status.h"

/**
 * One line on stderr: "COMMAND: PATH: what is wrong". Names of files and what a file says of itself
 * are somebody else's: what would steer a terminal is escaped.
 *
 * @param path NULL: left out, as where the sentence begins with it
 */
void lac_complain(const char *command, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** The same of an error, with the byte where it is known and not said already. Without a message
 *  the status speaks. */
void lac_complain_error(const char *command, const char *path, const struct lac_error *error);

/** The same of a file that is left out for it: "skipped, " and what is wrong. */
void lac_complain_skipped(const char *command, const char *path, const struct lac_error *error);

/** A status that came without a message, in words. */
const char *lac_status_text(enum lac_status status);

/** What `error` says, or where it says nothing what `status` means. */
const char *lac_error_text(const struct lac_error *error, enum lac_status status);

#endif
