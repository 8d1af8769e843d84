/* The timeline between two times as a snapshot: its rows, and in them boxes with their names. */

#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/cause.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/utf8.h"
#include "server/base/buffer.h"
#include "server/export/report.h"
#include "server/reports/part_evidence.h"
#include "server/reports/snapshot.h"
#include "server/store/trace/trace_file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_MAX = 32, LANES_MAX = 5, NAME_BYTES = 72 };
enum { PIXELS = LAC_SVG_WIDTH - LAC_SVG_LABEL_WIDTH, NAMED_PIXELS = 12 };

struct window {
    struct lac_buffer *out;
    const struct lac_model *model;
    int64_t from_ns, to_ns;
    unsigned box_count;
    uint64_t left_out;
};

/** Neighbors that would be thinner than a pixel, put together. */
struct thin {
    int64_t start_ns, end_ns;
    const char *css_class;
};

static void put_box(struct window *w, unsigned lane, int64_t start_ns, int64_t end_ns,
                    const char *css_class, const char *text, bool is_given)
{
    if (w->box_count >= LAC_SNAPSHOT_BOXES_MAX) {
        w->left_out++;
        return;
    }
    w->box_count++;
    start_ns = start_ns > w->from_ns ? start_ns : w->from_ns;
    end_ns = end_ns < w->to_ns ? end_ns : w->to_ns;
    lac_snapshot_line(w->out, "box", is_given ? "iiiwg" : "iiiwt", (int64_t)lane,
                      start_ns - w->from_ns, end_ns - start_ns, css_class, text);
}

static void flush(struct window *w, unsigned lane, struct thin *thin)
{
    if (thin->css_class != NULL) {
        put_box(w, lane, thin->start_ns, thin->end_ns, thin->css_class, "", false);
        thin->css_class = NULL;
    }
}

static void add_thin(struct window *w, unsigned lane, struct thin *thin, int64_t start_ns,
                     int64_t end_ns, const char *css_class)
{
    const int64_t pixel_ns = (w->to_ns - w->from_ns) / PIXELS;

    if (thin->css_class != NULL && strcmp(thin->css_class, css_class) == 0 &&
        start_ns - thin->end_ns <= pixel_ns) {
        thin->end_ns = end_ns > thin->end_ns ? end_ns : thin->end_ns;
        return;
    }
    flush(w, lane, thin);
    *thin = (struct thin){start_ns, end_ns, css_class};
}

/** Class of the style sheet; gaps are in the color of their cause. @param room of the class */
static const char *class_of(const struct lac_model *model, const struct lac_track *track,
                            uint64_t slice, char *room, size_t capacity_bytes)
{
    const uint8_t kind = model->slices.kind[slice];

    if (track->kind == LAC_TRACK_GAPS) {
        (void)snprintf(room, capacity_bytes, "c-%s",
                       lac_model_str(model, model->slices.name[slice]));
        return room;
    }
    return track->kind == LAC_TRACK_STEPS                       ? "step"
           : kind == LAC_SLICE_KERNEL                           ? "busy"
           : kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET ? "copy"
                                                                : "host";
}

/** A piece of a gap, by its cause: "D, 379 ms waiting for data". */
static void put_gap(struct window *w, unsigned lane, uint64_t slice, const char *css_class)
{
    const struct lac_slices *slices = &w->model->slices;
    const char *name = lac_model_str(w->model, slices->name[slice]);
    const int64_t start_ns = slices->start_ns[slice];
    const int64_t end_ns = start_ns + slices->dur_ns[slice];
    char text[NAME_BYTES + 40] = "";

    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        if (strcmp(lac_cause_name((enum lac_cause)cause), name) == 0) {
            (void)snprintf(text, sizeof(text), "%c, %s %s", lac_cause_letter((enum lac_cause)cause),
                           lac_format_ns(slices->dur_ns[slice]).text,
                           lac_waits_for((enum lac_cause)cause));
        }
    }
    put_box(w, lane, start_ns, end_ns, css_class, text, false);
}

static void put_named(struct window *w, const struct lac_track *track, unsigned lane,
                      uint64_t slice, const char *css_class)
{
    const struct lac_slices *slices = &w->model->slices;
    const char *name = lac_model_str(w->model, slices->name[slice]);
    const uint8_t kind = slices->kind[slice];
    const int64_t dur_ns = slices->dur_ns[slice];
    char text[NAME_BYTES + 40];
    char short_name[160];
    const bool is_given = (kind == LAC_SLICE_RANGE || kind == LAC_SLICE_PYTHON) &&
                          track->kind == LAC_TRACK_THREAD &&
                          lac_names_host_class(name, strlen(name)) == LAC_HOST_OTHER;

    if (kind == LAC_SLICE_KERNEL) {
        (void)lac_kernel_short_name(name, strlen(name), short_name, sizeof(short_name));
        name = short_name;
    }
    const size_t length = strlen(name);
    const size_t keep = length > NAME_BYTES ? lac_utf8_cut(name, length, NAME_BYTES) : length;

    (void)snprintf(text, sizeof(text), "%.*s, %s", (int)keep, name, lac_format_ns(dur_ns).text);
    put_box(w, lane, slices->start_ns[slice], slices->start_ns[slice] + dur_ns, css_class, text,
            is_given);
}

static bool is_in(const struct window *w, uint64_t slice)
{
    const int64_t start_ns = w->model->slices.start_ns[slice];

    return start_ns < w->to_ns && start_ns + w->model->slices.dur_ns[slice] > w->from_ns;
}

/** What the row is called. */
static void label_of(const struct lac_model *model, const struct lac_track *track, char *out,
                     size_t capacity_bytes)
{
    const char *name = lac_model_str(model, track->name);

    if (track->kind == LAC_TRACK_STEPS) {
        (void)snprintf(out, capacity_bytes, "steps");
    } else if (track->kind == LAC_TRACK_GAPS) {
        (void)snprintf(out, capacity_bytes, "GPU %lld idle", (long long)track->device);
    } else if (track->kind == LAC_TRACK_STREAM && track->tid >= 0) {
        (void)snprintf(out, capacity_bytes, "GPU %lld, stream %lld", (long long)track->device,
                       (long long)track->tid);
    } else {
        (void)snprintf(out, capacity_bytes, "%s", *name != '\0' ? name : "thread");
    }
}

static unsigned lanes_in(const struct window *w, const struct lac_track *track)
{
    unsigned lanes = 0;

    for (uint64_t s = track->first; s < track->first + track->count; s++) {
        const unsigned lane = w->model->slices.lane[s];

        if (is_in(w, s) && lane < LANES_MAX && lane + 1 > lanes) {
            lanes = lane + 1;
        }
    }
    return lanes;
}

/** @return whether the row has anything in the window */
static bool put_row(struct window *w, const struct lac_track *track)
{
    const struct lac_slices *slices = &w->model->slices;
    const unsigned lanes = lanes_in(w, track);
    const int64_t pixel_ns = (w->to_ns - w->from_ns) / PIXELS;
    struct thin thin[LANES_MAX] = {{0}};
    char label[64];

    if (lanes == 0) {
        return false;
    }
    label_of(w->model, track, label, sizeof(label));
    lac_snapshot_line(w->out, "track", track->kind == LAC_TRACK_THREAD ? "gi" : "ti", label,
                      (int64_t)lanes);
    for (uint64_t s = track->first; s < track->first + track->count; s++) {
        const unsigned lane = slices->lane[s];
        const int64_t start_ns = slices->start_ns[s];
        char room[40];

        if (!is_in(w, s)) {
            continue;
        }
        if (lane >= LANES_MAX) {
            w->left_out++;
            continue;
        }
        const char *css_class = class_of(w->model, track, s, room, sizeof(room));

        if (track->kind == LAC_TRACK_GAPS) {
            if (slices->dur_ns[s] * 2 > pixel_ns) {
                put_gap(w, lane, s, css_class);
            }
        } else if (slices->dur_ns[s] >= NAMED_PIXELS * pixel_ns) {
            flush(w, lane, &thin[lane]);
            put_named(w, track, lane, s, css_class);
        } else {
            add_thin(w, lane, &thin[lane], start_ns, start_ns + slices->dur_ns[s], css_class);
        }
    }
    for (unsigned lane = 0; lane < lanes; lane++) {
        flush(w, lane, &thin[lane]);
    }
    return true;
}

static bool is_shown(enum lac_track_kind kind, int pass)
{
    switch (pass) {
    case 0:
        return kind == LAC_TRACK_STEPS;
    case 1:
        return kind == LAC_TRACK_STREAM || kind == LAC_TRACK_GAPS;
    default:
        return kind == LAC_TRACK_THREAD;
    }
}

enum lac_status lac_evidence_window(struct lac_buffer *out,
                                    const struct lac_evidence_source *source, int64_t from_ns,
                                    int64_t to_ns, struct lac_error *reterr)
{
    struct lac_model *stretch = NULL;
    const struct lac_model *head = lac_trace_file_head(source->file);
    struct window w = {.out = out, .from_ns = from_ns, .to_ns = to_ns};
    unsigned rows = 0;
    unsigned hidden = 0;
    char text[160];
    enum lac_status status = lac_trace_file_stretch(source->file, from_ns, to_ns, &stretch, reterr);

    if (status != LAC_OK) {
        return status;
    }
    w.model = stretch;
    lac_snapshot_line(out, "host", "w", lac_model_str(head, head->info.host));
    lac_snapshot_line(out, "title", "t", "Timeline");
    lac_snapshot_line(out, "fact", "wg", "Trace", lac_model_str(head, head->info.name));
    (void)snprintf(text, sizeof(text), "%s, from %s after the trace's start on",
                   lac_format_ns(to_ns - from_ns).text, lac_format_ns(from_ns).text);
    lac_snapshot_line(out, "fact", "wt", "Window", text);
    lac_snapshot_line(out, "picture", "iiw", to_ns - from_ns, (int64_t)LAC_SVG_LABEL_WIDTH,
                      "timeline");
    for (int pass = 0; pass < 3; pass++) {
        for (uint32_t t = 0; t < stretch->track_count; t++) {
            const struct lac_track *track = &stretch->tracks[t];

            if (!is_shown(track->kind, pass)) {
                continue;
            }
            if (rows < ROWS_MAX) {
                rows += put_row(&w, track) ? 1 : 0;
            } else {
                hidden += lanes_in(&w, track) > 0 ? 1 : 0;
            }
        }
    }
    if (rows == 0) {
        lac_snapshot_line(out, "text", "t", "Nothing was recorded in this window.");
    }
    if (hidden > 0) {
        (void)snprintf(text, sizeof(text), "Not shown: %u more rows.", hidden);
        lac_snapshot_line(out, "text", "t", text);
    }
    if (w.left_out > 0) {
        (void)snprintf(
            text, sizeof(text),
            "Not shown: %llu slices, nested more than %d deep or beyond what a part holds.",
            (unsigned long long)w.left_out, LANES_MAX);
        lac_snapshot_line(out, "text", "t", text);
    }
    lac_trace_stretch_destroy(stretch);
    return LAC_OK;
}
