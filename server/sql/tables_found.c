/* What was found: steps and findings; gaps are in gap_module.c. */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"
#include "server/store/trace/trace_file.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

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
    {.name = "findings",
     .doc = "what to change, the first first",
     .columns = finding_columns,
     .column_count = LAC_COUNT_OF(finding_columns),
     .rows = &finding_rows},
};
const unsigned lac_sql_found_table_count = LAC_COUNT_OF(lac_sql_found_tables);
