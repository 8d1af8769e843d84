#ifndef LAC_COLLECTOR_INJECT_SECRETS_H
#define LAC_COLLECTOR_INJECT_SECRETS_H

/* What must not stand in a recording: passwords, keys and tokens on command lines. */

#include <stddef.h>

/**
 * The words of a command line, each behind the other with its final 0, joined by spaces, secrets as
 * "***". Rather too much is hidden than too little: what names a secret ("--api-key x", "TOKEN=x"),
 * users and questions in addresses, headers with credentials, and what looks like a token of a
 * known service or has the length and letters of a key.
 *
 * @return bytes written, at most `capacity`; words that do not fit are left out. Without a final 0.
 */
size_t lac_command_line_shown(const char *words, size_t size_bytes, char *out, size_t capacity);

#endif
