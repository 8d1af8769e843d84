/*
 * Any bytes as text of a profiler: an error with a sentence, or a sound model, the same when it is
 * read in small pieces. The first byte says which importer: '0' is the first.
 */

#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/stack_importers.h"
#include "collector/base/count_of.h"
#include "tests/fuzz/fuzz_check.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef enum lac_status (*import_run)(struct lac_source *source,
                                      const struct lac_import_options *options, size_t window_bytes,
                                      const char *name, struct lac_model **ret_model,
                                      struct lac_error *reterr);

static enum lac_status import(import_run run, const uint8_t *data, size_t size, size_t window,
                              size_t feed, struct lac_model **ret_model, struct lac_error *reterr)
{
    struct lac_import_options options = {0};
    struct lac_source_budget budget = {0};
    struct lac_source *source = NULL;
    lac_import_limits_default(&options.limits);
    options.limits.event_bytes_max = 4096;
    *ret_model = NULL;
    enum lac_status status = lac_source_open_memory(data, size, feed, &budget, &source, reterr);
    if (status == LAC_OK) {
        status = run(source, &options, window, "fuzz", ret_model, reterr);
    }
    lac_source_destroy(source);
    return status;
}

/* -- records of TensorBoard with checksums, which no chance would find -------------------------- */

static void add_checksum(uint8_t *out, const uint8_t *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (0x82f63b78U & (0U - (crc & 1U)));
        }
    }
    crc = ~crc;
    crc = (crc >> 15 | crc << 17) + 0xa282ead8U;
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(crc >> (8 * i));
    }
}

/* Each byte says how many bytes of a record follow. */
static enum lac_status import_records(struct lac_source *source,
                                      const struct lac_import_options *options, size_t window_bytes,
                                      const char *name, struct lac_model **ret_model,
                                      struct lac_error *reterr)
{
    static uint8_t framed[1 << 16];
    uint8_t record[256];
    struct lac_source_budget budget = {.expansion_ratio_max = 200};
    struct lac_source *records = NULL;
    size_t used = 0;
    size_t size = 1;
    uint8_t length = 0;
    while (size > 0 && used + sizeof(record) + 16 < sizeof(framed)) {
        size_t got = 0;
        require(lac_source_read(source, &length, 1, &size, reterr) == LAC_OK);
        while (size > 0 && got < length) {
            require(lac_source_read(source, record + got, length - got, &size, reterr) == LAC_OK);
            got += size;
        }
        memset(framed + used, 0, 8);
        framed[used] = (uint8_t)got;
        add_checksum(framed + used + 8, framed + used, 8);
        memcpy(framed + used + 12, record, got);
        add_checksum(framed + used + 12 + got, record, got);
        used += got + 16;
    }
    enum lac_status status = lac_source_open_memory(framed, used, 0, &budget, &records, reterr);
    if (status == LAC_OK) {
        status = lac_tensorboard_import(records, options, window_bytes, name, ret_model, reterr);
    }
    lac_source_destroy(records);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const import_run runs[] = {lac_folded_import,
                                      lac_perf_script_import,
                                      lac_speedscope_import,
                                      lac_cprofile_import,
                                      lac_firefox_import,
                                      lac_pickled_import,
                                      lac_rocprofv3_import,
                                      lac_scalene_import,
                                      lac_callgrind_import,
                                      lac_perf_stat_import,
                                      lac_line_profiler_import_text,
                                      lac_cprofile_import_text,
                                      lac_pyspy_dump_import,
                                      lac_tensorboard_import,
                                      import_records};
    struct lac_model *models[2];
    struct lac_error errors[2] = {{0}, {0}};
    enum lac_status status[2];
    if (size == 0) {
        return 0;
    }
    const import_run run = runs[(uint8_t)(data[0] - '0') % (LAC_COUNT_OF(runs))];
    (void)lac_folded_is_its_own(data + 1, size - 1);
    (void)lac_perf_script_is_its_own(data + 1, size - 1);
    (void)lac_speedscope_is_its_own(data + 1, size - 1);
    (void)lac_cprofile_is_its_own(data + 1, size - 1);
    (void)lac_firefox_is_its_own(data + 1, size - 1);
    (void)lac_pickled_is_its_own(data + 1, size - 1);
    (void)lac_rocprofv3_is_its_own(data + 1, size - 1);
    (void)lac_scalene_is_its_own(data + 1, size - 1);
    (void)lac_callgrind_is_its_own(data + 1, size - 1);
    (void)lac_perf_stat_is_its_own(data + 1, size - 1);
    (void)lac_line_profiler_is_text(data + 1, size - 1);
    (void)lac_cprofile_is_text(data + 1, size - 1);
    (void)lac_pyspy_dump_is_its_own(data + 1, size - 1);
    (void)lac_tensorboard_is_its_own(data + 1, size - 1);
    status[0] = import(run, data + 1, size - 1, 0, 0, &models[0], &errors[0]);
    status[1] = import(run, data + 1, size - 1, 16, 7, &models[1], &errors[1]);
    require(status[0] == status[1]);
    require(status[0] == LAC_OK || errors[0].message[0] != '\0');
    if (status[0] == LAC_OK) {
        require(lac_model_is_valid(models[0]));
        require(models[0]->slices.count == models[1]->slices.count);
        require(models[0]->info.dropped_count == models[1]->info.dropped_count);
        require(models[0]->strings.bytes_used == models[1]->strings.bytes_used);
        require(memcmp(models[0]->strings.bytes, models[1]->strings.bytes,
                       models[0]->strings.bytes_used) == 0);
    }
    lac_model_destroy(models[0]);
    lac_model_destroy(models[1]);
    return 0;
}
