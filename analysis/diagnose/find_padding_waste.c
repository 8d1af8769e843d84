/* Padding: positions of a batch that carry nothing. Only where the job said how many they are. */

#include "analysis/diagnose/work.h"

#include <stddef.h>

void lac_find_padding_waste(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    double padding_pct = lac_setting_real(diagnosis, "settings", "padding_pct");
    if (!(padding_pct >= 0.0 && padding_pct <= 100.0)) {
        return; /* not recorded */
    }
    analysis->padding_pct = padding_pct;
    struct lac_finding *finding =
        padding_pct >= 10.0 ? lac_finding_open_fact(diagnosis, "padding-waste") : NULL;
    if (!finding) {
        return;
    }
    finding->title =
        lac_texts_add(&analysis->texts, "%.0f %% of what is computed is padding", padding_pct);
    finding->why = "The job counted it itself. Products and elementwise work on padding cost as "
                   "much as on anything else.";
    finding->brief = "bucket or pack";
    finding->change = "# samples of like length into one batch:\n"
                      "indices = sorted(range(len(data)), key=lambda i: len(data[i]))\n"
                      "# or several into one row, with a mask between them (packing)";
    finding->costs = "Buckets change the order of the samples: shuffle the buckets. Packing needs "
                     "attention that knows the borders.";
    finding->wrong_if = "the padding is already skipped by kernels for variable lengths.";
}
