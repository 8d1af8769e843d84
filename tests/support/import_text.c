#include "tests/support/import_text.h"

#include "analysis/model/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum lac_status keep(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct imported *imported = context;
    if (imported->count == IMPORTED_MAX) {
        lac_model_destroy(model);
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "the test keeps no more models");
    }
    imported->models[imported->count++] = model;
    return LAC_OK;
}

struct imported import_tuned(const void *bytes, size_t size_bytes,
                             const struct lac_import_limits *limits, size_t window_bytes,
                             size_t feed_bytes, bool force_scalar)
{
    struct imported imported = {0};
    struct lac_import_options options = {.force_scalar = force_scalar, .name = "test"};
    const struct lac_import_tuning tuning = {window_bytes, feed_bytes};
    lac_import_limits_default(&options.limits);
    if (limits != NULL)
        options.limits = *limits;
    imported.status = lac_import_bytes_tuned(bytes, size_bytes, &options, &tuning, keep, &imported,
                                             &imported.error);
    return imported;
}

struct imported import_sized(const void *bytes, size_t size_bytes)
{
    return import_tuned(bytes, size_bytes, NULL, 0, 0, false);
}

struct imported import_text(const char *text)
{
    return import_sized(text, strlen(text));
}

struct imported import_path(const char *path)
{
    struct imported imported = {0};
    struct lac_import_options options = {0};
    lac_import_limits_default(&options.limits);
    imported.status = lac_import_file(path, &options, keep, &imported, &imported.error);
    return imported;
}

void imported_done(struct imported *imported)
{
    for (size_t i = 0; i < imported->count; i++)
        lac_model_destroy(imported->models[i]);
    imported->count = 0;
}

uint64_t report_count(const struct lac_model *model, const char *code)
{
    for (uint32_t i = 0; i < model->report_count; i++)
        if (strcmp(model->report[i].code, code) == 0)
            return model->report[i].count;
    return 0;
}

uint64_t find_slice(const struct lac_model *model, const char *name)
{
    uint32_t id = lac_strings_find(&model->strings, name, strlen(name));
    for (uint64_t i = 0; i < model->slices.count; i++)
        if (model->slices.name[i] == id)
            return i;
    return UINT64_MAX;
}

uint32_t find_track(const struct lac_model *model, enum lac_track_kind kind, const char *id)
{
    for (uint32_t i = 0; i < model->track_count; i++)
        if (model->tracks[i].kind == kind &&
            strcmp(lac_model_str(model, model->tracks[i].id_text), id) == 0)
            return i;
    return LAC_NONE;
}

const char *args_of(const struct lac_model *model, uint64_t slice)
{
    static char text[65536];
    lac_args_format(model, slice, text, sizeof(text));
    return text;
}

unsigned char *read_whole(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    unsigned char *bytes = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file);
        rewind(file);
        bytes = size >= 0 ? malloc((size_t)size + 1) : NULL;
        if (bytes != NULL) {
            *ret_size = fread(bytes, 1, (size_t)size, file);
            bytes[*ret_size] = 0;
        }
    }
    fclose(file);
    return bytes;
}
