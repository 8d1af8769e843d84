#include "analysis/diagnose/documents.h"

#include "analysis/diagnose/result/finding_types.h"

#include <assert.h>
#include <string.h>

enum lac_finding_kind lac_finding_kind_of(const char *id)
{
    assert(id != NULL);
    int kind = 0;
    while (kind < LAC_FINDING_COUNT_ &&
           strcmp(lac_finding_type((enum lac_finding_kind)kind)->id, id) != 0) {
        kind++;
    }
    return (enum lac_finding_kind)kind;
}
