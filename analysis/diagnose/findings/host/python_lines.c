/* The lines of Python that the host was in, said in each finding that blames it. */

#include "analysis/diagnose/facts/recorded/python_samples.h"
#include "analysis/diagnose/findings/findings.h"

#include <stdint.h>
#include <stdlib.h>

/** Time of kept steps in which the device was idle for that cause. */
static enum lac_status idle_by(const struct lac_facts *facts, enum lac_cause cause,
                               struct lac_spans *result)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    struct lac_spans all = {0};
    enum lac_status status = LAC_OK;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        for (uint64_t p = gap->first_piece; p < gap->first_piece + gap->piece_count && !status;
             p++) {
            if (analysis->pieces[p].cause == cause) {
                int64_t start_ns = analysis->pieces[p].start_ns;
                status =
                    lac_spans_add(&all, start_ns, start_ns + lac_gap_piece_dur_ns(analysis, p));
            }
        }
    }
    if (!status) {
        status = lac_spans_intersect(&all, &facts->kept, result);
    }
    lac_spans_done(&all);
    return status;
}

/** Whether it is the host whose time the finding is about. */
static bool blames_host(const struct lac_facts *facts, const struct lac_finding *finding)
{
    const enum lac_cause cause = lac_finding_type(finding->kind)->cause;
    if (finding->kind ==
        LAC_FINDING_PYTHON_FRAME) { /* names its line by calls that were recorded */
        return false;
    }
    if (cause == LAC_CAUSE_DATA_WAIT) {
        return facts->analysis->loader.num_workers == 0;
    }
    return cause == LAC_CAUSE_SYNC || cause == LAC_CAUSE_LAUNCH || cause == LAC_CAUSE_HOST ||
           cause == LAC_CAUSE_ALLOCATOR || cause == LAC_CAUSE_UNATTRIBUTED;
}

enum lac_status lac_findings_tell_lines(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const uint32_t track = facts->python_samples_track;
    enum lac_status status = LAC_OK;
    for (uint32_t i = 0; i < analysis->finding_count && track != LAC_NONE && !status; i++) {
        struct lac_finding *finding = &analysis->findings[i];
        struct lac_spans idle = {0};
        struct lac_python_lines lines = {0};
        if (analysis->main_device == LAC_NONE || !blames_host(facts, finding)) {
            continue;
        }
        status = idle_by(facts, lac_finding_type(finding->kind)->cause, &idle);
        if (!status) {
            status = lac_python_lines_collect(facts, &idle, &lines);
        }
        const char *shares = status ? "" : lac_python_lines_text(facts, &lines, true);
        if (shares[0] != '\0' && lac_python_samples_of(lines.inside_ns) >= LAC_PYTHON_SAMPLES_MIN) {
            const char *text =
                lac_texts_add(&analysis->texts, "%s of %llu samples of Python in that time", shares,
                              (unsigned long long)lac_python_samples_of(lines.inside_ns));
            finding->why = lac_texts_add(&analysis->texts, "%s%s%s.", finding->why,
                                         finding->why[0] != '\0' ? " " : "", text);
            if (lines.at[0].longest != LAC_NONE) {
                lac_evidence_slice(facts, finding, lines.at[0].longest, text);
            }
        }
        free(lines.at);
        lac_spans_done(&idle);
    }
    return status;
}
