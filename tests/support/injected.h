#ifndef LAC_TESTS_SUPPORT_INJECTED_H
#define LAC_TESTS_SUPPORT_INJECTED_H

/*
 * A program that carries NVTX, with the real liblacuna.so loaded the way NVTX loads it, and what it
 * left. Included once a test program: it defines functions and their state.
 */

#include "analysis/model/model.h"
#include "collector/inject/nvtx_abi.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CORE_SLOTS = 16, CORE2_SLOTS = 16 };

static nvtx_function core[CORE_SLOTS];
static nvtx_function core2[CORE2_SLOTS];
static nvtx_function *core_table[CORE_SLOTS];
static nvtx_function *core2_table[CORE2_SLOTS];
static struct lac_model *imported;

static int get_module_table(int module, nvtx_function ***ret_table, unsigned *ret_count)
{
    if (module == NVTX_MODULE_CORE) {
        *ret_table = core_table;
        *ret_count = CORE_SLOTS;
        return 1;
    }
    if (module == NVTX_MODULE_CORE2) {
        *ret_table = core2_table;
        *ret_count = CORE2_SLOTS;
        return 1;
    }
    return 0;
}

static const void *get_export_table(uint32_t id)
{
    static const struct nvtx_callbacks callbacks = {sizeof(callbacks), get_module_table};

    return id == NVTX_EXPORT_CALLBACKS ? &callbacks : NULL;
}

static int push(const char *name)
{
    return ((int (*)(const char *))core[NVTX_CORE_PUSH_A])(name);
}

static int pop(void)
{
    return ((int (*)(void))core[NVTX_CORE_POP])();
}

/* Loads the library into this process; false when it declines. */
static bool inject_from(const char *path)
{
    void *library;
    int (*initialize)(nvtx_get_export_table);

    for (int i = 0; i < CORE_SLOTS; i++) {
        core_table[i] = &core[i];
        core2_table[i] = &core2[i];
    }
    library = dlopen(path, RTLD_LAZY);
    if (library == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        _exit(99);
    }
    *(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
    return initialize != NULL && initialize(get_export_table) == 1;
}

static bool inject(void)
{
    return inject_from(lac_job_file("liblacuna.so"));
}

/* ---- what it left */

static void import_ok(void)
{
    struct lac_error error = {0};

    imported = lac_job_import(&error);
    ck_assert_msg(imported != NULL, "%s", error.message);
    ck_assert(lac_model_is_valid(imported));
}

static uint64_t count_named(const char *name)
{
    const uint32_t id = lac_strings_find(&imported->strings, name, strlen(name));
    uint64_t count = 0;

    for (uint64_t i = 0; i < imported->slices.count; i++) {
        count += imported->slices.name[i] == id;
    }
    return id == 0 ? 0 : count;
}

static uint64_t report_count(const char *code)
{
    for (uint32_t i = 0; i < imported->report_count; i++) {
        if (strcmp(imported->report[i].code, code) == 0) {
            return imported->report[i].count;
        }
    }
    return 0;
}

#endif
