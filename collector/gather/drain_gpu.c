/* Why a process cannot record its GPU: its header says that it cannot, its names say why. */

#include "collector/gather/drain.h"
#include "collector/gather/drain_private.h"
#include "collector/gather/shared_spool.h"
#include "lacuna/spool.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The reason is among the first names, which are made when CUDA begins. */
enum { SEGMENTS_READ_MAX = 64 };

/* The last text of the segment in the buffer that begins so, without its beginning. */
static void find_text(const uint8_t *segment, size_t size_bytes, const char *start,
                      struct lac_drain_gpu *gpu)
{
    const size_t start_length = strlen(start);
    size_t at = LAC_SEGMENT_HEADER_BYTES;

    while (at + sizeof(struct lac_string_record) <= size_bytes) {
        struct lac_string_record record;
        const char *const text = (const char *)segment + at + sizeof(record);

        memcpy(&record, segment + at, sizeof(record));
        at += sizeof(record);
        if (record.length == 0 || record.length > size_bytes - at) {
            return;
        }
        if (record.length > start_length && memcmp(text, start, start_length) == 0) {
            const size_t length = record.length - start_length;
            const size_t kept = length < sizeof(gpu->reason) ? length : sizeof(gpu->reason) - 1;

            memcpy(gpu->reason, text + start_length, kept);
            gpu->reason[kept] = '\0';
        }
        at += ((size_t)record.length + 7) & ~(size_t)7;
    }
}

void lac_drain_look_at_gpu(struct lac_drain *drain, const struct lac_drain_source *source,
                           const struct lac_shared_look *look)
{
    const char *const start = look->gpu_state == LAC_GPU_STATE_SILENT   ? "gpu_recording_silent="
                              : look->gpu_state == LAC_GPU_STATE_UNSEEN ? "gpu_recording_unseen="
                                                                        : "gpu_recording_reason=";
    const uint64_t segments =
        look->segment_count < SEGMENTS_READ_MAX ? look->segment_count : SEGMENTS_READ_MAX;

    if (drain->gpu.state != LAC_GPU_STATE_NONE || look->gpu_state < LAC_GPU_STATE_NO_KERNELS ||
        look->gpu_state > LAC_GPU_STATE_UNSEEN) {
        return;
    }
    drain->gpu.state = (enum lac_gpu_state)look->gpu_state;
    for (uint64_t i = 0; i < segments; i++) {
        const uint64_t offset = LAC_SPOOL_SEGMENTS_OFFSET + i * source->segment_bytes;
        struct lac_segment_header head;

        if (lac_shared_read(&source->spool, &head, sizeof(head), offset) &&
            head.magic == LAC_SEGMENT_MAGIC && head.kind == LAC_SEGMENT_STRINGS &&
            lac_shared_read(&source->spool, drain->buffer, source->segment_bytes, offset)) {
            find_text(drain->buffer, source->segment_bytes, start, &drain->gpu);
        }
    }
}

const struct lac_drain_gpu *lac_drain_gpu(const struct lac_drain *drain)
{
    return &drain->gpu;
}
