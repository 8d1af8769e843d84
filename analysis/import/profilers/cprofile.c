/*
 * What cProfile dumps: for each function its calls, its own time, its time with what it called, and
 * the same for each of its callers. Whole stacks are not in it: call_graph.h makes them.
 * Stacks begin at calls that no caller has: also of functions that others call as well, as exec() is
 * by the profiler and by imports. The module profile keeps for each caller how often it called only.
 *
 * Source: Lib/profile.py and Modules/_lsprof.c of CPython, docs.python.org/3/library/profile.html
 */

#include "analysis/import/profilers/call_graph.h"
#include "analysis/import/profilers/profile_document.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct function {
    const struct lac_plain *key; /**< (file, line, name) */
    uint32_t name;               /**< string id */
    double own_s, total_s;
    double calls, outer_calls; /**< all, and those not inside another of itself */
    double called, called_s;   /**< by others: how often, and their time in all */
};

struct reader {
    struct lac_profile_file document;
    struct function *functions;
    uint32_t function_count;
    struct lac_call_graph graph; /**< a node for each function, in their order */
};

bool lac_cprofile_is_its_own(const uint8_t *head, size_t size_bytes)
{
    return size_bytes >= 5 && (head[0] & 0x7f) == '{' && (head[1] & 0x7f) == ')' && head[2] == 3 &&
           memchr("zZuaAts", head[3] & 0x7f, 7) != NULL;
}

/* -- functions --------------------------------------------------------------------------------- */

static int compare_text(const struct lac_plain *a, const struct lac_plain *b)
{
    const uint32_t shorter = a->count < b->count ? a->count : b->count;
    const int order = shorter > 0 ? memcmp(a->text, b->text, shorter) : 0;
    return order != 0 ? order : LAC_ORDER(a->count, b->count);
}

/* Keys have been checked: text, number, text. */
static int compare_keys(const struct lac_plain *a, const struct lac_plain *b)
{
    int order = compare_text(a->items[0], b->items[0]);
    order = order != 0 ? order : compare_text(a->items[2], b->items[2]);
    return order != 0 ? order : LAC_ORDER(a->items[1]->integer, b->items[1]->integer);
}

static int by_key(const void *a, const void *b)
{
    return compare_keys(((const struct function *)a)->key, ((const struct function *)b)->key);
}

static bool is_key(const struct lac_plain *key)
{
    return lac_plain_is(key, LAC_PLAIN_LIST) && key->count == 3 &&
           lac_plain_is(key->items[0], LAC_PLAIN_TEXT) &&
           lac_plain_is(key->items[1], LAC_PLAIN_INT) &&
           lac_plain_is(key->items[2], LAC_PLAIN_TEXT);
}

/* (outer calls, calls, own, total) of a function, (calls, outer calls, own, total) of a caller:
 * times in s. */
static bool read_times(const struct lac_plain *value, double numbers[4])
{
    bool is_good = lac_plain_is(value, LAC_PLAIN_LIST) && value->count >= 4;
    for (uint32_t i = 0; i < 4 && is_good; i++) {
        is_good = lac_plain_number(value->items[i], &numbers[i]) && numbers[i] >= 0.0;
    }
    return is_good && numbers[3] < 1e9;
}

static struct function *find(const struct reader *reader, const struct lac_plain *key)
{
    const struct function wanted = {.key = key};
    return is_key(key) ? bsearch(&wanted, reader->functions, reader->function_count,
                                 sizeof(*reader->functions), by_key)
                       : NULL;
}

/* "name (file.py:12)", or "name" of what is built in ("~", 0). */
static enum lac_status name_function(struct reader *reader, struct function *function)
{
    const struct lac_plain *file = function->key->items[0];
    return lac_document_frame(&reader->document, function->key->items[2],
                              lac_plain_equals(file, "~") ? NULL : file,
                              function->key->items[1]->integer, &function->name);
}

static enum lac_status read_functions(struct reader *reader)
{
    const struct lac_plain *document = reader->document.root;
    enum lac_status status = LAC_OK;
    if (!lac_plain_is(document, LAC_PLAIN_DICT) || document->count / 2 > LAC_CALL_NODES_MAX) {
        return lac_fail(reader->document.profile.reterr, LAC_ERR_CORRUPT, 0,
                        "no table of functions in this cProfile dump");
    }
    reader->functions = calloc((size_t)document->count / 2 + 1, sizeof(*reader->functions));
    if (reader->functions == NULL) {
        return lac_profile_failed(&reader->document.profile, LAC_ERR_NOMEM);
    }
    for (uint32_t i = 0; i + 1 < document->count && status == LAC_OK; i += 2) {
        struct function *function = &reader->functions[reader->function_count];
        double numbers[4];
        *function = (struct function){.key = document->items[i]};
        reader->document.profile.model->info.event_count++;
        if (!is_key(function->key) || !read_times(document->items[i + 1], numbers)) {
            lac_model_report(reader->document.profile.model, LAC_REPORT_DROPPED,
                             "function_not_understood", 1, 0,
                             "functions without a place or without times");
            continue;
        }
        function->outer_calls = numbers[0];
        function->calls = numbers[1];
        function->own_s = numbers[2];
        function->total_s = numbers[3];
        status = name_function(reader, function);
        reader->function_count++;
    }
    if (reader->function_count > 1) {
        qsort(reader->functions, reader->function_count, sizeof(*reader->functions), by_key);
    }
    return lac_profile_failed(&reader->document.profile, status);
}

/* -- calls ------------------------------------------------------------------------------------- */

/* How often a caller called, and how long that took. */
static bool read_caller(const struct function *callee, const struct lac_plain *value,
                        double *ret_calls, double *ret_total_s)
{
    double numbers[4];
    if (lac_plain_is(value, LAC_PLAIN_INT) && value->integer >= 0) { /* of the module profile */
        *ret_calls = (double)value->integer;
        *ret_total_s =
            callee->calls > 0.0 ? callee->total_s * fmin(*ret_calls / callee->calls, 1.0) : 0.0;
        return true;
    }
    if (!read_times(value, numbers)) {
        return false;
    }
    *ret_calls = numbers[0];
    *ret_total_s = numbers[3];
    return true;
}

static enum lac_status read_calls(struct reader *reader)
{
    const struct lac_plain *document = reader->document.root;
    enum lac_status status = LAC_OK;
    for (uint32_t i = 0; i + 1 < document->count && status == LAC_OK; i += 2) {
        const struct lac_plain *callers = lac_plain_at(document->items[i + 1], 4);
        struct function *callee = find(reader, document->items[i]);
        for (uint32_t c = 0; callee != NULL && lac_plain_is(callers, LAC_PLAIN_DICT) &&
                             c + 1 < callers->count && status == LAC_OK;
             c += 2) {
            const struct function *caller = find(reader, callers->items[c]);
            double calls;
            double total_s;
            if (caller != NULL && read_caller(callee, callers->items[c + 1], &calls, &total_s)) {
                callee->called += calls;
                callee->called_s += caller != callee ? total_s : 0.0;
                status = lac_call_graph_edge(&reader->graph, (uint32_t)(caller - reader->functions),
                                             (uint32_t)(callee - reader->functions), total_s);
            }
        }
    }
    return lac_profile_failed(&reader->document.profile, status);
}

/* -- stacks ------------------------------------------------------------------------------------ */

/* Time of calls that nobody in the dump made. Of a function that calls itself, the times below its
 * callers hold each other: its outer calls are divided by their count. */
static double time_without_caller(const struct function *function)
{
    const double calls = function->calls - function->called;
    if (calls <= 0.0) {
        return 0.0;
    }
    if (function->outer_calls < function->calls) {
        return function->total_s * fmin(calls / fmax(function->outer_calls, 1.0), 1.0);
    }
    return fmax(function->total_s - function->called_s, 0.0);
}

static enum lac_status build(struct reader *reader)
{
    double all_s = 0.0;
    enum lac_status status = LAC_OK;
    for (uint32_t i = 0; i < reader->function_count && status == LAC_OK; i++) {
        const struct function *function = &reader->functions[i];
        uint32_t node = 0;
        status = lac_call_graph_node(&reader->graph, function->name, &node);
        if (status == LAC_OK) {
            reader->graph.nodes[node].total = function->total_s;
            reader->graph.nodes[node].root = time_without_caller(function);
            all_s += function->own_s;
        }
    }
    if (status == LAC_OK) {
        status = lac_call_graph_weigh(&reader->graph, &reader->document.profile, all_s, 1e9);
    }
    lac_model_report(reader->document.profile.model, LAC_REPORT_INFO, "stacks_from_callers", 1, 0,
                     "cProfile keeps callers, no stacks: a function's time is divided among them");
    return lac_profile_failed(&reader->document.profile, status);
}

enum lac_status lac_cprofile_import(struct lac_source *source,
                                    const struct lac_import_options *options, size_t window_bytes,
                                    const char *name, struct lac_model **ret_model,
                                    struct lac_error *reterr)
{
    struct reader reader = {.function_count = 0};
    enum lac_status status = lac_document_open(&reader.document, source, options, window_bytes,
                                               name, LAC_DOCUMENT_MARSHAL, reterr);
    if (status == LAC_OK) {
        status = lac_document_begin(&reader.document, LAC_FORMAT_CPROFILE);
        status = status == LAC_OK ? read_functions(&reader) : status;
        status = status == LAC_OK ? read_calls(&reader) : status;
        status = status == LAC_OK ? build(&reader) : status;
        status = lac_document_end(&reader.document, status, "cProfile dump", NULL, ret_model);
    }
    free(reader.functions);
    lac_call_graph_done(&reader.graph);
    lac_document_close(&reader.document);
    return status;
}
