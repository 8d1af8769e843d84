#include "analysis/compare/settings_flat.h"

#include "analysis/model/setting_rows.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { KEY_BYTES = 192, VALUE_BYTES = 400 };

/** Text in a room: what does not fit is left out. */
struct line {
    char text[VALUE_BYTES];
    size_t used;
};

static void add(struct line *line, const char *text)
{
    int length = snprintf(line->text + line->used, sizeof(line->text) - line->used, "%s", text);
    size_t room = sizeof(line->text) - line->used - 1;
    line->used += (size_t)length < room ? (size_t)length : room;
}

/** The value of a row; lists and objects inside lists as JSON has them. */
static void say(const struct lac_setting_rows *rows, uint32_t row, struct line *line)
{
    const struct lac_setting *it = &rows->at[row];
    bool is_list = it->type == LAC_SETTING_LIST;
    bool is_inside = rows->at[it->parent].type == LAC_SETTING_LIST || line->used > 0;
    switch ((enum lac_setting_type)it->type) {
    case LAC_SETTING_NULL:
        add(line, "null");
        return;
    case LAC_SETTING_FALSE:
    case LAC_SETTING_TRUE:
        add(line, is_inside                      ? it->type == LAC_SETTING_TRUE ? "true" : "false"
                  : it->type == LAC_SETTING_TRUE ? "on"
                                                 : "off");
        return;
    case LAC_SETTING_TEXT:
        add(line, is_inside ? "\"" : "");
        add(line, lac_settings_value(rows, row));
        add(line, is_inside ? "\"" : "");
        return;
    case LAC_SETTING_LIST:
    case LAC_SETTING_OBJECT:
        add(line, is_list ? "[" : "{");
        for (uint32_t at = row + 1; at < it->end; at = rows->at[at].end) {
            add(line, at > row + 1 ? "," : "");
            if (!is_list) {
                add(line, "\"");
                add(line, lac_settings_name(rows, at));
                add(line, "\":");
            }
            say(rows, at, line);
        }
        add(line, is_list ? "]" : "}");
        return;
    case LAC_SETTING_INTEGER:
    case LAC_SETTING_REAL:
    case LAC_SETTING_TYPE_COUNT_:
        add(line, lac_settings_value(rows, row));
        return;
    }
}

/** "optimizer.lr": the names from the root's member to the row. */
static void key_of(const struct lac_setting_rows *rows, uint32_t row, char key[KEY_BYTES])
{
    uint32_t path[LAC_SETTINGS_DEPTH_MAX + 1];
    uint32_t depth = 0;
    size_t used = 0;
    for (; rows->at[row].parent != UINT32_MAX; row = rows->at[row].parent) {
        path[depth++] = row;
    }
    while (depth > 0 && used < KEY_BYTES) {
        int length = snprintf(key + used, KEY_BYTES - used, "%s%s", used > 0 ? "." : "",
                              lac_settings_name(rows, path[--depth]));
        used += (size_t)length;
    }
}

void lac_settings_each(const struct lac_setting_rows *rows, lac_setting_sink sink, void *context)
{
    uint32_t root = lac_settings_find(rows, UINT32_MAX, "settings");
    uint32_t end = root == UINT32_MAX ? 0 : rows->at[root].end;
    for (uint32_t row = root + 1; row < end;) {
        const struct lac_setting *it = &rows->at[row];
        if (it->type == LAC_SETTING_OBJECT) {
            row++; /* its members come next */
            continue;
        }
        if (it->type != LAC_SETTING_NULL) {
            char key[KEY_BYTES];
            struct line line = {.used = 0};
            key_of(rows, row, key);
            say(rows, row, &line);
            sink(context, key, line.text);
        }
        row = it->end;
    }
}
