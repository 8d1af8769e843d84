/* Settings and facts that differ. Facts are what the trace says of host, devices and recording. */

#include "analysis/compare/compare.h"
#include "analysis/compare/compare_private.h"
#include "analysis/compare/settings_flat.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS_MAX = 512, KEY_BYTES = 96, VALUE_BYTES = 120 };

struct pair {
    char key[KEY_BYTES];
    char value[VALUE_BYTES];
    bool is_setting;
};

struct pairs {
    struct pair *at;
    uint32_t count;
};

static void add(struct pairs *pairs, bool is_setting, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void add(struct pairs *pairs, bool is_setting, const char *key, const char *fmt, ...)
{
    for (uint32_t i = 0; i < pairs->count; i++) {
        if (strcmp(pairs->at[i].key, key) == 0) {
            return;
        }
    }
    if (pairs->count == PAIRS_MAX) {
        return;
    }
    struct pair *pair = &pairs->at[pairs->count++];
    va_list list;
    va_start(list, fmt);
    pair->is_setting = is_setting;
    (void)snprintf(pair->key, sizeof(pair->key), "%s", key);
    (void)vsnprintf(pair->value, sizeof(pair->value), fmt, list);
    va_end(list);
}

/* -- facts --------------------------------------------------------------------------------- */

static void add_facts(struct pairs *pairs, const struct lac_compare_side *side)
{
    const struct lac_model *model = side->model;
    const struct lac_analysis *analysis = side->analysis;
    if (analysis->batch_size != LAC_UNKNOWN_NS) {
        add(pairs, true, "batch_size", "%lld", (long long)analysis->batch_size);
    }
    if (analysis->loader.num_workers >= 0 && !analysis->loader.are_workers_inferred) {
        add(pairs, true, "num_workers", "%d", (int)analysis->loader.num_workers);
    } else if (analysis->loader.is_present) {
        add(pairs, true, "num_workers", "1 or more (how many is not recorded)");
    }
    if (model->info.world_size >= 0) {
        add(pairs, true, "world_size", "%d", (int)model->info.world_size);
    }
    if (model->info.rank >= 0) {
        add(pairs, false, "rank", "%d", (int)model->info.rank);
    }
    if (model->info.host != 0) {
        add(pairs, false, "host", "%s", lac_model_str(model, model->info.host));
    }
    if (isfinite(analysis->throughput_per_s)) { /* unlike ones are compared in steps */
        add(pairs, false, "throughput counts", "%s", lac_rate_unit(analysis));
    }
    add(pairs, false, "recorded by", "%s", lac_trace_format_name(model->info.format));
    add(pairs, false, "Python stacks", "%s", model->info.has_python_stacks ? "on" : "off");
    add(pairs, false, "simulated", "%s", model->info.is_simulated ? "yes" : "no");
    if (analysis->device_count > 0) {
        add(pairs, false, "GPUs in the trace", "%u", (unsigned)analysis->device_count);
        uint32_t device = analysis->main_device;
        uint32_t name = device != LAC_NONE ? analysis->devices[device].name : 0;
        if (name != 0) {
            add(pairs, false, "GPU", "%s", lac_model_str(model, name));
        }
    }
}

static void add_setting(void *context, const char *key, const char *value)
{
    add(context, true, key, "%s", value);
}

/** Whether the job's settings were recorded: then what its kernels show says nothing new. */
static bool has_recorded(const struct pairs *pairs)
{
    for (uint32_t i = 0; i < pairs->count; i++) {
        bool is_measured = strcmp(pairs->at[i].key, "num_workers") == 0 ||
                           strcmp(pairs->at[i].key, "batch_size") == 0 ||
                           strcmp(pairs->at[i].key, "world_size") == 0;
        if (pairs->at[i].is_setting && !is_measured) {
            return true;
        }
    }
    return false;
}

static void add_traits(const struct lac_compare_side sides[2], struct pairs *a, struct pairs *b)
{
    struct lac_compare_trait traits[LAC_COMPARE_TRAITS];
    if (has_recorded(a) && has_recorded(b)) {
        return;
    }
    lac_compare_traits(sides, traits);
    for (int i = 0; i < LAC_COMPARE_TRAITS; i++) {
        if (traits[i].value[0][0] != '\0') {
            add(a, true, traits[i].key, "%s", traits[i].value[0]);
            add(b, true, traits[i].key, "%s", traits[i].value[1]);
        }
    }
}

/** How many batches make an update, where both traces tell and nobody wrote it down. */
static void add_accumulation(const struct lac_compare_side sides[2], struct pairs *a,
                             struct pairs *b)
{
    struct pairs *const both[] = {a, b};
    uint32_t counts[2];
    for (int i = 0; i < 2; i++) {
        counts[i] = sides[i].analysis->micro_step_count;
        for (uint32_t k = 0; k < both[i]->count; k++) {
            if (strstr(both[i]->at[k].key, "accumul") != NULL) {
                return;
            }
        }
    }
    if (counts[0] > 0 && counts[1] > 0) {
        add(a, true, "gradient accumulation", "%u", (unsigned)counts[0]);
        add(b, true, "gradient accumulation", "%u", (unsigned)counts[1]);
    }
}

static enum lac_status pairs_init(struct pairs *pairs, const struct lac_compare_side *side)
{
    *pairs = (struct pairs){.at = calloc(PAIRS_MAX, sizeof(*pairs->at))};
    if (pairs->at == NULL) {
        return LAC_ERR_NOMEM;
    }
    lac_settings_each(&side->model->settings, add_setting, pairs);
    add_facts(pairs, side);
    return LAC_OK;
}

static const struct pair *find(const struct pairs *pairs, const char *key)
{
    for (uint32_t i = 0; i < pairs->count; i++) {
        if (strcmp(pairs->at[i].key, key) == 0) {
            return &pairs->at[i];
        }
    }
    return NULL;
}

/* -- differences --------------------------------------------------------------------------- */

static void differ(struct lac_comparison *comparison, const struct pair *a, const struct pair *b)
{
    static const char unknown[] = "not recorded";
    const struct pair *either = a != NULL ? a : b;
    if (comparison->difference_count == LAC_COMPARE_DIFFERENCES_MAX) {
        comparison->differences_beyond++;
        comparison->change_count++;
        return;
    }
    struct lac_text **texts = &comparison->texts;
    bool is_known = a != NULL && b != NULL;
    comparison->differences[comparison->difference_count++] = (struct lac_compare_difference){
        .key = lac_texts_add(texts, "%s", either->key),
        .a = a != NULL ? lac_texts_add(texts, "%s", a->value) : unknown,
        .b = b != NULL ? lac_texts_add(texts, "%s", b->value) : unknown,
        .is_setting = either->is_setting,
        .is_known = is_known,
    };
    comparison->setting_count += either->is_setting && is_known;
    comparison->change_count += is_known;
}

/** Settings first, in the order of A, then those of B alone; facts after them. */
static void compare_pairs(struct lac_comparison *comparison, const struct pairs *a,
                          const struct pairs *b)
{
    for (int pass = 0; pass < 2; pass++) {
        bool is_setting = pass == 0;
        for (uint32_t i = 0; i < a->count; i++) {
            const struct pair *other = find(b, a->at[i].key);
            if (a->at[i].is_setting == is_setting &&
                (other == NULL || strcmp(other->value, a->at[i].value) != 0)) {
                differ(comparison, &a->at[i], other);
            }
        }
        for (uint32_t i = 0; i < b->count; i++) {
            if (b->at[i].is_setting == is_setting && find(a, b->at[i].key) == NULL) {
                differ(comparison, NULL, &b->at[i]);
            }
        }
    }
}

void lac_compare_say_changed(struct lac_comparison *comparison)
{
    struct lac_text **texts = &comparison->texts;
    char list[512] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < comparison->difference_count; i++) {
        const struct lac_compare_difference *it = &comparison->differences[i];
        if (!it->is_known) {
            continue;
        }
        int length = snprintf(list + used, sizeof(list) - used, "%s%s %s -> %s",
                              used > 0 ? ", " : "", it->key, it->a, it->b);
        if (length < 0 || (size_t)length >= sizeof(list) - used - 8) {
            (void)snprintf(list + used, sizeof(list) - used, " ...");
            break;
        }
        used += (size_t)length;
    }
    if (comparison->relation == LAC_COMPARE_RANKS) {
        comparison->changed =
            lac_texts_add(texts, "%s: nothing was changed between them%s%s",
                          comparison->is_one_run ? "two ranks of one run" : "two ranks",
                          list[0] != '\0' ? "; " : "", list);
    } else if (comparison->relation == LAC_COMPARE_HARDWARE) {
        comparison->changed = lac_texts_add(texts, "hardware against hardware: %s", list);
    } else if (comparison->change_count == 0) {
        comparison->changed =
            comparison->difference_count > 0 ? "nothing recorded in both" : "no recorded setting";
    } else if (comparison->change_count == 1 && !comparison->is_one_change) {
        comparison->changed =
            lac_texts_add(texts, "%s; the rest is not recorded on both sides", list);
    } else if (comparison->is_one_change) {
        comparison->changed = lac_texts_add(texts, "%s (one change)", list);
    } else {
        comparison->changed =
            lac_texts_add(texts, "%u changes: %s. The difference has no single cause",
                          (unsigned)comparison->change_count, list);
    }
}

enum lac_status lac_compare_differences(const struct lac_compare_side *a,
                                        const struct lac_compare_side *b,
                                        struct lac_comparison *comparison)
{
    struct pairs of_a = {0};
    struct pairs of_b = {0};
    enum lac_status status = pairs_init(&of_a, a);
    if (!status) {
        status = pairs_init(&of_b, b);
    }
    if (!status) {
        const struct lac_compare_side sides[] = {*a, *b};
        add_traits(sides, &of_a, &of_b);
        add_accumulation(sides, &of_a, &of_b);
        compare_pairs(comparison, &of_a, &of_b);
    }
    free(of_a.at);
    free(of_b.at);
    return status;
}
