/* Annotations of CUDA graphs, given to the kernels and copies of a trace by the ids of their nodes. */

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
    uint32_t module;  /**< string id of the trace, 0 none */
    uint32_t args;    /**< string id of the annotations: members, the id first */
    uint32_t kernel;  /**< name of the one that it was first seen to run */
    uint32_t process; /**< in that process */
    bool is_found;
    bool has_members; /**< beside the id */
};

/** Tables whose rows tell of a node: launch configurations of kernels, and copies. */
enum table { CONFIGS, COPIES, TABLES };

struct nodes {
    struct lac_model *model; /**< of the trace */
    const struct lac_model *notes;
    struct node *at;
    uint64_t count;
    uint32_t *of_row[TABLES]; /**< by row: index of its node, or LAC_NONE */
    uint32_t process;         /**< whose annotations they are, LAC_NONE: of all */
    uint32_t processes;       /**< that ran such nodes */
    uint64_t graph_rows, found_rows;
    bool has_members; /**< any that was found */
    bool differ;      /**< nodes of one id ran different kernels in two processes */
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
        node->process = LAC_NONE;
        node->has_members =
            has_two_members(lac_model_str(notes, args), lac_strings_length(&notes->strings, args));
        status = lac_strings_intern(&nodes->model->strings, lac_model_str(notes, name),
                                    lac_strings_length(&notes->strings, name), &node->module);
    }
    qsort(nodes->at, nodes->count, sizeof(*nodes->at), by_id);
    return status;
}

static uint32_t row_count(const struct lac_model *model, enum table table)
{
    return table == CONFIGS ? model->kernel_config_count : model->copy_count;
}

static uint64_t id_of(const struct lac_model *model, enum table table, uint32_t row)
{
    return table == CONFIGS ? model->kernel_configs[row].graph_node : model->copies[row].graph_node;
}

/** The node of each row. */
static enum lac_status find_nodes(struct nodes *nodes, enum table table)
{
    const struct lac_model *const model = nodes->model;
    const uint32_t count = row_count(model, table);
    nodes->of_row[table] = calloc((size_t)count + 1, sizeof(uint32_t));
    if (nodes->of_row[table] == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t id = id_of(model, table, i);
        struct node *const node = id != 0 ? find(nodes, id) : NULL;
        nodes->of_row[table][i] = node != NULL ? (uint32_t)(node - nodes->at) : LAC_NONE;
        nodes->graph_rows += id != 0;
        nodes->found_rows += node != NULL;
    }
    return LAC_OK;
}

static void name_modules(struct nodes *nodes, enum table table)
{
    struct lac_model *const model = nodes->model;
    for (uint32_t i = 0; i < row_count(model, table); i++) {
        uint32_t *const module =
            table == CONFIGS ? &model->kernel_configs[i].module : &model->copies[i].module;
        if (nodes->of_row[table][i] != LAC_NONE) {
            struct node *const node = &nodes->at[nodes->of_row[table][i]];
            nodes->has_members = nodes->has_members || node->has_members;
            node->is_found = true;
            *module = node->module != 0 ? node->module : *module;
        }
    }
}

/* ---- processes ---- */

/** The table that a slice has its row in; TABLES: in none. */
static enum table table_of(const struct lac_model *model, uint64_t slice)
{
    const uint8_t kind = model->slices.kind[slice];
    return model->slices.detail[slice] == LAC_NONE              ? TABLES
           : kind == LAC_SLICE_KERNEL                           ? CONFIGS
           : kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET ? COPIES
                                                                : TABLES;
}

/** The node of a kernel or a copy, or NULL. */
static struct node *node_of(const struct nodes *nodes, uint64_t slice)
{
    const enum table table = table_of(nodes->model, slice);
    const uint32_t node =
        table != TABLES ? nodes->of_row[table][nodes->model->slices.detail[slice]] : LAC_NONE;
    return node != LAC_NONE ? &nodes->at[node] : NULL;
}

/** The process that launched it, or LAC_NONE: not recorded. */
static uint32_t process_of(const struct lac_model *model, uint64_t slice)
{
    const uint32_t launch = model->slices.link[slice];
    return launch != LAC_NONE ? model->tracks[lac_model_track_of(model, launch)].process : LAC_NONE;
}

/** Whether the name holds that number, as "notes_4711.json" does. */
static bool names_process(const char *name, int64_t pid)
{
    for (const char *at = name; *at != '\0';) {
        int64_t number = 0;
        unsigned length = 0;
        for (; at[length] >= '0' && at[length] <= '9' && length < 18; length++) {
            number = number * 10 + (at[length] - '0');
        }
        if (length > 0 && number == pid) {
            return true;
        }
        at += length > 0 ? length : 1;
    }
    return false;
}

/** Nodes of different processes may have one id. Which processes ran annotated ones, whether those
 *  are the same kernels, and which of them the file is named after. */
static enum lac_status find_processes(struct nodes *nodes, const char *notes_name)
{
    const struct lac_model *const model = nodes->model;
    uint8_t *const is_seen = calloc((size_t)model->process_count + 1, 1);
    if (is_seen == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < model->slices.count; i++) {
        struct node *const node = node_of(nodes, i);
        const uint32_t process = node != NULL ? process_of(model, i) : LAC_NONE;
        if (process >= model->process_count) {
            continue;
        }
        nodes->processes += is_seen[process] == 0;
        is_seen[process] = 1;
        if (node->process == LAC_NONE) {
            node->process = process;
            node->kernel = model->slices.name[i];
        }
        nodes->differ =
            nodes->differ || (node->process != process && node->kernel != model->slices.name[i]);
    }
    for (uint32_t p = 0; p < model->process_count && nodes->processes > 1; p++) {
        if (is_seen[p] != 0 && names_process(notes_name, model->processes[p].pid)) {
            nodes->process = p;
            break;
        }
    }
    free(is_seen);
    return LAC_OK;
}

/** Room for twice the rows of a table, and for what is known of them. */
static bool widen(struct nodes *nodes, enum table table)
{
    struct lac_model *const model = nodes->model;
    const size_t rows = 2 * ((size_t)row_count(model, table) + 1);
    uint32_t *const of_row = realloc(nodes->of_row[table], rows * sizeof(*of_row));
    nodes->of_row[table] = of_row != NULL ? of_row : nodes->of_row[table];
    if (table == CONFIGS) {
        struct lac_kernel_config *const at =
            realloc(model->kernel_configs, rows * sizeof(*model->kernel_configs));
        model->kernel_configs = at != NULL ? at : model->kernel_configs;
        return of_row != NULL && at != NULL;
    }
    struct lac_copy *const at = realloc(model->copies, rows * sizeof(*model->copies));
    model->copies = at != NULL ? at : model->copies;
    return of_row != NULL && at != NULL;
}

/** A row once more, at the end of its table. */
static uint32_t repeat(struct nodes *nodes, enum table table, uint32_t row)
{
    struct lac_model *const model = nodes->model;
    uint32_t *const count = table == CONFIGS ? &model->kernel_config_count : &model->copy_count;
    if (table == CONFIGS) {
        model->kernel_configs[*count] = model->kernel_configs[row];
    } else {
        model->copies[*count] = model->copies[row];
    }
    nodes->of_row[table][*count] = nodes->of_row[table][row];
    return (*count)++;
}

/** Leave to the other processes what they have in common with the one that is meant: kernels of the
 *  same shape share a launch configuration. */
static enum lac_status keep_apart(struct nodes *nodes, enum table table)
{
    enum { OURS = 1, THEIRS = 2 };
    struct lac_model *const model = nodes->model;
    const uint32_t count = row_count(model, table);
    uint8_t *const users = calloc((size_t)count + 1, 1);
    uint32_t *const ours = malloc(((size_t)count + 1) * sizeof(*ours));
    if (!widen(nodes, table) || users == NULL || ours == NULL) {
        free(users);
        free(ours);
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (table_of(model, i) == table && node_of(nodes, i) != NULL) {
            users[model->slices.detail[i]] |=
                process_of(model, i) == nodes->process ? OURS : THEIRS;
        }
    }
    for (uint32_t row = 0; row < count; row++) {
        ours[row] = users[row] == (OURS | THEIRS) ? repeat(nodes, table, row) : row;
    }
    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (table_of(model, i) == table && node_of(nodes, i) != NULL &&
            process_of(model, i) == nodes->process) {
            model->slices.detail[i] = ours[model->slices.detail[i]];
        }
    }
    for (uint32_t row = 0; row < count; row++) {
        if ((users[row] & THEIRS) != 0) {
            nodes->of_row[table][row] = LAC_NONE;
        }
    }
    free(users);
    free(ours);
    return LAC_OK;
}

static enum lac_status tell_apart(struct nodes *nodes, const char *name, const char *notes_name,
                                  struct lac_error *reterr)
{
    enum lac_status status = find_processes(nodes, notes_name);
    if (status != LAC_OK || nodes->processes < 2) {
        return status;
    }
    if (nodes->process != LAC_NONE) {
        status = keep_apart(nodes, CONFIGS);
        return status == LAC_OK ? keep_apart(nodes, COPIES) : status;
    }
    if (nodes->differ) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "%u processes of %.80s ran nodes that %.80s annotates, and not the same "
                        "kernels: name the file after its process, as notes_PID.json",
                        nodes->processes, name, notes_name);
    }
    lac_model_report(nodes->model, LAC_REPORT_INFO, "annotations_of_processes", nodes->processes, 0,
                     "Processes ran the annotated nodes with the same kernels: the annotations "
                     "are taken for all. A file named after one (notes_PID.json) is its alone.");
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
    const uint32_t theirs = node_of(nodes, slice)->args;
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

/** Kernels and copies with a node that was found: each one's, or only how many there are. */
static enum lac_status each_operation(const struct nodes *nodes, struct pair *cache,
                                      uint32_t cache_mask, uint64_t *ret_count)
{
    enum lac_status status = LAC_OK;
    *ret_count = 0;
    for (uint64_t i = 0; i < nodes->model->slices.count && status == LAC_OK; i++) {
        const struct node *const node = node_of(nodes, i);
        *ret_count += node != NULL;
        if (node != NULL && cache != NULL && node->has_members) {
            status = give(nodes, cache, cache_mask, i);
        }
    }
    return status;
}

/* ---- the whole ---- */

static void tell(const struct nodes *nodes, uint64_t operations)
{
    uint64_t missing = 0;
    for (uint64_t i = 0; i < nodes->count; i++) {
        missing += !nodes->at[i].is_found;
    }
    lac_model_report(nodes->model, LAC_REPORT_INFO, "joined_annotations", operations, 0,
                     "Kernels and copies of CUDA graphs carry the module that the annotations "
                     "name.");
    if (missing > 0) {
        lac_model_report(nodes->model, LAC_REPORT_INFO, "annotations_without_kernel", missing, 0,
                         "Annotated nodes of CUDA graphs have no kernel and no copy in the trace: "
                         "their graphs did not run while it was recorded, or nodes of copies were "
                         "not.");
    }
}

static enum lac_status none_found(const struct nodes *nodes, const char *name,
                                  const char *notes_name, struct lac_error *reterr)
{
    return nodes->graph_rows == 0
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
    struct nodes nodes = {.model = into, .notes = notes, .process = LAC_NONE};
    struct pair *cache = NULL;
    uint64_t operations = 0;
    enum lac_status status = collect(&nodes);
    if (status == LAC_OK) {
        status = find_nodes(&nodes, CONFIGS);
    }
    if (status == LAC_OK) {
        status = find_nodes(&nodes, COPIES);
    }
    if (status == LAC_OK && nodes.found_rows == 0) {
        status = none_found(&nodes, name, notes_name, reterr);
    }
    if (status == LAC_OK) {
        status = tell_apart(&nodes, name, notes_name, reterr);
    }
    if (status == LAC_OK) {
        name_modules(&nodes, CONFIGS);
        name_modules(&nodes, COPIES);
    }
    if (status == LAC_OK && nodes.has_members) {
        cache = calloc(CACHE_PAIRS, sizeof(*cache));
        status = cache != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    if (status == LAC_OK) {
        status = each_operation(&nodes, cache, CACHE_PAIRS - 1, &operations);
    }
    if (status == LAC_OK) {
        tell(&nodes, operations);
        into->info.event_count += notes->info.event_count;
        into->info.expanded_bytes += notes->info.expanded_bytes;
    }
    free(cache);
    free(nodes.of_row[CONFIGS]);
    free(nodes.of_row[COPIES]);
    free(nodes.at);
    return status;
}
