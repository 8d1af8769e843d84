/*
 * The n-th allocation fails, for every n, while a spool is imported: the answer is LAC_ERR_NOMEM
 * with a message, or a name that is missing, and nothing leaks (the sanitizer build sees to that).
 */

#include "analysis/import/spool/spool_import.h"
#include "analysis/model/model.h"
#include "tests/support/made_spool.h"
#include "tests/support/oom.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

struct input {
    const char *path;
    char spool[64];
};

static enum lac_status import(void *context)
{
    const struct lac_import_options options = {.name = "job"};
    const struct input *const input = context;
    struct lac_error error = {0};
    int count = 0;
    const enum lac_status status = lac_spool_import(input->spool, &options, drop, &count, &error);

    require(status == LAC_OK ? count == 1 : count == 0 && error.message[0] != '\0',
            "neither one trace nor a message", input->path);
    return status;
}

/* How many allocations it took; every one of them was refused once. */
static uint64_t refuse_each(const char *path)
{
    static uint8_t bytes[1 << 20];
    struct input input = {.path = path};
    FILE *const file = fopen(path, "rb");
    uint64_t tried;
    int fd;

    require(file != NULL, "cannot be opened", path);
    fd = lac_made_spool(bytes, fread(bytes, 1, sizeof(bytes), file));
    (void)fclose(file);
    (void)snprintf(input.spool, sizeof(input.spool), "/proc/self/fd/%d", fd);
    tried = oom_each(path, import, &input, 1);
    (void)close(fd);
    return tried;
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
