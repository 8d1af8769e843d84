#ifndef LAC_SERVER_EXPORT_SQLITE_TEXT_H
#define LAC_SERVER_EXPORT_SQLITE_TEXT_H

#include "server/sql/export_sqlite.h"

/** For lac_export_sqlite.text: the text as it may leave. @param context a struct lac_redactor */
const char *lac_export_sqlite_text(void *context, enum lac_export_text what, const char *text);

#endif
