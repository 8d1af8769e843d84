#include "analysis/model/chunk.h"
#include "analysis/model/chunk_private.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* A chunk whose directory was read. */
struct chunk {
    struct lac_chunk_reader columns[LAC_COLUMN_COUNT_];
    uint32_t count;
    const struct lac_chunk_out *out;
};

static enum lac_status read_directory(const uint8_t *bytes, size_t size_bytes, struct chunk *chunk,
                                      struct lac_error *reterr)
{
    struct lac_chunk_reader reader = {.bytes = bytes, .size_bytes = size_bytes};
    uint64_t sizes[LAC_COLUMN_COUNT_];
    size_t at;

    if (lac_chunk_get_byte(&reader) != LAC_CHUNK_VERSION) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "The chunk is of a version we cannot read.");
    }
    for (int column = 0; column < LAC_COLUMN_COUNT_; column++) {
        sizes[column] = lac_chunk_get_varint(&reader);
    }
    at = reader.at;
    for (int column = 0; column < LAC_COLUMN_COUNT_; column++) {
        if (reader.failed || sizes[column] > size_bytes - at) {
            return lac_fail(reterr, LAC_ERR_CORRUPT, at,
                            "Column %d of the chunk goes beyond its end.", column);
        }
        chunk->columns[column] =
            (struct lac_chunk_reader){.bytes = bytes, .size_bytes = at + sizes[column], .at = at};
        at += sizes[column];
    }
    if (at != size_bytes) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, at, "There are bytes behind the chunk's columns.");
    }
    return LAC_OK;
}

static enum lac_status corrupt(const struct chunk *chunk, enum lac_chunk_column column,
                               const char *what, struct lac_error *reterr)
{
    return lac_fail(reterr, LAC_ERR_CORRUPT, chunk->columns[column].at,
                    "Column %d of the chunk %s.", (int)column, what);
}

/* codec->values hold the column's integers afterwards; all its bytes must be used up. */
static enum lac_status get_column(struct lac_chunk_codec *codec, struct chunk *chunk,
                                  enum lac_chunk_column column, struct lac_error *reterr)
{
    struct lac_chunk_reader *reader = &chunk->columns[column];
    enum lac_status status = lac_chunk_get_values(codec, reader, chunk->count);

    if (status != LAC_OK) {
        return lac_fail(reterr, status, reader->at, "Out of memory while reading a chunk.");
    }
    if (reader->failed || reader->at != reader->size_bytes) {
        return corrupt(chunk, column, "is damaged", reterr);
    }
    return LAC_OK;
}

static enum lac_status get_starts(struct lac_chunk_codec *codec, struct chunk *chunk,
                                  struct lac_error *reterr)
{
    int64_t *start = chunk->out->at.start_ns;
    uint64_t before = 0;
    uint64_t bits = 0;
    enum lac_status status = get_column(codec, chunk, LAC_COLUMN_START, reterr);

    if (status != LAC_OK) {
        return status;
    }
    for (uint32_t i = 0; i < chunk->count; i++) {
        before += codec->values[i];
        bits |= codec->values[i] | before;
        start[i] = (int64_t)before;
    }
    /* Neither a difference nor a sum went beyond 2^53, so none wrapped: the starts ascend. */
    if (bits > (uint64_t)LAC_TIME_MAX_NS) {
        return corrupt(chunk, LAC_COLUMN_START, "holds times out of range", reterr);
    }
    return LAC_OK;
}

static enum lac_status get_durs(struct lac_chunk_codec *codec, struct chunk *chunk,
                                struct lac_error *reterr)
{
    int64_t *dur = chunk->out->at.dur_ns;
    uint64_t bits = 0;
    enum lac_status status = get_column(codec, chunk, LAC_COLUMN_DUR, reterr);

    if (status != LAC_OK) {
        return status;
    }
    for (uint32_t i = 0; i < chunk->count; i++) {
        bits |= codec->values[i];
        dur[i] = (int64_t)codec->values[i];
    }
    if (bits > (uint64_t)LAC_TIME_MAX_NS) {
        return corrupt(chunk, LAC_COLUMN_DUR, "holds times out of range", reterr);
    }
    return LAC_OK;
}

/* The inverse of put_indexed(): local indices to `index`, their ids to the dictionary. */
static enum lac_status get_indexed(struct lac_chunk_codec *codec, struct chunk *chunk,
                                   enum lac_chunk_column column, uint32_t *index,
                                   struct lac_chunk_dictionary *dictionary,
                                   struct lac_error *reterr)
{
    struct lac_chunk_reader *reader = &chunk->columns[column];
    uint64_t count = lac_chunk_get_varint(reader);
    enum lac_status status;
    uint64_t before = 0;
    uint64_t largest = 0;

    if (count == 0 || count > chunk->count) {
        return corrupt(chunk, column, "has a dictionary of a wrong size", reterr);
    }
    status = lac_chunk_get_values(codec, reader, chunk->count);
    for (uint32_t i = 0; i < chunk->count && status == LAC_OK; i++) {
        largest = codec->values[i] > largest ? codec->values[i] : largest;
        index[i] = (uint32_t)codec->values[i];
    }
    if (status == LAC_OK) {
        status = lac_chunk_get_values(codec, reader, count);
    }
    if (status != LAC_OK) {
        return lac_fail(reterr, status, reader->at, "Out of memory while reading a chunk.");
    }
    if (reader->failed || reader->at != reader->size_bytes || largest >= count) {
        return corrupt(chunk, column, "is damaged", reterr);
    }
    dictionary->count = (uint32_t)count;
    for (uint64_t i = 0; i < count; i++) {
        before += lac_unzigzag(codec->values[i]);
        if (before > UINT32_MAX) {
            return corrupt(chunk, column, "names an impossible string", reterr);
        }
        dictionary->id[i] = (uint32_t)before;
    }
    return LAC_OK;
}

static enum lac_status get_names(struct lac_chunk_codec *codec, struct chunk *chunk,
                                 struct lac_error *reterr)
{
    uint32_t *name = chunk->out->at.name;
    enum lac_status status =
        get_indexed(codec, chunk, LAC_COLUMN_NAME, codec->name_index, &codec->names, reterr);

    for (uint32_t i = 0; i < chunk->count && status == LAC_OK && name != NULL; i++) {
        name[i] = codec->names.id[codec->name_index[i]];
    }
    return status;
}

static enum lac_status get_lanes(struct lac_chunk_codec *codec, struct chunk *chunk,
                                 struct lac_error *reterr)
{
    uint16_t *lane = chunk->out->at.lane;
    uint64_t bits = 0;
    enum lac_status status = get_column(codec, chunk, LAC_COLUMN_LANE, reterr);

    for (uint32_t i = 0; i < chunk->count && status == LAC_OK; i++) {
        bits |= codec->values[i];
        lane[i] = (uint16_t)codec->values[i];
    }
    if (bits > LAC_LANE_MAX) {
        return corrupt(chunk, LAC_COLUMN_LANE, "holds an impossible lane", reterr);
    }
    return status;
}

static enum lac_status get_kinds(struct lac_chunk_codec *codec, struct chunk *chunk,
                                 struct lac_error *reterr)
{
    uint8_t *kind = chunk->out->at.kind;
    uint64_t largest = 0;
    enum lac_status status = get_column(codec, chunk, LAC_COLUMN_KIND, reterr);

    memset(codec->last, 0, codec->names.count * sizeof(*codec->last));
    for (uint32_t i = 0; i < chunk->count && status == LAC_OK; i++) {
        uint64_t *last = &codec->last[codec->name_index[i]];

        *last ^= codec->values[i];
        largest = *last > largest ? *last : largest;
        kind[i] = (uint8_t)*last;
    }
    if (largest >= LAC_SLICE_KIND_COUNT_) {
        return corrupt(chunk, LAC_COLUMN_KIND, "holds an impossible kind", reterr);
    }
    return status;
}

/* Both corr and link: `none` if absent, else the difference to the last one present. */
static enum lac_status get_references(struct lac_chunk_codec *codec, struct chunk *chunk,
                                      enum lac_chunk_column column, uint32_t none, uint32_t *to,
                                      struct lac_error *reterr)
{
    uint32_t before = 0;
    enum lac_status status = get_column(codec, chunk, column, reterr);

    for (uint32_t i = 0; i < chunk->count && status == LAC_OK; i++) {
        if (codec->values[i] == 0) {
            to[i] = none;
            continue;
        }
        before += (uint32_t)lac_unzigzag(codec->values[i] - 1);
        if (before == none) {
            return corrupt(chunk, column, "holds an impossible reference", reterr);
        }
        to[i] = before;
    }
    return status;
}

static enum lac_status get_details(struct lac_chunk_codec *codec, struct chunk *chunk,
                                   struct lac_error *reterr)
{
    uint32_t *detail = chunk->out->at.detail;
    enum lac_status status = get_column(codec, chunk, LAC_COLUMN_DETAIL, reterr);

    memset(codec->last, 0, codec->names.count * sizeof(*codec->last));
    for (uint32_t i = 0; i < chunk->count && status == LAC_OK; i++) {
        uint64_t *last = &codec->last[codec->name_index[i]];

        *last += lac_unzigzag(codec->values[i]);
        detail[i] = (uint32_t)*last - 1;
    }
    return status;
}

static enum lac_status get_args(struct lac_chunk_codec *codec, struct chunk *chunk,
                                struct lac_error *reterr)
{
    uint32_t *args = chunk->out->at.args;
    enum lac_status status = get_indexed(codec, chunk, LAC_COLUMN_ARGS, codec->template_index,
                                         &codec->templates, reterr);

    for (uint32_t i = 0; i < chunk->count && status == LAC_OK && args != NULL; i++) {
        args[i] = codec->templates.id[codec->template_index[i]];
    }
    return status;
}

/* Inverse of put_stream(), but for the correlation ids, which are added when they are known. */
static enum lac_status get_stream(struct lac_chunk_codec *codec, struct lac_chunk_reader *reader,
                                  struct lac_number_stream *stream)
{
    uint64_t *numbers = codec->gathered + stream->first;
    uint64_t before = 0;
    enum lac_status status;

    stream->mode = lac_chunk_get_byte(reader);
    if (stream->mode >= LAC_NUMBER_MODE_COUNT_) {
        reader->failed = true;
        return LAC_OK;
    }
    status = lac_chunk_need_values(codec, stream->count);
    if (status == LAC_OK) {
        status = lac_chunk_get_values(codec, reader, stream->count);
    }
    if (status != LAC_OK) {
        return status;
    }
    for (uint64_t i = 0; i < stream->count; i++) {
        uint64_t value = codec->values[i];

        if (stream->mode == LAC_NUMBER_DELTA) {
            before += lac_unzigzag(value);
            numbers[i] = before;
        } else {
            numbers[i] = stream->mode == LAC_NUMBER_PLAIN ? value : lac_unzigzag(value);
        }
    }
    return LAC_OK;
}

static enum lac_status get_streams(struct lac_chunk_codec *codec, struct chunk *chunk,
                                   struct lac_error *reterr)
{
    struct lac_chunk_reader *reader = &chunk->columns[LAC_COLUMN_NUMBERS];
    uint64_t number_count = 0;
    enum lac_status status = lac_chunk_spread(codec, chunk->out->strings);

    if (status == LAC_OK) {
        status = lac_chunk_lay_streams(codec, chunk->count, &number_count);
    }
    if (status == LAC_OK) {
        status = LAC_GROW(codec->gathered, &codec->gathered_capacity, number_count);
    }
    if (status == LAC_OK) {
        status = LAC_GROW(*chunk->out->numbers, chunk->out->number_capacity,
                          *chunk->out->number_count + number_count);
    }
    for (uint64_t s = 0; s < codec->stream_count && status == LAC_OK && !reader->failed; s++) {
        if (codec->streams[s].count != 0) {
            status = get_stream(codec, reader, &codec->streams[s]);
        }
    }
    if (status == LAC_ERR_NOMEM) {
        return lac_fail(reterr, status, reader->at, "Out of memory while reading a chunk.");
    }
    if (status != LAC_OK || reader->failed || reader->at != reader->size_bytes ||
        *chunk->out->number_count + number_count > LAC_NONE) {
        return corrupt(chunk, LAC_COLUMN_NUMBERS, "is damaged", reterr);
    }
    return LAC_OK;
}

static enum lac_status get_numbers(struct lac_chunk_codec *codec, struct chunk *chunk,
                                   const uint32_t *corr, struct lac_error *reterr)
{
    uint32_t *arg_num = chunk->out->at.arg_num;
    uint64_t next = *chunk->out->number_count;
    enum lac_status status = get_streams(codec, chunk, reterr);
    int64_t *numbers;

    if (status != LAC_OK) {
        return status;
    }
    numbers = *chunk->out->numbers;
    for (uint32_t i = 0; i < chunk->count; i++) {
        const struct lac_chunk_slots *slots = &codec->slots[codec->template_index[i]];

        arg_num[i] = slots->count == 0 ? 0 : (uint32_t)next;
        for (uint32_t s = 0; s < slots->count; s++) {
            struct lac_number_stream *stream =
                &codec->streams[codec->slot_stream[slots->first + s]];
            uint64_t number = codec->gathered[stream->next++];

            numbers[next++] =
                (int64_t)(stream->mode == LAC_NUMBER_CORRELATION ? number + corr[i] : number);
        }
    }
    *chunk->out->number_count = next;
    return LAC_OK;
}

/* start + dur must not exceed the latest time */
static enum lac_status check_ends(const struct chunk *chunk, struct lac_error *reterr)
{
    const int64_t *start = chunk->out->at.start_ns;
    const int64_t *dur = chunk->out->at.dur_ns;
    int64_t latest = 0;

    for (uint32_t i = 0; i < chunk->count; i++) {
        int64_t end = start[i] + dur[i]; /* both are below 2^53 */

        latest = end > latest ? end : latest;
    }
    return latest > LAC_TIME_MAX_NS
               ? corrupt(chunk, LAC_COLUMN_DUR, "holds times out of range", reterr)
               : LAC_OK;
}

/* Columns that others are predicted from or that say how many numbers there are. */
static unsigned with_needed(unsigned columns)
{
    if (columns & 1u << LAC_COLUMN_NUMBERS) {
        columns |= 1u << LAC_COLUMN_ARGS | 1u << LAC_COLUMN_CORR;
    }
    if (columns & (1u << LAC_COLUMN_KIND | 1u << LAC_COLUMN_DETAIL)) {
        columns |= 1u << LAC_COLUMN_NAME;
    }
    return columns;
}

/* NOLINTNEXTLINE(readability-function-size): a chunk is four of the parameters */
enum lac_status lac_chunk_decode(struct lac_chunk_codec *codec, const uint8_t *bytes,
                                 size_t size_bytes, uint32_t count, uint64_t first,
                                 unsigned columns, const struct lac_chunk_out *out,
                                 struct lac_error *reterr)
{
    assert(codec != NULL && out != NULL);
    assert(bytes != NULL || size_bytes == 0);
    struct chunk chunk = {.count = count, .out = out};
    uint32_t *corr = out->at.corr != NULL ? out->at.corr : codec->column;
    unsigned todo = with_needed(columns);
    enum lac_status status;

    (void)first; /* no column of this version is coded relative to the slice's own id */
    if (count == 0 || count > LAC_CHUNK_SLICES) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "A chunk cannot hold %u slices.", count);
    }
    status = read_directory(bytes, size_bytes, &chunk, reterr);
    if (status == LAC_OK && todo & 1u << LAC_COLUMN_START) {
        status = get_starts(codec, &chunk, reterr);
    }
    if (status == LAC_OK && todo & 1u << LAC_COLUMN_DUR) {
        status = get_durs(codec, &chunk, reterr);
    }
    if (status == LAC_OK && todo & 1u << LAC_COLUMN_START && todo & 1u << LAC_COLUMN_DUR) {
        status = check_ends(&chunk, reterr);
    }
    if (status == LAC_OK && todo & 1u << LAC_COLUMN_NAME) {
        status = get_names(codec, &chunk, reterr);
    }
    if (status == LAC_OK && todo & 1u << LAC_COLUMN_LANE) {
        status = get_lanes(codec, &chunk, reterr);
    }
    if (status == LAC_OK && todo & 1u << LAC_COLUMN_KIND) {
        status = get_kinds(codec, &chunk, reterr);
    }
    if (status == LAC_OK && todo & 1u << LAC_COLUMN_CORR) {
        status = get_references(codec, &chunk, LAC_COLUMN_CORR, 0, corr, reterr);
    }
    if (status == LAC_OK && todo & 1u << LAC_COLUMN_LINK) {
        status = get_references(codec, &chunk, LAC_COLUMN_LINK, LAC_NONE, out->at.link, reterr);
    }
    if (status == LAC_OK && todo & 1u << LAC_COLUMN_DETAIL) {
        status = get_details(codec, &chunk, reterr);
    }
    if (status == LAC_OK && todo & 1u << LAC_COLUMN_ARGS) {
        status = get_args(codec, &chunk, reterr);
    }
    if (status == LAC_OK && todo & 1u << LAC_COLUMN_NUMBERS) {
        status = get_numbers(codec, &chunk, corr, reterr);
    }
    return status;
}
