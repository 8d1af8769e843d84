/*
 * Any bytes as an input file: an error or a sound model, the counts add up, and reading in small
 * steps with the scalar parser gives the same as the usual way.
 */

#include "analysis/import/import_private.h"
#include "tests/support/json_mutator.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static void require(bool holds)
{
    if (!holds)
        abort();
}

enum { MODELS_MAX = 8 };

struct result {
    enum lac_status status;
    struct lac_error error;
    struct lac_model *models[MODELS_MAX];
    size_t count;
};

static enum lac_status keep(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct result *result = context;
    if (result->count == MODELS_MAX) {
        lac_model_destroy(model);
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "enough");
    }
    result->models[result->count++] = model;
    return LAC_OK;
}

static void check_counts(const struct lac_model *model)
{
    const struct lac_trace_info *info = &model->info;
    uint64_t phases = 0, dropped = 0, repaired = 0;
    for (size_t i = 0; i < 128; i++)
        phases += info->phase_count[i];
    bool has_phases = info->format == LAC_FORMAT_CHROME || info->format == LAC_FORMAT_KINETO ||
                      info->format == LAC_FORMAT_TENSORFLOW || info->format == LAC_FORMAT_UNKNOWN;
    require(!has_phases || phases == info->event_count);
    for (uint32_t i = 0; i < model->report_count; i++) {
        dropped += model->report[i].severity == LAC_REPORT_DROPPED ? model->report[i].count : 0;
        repaired += model->report[i].severity == LAC_REPORT_REPAIRED ? model->report[i].count : 0;
        require(model->report[i].count > 0 && model->report[i].text[0] != 0);
    }
    require(dropped == info->dropped_count && repaired == info->repaired_count);
    if (!has_phases)
        return; /* its events are no events of a Chrome trace */
    require(model->slices.count <= info->event_count);
    require(info->slice_count <=
            info->phase_count['X'] + info->phase_count['B'] + info->phase_count['b']);
    /* every complete event is a slice or was counted as dropped */
    require(model->slices.count + dropped >= info->phase_count['X']);
}

static void check_same(const struct lac_model *a, const struct lac_model *b)
{
    uint64_t count = a->slices.count;
    require(count == b->slices.count && a->track_count == b->track_count);
    require(a->strings.count == b->strings.count && a->strings.bytes_used == b->strings.bytes_used);
    require(memcmp(a->strings.bytes, b->strings.bytes, a->strings.bytes_used) == 0);
    require(a->arg_number_count == b->arg_number_count && a->sample_count == b->sample_count);
    require(a->report_count == b->report_count && a->flow_count == b->flow_count);
    require(memcmp(&a->info, &b->info, sizeof(a->info)) == 0);
    for (uint64_t i = 0; i < count; i++)
        require(a->slices.start_ns[i] == b->slices.start_ns[i] &&
                a->slices.dur_ns[i] == b->slices.dur_ns[i] &&
                a->slices.name[i] == b->slices.name[i] && a->slices.args[i] == b->slices.args[i] &&
                a->slices.kind[i] == b->slices.kind[i] && a->slices.link[i] == b->slices.link[i]);
    for (uint64_t i = 0; i < a->arg_number_count; i++)
        require(a->arg_numbers[i] == b->arg_numbers[i]);
}

static void import(const uint8_t *data, size_t size, const struct lac_import_tuning *tuning,
                   bool force_scalar, struct result *result)
{
    struct lac_import_options options = {.force_scalar = force_scalar};
    lac_import_limits_default(&options.limits);
    options.limits.expanded_bytes_max = 32 << 20;
    *result = (struct result){0};
    result->status =
        lac_import_bytes_tuned(data, size, &options, tuning, keep, result, &result->error);
}

/* How far damaged gzip or zstd decodes depends on the sizes of the reads. */
static bool may_be_compressed(const uint8_t *data, size_t size)
{
    return memmem(data, size, "\x1f\x8b\x08", 3) != NULL ||
           memmem(data, size, "\x28\xb5\x2f\xfd", 4) != NULL ||
           memmem(data, size, "\x2a\x4d\x18", 3) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct lac_import_tuning usual = {8192, 0}, small = {64, 7};
    struct result fast, slow;
    import(data, size, &usual, false, &fast);
    import(data, size, &small, true, &slow);
    bool same = !may_be_compressed(data, size);
    require(!same || (fast.status == slow.status && fast.count == slow.count));
    require(fast.status == LAC_OK || fast.error.message[0] != 0);
    require(!same || strcmp(fast.error.message, slow.error.message) == 0);
    for (size_t i = 0; i < fast.count; i++) {
        require(lac_model_is_valid(fast.models[i]));
        check_counts(fast.models[i]);
        if (same)
            check_same(fast.models[i], slow.models[i]);
        lac_model_destroy(fast.models[i]);
    }
    for (size_t i = 0; i < slow.count; i++) {
        require(lac_model_is_valid(slow.models[i]));
        check_counts(slow.models[i]);
        lac_model_destroy(slow.models[i]);
    }
    return 0;
}

/* ---- changes that know JSON, also inside gzip and zstd */

enum { INNER_MAX = 1 << 18 };

static size_t unpack(const uint8_t *data, size_t size, uint8_t *out)
{
    static const uint8_t zstd[4] = {0x28, 0xb5, 0x2f, 0xfd};
    if (size > 4 && memcmp(data, zstd, 4) == 0) {
        size_t got = ZSTD_decompress(out, INNER_MAX, data, size);
        return ZSTD_isError(got) ? 0 : got;
    }
    if (size < 3 || data[0] != 0x1f || data[1] != 0x8b)
        return 0;
    static struct inflate_state state;
    isal_inflate_init(&state);
    state.crc_flag = ISAL_GZIP_NO_HDR_VER;
    struct isal_gzip_header header;
    isal_gzip_header_init(&header);
    state.next_in = (uint8_t *)(uintptr_t)data;
    state.avail_in = (uint32_t)size;
    if (isal_read_gzip_header(&state, &header) != ISAL_DECOMP_OK)
        return 0;
    state.next_out = out;
    state.avail_out = INNER_MAX;
    (void)isal_inflate(&state);
    return INNER_MAX - state.avail_out;
}

static size_t pack(const uint8_t *data, size_t size, uint8_t *out, size_t max_size, bool as_zstd)
{
    if (as_zstd) {
        size_t got = ZSTD_compress(out, max_size, data, size, 1);
        return ZSTD_isError(got) ? 0 : got;
    }
    static struct isal_zstream stream;
    isal_deflate_stateless_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.next_in = (uint8_t *)(uintptr_t)data;
    stream.avail_in = (uint32_t)size;
    stream.next_out = out;
    stream.avail_out = (uint32_t)max_size;
    return isal_deflate_stateless(&stream) == COMP_OK ? max_size - stream.avail_out : 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static uint8_t inner[INNER_MAX];
    uint64_t random = seed;
    uint32_t how = lac_mutator_draw(&random, 20);
    size_t changed = 0;
    size_t inner_size = how < 8 ? unpack(data, size, inner) : 0;
    if (inner_size > 0) {
        inner_size = lac_mutator_draw(&random, 2) == 0
                         ? lac_json_mutate(inner, inner_size, INNER_MAX, &random)
                         : LLVMFuzzerMutate(inner, inner_size, INNER_MAX);
        changed = pack(inner, inner_size, data, max_size, data[0] == 0x28);
    } else if (how < 9) {
        changed = lac_json_mutate(data, size, max_size, &random);
    } else if (how == 9 && size < INNER_MAX) {
        memcpy(inner, data, size);
        changed = pack(inner, size, data, max_size, lac_mutator_draw(&random, 2) == 0);
    }
    return changed > 0 ? changed : LLVMFuzzerMutate(data, size, max_size);
}
