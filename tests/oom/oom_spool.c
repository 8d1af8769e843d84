/*
 * The n-th allocation fails, for every n, while a spool is imported: the answer is LAC_ERR_NOMEM
 * with a message, or a name that is missing, and nothing leaks (the sanitizer build sees to that).
 */

#include "analysis/import/spool_import.h"
#include "analysis/model/model.h"
#include "tests/support/made_spool.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static uint64_t allocations_left = UINT64_MAX;
static bool was_refused;

static bool refuse(void)
{
    if (allocations_left == 0) {
        was_refused = true;
        return true;
    }
    allocations_left--;
    return false;
}

void *__wrap_malloc(size_t size)
{
    return refuse() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refuse() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return refuse() ? NULL : __real_realloc(old, size);
}

static void require(bool holds, const char *what, const char *path)
{
    if (!holds) {
        (void)fprintf(stderr, "oom_spool: %s: %s\n", path, what);
        exit(1);
    }
}

static enum lac_status drop(void *context, struct lac_model *model, struct lac_error *reterr)
{
    (void)reterr;
    ++*(int *)context;
    lac_model_destroy(model);
    return LAC_OK;
}

/* How many allocations it took; every one of them was refused once. */
static uint64_t refuse_each(const char *path)
{
    static uint8_t bytes[1 << 20];
    const struct lac_import_options options = {.name = "job"};
    FILE *const file = fopen(path, "rb");
    char spool[64];
    int fd;

    require(file != NULL, "cannot be opened", path);
    fd = lac_made_spool(bytes, fread(bytes, 1, sizeof(bytes), file));
    (void)fclose(file);
    (void)snprintf(spool, sizeof(spool), "/proc/self/fd/%d", fd);
    for (uint64_t n = 0;; n++) {
        struct lac_error error = {0};
        enum lac_status status;
        int count = 0;

        allocations_left = n;
        was_refused = false;
        status = lac_spool_import(spool, &options, drop, &count, &error);
        allocations_left = UINT64_MAX;
        if (!was_refused) {
            require(status == LAC_OK && count == 1, "not imported with memory to spare", path);
            (void)close(fd);
            return n;
        }
        require(status == LAC_ERR_NOMEM, "a refused allocation was not LAC_ERR_NOMEM", path);
        require(error.message[0] != '\0' && count == 0, "no message", path);
    }
}

int main(void)
{
    static const char folder[] = "tests/fuzz/corpus/spool";
    DIR *const directory = opendir(folder);
    uint64_t refused = 0;
    unsigned files = 0;

    require(directory != NULL, "is not there (run me from the repository's root)", folder);
    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        char path[512];

        if (entry->d_name[0] != '.') {
            (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
            refused += refuse_each(path);
            files++;
        }
    }
    (void)closedir(directory);
    require(files > 0 && refused > 20 * files, "too few allocations to be true", folder);
    (void)printf("oom_spool: %llu allocations refused\n", (unsigned long long)refused);
    return 0;
}
