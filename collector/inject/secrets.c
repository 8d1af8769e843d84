#include "collector/inject/secrets.h"

#include "collector/base/count_of.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/*
 * Two tables do the work: words that name a secret, and shapes of keys and tokens. Everything else
 * is where in a word a name and its value stand: --name=VALUE, NAME=VALUE, "name": "VALUE",
 * Name: VALUE, ...;Name=VALUE;..., ?name=VALUE&..., and --name VALUE over two words.
 */

/* ---- words */

/* Anywhere in a name, separators aside: "DB_PASSWORD", "x-api-key", "clientSecret". */
static const char *const words[] = {
    "password",   "passwd",     "passphrase",  "passcode",      "secret",           "credential",
    "bearer",     "cookie",     "apikey",      "accesskey",     "privatekey",       "authkey",
    "signingkey", "encryptkey", "accountkey",  "sharedkey",     "licensekey",       "masterkey",
    "authtoken",  "hftoken",    "accesstoken", "authorization", "connectionstring", "encryptionkey",
    "dbpass",     "userpass",   "keypass",     "storepass"};

/* As the last part of a name: "--hf-token", "DB_PASS", "MYSQL_PWD"; not "max-tokens",
 * "pass-through" and "keyframes", which are everywhere in training jobs. */
static const char *const last_parts[] = {
    "key",     "token",   "pass", "pw",  "pwd", "auth", "sas", "sig",   "pat",  "pin",
    "license", "licence", "otp",  "psk", "pem", "jwt",  "dsn", "creds", "cred", "signature"};

/* Parts next to "key", "token" and "pass" that say it is one of a vocabulary, a table or a loop. */
static const char *const harmless[] = {
    "pad",    "eos",         "bos",        "unk",     "mask",   "sep",     "cls",     "image",
    "img",    "stop",        "start",      "end",     "per",    "next",    "last",    "num",
    "max",    "min",         "class",      "sos",     "blank",  "video",   "audio",   "speech",
    "eot",    "eom",         "text",       "special", "label",  "sort",    "data",    "input",
    "output", "prompt",      "answer",     "metric",  "group",  "column",  "foreign", "cache",
    "hash",   "forward",     "backward",   "two",     "one",    "single",  "multi",   "second",
    "first",  "each",        "public",     "source",  "target", "feature", "field",   "caption",
    "batch",  "placeholder", "initializer"};

/* ---- shapes */

/* What tokens of known services begin with; at least SHAPE_MIN bytes follow. */
static const char *const begins[] = {
    "ghp_",   "gho_",    "ghs_",   "ghu_",      "ghr_",     "github_pat_",
    "glpat-", "hf_",     "sk-",    "sk_live_",  "sk_test_", "rk_live_",
    "AKIA",   "ASIA",    "xoxb-",  "xoxp-",     "xoxa-",    "xoxe",
    "xapp-",  "ya29.",   "1//0",   "GOCSPX-",   "eyJ",      "npm_",
    "pypi-",  "r8_",     "AIza",   "nvapi-",    "gsk_",     "SG.",
    "whsec_", "dop_v1_", "shpat_", "wandb_v1_", "tskey-",   "AGE-SECRET-KEY-",
    "pplx-",  "xai-",    "tvly-"};

/* Addresses that are a secret themselves: what follows lets anybody post. */
static const char *const hooks[] = {"hooks.slack.com/", "/webhook", "/hooks/",
                                    "api.telegram.org/bot"};

enum {
    SHAPE_MIN = 12,
    SHAPE_LOOK = 20,
    KEY_LENGTH_MIN = 32, /* letters and digits in a row: longer than any word or number */
    BASIC_MIN = 8,
    PASSWORD_MIN = 8, /* after a -p that may be something else */
    NAME_BYTES = 64
};

/* ---- text */

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
    return is_upper(c) || is_lower(c) || is_digit(c);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Place of `what` in a text without a final 0, letters of either case; `length` if it
 * is not there. */
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

static bool is_among(const char *const *list, size_t count, const char *text, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(list[i]) == length && strncasecmp(text, list[i], length) == 0) {
            return true;
        }
    }
    return false;
}

#define IS_AMONG(list, text, length) is_among(list, LAC_COUNT_OF(list), text, length)

/* ---- names */

/* End of the part that begins at `at`: "api|_|key", "api|Key", "API|_|KEY2". */
static size_t part_end(const char *name, size_t length, size_t at)
{
    while (at < length && is_alnum(name[at]) && !is_digit(name[at])) {
        at++;
        if (at < length && is_lower(name[at - 1]) && is_upper(name[at])) {
            break;
        }
    }
    return at;
}

/* Whether the last part names a secret, and none next to it says that it does not. */
static bool ends_in_secret(const char *name, size_t length)
{
    const char *last = "";
    size_t last_length = 0;
    bool is_harmless = false;

    for (size_t at = 0; at < length;) {
        const size_t end = part_end(name, length, at);

        if (end == at) { /* a separator, or a digit */
            at++;
            continue;
        }
        is_harmless = is_harmless || IS_AMONG(harmless, name + at, end - at);
        last = name + at;
        last_length = end - at;
        at = end;
    }
    return IS_AMONG(last_parts, last, last_length) && !is_harmless;
}

static bool names_a_secret(const char *name, size_t length)
{
    char letters[NAME_BYTES];
    size_t used = 0;

    for (size_t i = length; i-- > 0 && used < sizeof(letters);) { /* its end, if it is long */
        if (is_alnum(name[i])) {
            letters[sizeof(letters) - ++used] = name[i];
        }
    }
    for (size_t w = 0; w < LAC_COUNT_OF(words); w++) {
        if (find(letters + sizeof(letters) - used, used, words[w]) < used) {
            return true;
        }
    }
    return ends_in_secret(name, length);
}

/* After the first separator with a name before it that names a secret. */
static size_t before_value(const char *word, size_t length)
{
    for (size_t i = 1; i < length; i++) {
        size_t end = i;
        size_t begin;

        if (word[i] != '=' && word[i] != ':') {
            continue;
        }
        while (end > 0 && strchr(" \"'\\]", word[end - 1]) != NULL) {
            end--;
        }
        begin = end;
        while (begin > 0 && (is_alnum(word[begin - 1]) || strchr("_-", word[begin - 1]) != NULL)) {
            begin--;
        }
        if (begin < end && names_a_secret(word + begin, end - begin)) {
            return i + 1;
        }
    }
    return length;
}

/* ---- shapes */

/* A key is unlike a word: it has a digit, a capital letter or very many letters in a row. */
static bool is_random(const char *text, size_t length)
{
    size_t run = 0;

    for (size_t i = 0; i < length; i++) {
        run = is_lower(text[i]) ? run + 1 : 0;
        if (is_digit(text[i]) || is_upper(text[i]) || run >= 16) {
            return true;
        }
    }
    return false;
}

static size_t token_length(const char *text, size_t length)
{
    size_t n = 0;

    while (n < length && (is_alnum(text[n]) || strchr("_-.", text[n]) != NULL)) {
        n++;
    }
    return n;
}

static size_t before_known_token(const char *word, size_t length)
{
    size_t shown = length;

    for (size_t b = 0; b < LAC_COUNT_OF(begins); b++) {
        const size_t n = strlen(begins[b]);

        for (size_t i = 0; i + n + SHAPE_MIN <= shown; i++) {
            const char *const tail = word + i + n;

            const size_t tail_length = token_length(tail, length - i - n);

            if (memcmp(word + i, begins[b], n) == 0 && (i == 0 || !is_alnum(word[i - 1])) &&
                tail_length >= SHAPE_MIN && is_random(tail, smaller(tail_length, SHAPE_LOOK))) {
                shown = i;
            }
        }
    }
    return shown;
}

static size_t before_long_key(const char *word, size_t length)
{
    size_t run = 0;
    size_t digits = 0;

    for (size_t i = 0; i < length; i++) {
        const bool is_part = is_alnum(word[i]);

        run = is_part ? run + 1 : 0;
        digits = is_part ? digits + is_digit(word[i]) : 0;
        if (run >= KEY_LENGTH_MIN && digits > 0 && digits < run) {
            return i + 1 - run;
        }
    }
    return length;
}

/* User names and queries in addresses, with a scheme or without, and webhooks. */
static size_t before_address(const char *word, size_t length)
{
    const size_t scheme = find(word, length, "://");
    const char *const at_sign = memchr(word, '@', length);
    const char *const colon = memchr(word, ':', length);
    const char *const question = memchr(word, '?', length);
    size_t shown = length;

    if (scheme < length && at_sign != NULL) {
        return scheme + 3;
    }
    if (at_sign != NULL && colon != NULL && colon < at_sign) {
        return 0;
    }
    if (scheme < length && question != NULL) {
        shown = (size_t)(question - word) + 1;
    }
    for (size_t h = 0; h < LAC_COUNT_OF(hooks); h++) {
        const size_t found = find(word, length, hooks[h]);

        if (found < length) {
            shown = smaller(shown, found + strlen(hooks[h]));
        }
    }
    return shown;
}

/* "Bearer x", "Basic dXNlcjpwYXNz" after a header's name or without it. */
static size_t before_scheme(const char *word, size_t length)
{
    const size_t bearer = find(word, length, "bearer ");
    const size_t basic = find(word, length, "basic ");
    const size_t text = basic + sizeof("basic");
    size_t shown = bearer < length ? bearer + sizeof("bearer") : length;

    if (basic < length && length - text >= BASIC_MIN && is_random(word + text, BASIC_MIN)) {
        shown = smaller(shown, text);
    }
    return shown;
}

static size_t before_shape(const char *word, size_t length)
{
    size_t shown = smaller(before_address(word, length), before_scheme(word, length));

    shown = smaller(shown, before_known_token(word, length));
    shown = smaller(shown, before_long_key(word, length));
    return smaller(shown, find(word, length, "-----BEGIN "));
}

/* ---- words that follow words */

/* What the next word can be. */
enum next { PLAIN, SECRET, USER, MAYBE };

static bool equals(const char *word, size_t length, const char *what)
{
    return strlen(what) == length && memcmp(word, what, length) == 0;
}

/* Programs whose -p is a password; elsewhere it may be a port or a partition. */
static bool takes_passwords(const char *word, size_t length)
{
    static const char *const programs[] = {"sshpass",    "mysql",   "mysqldump",
                                           "mysqladmin", "mariadb", "mongosh"};
    size_t begin = length;

    while (begin > 0 && word[begin - 1] != '/') {
        begin--;
    }
    return IS_AMONG(programs, word + begin, length - begin);
}

static enum next next_of(const char *word, size_t length, bool takes_password)
{
    static const char *const schemes[] = {"bearer", "authorization:", "bearer:"};

    if (equals(word, length, "-u") || equals(word, length, "-U") ||
        equals(word, length, "--user") || equals(word, length, "--proxy-user")) {
        return USER;
    }
    if (equals(word, length, "-p")) {
        return takes_password ? SECRET : MAYBE;
    }
    if (find(word, length, "basic") == 0 && length == strlen("basic")) {
        return MAYBE;
    }
    if (IS_AMONG(schemes, word, length)) {
        return SECRET;
    }
    return word[0] == '-' && memchr(word, '=', length) == NULL && names_a_secret(word, length)
               ? SECRET
               : PLAIN;
}

/* "--lr", "--lr=0.1", "-h": an option and not a password that begins so. */
static bool is_option(const char *word, size_t length)
{
    size_t i = 2;

    if (length < 2 || word[0] != '-') {
        return false;
    }
    if (word[1] != '-') {
        return length == 2;
    }
    while (i < length &&
           (is_lower(word[i]) || is_digit(word[i]) || strchr("-_.", word[i]) != NULL)) {
        i++;
    }
    return i == length || word[i] == '=';
}

/* A port, a partition, a path: what -p means elsewhere. */
static bool is_plain(const char *word, size_t length)
{
    bool is_path = length > 0 && strchr("/.~", word[0]) != NULL;
    bool has_digits = false;
    bool has_letters = false;

    for (size_t i = 0; i < length && !is_path; i++) {
        has_digits = has_digits || is_digit(word[i]);
        has_letters = has_letters || is_lower(word[i]);
        if (!is_digit(word[i]) && !is_lower(word[i]) && strchr(":-_,./", word[i]) == NULL) {
            return false;
        }
    }
    return is_path || !(has_digits && has_letters);
}

/* How much of a word may be shown that follows one of that kind. */
static size_t shown_after(enum next before, const char *word, size_t length)
{
    const char *const colon = memchr(word, ':', length);
    const size_t user = colon != NULL ? (size_t)(colon - word) + 1 : length;

    switch (before) {
    case SECRET:
        return is_option(word, length) ? length : 0;
    case USER: /* of `docker -u 1000:1000`, too */
        return user == length || is_plain(word, length) ? length : user;
    case MAYBE:
        return length < PASSWORD_MIN || is_option(word, length) || is_plain(word, length) ? length
                                                                                          : 0;
    case PLAIN:
    default:
        return length;
    }
}

/* "-uname:x" of curl. */
static size_t before_user(const char *word, size_t length)
{
    const char *const colon = memchr(word, ':', length);

    return length > 2 && word[0] == '-' && word[1] == 'u' && colon != NULL ? 2 : length;
}

static size_t shown_of(const char *word, size_t length)
{
    size_t shown = smaller(before_value(word, length), before_shape(word, length));

    return smaller(shown, before_user(word, length));
}

size_t lac_command_line_shown(const char *line, size_t size_bytes, char *out, size_t capacity)
{
    enum next next = PLAIN;
    bool takes_password = false;
    size_t used = 0;

    for (size_t at = 0; at < size_bytes;) {
        const char *const word = line + at;
        const size_t length = strnlen(word, size_bytes - at);
        const size_t after = shown_after(next, word, length);
        const size_t kept = smaller(after, shown_of(word, length));

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
        takes_password = takes_password || takes_passwords(word, length);
        next = after < length ? PLAIN : next_of(word, length, takes_password);
        at += length + 1;
    }
    return used;
}

size_t lac_text_shown(const char *text, size_t length, char *out, size_t capacity)
{
    const size_t kept = smaller(before_value(text, length), before_shape(text, length));

    if (kept + 3 > capacity) {
        return 0;
    }
    memcpy(out, text, kept);
    if (kept == length) {
        return kept;
    }
    memcpy(out + kept, "***", 3);
    return kept + 3;
}
