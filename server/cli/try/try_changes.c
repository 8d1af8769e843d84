#include "server/cli/try/try_changes.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values are a number from `least` to `most`, or one of `words`. */
static const struct change {
    const char *key, *words;
    int64_t least, most;
    bool is_predictable; /* `--what-if` has a key of this name */
} known[] = {
    {"workers", NULL, 0, 4096, true},       {"pinned", NULL, 0, 1, true},
    {"prefetch", NULL, 1, 1024, false},     {"persistent", NULL, 0, 1, false},
    {"batch", "cached", 0, 0, false},       {"tf32", NULL, 0, 1, false},
    {"cudnn_benchmark", NULL, 0, 1, false}, {"optimizer", "foreach|fused", 0, 0, false},
    {"threads", NULL, 1, 4096, false},
};

/* Changes that need a line of the script. */
static const struct edit {
    const char *key, *line;
} edits[] = {
    {"async", "a prefetcher on a stream of its own: lacuna explain blocking-copy"},
    {"layout", "model.to(memory_format=torch.channels_last): lacuna explain layout-conversion"},
    {"compile", "model = torch.compile(model): lacuna explain launch-bound"},
    {"launch", "torch.compile(model, mode=\"reduce-overhead\"): lacuna explain launch-bound"},
    {"sync", "without .item() or .cpu() in each step: lacuna explain sync-stall"},
    {"allocator", "PYTORCH_CUDA_ALLOC_CONF, or sizes that repeat: lacuna explain allocator-thrash"},
    {"module_load", "a warm-up before training: lacuna explain module-load"},
    {"comm", "the wrapper of the model: lacuna explain exposed-communication"},
    {"kernels", "the kernels themselves: lacuna explain gpu-bound"},
    {"batch_size", "the loader and the learning rate with it"},
};

static bool is_one_of(const char *words, const char *value)
{
    const size_t length = strlen(value);
    for (const char *word = words; word != NULL; word = strchr(word, '|')) {
        word += *word == '|';
        if (strcspn(word, "|") == length && strncmp(word, value, length) == 0) {
            return length > 0;
        }
    }
    return false;
}

static bool is_number_of(const struct change *change, const char *value, int64_t *ret_number)
{
    char *end = NULL;
    if (value[0] < '0' || value[0] > '9' || strlen(value) > 6) {
        return false;
    }
    *ret_number = strtoll(value, &end, 10);
    return *end == '\0' && *ret_number >= change->least && *ret_number <= change->most;
}

static enum lac_status refuse_key(const char *key, struct lac_error *reterr)
{
    for (size_t i = 0; i < LAC_COUNT_OF(edits); i++) {
        if (strcmp(edits[i].key, key) == 0) {
            return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                            "%s cannot be changed from outside, edit the script (%s), then: "
                            "lacuna compare",
                            key, edits[i].line);
        }
    }
    return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                    "%.40s: unknown change; there are: workers=N pinned=1 prefetch=N persistent=1 "
                    "batch=cached tf32=1 cudnn_benchmark=1 optimizer=foreach|fused threads=N",
                    key);
}

static enum lac_status refuse_value(const struct change *change, struct lac_error *reterr)
{
    if (change->words != NULL) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "%s must be %s", change->key, change->words);
    }
    return lac_fail(reterr, LAC_ERR_MISUSE, 0, "%s must be a number from %lld to %lld", change->key,
                    (long long)change->least, (long long)change->most);
}

static void append(char *list, const char *key, const char *value)
{
    const size_t used = strlen(list);
    (void)snprintf(list + used, LAC_TRY_TEXT_BYTES - used, "%s%s=%s", used > 0 ? "," : "", key,
                   value);
}

static enum lac_status take(const char *key, const char *value, struct lac_try_changes *changes,
                            struct lac_error *reterr)
{
    const struct change *change = NULL;
    int64_t number = 0;
    for (size_t i = 0; i < LAC_COUNT_OF(known); i++) {
        change = strcmp(known[i].key, key) == 0 ? &known[i] : change;
    }
    if (change == NULL) {
        return refuse_key(key, reterr);
    }
    for (uint32_t i = 0; i < changes->count; i++) {
        if (changes->key[i] == change->key) {
            return lac_fail(reterr, LAC_ERR_MISUSE, 0, "%s is given twice", key);
        }
    }
    if (change->words != NULL ? !is_one_of(change->words, value)
                              : !is_number_of(change, value, &number)) {
        return refuse_value(change, reterr);
    }
    changes->key[changes->count++] = change->key;
    changes->threads = strcmp(key, "threads") == 0 ? number : changes->threads;
    append(changes->text, key, value);
    return LAC_OK;
}

/* A replay answers for all of them or for none: one that it leaves out may be the one that counts. */
static void find_what_if(struct lac_try_changes *changes)
{
    for (uint32_t i = 0; i < changes->count; i++) {
        for (size_t k = 0; k < LAC_COUNT_OF(known); k++) {
            if (known[k].key == changes->key[i] && !known[k].is_predictable) {
                return;
            }
        }
    }
    if (strstr(changes->text, "pinned=0") == NULL) {
        memcpy(changes->what_if, changes->text, sizeof(changes->what_if));
    }
}

enum lac_status lac_try_changes_parse(const char *text, struct lac_try_changes *ret_changes,
                                      struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;
    char rest[LAC_TRY_TEXT_BYTES];
    *ret_changes = (struct lac_try_changes){.count = 0};
    if (strlen(text) >= sizeof(rest)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "too many changes");
    }
    memcpy(rest, text, strlen(text) + 1);
    for (char *item = rest; item != NULL && !status;) {
        char *next = strchr(item, ',');
        if (next != NULL) {
            *next++ = '\0';
        }
        char *value = strchr(item, '=');
        if (value == NULL) {
            return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                            "'%.40s' is no change: give KEY=VALUE, such as workers=7", item);
        }
        *value++ = '\0';
        status = take(item, value, ret_changes, reterr);
        item = next;
    }
    if (!status) {
        find_what_if(ret_changes);
    }
    return status;
}
