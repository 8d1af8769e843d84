#include "analysis/diagnose/ranks/ranks.h"
#include "server/base/buffer.h"
#include "server/json/analysis_json.h"
#include "server/json/analysis_parts.h"
#include "server/json/json_out.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static void write_rank(struct lac_json *json, const struct lac_run *run, uint32_t index,
                       const struct lac_run_member *member, bool is_brief)
{
    const struct lac_rank_facts *facts = &run->ranks[index];
    lac_json_open(json, NULL, '{');
    lac_json_int(json, "rank", facts->rank);
    lac_json_text(json, "host", facts->host);
    if (member->trace_id != NULL) {
        lac_json_text(json, "trace", member->trace_id);
    }
    if (run->collective_count > 0) {
        lac_json_ns(json, "collective_wait_ns", facts->wait_ns);
        lac_json_ns(json, "collective_wait_ns_per_step", lac_rank_wait_per_step_ns(facts));
        lac_json_ns(json, "collective_transfer_ns", facts->transfer_ns);
        lac_json_uint(json, "collectives_entered_last", facts->last_count);
    }
    if (!is_brief && member->document != NULL) {
        lac_json_raw(json, "analysis", member->document, strlen(member->document));
    }
    lac_json_close(json, '}');
}

enum lac_status lac_run_json(const struct lac_run *run, const struct lac_run_member *members,
                             const struct lac_run_json_options *options, char **ret_text,
                             size_t *ret_length)
{
    struct lac_buffer out = {.size_bytes_max = LAC_JSON_DOCUMENT_BYTES_MAX};
    struct lac_json json;
    lac_json_init_form(&json, &out, options->is_pretty ? LAC_JSON_INDENTED : LAC_JSON_DOCUMENT);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "schema", "lacuna.run/1");
    lac_json_open(&json, "ranks", '[');
    for (uint32_t i = 0; i < run->rank_count; i++) {
        write_rank(&json, run, i, &members[i], options->is_brief);
    }
    lac_json_close(&json, ']');
    if (options->changes != NULL) {
        lac_json_run_what_if(&json, options->changes, options->what_if);
    }
    lac_json_uint(&json, "collectives_matched", run->collective_count);
    if (run->late != LAC_NONE) {
        lac_json_int(&json, "late_rank", run->ranks[run->late].rank);
    } else {
        lac_json_null(&json, "late_rank");
    }
    lac_json_open(&json, "findings", '[');
    if (run->has_finding) {
        lac_json_finding(&json, &run->finding);
    }
    lac_json_close(&json, ']');
    lac_json_text(&json, "note", run->note);
    lac_json_close(&json, '}');
    return lac_json_give(&out, ret_text, ret_length);
}
