#include "server/export/sqlite_text.h"

#include "server/export/redact.h"
#include "server/sql/export_sqlite.h"

#include <string.h>

const char *lac_export_sqlite_text(void *context, enum lac_export_text what, const char *text)
{
    struct lac_redactor *redactor = context;
    const bool leaves_out_names = redactor->leave_out[LAC_REDACT_NAMES];
    const char *plain = what == LAC_EXPORT_TEXT_ARGV    ? lac_redact_process(redactor, text)
                        : what == LAC_EXPORT_TEXT_GIVEN ? lac_redact_given(redactor, text, "range")
                        : what == LAC_EXPORT_TEXT_ROW   ? lac_redact_given(redactor, text, "row")
                                                        : lac_redact(redactor, text);
    if ((what == LAC_EXPORT_TEXT_SENTENCE && leaves_out_names) ||
        (what == LAC_EXPORT_TEXT_ARGS && (leaves_out_names || strcmp(plain, text) != 0))) {
        return ""; /* as in the other forms: left out whole */
    }
    return plain;
}
