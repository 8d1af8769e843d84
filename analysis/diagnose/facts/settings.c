/* What the hook (or the simulator) saw of the job's settings and of its host, by name. A value of
 * another type, or out of bounds, means "not recorded". */

#include "analysis/diagnose/facts/facts.h"
#include "analysis/model/setting_rows.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/** The row of a member of "settings" or "host", or NULL. */
static const struct lac_setting *row_of(const struct lac_facts *facts, const char *part,
                                        const char *key)
{
    const struct lac_setting_rows *rows = &facts->model->settings;
    uint32_t root = lac_settings_find(rows, LAC_NONE, part);
    uint32_t row = root == LAC_NONE ? LAC_NONE : lac_settings_find(rows, root, key);
    return row == LAC_NONE ? NULL : &rows->at[row];
}

/** Its value when it is a text, else NULL. */
static const char *text_of(const struct lac_facts *facts, const char *part, const char *key)
{
    const struct lac_setting *row = row_of(facts, part, key);
    return row != NULL && row->type == LAC_SETTING_TEXT ? facts->model->settings.texts + row->value
                                                        : NULL;
}

int64_t lac_setting_count(const struct lac_facts *facts, const char *part, const char *key,
                          int64_t max)
{
    const struct lac_setting *row = row_of(facts, part, key);
    if (row == NULL || (row->type != LAC_SETTING_INTEGER && row->type != LAC_SETTING_REAL)) {
        return -1;
    }
    const char *at = facts->model->settings.texts + row->value;
    int64_t value = *at == '-' ? -1 : 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (*at - '0');
        if (value > max) {
            return -1;
        }
    }
    return value;
}

double lac_setting_real(const struct lac_facts *facts, const char *part, const char *key)
{
    /* the recorder writes what is no whole number as text */
    const struct lac_setting *row = row_of(facts, part, key);
    const char *at = row != NULL ? facts->model->settings.texts + row->value : "";
    double value = 0.0;
    double unit = 1.0;
    int digits = 0;
    for (bool has_point = false; digits <= 15; at++) {
        if (*at == '.' && !has_point) {
            has_point = true;
        } else if (*at >= '0' && *at <= '9') {
            value = value * 10.0 + (double)(*at - '0');
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
    const char *value = text_of(facts, part, key);
    return value != NULL && strcmp(value, text) == 0;
}

int lac_setting_truth(const struct lac_facts *facts, const char *part, const char *key)
{
    const struct lac_setting *row = row_of(facts, part, key);
    return row == NULL                      ? -1
           : row->type == LAC_SETTING_TRUE  ? 1
           : row->type == LAC_SETTING_FALSE ? 0
                                            : -1;
}

const char *lac_setting_text(const struct lac_facts *facts, const char *part, const char *key,
                             const char *allowed)
{
    const char *value = text_of(facts, part, key);
    bool is_whole = value != NULL && value[strspn(value, allowed)] == '\0';
    return is_whole ? lac_texts_add(&facts->analysis->texts, "%s", value) : "";
}

const char *lac_setting_line(const struct lac_facts *facts, const char *part, const char *key)
{
    const char *value = text_of(facts, part, key);
    for (const char *at = value; at != NULL && *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f) {
            return "";
        }
    }
    return value != NULL ? lac_texts_add(&facts->analysis->texts, "%s", value) : "";
}

/** "train.py:83" of a path with a line; plain characters only. */
static const char *place_of(const struct lac_facts *facts, const char *key)
{
    const char *value = text_of(facts, "settings", key);
    for (const char *at = value; at != NULL && *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == '"' || *at == '\\') {
            return "";
        }
    }
    if (value == NULL) {
        return "";
    }
    const char *slash = strrchr(value, '/');
    return lac_texts_add(&facts->analysis->texts, "%s", slash != NULL ? slash + 1 : value);
}

/** A list of cores as the kernel writes it, "0-3,8". */
struct core_list {
    const char *at;
    int64_t from, to; /**< the range that core_list_next() found */
    bool is_at_end;
};

static bool core_number(const char **at, int64_t *ret_number)
{
    const char *first = *at;
    int64_t number = 0;
    for (; **at >= '0' && **at <= '9' && number <= 65536; (*at)++) {
        number = number * 10 + (**at - '0');
    }
    *ret_number = number;
    return *at > first && number <= 65536;
}

/** The next range; false at the end, and where it is no list: then is_at_end is false. */
static bool core_list_next(struct core_list *list)
{
    if (list->is_at_end || !core_number(&list->at, &list->from)) {
        return false;
    }
    list->to = list->from;
    if (*list->at == '-') {
        list->at++;
        if (!core_number(&list->at, &list->to) || list->to < list->from) {
            return false;
        }
    }
    list->is_at_end = *list->at == '\0';
    return list->is_at_end || *list->at++ == ',';
}

int32_t lac_setting_cores(const struct lac_facts *facts, const char *key)
{
    struct core_list list = {.at = text_of(facts, "host", key)};
    int64_t cores = 0;
    if (list.at == NULL) {
        return -1;
    }
    while (core_list_next(&list)) {
        cores += list.to - list.from + 1;
    }
    return list.is_at_end && cores <= 65536 ? (int32_t)cores : -1;
}

bool lac_setting_cores_apart(const struct lac_facts *facts, const char *key, const char *other)
{
    if (lac_setting_cores(facts, key) < 1 || lac_setting_cores(facts, other) < 1) {
        return false;
    }
    struct core_list list = {.at = text_of(facts, "host", key)};
    while (core_list_next(&list)) {
        struct core_list others = {.at = text_of(facts, "host", other)};
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

bool lac_settings_are_recorded(const struct lac_facts *facts)
{
    const struct lac_setting_rows *rows = &facts->model->settings;
    uint32_t root = lac_settings_find(rows, LAC_NONE, "settings");
    return root != LAC_NONE && rows->at[root].end > root + 1;
}

void lac_settings_read(struct lac_facts *facts)
{
    struct lac_settings *settings = &facts->settings;
    int64_t batch_size = lac_setting_count(facts, "settings", "batch_size", INT32_MAX);
    int64_t allowed_cores = lac_setting_count(facts, "settings", "allowed_cores", 65536);
    *settings = (struct lac_settings){
        .batch_size = batch_size > 0 ? batch_size : LAC_UNKNOWN_NS,
        .num_workers = (int32_t)lac_setting_count(facts, "settings", "num_workers", 4096),
        .allowed_cores = allowed_cores >= 0 ? (int32_t)allowed_cores : cores_of_host(facts),
        .pin_memory = (int8_t)lac_setting_truth(facts, "settings", "pin_memory"),
        .loader_at = place_of(facts, "loader_at"),
    };
}
