/* What people call things, for the page and for scripts: the words of the program's tables, and the
 * documents that say what findings mean. */

#include "analysis/diagnose/documents.h"
#include "analysis/diagnose/result/cause.h"
#include "analysis/diagnose/result/finding_types.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "server/api/app.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/http/request.h"
#include "server/json/json_out.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

static void write_word(struct lac_json *json, const struct lac_word *word)
{
    const char letter[] = {word->letter, '\0'};

    lac_json_open(json, NULL, '{');
    lac_json_text(json, "id", word->id);
    lac_json_text(json, "letter", letter);
    lac_json_text(json, "label", word->label);
    lac_json_text(json, "short", word->brief);
    lac_json_text(json, "waits", word->waits);
    lac_json_text(json, "definition", word->definition);
    lac_json_close(json, '}');
}

static void write_vocabulary(struct lac_json *json)
{
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "schema", "lacuna.vocabulary/1");
    for (int group = 0; group < LAC_WORDS_COUNT_; group++) {
        lac_json_open(json, lac_words_name((enum lac_words)group), '[');
        for (uint32_t i = 0; i < lac_words_count((enum lac_words)group); i++) {
            write_word(json, lac_word((enum lac_words)group, i));
        }
        lac_json_close(json, ']');
    }
    lac_json_open(json, "findings", '[');
    for (int kind = 0; kind < LAC_FINDING_COUNT_; kind++) {
        const char *id = lac_finding_type((enum lac_finding_kind)kind)->id;

        write_word(json, &(struct lac_word){id, lac_finding_documents[kind].title, "", "", "", 0});
    }
    lac_json_close(json, ']');
    lac_json_open(json, "redactions", '[');
    for (int kind = 0; kind < LAC_REDACT_KIND_COUNT_; kind++) {
        write_word(json, &lac_redact_words[kind]);
    }
    lac_json_close(json, ']');
    lac_json_close(json, '}');
}

/* 64-bit FNV-1a: another program of the same version may have other words. */
static uint64_t hash_of(const struct lac_buffer *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < text->size_bytes; i++) {
        hash = (hash ^ (unsigned char)text->bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

void lac_api_vocabulary(void *app, const struct lac_request *request, struct lac_response *response)
{
    struct lac_json json;

    (void)app;
    lac_json_init(&json, &response->body);
    write_vocabulary(&json);
    lac_response_etag(response, "vocabulary %" PRIx64, hash_of(&response->body));
    response->cache = "no-cache";
    if (lac_response_is_unchanged(request, response)) {
        lac_buffer_done(&response->body);
    }
}

/* -- documents of findings --------------------------------------------------------------------- */

/** The members that the list and a single document share. */
static void write_row(struct lac_json *json, enum lac_finding_kind kind)
{
    const struct lac_finding_type *type = lac_finding_type(kind);
    const char *cause = type->cause < LAC_CAUSE_COUNT_ ? lac_cause_name(type->cause) : "gpu";

    lac_json_text(json, "id", type->id);
    lac_json_text(json, "title", lac_finding_documents[kind].title);
    lac_json_text(json, "cause", cause);
    lac_json_text(json, "effort", lac_effort_name(type->effort));
}

/** The documents change with the program alone. */
static bool is_unchanged(const struct lac_request *request, struct lac_response *response,
                         const char *what)
{
    lac_response_etag(response, "finding %s %s", LAC_VERSION, what);
    response->cache = "no-cache";
    return lac_response_is_unchanged(request, response);
}

void lac_api_findings(void *app, const struct lac_request *request, struct lac_response *response)
{
    struct lac_json json;

    (void)app;
    if (is_unchanged(request, response, "list")) {
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "findings", '[');
    for (int kind = 0; kind < LAC_FINDING_COUNT_; kind++) {
        lac_json_open(&json, NULL, '{');
        write_row(&json, (enum lac_finding_kind)kind);
        lac_json_close(&json, '}');
    }
    lac_json_close(&json, ']');
    lac_json_null(&json, "next");
    lac_json_close(&json, '}');
}

void lac_api_finding(void *app, const struct lac_request *request, struct lac_response *response)
{
    enum lac_finding_kind kind = lac_finding_kind_of(request->param[0]);
    struct lac_json json;

    (void)app;
    if (kind == LAC_FINDING_COUNT_) {
        lac_response_error(response, 404, "not_found", "no such finding");
        return;
    }
    if (is_unchanged(request, response, lac_finding_type(kind)->id)) {
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    write_row(&json, kind);
    lac_json_text(&json, "markdown", lac_finding_documents[kind].markdown);
    lac_json_close(&json, '}');
}
