/* Where /dev/shm and memory end: finished batches wait in shared memory until they are taken. */

#include "analysis/diagnose/loading/loading.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes that the batches of so many workers take at most: what each holds, and the one that is
 *  being handed over. */
static double room_of(const struct lac_loading *loading, int32_t workers)
{
    return (double)workers * (double)loading->prefetch * (double)loading->batch_bytes;
}

void lac_shm_budget(const struct lac_facts *facts, struct lac_shm_budget *ret_room)
{
    const struct lac_loading *loading = facts->loading;
    int64_t limit = lac_setting_count(facts, "host", "memory_limit_bytes", INT64_MAX / 16);
    int64_t available = lac_setting_count(facts, "host", "memory_available_bytes", INT64_MAX / 16);
    *ret_room = (struct lac_shm_budget){
        .shm_free_bytes = lac_setting_count(facts, "host", "dev_shm_free_bytes", INT64_MAX / 16),
        .memory_bytes = limit > 0 && (available < 0 || limit < available) ? limit : available,
        .workers_most = INT32_MAX};
    if (loading == NULL || loading->batch_bytes <= 0 || loading->is_threads) {
        return; /* threads hand over what they made: nothing goes through shared memory */
    }
    double least = (double)INFINITY;
    if (ret_room->shm_free_bytes >= 0) {
        least = (double)ret_room->shm_free_bytes;
    }
    if (ret_room->memory_bytes >= 0) {
        least = fmin(least, MEMORY_FILLED_MAX * (double)ret_room->memory_bytes);
    }
    double most = floor(least / room_of(loading, 1));
    if (most < (double)INT32_MAX) {
        ret_room->workers_most = (int32_t)most;
    }
}

const char *lac_shm_budget_text(const struct lac_facts *facts, int32_t workers)
{
    const struct lac_loading *loading = facts->loading;
    struct lac_shm_budget room;
    lac_shm_budget(facts, &room);
    if (loading == NULL || loading->batch_bytes <= 0 || room.shm_free_bytes < 0 ||
        loading->is_threads) {
        return "";
    }
    double bytes = room_of(loading, workers);
    return lac_texts_add(&facts->analysis->texts,
                         " %s x %lld batches x %s of shared memory: %s of the %s free in /dev/shm.",
                         lac_format_count(workers, "worker").text, (long long)loading->prefetch,
                         lac_format_bytes(loading->batch_bytes).text,
                         lac_format_bytes(lac_round(fmin(bytes, 9e18))).text,
                         lac_format_bytes(room.shm_free_bytes).text);
}
