#include "analysis/import/spool/spool_ranks.h"

#include "analysis/import/spool/spool_read.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A process that told its rank, or one that has one by now. */
struct identity {
    uint32_t file;
    int32_t rank, world_size;
    uint64_t group;
};

struct finder {
    struct lac_spool_info *const *infos;
    size_t count;
    uint32_t *by_process; /* files that told a rank, by process */
    size_t told_count;
    struct identity *found; /* a file each */
    size_t found_count;
    struct lac_spool_ranks *ranks;
};

static int compare(uint64_t a, uint64_t b)
{
    return LAC_ORDER(a, b);
}

static int by_process(const struct lac_spool_info *a, const struct lac_spool_info *b)
{
    const int order = compare((uint32_t)a->pid, (uint32_t)b->pid);

    return order != 0 ? order : compare(a->start_ticks, b->start_ticks);
}

static int by_process_of(const void *left, const void *right, void *context)
{
    const struct finder *const finder = context;

    return by_process(finder->infos[*(const uint32_t *)left],
                      finder->infos[*(const uint32_t *)right]);
}

/* The file of that process that told its rank, or NULL. */
static const struct lac_spool_info *told_by(const struct finder *finder,
                                            const struct lac_spool_ancestor *process,
                                            const uint8_t *boot_id)
{
    const struct lac_spool_info wanted = {.pid = process->pid, .start_ticks = process->start_ticks};
    size_t low = 0;

    LAC_BISECT(low, finder->told_count, middle,
               by_process(finder->infos[finder->by_process[middle]], &wanted) < 0);
    for (; low < finder->told_count; low++) {
        const struct lac_spool_info *const info = finder->infos[finder->by_process[low]];

        if (by_process(info, &wanted) != 0) {
            break;
        }
        if (memcmp(info->boot_id, boot_id, sizeof(info->boot_id)) == 0) {
            return info;
        }
    }
    return NULL;
}

/* Who told the rank of this process: itself, a program that it executed before or after, or the
 * nearest ancestor; NULL: nobody. */
static const struct lac_spool_info *teller_of(const struct finder *finder,
                                              const struct lac_spool_info *info)
{
    const struct lac_spool_ancestor self = {.pid = info->pid, .start_ticks = info->start_ticks};
    const struct lac_spool_info *teller =
        info->told_rank >= 0 ? info : told_by(finder, &self, info->boot_id);

    for (uint32_t i = 0; i < info->ancestor_count && teller == NULL; i++) {
        teller = told_by(finder, &info->ancestors[i], info->boot_id);
    }
    return teller;
}

static void sort_told(struct finder *finder)
{
    for (size_t i = 0; i < finder->count; i++) {
        if (finder->infos[i]->told_rank >= 0) {
            finder->by_process[finder->told_count++] = (uint32_t)i;
        }
    }
    qsort_r(finder->by_process, finder->told_count, sizeof(*finder->by_process), by_process_of,
            finder);
}

static void find_identities(struct finder *finder)
{
    int32_t world_size = 1; /* the largest */

    for (size_t i = 0; i < finder->count; i++) {
        const struct lac_spool_info *const info = finder->infos[i];
        const int32_t told = info->told_rank >= 0 ? info->told_world_size : 0;

        world_size = info->world_size > world_size ? info->world_size : world_size;
        world_size = told > world_size ? told : world_size;
    }
    for (size_t i = 0; i < finder->count; i++) {
        struct lac_spool_info *const info = finder->infos[i];
        const struct lac_spool_info *const teller = teller_of(finder, info);
        struct identity identity = {(uint32_t)i, info->rank, info->world_size, 0};

        if (teller != NULL) {
            identity = (struct identity){(uint32_t)i, teller->told_rank, teller->told_world_size,
                                         teller->told_group};
        } else if (info->world_size != world_size) {
            continue;
        }
        if (identity.rank >= 0 && identity.world_size > 1) {
            finder->found[finder->found_count++] = identity;
        }
    }
}

static int by_identity(const void *left, const void *right)
{
    const struct identity *const a = left;
    const struct identity *const b = right;
    int order = compare((uint32_t)b->world_size, (uint32_t)a->world_size);

    order = order != 0 ? order : compare(a->group, b->group);
    order = order != 0 ? order : compare((uint32_t)a->rank, (uint32_t)b->rank);
    return order != 0 ? order : compare(a->file, b->file);
}

/* Groups become numbers by world size. Where only one was told, who told none is of it, too. */
static void number_groups(struct finder *finder)
{
    struct identity *const found = finder->found;

    for (size_t first = 0, end; first < finder->found_count; first = end) {
        uint64_t number = 0;
        uint64_t last = 0;

        for (end = first;
             end < finder->found_count && found[end].world_size == found[first].world_size; end++) {
            if (found[end].group != 0 && found[end].group != last) {
                last = found[end].group;
                number++;
            }
            found[end].group = number;
        }
        for (size_t i = first; i < end && number <= 1; i++) {
            found[i].group = 0;
        }
    }
}

static bool is_same_rank(const struct identity *a, const struct identity *b)
{
    return a->world_size == b->world_size && a->group == b->group && a->rank == b->rank;
}

/* What each file is, and which ranks there are. */
static void list_ranks(struct finder *finder)
{
    struct lac_spool_ranks *const ranks = finder->ranks;

    for (size_t i = 0; i < finder->found_count; i++) {
        const struct identity *const identity = &finder->found[i];

        if (i == 0 || !is_same_rank(identity, identity - 1)) {
            ranks->at[ranks->count++] = (struct lac_spool_rank){
                identity->rank, identity->world_size, (uint32_t)identity->group};
        }
        ranks->of_file[identity->file] = (uint32_t)ranks->count - 1;
        finder->infos[identity->file]->rank = identity->rank;
        finder->infos[identity->file]->world_size = identity->world_size;
    }
    if (ranks->count < 2) {
        ranks->count = 0;
    }
}

enum lac_status lac_spool_ranks_find(struct lac_spool_info *const *infos, size_t count,
                                     struct lac_spool_ranks *ret)
{
    struct finder finder = {.infos = infos, .count = count, .ranks = ret};
    enum lac_status status = LAC_ERR_NOMEM;

    *ret = (struct lac_spool_ranks){.at = calloc(count + 1, sizeof(*ret->at)),
                                    .of_file = calloc(count + 1, sizeof(*ret->of_file))};
    finder.by_process = calloc(count + 1, sizeof(*finder.by_process));
    finder.found = calloc(count + 1, sizeof(*finder.found));
    if (ret->at != NULL && ret->of_file != NULL && finder.by_process != NULL &&
        finder.found != NULL) {
        memset(ret->of_file, 0xff, count * sizeof(*ret->of_file));
        sort_told(&finder);
        find_identities(&finder);
        qsort(finder.found, finder.found_count, sizeof(*finder.found), by_identity);
        number_groups(&finder);
        qsort(finder.found, finder.found_count, sizeof(*finder.found), by_identity);
        list_ranks(&finder);
        status = LAC_OK;
    }
    free(finder.by_process);
    free(finder.found);
    if (status != LAC_OK) {
        lac_spool_ranks_done(ret);
    }
    return status;
}

void lac_spool_ranks_done(struct lac_spool_ranks *ranks)
{
    free(ranks->at);
    free(ranks->of_file);
    *ranks = (struct lac_spool_ranks){0};
}
