#include "server/ingest/upload_metadata.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/encode.h"
#include "collector/base/utf8.h"
#include "server/base/project_name.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { KEY_BYTES_MAX = 64, KEYS_MAX = 32, CLOCK_DIGITS_MAX = 19 };

struct pair {
    char key[KEY_BYTES_MAX + 1];
    char value[LAC_METADATA_VALUE_MAX + 1];
};

/* One "key" or "key base64", without blanks around it. */
static enum lac_status parse_pair(const char *text, size_t length, struct pair *pair,
                                  struct lac_error *reterr)
{
    const char *const space = memchr(text, ' ', length);
    const size_t key_length = space != NULL ? (size_t)(space - text) : length;
    int value_length = 0;

    if (key_length == 0 || key_length > KEY_BYTES_MAX) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "Upload-Metadata: a key has no or too many bytes");
    }
    for (size_t i = 0; i < key_length; i++) {
        if (text[i] <= ' ' || text[i] > '~') {
            return lac_fail(reterr, LAC_ERR_MISUSE, 0, "Upload-Metadata: a key is not ASCII");
        }
    }
    memcpy(pair->key, text, key_length);
    pair->key[key_length] = '\0';
    if (space != NULL) {
        value_length = lac_base64_decode(space + 1, length - key_length - 1, (uint8_t *)pair->value,
                                         LAC_METADATA_VALUE_MAX);
    }
    if (value_length < 0) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "Upload-Metadata: the value of %s is not base64, or has more than %d bytes",
                        pair->key, LAC_METADATA_VALUE_MAX);
    }
    pair->value[value_length] = '\0';
    if (!lac_utf8_is_clean(pair->value, (size_t)value_length)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "Upload-Metadata: the value of %s is not plain UTF-8 text", pair->key);
    }
    return LAC_OK;
}

/* "run/resnet.json.gz" -> "resnet" */
static void name_of_file(const char *file, char *out)
{
    static const char *const endings[] = {".gz",    ".zst", ".tar",    ".tgz",   ".json",
                                          ".trace", ".pt",  ".sqlite", ".spool", ".lacuna"};
    const char *const slash = strrchr(file, '/');
    const char *const base = slash != NULL ? slash + 1 : file;
    size_t length = strlen(base);
    bool again = true;

    while (again) {
        again = false;
        for (size_t i = 0; i < LAC_COUNT_OF(endings); i++) {
            const size_t ending = strlen(endings[i]);

            if (length > ending && strncasecmp(base + length - ending, endings[i], ending) == 0) {
                length -= ending;
                again = true;
            }
        }
    }
    memcpy(out, base, length);
    out[length] = '\0';
}

static bool parse_ns(const char *text, int64_t *ret_ns)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    const size_t length = strlen(digits);

    if (length == 0 || length >= CLOCK_DIGITS_MAX || strspn(digits, "0123456789") != length) {
        return false;
    }
    *ret_ns = strtoll(text, NULL, 10);
    return true;
}

/* Keep what is understood. */
static enum lac_status take(const struct pair *pair, struct lac_upload_metadata *metadata,
                            char *file_name, unsigned *clock_parts, struct lac_error *reterr)
{
    char *text = NULL;
    int64_t *ns = NULL;

    if (strcmp(pair->key, "name") == 0) {
        text = metadata->name;
    } else if (strcmp(pair->key, "filename") == 0) {
        text = file_name;
    } else if (strcmp(pair->key, "project") == 0) {
        text = metadata->project;
    } else if (strcmp(pair->key, "run") == 0) {
        text = metadata->run;
    } else if (strcmp(pair->key, "reuse") == 0) {
        metadata->reuse_existing = strcmp(pair->value, "1") == 0;
    } else if (strcmp(pair->key, "clock_offset_ns") == 0) {
        ns = &metadata->clock_offset_ns;
    } else if (strcmp(pair->key, "clock_error_ns") == 0) {
        ns = &metadata->clock_error_ns;
    }
    if (text != NULL) {
        memcpy(text, pair->value, strlen(pair->value) + 1);
    }
    if (text == metadata->project && text[0] != '\0' && !lac_project_name_is_valid(text)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "Upload-Metadata: " LAC_PROJECT_NAME_RULE);
    }
    if (ns != NULL) {
        if (!parse_ns(pair->value, ns)) {
            return lac_fail(reterr, LAC_ERR_MISUSE, 0, "Upload-Metadata: %s is not a number of ns",
                            pair->key);
        }
        (*clock_parts)++;
    }
    return LAC_OK;
}

static bool is_repeated(char keys[][KEY_BYTES_MAX + 1], unsigned count, const char *key)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(keys[i], key) == 0) {
            return true;
        }
    }
    return false;
}

enum lac_status lac_upload_metadata_parse(const char *text,
                                          struct lac_upload_metadata *ret_metadata,
                                          struct lac_error *reterr)
{
    assert(ret_metadata != NULL);
    char keys[KEYS_MAX][KEY_BYTES_MAX + 1];
    char file_name[LAC_METADATA_VALUE_MAX + 1] = "";
    unsigned key_count = 0;
    unsigned clock_parts = 0;
    const char *at = text != NULL ? text : "";
    enum lac_status status = LAC_OK;

    *ret_metadata = (struct lac_upload_metadata){0};
    if (strlen(at) > LAC_METADATA_BYTES_MAX) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "Upload-Metadata has more than %d bytes",
                        LAC_METADATA_BYTES_MAX);
    }
    while (*at != '\0' && status == LAC_OK) {
        const size_t length = strcspn(at, ",");
        size_t first = strspn(at, " \t");
        size_t end = length;
        struct pair pair = {0};

        first = first < length ? first : length;
        while (end > first && (at[end - 1] == ' ' || at[end - 1] == '\t')) {
            end--;
        }
        status = parse_pair(at + first, end - first, &pair, reterr);
        if (status == LAC_OK && (key_count == KEYS_MAX || is_repeated(keys, key_count, pair.key))) {
            status = lac_fail(reterr, LAC_ERR_MISUSE, 0,
                              "Upload-Metadata: %s is given twice, or there are more than %d keys",
                              pair.key, KEYS_MAX);
        }
        if (status == LAC_OK) {
            memcpy(keys[key_count++], pair.key, sizeof(pair.key));
            status = take(&pair, ret_metadata, file_name, &clock_parts, reterr);
        }
        at += length;
        at += *at == ',' ? 1 : 0;
    }
    if (ret_metadata->name[0] == '\0') {
        name_of_file(file_name, ret_metadata->name);
    }
    ret_metadata->has_clock = clock_parts == 2 && ret_metadata->clock_error_ns >= 0;
    return status;
}
