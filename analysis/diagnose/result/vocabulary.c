/* The words of vocabulary.def, and the names of enums that are their ids. */

#include "analysis/diagnose/result/vocabulary.h"

#include "analysis/diagnose/result/analysis.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WORDS_MAX = 18 }; /* of a group; a row beyond it does not compile */

static const struct lac_word words[LAC_WORDS_COUNT_][WORDS_MAX] = {
#define LAC_WORD(group, value, letter, id, label, brief, waits, definition)                        \
    [LAC_WORDS_##group][value] = {id, label, brief, waits, definition, letter},
#include "analysis/diagnose/result/vocabulary.def"
#undef LAC_WORD
};

static const struct {
    const char *name;
    uint32_t count;
} groups[LAC_WORDS_COUNT_] = {
    [LAC_WORDS_CAUSE] = {"causes", LAC_CAUSE_COUNT_},
    [LAC_WORDS_LIMIT] = {"limits", LAC_LIMIT_UNKNOWN + 1},
    [LAC_WORDS_PART] = {"parts", LAC_PART_COUNT_},
    [LAC_WORDS_NEED] = {"needs", LAC_NEED_COMM + 1},
    [LAC_WORDS_SEVERITY] = {"severities", LAC_SEVERITY_CRITICAL + 1},
    [LAC_WORDS_EFFORT] = {"efforts", LAC_EFFORT_HARDWARE + 1},
    [LAC_WORDS_CHANGE] = {"change_kinds", LAC_CHANGE_TEXT + 1},
    [LAC_WORDS_MISSING] = {"missing", LAC_MISSING_COUNT_},
    [LAC_WORDS_STEP_KIND] = {"step_kinds", LAC_KIND_COUNT_},
    [LAC_WORDS_PHASE] = {"phases", LAC_PHASE_COUNT_},
    [LAC_WORDS_STEP_METHOD] = {"step_methods", LAC_STEPS_NONE + 1},
    [LAC_WORDS_FAMILY] = {"kernel_families", LAC_FAMILY_COUNT_},
    [LAC_WORDS_LAYOUT] = {"layout_classes", LAC_LAYOUT_CLASS_COUNT_},
    [LAC_WORDS_COPY_KIND] = {"copy_kinds", LAC_COPY_PTOP + 1},
    [LAC_WORDS_SLICE_KIND] = {"slice_kinds", LAC_SLICE_KIND_COUNT_},
    [LAC_WORDS_TERM] = {"terms", LAC_TERM_GAIN_BAND + 1},
};

const struct lac_word *lac_word(enum lac_words group, uint32_t value)
{
    assert(group < LAC_WORDS_COUNT_ && value < groups[group].count);
    return &words[group][value];
}

const struct lac_word *lac_time_part_word(uint32_t part)
{
    return part < LAC_PART_IDLE ? lac_word(LAC_WORDS_PART, part)
                                : lac_word(LAC_WORDS_CAUSE, part - LAC_PART_IDLE);
}

const char *lac_time_part_brief(uint32_t part)
{
    const struct lac_word *word = lac_time_part_word(part);
    bool has_namesake =
        part == lac_time_part_of(LAC_CAUSE_COPY_WAIT) || part == lac_time_part_of(LAC_CAUSE_COMM);
    return has_namesake ? word->label : word->brief;
}

const struct lac_word *lac_word_of(enum lac_words group, const char *id)
{
    for (uint32_t i = 0; i < groups[group].count; i++) {
        if (strcmp(words[group][i].id, id) == 0) {
            return &words[group][i];
        }
    }
    return NULL;
}

uint32_t lac_words_count(enum lac_words group)
{
    return groups[group].count;
}

const char *lac_words_name(enum lac_words group)
{
    return groups[group].name;
}

/* -- names of enums -------------------------------------------------------------------------- */

/** The id of a value; that of `otherwise` for one that is not of the enum. */
static const char *id_of(enum lac_words group, uint32_t value, uint32_t otherwise)
{
    return words[group][value < groups[group].count ? value : otherwise].id;
}

const char *lac_cause_name(enum lac_cause cause)
{
    return id_of(LAC_WORDS_CAUSE, cause, LAC_CAUSE_UNATTRIBUTED);
}

char lac_cause_letter(enum lac_cause cause)
{
    return words[LAC_WORDS_CAUSE][cause < LAC_CAUSE_COUNT_ ? cause : LAC_CAUSE_UNATTRIBUTED].letter;
}

const char *lac_waits_for(enum lac_cause cause)
{
    return lac_word(LAC_WORDS_CAUSE, cause)->waits;
}

const char *lac_severity_name(enum lac_severity severity)
{
    return id_of(LAC_WORDS_SEVERITY, severity, LAC_SEVERITY_INFO);
}

const char *lac_partition_name(enum lac_partition part)
{
    return id_of(LAC_WORDS_PART, part, LAC_PART_IDLE);
}

const char *lac_step_kind_name(enum lac_step_kind kind)
{
    return id_of(LAC_WORDS_STEP_KIND, kind, LAC_KIND_OTHER);
}

const char *lac_phase_name(enum lac_phase_kind kind)
{
    return id_of(LAC_WORDS_PHASE, kind, LAC_PHASE_OTHER);
}

const char *lac_effort_name(enum lac_effort effort)
{
    return lac_word(LAC_WORDS_EFFORT, effort)->id;
}

const char *lac_change_kind_name(enum lac_change_kind kind)
{
    return lac_word(LAC_WORDS_CHANGE, kind)->id;
}
