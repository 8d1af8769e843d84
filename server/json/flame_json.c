#include "server/json/flame_json.h"

#include "analysis/flame/flame.h"
#include "analysis/flame/flame_sum.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/json/flame_pack.h"
#include "server/json/json_out.h"

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Below this a graph is made in some 20 ms, so it is not worth its bytes. */
enum { STORED_MIN_SLICES = 1 << 18 };
/** A graph of hostile names is not kept. */
#define STORED_BYTES_MAX ((size_t)16 << 20)

const char *const lac_flame_metrics[] = {"gpu",    "waiting", "cpu", "profile",
                                         "copies", "memory",  NULL};
const char *const lac_flame_bys[] = {"op", "range", "kernel", "python", "module", NULL};
const char *const lac_flame_orders[] = {"value", "time", NULL};

/* Preorder of a flame's nodes, which are stored with the children of each node in a row. */
struct preorder {
    uint32_t *node;  /* place -> node */
    uint32_t *place; /* node -> place */
    uint32_t *depth; /* node -> depth */
    uint32_t count;
};

static void preorder_done(struct preorder *order)
{
    free(order->node);
    free(order->place);
    free(order->depth);
}

/* The stack needs no more room than there are nodes: each enters it once. */
static bool preorder_init(const struct lac_flame *flame, struct preorder *order)
{
    const size_t bytes = ((size_t)flame->node_count + 1) * sizeof(uint32_t);
    uint32_t *stack = malloc(bytes);
    uint32_t stack_count = 0;

    order->node = malloc(bytes);
    order->place = malloc(bytes);
    order->depth = malloc(bytes);
    order->count = 0;
    if (stack == NULL || order->node == NULL || order->place == NULL || order->depth == NULL) {
        free(stack);
        return false;
    }
    if (flame->node_count > 0) {
        order->depth[0] = 0;
        stack[stack_count++] = 0;
    }
    while (stack_count > 0) {
        const uint32_t index = stack[--stack_count];
        const struct lac_flame_node *node = &flame->nodes[index];

        order->place[index] = order->count;
        order->node[order->count++] = index;
        for (uint32_t i = node->child_count; i > 0; i--) {
            order->depth[node->first_child + i - 1] = order->depth[index] + 1;
            stack[stack_count++] = node->first_child + i - 1;
        }
    }
    free(stack);
    return true;
}

static void write_names(struct lac_json *json, const struct lac_model *model,
                        const struct lac_flame *flame, const struct preorder *order)
{
    char more[64];

    lac_json_open(json, "name", '[');
    for (uint32_t i = 0; i < order->count; i++) {
        const struct lac_flame_node *node = &flame->nodes[order->node[i]];

        if (order->node[i] == 0) {
            lac_json_text(json, NULL, "all");
        } else if (node->name == LAC_NONE) {
            (void)snprintf(more, sizeof(more), "... %" PRIu64 " more", node->count);
            lac_json_text(json, NULL, more);
        } else {
            lac_json_text(json, NULL, lac_model_str(model, node->name));
        }
    }
    lac_json_close(json, ']');
}

enum column { COLUMN_PARENT, COLUMN_VALUE, COLUMN_SELF, COLUMN_COUNT, COLUMN_DEPTH };

static void write_column(struct lac_json *json, const char *key, enum column column,
                         const struct lac_flame *flame, const struct preorder *order)
{
    lac_json_open(json, key, '[');
    for (uint32_t i = 0; i < order->count; i++) {
        const uint32_t index = order->node[i];
        const struct lac_flame_node *node = &flame->nodes[index];
        int64_t value = 0;

        switch (column) {
        case COLUMN_PARENT:
            value = index == 0 ? -1 : (int64_t)order->place[node->parent];
            break;
        case COLUMN_VALUE:
            value = node->value_ns;
            break;
        case COLUMN_SELF:
            value = node->self_ns;
            break;
        case COLUMN_COUNT:
            value = (int64_t)node->count;
            break;
        case COLUMN_DEPTH:
            value = order->depth[index];
            break;
        default:
            break;
        }
        lac_json_int(json, NULL, value);
    }
    lac_json_close(json, ']');
}

static void write_kinds(struct lac_json *json, const struct lac_flame *flame,
                        const struct preorder *order)
{
    lac_json_open(json, "kind", '[');
    for (uint32_t i = 0; i < order->count; i++) {
        const uint8_t kind = flame->nodes[order->node[i]].kind;

        lac_json_text(json, NULL,
                      lac_slice_kind_name(kind < LAC_SLICE_KIND_COUNT_ ? (enum lac_slice_kind)kind
                                                                       : LAC_SLICE_OTHER));
    }
    lac_json_close(json, ']');
}

enum lac_status lac_flame_write(const struct lac_model *model,
                                const struct lac_flame_options *options,
                                const struct lac_flame *flame, struct lac_buffer *out)
{
    assert(model != NULL && options != NULL && flame != NULL && out != NULL);
    const bool is_all = options->t1_ns <= options->t0_ns;
    struct preorder order = {0};
    struct lac_json json;

    if (!preorder_init(flame, &order)) {
        preorder_done(&order);
        return LAC_ERR_NOMEM;
    }
    lac_json_init(&json, out);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "metric", lac_flame_metrics[options->metric]);
    lac_json_text(&json, "by", lac_flame_bys[options->by]);
    lac_json_text(&json, "order", lac_flame_orders[options->order]);
    lac_json_int(&json, "t0_ns", is_all ? 0 : options->t0_ns);
    lac_json_int(&json, "t1_ns", is_all ? model->info.duration_ns : options->t1_ns);
    lac_json_uint(&json, "steps", flame->step_count);
    const bool is_profile = options->metric == LAC_FLAME_PROFILE;
    const uint32_t unit = is_profile ? model->info.profile_unit : model->info.weight_unit;
    if (options->metric == LAC_FLAME_MEMORY) {
        lac_json_text(&json, "unit", "MB");
        lac_json_int(&json, "unit_ns", 1000000); /* the values are bytes */
    } else if (unit != 0) {
        lac_json_text(&json, "unit", lac_model_str(model, unit));
        lac_json_int(&json, "unit_ns",
                     is_profile ? model->info.profile_scale : model->info.weight_scale);
    }
    lac_json_int(&json, "total_ns", flame->node_count > 0 ? flame->nodes[0].value_ns : 0);
    lac_json_open(&json, "nodes", '{');
    write_names(&json, model, flame, &order);
    write_column(&json, "parent", COLUMN_PARENT, flame, &order);
    write_column(&json, "value_ns", COLUMN_VALUE, flame, &order);
    write_column(&json, "self_ns", COLUMN_SELF, flame, &order);
    write_column(&json, "count", COLUMN_COUNT, flame, &order);
    write_kinds(&json, flame, &order);
    write_column(&json, "depth", COLUMN_DEPTH, flame, &order);
    lac_json_close(&json, '}');
    lac_json_close(&json, '}');
    preorder_done(&order);
    return out->status;
}

void lac_flame_default_options(struct lac_flame_options *options)
{
    *options = (struct lac_flame_options){.metric = LAC_FLAME_GPU,
                                          .by = LAC_FLAME_BY_OP,
                                          .prune_fraction = 0.0005,
                                          .node_count_max = 20000};
}

void lac_flame_report_options(struct lac_flame_options *options)
{
    lac_flame_default_options(options);
    options->prune_fraction = 0.001;
    options->node_count_max = 4000;
}

static void write_text(const struct lac_model *model, const struct lac_flame_options *options,
                       const struct lac_flame *flame, struct lac_buffer *text)
{
    text->size_bytes_max = STORED_BYTES_MAX;
    if (lac_flame_write(model, options, flame, text) != LAC_OK) {
        lac_buffer_done(text);
    }
}

/** Finish a sum as a document. */
static void write_document(struct lac_flame_sum *sum, const struct lac_model *model,
                           struct lac_flame_options *options,
                           const struct lac_flame_document *document)
{
    struct lac_flame *flame = NULL;

    if (lac_flame_sum_finish(sum, model, options, &flame) == LAC_OK) {
        write_text(model, options, flame, document->text);
        if (document->text_python != NULL) {
            options->by = LAC_FLAME_BY_PYTHON;
            write_text(model, options, flame, document->text_python);
        }
    }
    lac_flame_destroy(flame);
}

/** Finish a sum as rows of a report. */
static void write_rows(struct lac_flame_sum *sum, const struct lac_model *model,
                       struct lac_flame_rows *rows)
{
    struct lac_flame_options options;
    struct lac_flame *flame = NULL;

    lac_flame_report_options(&options);
    if (lac_flame_sum_finish(sum, model, &options, &flame) != LAC_OK ||
        lac_flame_pack(flame, &rows->bytes, &rows->size_bytes) != LAC_OK) {
        rows->bytes = NULL;
    }
    lac_flame_destroy(flame);
}

bool lac_flame_has_python(const struct lac_model *model)
{
    assert(model != NULL);
    return lac_flame_is_sampled(model) ||
           (model->slices.count > 0 &&
            memchr(model->slices.kind, LAC_SLICE_PYTHON, model->slices.count) != NULL);
}

void lac_flame_document(const struct lac_model *model, const struct lac_flame_document *document)
{
    assert(model != NULL && document != NULL && document->text != NULL);
    struct lac_flame_options options;
    struct lac_flame_sum *sum = NULL;
    struct lac_flame_sum *copy = NULL;

    if (model->slices.count < STORED_MIN_SLICES) {
        return;
    }
    lac_flame_default_options(&options);
    options.metric = document->metric;
    options.by = document->by;
    if (lac_flame_sum_create(&sum) == LAC_OK && lac_flame_sum_add(sum, model, &options) == LAC_OK) {
        if (document->rows != NULL && lac_flame_sum_create(&copy) == LAC_OK &&
            lac_flame_sum_merge(copy, sum) == LAC_OK) {
            write_rows(copy, model, document->rows);
        }
        write_document(sum, model, &options, document);
    }
    lac_flame_sum_destroy(sum);
    lac_flame_sum_destroy(copy);
}
