/*
 * Whether the training comes to the same: loss, accuracy and their like, where the trace carries
 * them, as a counter or in the names of ranges ("loss: 1.83"). The ends are compared: the mean of
 * the last tenth of the values, against how much A's own values there spread.
 */

#include "analysis/compare/compare.h"
#include "analysis/compare/compare_private.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const metrics[] = {"loss", "accuracy", "perplexity", "acc1", "top1", "bleu"};

const char *lac_compare_metric_name(int metric)
{
    return metrics[metric];
}
enum { VALUES_MIN = 3 };
_Static_assert(LAC_COUNT_OF(metrics) == LAC_COMPARE_METRIC_COUNT, "one end each");

/** Values in the order of time. */
struct values {
    struct value {
        int64_t t_ns;
        double value;
    } * at;
    uint64_t count, capacity;
};

static enum lac_status add_value(struct values *values, int64_t t_ns, double value)
{
    if (!LAC_RESERVE(values->at, values->capacity, values->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    values->at[values->count++] = (struct value){t_ns, value};
    return LAC_OK;
}

/** Where the word stands in the text, on its own, or NULL; the end of it. */
static const char *after_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; *at != '\0'; at++) {
        size_t i = 0;
        while (i < length && tolower((unsigned char)at[i]) == word[i]) {
            i++;
        }
        bool is_whole = i == length && (at == text || !isalnum((unsigned char)at[-1])) &&
                        !isalnum((unsigned char)at[length]);
        if (is_whole) {
            return at + length;
        }
    }
    return NULL;
}

/** The number of "loss: 1.83" or "loss=1.83", or NaN. */
static double number_in(const char *text, const char *metric)
{
    const char *at = after_word(text, metric);
    if (at == NULL || strchr("=: ", *at) == NULL || *at == '\0') {
        return (double)NAN;
    }
    at += strspn(at, "=: ");
    size_t digits = strspn(at, "+-.0123456789eE");
    char number[40];
    if (digits == 0 || digits >= sizeof(number)) {
        return (double)NAN;
    }
    (void)snprintf(number, sizeof(number), "%.*s", (int)digits, at);
    char *end = NULL;
    double value = strtod(number, &end);
    return end != number && *end == '\0' && isfinite(value) ? value : (double)NAN;
}

/** Whether the counter is called so: `loss` and not `val_loss`, where there is both. */
static bool is_named(const struct lac_model *model, const struct lac_track *track,
                     const char *metric, bool is_whole)
{
    const char *name = lac_model_str(model, track->name);
    if (is_whole) {
        return strcasecmp(name, metric) == 0;
    }
    return after_word(name, metric) != NULL ||
           after_word(lac_model_str(model, track->id_text), metric) != NULL;
}

/** Samples of the first counter that is named so. */
static enum lac_status from_counters(const struct lac_model *model, const char *metric,
                                     bool is_whole, struct values *values)
{
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind != LAC_TRACK_COUNTER || values->count > 0 ||
            !is_named(model, track, metric, is_whole)) {
            continue;
        }
        for (uint64_t s = track->first; s < track->first + track->count; s++) {
            enum lac_status status =
                isfinite(model->sample_value[s])
                    ? add_value(values, model->sample_ts_ns[s], model->sample_value[s])
                    : LAC_OK;
            if (status) {
                return status;
            }
        }
    }
    return LAC_OK;
}

static int by_time(const void *a, const void *b)
{
    const struct value *x = a;
    const struct value *y = b;
    const int order = LAC_ORDER(x->t_ns, y->t_ns);
    return order != 0 ? order : LAC_ORDER(x->value, y->value);
}

/** Numbers in the names of ranges and marks. */
static enum lac_status from_names(const struct lac_model *model, const char *metric,
                                  struct values *values)
{
    const struct lac_slices *slices = &model->slices;
    double *of_name = malloc(((size_t)model->strings.count + 1) * sizeof(*of_name));
    bool has_any = false;
    enum lac_status status = of_name != NULL ? LAC_OK : LAC_ERR_NOMEM;
    for (uint32_t id = 0; id < model->strings.count && !status; id++) {
        of_name[id] = number_in(lac_strings_get(&model->strings, id), metric);
        has_any = has_any || isfinite(of_name[id]);
    }
    for (uint32_t t = 0; t < model->recorded_track_count && has_any && !status; t++) {
        const struct lac_track *track = &model->tracks[t];
        bool is_host = track->kind == LAC_TRACK_THREAD || track->kind == LAC_TRACK_MARKS;
        for (uint64_t s = track->first; is_host && s < track->first + track->count && !status;
             s++) {
            double value = of_name[slices->name[s]];
            if (isfinite(value)) {
                status = add_value(values, slices->start_ns[s], value);
            }
        }
    }
    free(of_name);
    if (values->count > 1) {
        qsort(values->at, values->count, sizeof(*values->at), by_time);
    }
    return status;
}

/** Mean and standard deviation of the last tenth, three values at least. */
static struct lac_compare_end end_of(const struct values *values)
{
    struct lac_compare_end end = {values->count, (double)NAN, (double)NAN};
    uint64_t count = values->count / 10 > VALUES_MIN ? values->count / 10 : VALUES_MIN;
    count = count < values->count ? count : values->count;
    if (count == 0) {
        return end;
    }
    double sum = 0.0;
    double squares = 0.0;
    for (uint64_t i = values->count - count; i < values->count; i++) {
        sum += values->at[i].value;
    }
    end.mean = sum / (double)count;
    for (uint64_t i = values->count - count; i < values->count; i++) {
        double away = values->at[i].value - end.mean;
        squares += away * away;
    }
    end.spread = count > 1 ? sqrt(squares / (double)(count - 1)) : 0.0;
    return end;
}

enum lac_status lac_compare_ends(const struct lac_model *model, struct lac_compare_end *ends)
{
    enum lac_status status = LAC_OK;
    for (int metric = 0; metric < LAC_COMPARE_METRIC_COUNT && !status; metric++) {
        struct values values = {0};
        status = from_counters(model, metrics[metric], true, &values);
        if (!status && values.count == 0) {
            status = from_counters(model, metrics[metric], false, &values);
        }
        if (!status && values.count == 0) {
            status = from_names(model, metrics[metric], &values);
        }
        ends[metric] = end_of(&values);
        free(values.at);
    }
    return status;
}

static void judge(struct lac_comparison *comparison, const char *metric,
                  const struct lac_compare_end *a, const struct lac_compare_end *b)
{
    struct lac_compare_result_metric *it = &comparison->result;
    /* twice the spread, and never less than what is printed */
    double room = 2.0 * a->spread > 2.0 * b->spread ? 2.0 * a->spread : 2.0 * b->spread;
    double least = 0.001 * fabs(a->mean);
    room = room > least ? room : least;
    it->is_known = true;
    it->name = metric;
    it->value[0] = a->mean;
    it->value[1] = b->mean;
    it->spread = a->spread;
    it->is_same = fabs(b->mean - a->mean) <= room;
    it->text =
        lac_texts_add(&comparison->texts, "%s at the end: %.4g / %.4g, %s", metric, it->value[0],
                      it->value[1], it->is_same ? "within its spread" : "outside its spread");
}

void lac_compare_outcome(const struct lac_compare_facts *a, const struct lac_compare_facts *b,
                         struct lac_comparison *comparison)
{
    comparison->result.text = "no loss or accuracy counter that both traces have";
    comparison->result.value[0] = comparison->result.value[1] = (double)NAN;
    comparison->result.spread = (double)NAN;
    for (int metric = 0; metric < LAC_COMPARE_METRIC_COUNT && !comparison->result.is_known;
         metric++) {
        if (a->ends[metric].count >= VALUES_MIN && b->ends[metric].count >= VALUES_MIN) {
            judge(comparison, metrics[metric], &a->ends[metric], &b->ends[metric]);
        }
    }
}
