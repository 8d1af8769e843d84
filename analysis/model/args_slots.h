#ifndef LAC_ANALYSIS_MODEL_ARGS_SLOTS_H
#define LAC_ANALYSIS_MODEL_ARGS_SLOTS_H

/* Private to analysis/model: the placeholders of an argument template, one after another. */

#include "analysis/model/args.h"

/** Walks a template. Set text and length, zero the rest. */
struct lac_args_walk {
    const char *text;
    size_t length;
    size_t at;        /**< after the placeholder that was found last */
    uint64_t key;     /**< FNV-1a of the member name before it, quotes excluded, as written */
    uint32_t ordinal; /**< how many placeholders that name had before it */
};

/** Find the next placeholder: walk->text[walk->at - 1]. @return false at the end */
bool lac_args_next(struct lac_args_walk *walk);

#endif
