#ifndef LAC_SERVER_API_TUS_REQUEST_H
#define LAC_SERVER_API_TUS_REQUEST_H

/*
 * What the header fields of a tus request say (tus 1.0.0: version, length, offset, metadata,
 * checksum). Hostile text; fuzzed (tests/fuzz/fuzz_tus.c). Nothing here allocates or touches an
 * upload.
 */

#include "server/ingest/resumable.h"

#include <stdbool.h>
#include <stdint.h>

/** As they came; NULL when absent. */
struct lac_tus_fields {
    const char *version;      /**< Tus-Resumable */
    const char *length;       /**< Upload-Length */
    const char *defer_length; /**< Upload-Defer-Length */
    const char *offset;       /**< Upload-Offset */
    const char *metadata;     /**< Upload-Metadata */
    const char *checksum;     /**< Upload-Checksum */
    const char *concat;       /**< Upload-Concat */
    const char *content_type;
    uint64_t content_length; /**< UINT64_MAX: unknown */
};

/** Why a request is not understood. */
struct lac_tus_refusal {
    unsigned http_status; /**< 400, 412 or 415 */
    const char *code;     /**< static */
    char message[200];
};

/** Whether the version is the one that is spoken. @param is_required without: absent is fine */
LAC_MUST_USE bool lac_tus_version_is_ours(const char *version, bool is_required,
                                          struct lac_tus_refusal *ret_refusal);

/**
 * A request that begins an upload.
 *
 * @param ret_upload its metadata is checked, and borrowed
 * @return false: ret_refusal says why
 */
LAC_MUST_USE bool lac_tus_read_create(const struct lac_tus_fields *fields,
                                      struct lac_upload_request *ret_upload,
                                      struct lac_tus_refusal *ret_refusal);

/** A request that appends to upload `id`, which is borrowed. */
LAC_MUST_USE bool lac_tus_read_append(const struct lac_tus_fields *fields, const char *id,
                                      struct lac_upload_request *ret_upload,
                                      struct lac_tus_refusal *ret_refusal);

#endif
