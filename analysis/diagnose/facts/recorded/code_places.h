#ifndef LAC_ANALYSIS_DIAGNOSE_CODE_PLACES_H
#define LAC_ANALYSIS_DIAGNOSE_CODE_PLACES_H

/*
 * Private: where in the code the host was, by the stacks that the trace holds: the argument "Call
 * stack" of operators, or rows of Python functions around them.
 */

#include "analysis/diagnose/facts/facts.h" // IWYU pragma: export

/**
 * The line that a person may change, of a host slice: of the innermost frame that is neither
 * PyTorch's nor of what runs the loop for the job, "train.py:42". Rows of Python functions know where a
 * function begins: "train.py:30 (main)".
 *
 * @return text of the analysis; "" where no stack was recorded or none of its frames is such a one.
 *         Looks at the rows before the slice, LOOK_BACK of them at most
 */
const char *lac_code_place(const struct lac_facts *facts, uint64_t slice);

struct lac_frame;
/**
 * The frame that lac_code_place() names.
 *
 * @param[out] ret_frame borrowed from the model; undefined where there is none
 * @return whether there is one
 */
bool lac_code_frame(const struct lac_facts *facts, uint64_t slice, struct lac_frame *ret_frame);

/** A frame's file and line, "ndimage/_interpolation.py:730"; "" of a text that is none. */
const char *lac_code_of_frame(const struct lac_facts *facts, uint32_t name);

/** The frame that called into the file of a row of a Python function: the innermost around it that does
 *  work, stands in another file and has another name, "owlv2/image_processing_owlv2.py:301 (resize)"; "" where none does. */
const char *lac_code_caller(const struct lac_facts *facts, uint64_t slice);

#endif
