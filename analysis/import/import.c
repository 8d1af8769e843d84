/* Opening an input: undo compression and tar by content, hand each trace to its importer. */

#include "analysis/import/import.h"

#include "analysis/import/chrome/chrome.h"
#include "analysis/import/import_join.h"
#include "analysis/import/import_private.h"
#include "analysis/import/importers.h"
#include "analysis/import/join/join_models.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/spool/spool_archive.h"
#include "analysis/import/spool/spool_import.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "lacuna/spool.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS_MAX = 3 };

struct import {
    const struct lac_import_options *options;
    lac_import_sink sink;
    void *context;
    struct lac_error *reterr;
    struct lac_source_budget budget;
    size_t window_bytes;
    uint32_t trace_count;
    uint32_t skipped_count;
    char skipped[112]; /**< the first member that was skipped, and why */
    struct lac_spool_archive spools;
    struct lac_model *held; /**< the last model of a tar: waits for what is reported after it */
};

/* --- giving models away ----------------------------------------------------------------------- */

static enum lac_status give_held(struct import *import)
{
    struct lac_model *model = import->held;
    if (model == NULL) {
        return LAC_OK;
    }
    import->held = NULL;
    if (import->skipped_count) {
        char text[160];
        (void)snprintf(text, sizeof(text), "Members of the archive that are not traces: %s",
                       import->skipped);
        lac_model_report(model, LAC_REPORT_INFO, "member_skipped", import->skipped_count, 0, text);
    }
    return import->sink(import->context, model, import->reterr);
}

static enum lac_status import_trace(struct import *import, struct lac_source *source,
                                    const char *name, const struct lac_stream_importer *importer)
{
    struct lac_model *model = NULL;
    enum lac_status status = importer->import(source, import->options, import->window_bytes, name,
                                              &model, import->reterr);
    if (status != LAC_OK) {
        return status;
    }
    const struct lac_source_budget *budget = &import->budget;
    model->info.input_bytes =
        budget->input_bytes_total ? budget->input_bytes_total : budget->input_bytes;
    status = give_held(import);
    if (status != LAC_OK) {
        lac_model_destroy(model);
        return status;
    }
    import->held = model;
    import->trace_count++;
    return LAC_OK;
}

/* All spools together are one trace. */
static enum lac_status open_spools(struct import *import)
{
    import->trace_count += import->spools.space == NULL ? 1 : 0;
    return lac_spool_archive_open(&import->spools, import->options->temporary_dir, import->reterr);
}

/* A spool is a part of a trace: it waits until all of them are here. */
static enum lac_status take_spool(struct import *import, struct lac_source *source)
{
    enum lac_status status = open_spools(import);
    return status == LAC_OK ? lac_spool_archive_add(&import->spools, source, import->reterr)
                            : status;
}

/* The same, from a job that was still running when they were sent. */
static enum lac_status take_bundle(struct import *import, struct lac_source *source)
{
    enum lac_status status = open_spools(import);
    return status == LAC_OK ? lac_spool_archive_add_bundle(&import->spools, source, import->reterr)
                            : status;
}

static enum lac_status hold_spools(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct import *import = context;
    enum lac_status status = give_held(import); /* another rank of the same job */
    (void)reterr;
    if (status != LAC_OK) {
        lac_model_destroy(model);
        return status;
    }
    model->info.input_bytes = import->budget.input_bytes;
    if (import->spools.is_cut) {
        lac_model_report(model, LAC_REPORT_REPAIRED, "input_damaged", 1, 0,
                         "the recording ends early: it was still being sent");
    }
    import->held = model;
    return LAC_OK;
}

static enum lac_status import_spools(struct import *import, const char *name)
{
    if (!lac_spool_archive_has_spools(&import->spools)) {
        return LAC_OK;
    }
    struct lac_import_options named = *import->options;
    named.name = name;
    enum lac_status status = give_held(import);
    return status == LAC_OK ? lac_spool_import_space(import->spools.space, &import->budget, &named,
                                                     hold_spools, import, import->reterr)
                            : status;
}

/* --- layers ------------------------------------------------------------------------------------*/

static enum lac_status import_layers(struct import *import, struct lac_source *source,
                                     const char *name, uint32_t depth);

static void note_skipped(struct import *import, const char *name, const char *why)
{
    if (import->skipped_count++ == 0) {
        char clean[64];
        lac_import_name(name, clean, sizeof(clean));
        (void)snprintf(import->skipped, sizeof(import->skipped), "%.40s (%.65s)", clean, why);
    }
}

static enum lac_status import_spools(struct import *import, const char *name);

/* One file of a join: all that it holds, with its own errors. */
static enum lac_status import_joined(struct import *import, struct lac_join_list *list,
                                     struct lac_source *source, uint32_t depth)
{
    struct lac_error error = {0}, *reterr = import->reterr;
    char name[512];
    if (list->at >= list->count) {
        return LAC_OK; /* behind what the list names */
    }
    lac_import_name(list->entries[list->at].name, name, sizeof(name));
    list->given = 0;
    import->reterr = &error;
    enum lac_status status = import_layers(import, source, name, depth + 1);
    if (status == LAC_OK) {
        status = import_spools(import, name);
    }
    if (status == LAC_OK) {
        status = give_held(import);
    }
    import->reterr = reterr;
    lac_spool_archive_done(&import->spools);
    import->spools = (struct lac_spool_archive){0};
    if (status != LAC_OK) {
        char clean[64];
        lac_import_name(list->entries[list->at].name, clean, sizeof(clean));
        return lac_fail(reterr, status, error.offset_bytes, "%.40s: %.180s", clean, error.message);
    }
    if (list->given == 0) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "%.60s holds no trace", name);
    }
    list->at++;
    return LAC_OK;
}

/* The tar of a join, behind its list: all of its files are one trace. */
static enum lac_status import_join(struct import *import, struct lac_source *tar, char *member,
                                   uint32_t depth)
{
    struct lac_join_list list = {0};
    const lac_import_sink sink = import->sink;
    void *context = import->context;
    bool found = true;
    struct lac_model *model = NULL;
    enum lac_status status = lac_join_list_read(tar, &list, import->reterr);
    if (status == LAC_OK) {
        status = give_held(import);
    }
    import->sink = lac_join_list_take;
    import->context = &list;
    while (status == LAC_OK && list.at < list.count && found) {
        status = lac_tar_next(tar, member, &found, import->reterr);
        if (status == LAC_OK && found) {
            status = import_joined(import, &list, tar, depth);
        }
    }
    import->sink = sink;
    import->context = context;
    if (status == LAC_OK && list.at < list.count) {
        status =
            lac_fail(import->reterr, LAC_ERR_CORRUPT, 0,
                     "the archive of joined files ends before %.100s", list.entries[list.at].name);
    }
    if (status == LAC_OK) {
        status = lac_join_models(list.members, list.count, &model, import->reterr);
    }
    if (status == LAC_OK) {
        model->info.input_bytes = import->budget.input_bytes;
        import->held = model;
        import->trace_count++;
    }
    lac_join_list_done(&list);
    return status;
}

/* Whether the tar's current member is the list of a join. */
static enum lac_status is_join(struct lac_source *tar, bool *ret_is_join, struct lac_error *reterr)
{
    const uint8_t *head = NULL;
    size_t size = 0;
    enum lac_status status = lac_source_peek(tar, 16, &head, &size, reterr);
    *ret_is_join = status == LAC_OK && lac_join_is_list(head, size);
    return status;
}

static enum lac_status import_members(struct import *import, struct lac_source *tar, uint32_t depth)
{
    char *member = malloc(LAC_TAR_NAME_MAX);
    if (member == NULL) {
        return lac_fail(import->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    uint32_t count = 0;
    bool found = true;
    enum lac_status status = LAC_OK;
    struct lac_error error = {0}, *reterr = import->reterr;
    while (status == LAC_OK) {
        bool whole = lac_source_damage(tar) == NULL;
        status = lac_tar_next(tar, member, &found, reterr);
        if (status == LAC_OK && whole && lac_source_damage(tar) != NULL && import->held != NULL) {
            lac_model_report(import->held, LAC_REPORT_REPAIRED, "input_damaged", 1, 0,
                             lac_source_damage(tar));
        }
        if (status != LAC_OK || !found) {
            break;
        }
        if (++count > import->options->limits.member_count_max) {
            status = lac_fail(reterr, LAC_ERR_LIMIT, 0,
                              "more than %u members in the archive (limit member_count_max)",
                              import->options->limits.member_count_max);
            break;
        }
        bool joins = false;
        status = count == 1 ? is_join(tar, &joins, reterr) : LAC_OK;
        if (status != LAC_OK || joins) {
            status = status == LAC_OK ? import_join(import, tar, member, depth) : status;
            break;
        }
        char name[512];
        lac_import_name(member, name, sizeof(name));
        import->reterr = &error;
        status = import_layers(import, tar, name, depth + 1);
        import->reterr = reterr;
        if (status == LAC_ERR_CORRUPT) {
            note_skipped(import, member, error.message);
            status = LAC_OK;
        } else if (status != LAC_OK && reterr != NULL) {
            *reterr = error;
        }
    }
    if (status == LAC_OK && import->trace_count == 0) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "no member of the archive is a trace%s%s",
                          import->skipped_count ? "; first: " : "", import->skipped);
    }
    free(member);
    return status;
}

static enum lac_status import_layers(struct import *import, struct lac_source *source,
                                     const char *name, uint32_t depth)
{
    enum lac_source_kind kind = LAC_SOURCE_PLAIN;
    enum lac_status status = lac_source_detect(source, &kind, import->reterr);
    if (status != LAC_OK) {
        return status;
    }
    if (kind == LAC_SOURCE_PLAIN) {
        const uint8_t *head = NULL;
        size_t size = 0;
        status = lac_source_peek(source, LAC_IMPORT_HEAD_BYTES, &head, &size, import->reterr);
        if (status == LAC_OK && lac_spool_archive_is_spool(head, size)) {
            return take_spool(import, source);
        }
        if (status == LAC_OK && lac_spool_archive_is_bundle(head, size)) {
            return take_bundle(import, source);
        }
        if (status == LAC_OK && lac_spool_archive_has_spools(&import->spools) &&
            strncmp(name, LAC_SPOOL_PROFILER, strlen(LAC_SPOOL_PROFILER)) == 0) {
            return take_spool(import, source);
        }
        return status == LAC_OK
                   ? import_trace(import, source, name, lac_stream_importer_of(head, size))
                   : status;
    }
    if (depth > LAYERS_MAX || (kind == LAC_SOURCE_TAR && depth > 1 + LAYERS_MAX / 2)) {
        return lac_fail(import->reterr, LAC_ERR_LIMIT, 0,
                        "more than %u layers of compression and archives", LAYERS_MAX);
    }
    struct lac_source *layer = NULL;
    if (kind == LAC_SOURCE_GZIP) {
        status = lac_source_open_gzip(source, &layer, import->reterr);
    } else if (kind == LAC_SOURCE_ZSTD) {
        status = lac_source_open_zstd(source, &layer, import->reterr);
    } else {
        status = lac_source_open_tar(source, &layer, import->reterr);
    }
    if (status != LAC_OK) {
        return status;
    }
    if (kind == LAC_SOURCE_TAR) {
        status = import_members(import, layer, depth);
    } else {
        status = import_layers(import, layer, name, depth + 1);
    }
    lac_source_destroy(layer);
    return status;
}

static enum lac_status run(struct import *import, struct lac_source *source, const char *path)
{
    char name[512];
    lac_import_name(import->options->name != NULL ? import->options->name : path, name,
                    sizeof(name));
    enum lac_status status = import_layers(import, source, name, 0);
    if (status == LAC_OK) {
        status = import_spools(import, name);
    }
    if (status == LAC_OK) {
        status = give_held(import);
    }
    lac_spool_archive_done(&import->spools);
    lac_model_destroy(import->held);
    lac_source_destroy(source);
    return status;
}

static void prepare(struct import *import, const struct lac_import_options *options,
                    lac_import_sink sink, void *context, struct lac_error *reterr)
{
    *import = (struct import){
        .options = options,
        .sink = sink,
        .context = context,
        .reterr = reterr,
        .window_bytes = LAC_CHROME_WINDOW_BYTES,
    };
    import->budget.expanded_bytes_max = options->limits.expanded_bytes_max;
    import->budget.expansion_ratio_max = options->limits.expansion_ratio_max;
}

enum lac_status lac_import_file(const char *path, const struct lac_import_options *options,
                                lac_import_sink sink, void *context, struct lac_error *reterr)
{
    assert(path != NULL && options != NULL);
    assert(sink != NULL);
    struct import import;
    struct lac_source *source = NULL;
    const struct lac_path_importer *importer = lac_path_importer_of(path);
    if (importer != NULL) {
        return importer->import(path, options, sink, context, reterr);
    }
    prepare(&import, options, sink, context, reterr);
    enum lac_status status = lac_source_open_file(path, &import.budget, &source, reterr);
    return status == LAC_OK ? run(&import, source, path) : status;
}

enum lac_status lac_import_bytes_tuned(const uint8_t *bytes, size_t size_bytes,
                                       const struct lac_import_options *options,
                                       const struct lac_import_tuning *tuning, lac_import_sink sink,
                                       void *context, struct lac_error *reterr)
{
    struct import import;
    struct lac_source *source = NULL;
    prepare(&import, options, sink, context, reterr);
    if (tuning->window_bytes) {
        import.window_bytes = tuning->window_bytes;
    }
    enum lac_status status = lac_source_open_memory(bytes, size_bytes, tuning->feed_bytes,
                                                    &import.budget, &source, reterr);
    return status == LAC_OK ? run(&import, source, "trace") : status;
}

enum lac_status lac_import_bytes(const uint8_t *bytes, size_t size_bytes,
                                 const struct lac_import_options *options, lac_import_sink sink,
                                 void *context, struct lac_error *reterr)
{
    const struct lac_import_tuning tuning = {0};
    return lac_import_bytes_tuned(bytes, size_bytes, options, &tuning, sink, context, reterr);
}
