#ifndef LAC_ANALYSIS_DIAGNOSE_RESULT_FINDING_TYPES_H
#define LAC_ANALYSIS_DIAGNOSE_RESULT_FINDING_TYPES_H

/* What every finding of a kind has in common: the rows of finding_registry.def. */

#include "analysis/diagnose/result/cause.h"

#include <stdbool.h>

enum lac_finding_kind {
#define LAC_FINDING(kind, id, cause, effort, change, place, about) LAC_FINDING_##kind,
#include "analysis/diagnose/result/finding_registry.def"
    LAC_FINDING_COUNT_
};

/* A finder says one finding at most: as many as there are finders fit into an analysis. */
enum {
#define LAC_FINDER(kind, phase, subjects, finder) LAC_NUMBER_OF_##finder,
#include "analysis/diagnose/result/finding_registry.def"
    LAC_FINDINGS_MAX
};

/** What the change of a finding takes. */
enum lac_effort {
    LAC_EFFORT_SETTING = 0, /**< an argument, a variable, a command */
    LAC_EFFORT_LINES,       /**< a few lines of the program */
    LAC_EFFORT_REWRITE,     /**< a part of the program, or of the data, made anew */
    LAC_EFFORT_HARDWARE,    /**< another machine, or more of it */
};
/** "setting", "lines", "rewrite", "hardware". */
const char *lac_effort_name(enum lac_effort effort);

/** What the text of a change is. */
enum lac_change_kind {
    LAC_CHANGE_CODE = 0, /**< lines for the program or a configuration, remarks included */
    LAC_CHANGE_COMMAND,  /**< for a shell */
    LAC_CHANGE_TEXT,     /**< sentences */
};
/** "code", "command", "text". */
const char *lac_change_kind_name(enum lac_change_kind kind);

/** Where a finding stands among the others. */
enum lac_finding_place {
    LAC_PLACE_BY_GAIN = 0,
    LAC_PLACE_FIRST, /**< when it is critical: then it makes all else beside the point */
    LAC_PLACE_LIMIT, /**< before remarks and what gains less than a percent */
};

struct lac_finding_type {
    const char *id;
    enum lac_cause cause; /**< LAC_CAUSE_COUNT_ where it is about the GPU's own work */
    enum lac_effort effort;
    enum lac_change_kind change;
    enum lac_finding_place place;
    bool is_about_loading; /**< one of those that explain a wait for data */
    bool is_fact;          /**< no gain is known of it */
};
/** The row of a kind; static. */
const struct lac_finding_type *lac_finding_type(enum lac_finding_kind kind);

/** Whether the advice of that kind changes the setting with this name. */
bool lac_finding_advises(enum lac_finding_kind finding, const char *setting);

#endif
