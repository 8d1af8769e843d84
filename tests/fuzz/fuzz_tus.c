/*
 * The header fields of a tus request: any texts. Refused with a sentence and a status that is
 * documented, or an upload whose numbers, checksum and metadata are what the fields say.
 *
 * The input is lines "x text", x being the letter of a field. The mutator knows the fields and
 * texts that almost fit.
 */
#include "collector/base/count_of.h"
#include "collector/base/encode.h"
#include "server/api/tus_request.h"
#include "server/ingest/upload_metadata.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);

/* Each field in memory of its own, so that a byte too far is seen. */
static void read_fields(const uint8_t *data, size_t size, struct lac_tus_fields *fields,
                        char *owned[8])
{
    static const char letters[] = "vldomckt";
    const char **const places[] = {&fields->version, &fields->length,      &fields->defer_length,
                                   &fields->offset,  &fields->metadata,    &fields->checksum,
                                   &fields->concat,  &fields->content_type};

    for (const uint8_t *line = data, *end = data + size; line < end;) {
        const uint8_t *const stop = memchr(line, '\n', (size_t)(end - line));
        const size_t length = (size_t)((stop == NULL ? end : stop) - line);
        const char *const letter = line[0] != '\0' ? strchr(letters, line[0]) : NULL;

        if (length >= 2 && letter != NULL && memchr(line, '\0', length) == NULL) {
            const size_t index = (size_t)(letter - letters);

            free(owned[index]);
            owned[index] = strndup((const char *)line + 2, length - 2);
            require(owned[index] != NULL);
            *places[index] = owned[index];
        } else if (length >= 1 && line[0] == 'n') {
            fields->content_length = length == 1 ? UINT64_MAX : length - 2;
        }
        line += length + 1;
    }
}

static void check_number(const char *text, uint64_t value)
{
    const char *const digits = text == NULL ? "" : text + strspn(text, "0");
    char again[24];

    (void)snprintf(again, sizeof(again), "%llu", (unsigned long long)value);
    require(strcmp(digits[0] == '\0' ? "0" : digits, again) == 0);
}

static void check_upload(const struct lac_tus_fields *fields,
                         const struct lac_upload_request *upload)
{
    uint8_t expected[32];

    require(strcmp(fields->version, "1.0.0") == 0);
    require(upload->size_bytes == fields->content_length);
    check_number(fields->length, upload->length_bytes);
    require((upload->checksum == LAC_CHECKSUM_NONE) == (fields->checksum == NULL));
    if (fields->checksum != NULL) {
        const char *const code = strchr(fields->checksum, ' ') + 1;
        const int size = upload->checksum == LAC_CHECKSUM_SHA1 ? 20 : 32;

        require(lac_base64_decode(code, strlen(code), expected, sizeof(expected)) == size);
        require(memcmp(expected, upload->expected, (size_t)size) == 0);
    }
}

static void check_refusal(const struct lac_tus_refusal *refusal)
{
    require(refusal->http_status == 400 || refusal->http_status == 412 ||
            refusal->http_status == 415);
    require(refusal->code != NULL && refusal->message[0] != '\0');
    require(memchr(refusal->message, '\0', sizeof(refusal->message)) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char id[] = "an upload";
    struct lac_tus_fields fields = {0};
    struct lac_tus_refusal refusal;
    struct lac_upload_request upload;
    struct lac_upload_metadata metadata;
    char *owned[8] = {NULL};

    memset(&refusal, 0x5a, sizeof(refusal));
    read_fields(data, size, &fields, owned);
    if (lac_tus_read_create(&fields, &upload, &refusal)) {
        check_upload(&fields, &upload);
        require(upload.id == NULL && upload.metadata == fields.metadata && fields.concat == NULL);
        require((upload.length_bytes == 0) == (fields.defer_length != NULL));
        require(lac_upload_metadata_parse(upload.metadata, &metadata, NULL) == LAC_OK);
    } else {
        check_refusal(&refusal);
    }
    memset(&refusal, 0x5a, sizeof(refusal));
    if (lac_tus_read_append(&fields, id, &upload, &refusal)) {
        check_upload(&fields, &upload);
        require(upload.id == id && upload.metadata == NULL && fields.offset != NULL);
        check_number(fields.offset, upload.offset_bytes);
    } else {
        check_refusal(&refusal);
    }
    for (size_t i = 0; i < 8; i++) {
        free(owned[i]);
    }
    return 0;
}

/* -- mutator ----------------------------------------------------------------------------------- */

static const char *const lines[] = {
    "v 1.0.0\n",
    "v 1.0.1\n",
    "l 5\n",
    "l 0\n",
    "l 18446744073709551615\n",
    "l 18446744073709551616\n",
    "l -1\n",
    "d 1\n",
    "d 2\n",
    "o 0\n",
    "o 00012\n",
    "o +1\n",
    "m name dHJhY2U=\n",
    "m filename dHJhY2UuanNvbi5neg==,project cA==\n",
    "m name dHJhY2U=,name dHJhY2U=\n",
    "m clock_offset_ns LTU=,clock_error_ns MQ==\n",
    "m reuse MQ==, run cnVu\n",
    "m name ////\n",
    "c sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk=\n",
    "c sha256 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n",
    "c sha256 2jmj7l5rSw0yVb/vlWAYkK/YBwk=\n",
    "c sha1\n",
    "c md5 1B2M2Y8AsgTpgAmY7PhCfg==\n",
    "k partial\n",
    "t application/offset+octet-stream\n",
    "t text/plain\n",
    "n\n",
    "n xxxxx\n",
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
    const char *const line = lines[(seed >> 4) % (LAC_COUNT_OF(lines))];
    const size_t length = strlen(line);

    if (seed % 4 != 0 || length > size_max - size) {
        return LLVMFuzzerMutate(data, size, size_max);
    }
    /* the last of a kind counts: in front it fills a gap, behind it replaces */
    if (seed % 8 == 0) {
        memmove(data + length, data, size);
        memcpy(data, line, length);
    } else {
        if (size > 0 && size + length < size_max && data[size - 1] != '\n') {
            data[size++] = '\n';
        }
        memcpy(data + size, line, length);
    }
    return size + length;
}
