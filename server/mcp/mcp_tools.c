#include "server/mcp/mcp_tools.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/json/json_members.h"
#include "server/json/json_out.h"
#include "server/mcp/mcp_command.h"
#include "server/mcp/mcp_files.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

__attribute__((format(printf, 3, 4))) static enum lac_status
fail(struct lac_mcp_call *call, enum lac_status status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(call->failure, sizeof(call->failure), fmt, args);
    va_end(args);
    return status;
}

const char *lac_mcp_text(const struct lac_mcp_call *call, const char *name)
{
    for (int i = 0; i < LAC_MCP_ARGUMENTS_MAX && call->tool->arguments[i].name != NULL; i++) {
        if (strcmp(call->tool->arguments[i].name, name) == 0) {
            return call->texts[i];
        }
    }
    return NULL;
}

/** Run a command of ours; what it prints is the answer. Texts of the client stand behind "--", or as
 *  an option's value. */
static enum lac_status run_command(struct lac_mcp_call *call, const char *const *argv)
{
    const struct lac_mcp_command command = {call->options, call->output_fd, argv};
    struct lac_mcp_outcome outcome = {.exit_status = 0};
    enum lac_status status = lac_mcp_command_run(&command, &outcome);
    call->is_client_gone = outcome.is_client_gone;
    if (!status && outcome.exit_status != 0) {
        status = LAC_ERR_IO;
    }
    if (status) {
        lac_buffer_done(&outcome.output);
        size_t length = strlen(outcome.complaint);
        while (length > 0 && outcome.complaint[length - 1] == '\n') {
            outcome.complaint[--length] = '\0';
        }
        return fail(call, status, "%s",
                    length > 0 ? outcome.complaint : "the command failed without a word");
    }
    lac_buffer_done(&call->answer);
    call->answer = outcome.output;
    return LAC_OK;
}

/** The document that a command printed, without the blanks that are for people. */
static struct lac_buffer take_document(struct lac_mcp_call *call)
{
    struct lac_buffer document = call->answer;
    size_t kept = 0;
    bool is_text = false;
    call->answer = (struct lac_buffer){.bytes = NULL};
    for (size_t i = 0; i < document.size_bytes; i++) {
        const char c = document.bytes[i];
        if (c == '"') {
            is_text = !is_text;
        } else if (c == '\\' && is_text && i + 1 < document.size_bytes) {
            document.bytes[kept++] = c;
            document.bytes[kept++] = document.bytes[++i];
            continue;
        }
        if (is_text || (c != ' ' && c != '\n')) {
            document.bytes[kept++] = c;
        }
    }
    document.size_bytes = kept;
    return document;
}

/** The path behind the name of an argument. @return a copy that the caller frees, or NULL with a
 *  failure */
static char *path_of(struct lac_mcp_call *call, const char *argument)
{
    const char *name = lac_mcp_text(call, argument);
    struct lac_mcp_files files = {.files = NULL};
    char *path = NULL;
    if (lac_mcp_files_list(call->options, &files)) {
        (void)fail(call, LAC_ERR_NOMEM, "there is not enough memory");
    } else {
        const struct lac_mcp_file *file = lac_mcp_file_named(&files, name);
        path = file != NULL ? strdup(file->path) : NULL;
        if (file == NULL) {
            (void)fail(call, LAC_ERR_NOT_FOUND,
                       "no trace is called \"%.200s\": list_traces shows the names", name);
        } else if (path == NULL) {
            (void)fail(call, LAC_ERR_NOMEM, "there is not enough memory");
        }
    }
    lac_mcp_files_done(&files);
    return path;
}

static enum lac_status list_traces(struct lac_mcp_call *call)
{
    struct lac_mcp_files files = {.files = NULL};
    if (lac_mcp_files_list(call->options, &files)) {
        return fail(call, LAC_ERR_NOMEM, "there is not enough memory");
    }
    struct lac_json json;
    lac_json_init_form(&json, &call->answer, LAC_JSON_DOCUMENT);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "traces", '[');
    for (size_t i = 0; i < files.count; i++) {
        const struct lac_mcp_file *file = &files.files[i];
        const time_t changed_s = (time_t)(file->changed_ns / INT64_C(1000000000));
        struct tm changed;
        char text[40] = "";
        if (gmtime_r(&changed_s, &changed) != NULL) {
            (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &changed);
        }
        lac_json_line(&json);
        lac_json_open(&json, NULL, '{');
        lac_json_text(&json, "trace", file->name);
        lac_json_text(&json, "is", file->is_folder ? "folder" : "file");
        lac_json_uint(&json, "size_bytes", file->size_bytes);
        lac_json_text(&json, "changed", text);
        lac_json_close(&json, '}');
    }
    lac_json_close(&json, ']');
    if (files.is_cut) {
        lac_json_text(&json, "not_listed", "there are more than 10,000 files and folders");
    }
    lac_json_close(&json, '}');
    lac_mcp_files_done(&files);
    return call->answer.status ? fail(call, call->answer.status, "there is not enough memory")
                               : LAC_OK;
}

static enum lac_status analyze(struct lac_mcp_call *call)
{
    char *path = path_of(call, "trace");
    const char *argv[] = {"lacuna", "analyze", "--no-color", "--", path, NULL};
    enum lac_status status = path == NULL ? LAC_ERR_NOT_FOUND : run_command(call, argv);
    free(path);
    return status;
}

static enum lac_status what_if(struct lac_mcp_call *call)
{
    char *path = path_of(call, "trace");
    const char *argv[] = {"lacuna", "analyze", "--json", "--what-if", lac_mcp_text(call, "changes"),
                          "--",     path,      NULL};
    enum lac_status status = path == NULL ? LAC_ERR_NOT_FOUND : run_command(call, argv);
    free(path);
    if (status) {
        return status;
    }
    /* of the whole document only the answer, and what it is compared with */
    struct lac_buffer document = take_document(call);
    struct lac_json json;
    struct lac_json_member member;
    struct lac_json_members members = {document.bytes, document.bytes + document.size_bytes};
    lac_json_init_form(&json, &call->answer, LAC_JSON_DOCUMENT);
    lac_json_open(&json, NULL, '{');
    while (lac_json_member_next(&members, &member)) {
        if (lac_json_member_is(&member, "what_if")) {
            lac_json_member(&json, &member);
        } else if (lac_json_member_is(&member, "steps")) {
            struct lac_json_members steps = {member.value, member.value + member.value_length};
            lac_json_open(&json, "now", '{');
            while (lac_json_member_next(&steps, &member)) {
                if (lac_json_member_is(&member, "mean_ns") ||
                    lac_json_member_is(&member, "median_ns")) {
                    lac_json_member(&json, &member);
                }
            }
            lac_json_close(&json, '}');
        }
    }
    lac_json_close(&json, '}');
    lac_buffer_done(&document);
    return call->answer.status ? fail(call, call->answer.status, "there is not enough memory")
                               : LAC_OK;
}

/** A member that is text, equal to `text`. */
static bool has_text(struct lac_json_members members, const char *key, const char *text)
{
    struct lac_json_member member;
    const size_t length = strlen(text);
    while (lac_json_member_next(&members, &member)) {
        if (lac_json_member_is(&member, key)) {
            return member.value_length == length + 2 &&
                   strncmp(member.value + 1, text, length) == 0;
        }
    }
    return false;
}

static bool is_one_of(const struct lac_json_member *member, const char *const *keys)
{
    while (*keys != NULL && !lac_json_member_is(member, *keys)) {
        keys++;
    }
    return *keys != NULL;
}

/** The findings of a document: what each says in short, or one of them whole. @return how many */
static unsigned write_findings(struct lac_json *json, const struct lac_json_member *list,
                               const char *id)
{
    static const char *const brief[] = {"id",       "severity", "cause",  "effort", "cost_pct",
                                        "gain_pct", "title",    "change", "where",  NULL};
    unsigned count = 0;
    const char *const end = list->value + list->value_length;
    const char *at = list->value;
    while ((at = memchr(at, '{', (size_t)(end - at))) != NULL) {
        const struct lac_json_members finding = {at, end};
        struct lac_json_members members = finding;
        struct lac_json_member member;
        const bool is_wanted = id == NULL || has_text(finding, "id", id);
        if (is_wanted) {
            count++;
            lac_json_line(json);
            lac_json_open(json, NULL, '{');
        }
        while (lac_json_member_next(&members, &member)) {
            if (is_wanted && (id != NULL || is_one_of(&member, brief))) {
                lac_json_member(json, &member);
            }
        }
        if (is_wanted) {
            lac_json_close(json, '}');
        }
        at = members.at;
    }
    return count;
}

static enum lac_status findings(struct lac_mcp_call *call)
{
    static const char *const head[] = {"schema",       "trace",        "verdict", "throughput",
                                       "checked_fine", "not_recorded", "caveats", NULL};
    const char *id = lac_mcp_text(call, "id");
    char *path = path_of(call, "trace");
    const char *argv[] = {"lacuna", "analyze", "--json", "--", path, NULL};
    enum lac_status status = path == NULL ? LAC_ERR_NOT_FOUND : run_command(call, argv);
    free(path);
    if (status) {
        return status;
    }
    struct lac_buffer document = take_document(call);
    struct lac_json json;
    struct lac_json_member member;
    struct lac_json_members members = {document.bytes, document.bytes + document.size_bytes};
    unsigned count = 0;
    lac_json_init_form(&json, &call->answer, LAC_JSON_DOCUMENT);
    lac_json_open(&json, NULL, '{');
    while (lac_json_member_next(&members, &member)) {
        if (lac_json_member_is(&member, "findings")) {
            lac_json_open(&json, "findings", '[');
            count += write_findings(&json, &member, id);
            lac_json_close(&json, ']');
        } else if (id == NULL && is_one_of(&member, head)) {
            lac_json_member(&json, &member);
        }
    }
    lac_json_close(&json, '}');
    lac_buffer_done(&document);
    if (call->answer.status) {
        return fail(call, call->answer.status, "there is not enough memory");
    }
    if (id != NULL && count == 0) {
        return fail(call, LAC_ERR_NOT_FOUND, "this trace has no finding \"%.64s\"", id);
    }
    return LAC_OK;
}

static enum lac_status explain(struct lac_mcp_call *call)
{
    const char *argv[] = {"lacuna", "explain", "--", lac_mcp_text(call, "id"), NULL};
    return run_command(call, argv);
}

static enum lac_status compare(struct lac_mcp_call *call)
{
    char *before = path_of(call, "before");
    char *after = before != NULL ? path_of(call, "after") : NULL;
    const char *argv[] = {"lacuna", "compare", "--", before, after, NULL};
    enum lac_status status = after == NULL ? LAC_ERR_NOT_FOUND : run_command(call, argv);
    free(before);
    free(after);
    return status;
}

static enum lac_status sql(struct lac_mcp_call *call)
{
    char *path = path_of(call, "trace");
    const char *argv[] = {"lacuna",    "sql", "--json", "--limit", "1000",
                          "--timeout", "60",  "--",     path,      lac_mcp_text(call, "query"),
                          NULL};
    enum lac_status status = path == NULL ? LAC_ERR_NOT_FOUND : run_command(call, argv);
    free(path);
    return status;
}

static enum lac_status sql_tables(struct lac_mcp_call *call)
{
    const char *argv[] = {"lacuna", "sql", "--tables", "--", lac_mcp_text(call, "table"), NULL};
    return run_command(call, argv);
}

static enum lac_status sql_examples(struct lac_mcp_call *call)
{
    const char *argv[] = {"lacuna", "sql", "--questions", NULL};
    return run_command(call, argv);
}

/** Milliseconds as text. @return false with a failure */
static bool read_ms(struct lac_mcp_call *call, const char *argument, int64_t *ret_ns)
{
    const char *text = lac_mcp_text(call, argument);
    char *end = NULL;
    const double ms = strtod(text, &end);
    if (end == text || *end != '\0' || !(ms >= 0.0 && ms < 1e12)) {
        (void)fail(call, LAC_ERR_MISUSE, "%s is not a number of milliseconds: %.40s", argument,
                   text);
        return false;
    }
    *ret_ns = (int64_t)(ms * 1e6);
    return true;
}

static enum lac_status timeline(struct lac_mcp_call *call)
{
    int64_t from_ns = 0, to_ns = 0;
    char query[1024];
    if (!read_ms(call, "from_ms", &from_ns) || !read_ms(call, "to_ms", &to_ns)) {
        return LAC_ERR_MISUSE;
    }
    if (to_ns <= from_ns) {
        return fail(call, LAC_ERR_MISUSE, "to_ms must be above from_ms");
    }
    /* what would be thinner than a pixel in a picture is left out, as there */
    (void)snprintf(query, sizeof(query),
                   "SELECT t.name AS track, s.start_ns / 1e6 AS start_ms, s.dur_ns / 1e6 AS dur_ms,"
                   " s.depth, s.kind, substr(s.name, 1, 120) AS name, s.id"
                   " FROM slices s JOIN tracks t ON t.id = s.track"
                   " WHERE s.start_ns < %lld AND s.end_ns > %lld AND s.dur_ns >= %lld"
                   " ORDER BY s.track, s.start_ns, s.depth",
                   (long long)to_ns, (long long)from_ns, (long long)(to_ns - from_ns) / 500);
    char *path = path_of(call, "trace");
    const char *argv[] = {"lacuna", "sql", "--csv", "--limit", "2000", "--timeout",
                          "60",     "--",  path,    query,     NULL};
    enum lac_status status = path == NULL ? LAC_ERR_NOT_FOUND : run_command(call, argv);
    free(path);
    return status;
}

static enum lac_status picture(struct lac_mcp_call *call)
{
    const char *view = lac_mcp_text(call, "view");
    const char *form = lac_mcp_text(call, "form");
    int64_t from_ns = -1, to_ns = -1;
    char from[32], until[32];
    if (form != NULL && strcmp(form, "svg") != 0 && strcmp(form, "png") != 0) {
        return fail(call, LAC_ERR_MISUSE, "form is svg or png");
    }
    if ((lac_mcp_text(call, "from_ms") != NULL && !read_ms(call, "from_ms", &from_ns)) ||
        (lac_mcp_text(call, "to_ms") != NULL && !read_ms(call, "to_ms", &to_ns))) {
        return LAC_ERR_MISUSE;
    }
    (void)snprintf(from, sizeof(from), "%lldns", (long long)from_ns);
    (void)snprintf(until, sizeof(until), "%lldns", (long long)to_ns);
    char *path = path_of(call, "trace");
    const char *argv[LAC_MCP_WORDS_MAX] = {"lacuna", "export",
                                           "--to",   form != NULL ? form : "svg",
                                           "--view", view != NULL ? view : "timeline"};
    size_t words = 6;
    if (from_ns >= 0) {
        argv[words++] = "--from";
        argv[words++] = from;
    }
    if (to_ns >= 0) {
        argv[words++] = "--until";
        argv[words++] = until;
    }
    argv[words++] = "--";
    argv[words] = path;
    enum lac_status status = path == NULL ? LAC_ERR_NOT_FOUND : run_command(call, argv);
    free(path);
    return status;
}

#define TRACE                                                                                      \
    {                                                                                              \
        "trace", "a name from list_traces: a file, a recorded job, or a folder of ranks", true     \
    }

const struct lac_mcp_tool lac_mcp_tools[] = {
    {"list_traces",
     "List traces",
     "The traces and folders of traces that can be read.",
     {{NULL, NULL, false}},
     list_traces},
    {"analyze",
     "Diagnose a trace",
     "Why the GPU was idle, as a report: the verdict, where a step's time goes, the findings with "
     "evidence, what to change and the expected gain. A folder of ranks is one run.",
     {TRACE},
     analyze},
    {"findings",
     "Findings as data",
     "The verdict and the findings as JSON, the most worthwhile change first; gains are percent of "
     "a step's time. With id one finding whole: why, change, costs, what would prove it wrong, and "
     "evidence with times.",
     {TRACE, {"id", "a finding's id, such as input-starvation", false}},
     findings},
    {"explain",
     "Explain a finding",
     "What a finding means: how it is detected with which thresholds, how its gain is computed, "
     "the changes by framework, when it is wrong. Without id: all ids.",
     {{"id", "a finding's id", false}},
     explain},
    {"what_if",
     "Predict a change",
     "Replays the steps with changes and answers with the predicted step time and its band.",
     {TRACE,
      {"changes",
       "KEY=VALUE with commas: workers=N layout=nhwc pinned=1 async=1 sync=0 allocator=0 "
       "module_load=0 launch=0 comm=X kernels=X (X a factor, such as 0.5)",
       true}},
     what_if},
    {"compare",
     "Compare two traces",
     "Before and after: whether the step is faster by more than noise, what was changed, where the "
     "time went, and whether the predictions came true.",
     {{"before", "a name from list_traces", true}, {"after", "a name from list_traces", true}},
     compare},
    {"timeline",
     "A window of the timeline",
     "What ran on each thread and stream in a window, as CSV: track, start and length in "
     "milliseconds, depth, kind, name, and the slice's id. Steps and idle gaps are tracks of their "
     "own. Left out is what takes less than 1/500 of the window.",
     {TRACE, {"from_ms", "start, from the trace's beginning", true}, {"to_ms", "end", true}},
     timeline},
    {"picture",
     "A picture of the timeline",
     "A window of the timeline (devices, why they were idle, the launching thread, workers), or "
     "its flame graph: an image to look at (form png), or the text of an SVG file to save. Without "
     "times: what the first finding is about.",
     {TRACE,
      {"from_ms", "start, from the trace's beginning", false},
      {"to_ms", "end", false},
      {"view", "timeline (default) or flame", false},
      {"form", "svg (default), or png: an image", false}},
     picture},
    {"sql",
     "Ask in SQL",
     "A query in SQLite's language over the trace's tables (sql_tables, sql_examples); at most "
     "1,000 "
     "rows, as JSON. Queries only read.",
     {TRACE, {"query", "SELECT ...", true}},
     sql},
    {"sql_tables",
     "Tables for SQL",
     "The tables and functions for sql, with their columns.",
     {{"table", "one of them alone", false}},
     sql_tables},
    {"sql_examples",
     "Examples of SQL",
     "Questions that people ask of traces, each with its query.",
     {{NULL, NULL, false}},
     sql_examples},
};
const size_t lac_mcp_tool_count = LAC_COUNT_OF(lac_mcp_tools);

const struct lac_mcp_tool *lac_mcp_tool_named(const char *name)
{
    for (size_t i = 0; i < lac_mcp_tool_count; i++) {
        if (strcmp(lac_mcp_tools[i].name, name) == 0) {
            return &lac_mcp_tools[i];
        }
    }
    return NULL;
}

static void write_argument(struct lac_json *json, const char *name, const char *type,
                           const char *description)
{
    lac_json_open(json, name, '{');
    lac_json_text(json, "type", type);
    lac_json_text(json, "description", description);
    lac_json_close(json, '}');
}

void lac_mcp_tools_write(struct lac_json *json)
{
    lac_json_open(json, "tools", '[');
    for (size_t i = 0; i < lac_mcp_tool_count; i++) {
        const struct lac_mcp_tool *tool = &lac_mcp_tools[i];
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "name", tool->name);
        lac_json_text(json, "title", tool->title);
        lac_json_text(json, "description", tool->description);
        lac_json_open(json, "inputSchema", '{');
        lac_json_text(json, "type", "object");
        lac_json_open(json, "properties", '{');
        for (int a = 0; a < LAC_MCP_ARGUMENTS_MAX && tool->arguments[a].name != NULL; a++) {
            write_argument(json, tool->arguments[a].name, "string", tool->arguments[a].description);
        }
        write_argument(json, "offset", "integer",
                       "where to go on in a long answer, as its end says");
        lac_json_close(json, '}');
        lac_json_open(json, "required", '[');
        for (int a = 0; a < LAC_MCP_ARGUMENTS_MAX && tool->arguments[a].name != NULL; a++) {
            if (tool->arguments[a].is_required) {
                lac_json_text(json, NULL, tool->arguments[a].name);
            }
        }
        lac_json_close(json, ']');
        lac_json_bool(json, "additionalProperties", false);
        lac_json_close(json, '}');
        lac_json_open(json, "annotations", '{');
        lac_json_bool(json, "readOnlyHint", true);
        lac_json_bool(json, "destructiveHint", false);
        lac_json_bool(json, "idempotentHint", true);
        lac_json_bool(json, "openWorldHint", false);
        lac_json_close(json, '}');
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}
