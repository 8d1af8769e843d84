#include "server/json/settings_json.h"

#include "analysis/model/setting_rows.h"
#include "server/json/json_out.h"

#include <stdint.h>
#include <string.h>

static void write_row(struct lac_json *json, const char *key, const struct lac_setting_rows *rows,
                      uint32_t row)
{
    const struct lac_setting *it = &rows->at[row];
    const char *value = lac_settings_value(rows, row);
    bool is_list = it->type == LAC_SETTING_LIST;

    switch ((enum lac_setting_type)it->type) {
    case LAC_SETTING_FALSE:
    case LAC_SETTING_TRUE:
        lac_json_bool(json, key, it->type == LAC_SETTING_TRUE);
        return;
    case LAC_SETTING_INTEGER:
    case LAC_SETTING_REAL:
        lac_json_raw(json, key, value, strlen(value));
        return;
    case LAC_SETTING_TEXT:
        lac_json_text(json, key, value);
        return;
    case LAC_SETTING_LIST:
    case LAC_SETTING_OBJECT:
        lac_json_open(json, key, is_list ? '[' : '{');
        for (uint32_t at = row + 1; at < it->end; at = rows->at[at].end) {
            write_row(json, is_list ? NULL : lac_settings_name(rows, at), rows, at);
        }
        lac_json_close(json, is_list ? ']' : '}');
        return;
    case LAC_SETTING_NULL:
    case LAC_SETTING_TYPE_COUNT_:
        lac_json_null(json, key);
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
    write_row(json, key, rows, root);
}
