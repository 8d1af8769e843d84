#include "analysis/diagnose/names/op_shapes.h"

#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS_BYTES = 8192 };

/** One list of numbers at *at ("[8, 64]"); *at moves behind it. False when it is none. */
static bool read_shape(const char **at, struct lac_shape *ret_shape)
{
    const char *c = *at;
    *ret_shape = (struct lac_shape){0};
    if (*c != '[') {
        return false;
    }
    c++;
    while (*c != ']') {
        char *end = NULL;
        long long size = strtoll(c, &end, 10);
        if (end == c || size < 0) {
            return false;
        }
        if (ret_shape->count < LAC_SHAPE_DIMS) {
            ret_shape->dims[ret_shape->count] = size;
        }
        ret_shape->count++;
        c = end + strspn(end, " ");
        c += *c == ',';
        c += strspn(c, " ");
    }
    ret_shape->count = ret_shape->count <= LAC_SHAPE_DIMS ? ret_shape->count : 0;
    *at = c + 1;
    return true;
}

bool lac_op_shapes(const struct lac_model *model, uint64_t slice,
                   struct lac_shape ret_inputs[LAC_SHAPE_INPUTS])
{
    static const char key[] = "\"Input Dims\":";
    char text[ARGS_BYTES];
    if (model->slices.args[slice] == 0 ||
        lac_args_format(model, slice, text, sizeof(text)) >= sizeof(text)) {
        return false;
    }
    const char *at = strcasestr(text, key);
    if (at == NULL) {
        return false;
    }
    at += sizeof(key) - 1;
    at += strspn(at, " ");
    if (*at++ != '[') {
        return false;
    }
    bool has_any = false;
    for (int i = 0; i < LAC_SHAPE_INPUTS; i++) {
        ret_inputs[i] = (struct lac_shape){0};
        at += strspn(at, " ");
        if (read_shape(&at, &ret_inputs[i])) {
            has_any = has_any || ret_inputs[i].count > 0;
            at += strspn(at, " ");
            at += *at == ',';
        }
    }
    return has_any;
}

bool lac_op_product(const char *name, const struct lac_shape inputs[LAC_SHAPE_INPUTS],
                    struct lac_product *ret_product)
{
    static const char *const added[] = {"aten::addmm", "aten::baddbmm", "aten::_addmm_activation"};
    static const char *const plain[] = {"aten::mm", "aten::bmm", "aten::matmul"};
    int first = -1;
    for (size_t i = 0; i < LAC_COUNT_OF(added); i++) {
        first = strcmp(name, added[i]) == 0 ? 1 : first;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(plain); i++) {
        first = strcmp(name, plain[i]) == 0 ? 0 : first;
    }
    if (first >= 0) {
        const struct lac_shape *a = &inputs[first];
        const struct lac_shape *b = &inputs[first + 1];
        if (a->count < 2 || b->count < 2 || a->dims[a->count - 1] != b->dims[b->count - 2]) {
            return false;
        }
        *ret_product = (struct lac_product){
            {"M", "N", "K"}, {a->dims[a->count - 2], b->dims[b->count - 1], a->dims[a->count - 1]}};
        return true;
    }
    if (strstr(name, "conv") != NULL && strstr(name, "backward") == NULL && inputs[0].count >= 3 &&
        inputs[1].count == inputs[0].count) {
        *ret_product =
            (struct lac_product){{"batch", "input channels", "output channels"},
                                 {inputs[0].dims[0], inputs[0].dims[1], inputs[1].dims[0]}};
        return true;
    }
    return false;
}

int64_t lac_kernel_alignment(const char *name)
{
    int64_t least = 0;
    for (const char *at = strstr(name, "align"); at != NULL; at = strstr(at + 5, "align")) {
        const char *digits = at + 5;
        digits += *digits == 'a' || *digits == 'b' || *digits == 'c';
        int64_t value = strtol(digits, NULL, 10);
        if (value > 0 && (least == 0 || value < least)) {
            least = value;
        }
    }
    return least;
}
