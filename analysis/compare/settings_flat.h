#ifndef LAC_ANALYSIS_COMPARE_SETTINGS_FLAT_H
#define LAC_ANALYSIS_COMPARE_SETTINGS_FLAT_H

/* The settings of a job one by one, as people read them: nested ones with dotted names, switches as
 * "on" and "off", lists on one line, nulls not at all. */

#include "analysis/model/setting_rows.h"

/** Told each setting; both texts are borrowed for the call, and cut where they are very long. */
typedef void (*lac_setting_sink)(void *context, const char *key, const char *value);

void lac_settings_each(const struct lac_setting_rows *rows, lac_setting_sink sink, void *context);

#endif
