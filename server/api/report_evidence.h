#ifndef LAC_SERVER_API_REPORT_EVIDENCE_H
#define LAC_SERVER_API_REPORT_EVIDENCE_H

/* The evidence of a report's parts: what is kept with it, or taken of the traces now. */

#include "server/api/app.h"
#include "server/export/redact.h"
#include "server/reports/document.h"
#include "server/reports/part.h"

#include <stdbool.h>
#include <stddef.h>

struct lac_report_evidence {
    struct lac_app *app;
    const struct lac_principal *who; /**< whose rights decide what may be taken */
    const char *report;              /**< NULL: not saved yet */
    bool takes;                      /**< what is not kept is taken now */
};

/** For lac_document.evidence, of a struct lac_report_evidence. */
lac_document_evidence_fn lac_report_evidence_get;

/** Take it now. @return a snapshot that the caller frees, or NULL: ret_why says why */
char *lac_report_evidence_take(struct lac_app *app, const struct lac_principal *who,
                               const struct lac_report_part *part, char *ret_why,
                               size_t why_capacity);

/** Names of the hosts in all parts of a text that are kept, '\n' after each. */
void lac_report_evidence_hosts(const struct lac_report_evidence *evidence, const char *markdown,
                               struct lac_buffer *out);

/** Who asks: the name that a change is put down to. */
const char *lac_api_asker(const struct lac_request *request);

#endif
