/* The kind of work that a range's name says: validation, a checkpoint, or neither. */

#include "analysis/diagnose/facts/diagnosis.h"

#include <string.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/** Whether `word` stands in the text with no letter beside it. */
static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strcasestr(text, word); at; at = strcasestr(at + 1, word)) {
        if ((at == text || !is_letter(at[-1])) && !is_letter(at[length])) {
            return true;
        }
    }
    return false;
}

enum lac_step_kind lac_step_kind_of(const char *name)
{
    if (strcasestr(name, "checkpoint") || strcasestr(name, "save_") || has_word(name, "save")) {
        return LAC_KIND_CHECKPOINT;
    }
    bool is_validation = strcasestr(name, "validat") || strcasestr(name, "evaluat") ||
                         has_word(name, "eval") || has_word(name, "valid") || has_word(name, "val");
    return is_validation ? LAC_KIND_VALIDATION : LAC_KIND_TRAIN;
}
