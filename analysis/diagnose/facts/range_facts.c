/* What a range says of itself: the kind of work by its name, a number that it carries. */

#include "analysis/diagnose/facts/facts.h"
#include "analysis/model/args.h"
#include "collector/base/count_of.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/** Whether `word` stands in the text with no letter beside it. */
static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strcasestr(text, word); at != NULL; at = strcasestr(at + 1, word)) {
        if ((at == text || !is_letter(at[-1])) && !is_letter(at[length])) {
            return true;
        }
    }
    return false;
}

enum lac_step_kind lac_step_kind_of(const char *name)
{
    if (strcasestr(name, "checkpoint") != NULL || strcasestr(name, "save_") != NULL ||
        has_word(name, "save")) {
        return LAC_KIND_CHECKPOINT;
    }
    bool is_validation = strcasestr(name, "validat") != NULL ||
                         strcasestr(name, "evaluat") != NULL || has_word(name, "eval") ||
                         has_word(name, "valid") || has_word(name, "val");
    return is_validation ? LAC_KIND_VALIDATION : LAC_KIND_TRAIN;
}

int64_t lac_sequence_number(const struct lac_model *model, uint64_t slice)
{
    static const char *const keys[] = {"\"Sequence number\":", "\"seq\":"};
    enum { ARGS_BYTES = 4096 };
    char text[ARGS_BYTES];
    if (model->slices.args[slice] == 0 ||
        lac_args_format(model, slice, text, sizeof(text)) >= sizeof(text)) {
        return -1;
    }
    for (size_t k = 0; k < LAC_COUNT_OF(keys); k++) {
        const char *at = strstr(text, keys[k]);
        if (at != NULL) {
            return strtoll(at + strlen(keys[k]), NULL, 10);
        }
    }
    return -1;
}

int64_t lac_slice_integer(const struct lac_model *model, uint64_t slice, const char *key,
                          int64_t absent)
{
    const char *args = lac_model_str(model, model->slices.args[slice]);
    const char *at = model->slices.args[slice] != 0 ? strstr(args, key) : NULL;
    if (at == NULL) {
        return absent;
    }
    const char *value = at + strlen(key);
    if (*value >= '0' && *value <= '9') { /* the same in many events: part of the template */
        return strtoll(value, NULL, 10);
    }
    uint64_t number = model->slices.arg_num[slice];
    for (const char *c = args; c < value; c++) {
        number += *c == LAC_ARG_INTEGER || *c == LAC_ARG_REAL;
    }
    bool is_known = *value == LAC_ARG_INTEGER && number < model->arg_number_count;
    return is_known && model->arg_numbers[number] >= 0 ? model->arg_numbers[number] : absent;
}

int64_t lac_range_number(const struct lac_model *model, uint32_t slice)
{
    int64_t payload = lac_slice_integer(model, slice, "\"payload\":", -1);
    return payload >= 0 ? payload : lac_slice_integer(model, slice, "\"bytes\":", -1);
}
