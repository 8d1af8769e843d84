/* What a host thread or a stream is for, from what it did: the page labels rows by it. */

#include "analysis/diagnose/names/names.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "server/store/trace/trace_write_private.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum name_role { NAME_OTHER = 0, NAME_PIN, NAME_FETCH, NAME_BACKWARD, NAME_TRAINING };

struct thread_votes {
    uint64_t top_level_ns; /**< time in work of the two outermost lanes */
    uint64_t backward_count;
    uint64_t training_count; /**< steps, optimizers, waits for a batch: what only the training
                                thread has */
    uint64_t fetch_count;
    uint64_t pin_count;
};

static bool contains(const struct lac_model *model, uint32_t string, const char *word)
{
    return strstr(lac_model_str(model, string), word) != NULL;
}

static enum name_role classify(const struct lac_model *model, uint32_t name)
{
    const char *text = lac_model_str(model, name);
    size_t length = lac_strings_length(&model->strings, name);

    if (strcmp(text, "loader.pin") == 0) {
        return NAME_PIN;
    }
    if (strcmp(text, "loader.fetch") == 0) {
        return NAME_FETCH;
    }
    switch (lac_names_host_class(text, length)) {
    case LAC_HOST_BACKWARD:
        return NAME_BACKWARD;
    case LAC_HOST_STEP:
    case LAC_HOST_OPTIMIZER:
    case LAC_HOST_LOADER_WAIT:
        return NAME_TRAINING;
    case LAC_HOST_OTHER:
    case LAC_HOST_LOADER_FETCH:
    case LAC_HOST_LOADER_PART:
    case LAC_HOST_COMM:
    case LAC_HOST_COMPILE:
    case LAC_HOST_PROFILER:
    case LAC_HOST_STEP_LIKE:
    case LAC_HOST_CLASS_COUNT_:
        break;
    }
    return NAME_OTHER;
}

static void vote(const struct lac_model *model, const struct lac_track *track, uint8_t *role_of,
                 struct thread_votes *votes)
{
    const struct lac_slices *slices = &model->slices;

    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        uint8_t kind = slices->kind[i];
        uint32_t name = slices->name[i];

        if (kind != LAC_SLICE_OP && kind != LAC_SLICE_RANGE && kind != LAC_SLICE_API) {
            continue; /* a span over the whole trace says nothing of who works */
        }
        votes->top_level_ns += slices->lane[i] <= 1 ? (uint64_t)slices->dur_ns[i] : 0;
        if (kind == LAC_SLICE_API) {
            continue;
        }
        if (role_of[name] == UINT8_MAX) {
            role_of[name] = (uint8_t)classify(model, name);
        }
        votes->pin_count += role_of[name] == NAME_PIN;
        votes->fetch_count += role_of[name] == NAME_FETCH;
        votes->backward_count += role_of[name] == NAME_BACKWARD;
        votes->training_count += role_of[name] == NAME_TRAINING;
    }
}

/** Role by what votes and the thread's name say; NULL for main and for those that say nothing. */
static const char *role_by_votes(const struct lac_model *model, const struct lac_track *track,
                                 const struct thread_votes *votes)
{
    if (votes->pin_count > 0 || contains(model, track->name, "pin_memory")) {
        return "pin";
    }
    if (contains(model, track->name, "pt_autograd") || contains(model, track->name, "autograd")) {
        return "autograd";
    }
    /* without workers the training thread makes its batches itself */
    if (votes->fetch_count > 0 && votes->training_count == 0) {
        return "worker";
    }
    return NULL;
}

/** The thread among those without a role that has most of what `value` holds, or LAC_NONE. */
static uint32_t most(const struct lac_model *model, const char *const *roles, const uint64_t *value)
{
    uint32_t best = LAC_NONE;

    for (uint32_t t = 0; t < model->track_count; t++) {
        if (roles[t] == NULL && value[t] > (best == LAC_NONE ? 0 : value[best])) {
            best = t;
        }
    }
    return best;
}

/* The training thread is the one with the steps, the optimizer and the waits for batches; where no
 * thread has any, the one that is called so, or is inside something for longest. Without a name
 * that says so, the autograd thread is the one of the others that runs the backward nodes. */
static void choose_main_and_autograd(const struct lac_model *model, const char **roles,
                                     const uint64_t *training, const uint64_t *backward,
                                     const uint64_t *top_ns)
{
    uint32_t chosen = most(model, roles, training);

    for (uint32_t t = 0; t < model->track_count && chosen == LAC_NONE; t++) {
        if (roles[t] == NULL && contains(model, model->tracks[t].name, "pt_main_thread")) {
            chosen = t;
        }
    }
    if (chosen != LAC_NONE) {
        roles[chosen] = "main";
    }
    if (most(model, roles, backward) != LAC_NONE) {
        roles[most(model, roles, backward)] = "autograd";
    }
    if (chosen == LAC_NONE) {
        chosen = most(model, roles, top_ns);
        for (uint32_t t = 0; t < model->track_count && chosen == LAC_NONE; t++) {
            /* one busy thread: it trains, whatever it runs */
            chosen = roles[t] != NULL && strcmp(roles[t], "autograd") == 0 ? t : LAC_NONE;
        }
        if (chosen != LAC_NONE) {
            roles[chosen] = "main";
        }
    }
}

/* Of the time of a stream, in percent, that makes it one of collectives or of copies. */
enum { STREAM_IS_OF_PCT = 90 };

/** What a stream of the device does besides computing, or NULL: "collectives", "copies". */
static const char *role_of_stream(const struct lac_model *model, const struct lac_track *track,
                                  uint8_t *comm_of)
{
    const struct lac_slices *slices = &model->slices;
    uint64_t total_ns = 0;
    uint64_t comm_ns = 0;
    uint64_t copy_ns = 0;

    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        const uint64_t dur_ns = (uint64_t)slices->dur_ns[i];
        const uint32_t name = slices->name[i];

        total_ns += dur_ns;
        if (slices->kind[i] == LAC_SLICE_COPY || slices->kind[i] == LAC_SLICE_MEMSET) {
            copy_ns += dur_ns;
        } else if (slices->kind[i] == LAC_SLICE_KERNEL) {
            if (comm_of[name] == UINT8_MAX) {
                struct lac_name_class found;

                lac_names_classify(lac_model_str(model, name),
                                   lac_strings_length(&model->strings, name), &found);
                comm_of[name] = found.is_comm ? 1 : 0;
            }
            comm_ns += comm_of[name] != 0 ? dur_ns : 0;
        }
    }
    if (total_ns == 0) {
        return NULL;
    }
    return comm_ns >= total_ns / 100 * STREAM_IS_OF_PCT   ? "collectives"
           : copy_ns >= total_ns / 100 * STREAM_IS_OF_PCT ? "copies"
                                                          : NULL;
}

static void name_streams(const struct lac_model *model, const char **roles, uint8_t *comm_of)
{
    for (uint32_t t = 0; t < model->track_count; t++) {
        if (model->tracks[t].kind == LAC_TRACK_STREAM) {
            roles[t] = role_of_stream(model, &model->tracks[t], comm_of);
        }
    }
}

enum lac_status lac_track_roles(const struct lac_model *model, const char **roles)
{
    uint8_t *role_of = malloc(model->strings.count);
    uint64_t *top_ns = calloc((size_t)model->track_count * 3 + 1, sizeof(*top_ns));
    uint64_t *backward = top_ns != NULL ? top_ns + model->track_count : NULL;
    uint64_t *training = top_ns != NULL ? backward + model->track_count : NULL;

    if (role_of == NULL || top_ns == NULL) {
        free(role_of);
        free(top_ns);
        return LAC_ERR_NOMEM;
    }
    memset(role_of, 0xFF, model->strings.count);
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        struct thread_votes votes = {0};

        roles[t] = NULL;
        if (track->kind == LAC_TRACK_THREAD) {
            vote(model, track, role_of, &votes);
            roles[t] = role_by_votes(model, track, &votes);
            top_ns[t] = votes.top_level_ns;
            backward[t] = votes.backward_count;
            training[t] = track->tid >= 0 ? votes.training_count : 0;
        }
    }
    choose_main_and_autograd(model, roles, training, backward, top_ns);
    memset(role_of, 0xFF, model->strings.count);
    name_streams(model, roles, role_of);
    free(role_of);
    free(top_ns);
    return LAC_OK;
}
