#include "analysis/import/chrome/json_window.h"

#include "analysis/import/source/source.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum lac_status lac_json_window_init(struct lac_json_window *window, struct lac_source *source,
                                     size_t capacity_bytes, size_t pending_bytes_max,
                                     struct lac_error *reterr)
{
    *window = (struct lac_json_window){.source = source, .pending_bytes_max = pending_bytes_max};
    window->bytes = malloc(capacity_bytes + LAC_JSON_PAD);
    if (window->bytes == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    memset(window->bytes, 0, LAC_JSON_PAD);
    window->capacity_bytes = capacity_bytes;
    window->at = window->end = window->bytes;
    return LAC_OK;
}

void lac_json_window_done(struct lac_json_window *window)
{
    free(window->bytes);
    *window = (struct lac_json_window){0};
}

static enum lac_status grow(struct lac_json_window *window, size_t pending,
                            struct lac_error *reterr)
{
    size_t capacity = window->capacity_bytes * 2;
    uint8_t *bytes = malloc(capacity + LAC_JSON_PAD);
    if (bytes == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    memcpy(bytes, window->at, pending);
    window->base_bytes += (uint64_t)(window->at - window->bytes);
    free(window->bytes);
    window->bytes = bytes;
    window->capacity_bytes = capacity;
    window->at = bytes;
    return LAC_OK;
}

enum lac_status lac_json_window_more(struct lac_json_window *window, struct lac_error *reterr)
{
    size_t pending = (size_t)(window->end - window->at);
    if (window->ended) {
        return LAC_OK;
    }
    if (pending >= window->pending_bytes_max) {
        return lac_fail(reterr, LAC_ERR_LIMIT, lac_json_window_offset(window, window->at),
                        "an event or value of more than %zu bytes begins at byte %llu (limit "
                        "event_bytes_max)",
                        window->pending_bytes_max,
                        (unsigned long long)lac_json_window_offset(window, window->at));
    }
    if (pending > window->capacity_bytes / 2) {
        enum lac_status status = grow(window, pending, reterr);
        if (status != LAC_OK) {
            return status;
        }
    } else if (window->at > window->bytes) {
        window->base_bytes += (uint64_t)(window->at - window->bytes);
        memmove(window->bytes, window->at, pending);
        window->at = window->bytes;
    }
    size_t size = pending;
    while (size < 2 * pending + 1 && size < window->capacity_bytes && !window->ended) {
        size_t got = 0;
        enum lac_status status = lac_source_read(window->source, window->bytes + size,
                                                 window->capacity_bytes - size, &got, reterr);
        if (status != LAC_OK) {
            window->end = window->bytes + size;
            return status;
        }
        if (got == 0) {
            window->ended = true;
        }
        size += got;
    }
    window->end = window->bytes + size;
    memset(window->bytes + size, 0, LAC_JSON_PAD);
    return LAC_OK;
}
