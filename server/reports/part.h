#ifndef LAC_SERVER_REPORTS_PART_H
#define LAC_SERVER_REPORTS_PART_H

/*
 * A live part of a report: one line of a fenced block `lacuna`.
 *
 *   window trace=ID from=NS to=NS        the timeline between two times
 *   flame trace=ID                       where the GPU's time goes, by operator
 *   finding trace=ID id=FINDING          one finding in full
 *   table trace=ID of=kernels|idle|plan|settings
 *   compare a=ID b=ID                    before and after
 *   series traces=ID,ID,... of=step|rate|not_computing
 *
 * Its evidence is kept with the report as a snapshot under the line as lac_part_line() writes it.
 */

#include "analysis/model/status.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stdint.h>

enum lac_part_kind {
    LAC_PART_WINDOW = 0,
    LAC_PART_FLAME,
    LAC_PART_FINDING,
    LAC_PART_TABLE,
    LAC_PART_COMPARE,
    LAC_PART_SERIES,
    LAC_PART_KIND_COUNT_
};
/** "window", ... */
const char *lac_part_kind_name(enum lac_part_kind kind);

enum { LAC_PART_TRACES_MAX = 24, LAC_PART_WORD_BYTES = 48 };

struct lac_report_part {
    enum lac_part_kind kind;
    char trace[LAC_PART_TRACES_MAX][LAC_ID_SIZE]; /**< of a comparison two */
    unsigned trace_count;
    int64_t from_ns, to_ns;
    char of[LAC_PART_WORD_BYTES]; /**< table, series; of a finding its id */
};

/** @param line without its end @return LAC_OK, or LAC_ERR_CORRUPT with a sentence for its writer */
LAC_MUST_USE enum lac_status lac_part_read(const char *line, struct lac_report_part *ret_part,
                                           struct lac_error *reterr);

/** The one way to write it. @param out LAC_REPORT_PART_BYTES */
void lac_part_line(const struct lac_report_part *part, char *out, size_t capacity_bytes);

#endif
