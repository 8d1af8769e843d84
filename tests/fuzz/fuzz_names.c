/*
 * Any bytes as a file of names: it is refused in a sentence that names a line, or each of its rows
 * finds its own example, and what they say of any name is a class that there is. A file that was
 * taken is taken again with a comment before it.
 */

#include "analysis/diagnose/names/names.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct lac_names *names, const char *name, size_t length)
{
    struct lac_name_class is;
    lac_names_classify_with(names, name, length, &is);
    require(is.family < LAC_FAMILY_COUNT_ && is.layout < LAC_LAYOUT_CLASS_COUNT_);
    require(is.tensor_core <= LAC_TENSOR_CORE_YES);
    require(lac_names_api_class_with(names, name, length) < LAC_API_CLASS_COUNT_);
    require(lac_names_host_class_with(names, name, length) < LAC_HOST_CLASS_COUNT_);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char comment[] = "# ours\n";
    struct lac_names *names = NULL;
    struct lac_error error = {0};
    if (size > LAC_NAMES_FILE_BYTES_MAX) {
        return 0;
    }
    char *text = malloc(size + sizeof(comment));
    require(text != NULL);
    memcpy(text, data, size);
    enum lac_status status = lac_names_parse(text, size, &names, &error);
    require((status == LAC_OK) == (names != NULL));
    if (status != LAC_OK) {
        require(status == LAC_ERR_LIMIT || strstr(error.message, "line ") != NULL);
        free(text);
        return 0;
    }
    /* names from the file itself, which come nearest to its patterns */
    for (size_t at = 0; at < size && at < 512; at += 7) {
        ask(names, text + at, size - at < 64 ? size - at : 64);
    }
    ask(names, "ampere_sgemm_32x32_sliced1x4_nn", 31);
    ask(names, "", 0);
    lac_names_destroy(names);
    memcpy(text, comment, sizeof(comment) - 1);
    memcpy(text + sizeof(comment) - 1, data, size);
    names = NULL;
    if (size + sizeof(comment) - 1 <= LAC_NAMES_FILE_BYTES_MAX) {
        require(lac_names_parse(text, size + sizeof(comment) - 1, &names, &error) == LAC_OK);
        lac_names_destroy(names);
    }
    free(text);
    return 0;
}
