#ifndef LAC_ANALYSIS_DIAGNOSE_EDITS_PRIVATE_H
#define LAC_ANALYSIS_DIAGNOSE_EDITS_PRIVATE_H

/* Private to replay: how edits are kept, and what they do to a graph. */

#include "analysis/diagnose/replay/edits.h" // IWYU pragma: export

struct lac_change;
struct lac_graph;

enum lac_edit_kind {
    LAC_EDIT_NO_WAIT = 0,
    LAC_EDIT_OPERATION,
    LAC_EDIT_LAUNCHED_WITH,
};

struct lac_edit_mark {
    uint32_t slice;
    uint32_t with; /**< LAC_EDIT_LAUNCHED_WITH: the earlier operation */
    float factor;
    uint8_t kind; /**< enum lac_edit_kind */
};

/** A stretch of a thread. */
struct lac_edit_stretch {
    int64_t start_ns, end_ns;
    double gone_before_ns; /**< by the stretches before it, once sealed */
    uint32_t track;
    float factor;
};

struct lac_edits {
    const struct lac_model *model;
    int64_t start_ns, end_ns; /**< of the replayed window */
    struct lac_edit_mark *marks;
    uint32_t mark_count, mark_capacity;
    struct lac_edit_stretch *stretches;
    uint32_t stretch_count, stretch_capacity;
    uint64_t *versions; /**< of all edits of the facts: the last one given */
    uint64_t version;   /**< of what is in it now, once sealed: no two are alike */
    bool is_sealed;     /**< marks by slice and kind, once each; stretches by track, disjoint */
    bool is_lost;       /**< out of memory */
};

void lac_edits_destroy(struct lac_edits *edits);
void lac_edits_seal(struct lac_edits *edits);

/* -- of sealed edits -- */

/** The mark of a slice, or NULL. */
const struct lac_edit_mark *lac_edits_mark(const struct lac_edits *edits, uint32_t slice,
                                           enum lac_edit_kind kind);
/** How much less the thread's own time is between two times. */
double lac_edits_gone_ns(const struct lac_edits *edits, uint32_t track, int64_t start_ns,
                         int64_t end_ns);

/** Where in the stretches the last look-ups ended: points of a graph come in the order of time. */
struct lac_edits_cursor {
    uint32_t at[16]; /**< by track, some share one */
};
/** The same, quickly where the one before it was near. */
double lac_edits_gone_near(const struct lac_edits *edits, struct lac_edits_cursor *cursor,
                           uint32_t track, int64_t start_ns, int64_t end_ns);

/** What edits do to the points and operations of a graph; all NULL: nothing. */
struct lac_graph_marks {
    float *work;       /**< by node: factor on its own work */
    bool *is_unwaited; /**< by node: it does not wait */
    float *factor;     /**< by operation: factor on its time */
    uint32_t *node;    /**< by operation: the point of the host that it follows, or LAC_NONE */
    bool *is_moved;    /**< by operation: launched earlier, it depends on no other stream */
    float *fetch;      /**< by batch: factor on making it */
};

/** All edits of a change together. O((nodes + operations) log marks) */
LAC_MUST_USE enum lac_status lac_graph_mark(const struct lac_graph *graph,
                                            const struct lac_change *change,
                                            struct lac_graph_marks *ret_marks);
void lac_graph_marks_done(struct lac_graph_marks *marks);

#endif
