#include "tests/simulator/random_what_if.h"

#include "analysis/model/status.h"
#include "tests/simulator/scenario.h"
#include "tests/simulator/train_loop.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum key {
    KEY_WORKERS = 0,
    KEY_LAYOUT,
    KEY_PINNED,
    KEY_ASYNC,
    KEY_SYNC,
    KEY_ALLOCATOR,
    KEY_MODULE,
    KEY_LAUNCH,
    KEY_COMM,
    KEY_KERNELS,
};

/* Values are read a step later: what the host does with them it still does. */
static void read_later(struct lac_demo_scenario *s)
{
    s->read_host_ns *= s->read_count;
    s->read_count = 1;
    s->reads = LAC_DEMO_READS_LATE;
}

static void change(struct lac_demo_scenario *s, enum key key, int32_t workers)
{
    switch (key) {
    case KEY_WORKERS:
        *s = lac_demo_scenario_without(s, LAC_DEMO_CAUSE_WORKERS, workers);
        return;
    case KEY_LAYOUT:
        *s = lac_demo_scenario_without(s, LAC_DEMO_CAUSE_LAYOUT, 0);
        return;
    case KEY_PINNED:
        s->copies = LAC_DEMO_COPIES_PINNED;
        return;
    case KEY_ASYNC:
        s->copies = LAC_DEMO_COPIES_AHEAD;
        return;
    case KEY_SYNC:
        read_later(s);
        return;
    case KEY_ALLOCATOR:
        s->alloc_count = 0;
        return;
    case KEY_MODULE:
        s->module_every = 0;
        return;
    case KEY_LAUNCH:
        *s = lac_demo_scenario_without(s, LAC_DEMO_CAUSE_LAUNCH, 0);
        return;
    case KEY_COMM:
        s->comm_ns = 0;
        return;
    case KEY_KERNELS:
        s->kernel_permille = 500;
        return;
    default:
        return;
    }
}

/* Whether there is anything to change; `with` is the change beside it, or the same. */
static bool is_possible(const struct lac_demo_scenario *s, enum key key, enum key with)
{
    switch (key) {
    case KEY_LAYOUT:
        return s->has_layout;
    case KEY_PINNED:
        return s->copies == LAC_DEMO_COPIES_PAGEABLE;
    case KEY_ASYNC: /* pageable memory cannot be copied ahead */
        return s->copies == LAC_DEMO_COPIES_PAGEABLE ? with == KEY_PINNED
                                                     : s->copies != LAC_DEMO_COPIES_AHEAD;
    case KEY_SYNC:
        return s->reads == LAC_DEMO_READS_LAST || s->reads == LAC_DEMO_READS_FORWARD;
    case KEY_ALLOCATOR:
        return s->alloc_count > 0;
    case KEY_MODULE:
        return s->module_every > 0;
    case KEY_LAUNCH:
        return !s->has_graph;
    case KEY_COMM:
        return s->bucket_count > 0;
    case KEY_WORKERS:
    case KEY_KERNELS:
    default:
        return true;
    }
}

/* "workers=7", or two of them. */
static void write_change(char *text, enum key a, enum key b, int32_t workers)
{
    static const char *const TEXTS[LAC_DEMO_WHAT_IF_KEYS] = {
        "",       "layout=nhwc", "pinned=1",      "async=1",
        "sync=0", "allocator=0", "module_load=0", "launch=0",
        "comm=0", "kernels=0.5"};
    const char *separator = a == b ? "" : ",";
    const char *second = a == b ? "" : TEXTS[b];
    if (a == KEY_WORKERS) {
        (void)snprintf(text, LAC_DEMO_WHAT_IF_BYTES, "workers=%d%s%s", workers, separator, second);
    } else {
        (void)snprintf(text, LAC_DEMO_WHAT_IF_BYTES, "%s%s%s", TEXTS[a], separator, second);
    }
}

static enum lac_status try_one(const struct lac_demo_scenario *scenario, enum key a, enum key b,
                               int32_t workers, struct lac_demo_what_ifs *what_ifs)
{
    struct lac_demo_loop_run run;
    struct lac_demo_scenario s = *scenario;
    struct lac_demo_what_if *next = &what_ifs->at[what_ifs->count];
    change(&s, a, workers);
    if (a != b) {
        change(&s, b, workers);
    }
    write_change(next->change, a, b, workers); /* workers come first of all */
    enum lac_status status = lac_demo_loop_run(&s, 0, NULL, true, &run);
    if (status == LAC_OK) {
        next->mean_ns = run.pace_ns;
        what_ifs->count++;
        lac_demo_loop_done(&run);
    }
    return status;
}

enum lac_status lac_demo_try_what_ifs(const struct lac_demo_scenario *scenario, int32_t workers,
                                      struct lac_demo_what_ifs *ret_what_ifs)
{
    enum lac_status status = scenario->ranks == 1 ? LAC_OK : LAC_ERR_MISUSE;
    ret_what_ifs->count = 0;
    for (int a = 0; a < LAC_DEMO_WHAT_IF_KEYS && status == LAC_OK; a++) {
        for (int b = a; b < LAC_DEMO_WHAT_IF_KEYS && status == LAC_OK; b++) {
            if (is_possible(scenario, (enum key)a, (enum key)b) &&
                is_possible(scenario, (enum key)b, (enum key)a)) {
                status = try_one(scenario, (enum key)a, (enum key)b, workers, ret_what_ifs);
            }
        }
    }
    return status;
}
