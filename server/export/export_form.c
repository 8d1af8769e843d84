#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "server/export/export_forms.h"
#include "server/export/export_out.h"
#include "server/export/report.h"

#include <assert.h>
#include <stddef.h>

enum lac_flame_metric lac_export_metric(const struct lac_model *model)
{
    assert(model != NULL);
    return model->device_count > 0 ? LAC_FLAME_GPU : LAC_FLAME_CPU;
}

void lac_export_form(enum lac_export_form form, const struct lac_export_flame *of,
                     struct lac_export_out *out, const struct lac_report_source *source)
{
    assert(out != NULL && source != NULL && of != NULL);
    switch (form) {
    case LAC_EXPORT_CHROME:
        lac_export_chrome(out, source);
        break;
    case LAC_EXPORT_PERFETTO:
        lac_export_perfetto(out, source);
        break;
    case LAC_EXPORT_FOLDED:
        lac_export_folded(out, source, of);
        break;
    case LAC_EXPORT_SPEEDSCOPE:
        lac_export_speedscope(out, source, of);
        break;
    }
}
