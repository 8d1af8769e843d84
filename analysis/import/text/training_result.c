#include "analysis/import/text/training_result.h"

#include "collector/base/count_of.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

int lac_result_text_timed(const struct lac_result *result, const char *name, char *out)
{
    const int length = lac_result_text(result, name, out);

    return length + snprintf(out + length, LAC_RESULT_TEXT_BYTES - (size_t)length, " %" PRId64,
                             result->last_ns);
}

/** @return false: it is no text with a time */
static bool read_timed(const char *text, struct lac_result *ret_result)
{
    char *end = NULL;

    ret_result->last = strtod(text, &end);
    ret_result->least = strtod(end, &end);
    ret_result->most = ret_result->least;
    ret_result->count = strtoull(end, &end, 10);
    if (*end != ' ') {
        return false;
    }
    ret_result->last_ns = strtoll(end, NULL, 10);
    return ret_result->count > 0;
}

bool lac_result_join(const char *name, const char *a, const char *b, char *out)
{
    struct lac_result one;
    struct lac_result other;

    if (!read_timed(a, &one) || !read_timed(b, &other)) {
        return false;
    }
    if (other.last_ns > one.last_ns) {
        one.last_ns = other.last_ns;
        one.last = other.last;
    }
    one.least = other.least < one.least ? other.least : one.least;
    one.most = other.most > one.most ? other.most : one.most;
    one.count += other.count;
    (void)lac_result_text_timed(&one, name, out);
    return true;
}
