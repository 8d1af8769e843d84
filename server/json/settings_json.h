#ifndef LAC_SERVER_JSON_SETTINGS_JSON_H
#define LAC_SERVER_JSON_SETTINGS_JSON_H

#include "analysis/model/setting_rows.h"
#include "server/json/json_out.h"

/** Write the job's settings as the object that was recorded, {} when there is none. Numbers are
 *  written as they were. @param key as of lac_json_open() */
void lac_settings_write_json(struct lac_json *json, const char *key,
                             const struct lac_setting_rows *rows);

#endif
