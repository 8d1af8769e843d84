/* What is communicated in the kept steps, with its sizes. */

#include "analysis/diagnose/facts/collectives.h"

#include "analysis/diagnose/names/op_shapes.h"
#include "analysis/model/args.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLLECTIVES_MAX = 65536, /* steps repeat: as many tell */
    ARGS_BYTES = 4096,
    LOOK_BACK = 64, /* slices before a launch in which the operators around it begin */
    AROUND_MAX = 8, /* operators around a launch that may say what it communicates */
};

static const char *const names[LAC_COLLECTIVE_KIND_COUNT_] = {
    "communication", "all-reduce", "all-gather", "reduce-scatter",  "all-to-all",
    "broadcast",     "send",       "receive",    "send or receive",
};

const char *lac_collective_name(enum lac_collective_kind kind)
{
    return names[kind];
}

void lac_collectives_destroy(struct lac_collectives *collectives)
{
    if (collectives != NULL) {
        free(collectives->at);
        free(collectives);
    }
}

double lac_collective_wire_bytes(const struct lac_message *collective)
{
    if (collective->bytes < 0) {
        return -1.0;
    }
    double ranks = collective->ranks > 1 ? (double)collective->ranks : 0.0;
    double others = ranks > 0.0 ? (ranks - 1.0) / ranks : 1.0;
    double bytes = (double)collective->bytes;
    switch ((enum lac_collective_kind)collective->kind) {
    case LAC_COLLECTIVE_ALL_REDUCE: /* scattered, then gathered */
        return 2.0 * others * bytes;
    case LAC_COLLECTIVE_ALL_GATHER:
    case LAC_COLLECTIVE_REDUCE_SCATTER:
    case LAC_COLLECTIVE_ALL_TO_ALL:
        return others * bytes;
    case LAC_COLLECTIVE_OTHER:
    case LAC_COLLECTIVE_BROADCAST:
    case LAC_COLLECTIVE_SEND:
    case LAC_COLLECTIVE_RECEIVE:
    case LAC_COLLECTIVE_BETWEEN:
    case LAC_COLLECTIVE_KIND_COUNT_:
        break;
    }
    return bytes;
}

/* -- what names say ---------------------------------------------------------------------------- */

/** The text without case, '_' and '-', cut at the capacity: "all_to_all" is "alltoall". */
static void squeeze(const char *text, char *out, size_t capacity_bytes)
{
    size_t length = 0;
    for (; *text != '\0' && length + 1 < capacity_bytes; text++) {
        if (*text != '_' && *text != '-') {
            out[length++] = (char)(*text >= 'A' && *text <= 'Z' ? *text - 'A' + 'a' : *text);
        }
    }
    out[length] = '\0';
}

/** Kind by an operator's, a collective's or a kernel's name; OTHER when it does not say. */
static enum lac_collective_kind kind_of(const char *name)
{
    static const struct {
        const char *word;
        enum lac_collective_kind kind;
    } words[] = {
        {"allreduce", LAC_COLLECTIVE_ALL_REDUCE},         {"alltoall", LAC_COLLECTIVE_ALL_TO_ALL},
        {"reducescatter", LAC_COLLECTIVE_REDUCE_SCATTER}, {"allgather", LAC_COLLECTIVE_ALL_GATHER},
        {"broadcast", LAC_COLLECTIVE_BROADCAST},          {"sendrecv", LAC_COLLECTIVE_BETWEEN},
        {"crossdevicereduce", LAC_COLLECTIVE_ALL_REDUCE}, {"deepep", LAC_COLLECTIVE_ALL_TO_ALL},
        {"notifydispatch", LAC_COLLECTIVE_ALL_TO_ALL},
    };
    char text[160];
    squeeze(name, text, sizeof(text));
    for (size_t i = 0; i < LAC_COUNT_OF(words); i++) {
        if (strstr(text, words[i].word) != NULL) {
            return words[i].kind;
        }
    }
    /* "c10d::send", "nccl:recv 0<-1": as a word, for "resend" and "received" are others */
    static const char *const starts[] = {"", "c10d::", "nccl:", "nccl"};
    for (size_t i = 0; i < LAC_COUNT_OF(starts); i++) {
        size_t length = strlen(starts[i]);
        if (strncmp(text, starts[i], length) != 0) {
            continue;
        }
        if (strncmp(text + length, "send", 4) == 0) {
            return LAC_COLLECTIVE_SEND;
        }
        if (strncmp(text + length, "recv", 4) == 0) {
            return LAC_COLLECTIVE_RECEIVE;
        }
    }
    return LAC_COLLECTIVE_OTHER;
}

/** A name that says more: a kernel that sends and receives is an all-to-all by its operator. */
static void refine_kind(struct lac_message *collective, enum lac_collective_kind kind)
{
    bool is_vague =
        collective->kind == LAC_COLLECTIVE_OTHER || collective->kind == LAC_COLLECTIVE_BETWEEN;
    if (is_vague && kind != LAC_COLLECTIVE_OTHER) {
        collective->kind = (uint8_t)kind;
    }
}

/* -- what arguments say ------------------------------------------------------------------------ */

/** Bytes of an element by the name of its type, PyTorch's or C's; 0 unknown. */
static int64_t element_bytes(const char *type, size_t length)
{
    static const struct {
        const char *word;
        int64_t bytes;
    } types[] = {
        {"float8", 1},  {"bfloat16", 2}, {"half", 2},  {"float16", 2}, {"double", 8},
        {"float64", 8}, {"longint", 8},  {"long", 8},  {"int64", 8},   {"complexfloat", 8},
        {"int8", 1},    {"uint8", 1},    {"byte", 1},  {"char", 1},    {"bool", 1},
        {"short", 2},   {"int16", 2},    {"float", 4}, {"int", 4},
    };
    char text[48];
    char squeezed[48];
    size_t kept = 0;
    for (size_t i = 0; i < length && kept + 1 < sizeof(text); i++) {
        if (type[i] != ' ') {
            text[kept++] = type[i];
        }
    }
    text[kept] = '\0';
    squeeze(text, squeezed, sizeof(squeezed));
    for (size_t i = 0; i < LAC_COUNT_OF(types); i++) {
        if (strstr(squeezed, types[i].word) != NULL) {
            return types[i].bytes;
        }
    }
    return 0;
}

/** Where the value of a member begins, or NULL. */
static const char *value_of(const char *args, const char *key)
{
    const char *at = strstr(args, key);
    if (at == NULL) {
        return NULL;
    }
    at += strlen(key);
    return at + strspn(at, " ");
}

static int64_t number_of(const char *args, const char *key)
{
    const char *at = value_of(args, key);
    if (at == NULL || *at < '0' || *at > '9') {
        return -1;
    }
    int64_t number = strtoll(at, NULL, 10);
    return number;
}

/** Length of the text that stands quoted at `at`. */
static size_t quoted_length(const char *at)
{
    return at != NULL && *at == '"' ? strcspn(at + 1, "\"") : 0;
}

static int64_t bytes_of_count(int64_t count, int64_t element)
{
    return count >= 0 && element > 0 && count <= INT64_MAX / element ? count * element : -1;
}

/** Bytes of the largest input by its recorded shape. */
static int64_t bytes_of_shapes(const struct lac_model *model, uint64_t slice, const char *args)
{
    struct lac_shape inputs[LAC_SHAPE_INPUTS];
    const char *types = value_of(args, "\"Input type\":");
    types = types != NULL && *types == '[' ? types + 1 + strspn(types + 1, " ") : NULL;
    int64_t element =
        element_bytes(types != NULL && *types == '"' ? types + 1 : "", quoted_length(types));
    if (element == 0 || !lac_op_shapes(model, slice, inputs)) {
        return -1;
    }
    int64_t most = -1;
    for (int i = 0; i < LAC_SHAPE_INPUTS; i++) {
        int64_t count = inputs[i].count > 0 ? 1 : -1;
        for (int d = 0; d < inputs[i].count; d++) {
            int64_t size = inputs[i].dims[d];
            count = size > 0 && count > INT64_MAX / size ? INT64_MAX : count * size;
        }
        int64_t bytes = bytes_of_count(count, element);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/** Take from a slice's arguments what is not known yet. */
static void read_args(const struct lac_model *model, uint64_t slice, struct lac_message *collective)
{
    char args[ARGS_BYTES];
    if (model->slices.args[slice] == 0 ||
        lac_args_format(model, slice, args, sizeof(args)) >= sizeof(args)) {
        return;
    }
    const char *name = value_of(args, "\"Collective name\":");
    size_t length = quoted_length(name);
    char text[64] = "";
    if (length > 0 && length < sizeof(text)) {
        memcpy(text, name + 1, length);
        text[length] = '\0';
        refine_kind(collective, kind_of(text));
    }
    int64_t ranks = number_of(args, "\"Group size\":");
    if (collective->ranks < 0 && ranks > 0 && ranks <= INT32_MAX) {
        collective->ranks = (int32_t)ranks;
    }
    if (collective->bytes >= 0) {
        return;
    }
    int64_t in = number_of(args, "\"In msg nelems\":");
    int64_t out = number_of(args, "\"Out msg nelems\":");
    const char *type = value_of(args, "\"dtype\":");
    int64_t element = element_bytes(type != NULL ? type + 1 : "", quoted_length(type));
    collective->bytes = in < 0 && out < 0 ? bytes_of_shapes(model, slice, args)
                                          : bytes_of_count(in > out ? in : out, element);
}

enum lac_collective_kind lac_collective_kind_of(const struct lac_model *model, uint64_t slice)
{
    struct lac_message message = {.ranks = -1, .bytes = -1, .kind = LAC_COLLECTIVE_OTHER};
    read_args(model, slice, &message);
    refine_kind(&message, kind_of(lac_model_str(model, model->slices.name[slice])));
    return (enum lac_collective_kind)message.kind;
}

/** The operators around a launch, innermost first; the last that is about communication is what the
 *  host spends on it. */
static void read_around(const struct lac_facts *facts, uint32_t op, struct lac_message *collective)
{
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    const struct lac_track *track = &model->tracks[lac_model_track_of(model, op)];
    int64_t end_ns = slices->start_ns[op] + slices->dur_ns[op];
    int found = 0;
    for (uint64_t back = 0; back <= LOOK_BACK && op >= track->first + back; back++) {
        uint64_t at = op - back;
        bool is_named = slices->kind[at] == LAC_SLICE_OP || slices->kind[at] == LAC_SLICE_RANGE;
        if (!is_named || slices->start_ns[at] + slices->dur_ns[at] < end_ns) {
            continue;
        }
        enum lac_host_class host_class = lac_host_class_of(facts, slices->name[at]);
        enum lac_collective_kind kind = kind_of(lac_model_str(model, slices->name[at]));
        bool is_record = strcmp(lac_model_str(model, slices->name[at]), "record_param_comms") == 0;
        if (host_class != LAC_HOST_COMM && kind == LAC_COLLECTIVE_OTHER && !is_record) {
            return; /* the user's own code, or a step */
        }
        refine_kind(collective, kind);
        read_args(model, at, collective);
        collective->host_ns = slices->dur_ns[at];
        if (++found == AROUND_MAX) {
            return;
        }
    }
}

/* -- all of them ------------------------------------------------------------------------------- */

/** The stream on which the main device computes most. */
static uint32_t find_compute_stream(const struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    const struct lac_step_operations *work = facts->step_operations;
    int64_t *ns = calloc(model->track_count ? model->track_count : 1, sizeof(*ns));
    uint32_t best = LAC_NONE;
    if (ns == NULL) {
        return LAC_NONE;
    }
    for (uint64_t i = 0; i < work->count; i++) {
        const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, &work->ops[i]);
        if (kernel == NULL || kernel->names.is_comm) {
            continue;
        }
        uint32_t track = lac_model_track_of(model, work->ops[i].slice);
        ns[track] = lac_sum_ns(ns[track], model->slices.dur_ns[work->ops[i].slice]);
        best = best == LAC_NONE || ns[track] > ns[best] ? track : best;
    }
    free(ns);
    return best;
}

static struct lac_message read_collective(const struct lac_facts *facts, uint32_t at,
                                          uint32_t compute_stream)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_model *model = facts->model;
    const struct lac_step_operation *op = &facts->step_operations->ops[at];
    int64_t start_ns = model->slices.start_ns[op->slice];
    int64_t dur_ns = model->slices.dur_ns[op->slice];
    const struct lac_spans *compute = &facts->device_sets[analysis->main_device].compute;
    struct lac_message collective = {
        .at = at, .ranks = -1, .bytes = -1, .dur_ns = dur_ns, .kind = LAC_COLLECTIVE_OTHER};
    collective.exposed_ns = dur_ns - lac_spans_length_inside(compute, start_ns, start_ns + dur_ns);
    collective.is_in_line = lac_model_track_of(model, op->slice) == compute_stream;
    read_args(model, op->slice, &collective);
    refine_kind(&collective, kind_of(lac_model_str(model, model->slices.name[op->slice])));
    if (op->op != LAC_NONE) {
        read_around(facts, op->op, &collective);
    }
    if (collective.ranks < 0 && model->info.world_size > 0) {
        collective.ranks = model->info.world_size;
    }
    return collective;
}

enum lac_status lac_collectives_collect(struct lac_facts *facts)
{
    const struct lac_step_operations *work = facts->step_operations;
    struct lac_collectives *collectives = calloc(1, sizeof(*collectives));
    facts->collectives = collectives;
    if (collectives == NULL) {
        return LAC_ERR_NOMEM;
    }
    collectives->compute_stream = LAC_NONE;
    uint64_t count = 0;
    for (uint64_t i = 0; i < work->count; i++) {
        const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, &work->ops[i]);
        count += kernel != NULL && kernel->names.is_comm;
    }
    if (count == 0) {
        return LAC_OK;
    }
    uint64_t capacity = count < COLLECTIVES_MAX ? count : COLLECTIVES_MAX;
    collectives->at = malloc(capacity * sizeof(*collectives->at));
    if (collectives->at == NULL) {
        return LAC_ERR_NOMEM;
    }
    collectives->compute_stream = find_compute_stream(facts);
    for (uint64_t i = 0; i < work->count && collectives->count < capacity; i++) {
        const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, &work->ops[i]);
        if (kernel != NULL && kernel->names.is_comm) {
            collectives->at[collectives->count++] =
                read_collective(facts, (uint32_t)i, collectives->compute_stream);
        }
    }
    collectives->steps = work->steps * (double)capacity / (double)count;
    return LAC_OK;
}
