#include "analysis/import/profilers/profile_document.h"

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/import/text/json_plain.h"
#include "analysis/import/text/marshal.h"
#include "analysis/import/text/pickle.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/reserve.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_BYTES = 256 << 10, FRAME_TEXT_BYTES = 4096 };

/* Values that are looked at for each byte of a document, where lists are shared. */
enum { VISITS_A_BYTE = 64, VISITS_MIN = 1 << 16 };

#define VISITS_MAX ((uint64_t)1 << 27)

static enum lac_status read_all(struct lac_source *source, uint8_t **ret_bytes, size_t *ret_size,
                                struct lac_error *reterr)
{
    uint8_t *bytes = NULL;
    uint64_t capacity = 0;
    size_t size = 0;
    size_t got = 1;
    enum lac_status status = LAC_OK;
    while (status == LAC_OK && got > 0) {
        if (!LAC_RESERVE(bytes, capacity, size, READ_BYTES)) {
            status = lac_fail(reterr, LAC_ERR_NOMEM, size, "no memory for the profile");
            break;
        }
        status = lac_source_read(source, bytes + size, READ_BYTES, &got, reterr);
        size += status == LAC_OK ? got : 0;
        if (status == LAC_OK && size > LAC_DOCUMENT_BYTES_MAX) {
            status = lac_fail(reterr, LAC_ERR_LIMIT, size,
                              "a profile of more than %zu MB in one document",
                              LAC_DOCUMENT_BYTES_MAX >> 20);
        }
    }
    if (status != LAC_OK) {
        free(bytes);
        return status;
    }
    *ret_bytes = bytes;
    *ret_size = size;
    return LAC_OK;
}

enum lac_status lac_document_open(struct lac_profile_file *document, struct lac_source *source,
                                  const struct lac_import_options *options, size_t window_bytes,
                                  const char *name, enum lac_document_form form,
                                  struct lac_error *reterr)
{
    *document = (struct lac_profile_file){.source = source,
                                          .options = options,
                                          .window_bytes = window_bytes,
                                          .name = name,
                                          .reterr = reterr};
    enum lac_status status = read_all(source, &document->bytes, &document->size, reterr);
    if (status != LAC_OK) {
        return status;
    }
    lac_plain_limits_default(&document->heap.limits);
    switch (form) {
    case LAC_DOCUMENT_PICKLE:
        return lac_pickle_read(document->bytes, document->size, &document->heap, &document->root,
                               NULL, reterr);
    case LAC_DOCUMENT_MARSHAL:
        return lac_marshal_read(document->bytes, document->size, &document->heap, &document->root,
                                reterr);
    case LAC_DOCUMENT_JSON:
        break;
    }
    return lac_json_plain_read(document->bytes, document->size, &document->heap, &document->root,
                               reterr);
}

enum lac_status lac_document_begin(struct lac_profile_file *document, enum lac_trace_format format)
{
    const enum lac_status status =
        lac_profile_open(&document->profile, document->source, document->options,
                         document->window_bytes, document->name, format, document->reterr);
    document->profile.lines.offset_bytes = document->size;
    return status;
}

enum lac_status lac_document_end(struct lac_profile_file *document, enum lac_status status,
                                 const char *what, const char *unit, struct lac_model **ret_model)
{
    status = lac_profile_failed(&document->profile, status);
    return lac_profile_close(&document->profile, status, what, unit, 0, ret_model);
}

enum lac_status lac_document_end_timed(struct lac_profile_file *document, enum lac_status status,
                                       struct lac_model **ret_model)
{
    struct lac_profile *const profile = &document->profile;
    if (status == LAC_OK) {
        profile->model->info.expanded_bytes = document->size;
        status = lac_builder_finish(profile->builder, 0, ret_model);
        profile->builder = status == LAC_OK ? NULL : profile->builder;
    }
    status = lac_profile_failed(profile, status);
    lac_stacks_close(profile->stacks);
    lac_builder_destroy(profile->builder);
    return status;
}

void lac_document_close(struct lac_profile_file *document)
{
    lac_plain_done(&document->heap);
    free(document->bytes);
}

bool lac_document_visit(struct lac_profile_file *document, uint64_t count)
{
    const uint64_t by_size = document->size * VISITS_A_BYTE + VISITS_MIN;
    const uint64_t most = by_size < VISITS_MAX ? by_size : VISITS_MAX;
    if (count > most - document->visits) {
        return false; /* uncounted: who leaves such a value out goes on with the next */
    }
    document->visits += count;
    return true;
}

void lac_document_drop(const struct lac_profile_file *document, const char *code, const char *what)
{
    lac_model_report(document->profile.model, LAC_REPORT_DROPPED, code, 1, 0, what);
}

enum lac_status lac_document_frame(const struct lac_profile_file *document,
                                   const struct lac_plain *name, const struct lac_plain *file,
                                   int64_t line, uint32_t *ret_name)
{
    char text[FRAME_TEXT_BYTES];
    const bool has_name = lac_plain_is(name, LAC_PLAIN_TEXT) && name->count > 0;
    const char *const title = has_name ? name->text : "?";
    const int title_bytes = !has_name ? 1 : name->count < 2048 ? (int)name->count : 2048;
    if (!lac_plain_is(file, LAC_PLAIN_TEXT) || file->count == 0) {
        return lac_stacks_name(document->profile.stacks, title, (size_t)title_bytes, ret_name);
    }
    const char *base = file->text;
    const char *const end = file->text + file->count;
    for (const char *at = base; at < end; at++) {
        base = (*at == '/' || *at == '\\') && at + 1 < end ? at + 1 : base;
    }
    const int base_bytes = end - base < 1024 ? (int)(end - base) : 1024;
    const int length = line > 0 ? snprintf(text, sizeof(text), "%.*s (%.*s:%lld)", title_bytes,
                                           title, base_bytes, base, (long long)line)
                                : snprintf(text, sizeof(text), "%.*s (%.*s)", title_bytes, title,
                                           base_bytes, base);
    return lac_stacks_name(document->profile.stacks, text, length > 0 ? (size_t)length : 0,
                           ret_name);
}

bool lac_document_has(const uint8_t *head, size_t size_bytes, const char *text)
{
    return memmem(head, size_bytes, text, strlen(text)) != NULL;
}
