/* Where in the code the host was: stacks in arguments, and rows of Python functions. */

#include "analysis/diagnose/facts/recorded/code_places.h"

#include "analysis/diagnose/names/python_frame.h"

#include <stdint.h>
#include <string.h>

enum {
    LOOK_BACK = 1 << 18, /* rows: a frame that long ago is the program itself */
    PATH_PARTS = 2,      /* of a path, its end: enough to know the file by */
};

/** The best frame so far. */
struct place {
    struct lac_frame frame;
    enum lac_frame_owner owner;
    bool is_known, is_done;
};

/** Take a frame; they come from the innermost outward. */
static void take(struct place *place, const char *text, size_t length)
{
    struct lac_frame frame;
    if (!lac_frame_parse(text, length, &frame)) {
        return;
    }
    enum lac_frame_owner owner = lac_frame_owner_of(&frame);
    if (owner != LAC_FRAME_RUNTIME && (!place->is_known || owner < place->owner)) {
        *place = (struct place){frame, owner, true, owner == LAC_FRAME_USER};
    }
}

/** The value of "Call stack" in an argument template, frames from the innermost with ';' between. */
static const char *stack_of(const struct lac_model *model, uint64_t slice, size_t *ret_length)
{
    static const char key[] = "\"Call stack\":\"";
    uint32_t args = model->slices.args[slice];
    const char *text = lac_model_str(model, args);
    const char *at =
        args == 0 ? NULL
                  : memmem(text, lac_strings_length(&model->strings, args), key, sizeof(key) - 1);
    if (at == NULL) {
        return NULL;
    }
    at += sizeof(key) - 1;
    *ret_length = strcspn(at, "\"");
    return at;
}

static void take_stack(struct place *place, const char *text, size_t length)
{
    const char *end = text + length;
    while (text < end && !place->is_done) {
        const char *stop = memchr(text, ';', (size_t)(end - text));
        stop = stop != NULL ? stop : end;
        take(place, text, (size_t)(stop - text));
        text = stop + 1;
    }
}

/** The end of a path: "photos/data.py". */
static void shorten(const struct lac_frame *frame, const char **ret_path, int *ret_length)
{
    const char *at = frame->path + frame->path_length;
    int parts = 0;
    while (at > frame->path) {
        parts += at[-1] == '/' || at[-1] == '\\';
        if (parts == PATH_PARTS) {
            break;
        }
        at--;
    }
    *ret_path = at;
    *ret_length = (int)(frame->path + frame->path_length - at);
}

static const char *place_text(const struct lac_facts *facts, const struct lac_frame *frame,
                              bool has_function)
{
    const char *path = NULL;
    int length = 0;
    shorten(frame, &path, &length);
    struct lac_text **texts = &facts->analysis->texts;
    return has_function
               ? lac_texts_add(texts, "%.*s:%lld (%.*s)", length, path, (long long)frame->line,
                               (int)frame->function_length, frame->function)
               : lac_texts_add(texts, "%.*s:%lld", length, path, (long long)frame->line);
}

/** @param[out] ret_is_row whether it is a row of a Python function, whose line is where it begins */
static struct place find_place(const struct lac_facts *facts, uint64_t slice, bool *ret_is_row)
{
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    const struct lac_track *track = &model->tracks[lac_model_track_of(model, slice)];
    int64_t end_ns = slices->start_ns[slice] + slices->dur_ns[slice];
    struct place place = {0};
    bool is_row = false;
    for (uint64_t back = 0; back <= LOOK_BACK && slice >= track->first + back && !place.is_done;
         back++) {
        uint64_t at = slice - back;
        size_t length = 0;
        if (slices->start_ns[at] + slices->dur_ns[at] < end_ns) {
            continue;
        }
        const char *stack = is_row ? NULL : stack_of(model, at, &length);
        if (stack != NULL) { /* it holds the whole way out */
            take_stack(&place, stack, length);
            break;
        }
        if (slices->kind[at] == LAC_SLICE_PYTHON) {
            is_row = true;
            take(&place, lac_model_str(model, slices->name[at]),
                 lac_strings_length(&model->strings, slices->name[at]));
        }
    }
    *ret_is_row = is_row;
    return place;
}

const char *lac_code_place(const struct lac_facts *facts, uint64_t slice)
{
    bool is_row = false;
    struct place place = find_place(facts, slice, &is_row);
    return place.is_known ? place_text(facts, &place.frame, is_row) : "";
}

bool lac_code_frame(const struct lac_facts *facts, uint64_t slice, struct lac_frame *ret_frame)
{
    bool is_row = false;
    struct place place = find_place(facts, slice, &is_row);
    *ret_frame = place.frame;
    return place.is_known;
}

static bool frame_of(const struct lac_model *model, uint32_t name, struct lac_frame *ret_frame)
{
    return lac_frame_parse(lac_model_str(model, name), lac_strings_length(&model->strings, name),
                           ret_frame);
}

const char *lac_code_of_frame(const struct lac_facts *facts, uint32_t name)
{
    struct lac_frame frame;
    return frame_of(facts->model, name, &frame) ? place_text(facts, &frame, false) : "";
}

const char *lac_code_caller(const struct lac_facts *facts, uint64_t slice)
{
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    const struct lac_track *track = &model->tracks[lac_model_track_of(model, slice)];
    int64_t end_ns = slices->start_ns[slice] + slices->dur_ns[slice];
    struct lac_frame own;
    if (!frame_of(model, slices->name[slice], &own)) {
        return "";
    }
    for (uint64_t back = 1; back <= LOOK_BACK && slice >= track->first + back; back++) {
        uint64_t at = slice - back;
        struct lac_frame frame;
        bool is_around = slices->start_ns[at] + slices->dur_ns[at] >= end_ns &&
                         slices->kind[at] == LAC_SLICE_PYTHON;
        if (!is_around || !frame_of(model, slices->name[at], &frame) ||
            lac_frame_owner_of(&frame) == LAC_FRAME_RUNTIME) {
            continue;
        }
        bool is_same_file = frame.path_length == own.path_length &&
                            memcmp(frame.path, own.path, own.path_length) == 0;
        bool is_wrapper = frame.function_length == own.function_length &&
                          memcmp(frame.function, own.function, own.function_length) == 0;
        if (!is_same_file && !is_wrapper) {
            return place_text(facts, &frame, true);
        }
    }
    return "";
}
