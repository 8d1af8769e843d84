/* What people call things, for the page and for scripts: the words of the program's tables. */

#include "analysis/diagnose/documents.h"
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
