/* meta: every number of it checked against what the model allows. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "analysis/model/tile.h"
#include "collector/base/utf8.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"
#include "server/store/trace/trace_summary.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct meta_reader {
    struct lac_trace_file *file;
    sqlite3_stmt *get;
    struct lac_error *reterr;
    enum lac_status status; /**< the first failure */
};

/** Position on `key`. @return whether there is a row */
static bool seek(struct meta_reader *meta, const char *key)
{
    enum lac_status status;

    if (meta->status != LAC_OK) {
        return false;
    }
    lac_sql_reset(meta->get);
    lac_sql_bind_text(meta->get, 1, key);
    status = lac_sql_step_row(meta->get, "trace file", meta->reterr);
    if (status != LAC_OK && status != LAC_ERR_NOT_FOUND) {
        meta->status = status;
    }
    return status == LAC_OK;
}

static int64_t number(struct meta_reader *meta, const char *key, int64_t min, int64_t max)
{
    int64_t value = min;

    if (seek(meta, key) && sqlite3_column_type(meta->get, 0) == SQLITE_INTEGER) {
        value = sqlite3_column_int64(meta->get, 0);
        if (value >= min && value <= max) {
            return value;
        }
    }
    if (meta->status == LAC_OK) {
        char what[64];

        (void)snprintf(what, sizeof(what), "meta %s", key);
        meta->status = lac_trace_corrupt(meta->file, meta->reterr, what);
    }
    return min;
}

/** A number that files of before lack: 0 there. */
static int64_t optional(struct meta_reader *meta, const char *key, int64_t max)
{
    return seek(meta, key) ? number(meta, key, 0, max) : 0;
}

static double real(struct meta_reader *meta, const char *key)
{
    if (seek(meta, key) && (sqlite3_column_type(meta->get, 0) == SQLITE_FLOAT ||
                            sqlite3_column_type(meta->get, 0) == SQLITE_INTEGER)) {
        return sqlite3_column_double(meta->get, 0);
    }
    return (double)NAN;
}

/** Text, cut to the room there is; "" when absent. @return whether there was any */
static bool text(struct meta_reader *meta, const char *key, char *out, size_t capacity_bytes)
{
    const unsigned char *value = NULL;

    out[0] = '\0';
    if (seek(meta, key)) {
        value = sqlite3_column_text(meta->get, 0);
    }
    if (value != NULL) {
        const size_t kept =
            lac_utf8_cut((const char *)value, strlen((const char *)value), capacity_bytes - 1);

        memcpy(out, value, kept);
        out[kept] = '\0';
    }
    return value != NULL;
}

static void read_version(struct meta_reader *meta)
{
    int64_t version = number(meta, "format_version", 1, INT32_MAX);

    if (meta->status == LAC_OK && version > LAC_TRACE_FORMAT_VERSION) {
        meta->status = lac_fail(meta->reterr, LAC_ERR_LIMIT, 0,
                                "the trace file has format %lld, this program reads up to %d: "
                                "use a newer lacuna",
                                (long long)version, LAC_TRACE_FORMAT_VERSION);
    }
    if (meta->status == LAC_OK && version >= LAC_TRACE_FORMAT_CHECKED &&
        !lac_checked_is_on(meta->file->db)) {
        meta->status = lac_trace_corrupt(meta->file, meta->reterr, "its checksums are off");
    }
    meta->file->format_version = (uint32_t)version;
}

static void read_counts(struct meta_reader *meta)
{
    struct lac_model *head = &meta->file->head;
    const int64_t slices_max = (int64_t)LAC_SLICE_COUNT_MAX * 2; /* derived ones included */

    meta->file->generation = (uint32_t)number(meta, "generation", 1, INT32_MAX);
    meta->file->level_max = (uint8_t)number(meta, "level_max", 0, LAC_TILE_LEVEL_COUNT - 1);
    head->slices.count = (uint64_t)number(meta, "slice_total", 0, slices_max);
    head->process_count = (uint32_t)number(meta, "process_count", 0, LAC_TRACK_COUNT_MAX);
    head->track_count = (uint32_t)number(meta, "track_count", 0, LAC_TRACK_COUNT_MAX);
    head->device_count = (uint32_t)number(meta, "device_count", 0, LAC_TRACK_COUNT_MAX);
    head->recorded_track_count =
        (uint32_t)number(meta, "recorded_track_count", 0, head->track_count);
    head->arg_number_count = (uint64_t)number(meta, "arg_number_count", 0, INT64_MAX / 16);
    head->sample_count = (uint64_t)number(meta, "sample_count", 0, INT64_MAX / 16);
    head->flow_count = (uint64_t)number(meta, "flow_count", 0, INT64_MAX / 16);
    head->kernel_config_count = (uint32_t)number(meta, "kernel_config_count", 0, UINT32_MAX);
    head->copy_count = (uint32_t)number(meta, "copy_count", 0, UINT32_MAX);
    head->loader_info_count = (uint32_t)number(meta, "loader_info_count", 0, UINT32_MAX);
    head->alloc_count = (uint32_t)number(meta, "alloc_count", 0, UINT32_MAX);
    head->strings.count = (uint32_t)number(meta, "string_count", 1, UINT32_MAX - 1);
    head->strings.bytes_used =
        (uint64_t)number(meta, "string_bytes", 1, (int64_t)LAC_STRINGS_BYTES_MAX);
}

static void read_info(struct meta_reader *meta)
{
    struct lac_trace_info *info = &meta->file->head.info;
    const int64_t string_max = (int64_t)meta->file->head.strings.count - 1;

    info->name = (uint32_t)number(meta, "name", 0, string_max);
    info->format = (enum lac_trace_format)number(meta, "format", 0, 1000);
    info->t0_ns = number(meta, "t0_ns", INT64_MIN, INT64_MAX);
    info->duration_ns = number(meta, "duration_ns", 0, LAC_TIME_MAX_NS);
    info->event_count = (uint64_t)number(meta, "event_count", 0, INT64_MAX);
    info->slice_count = (uint64_t)number(meta, "slice_count", 0, INT64_MAX);
    info->dropped_count = (uint64_t)number(meta, "dropped_count", 0, INT64_MAX);
    info->repaired_count = (uint64_t)number(meta, "repaired_count", 0, INT64_MAX);
    info->input_bytes = (uint64_t)number(meta, "input_bytes", 0, INT64_MAX);
    info->expanded_bytes = (uint64_t)number(meta, "expanded_bytes", 0, INT64_MAX);
    info->rank = (int32_t)number(meta, "rank", INT32_MIN, INT32_MAX);
    info->world_size = (int32_t)number(meta, "world_size", INT32_MIN, INT32_MAX);
    info->backend = (uint32_t)number(meta, "backend", 0, string_max);
    info->host = (uint32_t)number(meta, "host", 0, string_max);
    info->metadata = (uint32_t)number(meta, "metadata", 0, string_max);
    info->is_simulated = number(meta, "is_simulated", 0, 1) != 0;
    info->has_python_stacks = number(meta, "has_python_stacks", 0, 1) != 0;
    info->has_shapes = number(meta, "has_shapes", 0, 1) != 0;
    info->has_no_time = optional(meta, "has_no_time", 1) != 0;
    info->weight_unit = (uint32_t)optional(meta, "weight_unit", string_max);
    info->weight_scale = optional(meta, "weight_scale", LAC_TIME_MAX_NS);
    info->profile_count = (uint32_t)optional(meta, "profile_count", UINT32_MAX);
    info->profile_unit = (uint32_t)optional(meta, "profile_unit", string_max);
    info->profile_scale = optional(meta, "profile_scale", LAC_TIME_MAX_NS);
    if (seek(meta, "phase_count") && sqlite3_column_bytes(meta->get, 0) == 128 * 8) {
        const uint8_t *bytes = sqlite3_column_blob(meta->get, 0);

        for (unsigned i = 0; i < 128 * 8; i++) {
            info->phase_count[i / 8] |= (uint64_t)bytes[i] << (8 * (i % 8));
        }
    }
}

static void read_summary(struct meta_reader *meta)
{
    struct lac_trace_summary *summary = &meta->file->summary;
    char letter[4];

    summary->present = text(meta, "summary_cause", summary->cause, sizeof(summary->cause));
    if (text(meta, "summary_letter", letter, sizeof(letter)) && letter[0] >= ' ' &&
        letter[0] <= '~') {
        summary->letter = letter[0];
    }
    (void)text(meta, "summary_text", summary->text, sizeof(summary->text));
    (void)text(meta, "summary_throughput_unit", summary->throughput_unit,
               sizeof(summary->throughput_unit));
    (void)text(meta, "summary_next_change", summary->next_change, sizeof(summary->next_change));
    (void)text(meta, "summary_finding_id", summary->finding_id, sizeof(summary->finding_id));
    (void)text(meta, "summary_model", summary->model, sizeof(summary->model));
    summary->step_mean_ns = LAC_UNKNOWN_NS;
    if (seek(meta, "summary_step_mean_ns")) {
        summary->step_mean_ns = sqlite3_column_int64(meta->get, 0);
    }
    summary->throughput_per_s = real(meta, "summary_throughput_per_s");
    summary->not_computing_pct = real(meta, "summary_not_computing_pct");
    summary->gain_low_pct = real(meta, "summary_gain_low_pct");
    summary->gain_mid_pct = real(meta, "summary_gain_mid_pct");
    summary->gain_high_pct = real(meta, "summary_gain_high_pct");
}

enum lac_status lac_trace_read_meta(struct lac_trace_file *file, struct lac_error *reterr)
{
    struct meta_reader meta = {.file = file, .reterr = reterr};

    meta.status =
        lac_sql_prepare(file->db, "SELECT value FROM meta WHERE key = ?", &meta.get, reterr);
    if (meta.status != LAC_OK) {
        return meta.status == LAC_ERR_NOMEM ? meta.status
                                            : lac_trace_corrupt(file, reterr, "no table meta");
    }
    read_version(&meta);
    read_counts(&meta);
    if (meta.status == LAC_OK) {
        read_info(&meta);
    }
    if (meta.status == LAC_OK) {
        read_summary(&meta);
    }
    (void)sqlite3_finalize(meta.get);
    return meta.status;
}
