#ifndef LAC_ANALYSIS_COMPARE_SETTINGS_FLAT_H
#define LAC_ANALYSIS_COMPARE_SETTINGS_FLAT_H

/*
 * The settings of an analysis, one by one: nested ones with dotted names, switches as "on" and
 * "off", lists as their text, nulls not at all.
 *
 * The text came from a trace: anything that is no JSON ends the reading, and what was read until
 * then was told.
 */

/** Told each setting; both texts are borrowed for the call. */
typedef void (*lac_setting_sink)(void *context, const char *key, const char *value);

void lac_settings_each(const char *settings_json, lac_setting_sink sink, void *context);

#endif
