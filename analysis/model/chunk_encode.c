#include "analysis/model/chunk.h"
#include "analysis/model/chunk_private.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

struct source {
    const struct lac_model *model;
    uint64_t first;
    uint32_t count;
};

static enum lac_status put_starts(struct lac_chunk_codec *codec, const struct source *source)
{
    const int64_t *start = source->model->slices.start_ns + source->first;
    uint64_t before = 0;

    for (uint32_t i = 0; i < source->count; i++) {
        codec->values[i] = (uint64_t)start[i] - before;
        before = (uint64_t)start[i];
    }
    return lac_chunk_put_values(codec, source->count, true);
}

static enum lac_status put_durs(struct lac_chunk_codec *codec, const struct source *source)
{
    const int64_t *dur = source->model->slices.dur_ns + source->first;

    for (uint32_t i = 0; i < source->count; i++) {
        codec->values[i] = (uint64_t)dur[i];
    }
    return lac_chunk_put_values(codec, source->count, true);
}

/* Local indices, then their ids as differences. */
static enum lac_status put_dictionary(struct lac_chunk_codec *codec,
                                      const struct lac_chunk_dictionary *dictionary)
{
    uint64_t before = 0;

    for (uint32_t i = 0; i < dictionary->count; i++) {
        codec->values[i] = lac_zigzag(dictionary->id[i] - before);
        before = dictionary->id[i];
    }
    return lac_chunk_put_values(codec, dictionary->count, false);
}

static enum lac_status put_indexed(struct lac_chunk_codec *codec, const uint32_t *index,
                                   uint32_t count, const struct lac_chunk_dictionary *dictionary)
{
    enum lac_status status = lac_chunk_put_varint(codec, dictionary->count);

    for (uint32_t i = 0; i < count; i++) {
        codec->values[i] = index[i];
    }
    if (status == LAC_OK) {
        status = lac_chunk_put_values(codec, count, false);
    }
    return status == LAC_OK ? put_dictionary(codec, dictionary) : status;
}

static enum lac_status put_names(struct lac_chunk_codec *codec, const struct source *source)
{
    return put_indexed(codec, codec->name_index, source->count, &codec->names);
}

static enum lac_status put_lanes(struct lac_chunk_codec *codec, const struct source *source)
{
    const uint16_t *lane = source->model->slices.lane + source->first;

    for (uint32_t i = 0; i < source->count; i++) {
        codec->values[i] = lane[i];
    }
    return lac_chunk_put_values(codec, source->count, false);
}

static enum lac_status put_kinds(struct lac_chunk_codec *codec, const struct source *source)
{
    const uint8_t *kind = source->model->slices.kind + source->first;

    memset(codec->last, 0, codec->names.count * sizeof(*codec->last));
    for (uint32_t i = 0; i < source->count; i++) {
        uint64_t *last = &codec->last[codec->name_index[i]];

        codec->values[i] = kind[i] ^ *last;
        *last = kind[i];
    }
    return lac_chunk_put_values(codec, source->count, false);
}

static enum lac_status put_corrs(struct lac_chunk_codec *codec, const struct source *source)
{
    const uint32_t *corr = source->model->slices.corr + source->first;
    uint32_t before = 0;

    for (uint32_t i = 0; i < source->count; i++) {
        if (corr[i] == 0) {
            codec->values[i] = 0;
        } else {
            codec->values[i] = lac_zigzag((uint64_t)corr[i] - before) + 1;
            before = corr[i];
        }
    }
    return lac_chunk_put_values(codec, source->count, false);
}

static enum lac_status put_links(struct lac_chunk_codec *codec, const struct source *source)
{
    const uint32_t *link = source->model->slices.link + source->first;
    uint32_t before = 0;

    for (uint32_t i = 0; i < source->count; i++) {
        if (link[i] == LAC_NONE) {
            codec->values[i] = 0;
        } else {
            codec->values[i] = lac_zigzag((uint64_t)link[i] - before) + 1;
            before = link[i];
        }
    }
    return lac_chunk_put_values(codec, source->count, false);
}

static enum lac_status put_details(struct lac_chunk_codec *codec, const struct source *source)
{
    const uint32_t *detail = source->model->slices.detail + source->first;

    memset(codec->last, 0, codec->names.count * sizeof(*codec->last));
    for (uint32_t i = 0; i < source->count; i++) {
        uint64_t *last = &codec->last[codec->name_index[i]];
        uint64_t value = (uint32_t)(detail[i] + 1); /* LAC_NONE becomes 0 */

        codec->values[i] = lac_zigzag(value - *last);
        *last = value;
    }
    return lac_chunk_put_values(codec, source->count, false);
}

static enum lac_status put_args(struct lac_chunk_codec *codec, const struct source *source)
{
    return put_indexed(codec, codec->template_index, source->count, &codec->templates);
}

enum { RUN = 32, SAMPLED = 1024 }; /* long streams are judged by runs of neighbors */

/* Sum of the bits that values take: it decides between the modes of a stream. */
static uint64_t cost_of(uint64_t value)
{
    return value == 0 ? 0 : 64 - (uint64_t)__builtin_clzll(value);
}

static uint8_t cheapest_mode(const uint64_t *numbers, const uint64_t *corr, uint64_t count)
{
    uint64_t cost[LAC_NUMBER_MODE_COUNT_] = {0};
    uint64_t skip = count / SAMPLED * RUN;
    uint32_t best = LAC_NUMBER_PLAIN;
    uint64_t before = 0;

    for (uint64_t i = 0; i < count; i += 1 + (i % RUN == RUN - 1 ? skip : 0)) {
        before = i % RUN == 0 && i != 0 ? numbers[i - 1] : before;
        cost[LAC_NUMBER_PLAIN] += cost_of(numbers[i]);
        cost[LAC_NUMBER_DELTA] += cost_of(lac_zigzag(numbers[i] - before));
        cost[LAC_NUMBER_CORRELATION] += cost_of(lac_zigzag(numbers[i] - corr[i]));
        before = numbers[i];
    }
    for (uint32_t mode = 1; mode < LAC_NUMBER_MODE_COUNT_; mode++) {
        best = cost[mode] < cost[best] ? mode : best;
    }
    return (uint8_t)best;
}

static enum lac_status put_stream(struct lac_chunk_codec *codec,
                                  const struct lac_number_stream *stream)
{
    const uint64_t *numbers = codec->gathered + stream->first;
    const uint64_t *corr = codec->gathered_corr + stream->first;
    uint8_t mode = cheapest_mode(numbers, corr, stream->count);
    enum lac_status status = lac_chunk_put_byte(codec, mode);
    uint64_t before = 0;

    if (status == LAC_OK) {
        status = lac_chunk_need_values(codec, stream->count);
    }
    if (status != LAC_OK) {
        return status;
    }
    for (uint64_t i = 0; i < stream->count; i++) {
        if (mode == LAC_NUMBER_CORRELATION) {
            codec->values[i] = lac_zigzag(numbers[i] - corr[i]);
        } else if (mode == LAC_NUMBER_DELTA) {
            codec->values[i] = lac_zigzag(numbers[i] - before);
            before = numbers[i];
        } else {
            codec->values[i] = numbers[i];
        }
    }
    return lac_chunk_put_values(codec, stream->count, true);
}

static enum lac_status put_numbers(struct lac_chunk_codec *codec, const struct source *source)
{
    const struct lac_model *model = source->model;
    uint64_t number_count = 0;
    enum lac_status status = lac_chunk_spread(codec, &model->strings);

    if (status == LAC_OK) {
        status = lac_chunk_lay_streams(codec, source->count, &number_count);
    }
    if (status == LAC_OK) {
        status = LAC_GROW(codec->gathered, &codec->gathered_capacity, number_count);
    }
    if (status == LAC_OK) {
        status = LAC_GROW(codec->gathered_corr, &codec->gathered_corr_capacity, number_count);
    }
    if (status != LAC_OK) {
        return status;
    }
    for (uint32_t i = 0; i < source->count; i++) {
        const struct lac_chunk_slots *slots = &codec->slots[codec->template_index[i]];
        uint64_t number = model->slices.arg_num[source->first + i];

        for (uint32_t s = 0; s < slots->count; s++, number++) {
            struct lac_number_stream *stream =
                &codec->streams[codec->slot_stream[slots->first + s]];

            codec->gathered[stream->next] =
                number < model->arg_number_count ? (uint64_t)model->arg_numbers[number] : 0;
            codec->gathered_corr[stream->next++] = model->slices.corr[source->first + i];
        }
    }
    for (uint64_t s = 0; s < codec->stream_count && status == LAC_OK; s++) {
        if (codec->streams[s].count != 0) {
            status = put_stream(codec, &codec->streams[s]);
        }
    }
    return status;
}

/* Names and templates get their local numbers first: other columns are predicted from them. */
static void index_slices(struct lac_chunk_codec *codec, const struct source *source)
{
    const uint32_t *name = source->model->slices.name + source->first;
    const uint32_t *args = source->model->slices.args + source->first;

    lac_chunk_dictionary_clear(&codec->names, source->count);
    lac_chunk_dictionary_clear(&codec->templates, source->count);
    for (uint32_t i = 0; i < source->count; i++) {
        codec->name_index[i] = lac_chunk_dictionary_add(&codec->names, name[i]);
        codec->template_index[i] = lac_chunk_dictionary_add(&codec->templates, args[i]);
    }
}

/* The directory is known last but comes first: it is written backwards into reserved space. */
enum { DIRECTORY_ROOM = 1 + LAC_COLUMN_COUNT_ * 5 };

static const uint8_t *put_directory(struct lac_chunk_codec *codec, const uint64_t *sizes)
{
    uint8_t directory[DIRECTORY_ROOM];
    size_t size = 0;

    directory[size++] = LAC_CHUNK_VERSION;
    for (int column = 0; column < LAC_COLUMN_COUNT_; column++) {
        uint64_t value = sizes[column];

        while (value >= 0x80) {
            directory[size++] = (uint8_t)(value | 0x80);
            value >>= 7;
        }
        directory[size++] = (uint8_t)value;
    }
    memcpy(codec->out + DIRECTORY_ROOM - size, directory, size);
    return codec->out + DIRECTORY_ROOM - size;
}

enum lac_status lac_chunk_encode(struct lac_chunk_codec *codec, const struct lac_model *model,
                                 uint64_t first, uint32_t count, const uint8_t **ret_bytes,
                                 size_t *ret_size_bytes)
{
    assert(codec != NULL && model != NULL && ret_bytes != NULL);
    assert(ret_size_bytes != NULL);
    static enum lac_status (*const put_column[LAC_COLUMN_COUNT_])(struct lac_chunk_codec *,
                                                                  const struct source *) = {
        [LAC_COLUMN_START] = put_starts, [LAC_COLUMN_DUR] = put_durs,
        [LAC_COLUMN_NAME] = put_names,   [LAC_COLUMN_LANE] = put_lanes,
        [LAC_COLUMN_KIND] = put_kinds,   [LAC_COLUMN_CORR] = put_corrs,
        [LAC_COLUMN_LINK] = put_links,   [LAC_COLUMN_DETAIL] = put_details,
        [LAC_COLUMN_ARGS] = put_args,    [LAC_COLUMN_NUMBERS] = put_numbers,
    };
    struct source source = {model, first, count};
    uint64_t sizes[LAC_COLUMN_COUNT_];
    enum lac_status status = LAC_GROW(codec->out, &codec->out_capacity, DIRECTORY_ROOM);

    assert(count >= 1 && count <= LAC_CHUNK_SLICES);
    assert(first + count <= model->slices.count);
    codec->out_size = DIRECTORY_ROOM;
    index_slices(codec, &source);
    for (int column = 0; column < LAC_COLUMN_COUNT_ && status == LAC_OK; column++) {
        uint64_t before = codec->out_size;

        status = put_column[column](codec, &source);
        sizes[column] = codec->out_size - before;
    }
    if (status == LAC_OK && codec->out_size > UINT32_MAX) {
        status = LAC_ERR_LIMIT; /* five bytes hold the size of a column */
    }
    if (status != LAC_OK) {
        return status;
    }
    *ret_bytes = put_directory(codec, sizes);
    *ret_size_bytes = (size_t)(codec->out + codec->out_size - *ret_bytes);
    return LAC_OK;
}
