#ifndef LAC_SERVER_EXPORT_PICTURE_H
#define LAC_SERVER_EXPORT_PICTURE_H

/*
 * Pictures for other people's pages and notebooks: SVG files without scripts, that fetch nothing,
 * in light and dark. Same trace, same bytes. Every text passes the redactor.
 */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/export/report.h"
#include "server/export/step_spans.h"

#include <stdint.h>

/**
 * The stretch of the timeline to draw.
 *
 * @param t0_ns, t1_ns relative to the trace; negative: not given. Neither: what the first finding is
 *        about, or the whole trace
 * @return LAC_ERR_MISUSE: nothing lies between them
 */
LAC_MUST_USE enum lac_status lac_picture_view(const struct lac_analysis *analysis,
                                              int64_t duration_ns, int64_t t0_ns, int64_t t1_ns,
                                              struct lac_view *ret_view, struct lac_error *reterr);

/**
 * Draw the devices, why they were idle, the launching thread and the loader's workers.
 *
 * @param model the slices of the view at least, and the tracks of source->model
 * @return LAC_ERR_NOT_FOUND: there is no device; LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_picture_timeline(struct lac_buffer *out,
                                                  const struct lac_report_source *source,
                                                  const struct lac_view *view,
                                                  const struct lac_model *model,
                                                  struct lac_error *reterr);

/** Draw a flame graph. @return LAC_ERR_NOT_FOUND: it is empty; LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_picture_flame(struct lac_buffer *out,
                                               const struct lac_report_source *source,
                                               const struct lac_flame *flame,
                                               enum lac_flame_metric metric,
                                               struct lac_error *reterr);

/** Options of the graph for a picture, of the stretch as above. */
void lac_picture_flame_options(enum lac_flame_metric metric, int64_t t0_ns, int64_t t1_ns,
                               struct lac_flame_options *ret_options);

/**
 * The graph itself.
 *
 * @param steps of the time of these alone, instead of a stretch; NULL, or none: not of steps
 * @return LAC_OK or LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_picture_make_flame(const struct lac_model *model,
                                                    enum lac_flame_metric metric, int64_t t0_ns,
                                                    int64_t t1_ns,
                                                    const struct lac_step_spans *steps,
                                                    struct lac_flame **ret_flame);

#endif
