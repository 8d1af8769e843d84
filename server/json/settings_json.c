#include "server/json/settings_json.h"

#include "analysis/model/setting_rows.h"
#include "server/base/buffer.h"
#include "server/json/json_out.h"

#include <stdint.h>
#include <string.h>

/** A name from a trace: not ours, so it is escaped. */
static void write_name(struct lac_json *json, const char *name)
{
    lac_json_text(json, NULL, name);
    lac_buffer_add(json->out, ":", 1);
    json->needs_comma = false;
}

static void write_row(struct lac_json *json, const struct lac_setting_rows *rows, uint32_t row)
{
    const struct lac_setting *it = &rows->at[row];
    const char *value = lac_settings_value(rows, row);
    bool is_list = it->type == LAC_SETTING_LIST;

    switch ((enum lac_setting_type)it->type) {
    case LAC_SETTING_FALSE:
    case LAC_SETTING_TRUE:
        lac_json_bool(json, NULL, it->type == LAC_SETTING_TRUE);
        return;
    case LAC_SETTING_INTEGER:
    case LAC_SETTING_REAL:
        lac_json_raw(json, NULL, value, strlen(value));
        return;
    case LAC_SETTING_TEXT:
        lac_json_text(json, NULL, value);
        return;
    case LAC_SETTING_LIST:
    case LAC_SETTING_OBJECT:
        lac_json_open(json, NULL, is_list ? '[' : '{');
        for (uint32_t at = row + 1; at < it->end; at = rows->at[at].end) {
            if (!is_list) {
                write_name(json, lac_settings_name(rows, at));
            }
            write_row(json, rows, at);
        }
        lac_json_close(json, is_list ? ']' : '}');
        return;
    case LAC_SETTING_NULL:
    case LAC_SETTING_TYPE_COUNT_:
        lac_json_null(json, NULL);
        return;
    }
}

void lac_settings_write_json(struct lac_json *json, const char *key,
                             const struct lac_setting_rows *rows)
{
    uint32_t root = lac_settings_find(rows, UINT32_MAX, "settings");

    if (root == UINT32_MAX) {
        lac_json_open(json, key, '{');
        lac_json_close(json, '}');
        return;
    }
    if (key != NULL) {
        write_name(json, key);
    }
    write_row(json, rows, root);
}
