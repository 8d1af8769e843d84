#include "analysis/import/stacks/lines.h"

#include "analysis/import/source/source.h"
#include "analysis/model/status.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_BYTES = 1 << 18, TELL_BYTES = 1 << 22 };

void lac_lines_done(struct lac_lines *lines)
{
    free(lines->window);
    lines->window = NULL;
    lines->capacity_bytes = 0;
}

static enum lac_status tell(struct lac_lines *lines, struct lac_error *reterr)
{
    const struct lac_source_budget *const budget = lac_source_get_budget(lines->source);
    if (lines->options->progress == NULL || lines->offset_bytes < lines->next_told) {
        return LAC_OK;
    }
    lines->next_told = lines->offset_bytes + TELL_BYTES;
    return lines->options->progress(lines->options->progress_context, budget->input_bytes,
                                    budget->input_bytes_total, lines->count)
               ? LAC_OK
               : lac_fail(reterr, LAC_ERR_IO, lines->offset_bytes, "canceled");
}

static enum lac_status too_long(const struct lac_lines *lines, struct lac_error *reterr)
{
    return lac_fail(reterr, LAC_ERR_LIMIT, lines->offset_bytes,
                    "a line of more than %u bytes (limit event_bytes_max)",
                    lines->options->limits.event_bytes_max);
}

/* More bytes behind those that are not taken yet. */
static enum lac_status fill(struct lac_lines *lines, struct lac_error *reterr)
{
    const size_t rest = lines->end - lines->begin;
    if (lines->begin > 0) {
        memmove(lines->window, lines->window + lines->begin, rest);
        lines->begin = 0;
        lines->end = rest;
    }
    if (rest > lines->options->limits.event_bytes_max) {
        return too_long(lines, reterr);
    }
    if (rest == lines->capacity_bytes) {
        const size_t more = rest > 0                  ? rest
                            : lines->window_bytes > 0 ? lines->window_bytes
                                                      : (size_t)WINDOW_BYTES;
        if (!LAC_RESERVE(lines->window, lines->capacity_bytes, rest, more)) {
            return lac_fail(reterr, LAC_ERR_NOMEM, lines->offset_bytes, "out of memory");
        }
    }
    size_t size = 0;
    enum lac_status status = tell(lines, reterr);
    if (status == LAC_OK) {
        status = lac_source_read(lines->source, (uint8_t *)lines->window + rest,
                                 lines->capacity_bytes - rest, &size, reterr);
    }
    lines->end += size;
    lines->is_over = size == 0;
    return status;
}

enum lac_status lac_lines_next(struct lac_lines *lines, const char **ret_line, size_t *ret_length,
                               struct lac_error *reterr)
{
    size_t looked_at = 0;
    const char *newline = NULL;
    *ret_line = NULL;
    *ret_length = 0;
    while (newline == NULL && !lines->is_over) {
        const size_t rest = lines->end - lines->begin;
        newline = rest > looked_at
                      ? memchr(lines->window + lines->begin + looked_at, '\n', rest - looked_at)
                      : NULL;
        looked_at = rest;
        const enum lac_status status = newline == NULL ? fill(lines, reterr) : LAC_OK;
        if (status != LAC_OK) {
            return status;
        }
    }
    const size_t taken = newline != NULL ? (size_t)(newline - (lines->window + lines->begin)) + 1
                                         : lines->end - lines->begin;
    if (taken == 0) {
        return LAC_OK;
    }
    if (taken > lines->options->limits.event_bytes_max) {
        return too_long(lines, reterr);
    }
    *ret_line = lines->window + lines->begin;
    *ret_length = taken - (newline != NULL ? 1 : 0);
    *ret_length -= *ret_length > 0 && (*ret_line)[*ret_length - 1] == '\r' ? 1 : 0;
    lines->begin += taken;
    lines->offset_bytes += taken;
    lines->count++;
    return LAC_OK;
}
