/* Any bytes as a small model: the graphs must add up, whatever crosses, links or repeats. */

#include "analysis/flame/flame.h"
#include "analysis/model/builder.h"
#include "tests/fuzz/fuzz_check.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct tape {
    const uint8_t *data;
    size_t size;
    size_t at;
};

static uint32_t next(struct tape *tape)
{
    return tape->at < tape->size ? tape->data[tape->at++] : 0;
}

static struct lac_model *model_of(struct tape *tape)
{
    static const enum lac_track_kind ROWS[4] = {LAC_TRACK_THREAD, LAC_TRACK_THREAD,
                                                LAC_TRACK_STREAM, LAC_TRACK_STREAM};
    static const char *const NAMES[8] = {"a", "b", "c", "d", "ProfilerStep#1", "nn.Module: e",
                                         "",  "f"};
    struct lac_builder *builder;
    struct lac_model *model = NULL;
    uint32_t process;
    uint32_t rows[4];
    uint32_t names[8];
    require(lac_builder_create(&builder) == LAC_OK);
    require(lac_builder_process(builder, 0, 1, &process) == LAC_OK);
    for (uint32_t i = 0; i < 8; i++) {
        require(lac_strings_intern(&lac_builder_model(builder)->strings, NAMES[i], strlen(NAMES[i]),
                                   &names[i]) == LAC_OK);
    }
    for (uint32_t i = 0; i < 4; i++) {
        require(lac_builder_track(builder, ROWS[i], process, names[i], (int64_t)i, &rows[i]) ==
                LAC_OK);
    }
    while (tape->at < tape->size) {
        uint32_t place = next(tape);
        struct lac_slice_in in = {.track = rows[place & 3], .detail = LAC_NONE};
        bool is_stream = (place & 2) != 0;
        in.kind = is_stream ? (enum lac_slice_kind)(LAC_SLICE_KERNEL + (place >> 2) % 3)
                            : (enum lac_slice_kind)((place >> 2) % LAC_SLICE_STEP);
        in.name = names[next(tape) & 7];
        in.start_ns = next(tape) * 16;
        in.dur_ns = next(tape);
        in.corr = next(tape) & 31;
        require(lac_builder_slice(builder, &in) == LAC_OK);
    }
    require(lac_builder_finish(builder, 0, &model) == LAC_OK);
    require(lac_model_is_valid(model));
    return model;
}

/* Gaps and steps as a diagnosis would add them, wherever the bytes say. */
static void derive(struct lac_model *model, const uint8_t *data, size_t size)
{
    struct lac_derived_slice gaps[64];
    uint64_t count = 0;
    int64_t t = 0;
    for (size_t i = 0; i + 2 < size && count < 64; i += 3) {
        t += data[i];
        gaps[count++] = (struct lac_derived_slice){
            .start_ns = t,
            .dur_ns = data[i + 1] + 1,
            .name = data[i + 2] % model->strings.count,
            .link =
                model->slices.count == 0 ? LAC_NONE : (uint32_t)(data[i + 2] % model->slices.count),
            .kind = LAC_SLICE_GAP,
        };
        t += data[i + 1] + 1;
    }
    struct lac_track track = {.kind = LAC_TRACK_GAPS, .process = LAC_NONE};
    require(lac_model_add_track(model, &track, gaps, count) == LAC_OK);
    for (uint64_t i = 0; i < count; i++) {
        gaps[i].kind = LAC_SLICE_STEP;
    }
    track.kind = LAC_TRACK_STEPS;
    require(lac_model_add_track(model, &track, gaps, count) == LAC_OK);
}

static int64_t check(const struct lac_flame *flame, uint32_t limit)
{
    uint32_t first_free = 1;
    require(flame->node_count >= 1);
    require(flame->node_count <= limit);
    for (uint32_t i = 0; i < flame->node_count; i++) {
        const struct lac_flame_node *n = &flame->nodes[i];
        int64_t sum_ns = n->self_ns;
        require(n->child_count == 0 || n->first_child == first_free);
        first_free += n->child_count;
        require(first_free <= flame->node_count);
        require(n->self_ns >= 0);
        for (uint32_t c = 0; c < n->child_count; c++) {
            sum_ns += flame->nodes[n->first_child + c].value_ns;
            require(flame->nodes[n->first_child + c].parent == i);
        }
        require(sum_ns == n->value_ns);
    }
    require(first_free == flame->node_count);
    return flame->nodes[0].value_ns;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4 || size > 4096) {
        return 0;
    }
    struct tape tape = {.data = data, .size = size, .at = 4};
    struct lac_model *model = model_of(&tape);
    derive(model, data, size);
    int64_t t0_ns = data[0] * 16;
    int64_t middle_ns = t0_ns + data[1] * 4 + 1;
    for (int metric = 0; metric < 3; metric++) {
        for (int by = 0; by < 5; by++) {
            struct lac_flame_options options = {
                .metric = (enum lac_flame_metric)metric,
                .by = (enum lac_flame_by)by,
                .prune_fraction = (data[2] & 1) != 0 ? 0.05 : 0,
                .node_count_max = 2u + data[3],
                .order = (data[2] & 2) != 0 ? LAC_FLAME_ORDER_TIME : LAC_FLAME_ORDER_VALUE,
            };
            /* the two halves of an area add up to the area */
            int64_t bounds_ns[3] = {t0_ns, middle_ns, LAC_TIME_MAX_NS};
            int64_t sums_ns[4];
            for (int part = 0; part < 3; part++) {
                struct lac_flame *flame = NULL;
                options.t0_ns = bounds_ns[part == 1 ? 1 : 0];
                options.t1_ns = bounds_ns[part == 0 ? 1 : 2];
                require(lac_flame_create(model, &options, &flame) == LAC_OK);
                sums_ns[part] = check(flame, options.node_count_max);
                lac_flame_destroy(flame);
            }
            require(sums_ns[0] + sums_ns[1] == sums_ns[2]);
            /* and the area in two spans is the area */
            const struct lac_flame_span spans[2] = {{bounds_ns[0], bounds_ns[1]},
                                                    {bounds_ns[1], bounds_ns[2]}};
            struct lac_flame *flame = NULL;
            options.spans = spans;
            options.span_count = 2;
            options.t0_ns = bounds_ns[0];
            require(lac_flame_create(model, &options, &flame) == LAC_OK);
            sums_ns[3] = check(flame, options.node_count_max);
            lac_flame_destroy(flame);
            require(sums_ns[3] == sums_ns[2]);
        }
    }
    lac_model_destroy(model);
    return 0;
}
