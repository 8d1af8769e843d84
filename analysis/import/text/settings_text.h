#ifndef LAC_ANALYSIS_IMPORT_TEXT_SETTINGS_TEXT_H
#define LAC_ANALYSIS_IMPORT_TEXT_SETTINGS_TEXT_H

/* The one reader of settings as text: "lacuna" > "settings" and "lacuna" > "host" of a trace's
 * metadata, a JSON object. */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

/**
 * Fill model->settings from the text of info.metadata. Text that is no JSON gives no rows. What
 * goes beyond the limits of setting_rows.h is left out, as is a name that the object has already, and
 * is counted in the import report.
 *
 * @return LAC_OK or LAC_ERR_NOMEM
 * Cost: once over the metadata.
 */
LAC_MUST_USE enum lac_status lac_settings_read_text(struct lac_model *model);

#endif
