#include "server/store/trace/flame/flame_kept.h"

#include "analysis/flame/flame.h"
#include "analysis/model/grow.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Key type in the cache; those of chunks are bits of columns, that of their totals is bit 31. */
#define KEPT_TYPE (UINT32_C(1) << 30)

/** What was asked, as bytes without gaps: it is hashed and compared. */
struct asked {
    int64_t t0_ns, t1_ns;
    double prune_fraction;
    uint32_t metric, by, order, node_count_max;
};

struct kept {
    struct asked asked;
    uint32_t node_count, step_count;
    struct lac_flame_node nodes[];
};

static bool is_kept(const struct lac_flame_options *options)
{
    return options->is_chosen == NULL && options->span_count == 0;
}

static struct asked asked_of(const struct lac_flame_options *options)
{
    return (struct asked){.t0_ns = options->t0_ns,
                          .t1_ns = options->t1_ns,
                          .prune_fraction = options->prune_fraction,
                          .metric = (uint32_t)options->metric,
                          .by = (uint32_t)options->by,
                          .order = (uint32_t)options->order,
                          .node_count_max = options->node_count_max};
}

static bool is_same(const struct asked *a, const struct asked *b)
{
    return a->t0_ns == b->t0_ns && a->t1_ns == b->t1_ns && a->prune_fraction == b->prune_fraction &&
           a->metric == b->metric && a->by == b->by && a->order == b->order &&
           a->node_count_max == b->node_count_max;
}

static struct lac_cache_key key_of(const struct lac_trace_file *file, const struct asked *asked)
{
    return (struct lac_cache_key){
        .owner = file->owner, .index = lac_hash_bytes(asked, sizeof(*asked), 0), .type = KEPT_TYPE};
}

static struct lac_flame *copy_of(const struct kept *kept)
{
    struct lac_flame *flame = malloc(sizeof(*flame));
    struct lac_flame_node *nodes = malloc(kept->node_count * sizeof(*nodes));

    if (flame == NULL || nodes == NULL) {
        free(flame);
        free(nodes);
        return NULL;
    }
    memcpy(nodes, kept->nodes, kept->node_count * sizeof(*nodes));
    *flame = (struct lac_flame){nodes, kept->node_count, kept->step_count};
    return flame;
}

struct lac_flame *lac_flame_kept_get(struct lac_trace_file *file,
                                     const struct lac_flame_options *options)
{
    assert(file != NULL && options != NULL);
    const struct asked asked = asked_of(options);
    const struct lac_cache_key key = key_of(file, &asked);
    struct lac_cache_entry *entry = is_kept(options) ? lac_cache_get(file->cache, &key) : NULL;
    struct lac_flame *flame = NULL;

    if (entry != NULL) {
        const struct kept *kept = lac_cache_data(entry);

        flame = is_same(&kept->asked, &asked) ? copy_of(kept) : NULL;
    }
    lac_cache_unpin(file->cache, entry);
    return flame;
}

void lac_flame_kept_put(struct lac_trace_file *file, const struct lac_flame_options *options,
                        const struct lac_flame *flame)
{
    assert(file != NULL && options != NULL && flame != NULL);
    const struct asked asked = asked_of(options);
    const struct lac_cache_key key = key_of(file, &asked);
    const size_t size_bytes =
        sizeof(struct kept) + flame->node_count * sizeof(struct lac_flame_node);
    struct kept *kept = is_kept(options) ? malloc(size_bytes) : NULL;

    if (kept != NULL) {
        kept->asked = asked;
        kept->node_count = flame->node_count;
        kept->step_count = flame->step_count;
        memcpy(kept->nodes, flame->nodes, flame->node_count * sizeof(*flame->nodes));
        lac_cache_unpin(file->cache, lac_cache_put(file->cache, &key, kept, size_bytes, free));
    }
}
