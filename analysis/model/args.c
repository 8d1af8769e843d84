#include "analysis/model/args.h"

#include "analysis/model/args_slots.h"
#include "analysis/model/model.h"
#include "analysis/model/strings.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_TEXT_MAX = 40 };

static const uint64_t fnv_basis = UINT64_C(0xcbf29ce484222325);
static const uint64_t fnv_prime = UINT64_C(0x100000001b3);

static bool is_placeholder(char c)
{
    return c == LAC_ARG_INTEGER || c == LAC_ARG_REAL;
}

uint32_t lac_args_number_count(const char *template_text, size_t length)
{
    uint32_t count = 0;

    for (size_t i = 0; i < length; i++) {
        count += is_placeholder(template_text[i]);
    }
    return count;
}

/* After the closing quote of the string that opens before `at`, and its hash. Ends early at a
 * placeholder, which no string may hold, so that a broken template loses no number. */
static size_t skip_string(const char *text, size_t length, size_t at, uint64_t *ret_hash)
{
    uint64_t hash = fnv_basis;

    while (at < length && text[at] != '"' && !is_placeholder(text[at])) {
        if (text[at] == '\\' && at + 1 < length && !is_placeholder(text[at + 1])) {
            hash = (hash ^ (unsigned char)text[at++]) * fnv_prime;
        }
        hash = (hash ^ (unsigned char)text[at++]) * fnv_prime;
    }
    *ret_hash = hash;
    return at < length && text[at] == '"' ? at + 1 : at;
}

bool lac_args_next(struct lac_args_walk *walk)
{
    bool first = walk->at == 0;

    if (!first) {
        walk->ordinal++;
    }
    while (walk->at < walk->length) {
        char c = walk->text[walk->at++];

        if (is_placeholder(c)) {
            return true;
        }
        if (c == '"') {
            uint64_t hash;

            walk->at = skip_string(walk->text, walk->length, walk->at, &hash);
            if (walk->at < walk->length && walk->text[walk->at] == ':') {
                walk->key = hash;
                walk->ordinal = 0;
            }
        }
    }
    return false;
}

/* JSON has no number for these: they are kept as words, as importers keep text. */
static int format_real(double value, char *text, size_t size)
{
    if (isnan(value)) {
        return snprintf(text, size, "\"NaN\"");
    }
    if (isinf(value)) {
        return snprintf(text, size, value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    }
    for (int digits = 1; digits < 17; digits++) {
        int length = snprintf(text, size, "%.*g", digits, value);

        if (strtod(text, NULL) == value) { /* bit for bit, except for -0, which prints its sign */
            return length;
        }
    }
    return snprintf(text, size, "%.17g", value);
}

struct output {
    char *out;
    size_t capacity_bytes;
    size_t length; /* of the whole text */
};

static void put(struct output *output, const char *text, size_t length)
{
    if (output->length < output->capacity_bytes) {
        size_t room = output->capacity_bytes - output->length;

        memcpy(output->out + output->length, text, length < room ? length : room);
    }
    output->length += length;
}

size_t lac_args_format(const struct lac_model *model, uint64_t slice, char *out,
                       size_t capacity_bytes)
{
    uint32_t id = model->slices.args[slice];
    uint64_t number = model->slices.arg_num[slice];
    struct lac_args_walk walk = {.text = lac_model_str(model, id),
                                 .length = lac_strings_length(&model->strings, id)};
    struct output output = {out, capacity_bytes, 0};
    size_t from = 0;

    while (lac_args_next(&walk)) {
        char text[NUMBER_TEXT_MAX];
        int length = 0;
        int64_t bits = number < model->arg_number_count ? model->arg_numbers[number] : 0;

        number++;
        put(&output, walk.text + from, walk.at - 1 - from);
        from = walk.at;
        if (walk.text[walk.at - 1] == LAC_ARG_INTEGER) {
            length = snprintf(text, sizeof(text), "%" PRId64, bits);
        } else {
            double value;

            memcpy(&value, &bits, sizeof(value));
            length = format_real(value, text, sizeof(text));
        }
        put(&output, text, (size_t)length);
    }
    put(&output, walk.text + from, walk.length - from);
    if (capacity_bytes != 0) {
        out[output.length < capacity_bytes ? output.length : capacity_bytes - 1] = '\0';
    }
    return output.length;
}
