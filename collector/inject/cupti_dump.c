#include "collector/base/io_full.h"
#include "collector/base/old_symbols.h"
#include "collector/inject/cupti_abi.h"
#include "collector/inject/gpu.h"
#include "collector/inject/recorder.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS_MAX = 65536, LIMIT_BYTES = 16 << 20 };

/* As FORMAT.md says: the head, the offset of each record, the buffer, then the names. */
struct dump_head {
    char magic[8];
    uint32_t cupti_version;
    uint32_t record_count;
    uint64_t valid_bytes;
    uint64_t name_count;
};

struct dump_name {
    uint64_t offset; /* of the pointer, in the buffer */
    uint32_t length; /* of the text that follows, padded to 8 */
    uint32_t reserved;
};

static bool write_name(int fd, const struct cupti_kernel *kernel, uint64_t offset)
{
    static const char padding[8];
    const size_t length = strnlen(kernel->name, LAC_NAME_BYTES_MAX);
    const struct dump_name head = {.offset = offset, .length = (uint32_t)length};

    return lac_write_full(fd, &head, sizeof(head)) && lac_write_full(fd, kernel->name, length) &&
           lac_write_full(fd, padding, (8 - length % 8) % 8);
}

static const struct cupti_kernel *named_kernel(const uint8_t *record)
{
    const struct cupti_kernel *const kernel = (const void *)record;

    return (kernel->kind == CUPTI_KIND_KERNEL || kernel->kind == CUPTI_KIND_CONCURRENT_KERNEL) &&
                   kernel->name != NULL
               ? kernel
               : NULL;
}

static bool write_dump(int fd, struct dump_head *head, const uint32_t *offsets,
                       const uint8_t *buffer)
{
    bool ok;

    for (uint32_t i = 0; i < head->record_count; i++) {
        head->name_count += named_kernel(buffer + offsets[i]) != NULL;
    }
    ok = lac_write_full(fd, head, sizeof(*head)) &&
         lac_write_full(fd, offsets, (size_t)(head->record_count + 1u) / 2 * 8) &&
         lac_write_full(fd, buffer, head->valid_bytes);
    for (uint32_t i = 0; ok && i < head->record_count; i++) {
        const uint8_t *const record = buffer + offsets[i];

        if (named_kernel(record) != NULL) {
            ok = write_name(fd, named_kernel(record),
                            offsets[i] + offsetof(struct cupti_kernel, name));
        }
    }
    return ok;
}

void lac_cupti_dump(const struct cupti_functions *functions, uint32_t version, uint8_t *buffer,
                    size_t valid_bytes)
{
    static uint32_t offsets[RECORDS_MAX + 1]; /* guarded by `busy` */
    static uint64_t used_bytes;
    static unsigned count;
    static int busy;
    const char *const folder = getenv("LACUNA_CUPTI_DUMP");
    struct dump_head head = {
        .magic = "LACCUPTI", .cupti_version = version, .valid_bytes = valid_bytes};
    struct cupti_activity *record = NULL;
    char path[4096];
    int fd;

    if (folder == NULL || folder[0] == '\0' || __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) {
        return;
    }
    while (head.record_count < RECORDS_MAX &&
           functions->get_next_record(buffer, valid_bytes, &record) == CUPTI_OK) {
        offsets[head.record_count++] = (uint32_t)((uint8_t *)record - buffer);
    }
    offsets[head.record_count] = 0;
    if (head.record_count > 0 && used_bytes + valid_bytes <= LIMIT_BYTES &&
        snprintf(path, sizeof(path), "%s/%d-%04u.cupti", folder, (int)getpid(), count) <
            (int)sizeof(path)) {
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) {
            if (!write_dump(fd, &head, offsets, buffer)) {
                (void)unlink(path);
            }
            (void)close(fd);
            used_bytes += valid_bytes;
            count++;
        }
    }
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}
