/* What the training thread did in Python while the device had nothing to do: one walk over the
 * thread, in which each moment belongs to the slice that began last and is still open. */

#include "analysis/diagnose/facts/recorded/python_frames.h"

#include "analysis/diagnose/names/python_frame.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** What a name is to the walk; anything else: 1 + the string id of a frame that works. */
#define NOT_LOOKED_UP UINT32_MAX
#define WAITS         (UINT32_MAX - 1)
enum { INHERITS = 0 };
enum { NO_FRAME = 0 };

/** An open slice. */
struct open_slice {
    int64_t end_ns;
    uint32_t frame; /**< string id of the frame whose time this is, NO_FRAME nobody's */
    uint32_t call;  /**< slice of that frame */
    bool is_op;     /**< an operator: short ones are on their way to a launch */
    bool is_loading;
};

/** A set of time that is asked about in ascending order. */
struct cursor {
    const struct lac_spans *spans;
    uint64_t at;
};

/** Length of [start, end) inside; no start before that of the last question. */
static int64_t length_inside(struct cursor *cursor, int64_t start_ns, int64_t end_ns)
{
    const struct lac_spans *spans = cursor->spans;
    while (cursor->at < spans->count && spans->at[cursor->at].end_ns <= start_ns) {
        cursor->at++;
    }
    int64_t sum_ns = 0;
    for (uint64_t i = cursor->at; i < spans->count && spans->at[i].start_ns < end_ns; i++) {
        int64_t from_ns = spans->at[i].start_ns > start_ns ? spans->at[i].start_ns : start_ns;
        int64_t to_ns = spans->at[i].end_ns < end_ns ? spans->at[i].end_ns : end_ns;
        sum_ns += to_ns - from_ns;
    }
    return sum_ns;
}

struct walk {
    const struct lac_facts *facts;
    uint32_t *meaning; /**< by string id */
    struct open_slice *open;
    uint64_t depth, capacity;
    int64_t at_ns;

    /* measuring */
    struct lac_python_frames *frames;
    uint32_t *row_of; /**< by string id: row + 1 */
    struct cursor idle, idle_loading, looked_at;

    /* or visiting one function */
    uint32_t wanted;
    int64_t from_ns, to_ns;
    lac_python_stretch *visit;
    void *context;

    enum lac_status status;
};

static uint32_t meaning_of(struct walk *walk, uint32_t name)
{
    if (walk->meaning[name] == (uint32_t)NOT_LOOKED_UP) {
        const struct lac_strings *strings = &walk->facts->model->strings;
        const char *text = lac_strings_get(strings, name);
        size_t length = lac_strings_length(strings, name);
        struct lac_frame frame;
        uint32_t meaning = INHERITS;
        if (lac_frame_is_waiting(text, length)) {
            meaning = (uint32_t)WAITS;
        } else if (lac_frame_parse(text, length, &frame) && lac_frame_does_work(&frame)) {
            meaning = name + 1;
        }
        walk->meaning[name] = meaning;
    }
    return walk->meaning[name];
}

/** The row of a function, NULL without memory. */
static struct lac_python_frame *row_of(struct walk *walk, uint32_t name)
{
    struct lac_python_frames *frames = walk->frames;
    if (walk->row_of[name] == 0) {
        if (!LAC_RESERVE(frames->rows, frames->capacity, frames->count, 1)) {
            walk->status = LAC_ERR_NOMEM;
            return NULL;
        }
        frames->rows[frames->count++] =
            (struct lac_python_frame){.name = name, .longest = LAC_NONE};
        walk->row_of[name] = frames->count;
    }
    return &frames->rows[walk->row_of[name] - 1];
}

/** A stretch of the thread's time is that of the slice on top. */
static void give(struct walk *walk, const struct open_slice *top, int64_t start_ns, int64_t end_ns)
{
    bool is_launching = top->is_op && !top->is_loading && end_ns - start_ns < PYTHON_OP_MIN_NS;
    if (top->frame == NO_FRAME || is_launching) {
        return;
    }
    if (walk->visit != NULL) {
        if (top->frame == walk->wanted && end_ns > walk->from_ns && start_ns < walk->to_ns) {
            walk->visit(walk->context, start_ns, end_ns);
        }
        return;
    }
    int64_t self_ns = length_inside(&walk->looked_at, start_ns, end_ns);
    if (self_ns == 0) {
        return;
    }
    struct lac_python_frame *row = row_of(walk, top->frame);
    if (row == NULL) {
        return;
    }
    const struct lac_slices *slices = &walk->facts->model->slices;
    row->self_ns += self_ns;
    row->idle_ns += length_inside(&walk->idle, start_ns, end_ns);
    row->loading_ns += length_inside(&walk->idle_loading, start_ns, end_ns);
    if (row->longest == LAC_NONE || slices->dur_ns[top->call] > slices->dur_ns[row->longest]) {
        row->longest = top->call;
    }
}

static void close_until(struct walk *walk, int64_t t_ns)
{
    while (walk->depth > 0) {
        struct open_slice top = walk->open[walk->depth - 1];
        int64_t to_ns = top.end_ns < t_ns ? top.end_ns : t_ns;
        if (to_ns > walk->at_ns) {
            give(walk, &top, walk->at_ns, to_ns);
            walk->at_ns = to_ns;
        }
        if (top.end_ns > t_ns) {
            return;
        }
        walk->depth--;
    }
    walk->at_ns = t_ns;
}

/** What an open slice is, by what it is in. */
static struct open_slice opened(struct walk *walk, uint64_t slice)
{
    const struct lac_slices *slices = &walk->facts->model->slices;
    struct open_slice open = {0};
    if (walk->depth > 0) {
        open = walk->open[walk->depth - 1];
    }
    open.end_ns = slices->start_ns[slice] + slices->dur_ns[slice];
    uint8_t kind = slices->kind[slice];
    uint32_t name = slices->name[slice];
    if (kind == LAC_SLICE_PYTHON) {
        uint32_t meaning = meaning_of(walk, name);
        open.is_op = false;
        if (meaning == (uint32_t)WAITS) {
            open.frame = NO_FRAME;
        } else if (meaning != INHERITS) {
            open.frame = meaning - 1;
            open.call = (uint32_t)slice;
        }
        return open;
    }
    enum lac_host_class host_class = LAC_HOST_OTHER;
    if (kind == LAC_SLICE_OP || kind == LAC_SLICE_RANGE || kind == LAC_SLICE_OTHER) {
        host_class = lac_host_class_of(walk->facts, name);
    }
    bool is_other = kind == LAC_SLICE_API || kind == LAC_SLICE_OVERHEAD ||
                    host_class == LAC_HOST_COMM || host_class == LAC_HOST_COMPILE;
    if (is_other) {
        open.frame = NO_FRAME;
    } else if (host_class == LAC_HOST_LOADER_WAIT) { /* who asked for the batch does not make it */
        open.frame = NO_FRAME;
        open.is_loading = true;
    }
    open.is_op = kind == LAC_SLICE_OP;
    return open;
}

/** A call is counted where time is looked at. */
static void count_call(struct walk *walk, const struct open_slice *open, uint64_t slice)
{
    int64_t start_ns = walk->facts->model->slices.start_ns[slice];
    if (walk->visit != NULL || open->frame == NO_FRAME || open->call != (uint32_t)slice ||
        length_inside(&walk->looked_at, start_ns, start_ns + 1) == 0) {
        return;
    }
    struct lac_python_frame *row = row_of(walk, open->frame);
    if (row != NULL) {
        row->call_count++;
    }
}

static enum lac_status go(struct walk *walk, uint32_t track)
{
    const struct lac_model *model = walk->facts->model;
    const struct lac_slices *slices = &model->slices;
    size_t names = model->strings.count ? model->strings.count : 1;
    walk->meaning = malloc(names * sizeof(*walk->meaning));
    if (walk->meaning == NULL) {
        return LAC_ERR_NOMEM;
    }
    memset(walk->meaning, 0xff, names * sizeof(*walk->meaning));
    uint64_t end = model->tracks[track].first + model->tracks[track].count;
    for (uint64_t i = model->tracks[track].first; i < end && !walk->status; i++) {
        close_until(walk, slices->start_ns[i]);
        if (slices->dur_ns[i] == 0 || walk->status) {
            continue;
        }
        struct open_slice open = opened(walk, i);
        count_call(walk, &open, i);
        if (!LAC_RESERVE(walk->open, walk->capacity, walk->depth, 1)) {
            walk->status = LAC_ERR_NOMEM;
            break;
        }
        walk->open[walk->depth++] = open;
    }
    close_until(walk, LAC_TIME_MAX_NS);
    free(walk->meaning);
    free(walk->open);
    return walk->status;
}

/** The thread that waits for batches, else the one with most rows of those that launch, or LAC_NONE:
 *  it has no rows of Python functions. */
static uint32_t python_thread(const struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    uint32_t waits = facts->wait_marks.count > 0 ? facts->wait_marks.at[0].track : LAC_NONE;
    uint32_t best = LAC_NONE;
    uint64_t most = 0;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        bool is_host = model->tracks[t].kind == LAC_TRACK_THREAD &&
                       (facts->track_flags[t] & (LAC_TRACK_LAUNCHES | LAC_TRACK_TRAINS)) != 0;
        uint64_t count = 0;
        uint64_t end = model->tracks[t].first + model->tracks[t].count;
        for (uint64_t i = model->tracks[t].first; i < end && is_host; i++) {
            count += model->slices.kind[i] == LAC_SLICE_PYTHON;
        }
        if (count > 0 && t == waits) {
            return t;
        }
        if (count > most) {
            most = count;
            best = t;
        }
    }
    return best;
}

static int by_idle(const void *a, const void *b)
{
    const struct lac_python_frame *x = a;
    const struct lac_python_frame *y = b;
    const int order = LAC_ORDER(y->idle_ns, x->idle_ns);
    return order != 0 ? order : LAC_ORDER(x->name, y->name);
}

static enum lac_status measure(struct walk *walk, struct lac_python_frames *frames)
{
    const struct lac_facts *facts = walk->facts;
    const struct lac_device_sets *sets = &facts->device_sets[facts->analysis->main_device];
    struct lac_spans idle = {0};
    struct lac_spans loading = {0};
    struct lac_spans idle_loading = {0};
    struct lac_spans looked_at = {0};
    enum lac_status status = lac_spans_subtract(&facts->kept, &sets->busy, &idle);
    if (!status) {
        status = lac_spans_intersect(&facts->kept, &facts->waits, &loading);
    }
    if (!status) {
        status = lac_spans_intersect(&idle, &loading, &idle_loading);
    }
    if (!status) {
        status = lac_spans_unite(&idle, &loading, &looked_at);
    }
    walk->row_of = calloc((size_t)facts->model->strings.count + 1, sizeof(*walk->row_of));
    if (!status && walk->row_of == NULL) {
        status = LAC_ERR_NOMEM;
    }
    if (!status) {
        walk->frames = frames;
        walk->idle.spans = &idle;
        walk->idle_loading.spans = &idle_loading;
        walk->looked_at.spans = &looked_at;
        frames->idle_ns = lac_spans_length(&idle);
        frames->loading_ns = lac_spans_length(&idle_loading);
        status = go(walk, frames->track);
    }
    if (!status && frames->count > 1) {
        qsort(frames->rows, frames->count, sizeof(*frames->rows), by_idle);
    }
    free(walk->row_of);
    walk->idle.spans = walk->idle_loading.spans = walk->looked_at.spans = NULL;
    lac_spans_done(&idle);
    lac_spans_done(&loading);
    lac_spans_done(&idle_loading);
    lac_spans_done(&looked_at);
    return status;
}

enum lac_status lac_python_frames_measure(struct lac_facts *facts)
{
    uint32_t track =
        facts->has_python && facts->kept.count > 0 && facts->analysis->main_device != LAC_NONE
            ? python_thread(facts)
            : LAC_NONE;
    if (track == LAC_NONE) {
        return LAC_OK;
    }
    struct lac_python_frames *frames = calloc(1, sizeof(*frames));
    if (frames == NULL) {
        return LAC_ERR_NOMEM;
    }
    facts->python_frames = frames;
    frames->track = track;
    struct walk walk = {.facts = facts};
    return measure(&walk, frames);
}

double lac_python_idle_pct(const struct lac_facts *facts)
{
    const struct lac_python_frames *frames = facts->python_frames;
    int64_t filled_ns = 0;
    for (uint32_t i = 0; frames != NULL && i < frames->count; i++) {
        const struct lac_python_frame *row = &frames->rows[i];
        int64_t calls = row->call_count > 0 ? (int64_t)row->call_count : 1;
        filled_ns += row->self_ns / calls >= PYTHON_CALL_MIN_NS ? row->idle_ns : 0;
    }
    return frames != NULL && frames->idle_ns > 0 ? lac_pct(filled_ns, frames->idle_ns) : 0.0;
}

void lac_python_frames_destroy(struct lac_python_frames *frames)
{
    if (frames != NULL) {
        free(frames->rows);
        free(frames);
    }
}

enum lac_status lac_python_frame_visit(const struct lac_facts *facts, uint32_t name,
                                       int64_t start_ns, int64_t end_ns, lac_python_stretch *visit,
                                       void *context)
{
    assert(facts->python_frames != NULL && visit != NULL);
    struct walk walk = {.facts = facts,
                        .wanted = name,
                        .from_ns = start_ns,
                        .to_ns = end_ns,
                        .visit = visit,
                        .context = context};
    return go(&walk, facts->python_frames->track);
}
