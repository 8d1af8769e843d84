#include "analysis/import/source/import_options.h"

#include "analysis/model/model.h"
#include "collector/base/count_of.h"
#include "collector/base/utf8.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void lac_import_limits_default(struct lac_import_limits *limits)
{
    *limits = (struct lac_import_limits){
        .expanded_bytes_max = 0,
        .expansion_ratio_max = 200,
        .slice_count_max = LAC_SLICE_COUNT_MAX,
        .track_count_max = LAC_TRACK_COUNT_MAX,
        .depth_max = 64,
        .event_bytes_max = 4 << 20,
        .name_bytes_max = 64 << 10,
        .member_count_max = 4096,
    };
}

void lac_import_name(const char *path, char *name, size_t capacity_bytes)
{
    static const char *const endings[] = {".json",  ".gz", ".zst",    ".tar",     ".tgz",
                                          ".trace", ".pt", ".sqlite", ".nsys-rep"};
    const char *base = strrchr(path, '/');
    base = base != NULL ? base + 1 : path;
    size_t size = strlen(base);
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < LAC_COUNT_OF(endings); i++) {
            size_t length = strlen(endings[i]);
            if (size > length && strncasecmp(base + size - length, endings[i], length) == 0) {
                size -= length;
                again = true;
            }
        }
    }
    if (size > capacity_bytes / 3 - 2) {
        size = capacity_bytes / 3 - 2;
    }
    const uint8_t *p = (const uint8_t *)base, *end = p + size;
    char *to = name;
    while (p < end) {
        uint32_t length = *p < 0x20 ? 0 : lac_utf8_length(p, end);
        memcpy(to, length ? (const char *)p : LAC_UTF8_REPLACEMENT, length ? length : 3);
        to += length ? length : 3;
        p += length ? length : 1;
    }
    *to = 0;
}
