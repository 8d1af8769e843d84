/* What an upload says of itself (tus Upload-Metadata): refused with a sentence, or clean text. */

#include "server/ingest/upload_metadata.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_clean(const char *text)
{
    require(strlen(text) <= LAC_METADATA_VALUE_MAX);
    for (; *text != '\0'; text++) {
        require((unsigned char)*text >= 0x20 && *text != 0x7f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lac_upload_metadata metadata;
    struct lac_error error = {0};
    char *text = malloc(size + 1);
    enum lac_status status;

    require(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    status = lac_upload_metadata_parse(text, &metadata, &error);
    if (status == LAC_OK) {
        require_clean(metadata.name);
        require_clean(metadata.project);
        require_clean(metadata.run);
    } else {
        require(error.status == status && error.message[0] != '\0');
    }
    free(text);
    return 0;
}
