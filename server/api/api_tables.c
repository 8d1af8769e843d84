#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <stdint.h>
#include <string.h>

_Static_assert((int)LAC_GAP_CAUSES == (int)LAC_CAUSE_COUNT_,
               "the store keeps every cause of a gap");

static void write_text_or_null(struct lac_json *json, const char *key, const char *text)
{
    lac_json_text(json, key, text[0] != '\0' ? text : NULL);
}

/* -- kernels ----------------------------------------------------------------------------------- */

static void write_kernel_row(struct lac_json *json, const struct lac_model *head,
                             const struct lac_kernel_row *row)
{
    lac_json_open(json, NULL, '{');
    lac_json_uint(json, "name_id", row->name);
    lac_json_text(json, "name", lac_model_str(head, row->name));
    lac_json_text(json, "short", row->short_name);
    lac_json_text(json, "family", row->family);
    lac_json_uint(json, "count", row->count);
    lac_json_int(json, "total_ns", row->total_ns);
    lac_json_int(json, "mean_ns", row->mean_ns);
    lac_json_int(json, "min_ns", row->min_ns);
    lac_json_int(json, "max_ns", row->max_ns);
    lac_json_real(json, "pct_of_kernel_time", row->pct_of_kernel_time);
    if (row->per_step_ns == INT64_MIN) {
        lac_json_null(json, "per_step_ns");
    } else {
        lac_json_int(json, "per_step_ns", row->per_step_ns);
    }
    write_text_or_null(json, "layout_class", row->layout_class);
    if (row->tensor_core < 0) {
        lac_json_null(json, "tensor_core");
    } else {
        lac_json_bool(json, "tensor_core", row->tensor_core == 1);
    }
    lac_api_write_id(json, "longest_slice", row->longest_slice);
    lac_json_close(json, '}');
}

static bool read_kernel_query(const struct lac_request *request, struct lac_response *response,
                              struct lac_kernel_query *query)
{
    static const char *const sorts[] = {"total", "count", "mean",   "min",
                                        "max",   "name",  "family", NULL};
    static const char *const orders[] = {"asc", "desc", NULL};
    const int sort = lac_api_choice(request, response, "sort", sorts, LAC_KERNEL_SORT_TOTAL);
    int64_t limit;
    int order;

    if (sort < 0) {
        return false;
    }
    order = lac_api_choice(request, response, "order", orders, sort < LAC_KERNEL_SORT_NAME ? 1 : 0);
    if (order < 0 || !lac_api_int(request, response, "limit", 1, 10000, 200, &limit)) {
        return false;
    }
    *query = (struct lac_kernel_query){
        .sort = (enum lac_kernel_sort)sort,
        .descending = order == 1,
        .text = lac_target_get(request->target, "q"),
        .after = lac_target_get(request->target, "after"),
        .limit = (uint32_t)limit,
    };
    return true;
}

static void answer_kernels(struct lac_trace_file *file, const struct lac_request *request,
                           struct lac_response *response)
{
    const struct lac_model *head = lac_trace_file_head(file);
    struct lac_kernel_query query;
    struct lac_kernel_page page = {0};
    struct lac_error error = {0};
    struct lac_json json;

    if (!read_kernel_query(request, response, &query) ||
        lac_api_is_unchanged(request, file, response)) {
        return;
    }
    if (lac_trace_file_kernels(file, &query, &page, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_uint(&json, "total", page.total);
    lac_json_open(&json, "kernels", '[');
    for (uint32_t i = 0; i < page.count; i++) {
        write_kernel_row(&json, head, &page.rows[i]);
    }
    lac_json_close(&json, ']');
    lac_json_text(&json, "next", page.has_more ? page.next : NULL);
    lac_json_close(&json, '}');
    lac_kernel_page_done(&page);
}

void lac_api_kernels(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_kernels);
}

/* -- gaps -------------------------------------------------------------------------------------- */

static void write_gap(struct lac_json *json, const struct lac_gap_row *row)
{
    lac_json_open(json, NULL, '{');
    lac_json_int(json, "start_ns", row->start_ns);
    lac_json_int(json, "dur_ns", row->dur_ns);
    lac_json_int(json, "device", row->device);
    lac_json_text(json, "cause",
                  lac_cause_name(row->cause < LAC_CAUSE_COUNT_ ? (enum lac_cause)row->cause
                                                               : LAC_CAUSE_UNATTRIBUTED));
    lac_json_open(json, "cause_ns", '{');
    for (unsigned i = 0; i < LAC_CAUSE_COUNT_; i++) {
        if (row->cause_ns[i] != 0) {
            lac_json_int(json, lac_cause_name((enum lac_cause)i), row->cause_ns[i]);
        }
    }
    lac_json_close(json, '}');
    lac_json_text(json, "root_cause", row->root_cause);
    lac_json_text(json, "root_kind",
                  row->root_kind < 0 ? NULL
                                     : lac_root_kind_name((enum lac_root_kind)row->root_kind));
    lac_api_write_id(json, "root_slice", row->root_slice);
    lac_api_write_id(json, "wait_slice", row->wait_slice);
    lac_api_write_id(json, "batch_slice", row->batch_slice);
    lac_api_write_id(json, "ended_by", row->ended_by);
    lac_json_uint(json, "signature", row->signature);
    lac_json_real(json, "per_step", row->per_step);
    lac_json_close(json, '}');
}

static void answer_gaps(struct lac_trace_file *file, const struct lac_request *request,
                        struct lac_response *response)
{
    static const char *const sorts[] = {"dur", "start", NULL};
    const int sort = lac_api_choice(request, response, "sort", sorts, LAC_GAP_SORT_DUR);
    struct lac_gap_page page = {0};
    struct lac_error error = {0};
    struct lac_json json;
    int64_t device;
    int64_t min_ns;
    int64_t limit;

    if (sort < 0 || !lac_api_int(request, response, "device", 0, INT64_MAX, -1, &device) ||
        !lac_api_int(request, response, "min_ns", 0, LAC_TIME_MAX_NS, 10000, &min_ns) ||
        !lac_api_int(request, response, "limit", 1, 10000, 1000, &limit) ||
        lac_api_is_unchanged(request, file, response)) {
        return;
    }
    const struct lac_gap_query query = {
        .device = device,
        .min_ns = min_ns,
        .sort = (enum lac_gap_sort)sort,
        .after = lac_target_get(request->target, "after"),
        .limit = (uint32_t)limit,
    };
    if (lac_trace_file_gaps(file, &query, &page, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_uint(&json, "total", page.total);
    lac_json_open(&json, "gaps", '[');
    for (uint32_t i = 0; i < page.count; i++) {
        write_gap(&json, &page.rows[i]);
    }
    lac_json_close(&json, ']');
    lac_json_text(&json, "next", page.has_more ? page.next : NULL);
    lac_json_close(&json, '}');
    lac_gap_page_done(&page);
}

void lac_api_gaps(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_gaps);
}
