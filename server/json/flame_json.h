#ifndef LAC_SERVER_JSON_FLAME_JSON_H
#define LAC_SERVER_JSON_FLAME_JSON_H

/* Flame graphs as the API answers them (README.md), made when asked for or with the trace. */

#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <stddef.h>
#include <stdint.h>

/** Words of the parameters `metric`, `by` and `order`, in the order of their enums, NULL at the end. */
extern const char *const lac_flame_metrics[];
extern const char *const lac_flame_bys[];
extern const char *const lac_flame_orders[];

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

/**
 * A graph to keep with a large trace: of a metric, by operator, of the whole. The model must carry its
 * derived tracks. What cannot be made, and all of a small trace, stays empty: it is made when
 * somebody asks.
 *
 * @param document an empty buffer; the caller frees it
 * @param rows     the graph of a report (GPU), packed, from the same walk; NULL: none
 * Cost: about 15 ns a slice; memory: 4 bytes a slice, and the tree.
 */
void lac_flame_document(const struct lac_model *model, enum lac_flame_metric metric,
                        struct lac_buffer *document, struct lac_flame_rows *rows);

#endif
