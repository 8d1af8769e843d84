#ifndef LAC_ANALYSIS_IMPORT_TEXT_NUMBER_ARGS_H
#define LAC_ANALYSIS_IMPORT_TEXT_NUMBER_ARGS_H

/* Arguments of a slice that are all numbers, as the model keeps them (args.h). */

#include "analysis/model/builder.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

enum { LAC_NUMBER_ARGS_MAX = 8 };

/** Zeroed: none yet. */
struct lac_number_args {
    char text[320]; /**< room for that many names of 31 characters */
    size_t used;
    int64_t numbers[LAC_NUMBER_ARGS_MAX];
    uint32_t count;
};

/** One more; what finds no room is left out, names are the caller's own. */
void lac_number_args_add(struct lac_number_args *arguments, const char *name, int64_t value);

/** Give them to the slice; nothing when there are none. @return LAC_OK, LAC_ERR_NOMEM, ... */
LAC_MUST_USE enum lac_status lac_number_args_store(struct lac_number_args *arguments,
                                                   struct lac_builder *builder,
                                                   struct lac_slice_in *slice);

#endif
