/* What was found: steps, gaps with their causes, findings. */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"
#include "server/store/trace/trace_file.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>

/* -- steps ----------------------------------------------------------------------------------- */

enum step_column {
    STEP_NUMBER,
    STEP_NAME,
    STEP_START,
    STEP_DUR,
    STEP_END,
    STEP_HOST_START,
    STEP_HOST_DUR,
    STEP_KIND,
    STEP_LEFT_OUT,
    STEP_OUTLIER,
    STEP_WAIT,
    STEP_STARVED,
    STEP_OPS,
};

static const struct lac_sql_column step_columns[] = {
    [STEP_NUMBER] = {"step", "INTEGER", "from 0", LAC_SQL_WORDS_PLAIN},
    [STEP_NAME] = {"name", "TEXT", "ProfilerStep#12, ...", LAC_SQL_WORDS_GIVEN},
    [STEP_START] = {"start_ns", "INTEGER", "on the device where it sets the pace",
                    LAC_SQL_WORDS_PLAIN},
    [STEP_DUR] = {"dur_ns", "INTEGER", "length there", LAC_SQL_WORDS_PLAIN},
    [STEP_END] = {"end_ns", "INTEGER", "start_ns + dur_ns", LAC_SQL_WORDS_PLAIN},
    [STEP_HOST_START] = {"host_start_ns", "INTEGER", "at the host's mark", LAC_SQL_WORDS_PLAIN},
    [STEP_HOST_DUR] = {"host_dur_ns", "INTEGER", "between the host's marks", LAC_SQL_WORDS_PLAIN},
    [STEP_KIND] = {"kind", "TEXT", "train, validation, checkpoint, ...", LAC_SQL_WORDS_PLAIN},
    [STEP_LEFT_OUT] = {"left_out", "TEXT", "why it is not in the mean; NULL: it is",
                       LAC_SQL_WORDS_PLAIN},
    [STEP_OUTLIER] = {"is_outlier", "INTEGER", "1: much longer than its like", LAC_SQL_WORDS_PLAIN},
    [STEP_WAIT] = {"wait_ns", "INTEGER", "waiting for data in it", LAC_SQL_WORDS_PLAIN},
    [STEP_STARVED] = {"starved_ns", "INTEGER", "of that, with the device idle",
                      LAC_SQL_WORDS_PLAIN},
    [STEP_OPS] = {"gpu_operations", "INTEGER", "kernels, copies and sets launched in it",
                  LAC_SQL_WORDS_PLAIN},
};

static enum lac_status count_steps(struct lac_sql_trace *trace, uint64_t *ret_count,
                                   struct lac_error *reterr)
{
    struct lac_trace_steps steps;
    const struct lac_analysis *analysis = NULL;
    lac_trace_file_steps(trace->file, &steps);
    *ret_count = steps.count;
    return lac_sql_trace_analysis(trace, &analysis, reterr);
}

static void put_step_fact(const struct lac_step *step, enum step_column column,
                          sqlite3_context *out)
{
    switch ((int)column) {
    case STEP_KIND:
        lac_sql_put_text(out, lac_step_kind_name((enum lac_step_kind)step->kind));
        break;
    case STEP_LEFT_OUT:
        lac_sql_put_text(out, step->left_out == LAC_STEP_KEPT
                                  ? NULL
                                  : lac_step_left_out_name((enum lac_step_left_out)step->left_out));
        break;
    case STEP_OUTLIER:
        sqlite3_result_int(out, step->is_outlier);
        break;
    case STEP_WAIT:
        lac_sql_put_ns(out, step->wait_ns);
        break;
    case STEP_STARVED:
        lac_sql_put_ns(out, step->starved_ns);
        break;
    default:
        sqlite3_result_int64(out, (int64_t)step->op_count);
    }
}

static void step_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                      sqlite3_context *out)
{
    struct lac_trace_steps steps;
    const struct lac_analysis *analysis = trace->analysis;
    (void)state;
    lac_trace_file_steps(trace->file, &steps);
    switch ((int)column) {
    case STEP_NUMBER:
        sqlite3_result_int64(out, (int64_t)row);
        break;
    case STEP_NAME:
        lac_sql_put_string(out, trace, steps.name[row]);
        break;
    case STEP_START:
        sqlite3_result_int64(out, steps.start_ns[row]);
        break;
    case STEP_DUR:
        sqlite3_result_int64(out, steps.dur_ns[row]);
        break;
    case STEP_END:
        sqlite3_result_int64(out, steps.start_ns[row] + steps.dur_ns[row]);
        break;
    case STEP_HOST_START:
        sqlite3_result_int64(out, steps.host_start_ns[row]);
        break;
    case STEP_HOST_DUR:
        sqlite3_result_int64(out, steps.host_dur_ns[row]);
        break;
    default:
        if (analysis != NULL && row < analysis->step_count) {
            put_step_fact(&analysis->steps[row], (enum step_column)column, out);
        }
    }
}

static const struct lac_sql_rows step_rows = {.count = count_steps, .cell = step_cell};

/* -- gaps ------------------------------------------------------------------------------------ */

enum gap_column {
    GAP_DEVICE,
    GAP_START,
    GAP_DUR,
    GAP_END,
    GAP_CAUSE,
    GAP_ROOT_CAUSE,
    GAP_ENDED_BY,
    GAP_ROOT,
    GAP_SIGNATURE,
    GAP_PER_STEP,
    GAP_CAUSE_NS, /**< one for each cause */
    GAP_ARGUMENT = GAP_CAUSE_NS + LAC_GAP_CAUSES,
};

#define CAUSE_COLUMN(cause, column)                                                                \
    [GAP_CAUSE_NS + (cause)] = {column, "INTEGER", "of dur_ns, by that cause", LAC_SQL_WORDS_PLAIN}

static const struct lac_sql_column gap_columns[] = {
    [GAP_DEVICE] = {"device", "INTEGER", "devices.id", LAC_SQL_WORDS_PLAIN},
    [GAP_START] = {"start_ns", "INTEGER", "since the start of the trace", LAC_SQL_WORDS_PLAIN},
    [GAP_DUR] = {"dur_ns", "INTEGER", "no kernel, copy or memset ran so long", LAC_SQL_WORDS_PLAIN},
    [GAP_END] = {"end_ns", "INTEGER", "start_ns + dur_ns", LAC_SQL_WORDS_PLAIN},
    [GAP_CAUSE] = {"cause", "TEXT",
                   "the one with the largest share: data_wait, sync, launch, copy_wait, allocator, "
                   "module_load, comm, dependency, host, profiler or unattributed",
                   LAC_SQL_WORDS_PLAIN},
    [GAP_ROOT_CAUSE] = {"root_cause", "TEXT", "what opened it, in a sentence",
                        LAC_SQL_WORDS_SENTENCE},
    [GAP_ENDED_BY] = {"ended_by", "INTEGER", "slices.id of the operation that ended it",
                      LAC_SQL_WORDS_PLAIN},
    [GAP_ROOT] = {"root", "INTEGER", "slices.id of what opened it: a blocking call, a late batch",
                  LAC_SQL_WORDS_PLAIN},
    [GAP_SIGNATURE] = {"signature", "INTEGER", "the same for gaps of one kind",
                       LAC_SQL_WORDS_PLAIN},
    [GAP_PER_STEP] = {"per_step", "REAL", "gaps of that kind in a step", LAC_SQL_WORDS_PLAIN},
    CAUSE_COLUMN(LAC_CAUSE_DATA_WAIT, "data_wait_ns"),
    CAUSE_COLUMN(LAC_CAUSE_SYNC, "sync_ns"),
    CAUSE_COLUMN(LAC_CAUSE_LAUNCH, "launch_ns"),
    CAUSE_COLUMN(LAC_CAUSE_COPY_WAIT, "copy_wait_ns"),
    CAUSE_COLUMN(LAC_CAUSE_ALLOCATOR, "allocator_ns"),
    CAUSE_COLUMN(LAC_CAUSE_MODULE_LOAD, "module_load_ns"),
    CAUSE_COLUMN(LAC_CAUSE_COMM, "comm_ns"),
    CAUSE_COLUMN(LAC_CAUSE_DEPENDENCY, "dependency_ns"),
    CAUSE_COLUMN(LAC_CAUSE_HOST, "host_ns"),
    CAUSE_COLUMN(LAC_CAUSE_PROFILER, "profiler_ns"),
    CAUSE_COLUMN(LAC_CAUSE_UNATTRIBUTED, "unattributed_ns"),
    [GAP_ARGUMENT] = {"of_device", "INTEGER", "devices.id; default all", LAC_SQL_WORDS_PLAIN},
    [GAP_ARGUMENT + 1] = {"min_ns", "INTEGER", "leave out shorter ones; default 0",
                          LAC_SQL_WORDS_PLAIN},
};
_Static_assert(LAC_COUNT_OF(gap_columns) == GAP_ARGUMENT + 2, "a column for each cause");

struct gaps {
    struct lac_gap_reader *reader;
    struct lac_gap_row at; /**< the one that cells are of */
};

static void close_gaps(void *state)
{
    struct gaps *gaps = state;
    lac_gap_reader_close(gaps->reader);
    free(gaps);
}

static enum lac_status open_gaps(struct lac_sql_trace *trace,
                                 const struct lac_sql_arguments *arguments, void **ret_state,
                                 uint64_t *ret_count, struct lac_error *reterr)
{
    const int64_t device = lac_sql_argument(arguments, 0, -1);
    const int64_t min_ns = lac_sql_argument(arguments, 1, 0);
    struct gaps *gaps = calloc(1, sizeof(*gaps));
    *ret_count = 0; /* they come one after the other */
    if (gaps == NULL) {
        return LAC_ERR_NOMEM;
    }
    *ret_state = gaps;
    return lac_gap_reader_open(trace->file, device < -1 ? INT64_MAX : device, /* there is none */
                               min_ns, &gaps->reader, reterr);
}

static enum lac_status next_gap(void *state, struct lac_error *reterr)
{
    struct gaps *gaps = state;
    return lac_gap_reader_next(gaps->reader, &gaps->at, reterr);
}

static void gap_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                     sqlite3_context *out)
{
    const struct lac_gap_row *gap = &((const struct gaps *)state)->at;
    (void)trace;
    (void)row;
    switch ((int)column) {
    case GAP_DEVICE:
        sqlite3_result_int64(out, gap->device);
        break;
    case GAP_START:
        sqlite3_result_int64(out, gap->start_ns);
        break;
    case GAP_DUR:
        sqlite3_result_int64(out, gap->dur_ns);
        break;
    case GAP_END:
        sqlite3_result_int64(out, gap->start_ns + gap->dur_ns);
        break;
    case GAP_CAUSE:
        lac_sql_put_text(out, lac_cause_name((enum lac_cause)gap->cause));
        break;
    case GAP_ROOT_CAUSE:
        lac_sql_put_copy(out, gap->root_cause);
        break;
    case GAP_ENDED_BY:
        lac_sql_put_id(out, gap->ended_by);
        break;
    case GAP_ROOT:
        lac_sql_put_id(out, gap->root_slice);
        break;
    case GAP_SIGNATURE:
        sqlite3_result_int64(out, gap->signature);
        break;
    case GAP_PER_STEP:
        lac_sql_put_real(out, gap->per_step);
        break;
    default:
        sqlite3_result_int64(out, gap->cause_ns[column - GAP_CAUSE_NS]);
    }
}

static const struct lac_sql_rows gap_rows = {
    .open = open_gaps, .next = next_gap, .cell = gap_cell, .close = close_gaps};

/* -- findings -------------------------------------------------------------------------------- */

static const struct lac_sql_column finding_columns[] = {
    {"position", "INTEGER", "from 0: what to change first", LAC_SQL_WORDS_PLAIN},
    {"id", "TEXT", "as `lacuna explain` knows it", LAC_SQL_WORDS_PLAIN},
    {"severity", "TEXT", "critical, warning or info", LAC_SQL_WORDS_PLAIN},
    {"cost_per_step_ns", "INTEGER", "what it takes of a step, NULL without steps",
     LAC_SQL_WORDS_PLAIN},
    {"gain_low_pct", "REAL", "of the step, at least", LAC_SQL_WORDS_PLAIN},
    {"gain_mid_pct", "REAL", "of the step, expected", LAC_SQL_WORDS_PLAIN},
    {"gain_high_pct", "REAL", "of the step, at most", LAC_SQL_WORDS_PLAIN},
    {"title", "TEXT", "what was found", LAC_SQL_WORDS_PLAIN},
    {"why", "TEXT", "what shows it", LAC_SQL_WORDS_PLAIN},
    {"change", "TEXT", "what to change", LAC_SQL_WORDS_PLAIN},
    {"expect", "TEXT", "what to expect", LAC_SQL_WORDS_PLAIN},
    {"costs", "TEXT", "what the change costs", LAC_SQL_WORDS_PLAIN},
    {"wrong_if", "TEXT", "what would refute it", LAC_SQL_WORDS_PLAIN},
    {"check_with", "TEXT", "how to check it", LAC_SQL_WORDS_PLAIN},
};

static enum lac_status count_findings(struct lac_sql_trace *trace, uint64_t *ret_count,
                                      struct lac_error *reterr)
{
    const struct lac_analysis *analysis = NULL;
    enum lac_status status = lac_sql_trace_analysis(trace, &analysis, reterr);
    *ret_count = analysis != NULL ? analysis->finding_count : 0;
    return status;
}

static void finding_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                         sqlite3_context *out)
{
    const struct lac_finding *finding = &trace->analysis->findings[row];
    const char *const texts[] = {finding->title,  finding->why,   finding->change,
                                 finding->expect, finding->costs, finding->wrong_if,
                                 finding->check};
    (void)state;
    switch ((int)column) {
    case 0:
        sqlite3_result_int64(out, (int64_t)row);
        break;
    case 1:
        lac_sql_put_text(out, finding->id);
        break;
    case 2:
        lac_sql_put_text(out, lac_severity_name(finding->severity));
        break;
    case 3:
        lac_sql_put_ns(out, finding->cost_ns_per_step);
        break;
    case 4:
        lac_sql_put_real(out, finding->gain_low_pct);
        break;
    case 5:
        lac_sql_put_real(out, finding->gain_mid_pct);
        break;
    case 6:
        lac_sql_put_real(out, finding->gain_high_pct);
        break;
    default:
        lac_sql_put_text(out, column - 7 < LAC_COUNT_OF(texts) ? texts[column - 7] : NULL);
    }
}

static const struct lac_sql_rows finding_rows = {.count = count_findings, .cell = finding_cell};

const struct lac_sql_table lac_sql_found_tables[] = {
    {.name = "steps",
     .doc = "detected steps",
     .columns = step_columns,
     .column_count = LAC_COUNT_OF(step_columns),
     .rows = &step_rows},
    {.name = "gaps",
     .doc =
         "intervals in which a device executes nothing, with causes; also gaps(of_device, min_ns)",
     .columns = gap_columns,
     .column_count = LAC_COUNT_OF(gap_columns),
     .argument_count = 2,
     .rows = &gap_rows},
    {.name = "findings",
     .doc = "what to change, the first first",
     .columns = finding_columns,
     .column_count = LAC_COUNT_OF(finding_columns),
     .rows = &finding_rows},
};
const unsigned lac_sql_found_table_count = LAC_COUNT_OF(lac_sql_found_tables);
