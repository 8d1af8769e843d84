/* Changes to try on the re-timed steps: "workers=4,pinned=1". */

#include "analysis/diagnose/result/what_if.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void lac_what_if_clear(struct lac_what_if_changes *changes)
{
    *changes = (struct lac_what_if_changes){
        .workers = LAC_WHAT_IF_UNSET,
        .layout_nhwc = LAC_WHAT_IF_UNSET,
        .pinned = LAC_WHAT_IF_UNSET,
        .async_copies = LAC_WHAT_IF_UNSET,
        .no_sync = LAC_WHAT_IF_UNSET,
        .no_allocator = LAC_WHAT_IF_UNSET,
        .no_module_load = LAC_WHAT_IF_UNSET,
        .no_launch = LAC_WHAT_IF_UNSET,
        .comm = -1.0,
        .kernels = -1.0,
    };
}

/** One "key=value" of at most 63 bytes. */
struct pair {
    char key[64];
    const char *value; /**< inside key, after its NUL */
};

static enum lac_status misuse(struct lac_error *reterr, const char *key, const char *wants)
{
    return lac_fail(reterr, LAC_ERR_MISUSE, 0, "--what-if %.40s: %s", key, wants);
}

static bool read_factor(const char *text, double *ret_factor)
{
    char *end = NULL;
    errno = 0;
    double value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !isfinite(value) || value < 0.0 ||
        value > 1000.0) {
        return false;
    }
    *ret_factor = value;
    return true;
}

static enum lac_status apply_factor(const struct pair *pair, double *ret_factor,
                                    struct lac_error *reterr)
{
    if (!read_factor(pair->value, ret_factor)) {
        return misuse(reterr, pair->key, "must be a factor from 0 to 1000, such as 0.5");
    }
    return LAC_OK;
}

/** Keys that are on or off; `on_text` is the only value they take. */
static enum lac_status apply_switch(const struct pair *pair, struct lac_what_if_changes *changes,
                                    struct lac_error *reterr)
{
    const struct {
        const char *key, *on_text;
        int8_t *field;
    } switches[] = {
        {"layout", "nhwc", &changes->layout_nhwc},  {"pinned", "1", &changes->pinned},
        {"async", "1", &changes->async_copies},     {"sync", "0", &changes->no_sync},
        {"allocator", "0", &changes->no_allocator}, {"module_load", "0", &changes->no_module_load},
        {"launch", "0", &changes->no_launch},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(switches); i++) {
        if (strcmp(pair->key, switches[i].key) != 0) {
            continue;
        }
        if (strcmp(pair->value, switches[i].on_text) != 0) {
            return lac_fail(reterr, LAC_ERR_MISUSE, 0, "--what-if %s: the only value is %s=%s",
                            pair->key, pair->key, switches[i].on_text);
        }
        *switches[i].field = 1;
        return LAC_OK;
    }
    return misuse(reterr, pair->key,
                  "unknown key; available: workers=N layout=nhwc pinned=1 async=1 sync=0 "
                  "allocator=0 module_load=0 launch=0 comm=X kernels=X");
}

static enum lac_status apply(const struct pair *pair, struct lac_what_if_changes *changes,
                             struct lac_error *reterr)
{
    if (strcmp(pair->key, "workers") == 0) {
        char *end = NULL;
        long workers = strtol(pair->value, &end, 10);
        if (end == pair->value || *end != '\0' || workers < 0 || workers > 4096) {
            return misuse(reterr, pair->key, "must be a number of workers from 0 to 4096");
        }
        changes->workers = (int32_t)workers;
        return LAC_OK;
    }
    if (strcmp(pair->key, "comm") == 0) {
        return apply_factor(pair, &changes->comm, reterr);
    }
    if (strcmp(pair->key, "kernels") == 0) {
        return apply_factor(pair, &changes->kernels, reterr);
    }
    return apply_switch(pair, changes, reterr);
}

enum lac_status lac_what_if_parse(const char *text, struct lac_what_if_changes *ret_changes,
                                  struct lac_error *reterr)
{
    assert(text != NULL && ret_changes != NULL);
    struct lac_what_if_changes changes;
    lac_what_if_clear(&changes);
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        struct pair pair;
        if (length >= sizeof(pair.key)) {
            return misuse(reterr, text, "too long for a key=value");
        }
        memcpy(pair.key, text, length);
        pair.key[length] = '\0';
        char *equals = strchr(pair.key, '=');
        if (equals == NULL) {
            return misuse(reterr, pair.key, "must be key=value, such as workers=4");
        }
        *equals = '\0';
        pair.value = equals + 1;
        enum lac_status status = apply(&pair, &changes, reterr);
        if (status) {
            return status;
        }
        text += length;
        text += *text == ',';
    }
    *ret_changes = changes;
    return LAC_OK;
}
