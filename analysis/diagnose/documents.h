#ifndef LAC_ANALYSIS_DIAGNOSE_DOCUMENTS_H
#define LAC_ANALYSIS_DIAGNOSE_DOCUMENTS_H

/*
 * A page for each finding, for people: what it means, how it is detected with every threshold, how
 * its gain is computed, what to change, when it is wrong, and sources. The pages are the Markdown
 * files beside the finders; the build puts them in and stops when a finding has none.
 */

#include "analysis/diagnose/result/finding_types.h"

struct lac_finding_document {
    const char *title;    /**< of its first line, without the id */
    const char *markdown; /**< whole, first line included; UTF-8 */
};

/** By kind; static. */
extern const struct lac_finding_document lac_finding_documents[LAC_FINDING_COUNT_];

/** The kind with this id, LAC_FINDING_COUNT_ when there is none. O(kinds). */
enum lac_finding_kind lac_finding_kind_of(const char *id);

#endif
