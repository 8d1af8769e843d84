#include "server/json/json_words.h"

#include "collector/base/utf8.h"

#include <stdint.h>
#include <string.h>

const char *lac_json_skip_space(const char *at, const char *end)
{
    while (at < end && lac_json_is_space(*at)) {
        at++;
    }
    return at;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9') {
        at++;
    }
    return at;
}

/** Past the number at `at`, or NULL where it is none of JSON's: 007, 1., -. */
static const char *skip_number(const char *at, const char *end)
{
    const char *whole = at + (*at == '-');
    at = skip_digits(whole, end);
    if (at == whole || (*whole == '0' && at > whole + 1)) {
        return NULL;
    }
    if (at < end && *at == '.') {
        const char *fraction = at + 1;
        at = skip_digits(fraction, end);
        if (at == fraction) {
            return NULL;
        }
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        const char *exponent = at + 1;
        exponent += exponent < end && (*exponent == '+' || *exponent == '-');
        at = skip_digits(exponent, end);
        if (at == exponent) {
            return NULL;
        }
    }
    return at;
}

/** From the inside of a string at `at` to its closing quote, or NULL: what is raw has to be text. */
static const char *skip_inside(const char *at, const char *end)
{
    while (at < end && *at != '"') {
        const uint8_t *byte = (const uint8_t *)at;
        const uint32_t length = lac_utf8_length(byte, (const uint8_t *)end);
        if (length == 0 || *byte < 0x20) {
            return NULL;
        }
        at += length;
        at += *byte == '\\' && at < end; /* what may follow is json-c's to say */
    }
    return at;
}

bool lac_json_check_words(const char *at, const char *end, const char **ret_bad)
{
    while (at < end) {
        const char *next = at + 1;
        if (*at == '"') {
            next = skip_inside(at + 1, end);
            next = next != NULL && next < end ? next + 1 : next;
        } else if (*at == '-' || (*at >= '0' && *at <= '9')) {
            next = skip_number(at, end);
        } else if (*at == '\0' || strchr("{}[]:, \t\r\ntruefalsn", *at) == NULL) {
            next = NULL;
        }
        if (next == NULL) {
            *ret_bad = at;
            return false;
        }
        at = next;
    }
    return true;
}
