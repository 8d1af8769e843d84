/* NVTX of an Nsight Systems export: ranges, marks, names of threads and domains.
 *
 * PyTorch's emit_nvtx writes operators as ranges with everything in the text,
 * "aten::conv2d, seq = 12, op_id = 34, sizes = [[1, 3], []]": they become operators of the plain
 * name with the rest as arguments, or a trace would have as many names as operators.
 */

#include "analysis/import/nsys/nsys_db.h"
#include "analysis/import/nsys/nsys_private.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    TYPE_MARK = 34,
    TYPE_THREAD_NAME = 39,
    TYPE_PUSH_POP = 59,
    TYPE_START_END = 60,
    TYPE_DOMAIN = 75
};

enum { START, END, TYPE, THREAD, END_THREAD, TEXT, TEXT_ID, DOMAIN, UINT64, INT64, UINT32, INT32 };
static const char *const COLUMNS[] = {
    "start",    "end",         "eventType",  "globalTid",   "endGlobalTid", "text", "textId",
    "domainId", "uint64Value", "int64Value", "uint32Value", "int32Value",   NULL};

enum { NUMBERS_MAX = 32, TEMPLATE_MAX = 4096 };

/* Arguments under construction. */
struct arguments {
    char text[TEMPLATE_MAX];
    size_t used;
    int64_t numbers[NUMBERS_MAX];
    uint32_t count;
    bool is_full;
};

/* Not all of it is set to 0: there is one for every row. */
static void begin(struct arguments *args)
{
    args->used = 0;
    args->count = 0;
    args->is_full = false;
}

static void put(struct arguments *args, const char *bytes, size_t size)
{
    if (args->used + size >= sizeof(args->text) - 2) {
        args->is_full = true;
        return;
    }
    memcpy(args->text + args->used, bytes, size);
    args->used += size;
}

static void put_key(struct arguments *args, const char *key, size_t size)
{
    put(args, args->used == 0 ? "{\"" : ",\"", 2);
    put(args, key, size);
    put(args, "\":", 2);
}

static void put_number(struct arguments *args, int64_t number)
{
    if (args->count == NUMBERS_MAX) {
        args->is_full = true;
        return;
    }
    args->numbers[args->count++] = number;
    put(args, "\x01", 1);
}

static enum lac_status set_arguments(struct lac_nsys *nsys, struct arguments *args,
                                     struct lac_slice_in *slice)
{
    if (args->used == 0 || args->is_full) {
        return LAC_OK;
    }
    args->text[args->used++] = '}';
    enum lac_status status =
        lac_strings_intern(&nsys->model->strings, args->text, args->used, &slice->args);
    if (status == LAC_OK && args->count > 0) {
        status =
            lac_builder_arg_numbers(nsys->builder, args->numbers, args->count, &slice->arg_num);
    }
    return lac_nsys_pass(nsys, status);
}

/* ---- operators of emit_nvtx ---- */

static size_t integer_at(const char *text, size_t size, int64_t *ret_value)
{
    size_t at = 0;
    uint64_t value = 0;
    bool is_negative = size > 0 && text[0] == '-';
    at += is_negative ? 1 : 0;
    size_t first = at;
    while (at < size && text[at] >= '0' && text[at] <= '9' && at - first < 18) {
        value = value * 10 + (uint64_t)(text[at++] - '0');
    }
    *ret_value = is_negative ? -(int64_t)value : (int64_t)value;
    return at == first ? 0 : at;
}

/* A list as JSON: shapes as they stand, for they repeat; other numbers apart. A tuple of Python is
 * a list. Returns the length, 0: no list. */
static size_t list_at(struct arguments *args, const char *text, size_t size, bool keep_numbers)
{
    int depth = 0;
    char before = ','; /* what came last: '[', ',' or 'v' for a value */
    for (size_t at = 0; at < size && !args->is_full;) {
        char c = text[at];
        int64_t value;
        size_t length = integer_at(text + at, size - at, &value);
        if (length > 0 && depth > 0 && before != 'v') {
            if (!keep_numbers) {
                put_number(args, value);
            } else if ((c == '0' && length > 1) ||
                       (c == '-' && length > 2 && text[at + 1] == '0')) {
                return 0; /* no number of JSON begins with a 0 that others follow */
            } else {
                put(args, text + at, length);
            }
            before = 'v';
            at += length;
        } else if ((c == '[' || c == '(') && before != 'v') {
            depth++;
            put(args, "[", 1);
            before = '[';
            at++;
        } else if ((c == ']' || c == ')') && depth > 0) {
            args->used -= before == ',' ? 1 : 0; /* Python's "(1,)" */
            put(args, "]", 1);
            before = 'v';
            at++;
            if (--depth == 0) {
                return at;
            }
        } else if (c == ',' && before == 'v') {
            put(args, ",", 1);
            before = ',';
            at++;
        } else if (c == ' ' && depth > 0) {
            at++;
        } else {
            return 0;
        }
    }
    return 0;
}

/* Whether the text is an operator with its arguments; *ret_name_size is then the name's length. */
static bool parse_operator(const char *text, size_t size, struct arguments *args,
                           size_t *ret_name_size)
{
    static const struct {
        const char *key;
        enum { IS_INTEGER, IS_SHAPES, IS_LIST } form;
    } KEYS[] = {{"seq", IS_INTEGER},
                {"op_id", IS_INTEGER},
                {"sizes", IS_SHAPES},
                {"input_op_ids", IS_LIST}};
    size_t at = 0;
    bool is_started = false;
    while (at < size) {
        const char *comma = memmem(text + at, size - at, ", ", 2);
        if (comma == NULL) {
            break;
        }
        size_t from = (size_t)(comma - text) + 2;
        size_t taken = 0;
        for (size_t i = 0; i < LAC_COUNT_OF(KEYS) && taken == 0; i++) {
            size_t length = strlen(KEYS[i].key);
            if (size - from < length + 4 || memcmp(text + from, KEYS[i].key, length) != 0 ||
                memcmp(text + from + length, " = ", 3) != 0) {
                continue;
            }
            const char *value = text + from + length + 3;
            size_t left = size - from - length - 3;
            int64_t number;
            put_key(args, KEYS[i].key, length);
            if (KEYS[i].form == IS_INTEGER) {
                taken = integer_at(value, left, &number);
                put_number(args, number);
            } else {
                taken = list_at(args, value, left, KEYS[i].form == IS_SHAPES);
            }
            if (taken == 0) {
                return false;
            }
            taken += length + 3;
        }
        if (taken == 0 && is_started) {
            return false; /* something else follows: better the whole text than half of it */
        }
        if (taken > 0 && !is_started) {
            *ret_name_size = (size_t)(comma - text);
            is_started = true;
        }
        at = from + taken;
        if (is_started && at < size && text[at] != ',') {
            return false;
        }
    }
    return is_started && *ret_name_size > 0 && !args->is_full;
}

/* ---- rows ---- */

static uint64_t domain_key(int64_t global_tid, int64_t domain)
{
    return ((uint64_t)global_tid >> 24 << 24) + (uint64_t)domain;
}

/* Names come first, whatever their place in the table. */
static enum lac_status on_name(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    enum { N_TYPE, N_THREAD, N_TEXT, N_TEXT_ID, N_DOMAIN };
    uint32_t name = 0;
    int64_t global_tid = lac_nsys_rows_integer_or(rows, N_THREAD, 0);
    enum lac_status status = lac_nsys_column_name(nsys, rows, N_TEXT, N_TEXT_ID, &name);
    if (status != LAC_OK || name == 0) {
        return status;
    }
    if (lac_nsys_rows_integer_or(rows, N_TYPE, 0) == TYPE_DOMAIN) {
        uint32_t *entry = lac_nsys_map_at(
            &nsys->domain_of, domain_key(global_tid, lac_nsys_rows_integer_or(rows, N_DOMAIN, 0)));
        if (entry == NULL) {
            return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
        }
        *entry = name;
        return LAC_OK;
    }
    uint32_t track = 0;
    status = lac_nsys_thread(nsys, LAC_TRACK_THREAD, global_tid, &track);
    if (status == LAC_OK) {
        lac_builder_track_at(nsys->builder, track)->name = name;
    }
    return status;
}

static enum lac_status put_domain(struct lac_nsys *nsys, const struct lac_nsys_rows *rows,
                                  struct arguments *args)
{
    int64_t domain;
    if (!lac_nsys_rows_integer(rows, DOMAIN, &domain) || domain == 0) {
        return LAC_OK;
    }
    uint32_t name = lac_nsys_map_get(&nsys->domain_of,
                                     domain_key(lac_nsys_rows_integer_or(rows, THREAD, 0), domain));
    put_key(args, "domain", 6);
    if (name == LAC_NONE) {
        put_number(args, domain);
        return LAC_OK;
    }
    put(args, "\"", 1);
    const char *text = lac_model_str(nsys->model, name);
    for (size_t i = 0; text[i] != '\0'; i++) {
        bool is_plain = text[i] != '"' && text[i] != '\\' && (unsigned char)text[i] >= 0x20;
        put(args, is_plain ? &text[i] : "_", 1);
    }
    put(args, "\"", 1);
    return LAC_OK;
}

static enum lac_status describe(struct lac_nsys *nsys, const struct lac_nsys_rows *rows,
                                struct lac_slice_in *slice)
{
    static const int VALUES[] = {UINT64, INT64, UINT32, INT32};
    struct arguments args;
    size_t size = 0;
    const char *text = lac_nsys_column_bytes(nsys, rows, TEXT, TEXT_ID, &size);
    size_t name_size = 0;
    enum lac_status status = LAC_OK;
    begin(&args);
    if (text != NULL && parse_operator(text, size, &args, &name_size)) {
        slice->kind = slice->kind == LAC_SLICE_RANGE ? LAC_SLICE_OP : slice->kind;
        status = lac_nsys_intern(nsys, text, name_size, &slice->name);
    } else {
        begin(&args); /* what a half-understood text left */
        status = lac_nsys_column_name(nsys, rows, TEXT, TEXT_ID, &slice->name);
    }
    if (status == LAC_OK) {
        status = put_domain(nsys, rows, &args);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(VALUES) && status == LAC_OK; i++) {
        int64_t value;
        if (lac_nsys_rows_integer(rows, VALUES[i], &value)) {
            put_key(&args, "payload", 7);
            put_number(&args, value);
            break;
        }
    }
    return status == LAC_OK ? set_arguments(nsys, &args, slice) : status;
}

/* A range without an end was open when the recording stopped: it is closed when all is read. */
static enum lac_status keep_open(struct lac_nsys *nsys, const struct lac_slice_in *slice)
{
    if (!LAC_RESERVE(nsys->open, nsys->open_capacity, nsys->open_count, 1)) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    nsys->open[nsys->open_count++].slice = *slice;
    return LAC_OK;
}

static enum lac_status on_range(struct lac_nsys *nsys, const struct lac_nsys_rows *rows,
                                int64_t type)
{
    struct lac_slice_in slice = {.detail = LAC_NONE, .kind = LAC_SLICE_RANGE};
    int64_t thread = lac_nsys_rows_integer_or(rows, THREAD, 0);
    int64_t end_thread = lac_nsys_rows_integer_or(rows, END_THREAD, thread);
    int64_t end_ns;
    bool is_good = true;
    bool is_open = !lac_nsys_rows_integer(rows, END, &end_ns) &&
                   lac_nsys_rows_integer(rows, START, &slice.start_ns) &&
                   lac_nsys_is_time(slice.start_ns);
    enum lac_status status = LAC_OK;
    if (!is_open) {
        status = lac_nsys_interval(nsys, rows, &slice, &is_good);
    }
    if (status != LAC_OK || !is_good) {
        return status;
    }
    /* a range that one thread starts and another ends is not part of either's nesting */
    status = type == TYPE_START_END && end_thread != thread
                 ? lac_nsys_async(nsys, thread, "NVTX ranges across threads", &slice.track)
                 : lac_nsys_thread(nsys, LAC_TRACK_THREAD, thread, &slice.track);
    if (status == LAC_OK) {
        status = describe(nsys, rows, &slice);
    }
    if (status != LAC_OK) {
        return status;
    }
    return is_open ? keep_open(nsys, &slice) : lac_nsys_add(nsys, &slice);
}

static enum lac_status on_mark(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    struct lac_slice_in slice = {.detail = LAC_NONE, .kind = LAC_SLICE_INSTANT};
    if (!lac_nsys_rows_integer(rows, START, &slice.start_ns) || !lac_nsys_is_time(slice.start_ns)) {
        lac_model_report(nsys->model, LAC_REPORT_DROPPED, "row_without_times", 1, 0,
                         "Rows whose start or end is missing or not a time were dropped.");
        return LAC_OK;
    }
    enum lac_status status = lac_nsys_thread(
        nsys, LAC_TRACK_MARKS, lac_nsys_rows_integer_or(rows, THREAD, 0), &slice.track);
    if (status == LAC_OK) {
        status = describe(nsys, rows, &slice);
    }
    if (status == LAC_OK) {
        status = lac_nsys_add(nsys, &slice);
        nsys->slice_count--; /* instants are no slices */
    }
    return status;
}

static enum lac_status on_event(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    int64_t type = lac_nsys_rows_integer_or(rows, TYPE, TYPE_PUSH_POP);
    switch (type) {
    case TYPE_PUSH_POP:
    case TYPE_START_END:
        return on_range(nsys, rows, type);
    case TYPE_MARK:
        return on_mark(nsys, rows);
    case TYPE_THREAD_NAME:
    case TYPE_DOMAIN:
        return LAC_OK; /* read before */
    default:
        lac_model_report(nsys->model, LAC_REPORT_INFO, "nvtx_event_not_shown", 1, 0,
                         "NVTX rows of other types (categories, resources) are not shown.");
        return LAC_OK;
    }
}

enum lac_status lac_nsys_read_nvtx(struct lac_nsys *nsys)
{
    static const char *const NAME_COLUMNS[] = {"eventType", "globalTid", "text",
                                               "textId",    "domainId",  NULL};
    struct lac_nsys_rows rows;
    bool found = false;
    enum lac_status status =
        lac_nsys_rows_open(&rows, &nsys->db, "NVTX_EVENTS", NAME_COLUMNS, "IN (39, 75)", false);
    while (status == LAC_OK) {
        status = lac_nsys_rows_next(&rows, &found);
        if (status != LAC_OK || !found) {
            break;
        }
        status = on_name(nsys, &rows);
    }
    lac_nsys_rows_close(&rows);
    if (status == LAC_OK) {
        status = lac_nsys_each(nsys, "NVTX_EVENTS", COLUMNS, true, on_event);
    }
    for (uint32_t i = 0; i < nsys->open_count && status == LAC_OK; i++) {
        struct lac_slice_in *slice = &nsys->open[i].slice;
        slice->dur_ns = nsys->last_ns > slice->start_ns ? nsys->last_ns - slice->start_ns : 0;
        lac_model_report(nsys->model, LAC_REPORT_REPAIRED, "range_not_ended", 1, 0,
                         "Ranges still open at the end of the recording end with it.");
        status = lac_nsys_add(nsys, slice);
    }
    return status;
}
