/* Flame graphs for other tools: folded stacks and speedscope. */

#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/terminal_text.h"
#include "server/base/buffer.h"
#include "server/export/export_forms.h"
#include "server/export/export_out.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/export/step_spans.h"
#include "server/json/json_out.h"

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_MAX = 4096 };

static const char *frame_name(const struct lac_report_source *source,
                              const struct lac_flame_node *node, char *room, size_t capacity_bytes)
{
    if (node->name == LAC_NONE) {
        (void)snprintf(room, capacity_bytes, "... %" PRIu64 " more", node->count);
        return room;
    }
    const char *name = lac_model_str(source->model, node->name);
    bool is_given = lac_redact_is_given(node->kind, name);
    return is_given ? lac_redact_given(source->redactor, name, "range")
                    : lac_redact(source->redactor, name);
}

static struct lac_flame *create(struct lac_export_out *out, const struct lac_report_source *source,
                                enum lac_flame_metric metric, bool is_measured)
{
    struct lac_flame_options options = {
        .metric = metric, .by = LAC_FLAME_BY_PYTHON, .node_count_max = 1000000};
    struct lac_step_spans steps = {0};
    struct lac_flame *flame = NULL;
    enum lac_status status = LAC_OK;
    if (is_measured && metric != LAC_FLAME_PROFILE) {
        status = lac_step_spans_measured(source->analysis, lac_flame_is_of_threads(metric), &steps);
        lac_step_spans_use(&steps, &options);
    }
    if (!status) {
        status = lac_flame_create(source->model, &options, &flame);
    }
    if (status) {
        out->buffer.status = LAC_ERR_NOMEM;
    }
    lac_step_spans_done(&steps);
    return flame;
}

/** Nodes from below the root down to `node`. @return how many; 0 for the root itself */
static uint32_t stack_of(const struct lac_flame *flame, uint32_t node, uint32_t *stack)
{
    uint32_t depth = 0;
    for (uint32_t at = node; at != 0 && depth < STACK_MAX; at = flame->nodes[at].parent) {
        stack[depth++] = at;
    }
    for (uint32_t i = 0; i < depth / 2; i++) {
        uint32_t swapped = stack[i];
        stack[i] = stack[depth - 1 - i];
        stack[depth - 1 - i] = swapped;
    }
    return depth;
}

/** A frame's name without what separates frames and lines, or steers the terminal it
 *  is shown on. */
static void put_folded(struct lac_buffer *out, const char *name)
{
    size_t length = strlen(name);
    size_t capacity = 5 * length + 1;
    char *text = malloc(capacity);
    if (text == NULL) {
        out->status = LAC_ERR_NOMEM;
        return;
    }
    char *plain = text + capacity - length; /* in its end, which is reached when it is read */
    for (size_t i = 0; i < length; i++) {
        bool is_control = (unsigned char)name[i] < 0x20;
        plain[i] = (char)(is_control ? ' ' : name[i] == ';' ? ':' : name[i]);
    }
    lac_buffer_add(out, text, lac_terminal_text(plain, length, text, capacity - length));
    free(text);
}

/** A length of time in ns, or in a profile what it counts, with all its digits. */
static void put_weight(struct lac_buffer *out, const struct lac_model *model, int64_t length_ns)
{
    const int64_t scale = model->info.weight_unit != 0 ? model->info.weight_scale : 1;
    lac_buffer_printf(out, " %" PRId64, scale > 1 ? length_ns / scale : length_ns);
    int64_t rest = scale > 1 ? length_ns % scale : 0;
    if (rest == 0) {
        return;
    }
    lac_buffer_puts(out, ".");
    for (int digits = 0; rest != 0 && digits < 9; digits++) {
        lac_buffer_printf(out, "%d", (int)(rest * 10 / scale)); /* below 2^53: times 10 fits */
        rest = rest * 10 % scale;
    }
}

void lac_export_folded_graph(struct lac_export_out *out, const struct lac_report_source *source,
                             const struct lac_flame *flame)
{
    assert(out != NULL && source != NULL && flame != NULL);
    uint32_t stack[STACK_MAX];
    char room[64];
    for (uint32_t n = 0; n < flame->node_count; n++) {
        if (flame->nodes[n].self_ns <= 0) {
            continue;
        }
        uint32_t depth = stack_of(flame, n, stack);
        if (depth == 0) { /* what was allocated in no frame */
            lac_buffer_puts(&out->buffer, "[no frame]");
        }
        for (uint32_t i = 0; i < depth; i++) {
            lac_buffer_puts(&out->buffer, i > 0 ? ";" : "");
            put_folded(&out->buffer,
                       frame_name(source, &flame->nodes[stack[i]], room, sizeof(room)));
        }
        put_weight(&out->buffer, source->model, flame->nodes[n].self_ns);
        lac_buffer_puts(&out->buffer, "\n");
        lac_export_flow(out);
    }
}

void lac_export_folded(struct lac_export_out *out, const struct lac_report_source *source,
                       const struct lac_export_flame *of)
{
    assert(out != NULL && source != NULL && of != NULL);
    struct lac_flame *flame = create(out, source, of->metric, of->is_measured);
    if (flame != NULL) {
        lac_export_folded_graph(out, source, flame);
    }
    lac_flame_destroy(flame);
}

/** What speedscope calls the unit of weights: it knows times and bytes. */
static const char *unit_of(const struct lac_model *model)
{
    if (model->info.weight_unit == 0) {
        return "nanoseconds";
    }
    return strcmp(lac_model_str(model, model->info.weight_unit), "bytes") == 0 ? "bytes" : "none";
}

/** One profile; frames are the nodes, numbered from `first_frame`. */
static void put_profile(struct lac_export_out *out, struct lac_json *json,
                        const struct lac_flame *flame, const struct lac_model *model,
                        const char *name, uint64_t first_frame)
{
    const bool is_counted = model->info.weight_unit != 0 && model->info.weight_scale > 0;
    const double scale = is_counted ? (double)model->info.weight_scale : 1;
    uint32_t stack[STACK_MAX];
    int64_t total_ns = 0;
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "type", "sampled");
    lac_json_text(json, "name", name);
    lac_json_text(json, "unit", unit_of(model));
    lac_json_open(json, "samples", '[');
    for (uint32_t n = 0; n < flame->node_count; n++) {
        if (flame->nodes[n].self_ns <= 0) {
            continue;
        }
        uint32_t depth = stack_of(flame, n, stack);
        if (depth == 0) { /* what was allocated in no frame */
            lac_buffer_puts(&out->buffer, "[no frame]");
        }
        lac_json_open(json, NULL, '[');
        for (uint32_t i = 0; i < depth; i++) {
            lac_json_uint(json, NULL, first_frame + stack[i]);
        }
        lac_json_close(json, ']');
        lac_export_flow(out);
    }
    lac_json_close(json, ']');
    lac_json_open(json, "weights", '[');
    for (uint32_t n = 1; n < flame->node_count; n++) {
        if (flame->nodes[n].self_ns > 0) {
            if (is_counted) {
                lac_json_real(json, NULL, (double)flame->nodes[n].self_ns / scale);
            } else {
                lac_json_int(json, NULL, flame->nodes[n].self_ns);
            }
            total_ns += flame->nodes[n].self_ns;
        }
    }
    lac_json_close(json, ']');
    lac_json_int(json, "startValue", 0);
    if (is_counted) {
        lac_json_real(json, "endValue", (double)total_ns / scale);
    } else {
        lac_json_int(json, "endValue", total_ns);
    }
    lac_json_close(json, '}');
}

void lac_export_speedscope(struct lac_export_out *out, const struct lac_report_source *source,
                           const struct lac_export_flame *of)
{
    assert(out != NULL && source != NULL && of != NULL);
    static const char *const names[] = {"GPU time", "GPU waiting", "time on host threads"};
    enum { METRICS = 3 };
    struct lac_flame *flames[METRICS] = {0};
    struct lac_json json;
    char room[64];
    lac_json_init(&json, &out->buffer);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    lac_json_line(&json);
    lac_json_text(&json, "exporter", "lacuna " LAC_VERSION);
    lac_json_line(&json);
    lac_json_text(&json, "name",
                  lac_redact_given(source->redactor,
                                   lac_model_str(source->model, source->model->info.name),
                                   "trace"));
    lac_json_line(&json);
    lac_json_open(&json, "shared", '{');
    lac_json_open(&json, "frames", '[');
    for (int m = 0; m < METRICS; m++) {
        flames[m] = create(out, source, (enum lac_flame_metric)m, of->is_measured);
        for (uint32_t n = 0; flames[m] != NULL && n < flames[m]->node_count; n++) {
            lac_json_line(&json);
            lac_json_open(&json, NULL, '{');
            lac_json_text(&json, "name",
                          n == 0 ? names[m]
                                 : frame_name(source, &flames[m]->nodes[n], room, sizeof(room)));
            lac_json_close(&json, '}');
            lac_export_flow(out);
        }
    }
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
    lac_json_line(&json);
    lac_json_open(&json, "profiles", '[');
    uint64_t first_frame = 0;
    bool is_first = true;
    for (int m = 0; m < METRICS; m++) {
        if (flames[m] != NULL && flames[m]->node_count > 1) {
            if (!is_first) {
                lac_json_line(&json);
            }
            put_profile(out, &json, flames[m], source->model, names[m], first_frame);
            is_first = false;
        }
        first_frame += flames[m] ? flames[m]->node_count : 0;
        lac_flame_destroy(flames[m]);
    }
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
    lac_buffer_puts(&out->buffer, "\n");
}
