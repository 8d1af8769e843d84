#ifndef LAC_TESTS_FUZZ_FUZZ_CHECK_H
#define LAC_TESTS_FUZZ_FUZZ_CHECK_H

/* What fuzz targets hold: an invariant that breaks ends the process, which libFuzzer reports. */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

/** A sink for the one model of an import. */
static inline enum lac_status lac_fuzz_keep(void *context, struct lac_model *model,
                                            struct lac_error *reterr)
{
    struct lac_model **kept = context;
    (void)reterr;
    require(*kept == NULL);
    *kept = model;
    return LAC_OK;
}

/** A sound model whose report adds up, and says what it counts. */
static inline void lac_fuzz_check_model(const struct lac_model *model)
{
    uint64_t dropped = 0;
    uint64_t repaired = 0;
    require(lac_model_is_valid(model));
    for (uint32_t i = 0; i < model->report_count; i++) {
        const struct lac_report_line *line = &model->report[i];
        dropped += line->severity == LAC_REPORT_DROPPED ? line->count : 0;
        repaired += line->severity == LAC_REPORT_REPAIRED ? line->count : 0;
        require(line->count > 0 && line->text[0] != '\0');
    }
    require(dropped == model->info.dropped_count && repaired == model->info.repaired_count);
}

#endif
