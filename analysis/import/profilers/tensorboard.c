/*
 * Event files of TensorBoard (events.out.tfevents.*): each scalar is a counter over the time of day,
 * and a result of the run. Pictures, histograms, graphs and texts are counted.
 *
 * A file is a row of records, each with its length (8 bytes), a checksum of that (4), the bytes of a
 * protocol buffer, and a checksum of those (4). The writer is often still at work: a record that the
 * file ends in is no damage.
 *
 * Sources: tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto,
 * tensorflow/core/framework/summary.proto and tensor.proto
 */

#include "analysis/import/perfetto/proto.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/import/text/training_result.h"
#include "analysis/model/builder.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/setting_rows.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "collector/base/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD_BYTES = 12,
    CHECK_BYTES = 4,
    FIRST_BYTES_MAX = 4096,      /**< the first record names the version of the file */
    SCALARS_BYTES_MAX = 1 << 20, /**< a longer record holds pictures or a graph */
    TAGS_MAX = 1024,
    NAME_BYTES_MAX = 120, /**< of a result; two tags that begin with the same are one */
    RESULTS_MAX = 64,     /**< as many as `lacuna run --metric` notes */
    TELL_RECORDS = 4096,
};

/* Fields of the messages. */
enum { EVENT_WALL_TIME = 1, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8 };
enum {
    TENSOR_TYPE = 1,
    TENSOR_CONTENT = 4,
    TENSOR_FLOAT = 5,
    TENSOR_DOUBLE = 6,
    TENSOR_INT = 7,
    TENSOR_INT64 = 10,
    TENSOR_HALF = 13
};
enum {
    TYPE_FLOAT = 1,
    TYPE_DOUBLE = 2,
    TYPE_INT32 = 3,
    TYPE_INT64 = 9,
    TYPE_BFLOAT16 = 14,
    TYPE_HALF = 19
};

struct tag {
    uint32_t name; /**< string id */
    uint32_t track;
    struct lac_result result;
};

struct reader {
    struct lac_profile profile;
    const struct lac_import_options *options;
    struct lac_source *source;
    uint64_t offset_bytes, record_count;
    uint32_t process;
    uint64_t scalars, others, not_finite, too_many, without_time, bad_records, first_bad_bytes;
    uint32_t tag_count;
    struct tag tags[TAGS_MAX];
    uint32_t crc_table[256];
    uint8_t *record; /* read_record() */
    uint64_t record_capacity;
};

/* -- checksums --------------------------------------------------------------------------------- */

/** CRC-32C of one byte. */
static uint32_t crc_of_byte(uint32_t crc)
{
    for (int bit = 0; bit < 8; bit++) {
        crc = crc >> 1 ^ (0x82f63b78U & (0U - (crc & 1U)));
    }
    return crc;
}

/** @param table of all bytes; NULL for a few bytes that do not pay one */
static uint32_t crc32c(const uint32_t *table, const uint8_t *bytes, size_t size_bytes)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < size_bytes; i++) {
        const uint32_t byte = (crc ^ bytes[i]) & 0xffU;

        crc = crc >> 8 ^ (table != NULL ? table[byte] : crc_of_byte(byte));
    }
    return ~crc;
}

/** As the format keeps it: turned, so that a checksum of checksums is no trivial one. */
static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

static uint64_t little_endian(const uint8_t *bytes, size_t size_bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size_bytes; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

static bool has_length(const uint8_t *head)
{
    return masked(crc32c(NULL, head, 8)) == (uint32_t)little_endian(head + 8, 4);
}

bool lac_tensorboard_is_its_own(const uint8_t *head, size_t size_bytes)
{
    const uint64_t length = size_bytes >= HEAD_BYTES ? little_endian(head, 8) : 0;

    return length > 0 && length <= FIRST_BYTES_MAX && has_length(head);
}

/* -- scalars ----------------------------------------------------------------------------------- */

static double real32(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof(value));
    return (double)value;
}

static double real64(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/** Half precision: a sign, 5 bits of exponent, 10 of the fraction. */
static double real16(uint64_t bits)
{
    const unsigned exponent = (unsigned)(bits >> 10) & 31U;
    const double fraction = (double)(bits & 1023U);
    const double value = exponent == 31 ? (fraction > 0.0 ? (double)NAN : (double)INFINITY)
                         : exponent > 0 ? ldexp(1024.0 + fraction, (int)exponent - 25)
                                        : ldexp(fraction, -24);

    return (bits & 0x8000U) != 0 ? -value : value;
}

/** A number of 16 bits. bfloat16 is the upper half of a float. */
static bool small_number(uint64_t type, uint64_t bits, double *ret)
{
    *ret = type == TYPE_HALF ? real16(bits) : real32(bits << 16);
    return bits <= UINT16_MAX && (type == TYPE_HALF || type == TYPE_BFLOAT16);
}

/** The one number in the bytes of a tensor. */
static bool number_of_bytes(uint64_t type, const uint8_t *bytes, size_t size_bytes, double *ret)
{
    if (type == TYPE_FLOAT && size_bytes == 4) {
        *ret = real32(little_endian(bytes, 4));
    } else if (type == TYPE_DOUBLE && size_bytes == 8) {
        *ret = real64(little_endian(bytes, 8));
    } else if (type == TYPE_INT32 && size_bytes == 4) {
        *ret = (double)(int32_t)(uint32_t)little_endian(bytes, 4);
    } else if (type == TYPE_INT64 && size_bytes == 8) {
        *ret = (double)(int64_t)little_endian(bytes, 8);
    } else {
        return size_bytes == 2 && small_number(type, little_endian(bytes, 2), ret);
    }
    return true;
}

/** A list of whole numbers with one in it, which may stand alone or be packed. */
static bool whole_number(const struct lac_proto_field *field, uint64_t *ret)
{
    const uint8_t *at = field->bytes;
    uint64_t value = field->value;

    if (field->wire == LAC_PROTO_BYTES &&
        (!lac_proto_varint(&at, field->bytes + field->size_bytes, &value) ||
         at != field->bytes + field->size_bytes)) {
        return false;
    }
    *ret = value;
    return field->wire == LAC_PROTO_VARINT || field->wire == LAC_PROTO_BYTES;
}

/** The number of a tensor that is one. */
static bool number_of_tensor(const struct lac_proto_field *tensor, double *ret)
{
    struct lac_proto proto = lac_proto_inside(tensor);
    struct lac_proto_field field;
    uint64_t type = 0;
    uint64_t whole = 0;
    unsigned count = 0;
    bool is_number = false;

    while (lac_proto_next(&proto, &field)) {
        switch (field.number) {
        case TENSOR_TYPE:
            type = field.value;
            break;
        case TENSOR_CONTENT:
            is_number = number_of_bytes(type, field.bytes, field.size_bytes, ret);
            count++;
            break;
        case TENSOR_FLOAT:
        case TENSOR_DOUBLE:
            is_number =
                field.wire == LAC_PROTO_BYTES
                    ? number_of_bytes(field.number == TENSOR_FLOAT ? TYPE_FLOAT : TYPE_DOUBLE,
                                      field.bytes, field.size_bytes, ret)
                    : field.wire == LAC_PROTO_FIXED32 || field.wire == LAC_PROTO_FIXED64;
            if (is_number && field.wire != LAC_PROTO_BYTES) {
                *ret = field.wire == LAC_PROTO_FIXED32 ? real32(field.value) : real64(field.value);
            }
            count++;
            break;
        case TENSOR_INT:
        case TENSOR_INT64:
            is_number = whole_number(&field, &whole);
            *ret = (double)(int64_t)whole;
            count++;
            break;
        case TENSOR_HALF: /* the bits, as whole numbers */
            is_number = whole_number(&field, &whole) && small_number(type, whole, ret);
            count++;
            break;
        default:
            break;
        }
    }
    return is_number && count == 1 && !proto.is_damaged;
}

/** Of that name; NULL: there are too many. */
static enum lac_status find_tag(struct reader *reader, const struct lac_proto_field *text,
                                struct tag **ret_tag)
{
    uint32_t name = 0;
    enum lac_status status =
        lac_stacks_name(reader->profile.stacks, (const char *)text->bytes, text->size_bytes, &name);

    *ret_tag = NULL;
    for (uint32_t i = 0; i < reader->tag_count && status == LAC_OK; i++) {
        if (reader->tags[i].name == name) {
            *ret_tag = &reader->tags[i];
            return LAC_OK;
        }
    }
    if (status != LAC_OK || reader->tag_count == TAGS_MAX) {
        return status;
    }
    struct tag *const tag = &reader->tags[reader->tag_count];
    *tag = (struct tag){.name = name};
    status = lac_builder_track(reader->profile.builder, LAC_TRACK_COUNTER, reader->process, name,
                               -1, &tag->track);
    if (status == LAC_OK) {
        lac_builder_track_at(reader->profile.builder, tag->track)->name = name;
        reader->tag_count++;
        *ret_tag = tag;
    }
    return status;
}

static enum lac_status take_scalar(struct reader *reader, const struct lac_proto_field *name,
                                   int64_t at_ns, double value)
{
    struct tag *tag = NULL;

    if (!isfinite(value)) {
        reader->not_finite++; /* of a training that has diverged: the values before say enough */
        return LAC_OK;
    }
    enum lac_status status = find_tag(reader, name, &tag);
    if (status != LAC_OK || tag == NULL) {
        reader->too_many += tag == NULL;
        return status;
    }
    lac_result_add(&tag->result, at_ns, value);
    reader->scalars++;
    reader->profile.model->info.event_count++;
    return lac_builder_sample(reader->profile.builder, tag->track, at_ns, value);
}

static enum lac_status take_value(struct reader *reader, struct lac_proto value, int64_t at_ns)
{
    struct lac_proto_field field;
    struct lac_proto_field tag = {0};
    double number = 0.0;
    bool is_number = false;

    while (lac_proto_next(&value, &field)) {
        if (field.number == VALUE_TAG && field.wire == LAC_PROTO_BYTES) {
            tag = field;
        } else if (field.number == VALUE_SIMPLE && field.wire == LAC_PROTO_FIXED32) {
            number = real32(field.value);
            is_number = true;
        } else if (field.number == VALUE_TENSOR && field.wire == LAC_PROTO_BYTES) {
            is_number = number_of_tensor(&field, &number);
        }
    }
    if (value.is_damaged || tag.size_bytes == 0 || !is_number) {
        reader->others++;
        return LAC_OK;
    }
    return take_scalar(reader, &tag, at_ns, number);
}

static enum lac_status take_summary(struct reader *reader, struct lac_proto summary, int64_t at_ns)
{
    struct lac_proto_field field;
    enum lac_status status = LAC_OK;

    while (status == LAC_OK && lac_proto_next(&summary, &field)) {
        if (field.number == SUMMARY_VALUE && field.wire == LAC_PROTO_BYTES) {
            status = take_value(reader, lac_proto_inside(&field), at_ns);
        }
    }
    reader->others += summary.is_damaged;
    return status;
}

static enum lac_status take_event(struct reader *reader, size_t size_bytes)
{
    struct lac_proto event = lac_proto_of(reader->record, size_bytes);
    struct lac_proto_field field;
    struct lac_proto_field summary = {0};
    double at_s = -1.0;

    while (lac_proto_next(&event, &field)) {
        if (field.number == EVENT_WALL_TIME && field.wire == LAC_PROTO_FIXED64) {
            at_s = lac_proto_double(&field);
        } else if (field.number == EVENT_SUMMARY && field.wire == LAC_PROTO_BYTES) {
            summary = field;
        }
    }
    if (event.is_damaged) {
        reader->others++;
        return LAC_OK;
    }
    if (summary.bytes == NULL) { /* the version of the file, a graph */
        return LAC_OK;
    }
    if (!(at_s >= 0.0 && at_s < 9e9)) {
        reader->without_time++;
        return LAC_OK;
    }
    return take_summary(reader, lac_proto_inside(&summary), (int64_t)llround(at_s * 1e9));
}

/* -- records ----------------------------------------------------------------------------------- */

/** Fewer than asked for only at the end. */
static enum lac_status read_bytes(struct reader *reader, uint8_t *out, size_t want,
                                  size_t *ret_size)
{
    enum lac_status status = LAC_OK;
    size_t size = 1;

    *ret_size = 0;
    while (status == LAC_OK && *ret_size < want && size > 0) {
        status = lac_source_read(reader->source, out + *ret_size, want - *ret_size, &size,
                                 reader->profile.reterr);
        *ret_size += size;
    }
    reader->offset_bytes += *ret_size;
    reader->profile.lines.offset_bytes = reader->offset_bytes;
    return status;
}

static enum lac_status skip_bytes(struct reader *reader, uint64_t want, bool *ret_is_whole)
{
    enum lac_status status = LAC_OK;
    uint8_t skipped[16384];
    size_t size = 1;

    while (status == LAC_OK && want > 0 && size > 0) {
        const size_t most = want < sizeof(skipped) ? (size_t)want : sizeof(skipped);

        status = read_bytes(reader, skipped, most, &size);
        want -= size;
    }
    *ret_is_whole = want == 0;
    return status;
}

static void end_in_record(struct reader *reader)
{
    lac_model_report(reader->profile.model, LAC_REPORT_INFO, "last_record_cut", 1,
                     reader->offset_bytes,
                     "The file ends in a record: its writer is still at work, or was ended.");
}

/** Read one record and take what it holds. @param ret_more false at the end */
static enum lac_status read_record(struct reader *reader, bool *ret_more)
{
    uint8_t head[HEAD_BYTES];
    uint8_t check[CHECK_BYTES];
    const uint64_t offset_bytes = reader->offset_bytes;
    size_t size = 0;
    bool is_whole = false;
    enum lac_status status = read_bytes(reader, head, sizeof(head), &size);

    *ret_more = false;
    if (status != LAC_OK || size == 0) {
        return status;
    }
    if (size < sizeof(head)) {
        end_in_record(reader);
        return LAC_OK;
    }
    const uint64_t length = little_endian(head, 8);
    if (!has_length(head)) {
        lac_model_report(reader->profile.model, LAC_REPORT_REPAIRED, "length_damaged", 1,
                         offset_bytes,
                         "The length of a record is damaged: what follows it was left out.");
        return LAC_OK;
    }
    if (length > SCALARS_BYTES_MAX) { /* pictures, a graph */
        status = skip_bytes(reader, length, &is_whole);
        reader->others += is_whole;
    } else if (LAC_GROW(reader->record, &reader->record_capacity, length + 1) != LAC_OK) {
        status = lac_profile_failed(&reader->profile, LAC_ERR_NOMEM);
    } else {
        status = read_bytes(reader, reader->record, (size_t)length, &size);
        is_whole = size == length;
    }
    if (status == LAC_OK && is_whole) {
        status = read_bytes(reader, check, sizeof(check), &size);
        is_whole = size == sizeof(check);
    }
    if (status != LAC_OK || !is_whole) {
        if (status == LAC_OK) {
            end_in_record(reader);
        }
        return status;
    }
    *ret_more = true;
    reader->record_count++;
    if (length > SCALARS_BYTES_MAX) {
        return LAC_OK;
    }
    if (masked(crc32c(reader->crc_table, reader->record, (size_t)length)) !=
        (uint32_t)little_endian(check, 4)) {
        reader->first_bad_bytes = reader->bad_records == 0 ? offset_bytes : reader->first_bad_bytes;
        reader->bad_records++;
        return LAC_OK;
    }
    return lac_profile_failed(&reader->profile, take_event(reader, (size_t)length));
}

static enum lac_status tell(struct reader *reader)
{
    const struct lac_source_budget *const budget = lac_source_get_budget(reader->source);

    return reader->options->progress == NULL || reader->record_count % TELL_RECORDS != 0 ||
                   reader->options->progress(reader->options->progress_context, budget->input_bytes,
                                             budget->input_bytes_total, reader->scalars)
               ? LAC_OK
               : lac_fail(reader->profile.reterr, LAC_ERR_IO, reader->offset_bytes, "canceled");
}

/* -- the whole --------------------------------------------------------------------------------- */

/** The results of the run, as the recorder notes them. */
static enum lac_status add_results(struct reader *reader)
{
    struct lac_model *const model = reader->profile.model;
    struct lac_setting_rows *const rows = &model->settings;
    enum lac_status status = lac_settings_add(rows, UINT32_MAX, LAC_SETTING_OBJECT, "host", NULL);

    for (uint32_t i = 0; i < reader->tag_count && i < RESULTS_MAX && status == LAC_OK; i++) {
        const char *const tag = lac_strings_get(&model->strings, reader->tags[i].name);
        char text[LAC_RESULT_TEXT_BYTES];
        char name[160];

        (void)lac_result_text_timed(&reader->tags[i].result, tag, text);
        (void)snprintf(name, sizeof(name), "metric.%.*s",
                       (int)lac_utf8_cut(tag, strlen(tag), NAME_BYTES_MAX), tag);
        status = lac_settings_add(rows, 0, LAC_SETTING_TEXT, name, text);
        status = status == LAC_ERR_MISUSE || status == LAC_ERR_LIMIT ? LAC_OK : status;
    }
    if (reader->tag_count > RESULTS_MAX) {
        lac_model_report(model, LAC_REPORT_INFO, "results_left_out",
                         reader->tag_count - RESULTS_MAX, 0,
                         "The first 64 scalars are results of the run; the others are counters.");
    }
    return status;
}

static void report(struct reader *reader)
{
    const struct {
        const char *code;
        enum lac_report_severity severity;
        uint64_t count, first_bytes;
        const char *text;
    } lines[] = {
        {"no_scalars", LAC_REPORT_INFO, reader->others, 0,
         "Values that are no scalars (pictures, histograms, texts) have no place in a trace."},
        {"not_finite", LAC_REPORT_DROPPED, reader->not_finite, 0,
         "Values that are infinite or no number were left out."},
        {"too_many_tags", LAC_REPORT_DROPPED, reader->too_many, 0,
         "Scalars beyond the 1024th name were left out."},
        {"without_time", LAC_REPORT_DROPPED, reader->without_time, 0,
         "Values without a time were left out."},
        {"record_damaged", LAC_REPORT_REPAIRED, reader->bad_records, reader->first_bad_bytes,
         "Records whose checksums are wrong were left out."},
    };

    for (size_t i = 0; i < LAC_COUNT_OF(lines); i++) {
        if (lines[i].count > 0) {
            lac_model_report(reader->profile.model, lines[i].severity, lines[i].code,
                             lines[i].count, lines[i].first_bytes, lines[i].text);
        }
    }
}

static enum lac_status finish(struct reader *reader, struct lac_model **ret_model)
{
    const char *const damage = lac_source_damage(reader->source);

    report(reader);
    if (reader->scalars == 0) {
        return lac_fail(reader->profile.reterr, LAC_ERR_CORRUPT, 0,
                        "no scalar in this event file of TensorBoard");
    }
    if (damage != NULL) {
        lac_model_report(reader->profile.model, LAC_REPORT_REPAIRED, "input_damaged", 1, 0, damage);
    }
    enum lac_status status = add_results(reader);
    reader->profile.model->info.expanded_bytes = reader->offset_bytes;
    status = status == LAC_OK ? lac_builder_finish(reader->profile.builder, 0, ret_model) : status;
    reader->profile.builder = status == LAC_OK ? NULL : reader->profile.builder;
    return lac_profile_failed(&reader->profile, status);
}

enum lac_status lac_tensorboard_import(struct lac_source *source,
                                       const struct lac_import_options *options,
                                       size_t window_bytes, const char *name,
                                       struct lac_model **ret_model, struct lac_error *reterr)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    bool has_more = true;

    assert(source != NULL && options != NULL && ret_model != NULL);
    if (reader == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for the scalars");
    }
    reader->source = source;
    reader->options = options;
    for (uint32_t byte = 0; byte < 256; byte++) {
        reader->crc_table[byte] = crc_of_byte(byte);
    }
    enum lac_status status = lac_profile_open(&reader->profile, source, options, window_bytes, name,
                                              LAC_FORMAT_TENSORBOARD, reterr);
    if (status == LAC_OK) {
        status = lac_profile_failed(
            &reader->profile,
            lac_profile_process(&reader->profile, "TensorBoard", &reader->process));
    }
    while (status == LAC_OK && has_more) {
        status = read_record(reader, &has_more);
        status = status == LAC_OK ? tell(reader) : status;
    }
    status = status == LAC_OK ? finish(reader, ret_model) : status;
    lac_stacks_close(reader->profile.stacks);
    lac_builder_destroy(reader->profile.builder);
    free(reader->record);
    free(reader);
    return status;
}
