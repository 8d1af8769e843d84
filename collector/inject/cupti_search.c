#include "collector/inject/cupti_search.h"

#include "collector/base/count_of.h"
#include "collector/base/debug.h"
#include "collector/base/old_symbols.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char STEM[] = "libcupti";

/* What the system's own search may find: CUDA 11 has the minor version in its soname. */
static const char *const sonames[] = {
    "libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8", "libcupti.so.11.7",
    "libcupti.so.11.6", "libcupti.so.11.5", "libcupti.so.11.4", "libcupti.so.11.3",
    "libcupti.so.11.2", "libcupti.so.11.1", "libcupti.so.11.0", "libcupti.so",
};

static const char *const toolkits[] = {"/usr/local/cuda/extras/CUPTI/lib64",
                                       "/usr/local/cuda/lib64"};

/* Libraries of CUDA that are in a folder of the same release as CUPTI, or beside one: the first
 * ones say the most. */
static const char *const relatives[] = {"libcudart", "libcublas", "libcudnn", "libnvrtc"};

/* From the folder of a relative: the same one (conda, a toolkit of the distribution, wheels from
 * CUDA 13 on), the one of its own wheel, the toolkit's. */
static const char *const from_relative[] = {"", "/../../cuda_cupti/lib", "/../../cupti/lib",
                                            "/../extras/CUPTI/lib64"};

enum { RELATIVES_MAX = 8, FIT_COUNT = 3 };

/* Where one of them was found, of which kind. */
struct folder {
    char path[PATH_MAX];
    size_t kind;
};

struct folders {
    struct folder found[RELATIVES_MAX + 1]; /* room for one that is known */
    size_t count;
    char *loaded;
};

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

bool lac_cupti_name(const char *name, int *ret_major, int *ret_minor)
{
    const char *at = name + strlen(STEM);
    long major;

    *ret_major = *ret_minor = 0;
    if (!starts_with(name, STEM)) {
        return false;
    }
    if (*at == '-') { /* wheels add a hash of the contents: libcupti-d0da41ae.so.12 */
        at += 1 + strspn(at + 1, "0123456789abcdef");
    }
    if (!starts_with(at, ".so") || (at[3] != '.' && at[3] != '\0')) {
        return false;
    }
    at += 3;
    if (*at == '.') {
        char *end = NULL;

        major = strtol(at + 1, &end, 10);
        if (end == at + 1 || (*end != '.' && *end != '\0') || major < 0) {
            return false;
        }
        if (major < 100) { /* others are CUPTI's own: libcupti.so.2025.3.1 */
            *ret_major = (int)major;
            *ret_minor = *end == '.' ? (int)(strtol(end + 1, NULL, 10) % 100) : 0;
        }
    }
    return true;
}

/* The driver's CUDA, as 12 of 12.4; INT_MAX: not known. */
static int driver_major(void)
{
    int (*get_version)(int *) = NULL;
    void *const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int version = 0;

    if (driver != NULL) {
        *(void **)&get_version = dlsym(driver, "cuDriverGetVersion");
    }
    if (get_version == NULL || get_version(&version) != 0 || version < 1000) {
        return INT_MAX;
    }
    LAC_DEBUG(CUPTI, 1, "the driver's CUDA is %d.%d", version / 1000, version % 1000 / 10);
    return version / 1000;
}

static size_t kind_of(const char *name)
{
    size_t kind = 0;

    while (kind < LAC_COUNT_OF(relatives) && !starts_with(name, relatives[kind])) {
        kind++;
    }
    return kind;
}

static bool is_noted(const struct folders *folders, const char *path, size_t kind)
{
    for (size_t i = 0; i < folders->count; i++) {
        if (folders->found[i].kind <= kind && strcmp(folders->found[i].path, path) == 0) {
            return true;
        }
    }
    return false;
}

static int note_library(struct dl_phdr_info *info, size_t size_bytes, void *out)
{
    struct folders *const folders = out;
    const char *const slash = info->dlpi_name != NULL ? strrchr(info->dlpi_name, '/') : NULL;
    const size_t kind = slash != NULL ? kind_of(slash + 1) : LAC_COUNT_OF(relatives);
    struct folder *const next = &folders->found[folders->count];
    int unused[2];

    (void)size_bytes;
    if (slash == NULL || strlen(info->dlpi_name) >= PATH_MAX) {
        return 0;
    }
    if (folders->loaded[0] == '\0' && lac_cupti_name(slash + 1, &unused[0], &unused[1])) {
        (void)snprintf(folders->loaded, PATH_MAX, "%s", info->dlpi_name);
    }
    if (kind == LAC_COUNT_OF(relatives) || folders->count == RELATIVES_MAX) {
        return 0;
    }
    memcpy(next->path, info->dlpi_name, (size_t)(slash - info->dlpi_name));
    next->path[slash - info->dlpi_name] = '\0';
    next->kind = kind;
    folders->count += !is_noted(folders, next->path, kind);
    return 0;
}

/* What fits the driver is first, in every place; then what does not say its version; then what is
 * newer, which the driver would refuse. */
static uint8_t fit_of(int major, int driver)
{
    return major == 0 ? 1 : major <= driver ? 0 : 2;
}

static void add(struct lac_cupti_search *search, size_t place, const char *folder, const char *name,
                int driver)
{
    struct lac_cupti_candidate *const one = &search->candidates[search->count];

    if (search->count == LAC_CUPTI_CANDIDATES_MAX ||
        !lac_cupti_name(name, &one->major, &one->minor) ||
        snprintf(one->path, sizeof(one->path), "%s%s%s", folder, folder[0] != '\0' ? "/" : "",
                 name) >= (int)sizeof(one->path)) {
        return;
    }
    one->place = place;
    one->fit = fit_of(one->major, driver);
    search->count++;
}

static void add_folder(struct lac_cupti_search *search, size_t place, const char *folder,
                       int driver)
{
    DIR *const files = opendir(folder);

    for (const struct dirent *entry = files != NULL ? readdir(files) : NULL; entry != NULL;
         entry = readdir(files)) {
        add(search, place, folder, entry->d_name, driver);
    }
    if (files != NULL) {
        (void)closedir(files);
    }
}

static int in_order(const void *left, const void *right)
{
    const struct lac_cupti_candidate *const a = left;
    const struct lac_cupti_candidate *const b = right;

    if (a->fit != b->fit) {
        return a->fit < b->fit ? -1 : 1;
    }
    if (a->place != b->place) {
        return a->place < b->place ? -1 : 1;
    }
    if (a->major != b->major || a->minor != b->minor) {
        return a->major != b->major ? b->major - a->major : b->minor - a->minor;
    }
    return strcmp(a->path, b->path);
}

void lac_cupti_search(struct lac_cupti_search *search)
{
    static struct folders folders; /* too large for the stack of somebody's thread */
    char folder[PATH_MAX + 32];
    const int driver = driver_major();
    size_t place = 0;

    memset(&folders, 0, sizeof(folders));
    folders.loaded = search->loaded;
    search->loaded[0] = '\0';
    search->count = 0;
    (void)dl_iterate_phdr(note_library, &folders);
    for (size_t kind = 0; kind < LAC_COUNT_OF(relatives); kind++) {
        for (size_t i = 0; i < folders.count; i++) {
            for (size_t way = 0; way < LAC_COUNT_OF(from_relative) && folders.found[i].kind == kind;
                 way++) {
                (void)snprintf(folder, sizeof(folder), "%s%s", folders.found[i].path,
                               from_relative[way]);
                add_folder(search, place++, folder, driver);
            }
        }
    }
    for (size_t i = 0; i < LAC_COUNT_OF(sonames); i++) {
        add(search, place, "", sonames[i], driver);
    }
    place++;
    for (size_t i = 0; i < LAC_COUNT_OF(toolkits); i++) {
        add_folder(search, place++, toolkits[i], driver);
    }
    qsort(search->candidates, search->count, sizeof(search->candidates[0]), in_order);
}
