#include "collector/sample/gpu_cores.h"

#include "collector/base/io_full.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { FILE_BYTES = 1024 };

/* One line of a device's file; "" when it is not there. */
static const char *read_line(const char *devices, const char *device, const char *file,
                             char text[FILE_BYTES])
{
    char path[1024];
    const int length = snprintf(path, sizeof(path), "%s/%s/%s", devices, device, file);

    text[0] = '\0';
    if (length > 0 && (size_t)length < sizeof(path)) {
        (void)lac_read_text(path, text, FILE_BYTES);
    }
    text[strcspn(text, "\n")] = '\0';
    return text;
}

/* A display controller, or one without a display, of NVIDIA. */
static bool is_gpu(const char *devices, const char *device)
{
    char text[FILE_BYTES];

    if (strcmp(read_line(devices, device, "vendor", text), "0x10de") != 0) {
        return false;
    }
    (void)read_line(devices, device, "class", text);
    return strncmp(text, "0x0300", 6) == 0 || strncmp(text, "0x0302", 6) == 0;
}

bool lac_gpu_local_cores(const char *devices, char *out, size_t capacity)
{
    DIR *const folder = opendir(devices);
    bool is_one = true;

    out[0] = '\0';
    if (folder == NULL) {
        return false;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char cores[FILE_BYTES];

        if (entry->d_name[0] == '.' || !is_gpu(devices, entry->d_name)) {
            continue;
        }
        (void)read_line(devices, entry->d_name, "local_cpulist", cores);
        is_one = is_one && cores[0] != '\0' && strlen(cores) < capacity &&
                 (out[0] == '\0' || strcmp(out, cores) == 0);
        if (is_one) {
            memcpy(out, cores, strlen(cores) + 1);
        }
    }
    (void)closedir(folder);
    return is_one && out[0] != '\0';
}
