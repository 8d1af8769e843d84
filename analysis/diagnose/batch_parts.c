/* What a batch spends its time on: computing or waiting, and which parts of it. */

#include "analysis/diagnose/findings.h"

#include <stdint.h>
#include <string.h>

enum { PARTS_MAX = 32, PARTS_SAID = 3 };

struct part {
    const char *name;
    int64_t total_ns;
};

/** Time of each named part inside fetches; `loader.item` is the sum of others and left out. */
static uint32_t sum_parts(const struct lac_diagnosis *diagnosis, struct part parts[PARTS_MAX])
{
    const struct lac_model *model = diagnosis->model;
    uint32_t count = 0;
    for (uint64_t i = 0; i < diagnosis->loader_parts.count; i++) {
        const struct lac_mark *mark = &diagnosis->loader_parts.at[i];
        const char *name = lac_model_str(model, model->slices.name[mark->slice]);
        if (strcmp(name, "loader.item") == 0 || strcmp(name, "loader.batch") == 0) {
            continue;
        }
        uint32_t p = 0;
        while (p < count && strcmp(parts[p].name, name) != 0) {
            p++;
        }
        if (p == PARTS_MAX) {
            continue;
        }
        if (p == count) {
            parts[count++] = (struct part){.name = name};
        }
        parts[p].total_ns = lac_sum_ns(parts[p].total_ns, mark->dur_ns);
    }
    return count;
}

const char *lac_batch_parts_text(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    const struct lac_loader_facts *loader = &analysis->loader;
    const char *text = "";
    if (loader->fetch_count == 0 || loader->fetch_mean_ns <= 0) {
        return text;
    }
    double fetch_ns = (double)loader->fetch_mean_ns * (double)loader->fetch_count;
    if (loader->fetch_cpu_mean_ns >= 0) {
        double cpu_pct = 100.0 * (double)loader->fetch_cpu_mean_ns / (double)loader->fetch_mean_ns;
        if (cpu_pct < 50.0) {
            text = lac_texts_add(&analysis->texts,
                                 " A batch computes for %.0f %% of its time and waits for the rest "
                                 "(storage, network, a lock): workers can overlap that.",
                                 cpu_pct);
        }
    }
    struct part parts[PARTS_MAX];
    uint32_t count = sum_parts(diagnosis, parts);
    int said = 0;
    while (said < PARTS_SAID && count > 0) {
        uint32_t most = 0;
        for (uint32_t p = 1; p < count; p++) {
            most = parts[p].total_ns > parts[most].total_ns ? p : most;
        }
        double pct = 100.0 * (double)parts[most].total_ns / fetch_ns;
        if (pct < 3.0 || pct > 100.5) { /* parts outside fetches say nothing about them */
            break;
        }
        text = lac_texts_add(&analysis->texts, "%s%s%.40s %.0f %%", text,
                             said == 0 ? " Of a batch: " : ", ", parts[most].name, pct);
        parts[most].total_ns = 0;
        said++;
    }
    return said > 0 ? lac_texts_add(&analysis->texts, "%s.", text) : text;
}
