/* finish(): from the appended rows to a model whose invariants hold. */

#include "analysis/crew/crew.h"
#include "analysis/demangle/demangle.h"
#include "analysis/model/builder.h"
#include "analysis/model/builder_private.h"
#include "analysis/model/lanes.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Counter tracks after the others, so that the first slices of the others ascend. */
static enum lac_status move_counters(struct lac_builder *builder)
{
    struct lac_model *model = builder->model;
    uint32_t count = model->track_count;
    struct lac_track *tracks = malloc(((size_t)count + 1) * sizeof(*tracks));
    uint32_t *moved = malloc(((size_t)count + 1) * sizeof(*moved));
    uint32_t next = 0;

    if (tracks == NULL || moved == NULL) {
        free(tracks);
        free(moved);
        return LAC_ERR_NOMEM;
    }
    for (int counters = 0; counters < 2; counters++) {
        for (uint32_t t = 0; t < count; t++) {
            if ((model->tracks[t].kind == LAC_TRACK_COUNTER) == (counters == 1)) {
                tracks[next] = model->tracks[t];
                moved[t] = next++;
            }
        }
    }
    for (uint64_t i = 0; i < model->sample_count; i++) {
        builder->sample_track[i] = moved[builder->sample_track[i]];
    }
    for (uint64_t i = 0; i < model->slices.count; i++) {
        builder->track[i] = moved[builder->track[i]];
    }
    for (uint64_t i = 0; i < builder->flow_end_count; i++) {
        builder->flow_ends[i].track = moved[builder->flow_ends[i].track];
    }
    free(model->tracks);
    free(moved);
    model->tracks = tracks;
    builder->track_capacity = count;
    return LAC_OK;
}

static bool has_counter_before_other(const struct lac_model *model)
{
    bool counter = false;

    for (uint32_t t = 0; t < model->track_count; t++) {
        if (model->tracks[t].kind == LAC_TRACK_COUNTER) {
            counter = true;
        } else if (counter) {
            return true;
        }
    }
    return false;
}

/* Tracks get their lanes side by side: each part takes the next one that nobody has. */
struct lane_laying {
    struct lac_model *model;
    uint64_t most; /* slices of a track */
    atomic_uint next;
    atomic_uint_fast64_t overflow_count;
};

static void lay_lanes(void *context, uint32_t part)
{
    struct lane_laying *const laying = context;
    struct lac_slices *slices = &laying->model->slices;
    struct lac_lane_set set;
    uint64_t overflow_count = 0;

    (void)part;
    if (lac_lane_set_init(&set, laying->most) != LAC_OK) {
        return; /* the others take its tracks */
    }
    for (uint32_t t; (t = atomic_fetch_add(&laying->next, 1)) < laying->model->track_count;) {
        struct lac_track *track = &laying->model->tracks[t];

        if (track->kind != LAC_TRACK_COUNTER) {
            uint64_t first = track->first;

            track->lane_count = lac_lanes_lay(&set, lac_lanes_are_nested(track->kind),
                                              slices->start_ns + first, slices->dur_ns + first,
                                              slices->lane + first, track->count, &overflow_count);
        }
    }
    atomic_fetch_add(&laying->overflow_count, overflow_count);
    lac_lane_set_done(&set);
}

static enum lac_status lay_all_lanes(struct lac_model *model, struct lac_crew *crew)
{
    struct lane_laying laying = {.model = model};

    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *const track = &model->tracks[t];

        if (track->kind != LAC_TRACK_COUNTER && track->count > laying.most) {
            laying.most = track->count;
        }
    }
    if (laying.most == 0) {
        return LAC_OK;
    }
    lac_crew_run(crew, lac_crew_size(crew) + 1, lay_lanes, &laying);
    if (atomic_load(&laying.next) < model->track_count) {
        return LAC_ERR_NOMEM;
    }
    if (atomic_load(&laying.overflow_count) != 0) {
        lac_model_report(model, LAC_REPORT_INFO, "lanes_exceeded",
                         atomic_load(&laying.overflow_count), 0,
                         "More than 65536 slices of a track overlap; the rest share one lane.");
    }
    return LAC_OK;
}

/* For each mangled name the id of what it stands for, for others their own. NULL and LAC_OK: there
 * is none of them. */
static enum lac_status demangle(struct lac_strings *strings, uint32_t **ret_names)
{
    const uint32_t count = strings->count;
    struct lac_demangler *demangler = NULL;
    enum lac_status status = LAC_OK;
    uint32_t *names = NULL;

    for (uint32_t id = 0; id < count && status == LAC_OK; id++) {
        const size_t length = lac_strings_length(strings, id);
        size_t plain_length = 0;

        if (!lac_is_mangled(lac_strings_get(strings, id), length)) {
            continue;
        }
        if (demangler == NULL) {
            demangler = lac_demangler_create();
            names = malloc((size_t)count * sizeof(*names));
            if (demangler == NULL || names == NULL) {
                status = LAC_ERR_NOMEM;
                break;
            }
            for (uint32_t i = 0; i < count; i++) {
                names[i] = i;
            }
        }
        const char *const plain =
            lac_demangle(demangler, lac_strings_get(strings, id), length, &plain_length);
        if (plain != NULL) {
            status = lac_strings_intern(strings, plain, plain_length, &names[id]);
        }
    }
    lac_demangler_destroy(demangler);
    if (status != LAC_OK) {
        free(names);
        names = NULL;
    }
    *ret_names = names;
    return status;
}

/* Of those that became another name, unless something was recorded under that one, too. */
static enum lac_status keep_raw_names(struct lac_model *model, const uint32_t *names,
                                      uint32_t recorded_count)
{
    model->raw_names = calloc(model->strings.count, sizeof(*model->raw_names));
    if (model->raw_names == NULL) {
        return LAC_ERR_NOMEM;
    }
    model->raw_name_count = model->strings.count;
    for (uint32_t id = recorded_count; id > 0; id--) { /* of several the first */
        if (names[id - 1] >= recorded_count) {
            model->raw_names[names[id - 1]] = id - 1;
        }
    }
    return LAC_OK;
}

/* Kernels and calls under the names that a programmer gave them. */
static enum lac_status demangle_slices(struct lac_model *model)
{
    struct lac_slices *slices = &model->slices;
    const uint32_t recorded_count = model->strings.count;
    uint32_t *names;
    enum lac_status status = demangle(&model->strings, &names);

    for (uint64_t i = 0; names != NULL && i < slices->count; i++) {
        slices->name[i] = names[slices->name[i]];
    }
    if (names != NULL) {
        status = keep_raw_names(model, names, recorded_count);
    }
    free(names);
    return status;
}

static void set_duration(struct lac_builder *builder, int64_t t0_ns)
{
    struct lac_model *model = builder->model;
    int64_t duration_ns = 0;
    uint64_t saw = (uint64_t)builder->saw_last_ns - (uint64_t)t0_ns;

    if (builder->saw_last_ns >= t0_ns && saw <= (uint64_t)LAC_TIME_MAX_NS) {
        duration_ns = (int64_t)saw;
    }
    for (uint64_t i = 0; i < model->slices.count; i++) {
        int64_t end_ns = model->slices.start_ns[i] + model->slices.dur_ns[i];

        duration_ns = end_ns > duration_ns ? end_ns : duration_ns;
    }
    for (uint64_t i = 0; i < model->sample_count; i++) {
        int64_t ts_ns = model->sample_ts_ns[i];

        duration_ns = ts_ns > duration_ns ? ts_ns : duration_ns;
    }
    model->info.duration_ns = duration_ns;
}

/* Columns that only finish() fills. The link column is left over from ordering when there are slices.
 * One entry more than needed: malloc(0) may be NULL. */
static enum lac_status add_columns(struct lac_slices *slices)
{
    const size_t lane_bytes = (slices->count + 1) * sizeof(*slices->lane);
    const size_t link_bytes = (slices->count + 1) * sizeof(*slices->link);

    slices->lane = lac_huge_pages(malloc(lane_bytes), lane_bytes);
    if (slices->link == NULL) {
        slices->link = lac_huge_pages(malloc(link_bytes), link_bytes);
    }
    return slices->lane == NULL || slices->link == NULL ? LAC_ERR_NOMEM : LAC_OK;
}

/* The first time, or where most events are when one of them is too far from it. */
static int64_t choose_t0(struct lac_builder *builder)
{
    const int64_t last_ns =
        builder->last_ns > builder->saw_last_ns ? builder->last_ns : builder->saw_last_ns;
    const uint64_t span_ns = (uint64_t)last_ns - (uint64_t)builder->first_ns;

    if (!builder->has_time) {
        return 0;
    }
    return span_ns <= (uint64_t)LAC_TIME_MAX_NS ? builder->first_ns : lac_builder_origin(builder);
}

enum lac_status lac_builder_finish(struct lac_builder *builder, int64_t base_ns,
                                   struct lac_model **ret_model)
{
    assert(builder != NULL && ret_model != NULL);
    struct lac_model *model = builder->model;
    const int64_t t0_ns = choose_t0(builder);
    enum lac_status status = LAC_OK;

    if (has_counter_before_other(model)) {
        status = move_counters(builder);
    }
    if (status == LAC_OK) {
        status = lac_finish_order(builder, t0_ns);
    }
    if (status == LAC_OK) {
        status = lac_finish_samples(builder, t0_ns);
    }
    if (status == LAC_OK && builder->is_to_demangle) {
        status = demangle_slices(model);
    }
    if (status == LAC_OK) {
        status = add_columns(&model->slices);
    }
    if (status == LAC_OK) {
        status = lay_all_lanes(model, builder->crew);
    }
    if (status == LAC_OK) {
        status = lac_finish_bind(model);
    }
    if (status == LAC_OK) {
        status = lac_finish_flows(builder, t0_ns);
    }
    if (status != LAC_OK) {
        return status;
    }
    set_duration(builder, t0_ns);
    model->recorded_track_count = model->track_count;
    if (__builtin_add_overflow(base_ns, t0_ns, &model->info.t0_ns)) {
        model->info.t0_ns = base_ns < 0 ? INT64_MIN : INT64_MAX;
    }
    builder->model = NULL;
    lac_builder_destroy(builder);
    *ret_model = model;
    return LAC_OK;
}
