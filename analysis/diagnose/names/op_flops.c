/* Operators that multiply: their arguments read from a template, and the count. */

#include "analysis/diagnose/names/op_flops.h"

#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct flop_op {
    const char *name;
    enum lac_flop_kind kind;
    int8_t inputs[LAC_FLOP_INPUTS];
    int8_t arguments[4];
} ops[] = {
#define LAC_FLOP_OP(name, kind, a, b, c, first, second, third, fourth)                             \
    {(name), LAC_FLOP_##kind, {(a), (b), (c)}, {(first), (second), (third), (fourth)}},
#include "analysis/diagnose/names/op_flops.def"
#undef LAC_FLOP_OP
};

int lac_flop_op_of(const char *name, size_t length)
{
    for (size_t i = 0; i < LAC_COUNT_OF(ops); i++) {
        if (strlen(ops[i].name) == length && memcmp(ops[i].name, name, length) == 0) {
            return (int)i;
        }
    }
    return -1;
}

enum lac_flop_kind lac_flop_kind_of(int op)
{
    return op < 0 ? LAC_FLOP_NONE : ops[op].kind;
}

int64_t lac_flop_multiply(int64_t a, int64_t b)
{
    int64_t product = 0;
    if (a <= 0 || b <= 0) {
        return 0;
    }
    return __builtin_mul_overflow(a, b, &product) ? LAC_FLOPS_MAX : product;
}

int64_t lac_flop_add(int64_t a, int64_t b)
{
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? LAC_FLOPS_MAX : sum;
}

/* -- reading a template ----------------------------------------------------------------------- */

/** A place in a template, and which of the event's numbers comes next. */
struct place {
    const char *at, *end;
    int64_t number;
};

static bool is_slot(char c)
{
    return c == LAC_ARG_INTEGER || c == LAC_ARG_REAL;
}

/** Behind the string that begins at the place. */
static void skip_string(struct place *place)
{
    place->at++;
    while (place->at < place->end && *place->at != '"') {
        place->number += is_slot(*place->at);
        place->at += *place->at == '\\' && place->at + 1 < place->end ? 2 : 1;
    }
    place->at += place->at < place->end;
}

/** Behind the value that begins at the place. */
static void skip_value(struct place *place)
{
    int depth = 0;
    while (place->at < place->end) {
        char c = *place->at;
        if (c == '"') {
            skip_string(place);
            continue;
        }
        if (depth == 0 && (c == ',' || c == ']' || c == '}')) {
            return;
        }
        depth += c == '[' || c == '{';
        depth -= c == ']' || c == '}';
        place->number += is_slot(c);
        place->at++;
    }
}

/** Behind `c` if it stands there. */
static bool take(struct place *place, char c)
{
    if (place->at >= place->end || *place->at != c) {
        return false;
    }
    place->at++;
    return true;
}

/** The value of a member of the outermost object. */
static bool find_member(const char *text, size_t length, const char *key, struct place *ret_place)
{
    struct place place = {text, text + length, 0};
    size_t key_length = strlen(key);
    if (!take(&place, '{')) {
        return false;
    }
    while (place.at < place.end && *place.at == '"') {
        const char *name = place.at + 1;
        skip_string(&place);
        bool is_it =
            (size_t)(place.at - name) == key_length + 1 && strncasecmp(name, key, key_length) == 0;
        if (!take(&place, ':')) {
            return false;
        }
        if (is_it) {
            *ret_place = place;
            return true;
        }
        skip_value(&place);
        (void)take(&place, ',');
    }
    return false;
}

/** Move to the element `index` of the list that begins at the place. */
static bool find_element(struct place *place, int index)
{
    if (index < 0 || !take(place, '[')) {
        return false;
    }
    for (int i = 0; i < index; i++) {
        skip_value(place);
        if (!take(place, ',')) {
            return false;
        }
    }
    return place->at < place->end && *place->at != ']';
}

/** Up to `capacity` lengths "[8,64]". @return how many, 0 when it is another list */
static int read_dims(struct place place, struct lac_flop_dim *dims)
{
    int count = 0;
    if (!take(&place, '[')) {
        return 0;
    }
    while (place.at < place.end && *place.at != ']') {
        struct lac_flop_dim dim = {.varies = *place.at == LAC_ARG_INTEGER};
        if (count == LAC_FLOP_DIMS) {
            return 0;
        }
        if (dim.varies) {
            dim.value = place.number++;
            place.at++;
        } else {
            const char *from = place.at;
            while (place.at < place.end && *place.at >= '0' && *place.at <= '9') {
                int digit = *place.at++ - '0';
                dim.value = lac_flop_add(lac_flop_multiply(dim.value, 10), digit);
            }
            if (from == place.at) {
                return 0;
            }
        }
        dims[count++] = dim;
        if (!take(&place, ',') && (place.at >= place.end || *place.at != ']')) {
            return 0;
        }
    }
    return count;
}

/** The text of a string at the place. */
static bool read_text(struct place place, const char **ret_text, size_t *ret_length)
{
    if (place.at >= place.end || *place.at != '"') {
        return false;
    }
    *ret_text = place.at + 1;
    skip_string(&place);
    *ret_length = (size_t)(place.at - *ret_text) - 1;
    return true;
}

static bool holds(const char *text, size_t length, const char *word)
{
    return memmem(text, length, word, strlen(word)) != NULL;
}

static void read_precision(const char *text, size_t length, struct lac_flop_recipe *recipe)
{
    static const struct {
        const char *word;
        enum lac_precision precision;
        int8_t bytes;
    } types[] = {{"BFloat16", LAC_PRECISION_BF16, 2},   {"Half", LAC_PRECISION_FP16, 2},
                 {"Float8", LAC_PRECISION_FP8, 1},      {"float", LAC_PRECISION_FP32, 4},
                 {"double", LAC_PRECISION_FP64, 8},     {"bfloat16", LAC_PRECISION_BF16, 2},
                 {"signed char", LAC_PRECISION_INT8, 1}};
    for (size_t i = 0; i < LAC_COUNT_OF(types); i++) {
        if (holds(text, length, types[i].word)) {
            recipe->precision = (uint8_t)types[i].precision;
            recipe->element_bytes = types[i].bytes;
            return;
        }
    }
}

/** "[2, 2]" as whole numbers; the last one stands for those behind it. */
static bool read_window(const char *text, size_t length, int32_t out[3])
{
    const char *at = text;
    const char *end = text + length;
    int count = 0;
    int64_t value = 0;
    bool has_digit = false;
    for (; at < end; at++) {
        if (*at >= '0' && *at <= '9') {
            value = value * 10 + (*at - '0');
            has_digit = true;
            if (value > 1 << 20) {
                return false;
            }
        } else if (*at == ',' || *at == ']') {
            if (!has_digit || count == 3) {
                return false;
            }
            out[count++] = (int32_t)value;
            value = 0;
            has_digit = false;
        } else if (*at != '[' && *at != ' ') {
            return false;
        }
    }
    for (int i = count; i < 3 && count > 0; i++) {
        out[i] = out[count - 1];
    }
    return count > 0;
}

/** The text of one recorded argument; an argument that is no text was not recorded. */
static bool argument(const char *text, size_t length, int index, const char **ret_text,
                     size_t *ret_length)
{
    struct place place;
    return find_member(text, length, "Concrete Inputs", &place) && find_element(&place, index) &&
           read_text(place, ret_text, ret_length) && *ret_length > 0;
}

static int8_t truth(const char *text, size_t length, int index)
{
    const char *word = NULL;
    size_t word_length = 0;
    if (!argument(text, length, index, &word, &word_length)) {
        return -1;
    }
    if (word_length == 4 && memcmp(word, "True", 4) == 0) {
        return 1;
    }
    return word_length == 5 && memcmp(word, "False", 5) == 0 ? 0 : -1;
}

/** Stride, padding and dilation of a convolution. */
static void read_windows(const char *text, size_t length, struct lac_flop_recipe *recipe)
{
    const int8_t *at = ops[recipe->op].arguments;
    int32_t *const windows[3] = {recipe->stride, recipe->padding, recipe->dilation};
    recipe->has_window = true;
    for (int i = 0; i < 3; i++) {
        const char *word = NULL;
        size_t word_length = 0;
        recipe->has_window = argument(text, length, at[i], &word, &word_length) &&
                             read_window(word, word_length, windows[i]) && recipe->has_window;
    }
    recipe->is_transposed = truth(text, length, at[3]);
}

/** "[True, True, False]": whether the input, the weight and the bias get a gradient. */
static void read_mask(const char *text, size_t length, struct lac_flop_recipe *recipe)
{
    const char *word = NULL;
    size_t word_length = 0;
    if (!argument(text, length, ops[recipe->op].arguments[1], &word, &word_length)) {
        return;
    }
    int directions = 0;
    int entries = 0;
    for (size_t i = 0; i < word_length && entries < 2; i++) {
        directions += word[i] == 'T';
        entries += word[i] == ',';
    }
    recipe->directions = directions;
}

static bool is_attention(enum lac_flop_kind kind)
{
    return kind == LAC_FLOP_HEADS || kind == LAC_FLOP_HEADS_BACK || kind == LAC_FLOP_SEATS ||
           kind == LAC_FLOP_SEATS_BACK;
}

static void read_arguments(const char *text, size_t length, struct lac_flop_recipe *recipe)
{
    const struct flop_op *op = &ops[recipe->op];
    if (op->kind == LAC_FLOP_CONV) {
        read_windows(text, length, recipe);
    } else if (op->kind == LAC_FLOP_CONV_BACK) {
        recipe->is_transposed = truth(text, length, op->arguments[0]);
        read_mask(text, length, recipe);
    } else if (is_attention(op->kind)) {
        recipe->is_causal = truth(text, length, op->arguments[0]);
    }
}

bool lac_flop_recipe_read(int op, const char *text, size_t length, struct lac_flop_recipe *recipe)
{
    assert(op >= 0 && (size_t)op < LAC_COUNT_OF(ops));
    *recipe =
        (struct lac_flop_recipe){.op = op, .is_transposed = -1, .is_causal = -1, .directions = -1};
    if (ops[op].kind == LAC_FLOP_CONV_PART) {
        return true;
    }
    struct place shapes;
    if (!find_member(text, length, "Input Dims", &shapes)) {
        return false;
    }
    bool has_any = false;
    for (int i = 0; i < LAC_FLOP_INPUTS; i++) {
        struct place place = shapes;
        if (ops[op].inputs[i] >= 0 && find_element(&place, ops[op].inputs[i])) {
            recipe->count[i] = read_dims(place, recipe->dims[i]);
            has_any = has_any || recipe->count[i] > 0;
        }
    }
    struct place types;
    const char *type = NULL;
    size_t type_length = 0;
    if (find_member(text, length, "Input type", &types) &&
        find_element(&types, ops[op].inputs[0]) && read_text(types, &type, &type_length)) {
        read_precision(type, type_length, recipe);
    }
    read_arguments(text, length, recipe);
    return has_any;
}

/* -- counting ----------------------------------------------------------------------------------- */

/** Product of the lengths [from, to). */
static int64_t elements(const int64_t *dims, int from, int to)
{
    int64_t product = 1;
    for (int i = from; i < to; i++) {
        product = lac_flop_multiply(product, dims[i]);
    }
    return product;
}

static int64_t bytes_of(const struct lac_flop_recipe *recipe, int64_t a, int64_t b, int64_t c)
{
    return lac_flop_multiply(lac_flop_add(a, lac_flop_add(b, c)), recipe->element_bytes);
}

static void set_product(const struct lac_flop_recipe *recipe, int64_t batch, int64_t m, int64_t n,
                        int64_t k, struct lac_flop_call *call)
{
    int64_t all = lac_flop_multiply(batch, lac_flop_multiply(m, lac_flop_multiply(n, k)));
    call->flops = lac_flop_multiply(2, all);
    call->size[0] = batch;
    call->size[1] = m;
    call->size[2] = n;
    call->size[3] = k;
    call->bytes = bytes_of(recipe, lac_flop_multiply(batch, lac_flop_multiply(m, k)),
                           lac_flop_multiply(batch, lac_flop_multiply(k, n)),
                           lac_flop_multiply(batch, lac_flop_multiply(m, n)));
}

static void count_product(const struct lac_flop_recipe *recipe, struct lac_flop_call *call)
{
    int a = recipe->count[0];
    int b = recipe->count[1];
    const int64_t *x = call->shape[0];
    const int64_t *y = call->shape[1];
    if (a == 0 || b == 0) {
        return;
    }
    int64_t m = a >= 2 ? x[a - 2] : 1;
    int64_t k = x[a - 1];
    int64_t n = b >= 2 ? y[b - 1] : 1;
    if (k != (b >= 2 ? y[b - 2] : y[0])) {
        return;
    }
    int64_t batch_a = elements(x, 0, a >= 2 ? a - 2 : 0);
    int64_t batch_b = elements(y, 0, b >= 2 ? b - 2 : 0);
    set_product(recipe, batch_a > batch_b ? batch_a : batch_b, m, n, k, call);
}

static void count_linear(const struct lac_flop_recipe *recipe, struct lac_flop_call *call)
{
    int a = recipe->count[0];
    const int64_t *x = call->shape[0];
    if (a == 0 || recipe->count[1] != 2 || x[a - 1] != call->shape[1][1]) {
        return;
    }
    set_product(recipe, 1, elements(x, 0, a - 1), call->shape[1][0], x[a - 1], call);
}

static void count_grouped(const struct lac_flop_recipe *recipe, struct lac_flop_call *call)
{
    bool is_forward = recipe->count[0] == 2 && recipe->count[1] == 3;
    if (is_forward && call->shape[0][1] == call->shape[1][1]) {
        set_product(recipe, 1, call->shape[0][0], call->shape[1][2], call->shape[0][1], call);
    }
}

/** Elements of a convolution's output, 0 when its window is not known. */
static int64_t convolved(const struct lac_flop_recipe *recipe, const struct lac_flop_call *call)
{
    const int64_t *input = call->shape[0];
    const int64_t *weight = call->shape[1];
    int64_t product = lac_flop_multiply(input[0], weight[0]);
    for (int i = 2; i < recipe->count[0]; i++) {
        int w = i - 2 < 3 ? i - 2 : 2;
        int64_t stride = recipe->stride[w] > 0 ? recipe->stride[w] : 1;
        int64_t reach = lac_flop_multiply(recipe->dilation[w], weight[i] - 1);
        int64_t room = lac_flop_add(input[i], 2 * (int64_t)recipe->padding[w]) - reach - 1;
        product = room < 0 ? 0 : lac_flop_multiply(product, room / stride + 1);
    }
    return product;
}

/** @param output elements of the output, 0 unknown */
static void count_conv(const struct lac_flop_recipe *recipe, int64_t output, int input_at,
                       struct lac_flop_call *call)
{
    const int64_t *weight = call->shape[1];
    int dims = recipe->count[1];
    int64_t input = elements(call->shape[input_at], 0, recipe->count[input_at]);
    bool is_transposed = recipe->is_transposed == 1;
    if (recipe->is_transposed < 0 && input_at != 0) { /* channels of the gradient say it */
        is_transposed = call->shape[0][1] != weight[0] && call->shape[input_at][1] == weight[0];
    }
    /* each element of the output, or of a transposed one's input, meets one filter */
    int64_t met = is_transposed ? input : output;
    int64_t all = lac_flop_multiply(met, elements(weight, 1, dims));
    call->flops = lac_flop_multiply(2, all);
    call->bytes = bytes_of(recipe, input, elements(weight, 0, dims), output);
}

static bool is_convolution(const struct lac_flop_recipe *recipe, int input_at)
{
    return recipe->count[1] >= 3 && recipe->count[input_at] == recipe->count[1];
}

static void count_attention(const struct lac_flop_recipe *recipe, struct lac_flop_call *call)
{
    enum lac_flop_kind kind = ops[recipe->op].kind;
    bool is_heads = kind == LAC_FLOP_HEADS || kind == LAC_FLOP_HEADS_BACK;
    bool is_back = kind == LAC_FLOP_HEADS_BACK || kind == LAC_FLOP_SEATS_BACK;
    if (recipe->count[0] != 4 || recipe->count[1] != 4 || recipe->count[2] != 4) {
        return;
    }
    const int64_t *q = call->shape[0];
    const int64_t *k = call->shape[1];
    const int64_t *v = call->shape[2];
    int seat = is_heads ? 2 : 1;
    int64_t batches = lac_flop_multiply(q[0], q[is_heads ? 1 : 2]);
    int64_t pairs = lac_flop_multiply(q[seat], k[seat]);
    if (recipe->is_causal == 1 && q[seat] == k[seat]) {
        pairs = pairs / 2 + q[seat] / 2;
    }
    call->is_causal_unknown = recipe->is_causal < 0;
    /* scores and their product with the values; backward twice that, and the scores once more */
    int64_t scores = lac_flop_multiply(lac_flop_multiply(batches, pairs), q[3]);
    int64_t values = lac_flop_multiply(lac_flop_multiply(batches, pairs), v[3]);
    int64_t forward = lac_flop_multiply(2, lac_flop_add(scores, values));
    call->model_flops = lac_flop_multiply(is_back ? 2 : 1, forward);
    call->flops = lac_flop_add(call->model_flops, is_back ? lac_flop_multiply(2, scores) : 0);
    int64_t all = lac_flop_add(elements(q, 0, 4), elements(k, 0, 4));
    call->bytes = bytes_of(recipe, all, elements(v, 0, 4), elements(q, 0, 4));
}

void lac_flop_call_of(const struct lac_flop_recipe *recipe, const struct lac_model *model,
                      uint64_t slice, int64_t output_elements, struct lac_flop_call *ret_call)
{
    *ret_call = (struct lac_flop_call){0};
    for (int i = 0; i < LAC_FLOP_INPUTS; i++) {
        for (int d = 0; d < recipe->count[i]; d++) {
            struct lac_flop_dim dim = recipe->dims[i][d];
            uint64_t at = (uint64_t)model->slices.arg_num[slice] + (uint64_t)dim.value;
            int64_t own = dim.varies && at < model->arg_number_count ? model->arg_numbers[at] : 0;
            int64_t value = dim.varies ? own : dim.value;
            ret_call->shape[i][d] = value > 0 ? value : 0;
        }
    }
    enum lac_flop_kind kind = ops[recipe->op].kind;
    if (kind == LAC_FLOP_PRODUCT) {
        count_product(recipe, ret_call);
    } else if (kind == LAC_FLOP_LINEAR) {
        count_linear(recipe, ret_call);
    } else if (kind == LAC_FLOP_GROUPED) {
        count_grouped(recipe, ret_call);
    } else if (kind == LAC_FLOP_CONV && is_convolution(recipe, 0)) {
        count_conv(recipe, recipe->has_window ? convolved(recipe, ret_call) : output_elements, 0,
                   ret_call);
    } else if (kind == LAC_FLOP_CONV_BACK && is_convolution(recipe, 0)) {
        count_conv(recipe, elements(ret_call->shape[0], 0, recipe->count[0]), 2, ret_call);
    } else if (is_attention(kind)) {
        count_attention(recipe, ret_call);
    }
    if (ret_call->model_flops == 0) {
        ret_call->model_flops = ret_call->flops;
    }
}

uint64_t lac_flop_window_key(const struct lac_flop_recipe *recipe, const struct lac_flop_call *call)
{
    bool is_back = ops[recipe->op].kind == LAC_FLOP_CONV_BACK;
    const int64_t *const shapes[2] = {call->shape[is_back ? 2 : 0], call->shape[1]};
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < 2; i++) {
        for (int d = 0; d < LAC_FLOP_DIMS; d++) {
            key = (key ^ (uint64_t)shapes[i][d]) * UINT64_C(0x9e3779b97f4a7c15);
            key ^= key >> 32;
        }
    }
    return key != 0 ? key : 1;
}
