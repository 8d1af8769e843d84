/* An output file that holds a part of the process already, as its launcher moved it before it was
 * killed, or an earlier gathering: each segment keeps its place, and only what is newer comes. */

#include "collector/base/debug.h"
#include "collector/base/io_full.h"
#include "collector/gather/drain_private.h"
#include "collector/gather/spool_bounds.h"
#include "lacuna/spool.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

static int compare(const struct lac_drain_kept *a, const struct lac_drain_kept *b)
{
    if (a->opened != b->opened) {
        return a->opened < b->opened ? -1 : 1;
    }
    if (a->tid != b->tid) {
        return a->tid < b->tid ? -1 : 1;
    }
    if (a->seq != b->seq) {
        return a->seq < b->seq ? -1 : 1;
    }
    return (a->kind > b->kind) - (a->kind < b->kind);
}

static int by_life(const void *a, const void *b)
{
    return compare(a, b);
}

static struct lac_drain_kept life_of(const struct lac_segment_header *head)
{
    return (struct lac_drain_kept){
        .opened = head->sync.ticks, .tid = head->tid, .seq = head->seq, .kind = head->kind};
}

static uint64_t offset_of(const struct lac_drain_source *source, uint64_t index)
{
    return LAC_SPOOL_SEGMENTS_OFFSET + index * source->segment_bytes;
}

/* Of the same process, and laid out alike. */
static bool is_same_process(const struct lac_spool_header *a, const struct lac_spool_header *b)
{
    return a->pid == b->pid && a->start_ticks == b->start_ticks && a->fork_depth == b->fork_depth &&
           a->segment_bytes == b->segment_bytes &&
           memcmp(a->boot_id, b->boot_id, sizeof(a->boot_id)) == 0 &&
           a->first.ticks == b->first.ticks;
}

bool lac_drain_resume(struct lac_drain *drain, struct lac_drain_source *source,
                      const struct lac_spool_header *header)
{
    struct lac_spool_header *const there = malloc(sizeof(*there));
    struct stat status = {0};
    uint64_t count;
    bool is_same;

    is_same = there != NULL && lac_file_status(source->output_fd, &status) &&
              lac_file_read_at(source->output_fd, there, sizeof(*there), 0) &&
              lac_spool_header_check(there) && is_same_process(there, header);
    free(there);
    if (!is_same) {
        return false;
    }
    count =
        (uint64_t)status.st_size > LAC_SPOOL_SEGMENTS_OFFSET
            ? ((uint64_t)status.st_size - LAC_SPOOL_SEGMENTS_OFFSET + source->segment_bytes - 1) /
                  source->segment_bytes
            : 0;
    count = count < LAC_SPOOL_SEGMENTS_MAX ? count : LAC_SPOOL_SEGMENTS_MAX;
    source->kept = count > 0 ? calloc(count, sizeof(*source->kept)) : NULL;
    for (uint64_t i = 0; i < count && source->kept != NULL; i++) {
        struct lac_segment_header head;

        if (lac_file_read_at(source->output_fd, &head, sizeof(head), offset_of(source, i)) &&
            head.magic == LAC_SEGMENT_MAGIC) {
            source->kept[source->kept_count] = life_of(&head);
            source->kept[source->kept_count++].index = i;
            source->output_segments = i + 1;
        }
    }
    if (source->kept != NULL && source->kept_count > 0) {
        qsort(source->kept, source->kept_count, sizeof(*source->kept), by_life);
    }
    drain->counts.bytes += source->output_segments > 0
                               ? offset_of(source, source->output_segments) - LAC_SPOOL_HEADER_BYTES
                               : 0;
    LAC_DEBUG(GATHER, 1, "%s holds %lu segments already", source->output_name,
              (unsigned long)source->kept_count);
    return count == 0 || source->kept != NULL;
}

bool lac_drain_find_kept(const struct lac_drain_source *source,
                         const struct lac_segment_header *head, uint64_t *ret_index)
{
    const struct lac_drain_kept key = life_of(head);
    const struct lac_drain_kept *const found =
        source->kept_count > 0
            ? bsearch(&key, source->kept, source->kept_count, sizeof(*source->kept), by_life)
            : NULL;

    if (found != NULL) {
        *ret_index = found->index;
    }
    return found != NULL;
}

bool lac_drain_is_newer(const struct lac_drain *drain, const struct lac_drain_source *source,
                        uint64_t index)
{
    static uint8_t page[PAGE_BYTES];
    size_t used = source->segment_bytes;
    size_t at = used;

    while (used > 0 && drain->buffer[used - 1] == 0) {
        used--;
    }
    while (at > used) { /* records are only ever added: what is longer is newer */
        at -= PAGE_BYTES;
        memset(page, 0, sizeof(page));
        (void)pread(source->output_fd, page, sizeof(page), (off_t)(offset_of(source, index) + at));
        for (size_t i = at < used ? used - at : 0; i < PAGE_BYTES; i++) {
            if (page[i] != 0) {
                return false;
            }
        }
    }
    return true;
}
