/* The ranks of one run joined: waiting told from transfer, who is there, who is missing. */

#include "analysis/diagnose/ranks/ranks.h"

#include "analysis/diagnose/facts/facts.h"
#include "analysis/diagnose/ranks/ranks_private.h"
#include "analysis/diagnose/ranks/ranks_thresholds.h"
#include "analysis/diagnose/result/texts.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static void fill_facts(struct lac_run *run, const struct lac_rank_table *const *tables)
{
    for (uint32_t r = 0; r < run->rank_count; r++) {
        const struct lac_rank_table *table = tables[r];
        run->ranks[r] = (struct lac_rank_facts){
            .rank = table->rank >= 0 ? table->rank : (int32_t)r,
            .wait_ns = LAC_UNKNOWN_NS,
            .transfer_ns = LAC_UNKNOWN_NS,
            .compute_ns = table->partition_ns[LAC_PART_COMPUTE],
            .idle_ns = table->idle_ns,
            .name = lac_texts_add(&run->texts, "%s", table->name),
            .host = lac_texts_add(&run->texts, "%s", table->host),
            .device = lac_texts_add(&run->texts, "%s", table->device),
            .cause = lac_texts_add(&run->texts, "%s", table->cause),
            .letter = table->letter,
            .step_count = table->step_count,
            .step_kept_count = table->step_kept_count,
            .step_mean_ns = table->step_mean_ns,
            .idle_pct = table->idle_pct,
            .exposed_comm_pct = table->exposed_comm_pct,
        };
    }
}

int64_t lac_rank_wait_per_step_ns(const struct lac_rank_facts *rank_facts)
{
    return rank_facts->matched_step_count >= 3 && rank_facts->wait_ns != LAC_UNKNOWN_NS
               ? rank_facts->wait_ns / rank_facts->matched_step_count
               : LAC_UNKNOWN_NS;
}

void lac_ranks_leave_out_doubles(const struct lac_rank_table *const *tables, uint32_t rank_count,
                                 bool *is_left_out)
{
    for (uint32_t r = 1; r < rank_count; r++) {
        for (uint32_t before = 0; before < r && tables[r]->rank >= 0; before++) {
            is_left_out[r] = is_left_out[r] || tables[before]->rank == tables[r]->rank;
        }
    }
}

/** Split each collective into transfer and waiting. */
static void split(struct lac_run *run, const struct lac_rank_table *const *tables,
                  const struct lac_rank_group *group)
{
    for (uint32_t m = 0; m < group->member_count; m++) {
        struct lac_rank_facts *rank_facts = &run->ranks[group->members[m]];
        if (!rank_facts->is_matched) {
            rank_facts->is_matched = true;
            rank_facts->wait_ns = rank_facts->transfer_ns = 0;
        }
    }
    for (uint64_t i = 0; i < group->count; i++) {
        uint32_t last = 0;
        int64_t transfer_ns = INT64_MAX;
        for (uint32_t m = 0; m < group->member_count; m++) {
            const struct lac_collective *it = lac_rank_collective(tables, group, m, i);
            if (it->end_ns - it->start_ns < transfer_ns) {
                transfer_ns = it->end_ns - it->start_ns;
                last = m;
            }
        }
        for (uint32_t m = 0; m < group->member_count; m++) {
            const struct lac_collective *it = lac_rank_collective(tables, group, m, i);
            struct lac_rank_facts *rank_facts = &run->ranks[group->members[m]];
            rank_facts->transfer_ns = lac_sum_ns(rank_facts->transfer_ns, transfer_ns);
            rank_facts->wait_ns =
                lac_sum_ns(rank_facts->wait_ns, it->end_ns - it->start_ns - transfer_ns);
        }
        run->ranks[group->members[last]].last_count++;
    }
    run->collective_count += group->count;
}

/** Steps that matched collectives lie in. */
static void count_matched_steps(struct lac_run *run, const struct lac_rank_table *const *tables,
                                const struct lac_rank_match *match)
{
    for (uint32_t r = 0; r < run->rank_count; r++) {
        int64_t first_ns = INT64_MAX;
        int64_t last_ns = INT64_MIN;
        for (uint32_t g = 0; g < match->group_count; g++) {
            const struct lac_rank_group *group = &match->groups[g];
            for (uint32_t m = 0; m < group->member_count && group->count > 0; m++) {
                if (group->members[m] == r) {
                    const int64_t from_ns = lac_rank_collective(tables, group, m, 0)->start_ns;
                    const int64_t to_ns =
                        lac_rank_collective(tables, group, m, group->count - 1)->start_ns;
                    first_ns = from_ns < first_ns ? from_ns : first_ns;
                    last_ns = to_ns > last_ns ? to_ns : last_ns;
                }
            }
        }
        struct lac_rank_facts *facts = &run->ranks[r];
        facts->matched_step_count = facts->step_count;
        if (last_ns >= first_ns && facts->step_mean_ns > 0) {
            const double steps =
                floor((double)(last_ns - first_ns) / (double)facts->step_mean_ns + STEP_JITTER) + 1;
            facts->matched_step_count =
                steps < facts->step_count ? (uint32_t)steps : facts->step_count;
        }
    }
}

/** Who is missing, doubled or not to be matched: a sentence each, or "". */
static const char *say_missing(struct lac_run *run, const struct lac_rank_table *const *tables,
                               const bool *is_left_out)
{
    const char *doubled = "";
    const char *missing = "";
    const char *unlike = "";
    uint32_t here = 0;
    uint32_t alone = 0;
    int32_t world = 0;
    for (uint32_t r = 0; r < run->rank_count; r++) {
        if (is_left_out[r]) {
            doubled = lac_texts_add(&run->texts, " Rank %d appears twice: its first trace counts.",
                                    (int)tables[r]->rank);
            continue;
        }
        here++;
        world = tables[r]->world_size > world ? tables[r]->world_size : world;
        if (!run->ranks[r].is_matched && run->collective_count > 0) {
            alone++;
            unlike = lac_texts_add(&run->texts,
                                   " Rank %d is not judged: its collectives match no other rank's.",
                                   (int)run->ranks[r].rank);
        }
    }
    if (alone > 1) {
        unlike = lac_texts_add(&run->texts,
                               " %u ranks are not judged: their collectives match no other rank's.",
                               (unsigned)alone);
    }
    if ((int64_t)here < world) {
        missing = lac_texts_add(&run->texts,
                                " %u of %d ranks are present: a missing one may be the late one.",
                                (unsigned)here, (int)world);
    }
    const char *all = lac_texts_add(&run->texts, "%s%s%s", doubled, missing, unlike);
    return *all == ' ' ? all + 1 : all;
}

static enum lac_status join(struct lac_run *run, const struct lac_rank_table *const *tables)
{
    struct lac_rank_match match = {0};
    bool *is_left_out = calloc(run->rank_count ? run->rank_count : 1, sizeof(*is_left_out));
    if (is_left_out == NULL) {
        return LAC_ERR_NOMEM;
    }
    lac_ranks_leave_out_doubles(tables, run->rank_count, is_left_out);
    enum lac_status status = lac_ranks_match(tables, run->rank_count, is_left_out, &match);
    if (!status) {
        for (uint32_t g = 0; g < match.group_count; g++) {
            split(run, tables, &match.groups[g]);
        }
        count_matched_steps(run, tables, &match);
        run->note = say_missing(run, tables, is_left_out);
        status = lac_straggler_find(run, tables, &match);
    }
    lac_rank_match_done(&match);
    free(is_left_out);
    return status;
}

enum lac_status lac_ranks_join(const struct lac_rank_table *const *tables, uint32_t rank_count,
                               struct lac_run **ret_run)
{
    assert(ret_run != NULL);
    assert(tables != NULL || rank_count == 0);
    struct lac_run *run = calloc(1, sizeof(*run));
    if (run == NULL) {
        return LAC_ERR_NOMEM;
    }
    run->late = LAC_NONE;
    run->note = "";
    run->rank_count = rank_count;
    run->ranks = calloc(rank_count ? rank_count : 1, sizeof(*run->ranks));
    enum lac_status status = run->ranks != NULL ? LAC_OK : LAC_ERR_NOMEM;
    if (!status) {
        fill_facts(run, tables);
        status = rank_count > 1 ? join(run, tables) : LAC_OK;
    }
    if (!status && lac_texts_failed(run->texts)) {
        status = LAC_ERR_NOMEM;
    }
    if (status) {
        lac_run_destroy(run);
        return status;
    }
    *ret_run = run;
    return LAC_OK;
}

enum lac_status lac_ranks_compare(const struct lac_rank_trace *ranks, uint32_t rank_count,
                                  struct lac_run **ret_run)
{
    struct lac_rank_table **tables = calloc(rank_count ? rank_count : 1, sizeof(*tables));
    enum lac_status status = tables != NULL ? LAC_OK : LAC_ERR_NOMEM;
    for (uint32_t r = 0; r < rank_count && !status; r++) {
        status = lac_rank_table_create(ranks[r].model, ranks[r].analysis, &tables[r]);
    }
    if (!status) {
        status = lac_ranks_join((const struct lac_rank_table *const *)tables, rank_count, ret_run);
    }
    for (uint32_t r = 0; r < rank_count && tables != NULL; r++) {
        lac_rank_table_destroy(tables[r]);
    }
    free(tables);
    return status;
}

void lac_run_destroy(struct lac_run *run)
{
    if (run != NULL) {
        free(run->ranks);
        lac_texts_destroy(run->texts);
        free(run);
    }
}
