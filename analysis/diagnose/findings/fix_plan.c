/*
 * What to do after the first change: the changes that still gain when those before them are made,
 * played together. A wait's change is that of a finding, which says where it is made and how; what a
 * word changes (workers, pinned memory, the layout) may come in before it is worth one. Gains of
 * findings overlap; a plan never counts the same time twice. It begins with the first finding, whose
 * promise is its first step; each step behind it is as much shorter as the steps, played with all
 * changes so far, become by one more, and never shorter than the device's work that they leave.
 */

#include "analysis/crew/crew.h"
#include "analysis/diagnose/findings/findings.h"
#include "analysis/diagnose/loading/loading.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Changes made together. */
struct state {
    struct lac_change change;
    bool is_made[LAC_FINDING_COUNT_]; /**< the change of that finding */
    double replayed_ns;               /**< the steps played with them */
    double step_ns;                   /**< the step that is promised */
    double work_ns;                   /**< of the device's own work, what they can take */
};

/** A change that may come next: everything made so far, and this. */
struct candidate {
    const char *brief;
    enum lac_finding_kind kind; /**< whose change it is */
    struct state state;
    double gain_min;   /**< worth a step of the plan, as a part of the step */
    double confidence; /**< of the finding */
    enum lac_effort effort;
    double worth; /**< what it gains times how sure that is; 0: too little for a step */
};

enum { CANDIDATES_MAX = LAC_FINDING_COUNT_ };

/* How sure a change is that no finding proposes now: what hides its gain is in the way. */
#define CONFIDENCE_WITHOUT_FINDING 0.5

static double replay(const struct lac_facts *facts, const struct state *state)
{
    struct lac_change change = state->change;
    double step_ns = lac_what_if_replay(facts, &change);
    if (!state->is_made[LAC_FINDING_EXPOSED_COMMUNICATION]) {
        return step_ns;
    }
    change.hides_comm = true; /* half of what fits, as its finding expects */
    return 0.5 * (step_ns + lac_what_if_replay(facts, &change));
}

/** Both changes. */
static void combine(struct lac_change *change, const struct lac_change *more)
{
    for (int op_class = 0; op_class < LAC_OP_CLASS_COUNT_; op_class++) {
        change->factor[op_class] *= more->factor[op_class];
    }
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        change->idle_factor[cause] *= more->idle_factor[cause];
    }
    if (more->workers > 0) {
        change->workers = more->workers;
        change->fetch_factor = more->fetch_factor;
        change->host_factor = more->host_factor;
    }
    change->layout_launches = fmin(change->layout_launches, more->layout_launches);
    change->optimizer_factor *= more->optimizer_factor;
    change->ahead_kept = more->copies_ahead ? more->ahead_kept : change->ahead_kept;
    change->copies_ahead = change->copies_ahead || more->copies_ahead;
    change->pins_copies = change->pins_copies || more->pins_copies;
    change->saves_launches = change->saves_launches || more->saves_launches;
    for (uint32_t i = 0; i < more->edits_count && change->edits_count < LAC_CHANGE_EDITS_MAX; i++) {
        change->edits_part[change->edits_count] = more->edits_part[i];
        change->edits[change->edits_count++] = more->edits[i];
        change->edits_share = change->edits_count == 1
                                  ? more->edits_share
                                  : fmin(change->edits_share, more->edits_share);
    }
}

/** Whether more workers may be proposed: no finding is sure that they do not help. */
static bool may_add_workers(const struct lac_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        if (analysis->findings[i].excludes_workers) {
            return false;
        }
    }
    return true;
}

/** Workers that keep up with the step as it would be without waiting for data; 0: no more wanted. The first
 *  time it is what the finding asks for. */
static int32_t workers_for(const struct lac_facts *facts, const struct state *state)
{
    enum { PLENTY = 4096 };
    const struct lac_loader_facts *loader = &facts->analysis->loader;
    if (loader->fetch_mean_ns == LAC_UNKNOWN_NS || loader->num_workers < 0 ||
        !may_add_workers(facts->analysis)) {
        return 0;
    }
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.workers = PLENTY;
    struct lac_change change;
    lac_change_from_what_if(facts, &what_if, LAC_CASE_MID, &change);
    struct state plenty = *state;
    combine(&plenty.change, &change);
    int32_t now = state->change.workers > 0 ? state->change.workers : loader->num_workers;
    double s_ns = replay(facts, &plenty);
    double wanted = ceil(WORKERS_MARGIN * lac_fetch_per_step_ns(facts) / fmax(s_ns, 1.0));
    if (facts->loading != NULL) {
        wanted = fmin(wanted, (double)facts->loading->most_workers);
    }
    return wanted > now && wanted < PLENTY ? (int32_t)wanted : 0;
}

/** The finding of that kind when its gain is known, or NULL. */
static const struct lac_finding *estimated(const struct lac_analysis *analysis,
                                           enum lac_finding_kind kind)
{
    const struct lac_finding *finding = lac_finding_of(analysis, kind);
    bool proposes = finding != NULL && !isnan(finding->gain_mid_pct) && finding->brief[0] != '\0';
    return proposes ? finding : NULL;
}

/** The finding of that kind when it says what to change, or NULL. */
static const struct lac_finding *proposing(const struct lac_analysis *analysis,
                                           enum lac_finding_kind kind)
{
    const struct lac_finding *finding = lac_finding_of(analysis, kind);
    bool proposes = finding != NULL && finding->change[0] != '\0' && finding->brief[0] != '\0';
    return proposes ? finding : NULL;
}

/** Of the device's own work in a step, what the change can take: what its finding claims, else all that
 *  it shortens or moves. */
static double work_of(const struct lac_facts *facts, enum lac_finding_kind kind,
                      const struct lac_change *change)
{
    const struct lac_finding *finding = lac_finding_of(facts->analysis, kind);
    const double *class_ns = facts->time->class_ns;
    double claimed_ns = 0.0;
    double work_ns = 0.0;
    for (int part = 0; part < LAC_PART_IDLE && finding != NULL; part++) {
        claimed_ns += (double)finding->part_ns[part];
    }
    for (int op_class = 0; op_class < LAC_OP_CLASS_COUNT_; op_class++) {
        work_ns += fmax(0.0, 1.0 - change->factor[op_class]) * class_ns[op_class];
    }
    if (change->copies_ahead) {
        work_ns += class_ns[LAC_OP_COPY_PINNED] + class_ns[LAC_OP_COPY_PAGEABLE];
    }
    return fmax(claimed_ns, work_ns);
}

struct list {
    const struct lac_facts *facts;
    const struct state *state; /**< what was made so far */
    struct candidate at[CANDIDATES_MAX];
    int count;
};

/** Add a change that `finding` proposes, or none yet (NULL), in the words of `brief`, as that of
 *  `kind`. */
static void add(struct list *list, const struct lac_finding *finding, const char *brief,
                enum lac_finding_kind kind, const struct lac_change *change)
{
    if (list->count == CANDIDATES_MAX) {
        return;
    }
    struct candidate *candidate = &list->at[list->count++];
    *candidate = (struct candidate){
        .brief = brief,
        .kind = kind,
        .state = *list->state,
        .gain_min = PLAN_GAIN_MIN,
        .confidence = finding != NULL ? finding->confidence : CONFIDENCE_WITHOUT_FINDING,
        .effort = finding != NULL ? finding->effort : lac_finding_type(kind)->effort};
    combine(&candidate->state.change, change);
    candidate->state.is_made[kind] = true;
    candidate->state.work_ns += work_of(list->facts, kind, change);
}

/** The change of that finding as it was estimated, else `otherwise`, which may be NULL.
 *  @param brief the change in a word, where it stands without a finding; NULL: it needs one */
static void add_of(struct list *list, enum lac_finding_kind kind, const char *brief,
                   const struct lac_what_if_changes *otherwise)
{
    const struct lac_step_time *time = list->facts->time;
    const struct lac_finding *finding = proposing(list->facts->analysis, kind);
    struct lac_change change;
    if ((finding == NULL && brief == NULL) || list->state->is_made[kind]) {
        return;
    }
    if (time->has_mid[kind]) {
        change = time->mids[kind];
    } else if (otherwise != NULL) {
        lac_change_from_what_if(list->facts, otherwise, LAC_CASE_MID, &change);
    } else {
        return;
    }
    add(list, finding, finding != NULL ? finding->brief : brief, kind, &change);
}

/** Tensor cores: behind another limit the finding leaves their change to the plan. */
static void add_tensor_cores(struct list *list)
{
    const enum lac_finding_kind kind = LAC_FINDING_TENSOR_CORES_UNUSED;
    const char *behind = lac_tensor_cores_behind(list->facts);
    if (behind[0] == '\0') {
        add_of(list, kind, NULL, NULL);
    } else if (list->facts->time->has_mid[kind] && !list->state->is_made[kind]) {
        add(list, lac_finding_of(list->facts->analysis, kind), behind, kind,
            &list->facts->time->mids[kind]);
    }
}

/** The finding that proposes workers, of several about loading, or NULL. */
static const struct lac_finding *proposing_workers(const struct lac_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        if (analysis->findings[i].workers > 0) {
            return &analysis->findings[i];
        }
    }
    return NULL;
}

static void add_workers(struct list *list)
{
    const struct lac_finding *finding = proposing_workers(list->facts->analysis);
    int32_t workers = workers_for(list->facts, list->state);
    struct lac_what_if_changes what_if;
    struct lac_change change;
    if (workers <= 0) {
        return;
    }
    lac_what_if_clear(&what_if);
    what_if.workers = workers;
    lac_change_from_what_if(list->facts, &what_if, LAC_CASE_MID, &change);
    const char *brief =
        lac_texts_add(&list->facts->analysis->texts, "num_workers=%d", (int)workers);
    add(list, finding, brief, LAC_FINDING_INPUT_STARVATION, &change);
}

/** Loading, conversions, copies, tensor cores: behind what hides them now they may gain, too. */
static void list_work(struct list *list)
{
    const struct lac_step_time *time = list->facts->time;
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    add_workers(list);
    if (time->class_ns[LAC_OP_LAYOUT] > 0.0) {
        what_if.layout_nhwc = 1;
        add_of(list, LAC_FINDING_LAYOUT_CONVERSION, "channels-last", &what_if);
        lac_what_if_clear(&what_if);
    }
    bool pins = list->state->is_made[LAC_FINDING_PAGEABLE_COPY] ||
                (list->state->is_made[LAC_FINDING_SLOW_OPTIMIZER] &&
                 time->mids[LAC_FINDING_SLOW_OPTIMIZER].pins_copies);
    if (time->class_ns[LAC_OP_COPY_PAGEABLE] > 0.0 && !pins) {
        what_if.pinned = 1;
        add_of(list, LAC_FINDING_PAGEABLE_COPY, "pin_memory=True", &what_if);
        lac_what_if_clear(&what_if);
    }
    if (pins || time->class_ns[LAC_OP_COPY_PINNED] > 0.0) {
        what_if.async_copies = 1;
        add_of(list, LAC_FINDING_BLOCKING_COPY, "copy one batch ahead", &what_if);
    }
    if (lac_has_unused_tensor_cores(list->facts)) {
        add_tensor_cores(list);
    }
}

/** Whether a wait that hides behind another is looked for: none is named, and the steps can be played. */
static bool may_hide_a_wait(const struct list *list)
{
    const struct lac_analysis *analysis = list->facts->analysis;
    return lac_graph_trust(list->facts->time) != LAC_TRUST_NONE && !lac_is_inference(list->facts) &&
           lac_finding_of(analysis, LAC_FINDING_SYNC_STALL) == NULL &&
           lac_finding_of(analysis, LAC_FINDING_SYNC_PER_LAYER) == NULL;
}

/** A wait that no finding names has to gain as much as one would. */
static void add_hidden_wait(struct list *list, const struct lac_what_if_changes *what_if)
{
    struct lac_finding finding;
    struct lac_change change;
    lac_finding_init(&finding, LAC_FINDING_SYNC_STALL);
    if (may_hide_a_wait(list) && lac_sync_stall_behind(list->facts, &finding, 0)) {
        lac_change_from_what_if(list->facts, what_if, LAC_CASE_MID, &change);
        add(list, &finding, finding.brief, LAC_FINDING_SYNC_STALL, &change);
        list->at[list->count - 1].gain_min = PLAN_HIDDEN_MIN;
    }
}

/** What makes the host wait. */
static void list_waits(struct list *list)
{
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.no_sync = 1;
    add_of(list, LAC_FINDING_SYNC_STALL, NULL, &what_if);
    add_hidden_wait(list, &what_if);
    lac_what_if_clear(&what_if);
    what_if.no_allocator = 1;
    add_of(list, LAC_FINDING_ALLOCATOR_THRASH, NULL, &what_if);
}

/** Whether a finding of that kind is listed above. */
static bool is_listed(const struct list *list, enum lac_finding_kind kind)
{
    for (int i = 0; i < list->count; i++) {
        if (list->at[i].kind == kind) {
            return true;
        }
    }
    return lac_finding_type(kind)->is_about_loading || kind == LAC_FINDING_PAGEABLE_COPY ||
           list->state->is_made[kind];
}

/** All other findings that gain: their own change, else that of the slices they chose (edits.h). */
static void list_findings(struct list *list)
{
    for (int k = 0; k < LAC_FINDING_COUNT_; k++) {
        enum lac_finding_kind kind = (enum lac_finding_kind)k;
        const struct lac_step_time *time = list->facts->time;
        const struct lac_finding *finding = estimated(list->facts->analysis, kind);
        if (finding == NULL || is_listed(list, kind)) {
            continue;
        }
        struct lac_change change;
        lac_change_clear(&change);
        if (time->has_mid[kind]) {
            change = time->mids[kind];
        } else if (time->edits[kind] != NULL) {
            lac_change_edit(&change, time->edits[kind], 1.0);
        } else if (kind != LAC_FINDING_EXPOSED_COMMUNICATION) {
            continue;
        }
        add(list, finding, finding->brief, kind, &change);
    }
}

/** The shortest step that the findings leave whose changes are made: no plan takes more than they claim
 *  together, each part once. 0 where a change is of no finding. */
static double claims_leave(const struct lac_facts *facts, const struct state *state)
{
    const struct lac_time_partition *partition = &facts->analysis->partition;
    double left_ns = facts->time->step_ns;
    int64_t claimed_ns[LAC_TIME_PART_COUNT] = {0};
    if (partition->of != LAC_OF_STEP) {
        return 0.0;
    }
    for (int k = 0; k < LAC_FINDING_COUNT_; k++) {
        if (!state->is_made[k]) {
            continue;
        }
        const struct lac_finding *finding =
            lac_finding_of(facts->analysis, (enum lac_finding_kind)k);
        if (finding == NULL || finding->step_low_ns == LAC_UNKNOWN_NS) {
            return 0.0;
        }
        /* idle time under other names, which its title tells of */
        double beside_ns = facts->time->step_ns - (double)finding->step_low_ns;
        for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
            claimed_ns[part] = lac_sum_ns(claimed_ns[part], finding->part_ns[part]);
            beside_ns -= (double)finding->part_ns[part];
        }
        left_ns -= fmax(0.0, beside_ns);
    }
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        int64_t ns = partition->part_ns[part];
        left_ns -= (double)(claimed_ns[part] < ns ? claimed_ns[part] : ns);
    }
    return left_ns;
}

/** The step that a candidate promises: alone what its finding does. */
static double promise_of(const struct lac_facts *facts, const struct state *state,
                         const struct candidate *next)
{
    const struct lac_finding *finding = estimated(facts->analysis, next->kind);
    if (facts->analysis->plan_count == 0 && finding != NULL &&
        strcmp(finding->brief, next->brief) == 0) {
        return (double)finding->step_mid_ns;
    }
    /* where all of the step is played again that is what says where it ends */
    const bool is_played =
        lac_graph_trust(facts->time) == LAC_TRUST_ALL && !lac_is_held_by_profiler(facts);
    const double least_ns = is_played ? facts->time->compute_ns - next->state.work_ns
                                      : fmax(facts->time->busy_ns - next->state.work_ns,
                                             claims_leave(facts, &next->state));
    /* no change takes the profiler's own stalls away */
    const double stalls_ns =
        lac_is_held_by_profiler(facts) ? facts->time->idle_ns[LAC_CAUSE_PROFILER] : 0.0;
    return fmax(least_ns + stalls_ns,
                state->step_ns * next->state.replayed_ns / fmax(1.0, state->replayed_ns));
}

struct plays {
    const struct lac_facts *facts;
    struct list *list;
};

static void play_part(void *context, uint32_t part)
{
    const struct plays *plays = context;
    struct state *state = &plays->list->at[part].state;
    state->replayed_ns = replay(plays->facts, state);
}

/** Of those worth nearly as much as the best one, what takes least. */
static const struct candidate *takes_least(const struct list *list, const struct candidate *best)
{
    const struct candidate *least = best;
    for (int i = 0; i < list->count && best != NULL; i++) {
        const struct candidate *next = &list->at[i];
        bool is_near = NEAR_TIE_MIN * next->worth >= best->worth;
        least = is_near && next->effort < least->effort ? next : least;
    }
    return least;
}

/** What comes next: first what the first finding proposes, then what gains most for sure. */
static const struct candidate *choose(const struct lac_facts *facts, const struct state *state,
                                      struct list *list, double seen_min)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct candidate *best = NULL;
    double most = 0.0;
    struct plays plays = {facts, list};
    lac_crew_run(facts->crew, (uint32_t)list->count, play_part, &plays);
    for (int i = 0; i < list->count; i++) {
        struct candidate *next = &list->at[i];
        next->state.step_ns = fmin(state->step_ns, promise_of(facts, state, next));
        double gain = 1.0 - next->state.step_ns / state->step_ns;
        bool is_first = analysis->plan_count == 0 && analysis->finding_count > 0 &&
                        next->kind == analysis->findings[0].kind;
        if (gain > fmax(seen_min, next->gain_min)) {
            next->worth = is_first ? HUGE_VAL : gain * next->confidence;
        }
        if (next->worth > most) {
            best = next;
            most = next->worth;
        }
    }
    return takes_least(list, best);
}

/** What is only worth doing behind another limit is told by a finding, too. */
static void tell(const struct lac_facts *facts, const struct candidate *chosen)
{
    int64_t step_ns = lac_round(chosen->state.step_ns);
    struct lac_finding finding;
    lac_finding_init(&finding, chosen->kind);
    if (chosen->kind == LAC_FINDING_TENSOR_CORES_UNUSED &&
        lac_tensor_cores_behind(facts)[0] != '\0') {
        lac_tensor_cores_propose_behind(facts, step_ns);
    }
    if (chosen->kind == LAC_FINDING_SYNC_STALL &&
        lac_finding_of(facts->analysis, chosen->kind) == NULL &&
        lac_sync_stall_behind(facts, &finding, step_ns)) {
        lac_findings_append(facts, &finding);
    }
}

void lac_plan_make(const struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    /* of a few steps, what is less than the mean is known to may be chance */
    double seen_min = analysis->step_kept_count < STEPS_SHOW_ALL
                          ? analysis->step_uncertain_pct / 100.0
                          : PLAN_GAIN_MIN;
    struct state state = {.step_ns = facts->time->step_ns};
    lac_change_clear(&state.change);
    state.replayed_ns = replay(facts, &state);
    while (analysis->plan_count < LAC_PLAN_MAX) {
        struct list list = {.facts = facts, .state = &state, .count = 0};
        list_work(&list);
        list_waits(&list);
        list_findings(&list);
        const struct candidate *best = choose(facts, &state, &list, seen_min);
        if (best == NULL) {
            return;
        }
        analysis->plan[analysis->plan_count++] = (struct lac_plan_step){
            .brief = best->brief,
            .kind = best->kind,
            .workers = best->state.change.workers > 0 ? best->state.change.workers : 0,
            .step_ns = lac_round(best->state.step_ns),
            .gain_pct = 100.0 * (state.step_ns - best->state.step_ns) / state.step_ns};
        tell(facts, best);
        state = best->state;
    }
}
