/* Flame graphs against models built by hand, and against an oracle that looks at every ns. */

#include "analysis/flame/flame.h"
#include "analysis/flame/flame_stack.h"
#include "analysis/model/builder.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_draw.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- building ---- */

struct making {
    struct lac_builder *builder;
    uint32_t process;
};

static struct making begun(void)
{
    struct making m;
    ck_assert_int_eq(lac_builder_create(&m.builder), LAC_OK);
    ck_assert_int_eq(lac_builder_process(m.builder, 0, 1, &m.process), LAC_OK);
    return m;
}

static uint32_t named(struct making *m, const char *name)
{
    uint32_t id;
    ck_assert_int_eq(
        lac_strings_intern(&lac_builder_model(m->builder)->strings, name, strlen(name), &id),
        LAC_OK);
    return id;
}

static uint32_t row(struct making *m, enum lac_track_kind kind, const char *id)
{
    uint32_t track;
    ck_assert_int_eq(
        lac_builder_track(m->builder, kind, m->process, named(m, id), strtol(id, NULL, 10), &track),
        LAC_OK);
    if (kind == LAC_TRACK_STREAM) {
        lac_builder_track_at(m->builder, track)->device = 0;
    }
    return track;
}

static void put(struct making *m, uint32_t track, enum lac_slice_kind kind, const char *name,
                int64_t start_ns, int64_t end_ns, uint32_t corr)
{
    struct lac_slice_in in = {.start_ns = start_ns,
                              .dur_ns = end_ns - start_ns,
                              .track = track,
                              .name = named(m, name),
                              .corr = corr,
                              .detail = LAC_NONE,
                              .kind = kind};
    ck_assert_int_eq(lac_builder_slice(m->builder, &in), LAC_OK);
}

static struct lac_model *made(struct making *m)
{
    struct lac_model *model = NULL;
    ck_assert_int_eq(lac_builder_finish(m->builder, 0, &model), LAC_OK);
    ck_assert(lac_model_is_valid(model));
    return model;
}

static uint32_t find(const struct lac_model *model, const char *name, int occurrence)
{
    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (strcmp(lac_model_str(model, model->slices.name[i]), name) == 0 && occurrence-- == 0) {
            return (uint32_t)i;
        }
    }
    ck_abort_msg("no slice %s", name);
}

static void derive(struct lac_model *model, enum lac_track_kind kind,
                   const struct lac_derived_slice *slices, uint64_t count)
{
    struct lac_track track = {.kind = kind, .process = LAC_NONE, .device = 0};
    ck_assert_int_eq(lac_model_add_track(model, &track, slices, count), LAC_OK);
}

static struct lac_flame *drawn(const struct lac_model *model, enum lac_flame_metric metric,
                               enum lac_flame_by by, int64_t t0_ns, int64_t t1_ns)
{
    struct lac_flame_options options = {
        .metric = metric, .by = by, .t0_ns = t0_ns, .t1_ns = t1_ns, .node_count_max = 1000000};
    struct lac_flame *flame = NULL;
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    return flame;
}

/* ---- looking ---- */

static const char *name_of(const struct lac_model *model, const struct lac_flame_node *node)
{
    return node->name == LAC_NONE ? "..." : lac_model_str(model, node->name);
}

/* What every graph must hold to. */
static void check_sums(const struct lac_flame *flame)
{
    uint32_t next = 1;
    ck_assert_uint_ge(flame->node_count, 1);
    ck_assert_uint_eq(flame->nodes[0].parent, LAC_NONE);
    for (uint32_t i = 0; i < flame->node_count; i++) {
        const struct lac_flame_node *n = &flame->nodes[i];
        int64_t children_ns = 0;
        ck_assert(n->child_count == 0 || n->first_child == next);
        next += n->child_count;
        for (uint32_t c = 0; c < n->child_count; c++) {
            ck_assert_uint_eq(flame->nodes[n->first_child + c].parent, i);
            children_ns += flame->nodes[n->first_child + c].value_ns;
        }
        ck_assert_int_eq(n->value_ns, n->self_ns + children_ns);
        ck_assert_int_ge(n->self_ns, 0);
    }
    ck_assert_uint_eq(next, flame->node_count);
}

/* What every graph must hold to whose frames are in order of their values. */
static void check_shape(const struct lac_model *model, const struct lac_flame *flame)
{
    check_sums(flame);
    for (uint32_t i = 0; i < flame->node_count; i++) {
        const struct lac_flame_node *n = &flame->nodes[i];
        for (uint32_t c = 1; c < n->child_count; c++) {
            const struct lac_flame_node *child = &flame->nodes[n->first_child + c];
            const struct lac_flame_node *before = child - 1;
            ck_assert(before->name != LAC_NONE);
            ck_assert(child->name == LAC_NONE || before->value_ns > child->value_ns ||
                      (before->value_ns == child->value_ns &&
                       strcmp(name_of(model, before), name_of(model, child)) < 0));
        }
    }
}

enum { TEXT_MAX = 1 << 16, PATH_MAX_ = 512 };

static void path_of(const struct lac_model *model, const struct lac_flame *flame, uint32_t node,
                    char *out)
{
    char rest[PATH_MAX_] = "";
    out[0] = '\0';
    for (; node != 0; node = flame->nodes[node].parent) {
        (void)snprintf(rest, sizeof(rest), "%s", out);
        (void)snprintf(out, PATH_MAX_, "%s%s%.400s", name_of(model, &flame->nodes[node]),
                       rest[0] == '\0' ? "" : ";", rest);
    }
}

/* Lines "a;b;c self count", sorted, of frames that have time of their own. */
static const char *folded(const struct lac_model *model, const struct lac_flame *flame)
{
    static char text[TEXT_MAX];
    size_t used = 0;
    char path[PATH_MAX_];
    check_shape(model, flame);
    text[0] = '\0';
    for (uint32_t i = 0; i < flame->node_count; i++) {
        if (flame->nodes[i].self_ns > 0) {
            path_of(model, flame, i, path);
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %lld %llu\n", path,
                                     (long long)flame->nodes[i].self_ns,
                                     (unsigned long long)flame->nodes[i].count);
        }
    }
    return text;
}

/* ---- hand-built ---- */

/* main:   step [0,100) { forward [5,50) { conv [10,20){launch 12-14} relu [20,30){launch 22-24} } }
 * grad:   backward op [60,90) { launch 62-64 }
 * stream: conv kernel [30,60), relu kernel [60,70), grad kernel [80,90), stray [95,99) */
static struct lac_model *small_model(void)
{
    struct making m = begun();
    uint32_t main_row = row(&m, LAC_TRACK_THREAD, "1");
    uint32_t grad_row = row(&m, LAC_TRACK_THREAD, "2");
    uint32_t stream = row(&m, LAC_TRACK_STREAM, "7");
    put(&m, main_row, LAC_SLICE_RANGE, "ProfilerStep#3", 0, 100, 0);
    put(&m, main_row, LAC_SLICE_RANGE, "forward", 5, 50, 0);
    put(&m, main_row, LAC_SLICE_PYTHON, "nn.Module", 6, 45, 0);
    put(&m, main_row, LAC_SLICE_OP, "conv", 10, 20, 0);
    put(&m, main_row, LAC_SLICE_API, "launch", 12, 14, 1);
    put(&m, main_row, LAC_SLICE_OP, "relu", 20, 30, 0);
    put(&m, main_row, LAC_SLICE_API, "launch", 22, 24, 2);
    put(&m, grad_row, LAC_SLICE_OP, "backward", 60, 90, 0);
    put(&m, grad_row, LAC_SLICE_API, "launch", 62, 64, 3);
    put(&m, stream, LAC_SLICE_KERNEL, "conv_kernel", 30, 60, 1);
    put(&m, stream, LAC_SLICE_KERNEL, "relu_kernel", 60, 70, 2);
    put(&m, stream, LAC_SLICE_KERNEL, "grad_kernel", 80, 90, 3);
    put(&m, stream, LAC_SLICE_COPY, "stray", 95, 99, 0);
    struct lac_model *model = made(&m);
    struct lac_derived_slice step = {
        .start_ns = 0, .dur_ns = 100, .link = LAC_NONE, .kind = LAC_SLICE_STEP};
    step.name = lac_strings_find(&model->strings, "ProfilerStep#3", 14);
    derive(model, LAC_TRACK_STEPS, &step, 1);
    return model;
}

START_TEST(kernels_stand_under_what_enclosed_their_launch)
{
    struct lac_model *model = small_model();
    struct lac_flame *flame = drawn(model, LAC_FLAME_GPU, LAC_FLAME_BY_OP, 0, 0);
    ck_assert_str_eq(folded(model, flame), "stray 4 1\n"
                                           "backward;grad_kernel 10 1\n"
                                           "forward;conv;conv_kernel 30 1\n"
                                           "forward;relu;relu_kernel 10 1\n");
    ck_assert_int_eq(flame->nodes[0].value_ns, 54);
    ck_assert_uint_eq(flame->nodes[0].count, 4);
    ck_assert_uint_eq(flame->step_count, 1);
    lac_flame_destroy(flame);
    flame = drawn(model, LAC_FLAME_GPU, LAC_FLAME_BY_RANGE, 0, 0);
    ck_assert_str_eq(folded(model, flame), "grad_kernel 10 1\n"
                                           "stray 4 1\n"
                                           "forward;conv_kernel 30 1\n"
                                           "forward;relu_kernel 10 1\n");
    lac_flame_destroy(flame);
    flame = drawn(model, LAC_FLAME_GPU, LAC_FLAME_BY_KERNEL, 0, 0);
    ck_assert_str_eq(folded(model, flame), "conv_kernel 30 1\n"
                                           "grad_kernel 10 1\n"
                                           "relu_kernel 10 1\n"
                                           "stray 4 1\n");
    lac_flame_destroy(flame);
    flame = drawn(model, LAC_FLAME_GPU, LAC_FLAME_BY_PYTHON, 0, 0);
    ck_assert_str_eq(folded(model, flame), "stray 4 1\n"
                                           "backward;grad_kernel 10 1\n"
                                           "forward;nn.Module;conv;conv_kernel 30 1\n"
                                           "forward;nn.Module;relu;relu_kernel 10 1\n");
    lac_flame_destroy(flame);
    lac_model_destroy(model);
}
END_TEST

START_TEST(an_area_clips_intervals)
{
    struct lac_model *model = small_model();
    struct lac_flame *flame = drawn(model, LAC_FLAME_GPU, LAC_FLAME_BY_OP, 50, 85);
    ck_assert_str_eq(folded(model, flame), "backward;grad_kernel 5 1\n"
                                           "forward;conv;conv_kernel 10 1\n"
                                           "forward;relu;relu_kernel 10 1\n");
    lac_flame_destroy(flame);
    flame = drawn(model, LAC_FLAME_GPU, LAC_FLAME_BY_OP, 70, 80);
    ck_assert_uint_eq(flame->node_count, 1);
    ck_assert_int_eq(flame->nodes[0].value_ns, 0);
    ck_assert_uint_eq(flame->step_count, 1);
    lac_flame_destroy(flame);
    flame = drawn(model, LAC_FLAME_GPU, LAC_FLAME_BY_OP, 100, 200);
    ck_assert_uint_eq(flame->step_count, 0);
    lac_flame_destroy(flame);
    lac_model_destroy(model);
}
END_TEST

START_TEST(host_time_is_self_time_under_parents)
{
    struct lac_model *model = small_model();
    struct lac_flame *flame = drawn(model, LAC_FLAME_CPU, LAC_FLAME_BY_OP, 0, 0);
    ck_assert_str_eq(folded(model, flame), "forward 25 1\n"
                                           "backward 28 1\n"
                                           "forward;conv 8 1\n"
                                           "forward;relu 8 1\n"
                                           "backward;launch 2 1\n"
                                           "forward;conv;launch 2 1\n"
                                           "forward;relu;launch 2 1\n");
    ck_assert_int_eq(flame->nodes[0].value_ns, 75);
    ck_assert_uint_eq(flame->nodes[0].count, 7);
    lac_flame_destroy(flame);
    flame = drawn(model, LAC_FLAME_CPU, LAC_FLAME_BY_KERNEL, 0, 0);
    ck_assert_str_eq(folded(model, flame), "backward 28 1\n"
                                           "nn.Module 19 1\n"
                                           "conv 8 1\n"
                                           "relu 8 1\n"
                                           "forward 6 1\n"
                                           "launch 6 3\n");
    lac_flame_destroy(flame);
    lac_model_destroy(model);
}
END_TEST

START_TEST(host_time_leaves_out_the_recorder_and_threads_that_only_wait)
{
    struct lac_model *model =
        trace_draw("main op 0 4000 forward\n"
                   "spans other 0 50000 PyTorch Profiler (0)\n"
                   "tqdm python 0 50000 threading.py(1032): _bootstrap\n"
                   "tqdm python 10 49900 tqdm/_monitor.py(60): run\n"
                   "tqdm python 20 49800 threading.py(589): wait\n"
                   "tqdm python 30 49700 <built-in method acquire of _thread.lock object at 0x7f>\n"
                   "work python 0 9000 threading.py(1032): _bootstrap\n"
                   "work python 10 4000 threading.py(589): wait\n");
    struct lac_flame_options options = {.metric = LAC_FLAME_CPU, .by = LAC_FLAME_BY_PYTHON};
    struct lac_flame *flame = NULL;
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    ck_assert_int_eq(flame->nodes[0].value_ns, 13000000); /* main and work */
    lac_flame_destroy(flame);
    lac_model_destroy(model);
}
END_TEST

START_TEST(waiting_stands_under_its_cause_and_what_the_launching_thread_did)
{
    struct lac_model *model = small_model();
    struct lac_derived_slice gaps[4] = {{.start_ns = 0, .dur_ns = 7, .kind = LAC_SLICE_GAP},
                                        {.start_ns = 7, .dur_ns = 23, .kind = LAC_SLICE_GAP},
                                        {.start_ns = 70, .dur_ns = 10, .kind = LAC_SLICE_GAP},
                                        {.start_ns = 90, .dur_ns = 5, .kind = LAC_SLICE_GAP}};
    uint32_t host;
    uint32_t launch;
    ck_assert_int_eq(lac_strings_intern(&model->strings, "host", 4, &host), LAC_OK);
    ck_assert_int_eq(lac_strings_intern(&model->strings, "latency", 7, &launch), LAC_OK);
    gaps[0].name = host;
    gaps[0].link = find(model, "conv_kernel", 0);
    gaps[1].name = launch;
    gaps[1].link = gaps[0].link;
    gaps[2].name = host;
    gaps[2].link = find(model, "grad_kernel", 0);
    gaps[3].name = host;
    gaps[3].link = find(model, "stray", 0);
    derive(model, LAC_TRACK_GAPS, gaps, 4);
    struct lac_flame *flame = drawn(model, LAC_FLAME_WAITING, LAC_FLAME_BY_OP, 0, 0);
    /* [0,5) before forward, [5,7) in it; [70,80) in backward of the other
     * thread; [90,95) unlinked */
    ck_assert_str_eq(folded(model, flame), "host 10 3\n"
                                           "latency;forward 3 1\n"
                                           "host;backward 10 1\n"
                                           "host;forward 2 1\n"
                                           "latency;forward;conv 8 1\n"
                                           "latency;forward;relu 8 1\n"
                                           "latency;forward;conv;launch 2 1\n"
                                           "latency;forward;relu;launch 2 1\n");
    ck_assert_int_eq(flame->nodes[0].value_ns, 45);
    ck_assert_uint_eq(flame->nodes[0].count, 4);
    lac_flame_destroy(flame);
    flame = drawn(model, LAC_FLAME_WAITING, LAC_FLAME_BY_KERNEL, 0, 0);
    ck_assert_str_eq(folded(model, flame), "latency 23 1\nhost 22 3\n");
    lac_flame_destroy(flame);
    flame = drawn(model, LAC_FLAME_WAITING, LAC_FLAME_BY_RANGE, 6, 12);
    ck_assert_str_eq(folded(model, flame), "latency;forward 5 1\nhost;forward 1 1\n");
    lac_flame_destroy(flame);
    lac_model_destroy(model);
}
END_TEST

START_TEST(small_frames_are_summed_not_lost)
{
    struct making m = begun();
    uint32_t stream = row(&m, LAC_TRACK_STREAM, "7");
    int64_t t = 0;
    char name[16];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "k%02d", i);
        put(&m, stream, LAC_SLICE_KERNEL, name, t, t + 1 + i * i, 0);
        t += 2 + i * i;
    }
    struct lac_model *model = made(&m);
    struct lac_flame_options options = {.metric = LAC_FLAME_GPU, .prune_fraction = 0.01};
    struct lac_flame *flame = NULL;
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    check_shape(model, flame);
    int64_t total = flame->nodes[0].value_ns;
    ck_assert_int_eq(total, t - 100);
    const struct lac_flame_node *more = &flame->nodes[flame->node_count - 1];
    ck_assert_uint_eq(more->name, LAC_NONE);
    ck_assert_uint_eq(more->count + flame->node_count - 2, 100);
    for (uint32_t i = 1; i + 1 < flame->node_count; i++) {
        ck_assert_double_ge((double)flame->nodes[i].value_ns, 0.01 * (double)total);
    }
    lac_flame_destroy(flame);
    options.prune_fraction = 0;
    for (uint32_t limit = 2; limit < 110; limit++) {
        options.node_count_max = limit;
        ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
        check_shape(model, flame);
        ck_assert_uint_eq(flame->node_count, limit < 101 ? limit : 101);
        ck_assert_int_eq(flame->nodes[0].value_ns, total);
        lac_flame_destroy(flame);
    }
    lac_model_destroy(model);
}
END_TEST

START_TEST(an_empty_model_has_only_a_root)
{
    struct making m = begun();
    struct lac_model *model = made(&m);
    for (int metric = 0; metric < 3; metric++) {
        struct lac_flame *flame =
            drawn(model, (enum lac_flame_metric)metric, LAC_FLAME_BY_PYTHON, 0, 0);
        ck_assert_uint_eq(flame->node_count, 1);
        ck_assert_int_eq(flame->nodes[0].value_ns, 0);
        lac_flame_destroy(flame);
    }
    lac_flame_destroy(NULL);
    lac_model_destroy(model);
}
END_TEST

START_TEST(a_staircase_of_crossing_slices_stays_small)
{
    struct lac_flame_tree tree;
    struct lac_flame_stack stack;
    ck_assert_int_eq(lac_flame_tree_init(&tree), LAC_OK);
    lac_flame_stack_init(&stack, &tree);
    for (int64_t t = 0; t < 200000; t++) {
        lac_flame_stack_pop(&stack, t);
        ck_assert_int_eq(lac_flame_stack_push(&stack, t, t + 5, 1, LAC_SLICE_OP), LAC_OK);
    }
    ck_assert_uint_le(stack.capacity, 64);
    lac_flame_stack_done(&stack);
    lac_flame_tree_done(&tree);
}
END_TEST

/* ---- the oracle: every ns, every slice, no cleverness ---- */

static uint32_t random_state = 1;

static int64_t upto(int64_t below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int64_t)((uint64_t)(random_state >> 8) % (uint64_t)below);
}

struct sum {
    char path[PATH_MAX_];
    int64_t self_ns;
};

/* Time in one frame from `start_ns` on; those of a lower group come first. */
struct piece {
    int64_t group, start_ns, length_ns;
    int number, path;
};

struct sums {
    struct sum at[4096];
    int count;
    struct piece pieces[8192];
    int piece_count;
};

static void sum_add(struct sums *sums, const char *path, int64_t group, int64_t start_ns,
                    int64_t ns)
{
    int at = 0;
    while (at < sums->count && strcmp(sums->at[at].path, path) != 0) {
        at++;
    }
    if (at == sums->count) {
        ck_assert_int_lt(sums->count, 4096);
        (void)snprintf(sums->at[at].path, PATH_MAX_, "%s", path);
        sums->at[sums->count++].self_ns = 0;
    }
    sums->at[at].self_ns += ns;
    ck_assert_int_lt(sums->piece_count, 8192);
    sums->pieces[sums->piece_count] = (struct piece){group, start_ns, ns, sums->piece_count, at};
    sums->piece_count++;
}

/* Whether that ns is asked for. */
static bool is_asked(const struct lac_flame_options *options, int64_t now)
{
    bool is_inside = options->span_count == 0;
    for (uint32_t i = 0; i < options->span_count; i++) {
        is_inside =
            is_inside || (now >= options->spans[i].start_ns && now < options->spans[i].end_ns);
    }
    return is_inside && now >= options->t0_ns && now < options->t1_ns;
}

static bool oracle_frame(const struct lac_model *model, uint64_t slice,
                         enum lac_flame_metric metric, enum lac_flame_by by)
{
    bool host = metric != LAC_FLAME_GPU;
    if (strncmp(lac_model_str(model, model->slices.name[slice]), "ProfilerStep#", 13) == 0) {
        return false;
    }
    switch (model->slices.kind[slice]) {
    case LAC_SLICE_RANGE:
        return true;
    case LAC_SLICE_OP:
    case LAC_SLICE_OTHER:
        return by != LAC_FLAME_BY_RANGE && by != LAC_FLAME_BY_MODULE;
    case LAC_SLICE_PYTHON:
        return by == LAC_FLAME_BY_PYTHON ||
               (by == LAC_FLAME_BY_MODULE &&
                strstr(lac_model_str(model, model->slices.name[slice]), "nn.Module: ") != NULL);
    case LAC_SLICE_API:
    case LAC_SLICE_OVERHEAD:
        return host && by != LAC_FLAME_BY_RANGE && by != LAC_FLAME_BY_MODULE;
    default:
        return false;
    }
}

static int64_t end_of(const struct lac_model *model, uint64_t slice)
{
    return model->slices.start_ns[slice] + model->slices.dur_ns[slice];
}

/* The latest frame before `slice` on its track that is open at its start and ends no earlier. */
static int64_t oracle_parent(const struct lac_model *model, uint64_t slice,
                             enum lac_flame_metric metric, enum lac_flame_by by)
{
    uint64_t first = model->tracks[lac_model_track_of(model, slice)].first;
    for (uint64_t j = slice; j-- > first;) {
        if (end_of(model, j) > model->slices.start_ns[slice] &&
            end_of(model, j) >= end_of(model, slice) && oracle_frame(model, j, metric, by)) {
            return (int64_t)j;
        }
    }
    return -1;
}

static void oracle_path(const struct lac_model *model, int64_t slice, enum lac_flame_metric metric,
                        enum lac_flame_by by, const char *base, const char *leaf, char *out)
{
    char rest[PATH_MAX_];
    (void)snprintf(out, PATH_MAX_, "%s", leaf);
    for (; slice >= 0; slice = oracle_parent(model, (uint64_t)slice, metric, by)) {
        (void)snprintf(rest, sizeof(rest), "%s", out);
        (void)snprintf(out, PATH_MAX_, "%s%s%.400s",
                       lac_model_str(model, model->slices.name[slice]), rest[0] == '\0' ? "" : ";",
                       rest);
    }
    if (base[0] != '\0') {
        (void)snprintf(rest, sizeof(rest), "%s", out);
        (void)snprintf(out, PATH_MAX_, "%s%s%.400s", base, rest[0] == '\0' ? "" : ";", rest);
    }
}

/* The frame of `track` that began last of those open at t, -1: none. */
static int64_t oracle_top(const struct lac_model *model, uint32_t track, int64_t t,
                          enum lac_flame_metric metric, enum lac_flame_by by)
{
    const struct lac_track *tr = &model->tracks[track];
    for (uint64_t j = tr->first + tr->count; j-- > tr->first;) {
        if (model->slices.start_ns[j] <= t && t < end_of(model, j) &&
            oracle_frame(model, j, metric, by)) {
            return (int64_t)j;
        }
    }
    return -1;
}

static void oracle(const struct lac_model *model, const struct lac_flame_options *options,
                   struct sums *sums)
{
    const enum lac_flame_metric metric = options->metric;
    const enum lac_flame_by by = options->by;
    char path[PATH_MAX_];
    sums->count = 0;
    sums->piece_count = 0;
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (options->is_chosen != NULL && options->is_chosen[t] == 0) {
            continue;
        }
        for (int64_t now = 0;
             now < 400 && metric == LAC_FLAME_CPU && track->kind == LAC_TRACK_THREAD; now++) {
            int64_t top = is_asked(options, now) ? oracle_top(model, t, now, metric, by) : -1;
            if (top >= 0) {
                oracle_path(model, top, metric, by, "", "", path);
                sum_add(sums, path, t, now, 1);
            }
        }
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            const char *name = lac_model_str(model, model->slices.name[i]);
            uint32_t link = model->slices.link[i];
            int64_t ns = 0;
            for (int64_t now = model->slices.start_ns[i]; now < end_of(model, i); now++) {
                ns += is_asked(options, now) ? 1 : 0;
                if (metric == LAC_FLAME_WAITING && track->kind == LAC_TRACK_GAPS &&
                    is_asked(options, now)) {
                    uint32_t launch = link == LAC_NONE ? LAC_NONE : model->slices.link[link];
                    int64_t top =
                        launch == LAC_NONE
                            ? -1
                            : oracle_top(model, lac_model_track_of(model, launch), now, metric, by);
                    oracle_path(model, top, metric, by, name, "", path);
                    sum_add(sums, path, t, now, 1);
                }
            }
            if (metric == LAC_FLAME_GPU && track->kind == LAC_TRACK_STREAM && ns > 0) {
                int64_t parent = link == LAC_NONE ? -1 : oracle_parent(model, link, metric, by);
                oracle_path(model, parent, metric, by, "", name, path);
                sum_add(sums, path, 0, model->slices.start_ns[i], ns);
            }
        }
    }
}

static int by_time(const void *a, const void *b)
{
    const struct piece *x = a;
    const struct piece *y = b;
    if (x->group != y->group) {
        return x->group < y->group ? -1 : 1;
    }
    if (x->start_ns != y->start_ns) {
        return x->start_ns < y->start_ns ? -1 : 1;
    }
    return x->number - y->number;
}

/* The frame of a path at that depth and its length, 0: the path has ended. */
static size_t frame_at(const char *path, int depth, const char **ret_name)
{
    for (; depth > 0 && path != NULL; depth--) {
        path = strchr(path, ';');
        path = path != NULL ? path + 1 : NULL;
    }
    *ret_name = path;
    return path != NULL ? strcspn(path, ";") : 0;
}

/* What is in pieces [first, end), all of one parent: runs of one name are a frame. */
static size_t print_pieces(const struct sums *sums, int first, int end, int depth, char *out)
{
    size_t used = 0;
    for (int i = first; i < end;) {
        const char *name;
        const char *other;
        const size_t length = frame_at(sums->at[sums->pieces[i].path].path, depth, &name);
        int64_t value_ns = 0;
        int next = i;
        for (; next < end; next++) {
            const size_t same = frame_at(sums->at[sums->pieces[next].path].path, depth, &other);
            if (same != length || (length > 0 && strncmp(name, other, length) != 0)) {
                break;
            }
            value_ns += sums->pieces[next].length_ns;
        }
        if (length > 0) {
            used += (size_t)snprintf(out + used, TEXT_MAX - used, "%d %.*s %lld\n", depth,
                                     (int)length, name, (long long)value_ns);
            used += print_pieces(sums, i, next, depth + 1, out + used);
        }
        i = next;
    }
    return used;
}

static size_t print_nodes(const struct lac_model *model, const struct lac_flame *flame,
                          uint32_t node, int depth, char *out)
{
    const struct lac_flame_node *n = &flame->nodes[node];
    size_t used = 0;
    for (uint32_t c = n->first_child; c < n->first_child + n->child_count; c++) {
        used +=
            (size_t)snprintf(out + used, TEXT_MAX - used, "%d %s %lld\n", depth,
                             name_of(model, &flame->nodes[c]), (long long)flame->nodes[c].value_ns);
        used += print_nodes(model, flame, c, depth + 1, out + used);
    }
    return used;
}

static struct lac_model *random_model(void)
{
    static const char *const NAMES[6] = {"a", "b", "c", "d", "ProfilerStep#1", "nn.Module: e"};
    static const enum lac_slice_kind KINDS[7] = {
        LAC_SLICE_OP,  LAC_SLICE_RANGE,    LAC_SLICE_PYTHON, LAC_SLICE_OTHER,
        LAC_SLICE_API, LAC_SLICE_OVERHEAD, LAC_SLICE_SYNC};
    struct making m = begun();
    uint32_t threads[2] = {row(&m, LAC_TRACK_THREAD, "1"), row(&m, LAC_TRACK_THREAD, "2")};
    uint32_t streams[2] = {row(&m, LAC_TRACK_STREAM, "7"), row(&m, LAC_TRACK_STREAM, "8")};
    int64_t host = 2 + upto(40);
    for (int64_t i = 0; i < host; i++) {
        int64_t start = upto(150);
        int64_t length = upto(4) == 0 ? upto(150) : upto(20);
        enum lac_slice_kind kind = KINDS[upto(7)];
        put(&m, threads[upto(2)], kind, NAMES[upto(6)], start, start + length,
            kind == LAC_SLICE_API ? (uint32_t)(1 + upto(12)) : 0);
    }
    int64_t ops = 1 + upto(20);
    for (int64_t i = 0; i < ops; i++) {
        int64_t start = upto(180);
        put(&m, streams[upto(2)], upto(3) == 0 ? LAC_SLICE_COPY : LAC_SLICE_KERNEL,
            upto(2) == 0 ? "kernel" : "other kernel", start, start + upto(30), (uint32_t)upto(13));
    }
    struct lac_model *model = made(&m);
    struct lac_derived_slice gaps[64];
    uint64_t count = 0;
    uint32_t causes[2];
    ck_assert_int_eq(lac_strings_intern(&model->strings, "host", 4, &causes[0]), LAC_OK);
    ck_assert_int_eq(lac_strings_intern(&model->strings, "sync", 4, &causes[1]), LAC_OK);
    for (int64_t t = upto(10); t < 200 && count < 64; t += upto(12)) {
        int64_t length = 1 + upto(9);
        uint32_t link = LAC_NONE;
        for (int tries = 0; tries < 8 && link == LAC_NONE; tries++) {
            uint32_t slice = (uint32_t)upto((int64_t)model->slices.count);
            bool is_op = model->slices.kind[slice] == LAC_SLICE_KERNEL ||
                         model->slices.kind[slice] == LAC_SLICE_COPY;
            link = is_op ? slice : LAC_NONE;
        }
        gaps[count++] = (struct lac_derived_slice){.start_ns = t,
                                                   .dur_ns = length,
                                                   .name = causes[upto(2)],
                                                   .link = link,
                                                   .kind = LAC_SLICE_GAP};
        t += length;
    }
    derive(model, LAC_TRACK_GAPS, gaps, count);
    return model;
}

static void compare_sums(const struct lac_model *model, const struct lac_flame *flame,
                         const struct sums *sums)
{
    char path[PATH_MAX_];
    int with_time = 0;
    int64_t total = 0;
    for (uint32_t i = 0; i < flame->node_count; i++) {
        if (flame->nodes[i].self_ns == 0) {
            continue;
        }
        path_of(model, flame, i, path);
        int at = 0;
        while (at < sums->count && strcmp(sums->at[at].path, path) != 0) {
            at++;
        }
        ck_assert_msg(at < sums->count, "%s is not in the oracle's", path);
        ck_assert_msg(sums->at[at].self_ns == flame->nodes[i].self_ns,
                      "%s: %lld, the oracle has %lld", path, (long long)flame->nodes[i].self_ns,
                      (long long)sums->at[at].self_ns);
        with_time++;
        total += sums->at[at].self_ns;
    }
    ck_assert_int_eq(with_time, sums->count);
    ck_assert_int_eq(total, flame->nodes[0].value_ns);
}

static void compare_in_time(const struct lac_model *model, struct lac_flame_options options,
                            struct sums *sums)
{
    static char expected[TEXT_MAX];
    static char got[TEXT_MAX];
    struct lac_flame *flame = NULL;
    qsort(sums->pieces, (size_t)sums->piece_count, sizeof(sums->pieces[0]), by_time);
    expected[0] = '\0';
    got[0] = '\0';
    (void)print_pieces(sums, 0, sums->piece_count, 0, expected);
    options.order = LAC_FLAME_ORDER_TIME;
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    check_sums(flame);
    const int64_t total_ns = flame->nodes[0].value_ns;
    (void)print_nodes(model, flame, 0, 0, got);
    ck_assert_str_eq(got, expected);
    lac_flame_destroy(flame);
    options.node_count_max = (uint32_t)(2 + upto(12)); /* what is small is summed, never lost */
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    check_sums(flame);
    ck_assert_uint_le(flame->node_count, options.node_count_max);
    ck_assert_int_eq(flame->nodes[0].value_ns, total_ns);
    lac_flame_destroy(flame);
}

/* Steps and other pieces of the area, and rows. */
static void ask_for_less(const struct lac_model *model, struct lac_flame_options *options,
                         struct lac_flame_span *spans, uint8_t *is_chosen)
{
    if (upto(2) == 0) {
        for (int64_t t = options->t0_ns + upto(20); options->span_count < 16; t += upto(9)) {
            const int64_t end_ns = t + 1 + upto(30);
            if (end_ns > options->t1_ns) {
                break;
            }
            spans[options->span_count++] = (struct lac_flame_span){t, end_ns};
            t = end_ns;
        }
        options->spans = spans;
    }
    if (upto(2) == 0) {
        for (uint32_t t = 0; t < model->track_count; t++) {
            is_chosen[t] = upto(2) == 0 ? 1 : 0;
        }
        options->is_chosen = is_chosen;
    }
}

START_TEST(random_models_agree_with_the_oracle)
{
    static struct sums sums;
    static const enum lac_flame_by BY[] = {LAC_FLAME_BY_OP, LAC_FLAME_BY_RANGE, LAC_FLAME_BY_PYTHON,
                                           LAC_FLAME_BY_MODULE};
    random_state = (uint32_t)_i + 1;
    struct lac_model *model = random_model();
    for (int metric = 0; metric < 3; metric++) {
        for (size_t by = 0; by < LAC_COUNT_OF(BY); by++) {
            struct lac_flame_options options = {.metric = (enum lac_flame_metric)metric,
                                                .by = BY[by],
                                                .t0_ns = upto(2) == 0 ? 0 : upto(120),
                                                .node_count_max = 1000000};
            struct lac_flame_span spans[16];
            uint8_t is_chosen[16];
            struct lac_flame *flame = NULL;
            options.t1_ns = options.t0_ns + 1 + upto(150);
            ask_for_less(model, &options, spans, is_chosen);
            ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
            check_shape(model, flame);
            oracle(model, &options, &sums);
            compare_sums(model, flame, &sums);
            lac_flame_destroy(flame);
            compare_in_time(model, options, &sums);
        }
    }
    lac_model_destroy(model);
}
END_TEST

START_TEST(time_order_keeps_frames_apart_that_something_lies_between)
{
    struct lac_model *model = trace_draw("main op 0 10 forward\n"
                                         "main op 12 8 backward\n"
                                         "main op 21 9 forward\n");
    struct lac_flame_options options = {
        .metric = LAC_FLAME_CPU, .order = LAC_FLAME_ORDER_TIME, .prune_fraction = 0.3};
    char text[TEXT_MAX];
    struct lac_flame *flame = NULL;
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    (void)print_nodes(model, flame, 0, 0, text);
    /* the second is below 30 % and stands where it was */
    ck_assert_str_eq(text, "0 forward 10000\n0 ... 8000\n0 forward 9000\n");
    lac_flame_destroy(flame);
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flame");
    TCase *hand = tcase_create("hand");
    tcase_add_test(hand, kernels_stand_under_what_enclosed_their_launch);
    tcase_add_test(hand, an_area_clips_intervals);
    tcase_add_test(hand, host_time_is_self_time_under_parents);
    tcase_add_test(hand, host_time_leaves_out_the_recorder_and_threads_that_only_wait);
    tcase_add_test(hand, waiting_stands_under_its_cause_and_what_the_launching_thread_did);
    tcase_add_test(hand, small_frames_are_summed_not_lost);
    tcase_add_test(hand, time_order_keeps_frames_apart_that_something_lies_between);
    tcase_add_test(hand, an_empty_model_has_only_a_root);
    tcase_add_test(hand, a_staircase_of_crossing_slices_stays_small);
    TCase *random = tcase_create("random");
    tcase_set_timeout(random, 60);
    tcase_add_loop_test(random, random_models_agree_with_the_oracle, 0, 150);
    suite_add_tcase(suite, hand);
    suite_add_tcase(suite, random);
    return check_main(suite);
}
