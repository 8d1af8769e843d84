#include "analysis/import/text/number_args.h"

#include "analysis/model/args.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

void lac_number_args_add(struct lac_number_args *arguments, const char *name, int64_t value)
{
    const size_t room = sizeof(arguments->text) - arguments->used - 1; /* the end takes one */
    const size_t size = strlen(name);
    char *to = arguments->text + arguments->used;

    if (size + 5 >= room || arguments->count == LAC_NUMBER_ARGS_MAX) {
        return;
    }
    *to++ = arguments->count > 0 ? ',' : '{';
    *to++ = '"';
    memcpy(to, name, size);
    to += size;
    *to++ = '"';
    *to++ = ':';
    *to = LAC_ARG_INTEGER;
    arguments->used += size + 5;
    arguments->numbers[arguments->count++] = value;
}

enum lac_status lac_number_args_store(struct lac_number_args *arguments,
                                      struct lac_builder *builder, struct lac_slice_in *slice)
{
    struct lac_model *const model = lac_builder_model(builder);
    enum lac_status status;

    if (arguments->count == 0) {
        return LAC_OK;
    }
    arguments->text[arguments->used++] = '}';
    status = lac_strings_intern(&model->strings, arguments->text, arguments->used, &slice->args);
    return status != LAC_OK ? status
                            : lac_builder_arg_numbers(builder, arguments->numbers, arguments->count,
                                                      &slice->arg_num);
}
