#ifndef LAC_SERVER_STORE_JOURNAL_ROWS_H
#define LAC_SERVER_STORE_JOURNAL_ROWS_H

/*
 * What the catalog keeps for runs over time: figures of each trace, its settings one by one,
 * comparisons of neighbors, baselines and pins. Figures, settings and comparisons can be made again
 * from the trace files (server/journal does); of another version or generation they are not there.
 */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/journal/journal.h"
#include "analysis/model/status.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stdint.h>

/** Of how figures and comparisons are made: a new one makes all of them anew. */
enum { LAC_FIGURES_VERSION = 2 };

/** The name that stands for "without a project" where a path needs one. */
#define LAC_NO_PROJECT "-"

/** Figures of one trace. */
struct lac_figures {
    char trace[LAC_ID_SIZE];
    uint32_t generation;
    int64_t recorded_unix_ms;
    char person[64]; /**< who ran it, "" not known */
    char job[128];   /**< what ran: script or model, "" not known */
    struct lac_run_pace pace;
    uint64_t fingerprint;                 /**< of all settings: equal ones are equal */
    int64_t gpu_ns;                       /**< recorded time of all devices; 0 without one */
    int64_t part_ns[LAC_TIME_PART_COUNT]; /**< of it: sums to gpu_ns */
    double energy_j;                      /**< NaN not recorded */
    double mfu_pct;                       /**< model FLOP/s used, of the peak; NaN unknown */
};

/** One setting, as people write it. */
struct lac_setting_text {
    const char *key, *value;
};

/** Settings of one trace that are kept. */
enum { LAC_FIGURE_SETTINGS_MAX = 128 };

/** Figures of a trace and what its row says, enough to put runs in order. */
struct lac_point {
    struct lac_figures figures;
    char run[LAC_ID_SIZE]; /**< "" none */
    int32_t rank;          /**< -1 unknown */
    int64_t seq;           /**< order of arrival */
    int64_t step_mean_ns;  /**< LAC_UNKNOWN_NS */
    double throughput_per_s;
    char throughput_unit[16];
    double not_computing_pct;
};

struct lac_point_list {
    struct lac_point *points; /**< by time of recording, then arrival */
    uint32_t count;
    uint32_t missing; /**< ready traces of the project whose figures are not made yet */
};

/** Frees the contents; a zeroed struct is allowed. */
void lac_point_list_done(struct lac_point_list *list);

/** All traces of a project with figures. Cost: about 5 us a trace.
 *  @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_store_points(struct lac_store *store, const char *project,
                                              struct lac_point_list *ret_list,
                                              struct lac_error *reterr);

/** Ready traces without figures, newest first.
 *  @param project NULL all @param ids room for `limit` */
LAC_MUST_USE enum lac_status lac_store_unfigured(struct lac_store *store, const char *project,
                                                 uint32_t limit, char (*ids)[LAC_ID_SIZE],
                                                 uint32_t *ret_count, struct lac_error *reterr);

/** Keep figures instead of those there are; comparisons with this trace are forgotten.
 *  @param document the rest, JSON. @return LAC_OK, LAC_ERR_NOT_FOUND (deleted meanwhile), ... */
LAC_MUST_USE enum lac_status
lac_store_put_figures(struct lac_store *store, const struct lac_figures *figures,
                      const char *document, const struct lac_setting_text *settings,
                      uint32_t setting_count, struct lac_error *reterr);

/** What a page shows of a run beside its figures. */
struct lac_run_details {
    bool is_there;                                    /**< false: deleted meanwhile */
    char *name;                                       /**< as people call it */
    char *notes, *tags, *host, *device_names, *cause; /**< NULL none */
    bool is_simulated, is_baseline, is_pinned;
    char *figures;   /**< the JSON text kept with figures; NULL none */
    char *neighbors; /**< that of the comparison with the run before; NULL none */
};

/** Frees array and contents; NULL is allowed. */
void lac_run_details_done(struct lac_run_details *details, uint32_t count);

/** Details of a page of traces, in their order, by one statement. @param traces ids
 *  @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_store_run_details(struct lac_store *store,
                                                   const char *const *traces, uint32_t count,
                                                   struct lac_run_details **ret_details,
                                                   struct lac_error *reterr);

/** Two neighbors, compared. */
struct lac_neighbors {
    char a[LAC_ID_SIZE], b[LAC_ID_SIZE];
    double predicted_pct, achieved_pct; /**< of a's step; NaN: no prediction for one change */
};

struct lac_neighbor_list {
    struct lac_neighbors *rows; /**< ascending b */
    uint32_t count;
};
void lac_neighbor_list_done(struct lac_neighbor_list *list);

/** All comparisons of a project. */
LAC_MUST_USE enum lac_status lac_store_neighbors(struct lac_store *store, const char *project,
                                                 struct lac_neighbor_list *ret_list,
                                                 struct lac_error *reterr);

/** Keep a comparison instead of b's earlier one. */
LAC_MUST_USE enum lac_status lac_store_put_neighbors(struct lac_store *store,
                                                     const struct lac_neighbors *neighbors,
                                                     const char *document,
                                                     struct lac_error *reterr);

/** A setting of a trace. */
struct lac_setting_value {
    char trace[LAC_ID_SIZE];
    char value[64]; /**< cut */
};
struct lac_setting_values {
    struct lac_setting_value *rows; /**< ascending trace */
    uint32_t count;
};
void lac_setting_values_done(struct lac_setting_values *values);
LAC_MUST_USE enum lac_status lac_store_setting_values(struct lac_store *store, const char *project,
                                                      const char *key,
                                                      struct lac_setting_values *ret_values,
                                                      struct lac_error *reterr);

/** A setting that differs among the newest traces of a project. */
struct lac_varied {
    char key[96];
    uint32_t value_count, trace_count;
};
enum { LAC_VARIED_MAX = 64, LAC_VARIED_TRACES = 1000 };
/** @param varied room for LAC_VARIED_MAX. Looks at the newest LAC_VARIED_TRACES traces. */
LAC_MUST_USE enum lac_status lac_store_varied(struct lac_store *store, const char *project,
                                              struct lac_varied *varied, uint32_t *ret_count,
                                              struct lac_error *reterr);

/** The trace that a project's runs are compared with; "" none. @param ret_trace LAC_ID_SIZE */
LAC_MUST_USE enum lac_status lac_store_baseline(struct lac_store *store, const char *project,
                                                char *ret_trace, struct lac_error *reterr);

/** What PATCH sets of a trace beside its labels: -1 leaves it. Durable.
 *  A baseline belongs to the trace's project, whose earlier one it replaces.
 *  @return LAC_OK, LAC_ERR_NOT_FOUND, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_store_set_marks(struct lac_store *store, const char *trace,
                                                 int is_baseline, int is_pinned,
                                                 struct lac_error *reterr);

#endif
