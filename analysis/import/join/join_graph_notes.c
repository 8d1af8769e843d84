/* Annotations of CUDA graphs, given to the kernels of a trace by the ids of their nodes. */

#include "analysis/import/chrome/chrome_args.h"
#include "analysis/import/join/join_private.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/order.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TEMPLATE_BYTES_MAX = 65536 };

/** An annotated node. */
struct node {
    uint64_t id;
    uint32_t module; /**< string id of the trace, 0 none */
    uint32_t args;   /**< string id of the annotations: members, the id first */
    bool is_found;
    bool has_members; /**< beside the id */
};

struct nodes {
    struct lac_model *model; /**< of the trace */
    const struct lac_model *notes;
    struct node *at;
    uint64_t count;
    uint32_t *of_config; /**< by launch configuration: index of its node, or LAC_NONE */
    uint64_t graph_configs, found_configs;
    bool has_members; /**< any that was found */
};

static int by_id(const void *a, const void *b)
{
    const struct node *const x = a;
    const struct node *const y = b;
    return LAC_ORDER(x->id, y->id);
}

static struct node *find(const struct nodes *nodes, uint64_t id)
{
    const struct node key = {.id = id};
    return nodes->count > 0 ? bsearch(&key, nodes->at, nodes->count, sizeof(key), by_id) : NULL;
}

static bool has_two_members(const char *template_text, size_t length)
{
    struct lac_member_cursor cursor = lac_member_begin(template_text, length);
    struct lac_member member = {0};
    uint32_t count = 0;
    while (count < 2 && lac_member_next(&cursor, &member)) {
        count++;
    }
    return count == 2;
}

/** Ranges of the annotations, by the id of their node. */
static enum lac_status collect(struct nodes *nodes)
{
    const struct lac_model *const notes = nodes->notes;
    enum lac_status status = LAC_OK;
    nodes->at = calloc((size_t)notes->slices.count + 1, sizeof(*nodes->at));
    if (nodes->at == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < notes->slices.count && status == LAC_OK; i++) {
        const uint32_t name = notes->slices.name[i];
        const uint32_t args = notes->slices.args[i];
        struct node *const node = &nodes->at[nodes->count++];
        node->id = (uint64_t)notes->arg_numbers[notes->slices.arg_num[i]];
        node->args = args;
        node->has_members =
            has_two_members(lac_model_str(notes, args), lac_strings_length(&notes->strings, args));
        status = lac_strings_intern(&nodes->model->strings, lac_model_str(notes, name),
                                    lac_strings_length(&notes->strings, name), &node->module);
    }
    qsort(nodes->at, nodes->count, sizeof(*nodes->at), by_id);
    return status;
}

static enum lac_status name_modules(struct nodes *nodes)
{
    struct lac_model *const model = nodes->model;
    nodes->of_config = malloc(((size_t)model->kernel_config_count + 1) * sizeof(uint32_t));
    if (nodes->of_config == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < model->kernel_config_count; i++) {
        struct lac_kernel_config *const config = &model->kernel_configs[i];
        struct node *const node = config->graph_node != 0 ? find(nodes, config->graph_node) : NULL;
        nodes->of_config[i] = LAC_NONE;
        nodes->graph_configs += config->graph_node != 0;
        if (node != NULL) {
            nodes->of_config[i] = (uint32_t)(node - nodes->at);
            nodes->found_configs++;
            nodes->has_members = nodes->has_members || node->has_members;
            node->is_found = true;
            config->module = node->module != 0 ? node->module : config->module;
        }
    }
    return LAC_OK;
}

/* ---- members ---- */

static bool has_key(const char *template_text, size_t length, const struct lac_member *wanted)
{
    struct lac_member_cursor cursor = lac_member_begin(template_text, length);
    struct lac_member member = {0};
    while (lac_member_next(&cursor, &member)) {
        if (member.key_size == wanted->key_size &&
            memcmp(member.key, wanted->key, member.key_size) == 0) {
            return true;
        }
    }
    return false;
}

/** The members of an annotation that the kernel's template lacks, behind it. They are text: no
 *  number of the kernel moves. 0: it would be too long. */
static enum lac_status combine(const struct nodes *nodes, uint32_t ours, uint32_t theirs,
                               uint32_t *ret_both)
{
    struct lac_strings *const strings = &nodes->model->strings;
    const char *const a = lac_model_str(nodes->model, ours);
    const char *const b = lac_model_str(nodes->notes, theirs);
    const size_t a_size = lac_strings_length(strings, ours);
    const size_t b_size = lac_strings_length(&nodes->notes->strings, theirs);
    const bool is_empty = a_size < 3;
    size_t used = is_empty ? 1 : a_size - 1; /* without the bracket at its end */
    *ret_both = 0;
    if (a_size + b_size > TEMPLATE_BYTES_MAX) {
        return LAC_OK;
    }
    char *const text = malloc(a_size + b_size + 8);
    if (text == NULL) {
        return LAC_ERR_NOMEM;
    }
    memcpy(text, is_empty ? "{" : a, used);
    struct lac_member_cursor cursor = lac_member_begin(b, b_size);
    struct lac_member member = {0};
    while (lac_member_next(&cursor, &member)) {
        const char *const from = (const char *)member.key - 1; /* its quote */
        /* "stream" of an annotation is the row that PyTorch's script would put it on */
        if (member.varies || lac_member_is(&member, "stream") || has_key(a, a_size, &member)) {
            continue;
        }
        const bool is_text = member.kind == LAC_MEMBER_STRING;
        const size_t size = (size_t)((const char *)member.text + member.text_size - from) + is_text;
        text[used] = ',';
        used += used > 1;
        memcpy(text + used, from, size);
        used += size;
    }
    text[used++] = '}';
    const enum lac_status status = lac_strings_intern(strings, text, used, ret_both);
    free(text);
    return status;
}

/** What two templates make together: most kernels of a node are alike. */
struct pair {
    uint32_t ours, theirs, both;
};

static enum lac_status give(const struct nodes *nodes, struct pair *cache, uint32_t cache_mask,
                            uint64_t slice)
{
    struct lac_model *const model = nodes->model;
    const uint32_t ours = model->slices.args[slice];
    const uint32_t theirs = nodes->at[nodes->of_config[model->slices.detail[slice]]].args;
    struct pair *const pair = &cache[(ours * 2654435761u ^ theirs * 40503u) & cache_mask];
    enum lac_status status = LAC_OK;
    if (pair->both == 0 || pair->ours != ours || pair->theirs != theirs) {
        *pair = (struct pair){.ours = ours, .theirs = theirs};
        status = combine(nodes, ours, theirs, &pair->both);
    }
    if (status == LAC_OK && pair->both != 0) {
        model->slices.args[slice] = pair->both;
    }
    return status;
}

/** Kernels of streams with a node that was found: each one's, or only how many there are. */
static enum lac_status each_kernel(const struct nodes *nodes, struct pair *cache,
                                   uint32_t cache_mask, uint64_t *ret_count)
{
    const struct lac_model *const model = nodes->model;
    enum lac_status status = LAC_OK;
    *ret_count = 0;
    for (uint64_t i = 0; i < model->slices.count && status == LAC_OK; i++) {
        const uint32_t detail = model->slices.detail[i];
        if (model->slices.kind[i] != LAC_SLICE_KERNEL || detail == LAC_NONE ||
            nodes->of_config[detail] == LAC_NONE) {
            continue;
        }
        ++*ret_count;
        if (cache != NULL && nodes->at[nodes->of_config[detail]].has_members) {
            status = give(nodes, cache, cache_mask, i);
        }
    }
    return status;
}

/* ---- the whole ---- */

static void tell(const struct nodes *nodes, uint64_t kernels)
{
    uint64_t missing = 0;
    for (uint64_t i = 0; i < nodes->count; i++) {
        missing += !nodes->at[i].is_found;
    }
    lac_model_report(nodes->model, LAC_REPORT_INFO, "joined_annotations", kernels, 0,
                     "Kernels of CUDA graphs carry the module that the annotations name.");
    if (missing > 0) {
        lac_model_report(nodes->model, LAC_REPORT_INFO, "annotations_without_kernel", missing, 0,
                         "Annotated nodes of CUDA graphs have no kernel in the trace: copies, and "
                         "graphs that did not run while it was recorded.");
    }
}

static enum lac_status none_found(const struct nodes *nodes, const char *name,
                                  const char *notes_name, struct lac_error *reterr)
{
    return nodes->graph_configs == 0
               ? lac_fail(reterr, LAC_ERR_MISUSE, 0,
                          "%.80s names no node of a CUDA graph, so that %.80s cannot be joined: "
                          "nsys needs --cuda-graph-trace=node",
                          name, notes_name)
               : lac_fail(reterr, LAC_ERR_MISUSE, 0,
                          "no kernel of %.80s is a node that %.80s annotates: they are of another "
                          "process, or were saved before the graph was instantiated",
                          name, notes_name);
}

enum lac_status lac_join_graph_notes(struct lac_model *into, const char *name,
                                     const struct lac_model *notes, const char *notes_name,
                                     struct lac_error *reterr)
{
    enum { CACHE_PAIRS = 16384 };
    struct nodes nodes = {.model = into, .notes = notes};
    struct pair *cache = NULL;
    uint64_t kernels = 0;
    enum lac_status status = collect(&nodes);
    if (status == LAC_OK) {
        status = name_modules(&nodes);
    }
    if (status == LAC_OK && nodes.found_configs == 0) {
        status = none_found(&nodes, name, notes_name, reterr);
    }
    if (status == LAC_OK && nodes.has_members) {
        cache = calloc(CACHE_PAIRS, sizeof(*cache));
        status = cache != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    if (status == LAC_OK) {
        status = each_kernel(&nodes, cache, CACHE_PAIRS - 1, &kernels);
    }
    if (status == LAC_OK) {
        tell(&nodes, kernels);
        into->info.event_count += notes->info.event_count;
        into->info.expanded_bytes += notes->info.expanded_bytes;
    }
    free(cache);
    free(nodes.of_config);
    free(nodes.at);
    return status;
}
