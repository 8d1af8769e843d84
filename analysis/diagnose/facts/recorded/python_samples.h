#ifndef LAC_ANALYSIS_DIAGNOSE_PYTHON_SAMPLES_H
#define LAC_ANALYSIS_DIAGNOSE_PYTHON_SAMPLES_H

/*
 * Private: which lines the training thread was found in, by samples of its stack. A sample is of the
 * innermost frame that does work: PyTorch's own and Python's are the work of who called them, and a
 * thread that waits in one of Python's does none.
 */

#include "analysis/diagnose/facts/facts.h" // IWYU pragma: export

/** Fill analysis->python_samples, after the steps. Linear in the thread's slices. */
LAC_MUST_USE enum lac_status lac_python_samples_measure(struct lac_facts *facts);

enum { LAC_PYTHON_SAMPLES_MIN = 10 }; /* fewer say little about shares */

/** A line, by the name of its frame. */
struct lac_python_line_time {
    uint32_t name;    /**< string id: "photos/data.py(64): resize", the line that ran */
    uint32_t longest; /**< slice, or LAC_NONE */
    int64_t total_ns;
    int64_t inside_ns;
};

struct lac_python_lines {
    struct lac_python_line_time *at; /**< by (-inside, -total, name); free() it */
    uint32_t count, capacity;
    int64_t total_ns, inside_ns; /**< samples of no line included */
};

/** The lines of facts->python_samples_track, which is not LAC_NONE, and what of them lies inside of
 *  some time. Linear in its slices. @return LAC_OK or LAC_ERR_NOMEM; free(lines->at) either way */
LAC_MUST_USE enum lac_status lac_python_lines_collect(const struct lac_facts *facts,
                                                      const struct lac_spans *inside,
                                                      struct lac_python_lines *lines);

/** "busy (train.py:7) 83 %, load (data.py:12) 12 %": of the time inside, or of all; "" of none. */
const char *lac_python_lines_text(const struct lac_facts *facts,
                                  const struct lac_python_lines *lines, bool is_inside);

/** How many samples such a time is. */
uint64_t lac_python_samples_of(int64_t ns);

#endif
