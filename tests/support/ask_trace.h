#ifndef LAC_TESTS_SUPPORT_ASK_TRACE_H
#define LAC_TESTS_SUPPORT_ASK_TRACE_H

#include "server/store/trace/trace_file.h"

#include <stdint.h>

/**
 * Ask a trace file everything there is to ask. What the answers are does not matter, that they end
 * does; a whole model that is not valid aborts.
 *
 * @param pick a number below the given one: where to ask
 */
void ask_everything(struct lac_trace_file *file, uint32_t (*pick)(uint32_t below));

#endif
