#include "server/api/tus_request.h"

#include "analysis/model/status.h"
#include "collector/base/encode.h"
#include "collector/base/sha.h"
#include "server/http/query.h"
#include "server/ingest/resumable.h"
#include "server/ingest/upload_metadata.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool refuse(struct lac_tus_refusal *refusal, unsigned http_status, const char *code,
                   const char *message)
{
    refusal->http_status = http_status;
    refusal->code = code;
    (void)snprintf(refusal->message, sizeof(refusal->message), "%s", message);
    return false;
}

static bool refuse_request(struct lac_tus_refusal *refusal, const char *message)
{
    return refuse(refusal, 400, "bad_request", message);
}

bool lac_tus_version_is_ours(const char *version, bool is_required,
                             struct lac_tus_refusal *ret_refusal)
{
    if (version != NULL ? strcmp(version, "1.0.0") == 0 : !is_required) {
        return true;
    }
    return refuse(ret_refusal, 412, "tus_version",
                  "send Tus-Resumable: 1.0.0, the only supported version");
}

/* "sha256 base64" */
static bool read_checksum(const char *text, struct lac_upload_request *upload,
                          struct lac_tus_refusal *refusal)
{
    const char *const space = text != NULL ? strchr(text, ' ') : NULL;
    int size = 0;

    if (text == NULL) {
        return true;
    }
    if (strncmp(text, "sha256 ", 7) == 0) {
        upload->checksum = LAC_CHECKSUM_SHA256;
        size = LAC_SHA256_SIZE;
    } else if (strncmp(text, "sha1 ", 5) == 0) {
        upload->checksum = LAC_CHECKSUM_SHA1;
        size = LAC_SHA1_SIZE;
    }
    if (size == 0 || lac_base64_decode(space + 1, strlen(space + 1), upload->expected,
                                       sizeof(upload->expected)) != size) {
        return refuse_request(refusal,
                              "Upload-Checksum must be sha256 or sha1, a blank, and base64");
    }
    return true;
}

static bool body_is_named(const struct lac_tus_fields *fields, struct lac_tus_refusal *refusal)
{
    if (fields->content_type != NULL &&
        strcmp(fields->content_type, "application/offset+octet-stream") == 0) {
        return true;
    }
    return refuse(refusal, 415, "content_type",
                  "the body must be Content-Type: application/offset+octet-stream");
}

static bool read_number(const char *text, const char *name, uint64_t *ret_value,
                        struct lac_tus_refusal *refusal)
{
    if (text != NULL && lac_parse_uint(text, ret_value)) {
        return true;
    }
    (void)refuse_request(refusal, "");
    (void)snprintf(refusal->message, sizeof(refusal->message), "%s is missing or not a number",
                   name);
    return false;
}

/* "Upload-Length: n", or "Upload-Defer-Length: 1": said later. */
static bool read_length(const struct lac_tus_fields *fields, struct lac_upload_request *upload,
                        struct lac_tus_refusal *refusal)
{
    if (fields->defer_length != NULL) {
        return (strcmp(fields->defer_length, "1") == 0 && fields->length == NULL) ||
               refuse_request(refusal, "Upload-Defer-Length must be 1, without Upload-Length");
    }
    return read_number(fields->length, "Upload-Length", &upload->length_bytes, refusal) &&
           (upload->length_bytes > 0 || refuse_request(refusal, "the upload is empty"));
}

bool lac_tus_read_create(const struct lac_tus_fields *fields, struct lac_upload_request *ret_upload,
                         struct lac_tus_refusal *ret_refusal)
{
    struct lac_upload_metadata metadata;
    struct lac_error error = {0};

    *ret_upload = (struct lac_upload_request){.metadata = fields->metadata,
                                              .size_bytes = fields->content_length};
    if (!lac_tus_version_is_ours(fields->version, true, ret_refusal)) {
        return false;
    }
    if (fields->concat != NULL) {
        return refuse_request(ret_refusal,
                              "Upload-Concat is not supported: send one upload per file");
    }
    if (!read_length(fields, ret_upload, ret_refusal) ||
        (fields->content_length > 0 && !body_is_named(fields, ret_refusal)) ||
        !read_checksum(fields->checksum, ret_upload, ret_refusal)) {
        return false;
    }
    return lac_upload_metadata_parse(fields->metadata, &metadata, &error) == LAC_OK ||
           refuse_request(ret_refusal, error.message);
}

bool lac_tus_read_append(const struct lac_tus_fields *fields, const char *id,
                         struct lac_upload_request *ret_upload, struct lac_tus_refusal *ret_refusal)
{
    *ret_upload = (struct lac_upload_request){.id = id, .size_bytes = fields->content_length};
    return lac_tus_version_is_ours(fields->version, true, ret_refusal) &&
           body_is_named(fields, ret_refusal) &&
           read_number(fields->offset, "Upload-Offset", &ret_upload->offset_bytes, ret_refusal) &&
           (fields->length == NULL ||
            read_number(fields->length, "Upload-Length", &ret_upload->length_bytes, ret_refusal)) &&
           read_checksum(fields->checksum, ret_upload, ret_refusal);
}
