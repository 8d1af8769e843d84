#include "analysis/model/chunk.h"
#include "analysis/model/chunk_private.h"
#include "analysis/model/grow.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LEVEL = 1 };

static enum lac_status create_arrays(struct lac_chunk_codec *codec)
{
    struct {
        void *array;
        size_t size_bytes;
    } arrays[] = {
        {(void *)&codec->names.id, LAC_CHUNK_SLICES * sizeof(uint32_t)},
        {(void *)&codec->names.slot, LAC_CHUNK_DICTIONARY_SLOTS * sizeof(uint32_t)},
        {(void *)&codec->templates.id, LAC_CHUNK_SLICES * sizeof(uint32_t)},
        {(void *)&codec->templates.slot, LAC_CHUNK_DICTIONARY_SLOTS * sizeof(uint32_t)},
        {(void *)&codec->name_index, LAC_CHUNK_SLICES * sizeof(uint32_t)},
        {(void *)&codec->template_index, LAC_CHUNK_SLICES * sizeof(uint32_t)},
        {(void *)&codec->last, LAC_CHUNK_SLICES * sizeof(uint64_t)},
        {(void *)&codec->column, LAC_CHUNK_SLICES * sizeof(uint32_t)},
        {(void *)&codec->slots, LAC_CHUNK_SLICES * sizeof(struct lac_chunk_slots)},
    };

    for (size_t i = 0; i < LAC_COUNT_OF(arrays); i++) {
        void *array = calloc(1, arrays[i].size_bytes);

        if (array == NULL) {
            return LAC_ERR_NOMEM;
        }
        memcpy(arrays[i].array, (void *)&array, sizeof(array));
    }
    return lac_chunk_need_values(codec, LAC_CHUNK_SLICES);
}

enum lac_status lac_chunk_codec_create(struct lac_chunk_codec **ret_codec)
{
    assert(ret_codec != NULL);
    struct lac_chunk_codec *codec = calloc(1, sizeof(*codec));

    if (codec == NULL) {
        return LAC_ERR_NOMEM;
    }
    codec->compressor = ZSTD_createCCtx();
    codec->decompressor = ZSTD_createDCtx();
    if (codec->compressor == NULL || codec->decompressor == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(codec->compressor, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(codec->compressor, ZSTD_c_contentSizeFlag, 0)) ||
        create_arrays(codec) != LAC_OK) {
        lac_chunk_codec_destroy(codec);
        return LAC_ERR_NOMEM;
    }
    *ret_codec = codec;
    return LAC_OK;
}

void lac_chunk_codec_destroy(struct lac_chunk_codec *codec)
{
    if (codec == NULL) {
        return;
    }
    (void)ZSTD_freeCCtx(codec->compressor);
    (void)ZSTD_freeDCtx(codec->decompressor);
    free(codec->out);
    free(codec->values);
    free(codec->plane);
    free(codec->frame);
    free(codec->names.id);
    free(codec->names.slot);
    free(codec->templates.id);
    free(codec->templates.slot);
    free(codec->name_index);
    free(codec->template_index);
    free(codec->last);
    free(codec->column);
    free(codec->slots);
    free(codec->slot_stream);
    free(codec->streams);
    lac_index_done(&codec->stream_index);
    free(codec->gathered);
    free(codec->gathered_corr);
    free(codec);
}

enum lac_status lac_chunk_need_values(struct lac_chunk_codec *codec, uint64_t count)
{
    return LAC_GROW(codec->values, &codec->value_capacity, count + LAC_CHUNK_BLOCK);
}

void lac_chunk_dictionary_clear(struct lac_chunk_dictionary *dictionary, uint32_t slice_count)
{
    uint32_t slots = 16;

    while (slots < 2 * slice_count) {
        slots *= 2;
    }
    memset(dictionary->slot, 0, slots * sizeof(*dictionary->slot));
    dictionary->mask = slots - 1;
    dictionary->count = 0;
}

uint32_t lac_chunk_dictionary_add(struct lac_chunk_dictionary *dictionary, uint32_t id)
{
    /* ids are dense: neighbors stay neighbors, far ones are folded in */
    uint32_t i = (id ^ (id >> 16) * UINT32_C(0x9e3779b1)) & dictionary->mask;

    while (dictionary->slot[i] != 0) {
        if (dictionary->id[dictionary->slot[i] - 1] == id) {
            return dictionary->slot[i] - 1;
        }
        i = (i + 1) & dictionary->mask;
    }
    dictionary->id[dictionary->count] = id;
    dictionary->slot[i] = ++dictionary->count;
    return dictionary->count - 1;
}
