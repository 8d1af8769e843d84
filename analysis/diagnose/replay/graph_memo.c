/* Windows that were played, by the change: what a finding plays, the plan plays again. */

#include "analysis/diagnose/replay/edits_private.h"
#include "analysis/diagnose/replay/graph.h"
#include "analysis/diagnose/replay/graph_build.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { REMEMBERED_MAX = 256, FACTORS = LAC_OP_CLASS_COUNT_ + 9 };

/** All of a change that a replay looks at (graph_replay.c, graph_edits.c); no padding. */
struct key {
    uint64_t factors[FACTORS];            /**< the bits of doubles: keys are compared as bytes */
    uint64_t edits[LAC_CHANGE_EDITS_MAX]; /**< versions of what is edited */
    uint64_t parts[LAC_CHANGE_EDITS_MAX]; /**< and bits of their parts */
    uint64_t edits_count;
    int64_t workers;
    uint64_t flags;
};

struct lac_graph_memo {
    pthread_mutex_t mutex;
    uint32_t count;
    struct key keys[REMEMBERED_MAX];
    double windows_ns[REMEMBERED_MAX];
};

enum lac_status lac_graph_memo_create(struct lac_graph_memo **ret_memo)
{
    struct lac_graph_memo *memo = malloc(sizeof(*memo));
    if (memo == NULL) {
        return LAC_ERR_NOMEM;
    }
    (void)pthread_mutex_init(&memo->mutex, NULL);
    memo->count = 0;
    *ret_memo = memo;
    return LAC_OK;
}

void lac_graph_memo_destroy(struct lac_graph_memo *memo)
{
    if (memo != NULL) {
        (void)pthread_mutex_destroy(&memo->mutex);
        free(memo);
    }
}

static void make_key(const struct lac_change *change, struct key *key)
{
    const double factors[] = {change->idle_factor[LAC_CAUSE_LAUNCH],
                              change->idle_factor[LAC_CAUSE_ALLOCATOR],
                              change->idle_factor[LAC_CAUSE_MODULE_LOAD],
                              change->idle_factor[LAC_CAUSE_HOST],
                              change->fetch_factor,
                              change->layout_launches,
                              change->host_factor,
                              change->optimizer_factor,
                              change->ahead_kept};
    _Static_assert(LAC_COUNT_OF(factors) == FACTORS - LAC_OP_CLASS_COUNT_,
                   "a change has other factors");
    memset(key, 0, sizeof(*key));
    memcpy(key->factors, change->factor, sizeof(change->factor));
    memcpy(key->factors + LAC_OP_CLASS_COUNT_, factors, sizeof(factors));
    for (uint32_t e = 0; e < change->edits_count; e++) {
        key->edits[e] = change->edits[e]->version;
        memcpy(&key->parts[e], &change->edits_part[e], sizeof(change->edits_part[e]));
    }
    key->edits_count = change->edits_count;
    key->workers = change->workers;
    key->flags = (uint64_t)(change->idle_factor[LAC_CAUSE_SYNC] < 1.0) |
                 (uint64_t)change->copies_ahead << 1 | (uint64_t)change->pins_copies << 2 |
                 (uint64_t)change->is_loader_free << 3 | (uint64_t)change->hides_comm << 4;
}

static double recall(struct lac_graph_memo *memo, const struct key *key)
{
    double window_ns = (double)NAN;
    (void)pthread_mutex_lock(&memo->mutex);
    for (uint32_t i = 0; i < memo->count; i++) {
        if (memcmp(&memo->keys[i], key, sizeof(*key)) == 0) {
            window_ns = memo->windows_ns[i];
            break;
        }
    }
    (void)pthread_mutex_unlock(&memo->mutex);
    return window_ns;
}

double lac_graph_replay_once(const struct lac_graph *graph, const struct lac_change *change)
{
    struct key key;
    make_key(change, &key);
    double window_ns = recall(graph->memo, &key);
    if (!isnan(window_ns)) {
        return window_ns;
    }
    window_ns = lac_graph_replay(graph, change);
    (void)pthread_mutex_lock(&graph->memo->mutex);
    if (graph->memo->count < REMEMBERED_MAX) { /* twice, where two threads played it: no harm */
        graph->memo->keys[graph->memo->count] = key;
        graph->memo->windows_ns[graph->memo->count++] = window_ns;
    }
    (void)pthread_mutex_unlock(&graph->memo->mutex);
    return window_ns;
}
