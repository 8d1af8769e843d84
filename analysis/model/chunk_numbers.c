/* Which number of a chunk belongs to which stream. Encoder and decoder derive it alike. */

#include "analysis/model/args_slots.h"
#include "analysis/model/chunk.h"
#include "analysis/model/chunk_private.h"
#include "analysis/model/grow.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <stdint.h>

enum { ORDINAL_MAX = 15 }; /* elements of long arrays share a stream from there on */

struct stream_key {
    const struct lac_number_stream *streams;
    uint64_t key;
};

static int stream_is(const void *context, uint32_t id)
{
    const struct stream_key *wanted = context;

    return wanted->streams[id].key == wanted->key;
}

static enum lac_status stream_of(struct lac_chunk_codec *codec, uint64_t key, uint32_t *ret_stream)
{
    struct stream_key wanted = {codec->streams, key};
    uint32_t hash = (uint32_t)(key ^ key >> 32);
    uint32_t found = lac_index_find(&codec->stream_index, hash, stream_is, &wanted);

    if (found == UINT32_MAX) {
        enum lac_status status = lac_index_reserve(&codec->stream_index);

        if (status == LAC_OK) {
            status = LAC_GROW(codec->streams, &codec->stream_capacity, codec->stream_count + 1);
        }
        if (status != LAC_OK) {
            return status;
        }
        found = (uint32_t)codec->stream_count++;
        codec->streams[found] = (struct lac_number_stream){.key = key};
        lac_index_add(&codec->stream_index, hash, found);
    }
    *ret_stream = found;
    return LAC_OK;
}

enum lac_status lac_chunk_spread(struct lac_chunk_codec *codec, const struct lac_strings *strings)
{
    codec->slot_count = 0;
    codec->stream_count = 0;
    lac_index_clear(&codec->stream_index);
    for (uint32_t t = 0; t < codec->templates.count; t++) {
        uint32_t id = codec->templates.id[t];
        struct lac_args_walk walk = {0};

        codec->slots[t] = (struct lac_chunk_slots){.first = (uint32_t)codec->slot_count};
        if (id >= strings->count) {
            return LAC_ERR_CORRUPT;
        }
        walk.text = lac_strings_get(strings, id);
        walk.length = lac_strings_length(strings, id);
        while (lac_args_next(&walk)) {
            uint32_t ordinal = walk.ordinal < ORDINAL_MAX ? walk.ordinal : ORDINAL_MAX;
            uint32_t stream;
            enum lac_status status = stream_of(codec, walk.key + ordinal, &stream);

            if (status == LAC_OK && codec->slot_count >= LAC_CHUNK_NUMBERS_MAX) {
                status = LAC_ERR_LIMIT;
            }
            if (status == LAC_OK) {
                status = LAC_GROW(codec->slot_stream, &codec->slot_capacity, codec->slot_count + 1);
            }
            if (status != LAC_OK) {
                return status;
            }
            codec->slot_stream[codec->slot_count++] = stream;
            codec->slots[t].count++;
        }
    }
    return LAC_OK;
}

enum lac_status lac_chunk_lay_streams(struct lac_chunk_codec *codec, uint32_t count,
                                      uint64_t *ret_number_count)
{
    uint64_t number_count = 0;
    uint64_t first = 0;

    for (uint32_t i = 0; i < count; i++) {
        number_count += codec->slots[codec->template_index[i]].count;
    }
    if (number_count > LAC_CHUNK_NUMBERS_MAX) {
        return LAC_ERR_LIMIT;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct lac_chunk_slots *slots = &codec->slots[codec->template_index[i]];

        for (uint32_t s = 0; s < slots->count; s++) {
            codec->streams[codec->slot_stream[slots->first + s]].count++;
        }
    }
    for (uint64_t s = 0; s < codec->stream_count; s++) {
        codec->streams[s].first = first;
        codec->streams[s].next = first;
        first += codec->streams[s].count;
    }
    *ret_number_count = number_count;
    return LAC_OK;
}
