#include "collector/hang/hang_rule.h"

#include "collector/base/order.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

/* Before so many steps and quiet times nothing is known of a job's pace: it starts. */
enum { STEPS_MIN = 10, GAPS_MIN = 2 };

/* The first steps wait for workers, compilers and caches: they are no pace. */
enum { STEPS_OF_START = 3 };

/* Quieter than that, in parts of the pace, and the processes are asked. */
enum { ASK_PACES = 2, ASK_FLOOR_S = 4, ASK_AGAIN_S = 4 };

/* A sign of life that is not progress: so many bytes read or written. It counts for so long only, as
 * a job that only writes its log hangs, too. */
static const uint64_t IO_BYTES = 65536;
enum { OTHER_LIFE_S = 900 };

/* A quiet time that ended by itself, as an evaluation without a model's calls, will come again. */
enum { LONGEST_MAX_S = 600 };

/*
 * How long a kind of quiet may last: in seconds, and in paces. Nobody works: 8 s is twice what any
 * lock or collective of a job that goes on takes, and leaves a good part of 15 s to ask. A batch may
 * have an unusual item. Code that computes is most likely a metric or a sort, which take a minute;
 * compilers take many.
 */
static const struct {
    unsigned floor_s;
    unsigned paces;
    unsigned unpaced_s; /* while the job starts, or nothing is known */
} patience[] = {
    [LAC_HANG_UNKNOWN] = {10, 3, 300}, [LAC_HANG_BLOCKED] = {8, 3, 120},
    [LAC_HANG_LOADING] = {9, 4, 120},  [LAC_HANG_BUSY] = {90, 20, 1800},
    [LAC_HANG_LONG] = {900, 20, 3600},
};

void lac_hang_rule_begin(struct lac_hang_rule *rule, double scale)
{
    assert(rule != NULL && scale > 0);
    memset(rule, 0, sizeof(*rule));
    rule->scale = scale;
}

static uint64_t scaled(const struct lac_hang_rule *rule, unsigned seconds)
{
    return (uint64_t)((double)seconds * 1e9 * rule->scale);
}

static int by_length(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;

    return LAC_ORDER(a, b);
}

uint64_t lac_hang_rule_pace_ns(const struct lac_hang_rule *rule)
{
    const uint32_t count = rule->gap_count < LAC_HANG_GAPS ? rule->gap_count : LAC_HANG_GAPS;
    uint64_t sorted[LAC_HANG_GAPS];

    if (rule->last.steps < STEPS_MIN || count < GAPS_MIN) {
        return 0;
    }
    memcpy(sorted, rule->gap_ns, count * sizeof(sorted[0]));
    qsort(sorted, count, sizeof(sorted[0]), by_length);
    return sorted[(count * 99 - 1) / 100];
}

uint64_t lac_hang_rule_quiet_ns(const struct lac_hang_rule *rule, uint64_t now_ns)
{
    return now_ns > rule->progress_ns ? now_ns - rule->progress_ns : 0;
}

static uint64_t largest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* From when on a quiet time is a hang. */
static uint64_t limit_ns(const struct lac_hang_rule *rule, uint64_t pace_ns,
                         const struct lac_hang_look *look)
{
    const enum lac_hang_kind kind =
        rule->kind == LAC_HANG_UNKNOWN && look->is_working ? LAC_HANG_BUSY : rule->kind;
    const uint64_t again_ns = rule->longest_ns < LONGEST_MAX_S * SECOND / 2
                                  ? rule->longest_ns * 2
                                  : LONGEST_MAX_S * SECOND;

    if (pace_ns == 0) {
        return scaled(rule, patience[kind].unpaced_s);
    }
    return largest(again_ns,
                   largest(scaled(rule, patience[kind].floor_s), pace_ns * patience[kind].paces));
}

static void add_gap(struct lac_hang_rule *rule, uint64_t gap_ns)
{
    rule->gap_ns[rule->gap_count++ % LAC_HANG_GAPS] = gap_ns;
}

/* The job goes on. */
static enum lac_hang_wish note_progress(struct lac_hang_rule *rule, uint64_t now_ns,
                                        uint64_t new_steps)
{
    const uint64_t gap_ns = lac_hang_rule_quiet_ns(rule, now_ns);
    const bool was_alarmed = rule->is_alarmed;
    const bool has_started = rule->last.steps >= STEPS_OF_START;

    if (rule->asked_ns != 0 && has_started) { /* which was nothing, although it looked like it */
        rule->longest_ns = largest(rule->longest_ns, gap_ns);
    }
    if (has_started) {
        add_gap(rule, gap_ns);
    }
    /* So many between two looks: none was longer than the time from one to the other, and a job that
     * hangs right behind them is never seen to go on again. */
    while (new_steps >= STEPS_MIN && rule->gap_count < GAPS_MIN) {
        add_gap(rule, now_ns - rule->looked_ns);
    }
    rule->progress_ns = rule->active_ns = rule->life_ns = now_ns;
    rule->asked_ns = 0;
    rule->kind = LAC_HANG_UNKNOWN;
    rule->is_alarmed = false;
    return was_alarmed ? LAC_HANG_RESUMED : LAC_HANG_GO_ON;
}

/* Signs of life that are not progress. */
static void note_life(struct lac_hang_rule *rule, uint64_t now_ns, const struct lac_hang_look *look)
{
    const bool has_io = rule->last.io_bytes != 0 && look->io_bytes != 0; /* 0: not looked at */
    const bool is_alive = look->births != rule->last.births ||
                          (has_io && (look->io_bytes < rule->last.io_bytes ||
                                      look->io_bytes - rule->last.io_bytes >= IO_BYTES));

    if (!has_io) {
        rule->last.io_bytes = look->io_bytes;
    }
    if (look->is_stopped) { /* that time does not count */
        rule->progress_ns += now_ns - largest(rule->active_ns, rule->progress_ns);
        rule->active_ns = rule->progress_ns = now_ns;
    } else if (is_alive) {
        if (lac_hang_rule_quiet_ns(rule, now_ns) < scaled(rule, OTHER_LIFE_S)) {
            rule->active_ns = rule->life_ns = now_ns;
        }
        rule->last.births = look->births;
        rule->last.io_bytes = look->io_bytes;
    }
}

enum lac_hang_wish lac_hang_rule_next(struct lac_hang_rule *rule, uint64_t now_ns,
                                      const struct lac_hang_look *look)
{
    assert(rule != NULL && look != NULL);
    uint64_t pace_ns;
    uint64_t quiet_ns;

    if (!rule->has_looked) {
        rule->has_looked = true;
        rule->last = *look;
        rule->progress_ns = rule->active_ns = rule->life_ns = rule->looked_ns = now_ns;
        return LAC_HANG_GO_ON;
    }
    if (look->steps < rule->last.steps) { /* a rank has ended: that is no progress */
        rule->last.steps = look->steps;
    }
    if (look->progress > rule->last.progress || look->steps > rule->last.steps) {
        const enum lac_hang_wish wish = note_progress(rule, now_ns, look->steps - rule->last.steps);

        rule->last = *look;
        rule->looked_ns = now_ns;
        return wish;
    }
    rule->looked_ns = now_ns;
    note_life(rule, now_ns, look);
    if (rule->is_alarmed || now_ns - rule->active_ns < scaled(rule, ASK_FLOOR_S)) {
        return LAC_HANG_GO_ON;
    }
    pace_ns = lac_hang_rule_pace_ns(rule);
    quiet_ns = now_ns - rule->active_ns;
    if (quiet_ns < pace_ns * ASK_PACES) {
        return LAC_HANG_GO_ON;
    }
    if (rule->asked_ns == 0 || now_ns - rule->asked_ns >= scaled(rule, ASK_AGAIN_S)) {
        return LAC_HANG_ASK;
    }
    if (quiet_ns >= limit_ns(rule, pace_ns, look)) {
        rule->is_alarmed = true;
        return LAC_HANG_ALARM;
    }
    return LAC_HANG_GO_ON;
}

void lac_hang_rule_answer(struct lac_hang_rule *rule, uint64_t now_ns, enum lac_hang_kind kind)
{
    assert(rule != NULL && kind <= LAC_HANG_LONG);
    rule->asked_ns = now_ns;
    rule->kind = kind;
}

void lac_hang_rule_learn(struct lac_hang_rule *rule, enum lac_hang_kind kind)
{
    assert(rule != NULL && kind <= LAC_HANG_LONG);
    rule->kind = kind;
}

void lac_hang_rule_elsewhere(struct lac_hang_rule *rule, uint64_t progress_ns, uint64_t life_ns)
{
    assert(rule != NULL);
    if (rule->is_alarmed) { /* what has been said is taken back when our own part goes on */
        return;
    }
    rule->progress_ns = largest(rule->progress_ns, progress_ns);
    rule->active_ns = largest(rule->active_ns, progress_ns);
    if (life_ns < rule->progress_ns + scaled(rule, OTHER_LIFE_S)) {
        rule->active_ns = largest(rule->active_ns, life_ns);
    }
}

void lac_hang_rule_not_stopped(struct lac_hang_rule *rule, uint64_t progress_ns)
{
    assert(rule != NULL);
    if (progress_ns < rule->progress_ns) {
        rule->progress_ns = rule->active_ns = progress_ns;
    }
}
