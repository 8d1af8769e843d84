#include "collector/base/byte_size.h"
#include "collector/inject/capture.h"
#include "collector/inject/recorder.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SEGMENT_BYTES_DEFAULT = 256 * 1024,
    SEGMENT_BYTES_MIN = 16 * 1024,
    SEGMENT_BYTES_MAX = 16 << 20
};

struct lac_recorder_settings lac_settings;

static uint64_t read_bytes(const char *name, uint64_t otherwise)
{
    const char *const text = getenv(name);

    if (text != NULL) {
        (void)lac_byte_size_parse(text, &otherwise);
    }
    return otherwise;
}

/* A path that stays valid when the program changes its folder. */
static bool keep_directory(const char *directory)
{
    const size_t capacity = sizeof(lac_settings.directory) - 128;
    size_t used = 0;

    if (directory[0] != '/') {
        if (getcwd(lac_settings.directory, capacity) == NULL) {
            return false;
        }
        used = strlen(lac_settings.directory);
        lac_settings.directory[used++] = '/';
    }
    if (used + strlen(directory) >= capacity) {
        return false;
    }
    memcpy(lac_settings.directory + used, directory, strlen(directory) + 1);
    return true;
}

void lac_settings_read(void)
{
    const char *const directory = getenv("LACUNA_SPOOL");
    const char *const disable = getenv("LACUNA_DISABLE");
    const char *const on_demand = getenv("LACUNA_ON_DEMAND");
    uint64_t segment_bytes = read_bytes("LACUNA_SPOOL_SEGMENT", SEGMENT_BYTES_DEFAULT);

    segment_bytes = segment_bytes < SEGMENT_BYTES_MIN ? SEGMENT_BYTES_MIN : segment_bytes;
    segment_bytes = segment_bytes > SEGMENT_BYTES_MAX ? SEGMENT_BYTES_MAX : segment_bytes;
    /* pages of up to 64 KiB (aarch64) must divide it: segments are mapped one by one */
    lac_settings.segment_bytes = (uint32_t)((segment_bytes + 65535) / 65536 * 65536);
    lac_settings.size_limit_bytes = read_bytes("LACUNA_SPOOL_LIMIT", (uint64_t)4 << 30);
    lac_capture_read();
    lac_settings.on_demand = on_demand != NULL && strcmp(on_demand, "1") == 0;
    lac_settings.enabled = directory != NULL && directory[0] != '\0' && keep_directory(directory) &&
                           (disable == NULL || disable[0] == '\0' || strcmp(disable, "0") == 0);
}
