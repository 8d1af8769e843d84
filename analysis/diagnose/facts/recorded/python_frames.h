#ifndef LAC_ANALYSIS_DIAGNOSE_PYTHON_FRAMES_H
#define LAC_ANALYSIS_DIAGNOSE_PYTHON_FRAMES_H

/*
 * Private: what the training thread did in Python while the device had nothing to do, and while it
 * asked its loader for a batch: the self time of each function in kept steps. A built-in function's
 * time is that of the Python function that called it, as is that of PyTorch's and Python's own
 * frames; a function that only waits has none.
 */

#include "analysis/diagnose/facts/facts.h" // IWYU pragma: export

/** One function, of all its calls in kept steps. */
struct lac_python_frame {
    uint32_t name;       /**< string id: "photos/data.py(64): resize" */
    uint32_t longest;    /**< slice: the call that took longest */
    int64_t idle_ns;     /**< while the device was idle, the head of a step before its first
                              operation included */
    int64_t loading_ns;  /**< of that, while a batch was asked for */
    int64_t self_ns;     /**< while the device was idle or a batch was asked for */
    uint64_t call_count; /**< calls that begin in that time */
};

struct lac_python_frames {
    uint32_t track;                /**< the thread */
    struct lac_python_frame *rows; /**< by (-idle_ns, name) */
    uint32_t count, capacity;
    int64_t idle_ns;    /**< the device, in kept steps, from their begin */
    int64_t loading_ns; /**< of that, while a batch was asked for */
};

/** Fill facts->python_frames, after the steps. Linear in the thread's slices. */
LAC_MUST_USE enum lac_status lac_python_frames_measure(struct lac_facts *facts);
/** Percent of the idle time of kept steps that Python functions fill with work of their own; 0
 *  where none were recorded. */
double lac_python_idle_pct(const struct lac_facts *facts);

void lac_python_frames_destroy(struct lac_python_frames *frames);

/** Stretches of time in which the thread was in a function by itself. */
typedef void lac_python_stretch(void *context, int64_t start_ns, int64_t end_ns);

/** Each of them, in order, between two times. Linear in the thread's slices.
 *  @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_python_frame_visit(const struct lac_facts *facts, uint32_t name,
                                                    int64_t start_ns, int64_t end_ns,
                                                    lac_python_stretch *visit, void *context);

#endif
