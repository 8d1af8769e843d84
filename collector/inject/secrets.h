#ifndef LAC_COLLECTOR_INJECT_SECRETS_H
#define LAC_COLLECTOR_INJECT_SECRETS_H

/* What must not be in a recording: passwords, keys and tokens on command lines. */

#include <stddef.h>

/**
 * The words of a command line, one after the other with its final 0, joined by spaces, secrets as
 * "***". When in doubt, a value is hidden:
 *
 * - the value of what names a secret: --api-key x, TOKEN=x, "password": "x", X-Auth-Token: x,
 *   ;Password=x, and what stands after it in the word;
 * - user names and queries in addresses, addresses of webhooks, credentials of headers, -u name:x;
 * - what has the shape of a token of a known service, of a key in PEM, or the length and letters of
 *   a key (32 letters and digits in a row: commits and digests, too).
 *
 * What cannot be known: a secret that is a plain word and has no name, and one that begins as an
 * option does ("--word").
 *
 * @return bytes written, at most `capacity`; words that do not fit are left out. Without a final 0.
 */
size_t lac_command_line_shown(const char *line, size_t size_bytes, char *out, size_t capacity);

/** The same for one text, as a path. @return bytes written; 0 when it does not fit */
size_t lac_text_shown(const char *text, size_t length, char *out, size_t capacity);

#endif
