/* Where a change is made: the line of the job that the trace's stacks show, for findings that no
 * setting has told it of. */

#include "analysis/diagnose/facts/recorded/code_places.h"
#include "analysis/diagnose/findings/findings.h"

#include <stdint.h>

/** The host slice that the first evidence of it is, or launched, or LAC_NONE. */
static uint32_t host_slice(const struct lac_facts *facts, const struct lac_finding *finding)
{
    const struct lac_model *model = facts->model;
    for (uint32_t i = 0; i < finding->evidence_count; i++) {
        uint32_t slice = finding->evidence[i].slice;
        uint32_t track = finding->evidence[i].track;
        if (slice == LAC_NONE || track == LAC_NONE) {
            continue;
        }
        uint32_t host =
            model->tracks[track].kind == LAC_TRACK_STREAM ? model->slices.link[slice] : slice;
        if (host != LAC_NONE) {
            return host;
        }
    }
    return LAC_NONE;
}

/** Kinds whose evidence stands in the line that is changed. */
static bool is_where_its_evidence_is(enum lac_finding_kind kind)
{
    return kind == LAC_FINDING_SYNC_STALL || kind == LAC_FINDING_BLOCKING_COPY ||
           kind == LAC_FINDING_PAGEABLE_COPY || kind == LAC_FINDING_UNFUSED_ATTENTION ||
           kind == LAC_FINDING_RECOMPUTE;
}

/** What of the host shows where the change is made, or LAC_NONE. */
static uint32_t slice_of(const struct lac_facts *facts, const struct lac_finding *finding)
{
    if (finding->kind == LAC_FINDING_SLOW_OPTIMIZER && facts->optimizer_marks.count > 0) {
        return facts->optimizer_marks.at[0].slice;
    }
    if (is_where_its_evidence_is(finding->kind)) {
        return host_slice(facts, finding);
    }
    /* a wait for data is in the line that asks for a batch */
    bool is_wait = lac_finding_type(finding->kind)->is_about_loading && facts->wait_marks.count > 0;
    return is_wait ? facts->wait_marks.at[0].slice : LAC_NONE;
}

void lac_findings_place(const struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        struct lac_finding *finding = &analysis->findings[i];
        uint32_t slice = slice_of(facts, finding);
        if (finding->where[0] == '\0' && finding->change[0] != '\0' && slice != LAC_NONE) {
            finding->where = lac_code_place(facts, slice);
        }
    }
}
