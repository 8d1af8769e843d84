#include "analysis/import/profilers/profile_document.h"

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/model/status.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>

enum { READ_BYTES = 256 << 10 };

enum lac_status lac_document_read(struct lac_source *source,
                                  const struct lac_import_options *options, uint8_t **ret_bytes,
                                  size_t *ret_size, struct lac_error *reterr)
{
    uint8_t *bytes = NULL;
    uint64_t capacity = 0;
    size_t size = 0;
    size_t got = 1;
    enum lac_status status = LAC_OK;
    (void)options;
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
