#ifndef LAC_SERVER_REPORTS_EVIDENCE_H
#define LAC_SERVER_REPORTS_EVIDENCE_H

/* Taking the snapshot of a part (snapshot.h) from traces that are open. Each appends to a buffer
 * whose limit the caller sets; failures stick there. */

#include "analysis/compare/compare.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/reports/part.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

/** A trace with what was found in it. Borrowed. */
struct lac_evidence_source {
    struct lac_trace_file *file;
    const struct lac_analysis *analysis;
};

/** @return LAC_ERR_NOT_FOUND when the trace has no such finding */
LAC_MUST_USE enum lac_status lac_evidence_finding(struct lac_buffer *out,
                                                  const struct lac_evidence_source *source,
                                                  const char *id, struct lac_error *reterr);
/** At most LAC_SNAPSHOT_BOXES_MAX boxes: what is thinner than a pixel is put together. */
LAC_MUST_USE enum lac_status lac_evidence_window(struct lac_buffer *out,
                                                 const struct lac_evidence_source *source,
                                                 int64_t from_ns, int64_t to_ns,
                                                 struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_evidence_flame(struct lac_buffer *out,
                                                const struct lac_evidence_source *source,
                                                struct lac_error *reterr);
/** @param of "kernels", "idle", "plan" or "settings" */
void lac_evidence_table(struct lac_buffer *out, const struct lac_evidence_source *source,
                        const char *of);
LAC_MUST_USE enum lac_status lac_evidence_compare(struct lac_buffer *out,
                                                  const struct lac_compare_side sides[2],
                                                  struct lac_error *reterr);
/** Of what the catalog says. @param of "step", "rate" or "not_computing" */
void lac_evidence_series(struct lac_buffer *out, const struct lac_trace_row *rows, unsigned count,
                         const char *of);

/** The flame graph of a report: what the import kept, or made now. The caller destroys it. */
LAC_MUST_USE enum lac_status lac_evidence_flame_of(struct lac_trace_file *file,
                                                   struct lac_flame **ret_flame,
                                                   struct lac_error *reterr);

#endif
