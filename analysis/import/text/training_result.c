#include "analysis/import/text/training_result.h"

#include "collector/base/count_of.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void lac_result_add(struct lac_result *result, int64_t at_ns, double value)
{
    if (result->count == 0 || at_ns >= result->last_ns) {
        result->last_ns = at_ns;
        result->last = value;
    }
    result->least = result->count == 0 || value < result->least ? value : result->least;
    result->most = result->count == 0 || value > result->most ? value : result->most;
    result->count++;
}

/** Of what is measured of errors and costs the least is the best. */
static bool is_less_better(const char *name)
{
    static const char *const words[] = {"loss", "err", "perplexity", "ppl", "nll",  "mse",    "mae",
                                        "wer",  "cer", "fid",        "bpb", "time", "latency"};
    char lower[64];
    size_t length = 0;

    for (; name[length] != '\0' && length + 1 < sizeof(lower); length++) {
        lower[length] = (char)tolower((unsigned char)name[length]);
    }
    lower[length] = '\0';
    for (size_t i = 0; i < LAC_COUNT_OF(words); i++) {
        if (strstr(lower, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

int lac_result_text(const struct lac_result *result, const char *name, char *out)
{
    return snprintf(out, LAC_RESULT_TEXT_BYTES, "%.9g %.9g %" PRIu64, result->last,
                    is_less_better(name) ? result->least : result->most, result->count);
}
