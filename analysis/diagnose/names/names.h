#ifndef LAC_ANALYSIS_DIAGNOSE_NAMES_H
#define LAC_ANALYSIS_DIAGNOSE_NAMES_H

/*
 * What a kernel's or an API call's name says about it. The knowledge is data: name_table.def, one
 * row a pattern, each with the example that tests it, under one version number.
 *
 * Names are untrusted bytes of any length. Pure functions; thread-safe.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Version of name_table.def; raised by every change of a row. */
uint32_t lac_names_version(void);

/** What a kernel does, for summaries. Names are stable: they stand in the API. */
enum lac_family {
    LAC_FAMILY_OTHER = 0,
    LAC_FAMILY_GEMM,
    LAC_FAMILY_CONV,
    LAC_FAMILY_ATTENTION,
    LAC_FAMILY_NORM,
    LAC_FAMILY_SOFTMAX,
    LAC_FAMILY_OPTIMIZER,
    LAC_FAMILY_REDUCE,
    LAC_FAMILY_INDEX,
    LAC_FAMILY_ELEMENTWISE,
    LAC_FAMILY_RNG,
    LAC_FAMILY_TRITON,
    LAC_FAMILY_FILL,
    LAC_FAMILY_MOE,
    LAC_FAMILY_POOL,
    LAC_FAMILY_LAYOUT, /**< layout classes L and Pd */
    LAC_FAMILY_COPY,   /**< layout classes U and K: permutes, concatenations, casts */
    LAC_FAMILY_COMM,
    LAC_FAMILY_COUNT_
};

/** Why data was rearranged. Only L is what "layout conversion" means. */
enum lac_layout_class {
    LAC_LAYOUT_NONE = 0,
    LAC_LAYOUT_L,  /**< conversion that a library inserted */
    LAC_LAYOUT_PD, /**< padding that a library inserted */
    LAC_LAYOUT_U,  /**< the user's own permute, contiguous, concatenation or copy */
    LAC_LAYOUT_K,  /**< cast of the data type */
    LAC_LAYOUT_CLASS_COUNT_
};

enum lac_tensor_core {
    LAC_TENSOR_CORE_UNKNOWN = 0, /**< the name does not say; never taken for "no" */
    LAC_TENSOR_CORE_NO,
    LAC_TENSOR_CORE_YES,
};
/** "unknown", "no", "yes". */
const char *lac_tensor_core_name(enum lac_tensor_core tensor_core);

struct lac_name_class {
    enum lac_family family;
    enum lac_layout_class layout;
    enum lac_tensor_core tensor_core;
    bool is_eligible; /**< work that tensor cores can do: matrix product, convolution, attention */
    bool is_comm;     /**< communication between devices: not computing */
    bool is_graph;    /**< a CUDA graph that was recorded as a whole: computing, and no kernel */
    bool is_strict_layout; /**< counts in layout.kernel_count (the narrow rule of the analysis
                              format) */
};

/** The narrow rule of layout.kernel_count, of the name as it was recorded: a mangled one is of no
 *  conversion unless it says so in so many letters. */
bool lac_names_is_strict_layout(const char *name, size_t length);

/** Classify the name of a kernel. Cost: about a microsecond; classify each distinct name once. */
void lac_names_classify(const char *name, size_t length, struct lac_name_class *ret_class);

/** What a host call does to the device's time. */
enum lac_api_class {
    LAC_API_OTHER = 0,
    LAC_API_LAUNCH,
    LAC_API_SYNC,          /**< returns when the device has done something */
    LAC_API_COPY,          /**< copies and sets memory, asynchronous by name */
    LAC_API_COPY_BLOCKING, /**< cudaMemcpy and its like, without Async */
    LAC_API_ALLOC,
    LAC_API_MODULE,     /**< loads or compiles code, creates contexts */
    LAC_API_WAIT_EVENT, /**< makes a stream wait for another */
    LAC_API_QUERY,      /**< asks whether the device is done, and returns at once */
    LAC_API_CLASS_COUNT_
};

/** What a host operator, range or overhead record means for the causes of idle time. */
enum lac_host_class {
    LAC_HOST_OTHER = 0,
    LAC_HOST_LOADER_WAIT,  /**< the training thread waits for its next batch */
    LAC_HOST_LOADER_FETCH, /**< a worker makes a batch (loader.fetch) */
    LAC_HOST_LOADER_PART,  /**< part of it: loader.item, loader.read, ... */
    LAC_HOST_STEP,         /**< a step by its name */
    LAC_HOST_OPTIMIZER,    /**< Optimizer.step#... */
    LAC_HOST_COMM,         /**< c10d, nccl, gloo, barriers */
    LAC_HOST_COMPILE,      /**< compilation and module loading */
    LAC_HOST_PROFILER,     /**< the recorder's own cost */
    LAC_HOST_STEP_LIKE,    /**< may name steps: "step 12", "train_iteration_3", "batch" */
    LAC_HOST_BACKWARD,     /**< an autograd node: the trace is of training */
    LAC_HOST_CLASS_COUNT_
};
/** Classify a host slice's name (operators, ranges, overhead; not API calls or kernels). */
enum lac_host_class lac_names_host_class(const char *name, size_t length);

/** counter_name.c: whether a counter is a measurement of the recorder's ("GPU 0: power (W)"), by its whole
 *  name, not what a person counts and named. */
bool lac_names_counter_is_measured(const char *name);

/** Rows that somebody added: they come before those of the table. */
struct lac_names;

enum { LAC_NAMES_FILE_BYTES_MAX = 1 << 18, LAC_NAMES_FILE_ROWS_MAX = 1000 };

/**
 * Read rows in the form of name_table.def: comments, and LAC_NAME_ROW(TABLE, VALUE, "PATTERN",
 * "EXAMPLE"). Each example has to match its own pattern.
 *
 * @param text untrusted, LAC_NAMES_FILE_BYTES_MAX at most
 * @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT, or LAC_ERR_CORRUPT with the line and what is wrong
 */
LAC_MUST_USE enum lac_status lac_names_parse(const char *text, size_t length,
                                             struct lac_names **ret_names,
                                             struct lac_error *reterr);
/** NULL is allowed. */
void lac_names_destroy(struct lac_names *names);

/** As the functions without "_with" below; names may be NULL. */
void lac_names_classify_with(const struct lac_names *names, const char *name, size_t length,
                             struct lac_name_class *ret_class);
/** A CUDA or HIP runtime or driver call. */
enum lac_api_class lac_names_api_class_with(const struct lac_names *names, const char *name,
                                            size_t length);
enum lac_host_class lac_names_host_class_with(const struct lac_names *names, const char *name,
                                              size_t length);

/**
 * What a person calls this kernel: "gemm bf16 128x128", "nchw->nhwc", "flash forward",
 * "elementwise add". At most capacity_bytes - 1 bytes and a NUL; UTF-8 is never cut inside a
 * character.
 *
 * @return length written, without the NUL
 */
size_t lac_kernel_short_name(const char *name, size_t length, char *out, size_t capacity_bytes);

/* -- for tests: the rows themselves ------------------------------------------------------- */

enum lac_names_table {
    LAC_NAMES_COMM = 0,
    LAC_NAMES_LAYOUT,
    LAC_NAMES_TENSOR_VETO,
    LAC_NAMES_TENSOR_YES,
    LAC_NAMES_FAMILY,
    LAC_NAMES_API,
    LAC_NAMES_HOST,
    LAC_NAMES_TABLE_COUNT_
};

struct lac_names_row {
    enum lac_names_table table;
    int value;           /**< enum of the table's kind */
    const char *pattern; /**< language: name_table.def */
    const char *example; /**< a name that this row, and no earlier one of its table, matches */
};

/** All rows, in order. */
const struct lac_names_row *lac_names_rows(uint32_t *ret_count);

/** First row of `table` that matches, or NULL. */
const struct lac_names_row *lac_names_match(enum lac_names_table table, const char *name,
                                            size_t length);

#endif
