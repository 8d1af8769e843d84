/*
 * Any lines as mangled names: each stands for a bounded ASCII text or is not understood, and the
 * same one stands for the same text again, whatever was asked between.
 */

#include "analysis/demangle/demangle.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(struct lac_demangler *demangler, const char *name, size_t length)
{
    size_t first_length = 0;
    size_t again_length = 0;
    const char *text = lac_demangle(demangler, name, length, &first_length);
    char *first;

    if (text == NULL) {
        return;
    }
    require(lac_is_mangled(name, length) && first_length <= 65536);
    for (size_t i = 0; i < first_length; i++) {
        require(text[i] >= ' ' && text[i] <= '~');
    }
    first = malloc(first_length + 1);
    require(first != NULL);
    memcpy(first, text, first_length);
    (void)lac_demangle(demangler, "_Z1fILi1EEvv", 12, &again_length);
    text = lac_demangle(demangler, name, length, &again_length);
    require(text == NULL /* the work is used up */ ||
            (again_length == first_length && memcmp(text, first, first_length) == 0));
    free(first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lac_demangler *const demangler = lac_demangler_create();
    char *const text = malloc(size + 3);
    size_t from = 0;

    require(demangler != NULL && text != NULL);
    for (size_t i = 0; i <= size; i++) {
        if (i == size || data[i] == '\n') {
            memcpy(text, "_Z", 2);
            memcpy(text + 2, data + from, i - from);
            ask(demangler, text, i - from + 2);
            from = i + 1;
        }
    }
    lac_demangler_destroy(demangler);
    free(text);
    return 0;
}
