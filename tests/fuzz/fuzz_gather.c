/*
 * A folder of three spools with any damage (tests/support/patched_spool.h), gathered as `lacuna
 * gather` does it, from real files: what comes out is imported, or refused with a reason.
 */

#include "analysis/import/import.h"
#include "analysis/import/spool/spool_import.h"
#include "analysis/model/model.h"
#include "collector/gather/drain.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/support/patched_spool.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { FILES = 3 };

static char folder[64];
static char spools[80];
static char output[80];

static void path_of(char path[128], const char *in, unsigned file)
{
    (void)snprintf(path, 128, "%s/%u-1-0.spool", in, file + 1);
}

static void remove_files(const char *in)
{
    char path[128];

    for (unsigned i = 0; i < FILES; i++) {
        path_of(path, in, i);
        (void)unlink(path);
    }
}

static void remove_folders(void)
{
    remove_files(spools);
    remove_files(output);
    (void)rmdir(spools);
    (void)rmdir(output);
    (void)rmdir(folder);
}

static void make_folders(void)
{
    if (folder[0] != '\0') {
        return;
    }
    (void)snprintf(folder, sizeof(folder), "%s/lacuna-fuzz-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    require(mkdtemp(folder) != NULL);
    (void)snprintf(spools, sizeof(spools), "%s/spools", folder);
    (void)snprintf(output, sizeof(output), "%s/output", folder);
    require(mkdir(spools, 0700) == 0 && mkdir(output, 0700) == 0 && atexit(remove_folders) == 0);
}

static void write_spool(const uint8_t *data, size_t size, unsigned file)
{
    static uint8_t bytes[LAC_PATCHED_BYTES];
    const size_t size_bytes = lac_patched_spool(data, size, file, bytes);
    char path[128];
    int fd;

    path_of(path, spools, file);
    fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    require(fd >= 0 && write(fd, bytes, size_bytes) == (ssize_t)size_bytes && close(fd) == 0);
}

static enum lac_status keep(void *context, struct lac_model *model, struct lac_error *reterr)
{
    (void)reterr;
    *(struct lac_model **)context = model;
    return LAC_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct lac_import_options options = {.name = "fuzz"};
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    struct lac_drain_counts counts;
    struct lac_drain *drain;

    make_folders();
    remove_files(output);
    for (unsigned i = 0; i < FILES; i++) {
        write_spool(data, size, i);
    }
    drain = lac_drain_create(spools, output);
    require(drain != NULL);
    lac_drain_gather(drain);
    counts = lac_drain_counts(drain);
    lac_drain_destroy(drain);
    require(counts.failed_writes == 0 && counts.unopened == 0);
    require(counts.processes + counts.damaged <= FILES);
    if (counts.processes == 0) {
        return 0;
    }
    if (lac_spool_import(output, &options, keep, &model, &error) == LAC_OK) {
        require(model != NULL && lac_model_is_valid(model));
        lac_model_destroy(model);
    } else {
        require(model == NULL && error.message[0] != '\0');
    }
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    const size_t mutated = lac_patches_mutate(data, size, max_size, seed);

    return mutated > 0 ? mutated : LLVMFuzzerMutate(data, size, max_size);
}
