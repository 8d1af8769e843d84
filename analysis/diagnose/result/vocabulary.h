#ifndef LAC_ANALYSIS_DIAGNOSE_RESULT_VOCABULARY_H
#define LAC_ANALYSIS_DIAGNOSE_RESULT_VOCABULARY_H

/*
 * What people call things: one table (vocabulary.def) for the command line, the reports, the
 * comparison and, as GET /api/v1/vocabulary, for the page. Everything is static UTF-8, valid for
 * ever and safe to read from any thread; looking a word up costs nothing.
 */

#include <stdint.h>

enum lac_words {
    LAC_WORDS_CAUSE = 0,   /**< enum lac_cause */
    LAC_WORDS_LIMIT,       /**< enum lac_limit */
    LAC_WORDS_PART,        /**< enum lac_partition */
    LAC_WORDS_NEED,        /**< enum lac_need */
    LAC_WORDS_SEVERITY,    /**< enum lac_severity */
    LAC_WORDS_EFFORT,      /**< enum lac_effort */
    LAC_WORDS_CHANGE,      /**< enum lac_change_kind */
    LAC_WORDS_MISSING,     /**< enum lac_missing */
    LAC_WORDS_STEP_KIND,   /**< enum lac_step_kind */
    LAC_WORDS_PHASE,       /**< enum lac_phase_kind */
    LAC_WORDS_STEP_METHOD, /**< enum lac_step_method */
    LAC_WORDS_FAMILY,      /**< enum lac_family */
    LAC_WORDS_LAYOUT,      /**< enum lac_layout_class */
    LAC_WORDS_COPY_KIND,   /**< enum lac_copy_kind */
    LAC_WORDS_SLICE_KIND,  /**< enum lac_slice_kind */
    LAC_WORDS_TERM,        /**< enum lac_term */
    LAC_WORDS_COUNT_
};

struct lac_word {
    const char *id;         /**< as documents say it: part of the contract */
    const char *label;      /**< where it stands alone: a row of a table, a title */
    const char *brief;      /**< a word or two: a legend, a chip */
    const char *waits;      /**< of a cause: continues "the GPU waits ..."; else "" */
    const char *definition; /**< what exactly is meant, in a sentence */
    char letter;            /**< of a cause and a limit; else 0 */
};

/** What a verdict may name besides a cause: chosen by its letter. */
enum lac_limit {
    LAC_LIMIT_GPU = 0,   /**< G */
    LAC_LIMIT_INFERENCE, /**< i */
    LAC_LIMIT_FEW,       /**< ~ */
    LAC_LIMIT_UNKNOWN,   /**< ? */
};

/** The members of needs_ns, in the order in which they are shown. */
enum lac_need {
    LAC_NEED_DATA = 0,
    LAC_NEED_GPU,
    LAC_NEED_COPIES,
    LAC_NEED_HOST,
    LAC_NEED_COMM,
};

/** The values of steps.method, in the order of preference. */
enum lac_step_method {
    LAC_STEPS_BY_PROFILER = 0,
    LAC_STEPS_BY_NVTX,
    LAC_STEPS_BY_LOADER,
    LAC_STEPS_BY_OPTIMIZER,
    LAC_STEPS_BY_OPTIMIZER_KERNELS,
    LAC_STEPS_BY_PERIOD,
    LAC_STEPS_NONE,
};

/** Terms that the README and the reports explain. */
enum lac_term {
    LAC_TERM_STEP = 0,
    LAC_TERM_KERNEL,
    LAC_TERM_HOST,
    LAC_TERM_GAP,
    LAC_TERM_CAUSE,
    LAC_TERM_IDLE,
    LAC_TERM_EXPOSED,
    LAC_TERM_STARVED,
    LAC_TERM_WAIT,
    LAC_TERM_PREFETCH,
    LAC_TERM_COLLECTIVE,
    LAC_TERM_STRAGGLER,
    LAC_TERM_LAYOUT,
    LAC_TERM_TENSOR_CORE,
    LAC_TERM_FINDING,
    LAC_TERM_VERDICT,
    LAC_TERM_GAIN_BAND,
};

/** The word of an enum value of the group. @param value below lac_words_count() */
const struct lac_word *lac_word(enum lac_words group, uint32_t value);

/** The word of a part of the partition: of a kind of work or of a cause of idle time. */
const struct lac_word *lac_time_part_word(uint32_t part);
/** It in a word or two beside other parts: copies that run are not the wait for them. */
const char *lac_time_part_brief(uint32_t part);

/** The word with this id, or NULL. O(words of the group). */
const struct lac_word *lac_word_of(enum lac_words group, const char *id);

/** How many words a group has, and the name of its list in the API: "causes", "limits", ... */
uint32_t lac_words_count(enum lac_words group);
const char *lac_words_name(enum lac_words group);

#endif
