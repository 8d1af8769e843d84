#include "tests/support/cupti_job.h"

#include "analysis/model/model.h"
#include "collector/inject/api.h"
#include "lacuna/spool.h"
#include "tests/support/check_marks.h"
#include "tests/support/recorded_job.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct lac_model *lac_cupti_model;
void (*lac_cupti_deliver)(int launches, uint32_t thread, int drop);

/* What libcuda does in cuInit: load the library that CUDA_INJECTION64_PATH names, and call it. */
void lac_cupti_initialize(void)
{
    char stand_in[4096];
    void *library;
    void *cupti;
    int (*initialize)(void);

    (void)snprintf(stand_in, sizeof(stand_in), "%s", lac_job_file("stand_in/libcupti_stand_in.so"));
    (void)setenv("LACUNA_CUPTI", stand_in, 1);
    library = dlopen(lac_job_file("liblacuna.so"), RTLD_LAZY);
    cupti = dlopen(stand_in, RTLD_LAZY);
    if (library == NULL || cupti == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        _exit(99);
    }
    *(void **)&initialize = dlsym(library, "InitializeInjection");
    *(void **)&lac_cupti_deliver = dlsym(cupti, "stand_in_deliver");
    if (initialize() != 1) {
        _exit(98);
    }
}

/* A function of the stand-in, in the job. */
void *lac_cupti_stand_in(const char *name)
{
    void *const library = dlopen(lac_job_file("stand_in/libcupti_stand_in.so"), RTLD_LAZY);
    void *const function = dlsym(library, name);

    if (function == NULL) {
        _exit(97);
    }
    return function;
}

const struct lacuna_api *lac_cupti_api(void)
{
    const struct lacuna_api *(*get_api)(void);

    *(void **)&get_api = dlsym(dlopen(lac_job_file("liblacuna.so"), RTLD_LAZY), "lacuna_get_api");
    return get_api();
}

/* The header of the process's own spool, as a launcher sees it. */
struct lac_spool_header *lac_cupti_own_header(void)
{
    char path[64];
    char target[4096];

    for (int fd = 3; fd < 1024; fd++) {
        ssize_t length;

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        length = readlink(path, target, sizeof(target));
        if (length > 6 && memcmp(target + length - 6, ".spool", 6) == 0) {
            return mmap(NULL, sizeof(struct lac_spool_header), PROT_READ | PROT_WRITE, MAP_SHARED,
                        fd, 0);
        }
    }
    _exit(97);
}

void lac_cupti_import(void)
{
    struct lac_error error = {0};

    lac_cupti_model = lac_job_import(&error);
    ck_assert_msg(lac_cupti_model != NULL, "%s", error.message);
    ck_assert(lac_model_is_valid(lac_cupti_model));
}

uint64_t lac_cupti_count(enum lac_slice_kind kind)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < lac_cupti_model->slices.count; i++) {
        count += lac_cupti_model->slices.kind[i] == kind;
    }
    return count;
}

bool lac_cupti_says(const char *text)
{
    return strstr(lac_model_str(lac_cupti_model, lac_cupti_model->info.metadata), text) != NULL;
}
