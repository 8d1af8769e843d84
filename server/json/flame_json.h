#ifndef LAC_SERVER_JSON_FLAME_JSON_H
#define LAC_SERVER_JSON_FLAME_JSON_H

/* Flame graphs as the API answers them (README.md), made when asked for or with the trace. */

#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Words of the parameters `metric`, `by` and `order`, in the order of their enums, NULL at the end. */
extern const char *const lac_flame_metrics[];
extern const char *const lac_flame_bys[];
extern const char *const lac_flame_orders[];

/** Metrics of which large traces keep a graph: those up to LAC_FLAME_CPU. */
enum { LAC_FLAME_METRICS = LAC_FLAME_CPU + 1 };

/** What is answered to a request without parameters: GPU time by operator, the whole trace. */
void lac_flame_default_options(struct lac_flame_options *options);

/** What a report draws: the same, with fewer frames. */
void lac_flame_report_options(struct lac_flame_options *options);

/** Append a graph that was made with these options. @param model the trace, with strings and info
 *  at least @return LAC_OK, LAC_ERR_NOMEM, or LAC_ERR_LIMIT of the buffer */
LAC_MUST_USE enum lac_status lac_flame_write(const struct lac_model *model,
                                             const struct lac_flame_options *options,
                                             const struct lac_flame *flame, struct lac_buffer *out);

/** The graph of a report, packed; the caller frees `bytes`. NULL: it is made when somebody asks. */
struct lac_flame_rows {
    uint8_t *bytes;
    size_t size_bytes;
};

/** Whether a graph by Python differs from one by operator: the trace has Python functions or stack samples. */
bool lac_flame_has_python(const struct lac_model *model);

/** A graph that is kept with a large trace; all of it belongs to the caller. */
struct lac_flame_document {
    enum lac_flame_metric metric;
    enum lac_flame_by by;
    struct lac_buffer *text;        /**< the document; an empty buffer */
    struct lac_buffer *text_python; /**< NULL, or the same graph as one by Python */
    struct lac_flame_rows *rows; /**< NULL, or the graph of a report, packed, from the same walk */
};

/**
 * Make a graph of the whole. The model must carry its derived tracks. What cannot be made, and all of a
 * small trace, stays empty: it is made when somebody asks.
 *
 * Cost: about 15 ns a slice; memory: 4 bytes a slice, and the tree.
 */
void lac_flame_document(const struct lac_model *model, const struct lac_flame_document *document);

#endif
