/*
 * What the hook (or the simulator) saw of the job's settings: the object at "lacuna" > "settings"
 * of the trace's metadata. The text was checked by the importer, but is read here as if it had not
 * been: anything odd means "not recorded".
 */

#include "analysis/diagnose/facts/facts.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

/** A cursor over JSON text. */
struct cursor {
    const char *at;
    const char *end;
};

static void skip_space(struct cursor *cursor)
{
    while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) && *cursor->at != '\0') {
        cursor->at++;
    }
}

/** Past a string that starts at the cursor. */
static bool skip_string(struct cursor *cursor)
{
    if (cursor->at >= cursor->end || *cursor->at != '"') {
        return false;
    }
    for (cursor->at++; cursor->at < cursor->end; cursor->at++) {
        if (*cursor->at == '\\') {
            cursor->at++;
        } else if (*cursor->at == '"') {
            cursor->at++;
            return true;
        }
    }
    return false;
}

/** Past one value of any kind. */
static bool skip_value(struct cursor *cursor)
{
    int depth = 0;
    do {
        skip_space(cursor);
        if (cursor->at >= cursor->end) {
            return false;
        }
        char c = *cursor->at;
        if (c == '"') {
            if (!skip_string(cursor)) {
                return false;
            }
        } else if (c == '{' || c == '[') {
            if (++depth > DEPTH_MAX) {
                return false;
            }
            cursor->at++;
        } else if (c == '}' || c == ']') {
            if (--depth < 0) {
                return false;
            }
            cursor->at++;
        } else if (c == ',' || c == ':') {
            cursor->at++;
        } else {
            const char *first = cursor->at;
            while (cursor->at < cursor->end && !strchr(",:{}[]\" \t\r\n", *cursor->at)) {
                cursor->at++;
            }
            if (cursor->at == first) {
                return false;
            }
        }
    } while (depth > 0);
    return true;
}

/** Move to the value of `key` in the object at the cursor. */
static bool enter(struct cursor *cursor, const char *key)
{
    size_t key_length = strlen(key);
    skip_space(cursor);
    if (cursor->at >= cursor->end || *cursor->at != '{') {
        return false;
    }
    cursor->at++;
    for (;;) {
        skip_space(cursor);
        const char *name = cursor->at + 1;
        if (!skip_string(cursor)) {
            return false;
        }
        size_t length = (size_t)(cursor->at - 1 - name);
        skip_space(cursor);
        if (cursor->at >= cursor->end || *cursor->at != ':') {
            return false;
        }
        cursor->at++;
        skip_space(cursor);
        if (length == key_length && memcmp(name, key, length) == 0) {
            return cursor->at < cursor->end;
        }
        if (!skip_value(cursor)) {
            return false;
        }
        skip_space(cursor);
        if (cursor->at >= cursor->end || *cursor->at != ',') {
            return false;
        }
        cursor->at++;
    }
}

/** The number of `key`, or `otherwise`. */
static int64_t number_of(struct cursor object, const char *key, int64_t otherwise, int64_t max)
{
    if (!enter(&object, key)) {
        return otherwise;
    }
    int64_t value = 0;
    const char *first = object.at;
    while (object.at < object.end && *object.at >= '0' && *object.at <= '9') {
        value = value * 10 + (*object.at++ - '0');
        if (value > max) {
            return otherwise;
        }
    }
    return object.at == first ? otherwise : value;
}

/** 0, 1 or -1 when it is not there. */
static int8_t truth_of(struct cursor object, const char *key)
{
    if (!enter(&object, key)) {
        return -1;
    }
    size_t left = (size_t)(object.end - object.at);
    if (left >= 4 && memcmp(object.at, "true", 4) == 0) {
        return 1;
    }
    return left >= 5 && memcmp(object.at, "false", 5) == 0 ? 0 : -1;
}

/** "train.py:83" of a path with a line; plain characters only. */
static const char *place_of(struct lac_facts *facts, struct cursor object, const char *key)
{
    if (!enter(&object, key) || *object.at != '"') {
        return "";
    }
    struct cursor value = object;
    if (!skip_string(&value)) {
        return "";
    }
    const char *first = object.at + 1;
    const char *end = value.at - 1;
    for (const char *at = first; at < end; at++) {
        if (*at == '\\') {
            return "";
        }
        if (*at == '/') {
            first = at + 1;
        }
    }
    return lac_texts_add(&facts->analysis->texts, "%.*s", (int)(end - first), first);
}

/** A list of cores as the kernel writes it, "0-3,8", behind its opening quote. */
struct core_list {
    struct cursor text;
    int64_t from, to; /**< the range that core_list_next() found */
    bool is_at_end;
};

static bool core_number(struct cursor *text, int64_t *ret_number)
{
    const char *first = text->at;
    int64_t number = 0;
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9' && number <= 65536) {
        number = number * 10 + (*text->at++ - '0');
    }
    *ret_number = number;
    return text->at > first && number <= 65536 && text->at < text->end;
}

/** The next range; false at the end, and where it is no list: then is_at_end is false. */
static bool core_list_next(struct core_list *list)
{
    if (list->is_at_end || !core_number(&list->text, &list->from)) {
        return false;
    }
    list->to = list->from;
    if (*list->text.at == '-') {
        list->text.at++;
        if (!core_number(&list->text, &list->to) || list->to < list->from) {
            return false;
        }
    }
    list->is_at_end = *list->text.at == '"';
    bool goes_on = list->is_at_end || *list->text.at == ',';
    list->text.at++;
    return goes_on;
}

/** The list of `key`; false when there is none. */
static bool core_list_open(struct cursor object, const char *key, struct core_list *ret_list)
{
    bool is_text = enter(&object, key) && *object.at == '"';
    object.at += is_text;
    *ret_list = (struct core_list){.text = object};
    return is_text;
}

/** Cores of a list; -1 when it is none. */
static int32_t cores_of_list(struct cursor object, const char *key)
{
    struct core_list list;
    int64_t cores = 0;
    if (!core_list_open(object, key, &list)) {
        return -1;
    }
    while (core_list_next(&list)) {
        cores += list.to - list.from + 1;
    }
    return list.is_at_end && cores <= 65536 ? (int32_t)cores : -1;
}

/** Move to one of the objects in "lacuna": "settings" of the job, or facts about its "host". */
static bool enter_part(const struct lac_facts *facts, const char *part, struct cursor *ret_object)
{
    const struct lac_model *model = facts->model;
    uint32_t id = model->info.metadata;
    *ret_object =
        (struct cursor){lac_model_str(model, id),
                        lac_model_str(model, id) + lac_strings_length(&model->strings, id)};
    return enter(ret_object, "lacuna") && enter(ret_object, part) && *ret_object->at == '{';
}

int64_t lac_setting_count(const struct lac_facts *facts, const char *part, const char *key,
                          int64_t max)
{
    struct cursor object;
    return enter_part(facts, part, &object) ? number_of(object, key, -1, max) : -1;
}

double lac_setting_real(const struct lac_facts *facts, const char *part, const char *key)
{
    struct cursor object;
    if (!enter_part(facts, part, &object) || !enter(&object, key)) {
        return (double)NAN;
    }
    object.at += *object.at == '"'; /* the recorder writes what is no whole number as text */
    double value = 0.0;
    double unit = 1.0;
    int digits = 0;
    for (bool has_point = false; object.at < object.end && digits <= 15; object.at++) {
        if (*object.at == '.' && !has_point) {
            has_point = true;
        } else if (*object.at >= '0' && *object.at <= '9') {
            value = value * 10.0 + (double)(*object.at - '0');
            unit *= has_point ? 10.0 : 1.0;
            digits++;
        } else {
            break;
        }
    }
    return digits > 0 && digits <= 15 ? value / unit : (double)NAN;
}

bool lac_setting_is(const struct lac_facts *facts, const char *part, const char *key,
                    const char *text)
{
    struct cursor object;
    size_t length = strlen(text);
    return enter_part(facts, part, &object) && enter(&object, key) &&
           (size_t)(object.end - object.at) >= length + 2 && object.at[0] == '"' &&
           memcmp(object.at + 1, text, length) == 0 && object.at[length + 1] == '"';
}

int lac_setting_truth(const struct lac_facts *facts, const char *part, const char *key)
{
    struct cursor object;
    return enter_part(facts, part, &object) ? truth_of(object, key) : -1;
}

const char *lac_setting_text(const struct lac_facts *facts, const char *part, const char *key,
                             const char *allowed)
{
    struct cursor object;
    if (!enter_part(facts, part, &object) || !enter(&object, key) || *object.at != '"') {
        return "";
    }
    const char *first = ++object.at;
    while (object.at < object.end && *object.at != '\0' && strchr(allowed, *object.at)) {
        object.at++;
    }
    bool is_whole = object.at < object.end && *object.at == '"';
    return is_whole
               ? lac_texts_add(&facts->analysis->texts, "%.*s", (int)(object.at - first), first)
               : "";
}

int32_t lac_setting_cores(const struct lac_facts *facts, const char *key)
{
    struct cursor object;
    return enter_part(facts, "host", &object) ? cores_of_list(object, key) : -1;
}

bool lac_setting_cores_apart(const struct lac_facts *facts, const char *key, const char *other)
{
    struct cursor object;
    struct core_list list;
    if (lac_setting_cores(facts, key) < 1 || lac_setting_cores(facts, other) < 1 ||
        !enter_part(facts, "host", &object) || !core_list_open(object, key, &list)) {
        return false;
    }
    while (core_list_next(&list)) {
        struct core_list others;
        (void)core_list_open(object, other, &others);
        while (core_list_next(&others)) {
            if (list.from <= others.to && others.from <= list.to) {
                return false;
            }
        }
    }
    return true;
}

/** Cores that the recorder found the job may use: affinity of the launcher and of the training
 *  process, and the whole cores of a quota. */
static int32_t cores_of_host(const struct lac_facts *facts)
{
    int32_t cores = lac_setting_cores(facts, "cores_allowed");
    int64_t own = lac_setting_count(facts, "settings", "cpu_affinity", 65536);
    double quota = lac_setting_real(facts, "host", "cpu_quota_cores");
    if (own > 0 && (cores < 0 || own < cores)) {
        cores = (int32_t)own;
    }
    if (quota > 0.0 && (cores < 0 || quota < cores)) {
        cores = quota < 1.0 ? 1 : (int32_t)quota;
    }
    return cores;
}

void lac_settings_read(struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    struct lac_analysis *analysis = facts->analysis;
    struct lac_settings *settings = &facts->settings;
    *settings = (struct lac_settings){.batch_size = LAC_UNKNOWN_NS,
                                      .num_workers = -1,
                                      .allowed_cores = -1,
                                      .pin_memory = -1,
                                      .loader_at = ""};
    settings->allowed_cores = cores_of_host(facts);
    analysis->settings_json = "{}";
    uint32_t id = model->info.metadata;
    struct cursor object = {lac_model_str(model, id),
                            lac_model_str(model, id) + lac_strings_length(&model->strings, id)};
    if (!enter(&object, "lacuna") || !enter(&object, "settings") || *object.at != '{') {
        return;
    }
    struct cursor value = object;
    if (!skip_value(&value)) {
        return;
    }
    object.end = value.at;
    analysis->settings_json =
        lac_texts_add(&analysis->texts, "%.*s", (int)(object.end - object.at), object.at);
    settings->batch_size = number_of(object, "batch_size", LAC_UNKNOWN_NS, INT32_MAX);
    settings->num_workers = (int32_t)number_of(object, "num_workers", -1, 4096);
    settings->allowed_cores =
        (int32_t)number_of(object, "allowed_cores", settings->allowed_cores, 65536);
    settings->pin_memory = truth_of(object, "pin_memory");
    settings->loader_at = place_of(facts, object, "loader_at");
    if (settings->batch_size == 0) {
        settings->batch_size = LAC_UNKNOWN_NS;
    }
}
