#ifndef LAC_ANALYSIS_DEMANGLE_DEMANGLE_H
#define LAC_ANALYSIS_DEMANGLE_DEMANGLE_H

/*
 * Names of C++ functions and types as a programmer wrote them, from the names that a compiler gave
 * them: "_Z9transposePKfPfi" is "transpose(float const*, float*, int)". CUPTI, nvprof, rocprof and
 * perf record kernels under the latter.
 *
 * Source: the Itanium C++ ABI, chapter 5.1, in the spelling of GNU c++filt, which nsys and PyTorch
 * share. What is not understood has no name here, nor what is not ASCII; the caller keeps the mangled
 * one.
 */

#include <stdbool.h>
#include <stddef.h>

struct lac_demangler;

/** @return NULL when memory is short */
struct lac_demangler *lac_demangler_create(void);
/** NULL is allowed. */
void lac_demangler_destroy(struct lac_demangler *demangler);

/**
 * The name that `mangled` stands for.
 *
 * Names are hostile: a short one can stand for one of any length. One of more than 64 KiB, or one
 * that takes more than 2^20 steps to write, counts as not understood, and so does a mangled name
 * of more than 64 KiB. After 2^28 steps and bytes, all further names of a demangler do.
 *
 * @param ret_length of the text, in bytes
 * @return the text, valid until the next call; NULL: not a mangled name, not understood, or memory
 *         is short
 * Cost: about 1 us for a name of 100 bytes
 */
const char *lac_demangle(struct lac_demangler *demangler, const char *mangled, size_t length,
                         size_t *ret_length);

/** Whether a text begins as mangled names do. */
static inline bool lac_is_mangled(const char *text, size_t length)
{
    return length > 2 && text[0] == '_' && text[1] == 'Z';
}

#endif
