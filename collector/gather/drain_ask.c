/* Looks at the processes themselves, not at what they recorded: whether they go on, and what they do. */

#include "collector/base/count_of.h"
#include "collector/gather/drain.h"
#include "collector/gather/drain_private.h"
#include "collector/gather/shared_spool.h"
#include "lacuna/spool.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The number of "KEY=number" in a header's text; -1: there is none. */
static int32_t text_number(const struct lac_spool_header *header, const char *key)
{
    const size_t key_length = strlen(key);

    for (uint32_t at = 0; at < header->text_bytes;) {
        const char *const text = header->text + at;
        const size_t length = strnlen(text, header->text_bytes - at);

        if (length > key_length && length < header->text_bytes - at &&
            strncmp(text, key, key_length) == 0 && text[key_length] >= '0' &&
            text[key_length] <= '9') {
            return (int32_t)strtol(text + key_length, NULL, 10);
        }
        at += (uint32_t)length + 1;
    }
    return -1;
}

void lac_drain_know(struct lac_drain_source *source, const struct lac_spool_header *header)
{
    static const char *const keys[] = {
        "env.RANK=", "env.OMPI_COMM_WORLD_RANK=", "env.SLURM_PROCID="};

    source->parent_pid = header->parent_pid;
    source->rank = -1;
    for (size_t i = 0; i < LAC_COUNT_OF(keys) && source->rank < 0; i++) {
        source->rank = text_number(header, keys[i]);
    }
}

void lac_drain_visit(struct lac_drain *drain,
                     void (*visit)(void *context, const struct lac_drain_process *process),
                     void *context)
{
    assert(drain != NULL && visit != NULL);
    for (const struct lac_drain_source *source = drain->sources; source != NULL;
         source = source->next) {
        if (source->can_end && source->spool.shared != NULL) {
            const struct lac_shared_look look = lac_shared_look(&source->spool);

            visit(context, &(struct lac_drain_process){.pid = source->pid,
                                                       .parent_pid = source->parent_pid,
                                                       .rank = source->rank,
                                                       .training_tid = look.training_tid,
                                                       .steps = look.step_count,
                                                       .progress = look.progress_count});
        }
    }
}

void lac_drain_ask(struct lac_drain *drain)
{
    assert(drain != NULL);
    for (const struct lac_drain_source *source = drain->sources; source != NULL;
         source = source->next) {
        if (source->spool.shared != NULL) {
            lac_shared_ask(&source->spool);
        }
    }
}
