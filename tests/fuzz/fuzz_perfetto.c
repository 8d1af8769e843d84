/*
 * Any bytes as a trace of Perfetto: an error with a sentence or a sound model whose report adds up, and
 * reading in small steps gives the same.
 */

#include "analysis/import/import_private.h"
#include "analysis/import/perfetto/perfetto.h"
#include "tests/fuzz/fuzz_check.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct lac_model *import(const uint8_t *data, size_t size, size_t feed_bytes,
                                enum lac_status *ret_status)
{
    const struct lac_import_tuning tuning = {512, feed_bytes};
    struct lac_import_options options = {.name = "fuzz"};
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    lac_import_limits_default(&options.limits);
    options.limits.slice_count_max = 200000;
    options.limits.expanded_bytes_max = 32 << 20;
    *ret_status =
        lac_import_bytes_tuned(data, size, &options, &tuning, lac_fuzz_keep, &model, &error);
    require((*ret_status == LAC_OK) == (model != NULL));
    require(*ret_status == LAC_OK || error.message[0] != '\0');
    return model;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum lac_status status = LAC_OK;
    enum lac_status again = LAC_OK;
    size_t head = size < LAC_SOURCE_PEEK_MAX ? size : LAC_SOURCE_PEEK_MAX;
    if (!lac_perfetto_is_its_own(data, head)) {
        return 0;
    }
    struct lac_model *model = import(data, size, 0, &status);
    struct lac_model *other = import(data, size, 7, &again);
    require(status == again);
    if (model != NULL) {
        lac_fuzz_check_model(model);
        require(model->slices.count == other->slices.count);
        require(model->sample_count == other->sample_count);
        require(model->strings.bytes_used == other->strings.bytes_used);
        require(memcmp(model->strings.bytes, other->strings.bytes, model->strings.bytes_used) == 0);
        lac_model_destroy(model);
        lac_model_destroy(other);
    }
    return 0;
}
