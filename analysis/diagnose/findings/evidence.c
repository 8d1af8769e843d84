/* What a finding points at: slices, gaps, what stands around them. */

#include "analysis/diagnose/findings/findings.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

const char *lac_track_label(const struct lac_facts *facts, uint32_t track)
{
    const struct lac_model *model = facts->model;
    const struct lac_track *at = &model->tracks[track];
    const char *name = lac_model_str(model, at->name);
    if (name[0] != '\0') {
        return lac_texts_add(&facts->analysis->texts, "%.80s", name);
    }
    return lac_texts_add(&facts->analysis->texts, "%s %.40s", lac_track_kind_name(at->kind),
                         lac_model_str(model, at->id_text));
}

void lac_evidence_slice(const struct lac_facts *facts, struct lac_finding *finding, uint64_t slice,
                        const char *text)
{
    if (finding->evidence_count == LAC_EVIDENCE_MAX) {
        return;
    }
    const struct lac_slices *slices = &facts->model->slices;
    uint32_t track = lac_model_track_of(facts->model, slice);
    finding->evidence[finding->evidence_count++] =
        (struct lac_evidence){.track = track,
                              .slice = (uint32_t)slice,
                              .track_name = lac_track_label(facts, track),
                              .t0_ns = slices->start_ns[slice],
                              .t1_ns = slices->start_ns[slice] + slices->dur_ns[slice],
                              .text = text};
}

void lac_evidence_gap(const struct lac_facts *facts, struct lac_finding *finding, uint64_t gap,
                      const char *text)
{
    if (finding->evidence_count == LAC_EVIDENCE_MAX) {
        return;
    }
    const struct lac_gap *at = &facts->analysis->gaps[gap];
    long long id = (long long)facts->analysis->devices[at->device].id;
    finding->evidence[finding->evidence_count++] =
        (struct lac_evidence){.track = LAC_NONE,
                              .slice = LAC_NONE,
                              .track_name = lac_texts_add(&facts->analysis->texts, "GPU %lld", id),
                              .t0_ns = at->start_ns,
                              .t1_ns = at->start_ns + at->dur_ns,
                              .text = text};
}

/** Length of the gap's pieces of that cause inside kept steps. */
static int64_t cause_in_gap(const struct lac_facts *facts, const struct lac_gap *gap,
                            enum lac_cause cause)
{
    const struct lac_analysis *analysis = facts->analysis;
    int64_t sum_ns = 0;
    for (uint64_t p = gap->first_piece; p < gap->first_piece + gap->piece_count; p++) {
        if (analysis->pieces[p].cause == cause) {
            int64_t start_ns = analysis->pieces[p].start_ns;
            sum_ns += lac_spans_length_inside(&facts->kept, start_ns,
                                              start_ns + lac_gap_piece_dur_ns(analysis, p));
        }
    }
    return sum_ns;
}

/** The profiler's name of a wait for a batch is long: "enumerate(DataLoader)#...__next__". */
static const char *loader_name(const char *name)
{
    static const char prefix[] = "enumerate(DataLoader)";
    return strncmp(name, prefix, sizeof(prefix) - 1) == 0 ? "DataLoader next" : name;
}

void lac_evidence_rooted_gap(const struct lac_facts *facts, struct lac_finding *finding,
                             uint64_t index, int64_t idle_ns)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_model *model = facts->model;
    const struct lac_gap *gap = &analysis->gaps[index];
    char root[160];
    lac_gap_root_text(analysis, model, gap, root, sizeof(root));
    lac_evidence_gap(facts, finding, index,
                     lac_texts_add(&analysis->texts, "%s idle%s%s", lac_format_ns(idle_ns).text,
                                   root[0] != '\0' ? ": " : "", root));
    if (gap->root != LAC_NONE) {
        lac_evidence_slice(
            facts, finding, gap->root,
            lac_texts_add(&analysis->texts, "%.80s, %s",
                          loader_name(lac_model_str(model, model->slices.name[gap->root])),
                          lac_format_ns(model->slices.dur_ns[gap->root]).text));
    }
}

void lac_evidence_gaps(const struct lac_facts *facts, struct lac_finding *finding,
                       enum lac_cause cause, int most)
{
    enum { MOST = 4 };
    struct {
        int64_t ns;
        uint64_t gap;
    } top[MOST] = {{0}};
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    most = most < MOST ? most : MOST;
    int count = 0;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        if (count == most && gap->dur_ns <= top[count - 1].ns) {
            continue;
        }
        int64_t ns = cause_in_gap(facts, gap, cause);
        if (ns == 0 || (count == most && ns <= top[count - 1].ns)) {
            continue;
        }
        int at = count < most ? count++ : count - 1;
        for (; at > 0 && top[at - 1].ns < ns; at--) {
            top[at] = top[at - 1];
        }
        top[at].ns = ns;
        top[at].gap = g;
    }
    for (int i = 0; i < count; i++) {
        lac_evidence_rooted_gap(facts, finding, top[i].gap, top[i].ns);
    }
}

double lac_idle_in_short_pieces(const struct lac_facts *facts, enum lac_cause cause,
                                int64_t limit_ns)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    double sum_ns = 0.0;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        for (uint64_t p = gap->first_piece; p < gap->first_piece + gap->piece_count; p++) {
            int64_t dur_ns = lac_gap_piece_dur_ns(analysis, p);
            if (analysis->pieces[p].cause == cause && dur_ns < limit_ns) {
                int64_t start_ns = analysis->pieces[p].start_ns;
                sum_ns +=
                    (double)lac_spans_length_inside(&facts->kept, start_ns, start_ns + dur_ns);
            }
        }
    }
    return sum_ns / (double)analysis->step_kept_count;
}

const char *lac_enclosing_name(const struct lac_model *model, uint64_t slice)
{
    enum { LOOK_BACK = 4096 };
    const struct lac_slices *slices = &model->slices;
    const struct lac_track *track = &model->tracks[lac_model_track_of(model, slice)];
    int64_t end_ns = slices->start_ns[slice] + slices->dur_ns[slice];
    for (uint64_t back = 1; back <= LOOK_BACK && slice >= track->first + back; back++) {
        uint64_t at = slice - back;
        bool is_around = slices->start_ns[at] + slices->dur_ns[at] >= end_ns;
        bool is_name = slices->kind[at] == LAC_SLICE_OP || slices->kind[at] == LAC_SLICE_RANGE;
        if (is_around && is_name) {
            return lac_model_str(model, slices->name[at]);
        }
    }
    return "";
}
