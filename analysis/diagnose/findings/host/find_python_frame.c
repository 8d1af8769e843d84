/*
 * The Python function that fills a wait: while it runs on the host the device has nothing to do. Of
 * the idle time of kept steps, from their begin, two waits are looked at: while a batch was asked for,
 * and the rest. A function that takes a good part of one is named with its file and line.
 */

#include "analysis/diagnose/facts/recorded/code_places.h"
#include "analysis/diagnose/facts/recorded/python_frames.h"
#include "analysis/diagnose/findings/findings.h"
#include "analysis/diagnose/findings/host/python_frame_thresholds.h"
#include "analysis/diagnose/names/python_frame.h"
#include "analysis/diagnose/replay/edits.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const double left[LAC_CASE_COUNT_] = {0.0, PYTHON_FRAME_LEFT_MID, PYTHON_FRAME_LEFT_WORST};

/** Percent of the wait that it fills most of: that for a batch, or the rest. */
static double filled_pct(const struct lac_facts *facts, const struct lac_python_frame *row)
{
    const struct lac_python_frames *frames = facts->python_frames;
    double steps = (double)facts->analysis->step_kept_count;
    const int64_t of_wait[] = {row->loading_ns, row->idle_ns - row->loading_ns};
    const int64_t wait[] = {frames->loading_ns, frames->idle_ns - frames->loading_ns};
    double most = 0.0;
    for (size_t i = 0; i < LAC_COUNT_OF(wait); i++) {
        if (lac_pct_of_step(facts, (double)of_wait[i] / steps) >= COST_OF_WORK_MIN_PCT) {
            most = fmax(most, lac_pct(of_wait[i], wait[i]));
        }
    }
    return most;
}

/** The function that fills a wait, or NULL: rows descend by what they fill. */
static const struct lac_python_frame *hot_frame(const struct lac_facts *facts)
{
    const struct lac_python_frames *frames = facts->python_frames;
    for (uint32_t i = 0; frames != NULL && i < frames->count; i++) {
        const struct lac_python_frame *row = &frames->rows[i];
        int64_t calls = row->call_count > 0 ? (int64_t)row->call_count : 1;
        /* one that lasts longer than a step is the loop itself */
        bool is_loop = row->longest == LAC_NONE ||
                       facts->model->slices.dur_ns[row->longest] > facts->analysis->step_mean_ns;
        if (!is_loop && row->self_ns / calls >= PYTHON_CALL_MIN_NS &&
            filled_pct(facts, row) >= PYTHON_FRAME_MIN_PCT) {
            return row;
        }
    }
    return NULL;
}

struct marking {
    struct lac_edits *edits;
    uint32_t track;
};

static void mark(void *context, int64_t start_ns, int64_t end_ns)
{
    const struct marking *marking = context;
    lac_edits_host_time(marking->edits, marking->track, start_ns, end_ns, 0.0);
}

/** Steps without most of the function's time. Where the steps cannot be played: its part of the idle
 *  time goes, in which the host did nothing else. */
static bool estimate(const struct lac_facts *facts, const struct lac_python_frame *row,
                     struct lac_finding *finding)
{
    double idle_ns = (double)row->idle_ns / (double)facts->analysis->step_kept_count;
    struct marking marking = {lac_edits_begin(facts, finding->kind), facts->python_frames->track};
    bool is_played = marking.edits != NULL && lac_graph_trust(facts->time) != LAC_TRUST_NONE;
    if (is_played) {
        int64_t start_ns = 0;
        int64_t end_ns = 0;
        lac_edits_window(facts, &start_ns, &end_ns);
        if (lac_python_frame_visit(facts, row->name, start_ns, end_ns, mark, &marking)) {
            return false;
        }
    }
    double steps[LAC_CASE_COUNT_];
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        double saved_ns = (1.0 - left[which]) * idle_ns;
        steps[which] = facts->time->step_ns - saved_ns;
        if (is_played) {
            struct lac_change change;
            lac_change_clear(&change);
            lac_change_edit(&change, marking.edits, 1.0 - left[which]);
            steps[which] = lac_what_if_replay(facts, &change);
        }
    }
    lac_finding_estimate_steps(facts, finding, steps);
    return finding->gain_mid_pct >= GAIN_MIN_PCT;
}

/* -- what to do instead ------------------------------------------------------------------------ */

struct advice {
    const char *brief; /**< with the function's name */
    const char *change;
    enum lac_effort effort;
};

static bool holds(const char *text, size_t length, const char *part)
{
    return memmem(text, length, part, strlen(part)) != NULL;
}

/** Code that does the same faster, by what the frame belongs to and who called it. */
static const struct {
    const char *package, *path, *caller; /**< NULL: any */
    struct advice advice;
} replacements[] = {
    {NULL,
     "image_transforms",
     NULL,
     {"%s on the GPU",
      "images = torch.from_numpy(frames).to(device, non_blocking=True)  # bytes: a quarter\n"
      "images = (images.float() / 255 - mean) / std                     # resize there, too",
      LAC_EFFORT_LINES}},
    {NULL,
     NULL,
     "image_processing",
     {"use_fast=True instead of %s",
      "processor = AutoImageProcessor.from_pretrained(name, use_fast=True)  # torchvision "
      "instead of numpy and scipy",
      LAC_EFFORT_LINES}},
    {NULL,
     "tokeniz",
     NULL,
     {"fast tokenizer instead of %s",
      "tokenizer = AutoTokenizer.from_pretrained(name, use_fast=True)  # or tokenize the data "
      "set once",
      LAC_EFFORT_SETTING}},
    {NULL,
     "collate",
     NULL,
     {"cheaper %s",
      "# hand over tensors of equal shapes, not lists of numbers; or a batch at once:\n"
      "def __getitems__(self, indices): return self.data[indices]",
      LAC_EFFORT_LINES}},
    {"scipy",
     NULL,
     NULL,
     {"%s on the GPU",
      "x = torch.nn.functional.interpolate(x.to(device), size=size, mode=\"bilinear\", "
      "antialias=True)  # torch instead of scipy",
      LAC_EFFORT_LINES}},
    {"numpy",
     NULL,
     NULL,
     {"%s on the GPU",
      "x = torch.from_numpy(x).to(device, non_blocking=True)  # then the same in torch",
      LAC_EFFORT_LINES}},
    {"PIL",
     NULL,
     NULL,
     {"%s in torchvision",
      "x = torchvision.io.decode_image(path); x = v2.functional.resize(x, size)  # on tensors",
      LAC_EFFORT_LINES}},
    {"cv2",
     NULL,
     NULL,
     {"%s on the GPU", "x = v2.functional.affine(x.to(device), ...)  # torchvision",
      LAC_EFFORT_LINES}},
    {"skimage",
     NULL,
     NULL,
     {"%s on the GPU", "x = v2.functional.resize(x.to(device), size)  # torchvision",
      LAC_EFFORT_LINES}},
    {"av",
     NULL,
     NULL,
     {"%s with torchcodec", "frames = torchcodec.decoders.VideoDecoder(path)[indices]",
      LAC_EFFORT_LINES}},
};

/** The first of them that fits. */
static struct advice advice_for(const struct lac_frame *frame, const char *caller)
{
    const char *package = NULL;
    size_t length = 0;
    lac_frame_package(frame, &package, &length);
    for (size_t i = 0; i < LAC_COUNT_OF(replacements); i++) {
        bool is_package = replacements[i].package == NULL ||
                          (length == strlen(replacements[i].package) &&
                           memcmp(package, replacements[i].package, length) == 0);
        bool is_path = replacements[i].path == NULL ||
                       holds(frame->path, frame->path_length, replacements[i].path);
        bool is_caller =
            replacements[i].caller == NULL || holds(caller, strlen(caller), replacements[i].caller);
        if (is_package && is_path && is_caller) {
            return replacements[i].advice;
        }
    }
    return (struct advice){"%s off the loop",
                           "# compute it once and keep the result, or do it on the GPU with torch",
                           LAC_EFFORT_LINES};
}

/** How to keep the function and not wait for it. */
static const char *beside_line(const struct lac_facts *facts, const struct lac_python_frame *row)
{
    if (2 * row->loading_ns < row->idle_ns) {
        return "\n# or prepare the next batch in a thread or a process while the GPU computes this "
               "one";
    }
    return facts->analysis->loader.num_workers == 0
               ? "\n# or leave it to workers: DataLoader(..., num_workers=1) or "
                 "pipeline(..., num_workers=1)"
               : "";
}

static void propose(const struct lac_facts *facts, const struct lac_python_frame *row,
                    const struct lac_frame *frame, const char *caller, struct lac_finding *finding)
{
    struct lac_text **texts = &facts->analysis->texts;
    struct advice advice = advice_for(frame, caller);
    const char *name = lac_texts_add(texts, "%.*s", (int)frame->function_length, frame->function);
    const char *percent = strstr(advice.brief, "%s");
    finding->brief = lac_texts_add(texts, "%.*s%s%s", (int)(percent - advice.brief), advice.brief,
                                   name, percent + 2);
    finding->change = lac_texts_add(texts, "%s%s", advice.change, beside_line(facts, row));
    finding->effort = advice.effort;
    finding->where = caller[0] != '\0' && lac_frame_owner_of(frame) == LAC_FRAME_USER &&
                             memchr(frame->path, '/', frame->path_length) != NULL
                         ? caller
                         : lac_code_of_frame(facts, row->name);
    finding->expect = lac_finding_expect(facts, finding);
    finding->costs = "Another implementation rounds differently: compare the results once.";
    finding->wrong_if = lac_texts_add(
        texts, "the step stays as long when %s returns a result that was kept.", name);
    finding->check = lac_texts_add(texts, "return a kept result from %s; expect %s per step", name,
                                   lac_format_ns(finding->step_mid_ns).text);
}

/* -- in words ---------------------------------------------------------------------------------- */

/** "normalize (transformers/image_transforms.py:390) 12.3 ms" of the next functions that count. */
static const char *next_text(const struct lac_facts *facts, const struct lac_python_frame *hot)
{
    enum { NEXT_MAX = 2 };
    const struct lac_python_frames *frames = facts->python_frames;
    struct lac_text **texts = &facts->analysis->texts;
    double steps = (double)facts->analysis->step_kept_count;
    const char *text = "";
    int said = 0;
    for (uint32_t i = 0; i < frames->count && said < NEXT_MAX; i++) {
        const struct lac_python_frame *row = &frames->rows[i];
        struct lac_frame frame;
        const char *name = lac_model_str(facts->model, row->name);
        bool counts = row != hot &&
                      lac_pct_of_step(facts, (double)row->idle_ns / steps) >= COST_OF_WORK_MIN_PCT;
        if (!counts || !lac_frame_parse(name, strlen(name), &frame)) {
            continue;
        }
        text = lac_texts_add(texts, "%s%s%.*s (%s) %s", text, said == 0 ? " Next: " : ", ",
                             (int)frame.function_length, frame.function,
                             lac_code_of_frame(facts, row->name),
                             lac_format_ns(lac_round((double)row->idle_ns / steps)).text);
        said++;
    }
    return said > 0 ? lac_texts_add(texts, "%s.", text) : "";
}

static void say(const struct lac_facts *facts, const struct lac_python_frame *row,
                const struct lac_frame *frame, const char *caller, double cost_ns,
                struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_text **texts = &analysis->texts;
    const struct lac_python_frames *frames = facts->python_frames;
    const char *package = NULL;
    size_t length = 0;
    lac_frame_package(frame, &package, &length);
    double steps = (double)analysis->step_kept_count;
    finding->title = lac_texts_add(
        texts, "The GPU waits %s of every %s step while %.*s%s%.*s%s runs on the host (%s)",
        lac_format_ns(lac_round(cost_ns)).text, lac_format_ns(analysis->step_mean_ns).text,
        (int)frame->function_length, frame->function, length > 0 ? " (" : "", (int)length, package,
        length > 0 ? ")" : "", lac_format_pct(finding->cost_pct).text);
    int64_t calls = row->call_count > 0 ? (int64_t)row->call_count : 1;
    bool is_loading = 2 * row->loading_ns >= row->idle_ns;
    int64_t wait_ns = is_loading ? frames->loading_ns : frames->idle_ns - frames->loading_ns;
    finding->why = lac_texts_add(
        texts, "%.*s (%s)%s%s fills %.0f %% of the %s that a step waits %s: %s, %s each.%s",
        (int)frame->function_length, frame->function, lac_code_of_frame(facts, row->name),
        caller[0] != '\0' ? ", called from " : "", caller, filled_pct(facts, row),
        lac_format_ns(lac_round((double)wait_ns / steps)).text,
        is_loading ? "for its batch" : "for the host", lac_format_count(calls, "call").text,
        lac_format_ns(row->self_ns / calls).text, next_text(facts, row));
}

/** What lies in waits for a batch is claimed of these first. */
static void claim_loading(const struct lac_facts *facts, const struct lac_python_frame *row,
                          struct lac_finding *finding)
{
    uint32_t data = lac_time_part_of(LAC_CAUSE_DATA_WAIT);
    int64_t wanted_ns =
        lac_round((double)row->loading_ns / (double)facts->analysis->step_kept_count);
    int64_t there_ns = facts->analysis->partition.part_ns[data];
    wanted_ns = (wanted_ns < there_ns ? wanted_ns : there_ns) - finding->part_ns[data];
    for (uint32_t part = LAC_PART_IDLE; part < LAC_TIME_PART_COUNT && wanted_ns > 0; part++) {
        int64_t moved_ns = finding->part_ns[part] < wanted_ns ? finding->part_ns[part] : wanted_ns;
        if (part != data) {
            finding->part_ns[part] -= moved_ns;
            finding->part_ns[data] += moved_ns;
            wanted_ns -= moved_ns;
        }
    }
}

/** How sure it is. A function that loads is a part of what the finding about the wait for data takes
 *  away with a setting: where that gains as much, the function's share of it is no surer. */
static double confidence_of(const struct lac_facts *facts, const struct lac_python_frame *row,
                            const struct lac_finding *finding)
{
    const double usual = 0.75;
    const struct lac_analysis *analysis = facts->analysis;
    for (uint32_t i = 0; i < analysis->finding_count && 2 * row->loading_ns >= row->idle_ns; i++) {
        const struct lac_finding *other = &analysis->findings[i];
        bool is_whole = lac_finding_type(other->kind)->is_about_loading &&
                        other->change[0] != '\0' && other->effort == LAC_EFFORT_SETTING &&
                        other->gain_mid_pct >= finding->gain_mid_pct;
        if (is_whole) {
            return fmin(usual, other->confidence);
        }
    }
    return usual;
}

bool lac_find_python_frame(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_python_frame *row = hot_frame(facts);
    struct lac_frame frame;
    const char *name = row != NULL ? lac_model_str(facts->model, row->name) : "";
    if (row == NULL || !lac_frame_parse(name, strlen(name), &frame) ||
        !estimate(facts, row, finding)) {
        return false;
    }
    double cost_ns = (double)row->idle_ns / (double)facts->analysis->step_kept_count;
    const char *caller = row->longest != LAC_NONE ? lac_code_caller(facts, row->longest) : "";
    lac_finding_cost(facts, finding, cost_ns);
    claim_loading(facts, row, finding);
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->confidence = confidence_of(facts, row, finding);
    say(facts, row, &frame, caller, cost_ns, finding);
    propose(facts, row, &frame, caller, finding);
    if (row->longest != LAC_NONE) {
        lac_evidence_slice(facts, finding, row->longest, "its longest call");
    }
    return true;
}
