#ifndef LAC_ANALYSIS_IMPORT_SOURCE_SOURCE_PRIVATE_H
#define LAC_ANALYSIS_IMPORT_SOURCE_SOURCE_PRIVATE_H

/* What the layers of a source share. Only source*.c include this. */

#include "analysis/import/source/source.h"

enum { LAC_SOURCE_INPUT_BYTES = 256 * 1024 };

/** First member of every layer. */
struct lac_source {
    enum lac_status (*read)(struct lac_source *self, uint8_t *buffer, size_t capacity,
                            size_t *ret_size, struct lac_error *reterr);
    void (*done)(struct lac_source *self); /**< free what the layer owns, not the layer itself */
    struct lac_source *inner;              /**< borrowed; NULL for the lowest */
    struct lac_source_budget *budget;
    bool holds_members; /**< damage below concerns a member only if it ends early */
    char damage[160];   /**< empty: none */
    size_t head_pos;    /**< bytes looked at but not taken: head[head_pos, head_size) */
    size_t head_size;
    uint8_t head[LAC_SOURCE_PEEK_MAX];
};

/** Count bytes that a decompressor wrote. @return LAC_OK or LAC_ERR_LIMIT */
LAC_MUST_USE enum lac_status lac_source_count_expanded(struct lac_source *self, size_t size_bytes,
                                                       struct lac_error *reterr);

#endif
