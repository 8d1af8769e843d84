#ifndef LAC_SERVER_EXPORT_EXPORT_FORMS_H
#define LAC_SERVER_EXPORT_EXPORT_FORMS_H

/* The way out to other tools. Each takes the report's source (export/report.h); failures stick in
 * the output. */

#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "server/export/export_out.h"
#include "server/export/report.h"

#include <stdbool.h>

/**
 * Chrome JSON as PyTorch's profiler writes it: every recorded slice, mark and sample with its
 * arguments, rows, devices and settings. Imported again it gives the same kernels, copies, devices
 * and steps. Derived rows (steps, why idle) are left out: they are found again.
 */
void lac_export_chrome(struct lac_export_out *out, const struct lac_report_source *source);

/**
 * Perfetto's protobuf: threads as track events, GPU work as render stages of hardware queues, and
 * as tracks of their own the steps and why each GPU was idle. What overlaps in a row without lying
 * inside of it gets a further row.
 */
void lac_export_perfetto(struct lac_export_out *out, const struct lac_report_source *source);

/** What a file with flame graphs is of. */
struct lac_export_flame {
    enum lac_flame_metric metric; /**< of folded stacks; a speedscope file has all */
    bool is_measured;             /**< of the steps that the verdict measures, where it has any:
                                       the source needs its analysis */
};

/** Folded stacks, "a;b;c 123" with ns, of one metric. LAC_ERR_NOMEM sticks in the output. */
void lac_export_folded(struct lac_export_out *out, const struct lac_report_source *source,
                       const struct lac_export_flame *of);

/** The same of a graph, however it was made. */
void lac_export_folded_graph(struct lac_export_out *out, const struct lac_report_source *source,
                             const struct lac_flame *flame);

/** A speedscope file with the metrics that the trace has, one profile each. */
void lac_export_speedscope(struct lac_export_out *out, const struct lac_report_source *source,
                           const struct lac_export_flame *of);

/** The forms that are made of the whole model. */
enum lac_export_form {
    LAC_EXPORT_CHROME = 0,
    LAC_EXPORT_PERFETTO,
    LAC_EXPORT_FOLDED,
    LAC_EXPORT_SPEEDSCOPE
};

/** What a flame graph of that trace is of, unless somebody says: the host's time without a GPU. */
enum lac_flame_metric lac_export_metric(const struct lac_model *model);

/** Write one of them. */
void lac_export_form(enum lac_export_form form, const struct lac_export_flame *of,
                     struct lac_export_out *out, const struct lac_report_source *source);

#endif
