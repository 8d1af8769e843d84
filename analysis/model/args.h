#ifndef LAC_ANALYSIS_MODEL_ARGS_H
#define LAC_ANALYSIS_MODEL_ARGS_H

/*
 * Arguments of slices, kept in full at a few bytes per event.
 *
 * The argument object of an event is split into a template and numbers. The template is the JSON
 * text of the object, white space removed, with each number that is likely to differ from event to
 * event (the importer decides) replaced by one placeholder byte; templates are interned as
 * strings. The numbers, in order, go to model->arg_numbers from slice.arg_num on.
 *
 *   {"External id": 537, "grid": [50, 1, 1]}  ->  {"External id":\x01,"grid":[50,1,1]}  +  537
 *
 * Placeholders: \x01 an integer that fits int64_t, \x02 a real, stored as the bits of a double and
 * printed in the shortest form that reads back the same ("NaN", "Infinity" and "-Infinity" as
 * strings: JSON has no such numbers). JSON forbids both bytes elsewhere, so a
 * template cannot be misread; the importer escapes raw control characters.
 */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

#define LAC_ARG_INTEGER '\x01'
#define LAC_ARG_REAL    '\x02'

/** How many numbers a template takes. For tests. */
uint32_t lac_args_number_count(const char *template_text, size_t length);

/**
 * Write the arguments of `slice` as JSON text (an object, or nothing when it has none).
 *
 * @param out, capacity_bytes the destination; always NUL-terminated when capacity_bytes > 0
 * @return length of the whole text without the NUL, which may exceed the capacity (as snprintf)
 */
size_t lac_args_format(const struct lac_model *model, uint64_t slice, char *out,
                       size_t capacity_bytes);

#endif
