/* What a profile of the host can say: the functions that most of it lies in. */

#include "analysis/diagnose/wording/wording.h"
#include "analysis/model/model.h"

#include <stdint.h>
#include <stdlib.h>

enum { OPEN_MAX = 4096, TOP = 3 };

/* Add each slice's own length, without what it contains, to its name. */
static void add_own(const struct lac_model *model, const struct lac_track *track, int64_t *own_ns)
{
    const struct lac_slices *slices = &model->slices;
    uint64_t open[OPEN_MAX];
    uint32_t depth = 0;
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        while (depth > 0 && slices->start_ns[open[depth - 1]] + slices->dur_ns[open[depth - 1]] <=
                                slices->start_ns[i]) {
            depth--;
        }
        if (depth > 0) {
            own_ns[slices->name[open[depth - 1]]] -= slices->dur_ns[i];
        }
        own_ns[slices->name[i]] += slices->dur_ns[i];
        if (depth < OPEN_MAX) {
            open[depth++] = i;
        }
    }
}

static void find_top(const int64_t *own_ns, uint32_t count, uint32_t *top)
{
    for (int rank = 0; rank < TOP; rank++) {
        top[rank] = 0;
        for (uint32_t name = 1; name < count; name++) {
            bool is_taken = false;
            for (int i = 0; i < rank; i++) {
                is_taken = is_taken || top[i] == name;
            }
            if (!is_taken && own_ns[name] > own_ns[top[rank]]) {
                top[rank] = name;
            }
        }
    }
}

const char *lac_profile_top(struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    struct lac_text **texts = &facts->analysis->texts;
    int64_t *own_ns = calloc((size_t)model->strings.count + 1, sizeof(*own_ns));
    uint32_t top[TOP];
    int64_t total_ns = 0;
    if (own_ns == NULL) {
        return NULL;
    }
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        if (model->tracks[t].kind == LAC_TRACK_THREAD) {
            add_own(model, &model->tracks[t], own_ns);
        }
    }
    for (uint32_t name = 0; name < model->strings.count; name++) {
        total_ns += own_ns[name];
    }
    find_top(own_ns, model->strings.count, top);
    const char *said = "";
    for (int rank = 0; rank < TOP && top[rank] != 0 && total_ns > 0; rank++) {
        const double pct = 100 * (double)own_ns[top[rank]] / (double)total_ns;
        said = rank == 0 ? lac_texts_add(texts, "Most time is in %s itself (%s)",
                                         lac_model_str(model, top[rank]), lac_format_pct(pct).text)
                         : lac_texts_add(texts, "%s, %s (%s)", said,
                                         lac_model_str(model, top[rank]), lac_format_pct(pct).text);
    }
    free(own_ns);
    return said;
}
