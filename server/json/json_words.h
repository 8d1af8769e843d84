#ifndef LAC_SERVER_JSON_JSON_WORDS_H
#define LAC_SERVER_JSON_JSON_WORDS_H

/* Words of JSON text between `at` and `end`. Private to this folder. */

#include <stdbool.h>

static inline bool lac_json_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

const char *lac_json_skip_space(const char *at, const char *end);

/**
 * Refuse what json-c lets pass, even where it is strict: NaN, keys in single quotes, 00, raw
 * control characters and bytes that are not UTF-8 in strings. How the words stand together is
 * json-c's to say.
 *
 * @param ret_bad  the word that is none, when false
 */
bool lac_json_check_words(const char *at, const char *end, const char **ret_bad);

#endif
