/* Which lines the training thread was found in: one walk over its samples' rows. */

#include "analysis/diagnose/facts/recorded/python_samples.h"

#include "analysis/diagnose/facts/recorded/code_places.h"
#include "analysis/diagnose/names/python_frame.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOLD_MAX = 2,      /* lines in a sentence */
    TOLD_MIN_PCT = 10, /* of the samples, of each */
};

struct open_frame {
    int64_t end_ns;
    uint32_t line; /**< index, or LAC_NONE: it waits, or nobody's work */
    uint32_t slice;
};

struct walk {
    const struct lac_facts *facts;
    const struct lac_spans *inside;
    struct lac_python_lines *lines;
    uint32_t *line_of; /**< by string id: index + 1 */
    struct open_frame open[LAC_SAMPLED_DEPTH_MAX];
    uint32_t depth;
    int64_t at_ns;
};

static void give(struct walk *walk, const struct open_frame *top, int64_t end_ns)
{
    int64_t inside_ns = lac_spans_length_inside(walk->inside, walk->at_ns, end_ns);
    walk->lines->total_ns += end_ns - walk->at_ns;
    walk->lines->inside_ns += inside_ns;
    if (top->line == LAC_NONE) {
        return;
    }
    assert(walk->lines->at != NULL);
    const int64_t *dur_ns = walk->facts->model->slices.dur_ns;
    struct lac_python_line_time *line = &walk->lines->at[top->line];
    line->total_ns += end_ns - walk->at_ns;
    line->inside_ns += inside_ns;
    if (line->longest == LAC_NONE || dur_ns[top->slice] > dur_ns[line->longest]) {
        line->longest = top->slice;
    }
}

static void close_until(struct walk *walk, int64_t t_ns)
{
    while (walk->depth > 0) {
        const struct open_frame *top = &walk->open[walk->depth - 1];
        int64_t to_ns = top->end_ns < t_ns ? top->end_ns : t_ns;
        if (to_ns > walk->at_ns) {
            give(walk, top, to_ns);
            walk->at_ns = to_ns;
        }
        if (top->end_ns > t_ns) {
            return;
        }
        walk->depth--;
    }
    walk->at_ns = t_ns;
}

/** The line whose work a frame is, where that of its caller is `line`. */
static enum lac_status line_of(struct walk *walk, uint32_t name, uint32_t *line)
{
    const struct lac_strings *strings = &walk->facts->model->strings;
    const char *text = lac_strings_get(strings, name);
    size_t length = lac_strings_length(strings, name);
    struct lac_frame frame;
    if (lac_frame_is_waiting(text, length)) {
        *line = LAC_NONE;
        return LAC_OK;
    }
    if (!lac_frame_parse(text, length, &frame) || !lac_frame_does_work(&frame)) {
        return LAC_OK; /* its caller's */
    }
    if (walk->line_of[name] == 0) {
        struct lac_python_lines *lines = walk->lines;
        if (!LAC_RESERVE(lines->at, lines->capacity, lines->count, 1)) {
            return LAC_ERR_NOMEM;
        }
        lines->at[lines->count++] =
            (struct lac_python_line_time){.name = name, .longest = LAC_NONE};
        walk->line_of[name] = lines->count;
    }
    *line = walk->line_of[name] - 1;
    return LAC_OK;
}

static int by_inside(const void *a, const void *b)
{
    const struct lac_python_line_time *x = a;
    const struct lac_python_line_time *y = b;
    if (x->inside_ns != y->inside_ns) {
        return x->inside_ns > y->inside_ns ? -1 : 1;
    }
    if (x->total_ns != y->total_ns) {
        return x->total_ns > y->total_ns ? -1 : 1;
    }
    return x->name < y->name ? -1 : x->name > y->name;
}

enum lac_status lac_python_lines_collect(const struct lac_facts *facts,
                                         const struct lac_spans *inside,
                                         struct lac_python_lines *lines)
{
    const uint32_t track = facts->python_samples_track;
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    struct walk *walk = calloc(1, sizeof(*walk));
    enum lac_status status = LAC_OK;
    if (walk == NULL) {
        return LAC_ERR_NOMEM;
    }
    *walk = (struct walk){.facts = facts, .inside = inside, .lines = lines};
    walk->line_of = calloc((size_t)model->strings.count + 1, sizeof(*walk->line_of));
    status = walk->line_of != NULL ? LAC_OK : LAC_ERR_NOMEM;
    uint64_t end = model->tracks[track].first + model->tracks[track].count;
    for (uint64_t i = model->tracks[track].first; i < end && !status; i++) {
        close_until(walk, slices->start_ns[i]);
        if (walk->depth < LAC_SAMPLED_DEPTH_MAX) {
            struct open_frame open = {.line = LAC_NONE, .slice = (uint32_t)i};
            if (walk->depth > 0) {
                open = walk->open[walk->depth - 1];
            }
            uint32_t line = open.line;
            status = line_of(walk, slices->name[i], &line);
            if (line != open.line) {
                open.slice = (uint32_t)i;
                open.line = line;
            }
            open.end_ns = slices->start_ns[i] + slices->dur_ns[i];
            walk->open[walk->depth++] = open;
        }
    }
    close_until(walk, LAC_TIME_MAX_NS);
    if (lines->count > 1) {
        qsort(lines->at, lines->count, sizeof(*lines->at), by_inside);
    }
    free(walk->line_of);
    free(walk);
    return status;
}

/** Row of samples of the thread that trains: of those that launch or train the one with most
 *  ranges, else of a main thread; or LAC_NONE. */
static uint32_t training_row(const struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    uint32_t best = LAC_NONE;
    uint64_t most = 0;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        if (model->tracks[t].kind != LAC_TRACK_STACKS || model->tracks[t].count == 0) {
            continue;
        }
        uint32_t thread = lac_model_thread_of(model, t);
        bool trains = thread != LAC_NONE &&
                      (facts->track_flags[thread] & (LAC_TRACK_LAUNCHES | LAC_TRACK_TRAINS)) != 0;
        bool is_main = model->tracks[t].tid == model->processes[model->tracks[t].process].pid;
        uint64_t rank = 1 + (is_main ? (uint64_t)1 << 40 : 0) + (trains ? (uint64_t)1 << 41 : 0) +
                        (thread != LAC_NONE ? model->tracks[thread].count : 0);
        if (rank > most) {
            most = rank;
            best = t;
        }
    }
    return best;
}

uint64_t lac_python_samples_of(int64_t ns)
{
    return ((uint64_t)ns + LAC_SAMPLED_EVERY_NS / 2) / LAC_SAMPLED_EVERY_NS;
}

static const char *function_of(const struct lac_facts *facts, uint32_t name)
{
    const struct lac_strings *strings = &facts->model->strings;
    struct lac_frame frame;
    return lac_frame_parse(lac_strings_get(strings, name), lac_strings_length(strings, name),
                           &frame)
               ? lac_texts_add(&facts->analysis->texts, "%.*s", (int)frame.function_length,
                               frame.function)
               : "";
}

const char *lac_python_lines_text(const struct lac_facts *facts,
                                  const struct lac_python_lines *lines, bool is_inside)
{
    struct lac_text **texts = &facts->analysis->texts;
    const int64_t all_ns = is_inside ? lines->inside_ns : lines->total_ns;
    const char *text = "";
    int told = 0;
    for (uint32_t i = 0; i < lines->count && told < TOLD_MAX; i++) {
        int64_t ns = is_inside ? lines->at[i].inside_ns : lines->at[i].total_ns;
        double pct = lac_pct(ns, all_ns);
        if (pct >= TOLD_MIN_PCT || (told == 0 && ns > 0 && pct >= 1.0)) {
            text = lac_texts_add(texts, "%s%s%s (%s) %.0f %%", text, told > 0 ? ", " : "",
                                 function_of(facts, lines->at[i].name),
                                 lac_code_of_frame(facts, lines->at[i].name), pct);
            told++;
        }
    }
    return text;
}

static void fill(const struct lac_facts *facts, const struct lac_python_lines *lines)
{
    struct lac_python_samples *samples = &facts->analysis->python_samples;
    const bool has_idle = lac_python_samples_of(lines->inside_ns) >= LAC_PYTHON_SAMPLES_MIN;
    const char *shares = lac_python_lines_text(facts, lines, has_idle);
    samples->sample_count = lac_python_samples_of(lines->total_ns);
    samples->idle_sample_count = lac_python_samples_of(lines->inside_ns);
    for (uint32_t i = 0; i < lines->count && i < LAC_PYTHON_LINES_MAX; i++) {
        const struct lac_python_line_time *line = &lines->at[i];
        samples->lines[samples->line_count++] = (struct lac_python_line){
            .function = function_of(facts, line->name),
            .place = lac_code_of_frame(facts, line->name),
            .sample_count = lac_python_samples_of(line->total_ns),
            .idle_sample_count = lac_python_samples_of(line->inside_ns),
            .slice = line->longest,
        };
    }
    samples->text = shares[0] == '\0' || samples->sample_count < LAC_PYTHON_SAMPLES_MIN
                        ? ""
                        : lac_texts_add(&facts->analysis->texts,
                                        "%s of %llu samples of the training thread%s", shares,
                                        (unsigned long long)(has_idle ? samples->idle_sample_count
                                                                      : samples->sample_count),
                                        has_idle ? " while the GPU was idle" : "");
}

enum lac_status lac_python_samples_measure(struct lac_facts *facts)
{
    const uint32_t track = training_row(facts);
    const uint32_t device = facts->analysis->main_device;
    struct lac_spans idle = {0};
    struct lac_python_lines lines = {0};
    enum lac_status status = LAC_OK;
    facts->analysis->python_samples.text = "";
    facts->python_samples_track = track;
    if (track == LAC_NONE) {
        return LAC_OK;
    }
    if (device != LAC_NONE) {
        status = lac_spans_subtract(&facts->kept, &facts->device_sets[device].busy, &idle);
    }
    if (!status) {
        status = lac_python_lines_collect(facts, &idle, &lines);
    }
    if (!status) {
        fill(facts, &lines);
    }
    free(lines.at);
    lac_spans_done(&idle);
    return status;
}
