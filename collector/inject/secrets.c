#include "collector/inject/secrets.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { KEY_LENGTH_MIN = 32 }; /* letters and digits in a row: longer than any word or number */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Place of `what` in a text without a final 0, letters of either case; `length` if it is not there.
 */
static size_t find(const char *text, size_t length, const char *what)
{
    const size_t n = strlen(what);

    for (size_t i = 0; i + n <= length; i++) {
        if (strncasecmp(text + i, what, n) == 0) {
            return i;
        }
    }
    return length;
}

/* "api_key", "--password", "HF_TOKEN"; not "tokenizer", "max-tokens" and "keyframes", which are
 * everywhere in training jobs. */
static bool names_a_secret(const char *name, size_t length)
{
    static const char *const words[] = {"password",  "passwd",     "passphrase", "pwd",
                                        "secret",    "credential", "auth",       "bearer",
                                        "signature", "cookie"};
    static const char *const whole[] = {"key", "token", "pw", "pass", "sas"};

    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
        if (find(name, length, words[w]) < length) {
            return true;
        }
    }
    for (size_t w = 0; w < sizeof(whole) / sizeof(whole[0]); w++) {
        const size_t n = strlen(whole[w]);
        size_t at = 0;

        while (at < length) {
            const size_t found = at + find(name + at, length - at, whole[w]);
            const bool ends = found + n >= length || !is_letter(name[found + n]);
            /* "apikey" and "accesstoken" count, "bpw" and "compass" do not */
            const bool begins = n >= 5 || whole[w][0] == 'k' || found == 0 ||
                                (found < length && !is_letter(name[found - 1]));

            if (found < length && ends && begins) {
                return true;
            }
            at = found + 1;
        }
    }
    return false;
}

/* How much of a word is no token: all of it, or what is before one. */
static size_t before_token(const char *word, size_t length)
{
    static const char *const begins[] = {"ghp_", "gho_", "ghs_",  "github_pat_", "glpat-", "hf_",
                                         "sk-",  "AKIA", "ASIA",  "xoxb-",       "xoxp-",  "ya29.",
                                         "eyJ",  "npm_", "pypi-", "r8_",         "AIza"};
    size_t run = 0;
    size_t digits = 0;

    for (size_t b = 0; b < sizeof(begins) / sizeof(begins[0]); b++) {
        const size_t n = strlen(begins[b]);

        for (size_t i = 0; i + n + 12 <= length; i++) {
            if (memcmp(word + i, begins[b], n) == 0 &&
                (i == 0 || (!is_letter(word[i - 1]) && !is_digit(word[i - 1])))) {
                return i;
            }
        }
    }
    for (size_t i = 0; i < length; i++) {
        const bool is_part = is_letter(word[i]) || is_digit(word[i]);

        run = is_part ? run + 1 : 0;
        digits = is_part ? digits + is_digit(word[i]) : 0;
        if (run >= KEY_LENGTH_MIN && digits > 0 && digits < run) {
            return i + 1 - run;
        }
    }
    return length;
}

/* Users in addresses, with a scheme or without, and what is asked of them. */
static size_t before_address(const char *word, size_t length)
{
    const size_t scheme = find(word, length, "://");
    const char *const at_sign = memchr(word, '@', length);
    const char *const colon = memchr(word, ':', length);
    const char *const question = memchr(word, '?', length);

    if (scheme < length && at_sign != NULL) {
        return scheme + 3;
    }
    if (at_sign != NULL && colon != NULL && colon < at_sign) {
        return 0;
    }
    return scheme < length && question != NULL ? (size_t)(question - word) + 1 : length;
}

static size_t before_header(const char *word, size_t length)
{
    static const char *const headers[] = {"bearer ", "basic ", "authorization:", "api-key:"};

    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        const size_t found = find(word, length, headers[i]);

        if (found < length) {
            return found + strlen(headers[i]);
        }
    }
    return length;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How much of a word may be shown; `ret_hides_next` when the secret is the word behind it. */
static size_t shown_of(const char *word, size_t length, bool *ret_hides_next)
{
    const char *const equals = memchr(word, '=', length);
    size_t shown = before_header(word, length);

    *ret_hides_next = false;
    if (equals != NULL && names_a_secret(word, (size_t)(equals - word))) {
        shown = smaller(shown, (size_t)(equals - word) + 1);
    } else if (equals == NULL && word[0] == '-' && names_a_secret(word, length)) {
        *ret_hides_next = true;
    }
    shown = smaller(shown, before_address(word, length));
    return smaller(shown, before_token(word, length));
}

size_t lac_command_line_shown(const char *words, size_t size_bytes, char *out, size_t capacity)
{
    size_t used = 0;
    bool hides_next = false;

    for (size_t at = 0; at < size_bytes;) {
        const char *const word = words + at;
        const size_t length = strnlen(word, size_bytes - at);
        const bool is_hidden = hides_next && word[0] != '-';
        const size_t shown = shown_of(word, length, &hides_next);
        const size_t kept = is_hidden ? 0 : shown;

        if (used + kept + 5 > capacity) {
            break;
        }
        if (used > 0) {
            out[used++] = ' ';
        }
        memcpy(out + used, word, kept);
        used += kept;
        if (kept < length) {
            memcpy(out + used, "***", 3);
            used += 3;
        }
        at += length + 1;
    }
    return used;
}
