/* What a log of counters can say: how the GPUs' own counters were while it was taken. Utilization is
 * told with what it does not mean, and is no verdict. */

#include "analysis/diagnose/result/texts.h"
#include "analysis/diagnose/wording/wording.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/** A counter as its samples stood: each until the next one. */
struct stood {
    double sum, lowest, highest; /**< sum over counters of their means */
    uint32_t counters;
};

/** "GPU 0: power (W)" is named so of any GPU. */
static bool is_named(const struct lac_model *model, const struct lac_track *track, const char *what)
{
    const char *const name = lac_model_str(model, track->name);
    const char *const colon = strchr(name, ':');
    return track->kind == LAC_TRACK_COUNTER && track->device >= 0 && track->count > 0 &&
           colon != NULL && strcmp(colon, what) == 0;
}

static double mean_of(const struct lac_model *model, const struct lac_track *track)
{
    const uint64_t last = track->first + track->count - 1;
    double sum = 0.0;
    double span = 0.0;
    for (uint64_t i = track->first; i < last; i++) {
        const double dur = (double)(model->sample_ts_ns[i + 1] - model->sample_ts_ns[i]);
        sum += model->sample_value[i] * dur;
        span += dur;
    }
    return span > 0.0 ? sum / span : model->sample_value[last];
}

static struct stood measure(const struct lac_model *model, const char *what)
{
    struct stood stood = {.lowest = (double)INFINITY, .highest = -(double)INFINITY};
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *const track = &model->tracks[t];
        if (!is_named(model, track, what)) {
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            stood.lowest = fmin(stood.lowest, model->sample_value[i]);
            stood.highest = fmax(stood.highest, model->sample_value[i]);
        }
        stood.sum += mean_of(model, track);
        stood.counters++;
    }
    return stood;
}

/** NVML's reasons for lower clocks that are power and heat; idleness and settings are others. */
enum { REASONS_OF_NEED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80 };

/** How much of the time power or heat held the clocks down, of all GPUs, in percent. */
static double share_held_down(const struct lac_model *model)
{
    double held = 0.0;
    double span = 0.0;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *const track = &model->tracks[t];
        for (uint64_t i = track->first; is_named(model, track, ": clocks held down (reasons)") &&
                                        i + 1 < track->first + track->count;
             i++) {
            const double dur = (double)(model->sample_ts_ns[i + 1] - model->sample_ts_ns[i]);
            const double value = model->sample_value[i];
            const bool is_mask = value >= 0.0 && value < 0x1p32;
            held += is_mask && ((uint64_t)value & REASONS_OF_NEED) != 0 ? dur : 0.0;
            span += dur;
        }
    }
    return span > 0.0 ? 100.0 * held / span : 0.0;
}

/** "310 W", of a value that is a number. */
static const char *say_value(struct lac_facts *facts, double value, const char *unit)
{
    return isfinite(value) ? lac_texts_add(&facts->analysis->texts, "%.3g%s", value, unit) : "?";
}

static const char *say_counters(struct lac_facts *facts)
{
    static const struct {
        const char *what, *word, *unit;
        bool is_peak; /* the highest alone */
    } known[] = {
        {": GPU utilization (%)", "utilization", " %", false},
        {": power (W)", "power", " W", false},
        {": temperature (C)", "temperature at most", " C", true},
    };
    struct lac_text **const texts = &facts->analysis->texts;
    const char *said = "";
    for (size_t i = 0; i < LAC_COUNT_OF(known); i++) {
        const struct stood stood = measure(facts->model, known[i].what);
        if (stood.counters == 0) {
            continue;
        }
        const char *const separator = said[0] != '\0' ? "; " : "";
        const char *const high = say_value(facts, stood.highest, known[i].unit);
        if (known[i].is_peak) {
            said = lac_texts_add(texts, "%s%s%s %s", said, separator, known[i].word, high);
        } else {
            said = lac_texts_add(texts, "%s%s%s %s on average (%s to %s)", said, separator,
                                 known[i].word,
                                 say_value(facts, stood.sum / stood.counters, known[i].unit),
                                 say_value(facts, stood.lowest, known[i].unit), high);
        }
    }
    const struct stood memory = measure(facts->model, ": memory used (MB)");
    if (memory.counters > 0 && memory.highest >= 0.0 && memory.highest < 1e9) {
        said = lac_texts_add(texts, "%s%smemory at most %s", said, said[0] != '\0' ? "; " : "",
                             lac_format_bytes((int64_t)(memory.highest * 1e6)).text);
    }
    const double held = share_held_down(facts->model);
    if (held > 0.0) {
        said = lac_texts_add(texts, "%s%spower or heat held the clocks down for %s of the time",
                             said, said[0] != '\0' ? "; " : "", lac_format_pct(held).text);
    }
    return said;
}

/** Devices that have a counter; a machine has fewer than 64. */
static int64_t count_gpus(const struct lac_model *model)
{
    uint64_t seen = 0;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *const track = &model->tracks[t];
        if (track->kind == LAC_TRACK_COUNTER && track->device >= 0 && track->device < 64) {
            seen |= UINT64_C(1) << track->device;
        }
    }
    return __builtin_popcountll(seen);
}

/** nvidia-smi's columns have no names where its heading is missing. */
static bool lacks_heading(const struct lac_model *model)
{
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        if (strstr(lac_model_str(model, model->tracks[t].name), ": column ") != NULL) {
            return true;
        }
    }
    return false;
}

void lac_log_say(struct lac_facts *facts)
{
    const struct lac_model *const model = facts->model;
    struct lac_text **const texts = &facts->analysis->texts;
    struct lac_verdict *const verdict = &facts->analysis->verdict;
    const int64_t gpus = count_gpus(model);
    const char *const span =
        lac_texts_add(texts, "%s", lac_format_ns(model->info.duration_ns).text);
    const char *const said = say_counters(facts);
    const bool has_utilization = measure(model, ": GPU utilization (%)").counters > 0;

    verdict->text =
        gpus > 0
            ? lac_texts_add(texts, "a log of the counters of %s over %s, not of what %s ran",
                            lac_format_count(gpus, "GPU").text, span, gpus == 1 ? "it" : "they")
            : lac_texts_add(texts, "a log of counters of the host over %s", span);
    verdict->detail = lac_texts_add(
        texts, "%s%s%s%s%s--join shows it with the trace of the same job.",
        said[0] != '\0' ? "GPU " : "", said, said[0] != '\0' ? ". " : "",
        has_utilization ? "Utilization says that some kernel ran, not how much of a GPU it used. "
                        : "",
        lacks_heading(model)
            ? "Columns without a heading have no names: let nvidia-smi write it (--format=csv). "
            : "");
}
