#include "analysis/import/stacks/profile.h"

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/lines.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <string.h>

enum lac_status lac_profile_failed(const struct lac_profile *profile, enum lac_status status)
{
    return lac_stacks_fail(status, profile->lines.offset_bytes, profile->reterr);
}

enum lac_status lac_profile_open(struct lac_profile *profile, struct lac_source *source,
                                 const struct lac_import_options *options, size_t window_bytes,
                                 const char *name, enum lac_trace_format format,
                                 struct lac_error *reterr)
{
    *profile = (struct lac_profile){
        .lines = {.source = source, .options = options, .window_bytes = window_bytes},
        .reterr = reterr};
    enum lac_status status = lac_builder_create(&profile->builder);
    if (status == LAC_OK) {
        profile->model = lac_builder_model(profile->builder);
        lac_builder_use_crew(profile->builder, options->crew);
        profile->model->info.format = format;
        profile->model->info.rank = -1;
        profile->model->info.world_size = -1;
        status = lac_stacks_open(profile->builder, options, &profile->stacks);
    }
    if (status == LAC_OK) {
        status = lac_stacks_name(profile->stacks, name, strlen(name), &profile->model->info.name);
    }
    return lac_profile_failed(profile, status);
}

enum lac_status lac_profile_process(const struct lac_profile *profile, const char *name,
                                    uint32_t *ret_process)
{
    uint32_t id = 0;
    enum lac_status status = lac_stacks_name(profile->stacks, name, strlen(name), &id);
    if (status == LAC_OK) {
        status = lac_builder_process(profile->builder, id, -1, ret_process);
    }
    if (status == LAC_OK) {
        lac_builder_process_at(profile->builder, *ret_process)->name = id;
    }
    return status;
}

static enum lac_status finish(struct lac_profile *profile, const char *what, const char *unit,
                              int64_t period_ns, struct lac_model **ret_model)
{
    const char *const damage = lac_source_damage(profile->lines.source);
    if (lac_stacks_is_empty(profile->stacks)) {
        return lac_fail(profile->reterr, LAC_ERR_CORRUPT, profile->lines.offset_bytes,
                        "no stack with a weight in this %s", what);
    }
    if (damage != NULL) {
        lac_model_report(profile->model, LAC_REPORT_REPAIRED, "input_damaged", 1, 0, damage);
    }
    enum lac_status status = lac_stacks_finish(profile->stacks, unit, period_ns);
    if (status == LAC_OK) {
        profile->model->info.expanded_bytes = profile->lines.offset_bytes;
        status = lac_builder_finish(profile->builder, 0, ret_model);
    }
    if (status == LAC_OK) {
        profile->builder = NULL;
    }
    return lac_profile_failed(profile, status);
}

enum lac_status lac_profile_close(struct lac_profile *profile, enum lac_status status,
                                  const char *what, const char *unit, int64_t period_ns,
                                  struct lac_model **ret_model)
{
    if (status == LAC_OK) {
        status = finish(profile, what, unit, period_ns, ret_model);
    }
    lac_stacks_close(profile->stacks);
    lac_builder_destroy(profile->builder);
    lac_lines_done(&profile->lines);
    return status;
}
