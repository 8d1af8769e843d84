#ifndef LAC_ANALYSIS_MODEL_CHUNK_PRIVATE_H
#define LAC_ANALYSIS_MODEL_CHUNK_PRIVATE_H

/* What the encoder and the decoder of chunks share. Private to analysis/model. */

#include "analysis/model/chunk.h"
#include "analysis/model/grow.h"

#include <stdbool.h>
#include <zstd.h>

enum {
    LAC_CHUNK_VERSION = 1,
    LAC_CHUNK_BLOCK = 16, /* values are worked on in blocks of that many */
    LAC_CHUNK_DICTIONARY_SLOTS = 2 * LAC_CHUNK_SLICES, /* a power of two */
};

/** Ids in order of first appearance: big sparse ids become small dense ones. */
struct lac_chunk_dictionary {
    uint32_t *id;   /**< by local index, LAC_CHUNK_SLICES entries */
    uint32_t *slot; /**< open addressing: local index + 1 */
    uint32_t mask;  /**< slots in use, less one: small chunks clear few */
    uint32_t count;
};

/** How the numbers of a template are spread over streams, by local template index. */
struct lac_chunk_slots {
    uint32_t first; /**< into slot_stream */
    uint32_t count;
};

/** Numbers under one key (say "External id") compress together, whatever template they are in. */
struct lac_number_stream {
    uint64_t key; /**< hash of the key; what collides shares a stream, which is harmless */
    uint64_t count;
    uint64_t first; /**< into the gathered numbers */
    uint64_t next;  /**< while decoding */
    uint8_t mode;   /**< enum number_mode */
};

struct lac_chunk_codec {
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;

    uint8_t *out;
    uint64_t out_size;
    uint64_t out_capacity;

    uint64_t *values; /**< one column or number stream, integers before planes */
    uint64_t value_capacity;
    uint8_t *plane; /**< one byte of each value */
    uint64_t plane_capacity;
    uint8_t *frame; /**< the same, compressed */
    uint64_t frame_capacity;

    struct lac_chunk_dictionary names;
    struct lac_chunk_dictionary templates;
    uint32_t *name_index;     /**< local index of each slice's name */
    uint32_t *template_index; /**< of its template */
    uint64_t *last;           /**< by local name: the last value of a column */
    uint32_t *column;         /**< scratch for columns that are decoded but not asked for */

    struct lac_chunk_slots *slots; /**< by local template, LAC_CHUNK_SLICES entries */
    uint32_t *slot_stream;         /**< stream of each slot */
    uint64_t slot_count;
    uint64_t slot_capacity;
    struct lac_number_stream *streams;
    uint64_t stream_count;
    uint64_t stream_capacity;
    struct lac_index stream_index;
    uint64_t *gathered; /**< numbers by stream */
    uint64_t gathered_capacity;
    uint64_t *gathered_corr; /**< correlation id of the slice of each */
    uint64_t gathered_corr_capacity;
};

/** Bytes being decoded. `failed` stays set: check it once at the end of a column. */
struct lac_chunk_reader {
    const uint8_t *bytes;
    size_t size_bytes;
    size_t at;
    bool failed;
};

enum lac_number_mode {
    LAC_NUMBER_PLAIN = 0,
    LAC_NUMBER_DELTA = 1,       /**< difference to the one before */
    LAC_NUMBER_CORRELATION = 2, /**< difference to the slice's correlation id */
    LAC_NUMBER_MODE_COUNT_
};

static inline uint64_t lac_zigzag(uint64_t delta)
{
    return delta << 1 ^ (uint64_t)((int64_t)delta >> 63);
}

static inline uint64_t lac_unzigzag(uint64_t value)
{
    return value >> 1 ^ (0 - (value & 1));
}

/* chunk_stream.c */
LAC_MUST_USE enum lac_status lac_chunk_put_byte(struct lac_chunk_codec *codec, uint8_t byte);
LAC_MUST_USE enum lac_status lac_chunk_put_varint(struct lac_chunk_codec *codec, uint64_t value);
/** Append codec->values[0 .. count) as planes. They are used up. `divide`: look for a common
 * divisor, which times and sizes often have. */
LAC_MUST_USE enum lac_status lac_chunk_put_values(struct lac_chunk_codec *codec, uint64_t count,
                                                  bool divide);
uint8_t lac_chunk_get_byte(struct lac_chunk_reader *reader);
uint64_t lac_chunk_get_varint(struct lac_chunk_reader *reader);
/** The inverse, into codec->values. Broken bytes set reader->failed. */
LAC_MUST_USE enum lac_status lac_chunk_get_values(struct lac_chunk_codec *codec,
                                                  struct lac_chunk_reader *reader, uint64_t count);

/* chunk_codec.c */
/** Make room for the distinct ids of `slice_count` slices. */
void lac_chunk_dictionary_clear(struct lac_chunk_dictionary *dictionary, uint32_t slice_count);
/** Local index of `id`, added if new. */
uint32_t lac_chunk_dictionary_add(struct lac_chunk_dictionary *dictionary, uint32_t id);
LAC_MUST_USE enum lac_status lac_chunk_need_values(struct lac_chunk_codec *codec, uint64_t count);

/* chunk_numbers.c */
/** Spread the slots of codec->templates over number streams. */
LAC_MUST_USE enum lac_status lac_chunk_spread(struct lac_chunk_codec *codec,
                                              const struct lac_strings *strings);
/** Count the numbers of each stream over codec->template_index and lay the streams one after
 *  another. LAC_ERR_LIMIT beyond LAC_CHUNK_NUMBERS_MAX. */
LAC_MUST_USE enum lac_status lac_chunk_lay_streams(struct lac_chunk_codec *codec, uint32_t count,
                                                   uint64_t *ret_number_count);

#endif
