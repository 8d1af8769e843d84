#include "analysis/import/spool/spool_events.h"
#include "analysis/import/text/settings_text.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_PREFIX "host."
enum { HOST_PREFIX_LENGTH = sizeof(HOST_PREFIX) - 1 };

static size_t key_length(const char *text)
{
    const char *const equals = strchr(text, '=');

    return equals != NULL ? (size_t)(equals - text) : 0;
}

void lac_spool_settings_add(struct lac_spool_settings *settings, const struct lac_strings *strings,
                            uint32_t text)
{
    const char *const added = lac_strings_get(strings, text);
    const size_t length = key_length(added);

    if (length == 0 || settings->count == LAC_SPOOL_SETTINGS_MAX) {
        return;
    }
    for (uint32_t i = 0; i < settings->count; i++) {
        const char *const known = lac_strings_get(strings, settings->text[i]);

        if (settings->key_bytes[i] == length && memcmp(known, added, length) == 0) {
            return;
        }
    }
    settings->key_bytes[settings->count] = (uint32_t)length;
    settings->text[settings->count++] = text;
}

/* The text as a JSON string; `out` has room for six bytes a byte and two quotes. */
static size_t quote(const char *text, size_t length, char *out)
{
    size_t used = 0;

    out[used++] = '"';
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\') {
            out[used++] = '\\';
            out[used++] = (char)c;
        } else if (c < 0x20) {
            used += (size_t)snprintf(out + used, 7, "\\u%04x", c);
        } else {
            out[used++] = (char)c;
        }
    }
    out[used++] = '"';
    return used;
}

/* Python's way to print a number, a truth or nothing; all else is text. */
static size_t value_of(const char *text, size_t length, char *out)
{
    static const struct {
        const char *python;
        const char *json;
    } words[] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    bool digits = length > 0 && length < 16 && text[0] != '0';

    for (size_t i = 0; i < LAC_COUNT_OF(words); i++) {
        if (strcmp(text, words[i].python) == 0) {
            memcpy(out, words[i].json, strlen(words[i].json));
            return strlen(words[i].json);
        }
    }
    for (size_t i = 0; i < length && digits; i++) {
        digits = text[i] >= '0' && text[i] <= '9';
    }
    if (digits || (length == 1 && text[0] == '0')) {
        memcpy(out, text, length);
        return length;
    }
    return quote(text, length, out);
}

/* "key":value of all settings whose key does or does not begin with "host.", without that. */
static size_t write_members(const struct lac_spool_settings *settings,
                            const struct lac_strings *strings, bool of_host, char *out)
{
    size_t used = 0;

    for (uint32_t i = 0; i < settings->count; i++) {
        const char *const text = lac_strings_get(strings, settings->text[i]);
        const size_t length = key_length(text);
        const bool is_host = strncmp(text, HOST_PREFIX, HOST_PREFIX_LENGTH) == 0;
        const size_t skipped = is_host ? HOST_PREFIX_LENGTH : 0;

        if (is_host != of_host || length == skipped) {
            continue;
        }
        if (used > 0) {
            out[used++] = ',';
        }
        used += quote(text + skipped, length - skipped, out + used);
        out[used++] = ':';
        used += value_of(text + length + 1, strlen(text + length + 1), out + used);
    }
    return used;
}

enum lac_status lac_spool_settings_store(const struct lac_spool_settings *settings,
                                         struct lac_model *model)
{
    static const char open_text[] = "{\"lacuna\":{\"version\":1,\"settings\":{";
    static const char host_text[] = "},\"host\":{";
    size_t capacity = sizeof(open_text) + sizeof(host_text) + 8;
    size_t used = sizeof(open_text) - 1;
    enum lac_status status;
    char *json;

    if (settings->count == 0) {
        return LAC_OK;
    }
    for (uint32_t i = 0; i < settings->count; i++) {
        capacity += lac_strings_length(&model->strings, settings->text[i]) * 6 + 8;
    }
    json = malloc(capacity);
    if (json == NULL) {
        return LAC_ERR_NOMEM;
    }
    memcpy(json, open_text, used);
    used += write_members(settings, &model->strings, false, json + used);
    memcpy(json + used, host_text, sizeof(host_text) - 1);
    used += sizeof(host_text) - 1;
    used += write_members(settings, &model->strings, true, json + used);
    memcpy(json + used, "}}}", 3);
    used += 3;
    status = lac_strings_intern(&model->strings, json, used, &model->info.metadata);
    free(json);
    return status == LAC_OK ? lac_settings_read_text(model) : status;
}
