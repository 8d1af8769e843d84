#include "server/mcp/mcp.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/encode.h"
#include "collector/base/io_full.h"
#include "server/base/buffer.h"
#include "server/json/json_members.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/mcp/mcp_tools.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of JSON-RPC, and of this protocol. */
enum {
    PARSE_ERROR = -32700,
    INVALID_REQUEST = -32600,
    METHOD_NOT_FOUND = -32601,
    INVALID_PARAMS = -32602,
    UNSUPPORTED_VERSION = -32022,
};

enum {
    LINE_BYTES_MAX = 1 << 20,
    PAGE_BYTES = 24 * 1024, /* of one answer: what an agent can well read at once */
    WORD_BYTES = 128,
    LIST_TTL_MS = 3600000, /* the tools only change with the program */
};

/** Newest first; of clients that say it in each request, then of those that begin with `initialize`. */
#define STATELESS_VERSION "2026-07-28"
#define META_KEY          "io.modelcontextprotocol/"

static const char *const handshake_versions[] = {"2025-11-25", "2025-06-18", "2025-03-26",
                                                 "2024-11-05"};

static const struct lac_json_limits limits = {LINE_BYTES_MAX, 32};

static const char instructions[] =
    "Diagnoses traces of GPU training. Loop: list_traces, analyze, explain the first finding, "
    "change "
    "one thing, record again (lacuna run -- CMD), compare before and after. Predicted gains are "
    "percent of a step's time; compare says which differences are noise.";

/** The conversation. */
struct server {
    const struct lac_mcp_options *options;
    int input_fd, output_fd;
    char *input; /**< LINE_BYTES_MAX + 1 */
    size_t input_bytes;
    bool is_skipping; /**< the rest of a line that is too long */
    bool is_over;
    bool has_failed;
    /* the last answer, for its further pages */
    char *last_call;
    struct lac_buffer last_answer;
};

/** A request, in pieces of its line. */
struct request {
    struct lac_json_member id, params;
    bool has_id, has_params;
    bool is_stateless; /**< says its version in `_meta` */
    char method[WORD_BYTES];
};

static struct lac_json_members members_of(const struct lac_json_member *object)
{
    return (struct lac_json_members){object->value, object->value + object->value_length};
}

/** The member of that name that counts, the last. */
static bool find(struct lac_json_members members, const char *key, struct lac_json_member *ret)
{
    struct lac_json_member member;
    bool is_found = false;
    while (lac_json_member_next(&members, &member)) {
        if (lac_json_member_is(&member, key)) {
            *ret = member;
            is_found = true;
        }
    }
    return is_found;
}

/** The text of a member of an object that was checked. @return false: none, or too long */
static bool text_of(const struct lac_json_member *object, const char *key, char *out,
                    size_t capacity)
{
    struct json_object *read = NULL;
    bool is_read =
        lac_json_read(object->value, object->value_length, &limits, &read, NULL) == LAC_OK &&
        lac_json_read_text(read, key, out, capacity, NULL) == LAC_OK;
    lac_json_read_done(read);
    return is_read;
}

/* ---- replies */

static void begin_reply(struct lac_json *json, struct lac_buffer *out,
                        const struct request *request)
{
    lac_json_init_form(json, out, LAC_JSON_DOCUMENT);
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "jsonrpc", "2.0");
    if (request->has_id) {
        lac_json_raw(json, "id", request->id.value, request->id.value_length);
    } else {
        lac_json_null(json, "id");
    }
}

static void send_reply(struct server *server, struct lac_buffer *out)
{
    lac_buffer_puts(out, "\n");
    if (out->status || !lac_write_full(server->output_fd, out->bytes, out->size_bytes)) {
        server->is_over = true;
        server->has_failed = true;
    }
    lac_buffer_done(out);
}

static void begin_error(struct lac_json *json, struct lac_buffer *out,
                        const struct request *request, int code, const char *message)
{
    begin_reply(json, out, request);
    lac_json_open(json, "error", '{');
    lac_json_int(json, "code", code);
    lac_json_text(json, "message", message);
}

static void reply_error(struct server *server, const struct request *request, int code,
                        const char *message)
{
    struct lac_buffer out = {.bytes = NULL};
    struct lac_json json;
    begin_error(&json, &out, request, code, message);
    lac_json_close(&json, '}');
    lac_json_close(&json, '}');
    send_reply(server, &out);
}

static void write_server_info(struct lac_json *json, const char *key)
{
    lac_json_open(json, key, '{');
    lac_json_text(json, "name", "lacuna");
    lac_json_text(json, "title", "Lacuna");
    lac_json_text(json, "version", LAC_VERSION);
    lac_json_close(json, '}');
}

static void begin_result(struct lac_json *json, struct lac_buffer *out,
                         const struct request *request)
{
    begin_reply(json, out, request);
    lac_json_open(json, "result", '{');
    if (request->is_stateless) {
        lac_json_text(json, "resultType", "complete");
        lac_json_open(json, "_meta", '{');
        write_server_info(json, META_KEY "serverInfo");
        lac_json_close(json, '}');
    }
}

static void end_result(struct server *server, struct lac_json *json, struct lac_buffer *out)
{
    lac_json_close(json, '}');
    lac_json_close(json, '}');
    send_reply(server, out);
}

static void write_versions(struct lac_json *json, const char *key)
{
    lac_json_open(json, key, '[');
    lac_json_text(json, NULL, STATELESS_VERSION);
    for (size_t i = 0; i < LAC_COUNT_OF(handshake_versions); i++) {
        lac_json_text(json, NULL, handshake_versions[i]);
    }
    lac_json_close(json, ']');
}

static void write_capabilities(struct lac_json *json)
{
    lac_json_open(json, "capabilities", '{');
    lac_json_open(json, "tools", '{');
    lac_json_close(json, '}');
    lac_json_close(json, '}');
}

static void write_cache_hints(struct lac_json *json)
{
    lac_json_int(json, "ttlMs", LIST_TTL_MS);
    lac_json_text(json, "cacheScope", "public");
}

/* ---- methods */

static void initialize(struct server *server, const struct request *request)
{
    char wanted[WORD_BYTES] = "";
    const char *version = handshake_versions[0];
    if (request->has_params) {
        (void)text_of(&request->params, "protocolVersion", wanted, sizeof(wanted));
    }
    for (size_t i = 0; i < LAC_COUNT_OF(handshake_versions); i++) {
        version = strcmp(wanted, handshake_versions[i]) == 0 ? handshake_versions[i] : version;
    }
    struct lac_buffer out = {.bytes = NULL};
    struct lac_json json;
    begin_result(&json, &out, request);
    lac_json_text(&json, "protocolVersion", version);
    write_capabilities(&json);
    write_server_info(&json, "serverInfo");
    lac_json_text(&json, "instructions", instructions);
    end_result(server, &json, &out);
}

static void discover(struct server *server, const struct request *request)
{
    struct lac_buffer out = {.bytes = NULL};
    struct lac_json json;
    begin_result(&json, &out, request);
    write_versions(&json, "supportedVersions");
    write_capabilities(&json);
    write_server_info(&json, "serverInfo");
    lac_json_text(&json, "instructions", instructions);
    write_cache_hints(&json);
    end_result(server, &json, &out);
}

static void ping(struct server *server, const struct request *request)
{
    struct lac_buffer out = {.bytes = NULL};
    struct lac_json json;
    begin_result(&json, &out, request);
    end_result(server, &json, &out);
}

static void list_tools(struct server *server, const struct request *request)
{
    struct lac_buffer out = {.bytes = NULL};
    struct lac_json json;
    begin_result(&json, &out, request);
    lac_mcp_tools_write(&json);
    if (request->is_stateless) {
        write_cache_hints(&json);
    }
    end_result(server, &json, &out);
}

/** Where a page that begins at `offset` ends: at a line's end if one is near, never in a character. */
static size_t end_of_page(const struct lac_buffer *text, size_t offset)
{
    if (text->size_bytes - offset <= PAGE_BYTES) {
        return text->size_bytes;
    }
    size_t end = offset + PAGE_BYTES;
    for (size_t at = end; at > end - PAGE_BYTES / 8; at--) {
        if (text->bytes[at - 1] == '\n') {
            return at;
        }
    }
    while (((unsigned char)text->bytes[end] & 0xc0) == 0x80) {
        end--;
    }
    return end;
}

static void write_text(struct lac_json *json, const char *text, size_t size_bytes)
{
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "type", "text");
    lac_json_text_sized(json, "text", text, size_bytes);
    lac_json_close(json, '}');
}

static bool is_png(const struct lac_buffer *answer)
{
    static const char signature[] = "\x89PNG\r\n\x1a\n";
    return answer->size_bytes > sizeof(signature) &&
           memcmp(answer->bytes, signature, sizeof(signature) - 1) == 0;
}

/** An image to look at, whole: half of one is none. */
static void write_image(struct lac_json *json, const struct lac_buffer *answer)
{
    char *text = malloc(answer->size_bytes / 3 * 4 + 8);
    if (text == NULL) {
        json->out->status = LAC_ERR_NOMEM;
        return;
    }
    lac_base64_encode(answer->bytes, answer->size_bytes, text);
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "type", "image");
    lac_json_text(json, "data", text);
    lac_json_text(json, "mimeType", "image/png");
    lac_json_close(json, '}');
    free(text);
}

static void reply_answer(struct server *server, const struct request *request,
                         const struct lac_buffer *answer, size_t offset)
{
    struct lac_buffer out = {.bytes = NULL};
    struct lac_json json;
    const size_t begin = offset < answer->size_bytes ? offset : answer->size_bytes;
    const size_t end = end_of_page(answer, begin);
    begin_result(&json, &out, request);
    lac_json_open(&json, "content", '[');
    if (is_png(answer)) {
        write_image(&json, answer);
        lac_json_close(&json, ']');
        end_result(server, &json, &out);
        return;
    }
    write_text(&json, answer->bytes != NULL ? answer->bytes + begin : "", end - begin);
    if (begin > 0 || end < answer->size_bytes) {
        struct lac_buffer place = {.bytes = NULL};
        lac_buffer_printf(&place, "[bytes %zu to %zu of %zu%s", begin, end, answer->size_bytes,
                          end < answer->size_bytes ? "; for more call again with offset " : "]");
        if (end < answer->size_bytes) {
            lac_buffer_printf(&place, "%zu]", end);
        }
        write_text(&json, place.bytes != NULL ? place.bytes : "", place.size_bytes);
        lac_buffer_done(&place);
    }
    lac_json_close(&json, ']');
    end_result(server, &json, &out);
}

static void reply_failure(struct server *server, const struct request *request, const char *text)
{
    struct lac_buffer out = {.bytes = NULL};
    struct lac_json json;
    begin_result(&json, &out, request);
    lac_json_open(&json, "content", '[');
    write_text(&json, text, strlen(text));
    lac_json_close(&json, ']');
    lac_json_bool(&json, "isError", true);
    end_result(server, &json, &out);
}

/** A whole number. */
static bool read_offset(const struct lac_json_member *member, size_t *ret_offset)
{
    char digits[16];
    char *end = NULL;
    if (member->value_length >= sizeof(digits) || member->value_length == 0) {
        return false;
    }
    memcpy(digits, member->value, member->value_length);
    digits[member->value_length] = '\0';
    const bool is_digit = digits[0] >= '0' && digits[0] <= '9';
    *ret_offset = is_digit ? (size_t)strtoull(digits, &end, 10) : 0;
    return is_digit && *end == '\0';
}

/** Take the arguments. @return NULL, or what is wrong with them */
static const char *read_arguments(const struct lac_json_member *arguments,
                                  struct lac_mcp_call *call, size_t *ret_offset)
{
    struct lac_json_members members = members_of(arguments);
    struct lac_json_member member;
    while (lac_json_member_next(&members, &member)) {
        int i = 0;
        while (i < LAC_MCP_ARGUMENTS_MAX && call->tool->arguments[i].name != NULL &&
               !lac_json_member_is(&member, call->tool->arguments[i].name)) {
            i++;
        }
        if (lac_json_member_is(&member, "offset")) {
            if (!read_offset(&member, ret_offset)) {
                return "offset is not a whole number of bytes";
            }
        } else if (i == LAC_MCP_ARGUMENTS_MAX || call->tool->arguments[i].name == NULL) {
            return "an argument is not known: tools/list says which there are";
        } else if (call->texts[i] == NULL) {
            char *text = malloc(LAC_MCP_TEXT_BYTES);
            if (text == NULL ||
                !text_of(arguments, call->tool->arguments[i].name, text, LAC_MCP_TEXT_BYTES)) {
                free(text);
                return "an argument is not text of at most 16 KiB";
            }
            call->texts[i] = text;
        }
    }
    for (int i = 0; i < LAC_MCP_ARGUMENTS_MAX && call->tool->arguments[i].name != NULL; i++) {
        if (call->tool->arguments[i].is_required && call->texts[i] == NULL) {
            return "a required argument is missing: tools/list says which";
        }
    }
    return NULL;
}

/** What makes two calls the same but for the page. @return NULL without memory */
static char *key_of(const struct lac_mcp_call *call)
{
    struct lac_buffer key = {.bytes = NULL};
    lac_buffer_puts(&key, call->tool->name);
    for (int i = 0; i < LAC_MCP_ARGUMENTS_MAX; i++) {
        lac_buffer_puts(&key, call->texts[i] != NULL ? "\n=" : "\n");
        lac_buffer_puts(&key, call->texts[i] != NULL ? call->texts[i] : "");
    }
    if (key.status) {
        lac_buffer_done(&key);
        return NULL;
    }
    return key.bytes;
}

/** Answer a call. Further pages come from the last answer, when it was to the same call. */
static void answer_call(struct server *server, const struct request *request,
                        struct lac_mcp_call *call, size_t offset)
{
    char *key = key_of(call);
    const bool is_kept = offset > 0 && key != NULL && server->last_call != NULL &&
                         strcmp(key, server->last_call) == 0;
    if (is_kept) {
        free(key);
        reply_answer(server, request, &server->last_answer, offset);
        return;
    }
    const enum lac_status status = call->tool->run(call);
    if (call->is_client_gone) {
        server->is_over = true;
        free(key);
        return;
    }
    if (status) {
        reply_failure(server, request, call->failure);
        free(key);
        return;
    }
    free(server->last_call);
    server->last_call = key;
    lac_buffer_done(&server->last_answer);
    server->last_answer = call->answer;
    call->answer = (struct lac_buffer){.bytes = NULL};
    reply_answer(server, request, &server->last_answer, offset);
}

static void call_tool(struct server *server, const struct request *request)
{
    char name[WORD_BYTES] = "";
    struct lac_json_member arguments;
    struct lac_mcp_call call = {.options = server->options, .output_fd = server->output_fd};
    if (!request->has_params || !text_of(&request->params, "name", name, sizeof(name))) {
        reply_error(server, request, INVALID_PARAMS, "params.name is missing");
        return;
    }
    call.tool = lac_mcp_tool_named(name);
    if (call.tool == NULL) {
        reply_error(server, request, INVALID_PARAMS, "there is no such tool");
        return;
    }
    static const char nothing[] = "{}";
    if (!find(members_of(&request->params), "arguments", &arguments)) {
        arguments = (struct lac_json_member){"", 0, nothing, 2};
    }
    size_t offset = 0;
    const char *wrong = arguments.value[0] != '{' ? "params.arguments is not an object"
                                                  : read_arguments(&arguments, &call, &offset);
    if (wrong != NULL) {
        reply_error(server, request, INVALID_PARAMS, wrong);
    } else {
        answer_call(server, request, &call, offset);
    }
    for (int i = 0; i < LAC_MCP_ARGUMENTS_MAX; i++) {
        free(call.texts[i]);
    }
    lac_buffer_done(&call.answer);
}

/* ---- requests */

static const struct {
    const char *name;
    void (*answer)(struct server *server, const struct request *request);
} methods[] = {
    {"initialize", initialize}, {"server/discover", discover}, {"ping", ping},
    {"tools/list", list_tools}, {"tools/call", call_tool},
};

/** A version of its own in `_meta`. @return false: it is one that nobody here speaks, and was told */
static bool check_version(struct server *server, struct request *request)
{
    struct lac_json_member meta;
    char version[WORD_BYTES];
    if (!request->has_params || !find(members_of(&request->params), "_meta", &meta) ||
        meta.value[0] != '{' ||
        !text_of(&meta, META_KEY "protocolVersion", version, sizeof(version))) {
        return true;
    }
    request->is_stateless = strcmp(version, STATELESS_VERSION) == 0;
    if (request->is_stateless) {
        return true;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(handshake_versions); i++) {
        if (strcmp(version, handshake_versions[i]) == 0) {
            return true;
        }
    }
    struct lac_buffer out = {.bytes = NULL};
    struct lac_json json;
    begin_error(&json, &out, request, UNSUPPORTED_VERSION, "unsupported protocol version");
    lac_json_open(&json, "data", '{');
    write_versions(&json, "supported");
    lac_json_text(&json, "requested", version);
    lac_json_close(&json, '}');
    lac_json_close(&json, '}');
    lac_json_close(&json, '}');
    send_reply(server, &out);
    return false;
}

static void answer_request(struct server *server, struct request *request)
{
    if (!request->has_id) {
        return; /* a notification: nothing here has to be told of one */
    }
    if (!check_version(server, request)) {
        return;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(methods); i++) {
        if (strcmp(request->method, methods[i].name) == 0) {
            methods[i].answer(server, request);
            return;
        }
    }
    reply_error(server, request, METHOD_NOT_FOUND, "there is no such method");
}

static void answer_line(struct server *server, const char *line, size_t length)
{
    struct request request = {.has_id = false};
    struct json_object *read = NULL;
    struct lac_error error = {.status = LAC_OK};
    if (length > 0 && line[length - 1] == '\r') {
        length--;
    }
    if (length == 0) {
        return;
    }
    if (lac_json_read(line, length, &limits, &read, &error)) {
        reply_error(server, &request, PARSE_ERROR,
                    error.message[0] != '\0' ? error.message : "not a JSON object");
        return;
    }
    const struct lac_json_members members = {line, line + length};
    struct lac_json_member version;
    char word[WORD_BYTES];
    request.has_id = find(members, "id", &request.id);
    request.has_params = find(members, "params", &request.params) && request.params.value[0] == '{';
    const bool is_answer = !find(members, "method", &version);
    const bool is_request =
        lac_json_read_text(read, "jsonrpc", word, sizeof(word), NULL) == LAC_OK &&
        strcmp(word, "2.0") == 0 && !is_answer &&
        lac_json_read_text(read, "method", request.method, sizeof(request.method), NULL) == LAC_OK;
    const bool is_id_fine =
        !request.has_id || (request.id.value[0] != '{' && request.id.value[0] != '[');
    lac_json_read_done(read);
    if (is_answer && request.has_id) {
        return; /* to a question that was never asked */
    }
    if (!is_request || !is_id_fine) {
        request.has_id = request.has_id && is_id_fine;
        reply_error(server, &request, INVALID_REQUEST,
                    "not a request: jsonrpc \"2.0\", method and id are expected");
        return;
    }
    answer_request(server, &request);
}

/** Answer the whole lines there are, and keep the rest. */
static void answer_lines(struct server *server)
{
    size_t begin = 0;
    char *end = NULL;
    while (!server->is_over &&
           (end = memchr(server->input + begin, '\n', server->input_bytes - begin)) != NULL) {
        const size_t length = (size_t)(end - (server->input + begin));
        if (!server->is_skipping) {
            answer_line(server, server->input + begin, length);
        }
        server->is_skipping = false;
        begin += length + 1;
    }
    memmove(server->input, server->input + begin, server->input_bytes - begin);
    server->input_bytes -= begin;
    if (server->input_bytes == LINE_BYTES_MAX) {
        if (!server->is_skipping) {
            const struct request unknown = {.has_id = false};
            reply_error(server, &unknown, PARSE_ERROR, "a message is longer than 1 MiB");
        }
        server->is_skipping = true;
        server->input_bytes = 0;
    }
}

int lac_mcp_serve(const struct lac_mcp_options *options, int input_fd, int output_fd)
{
    struct server server = {.options = options,
                            .input_fd = input_fd,
                            .output_fd = output_fd,
                            .input = malloc(LINE_BYTES_MAX)};
    if (server.input == NULL) {
        return EXIT_FAILURE;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    while (!server.is_over) {
        const ssize_t size =
            read(input_fd, server.input + server.input_bytes, LINE_BYTES_MAX - server.input_bytes);
        if (size > 0) {
            server.input_bytes += (size_t)size;
            answer_lines(&server);
        } else if (size == 0 || errno != EINTR) {
            server.is_over = true;
        }
    }
    free(server.input);
    free(server.last_call);
    lac_buffer_done(&server.last_answer);
    return server.has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
