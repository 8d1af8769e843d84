/* What is in memory for as long as a trace file is open: strings, rows, indexes, steps. */

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_private.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The strings of one block: lengths, then bytes. */
static enum lac_status add_strings(struct lac_trace_file *file, const uint8_t *raw,
                                   size_t raw_bytes, uint32_t first, uint32_t count,
                                   struct lac_error *reterr)
{
    struct lac_strings *strings = &file->head.strings;
    size_t position = 0;
    size_t text = 0;
    uint64_t length = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (!lac_leb_read(raw, raw_bytes, &position, &length)) {
            return lac_trace_corrupt(file, reterr, "string lengths");
        }
    }
    text = position;
    position = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = 0;
        enum lac_status status;

        if (!lac_leb_read(raw, raw_bytes, &position, &length) || length > raw_bytes - text) {
            return lac_trace_corrupt(file, reterr, "string lengths");
        }
        status = lac_strings_intern(strings, (const char *)raw + text, (size_t)length, &id);
        if (status != LAC_OK) {
            return status;
        }
        if (id != first + i) {
            return lac_trace_corrupt(file, reterr, "a string twice");
        }
        text += (size_t)length;
    }
    return text == raw_bytes ? LAC_OK : lac_trace_corrupt(file, reterr, "string bytes");
}

static enum lac_status read_string_block(struct lac_trace_file *file, sqlite3_stmt *get,
                                         uint32_t expected_count, struct lac_error *reterr)
{
    const struct lac_strings *strings = &file->head.strings;
    int64_t first = sqlite3_column_int64(get, 0);
    int64_t count = sqlite3_column_int64(get, 1);
    int64_t raw_bytes = sqlite3_column_int64(get, 2);
    const void *data = sqlite3_column_blob(get, 3);
    size_t size_bytes = (size_t)sqlite3_column_bytes(get, 3);
    int64_t have = strings->count == 1 && first == 0 ? 0 : (int64_t)strings->count;
    uint8_t *raw = NULL;
    enum lac_status status;

    if (data == NULL || first != have || count < 1 || count > (int64_t)expected_count - first ||
        raw_bytes < 1 || raw_bytes > (int64_t)LAC_STRINGS_BYTES_MAX) {
        return lac_trace_corrupt(file, reterr, "string blocks");
    }
    status = lac_zstd_unpack(data, size_bytes, (uint64_t)raw_bytes, &raw);
    if (status == LAC_OK) {
        status =
            add_strings(file, raw, (size_t)raw_bytes, (uint32_t)first, (uint32_t)count, reterr);
    } else if (status == LAC_ERR_CORRUPT) {
        status = lac_trace_corrupt(file, reterr, "string block");
    }
    free(raw);
    return status;
}

enum lac_status lac_trace_read_strings(struct lac_trace_file *file, struct lac_error *reterr)
{
    uint32_t expected = file->head.strings.count;
    sqlite3_stmt *get = NULL;
    enum lac_status status;

    file->head.strings = (struct lac_strings){0};
    status = lac_strings_init(&file->head.strings);
    if (status == LAC_OK) {
        status = lac_sql_prepare(file->db,
                                 "SELECT first, count, raw_bytes, data FROM string ORDER BY first",
                                 &get, reterr);
    }
    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status == LAC_OK) {
            status = read_string_block(file, get, expected, reterr);
        }
    }
    (void)sqlite3_finalize(get);
    if (status == LAC_ERR_NOT_FOUND) {
        status = file->head.strings.count == expected
                     ? LAC_OK
                     : lac_trace_corrupt(file, reterr, "strings are missing");
    }
    return status;
}

/** Column as a number within bounds; sets *bad otherwise. */
static int64_t checked(sqlite3_stmt *get, int column, int64_t min, int64_t max, bool *bad)
{
    int64_t value = sqlite3_column_int64(get, column);

    if (sqlite3_column_type(get, column) != SQLITE_INTEGER || value < min || value > max) {
        *bad = true;
        return min;
    }
    return value;
}

static void read_process(struct lac_trace_file *file, sqlite3_stmt *get, uint32_t i, bool *bad)
{
    int64_t string_max = (int64_t)file->head.strings.count - 1;

    file->head.processes[i] = (struct lac_process){
        .pid = checked(get, 1, INT64_MIN, INT64_MAX, bad),
        .id_text = (uint32_t)checked(get, 2, 0, string_max, bad),
        .name = (uint32_t)checked(get, 3, 0, string_max, bad),
        .labels = (uint32_t)checked(get, 4, 0, string_max, bad),
        .sort_index = (int32_t)checked(get, 5, INT32_MIN, INT32_MAX, bad),
        .is_gpu = checked(get, 6, 0, 1, bad) != 0,
    };
}

static void read_device(struct lac_trace_file *file, sqlite3_stmt *get, uint32_t i, bool *bad)
{
    int64_t string_max = (int64_t)file->head.strings.count - 1;

    file->head.devices[i] = (struct lac_device){
        .id = checked(get, 1, INT64_MIN, INT64_MAX, bad),
        .name = (uint32_t)checked(get, 2, 0, string_max, bad),
        .cc_major = (int32_t)checked(get, 3, INT32_MIN, INT32_MAX, bad),
        .cc_minor = (int32_t)checked(get, 4, INT32_MIN, INT32_MAX, bad),
        .sm_count = (int32_t)checked(get, 5, INT32_MIN, INT32_MAX, bad),
        .memory_bytes = checked(get, 6, INT64_MIN, INT64_MAX, bad),
    };
    if (i > 0 && file->head.devices[i].id <= file->head.devices[i - 1].id) {
        *bad = true;
    }
}

static void read_track(struct lac_trace_file *file, sqlite3_stmt *get, uint32_t i, bool *bad)
{
    struct lac_model *head = &file->head;
    int64_t string_max = (int64_t)head->strings.count - 1;
    struct lac_track *track = &head->tracks[i];
    bool is_counter;
    uint64_t before = 0;

    *track = (struct lac_track){
        .kind = (enum lac_track_kind)checked(get, 1, 0, LAC_TRACK_KIND_COUNT_ - 1, bad),
        .process = LAC_NONE,
        .name = (uint32_t)checked(get, 3, 0, string_max, bad),
        .id_text = (uint32_t)checked(get, 4, 0, string_max, bad),
        .tid = checked(get, 5, INT64_MIN, INT64_MAX, bad),
        .device = checked(get, 6, INT64_MIN, INT64_MAX, bad),
        .sort_index = (int32_t)checked(get, 7, INT32_MIN, INT32_MAX, bad),
        .lane_count = (uint32_t)checked(get, 8, 0, UINT16_MAX + 1, bad),
        .first = (uint64_t)checked(get, 9, 0, INT64_MAX / 2, bad),
        .count = (uint64_t)checked(get, 10, 0, INT64_MAX / 2, bad),
    };
    if (sqlite3_column_type(get, 2) != SQLITE_NULL) {
        track->process = (uint32_t)checked(get, 2, 0, (int64_t)head->process_count - 1, bad);
    }
    is_counter = track->kind == LAC_TRACK_COUNTER;
    for (uint32_t t = i; t > 0; t--) { /* where the one before of the same sort ends */
        if ((head->tracks[t - 1].kind == LAC_TRACK_COUNTER) == is_counter) {
            before = head->tracks[t - 1].first + head->tracks[t - 1].count;
            break;
        }
    }
    if (track->first != before && track->count > 0) {
        *bad = true;
    }
    if (track->first + track->count > (is_counter ? head->sample_count : head->slices.count)) {
        *bad = true;
    }
}

typedef void (*row_reader)(struct lac_trace_file *file, sqlite3_stmt *get, uint32_t i, bool *bad);

/** Read exactly `count` rows, numbered from 0. */
static enum lac_status read_table(struct lac_trace_file *file, const char *sql, uint32_t count,
                                  row_reader reader, const char *what, struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    enum lac_status status = lac_sql_prepare(file->db, sql, &get, reterr);
    uint32_t seen = 0;
    bool bad = false;

    while (status == LAC_OK && !bad) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status == LAC_OK) {
            bad = seen == count || sqlite3_column_int64(get, 0) != seen;
            if (!bad) {
                reader(file, get, seen, &bad);
                seen++;
            }
        }
    }
    (void)sqlite3_finalize(get);
    if (status == LAC_ERR_NOT_FOUND) {
        status = LAC_OK;
    }
    return status == LAC_OK && (bad || seen != count) ? lac_trace_corrupt(file, reterr, what)
                                                      : status;
}

static enum lac_status read_roles(struct lac_trace_file *file, struct lac_error *reterr)
{
    static const char *const known[] = {"main", "worker",      "autograd",
                                        "pin",  "collectives", "copies"};
    sqlite3_stmt *get = NULL;
    enum lac_status status =
        lac_sql_prepare(file->db, "SELECT track, role FROM thread", &get, reterr);

    for (uint32_t t = 0; t < file->head.track_count; t++) {
        if (file->head.tracks[t].kind == LAC_TRACK_STREAM) {
            file->roles[t] = "gpu";
        }
    }
    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status == LAC_OK) {
            int64_t track = sqlite3_column_int64(get, 0);
            const unsigned char *role = sqlite3_column_text(get, 1);

            for (size_t k = 0; k < LAC_COUNT_OF(known) && role != NULL; k++) {
                if (track >= 0 && track < (int64_t)file->head.track_count &&
                    strcmp((const char *)role, known[k]) == 0) {
                    file->roles[track] = known[k];
                }
            }
        }
    }
    (void)sqlite3_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

static enum lac_status read_report(struct lac_trace_file *file, struct lac_error *reterr)
{
    struct lac_model *head = &file->head;
    sqlite3_stmt *get = NULL;
    enum lac_status status =
        lac_sql_prepare(file->db,
                        "SELECT code, severity, count, first_offset_bytes, text FROM report "
                        "ORDER BY line",
                        &get, reterr);

    while (status == LAC_OK && head->report_count < LAC_REPORT_LINES_MAX) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status == LAC_OK) {
            struct lac_report_line *line = &head->report[head->report_count++];
            const unsigned char *code = sqlite3_column_text(get, 0);
            const unsigned char *sentence = sqlite3_column_text(get, 4);
            int64_t severity = sqlite3_column_int64(get, 1);

            *line = (struct lac_report_line){.severity = severity == 1   ? LAC_REPORT_REPAIRED
                                                         : severity == 2 ? LAC_REPORT_DROPPED
                                                                         : LAC_REPORT_INFO,
                                             .count = (uint64_t)sqlite3_column_int64(get, 2),
                                             .first_offset_bytes =
                                                 (uint64_t)sqlite3_column_int64(get, 3)};
            if (code != NULL && sentence != NULL) {
                (void)snprintf(line->code, sizeof(line->code), "%s", (const char *)code);
                (void)snprintf(line->text, sizeof(line->text), "%s", (const char *)sentence);
            }
        }
    }
    (void)sqlite3_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_trace_read_rows(struct lac_trace_file *file, struct lac_error *reterr)
{
    struct lac_model *head = &file->head;
    enum lac_status status;

    head->processes = calloc((size_t)head->process_count + 1, sizeof(*head->processes));
    head->devices = calloc((size_t)head->device_count + 1, sizeof(*head->devices));
    head->tracks = calloc((size_t)head->track_count + 1, sizeof(*head->tracks));
    file->roles = (const char **)calloc((size_t)head->track_count + 1, sizeof(*file->roles));
    if (head->processes == NULL || head->devices == NULL || head->tracks == NULL ||
        file->roles == NULL) {
        return LAC_ERR_NOMEM;
    }
    status = read_table(file, "SELECT * FROM process ORDER BY idx", head->process_count,
                        read_process, "process", reterr);
    if (status == LAC_OK) {
        status = read_table(file, "SELECT * FROM device ORDER BY idx", head->device_count,
                            read_device, "device", reterr);
    }
    if (status == LAC_OK) {
        status = read_table(file, "SELECT * FROM track ORDER BY idx", head->track_count, read_track,
                            "track", reterr);
    }
    if (status == LAC_OK) {
        status = read_roles(file, reterr);
    }
    if (status == LAC_OK) {
        status = read_report(file, reterr);
    }
    return status;
}
