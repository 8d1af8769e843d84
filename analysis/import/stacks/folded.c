/* Folded stacks: "frame;frame;frame 12", one line a stack, weights perhaps with a fraction. */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/lines.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_importers.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/import/text/json_text.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <string.h>

/* Semicolons that the first line must have where the first bytes do not hold all of it. */
enum { SEMICOLONS_MIN = 3 };

/* The weight that a line ends with. @return length of the stack before it; 0: it has none */
static size_t split(const char *line, size_t length, const char **ret_weight, size_t *ret_length)
{
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t')) {
        length--;
    }
    size_t at = length;
    size_t points = 0;
    while (at > 0 && ((line[at - 1] >= '0' && line[at - 1] <= '9') || line[at - 1] == '.')) {
        at--;
        points += line[at] == '.' ? 1 : 0;
    }
    *ret_weight = line + at;
    *ret_length = length - at;
    if (points > 1 || length - at <= points || at < 2 || line[at - 1] != ' ') {
        return 0;
    }
    return at - 1; /* one space: a frame may be one, where a symbol has no name */
}

bool lac_folded_is_its_own(const uint8_t *head, size_t size_bytes)
{
    const char *line = (const char *)head;
    const char *const end = line + size_bytes;
    size_t semicolons = 0;
    if (size_bytes == 0 || memchr(head, '\0', size_bytes) != NULL ||
        strchr("{[#<\"-; \t", (int)head[0]) != NULL) {
        return false;
    }
    const char *newline = memchr(line, '\n', size_bytes);
    while (newline != NULL) {
        const char *weight;
        size_t weight_length;
        size_t length = (size_t)(newline - line);
        length -= length > 0 && line[length - 1] == '\r' ? 1 : 0;
        const size_t stack = split(line, length, &weight, &weight_length);
        if (stack == 0 && length > 0 && line[0] != '#') {
            return false;
        }
        semicolons += stack > 0 && memchr(line, ';', stack) != NULL ? SEMICOLONS_MIN : 0;
        line = newline + 1;
        newline = memchr(line, '\n', (size_t)(end - line));
    }
    if (line == (const char *)head) { /* one line, perhaps cut: by its first bytes */
        for (const char *c = line; c < end; c++) {
            semicolons += *c == ';' ? 1 : 0;
            if (*c == '"' || *c == '\t') {
                return false;
            }
        }
    }
    return semicolons >= SEMICOLONS_MIN;
}

static enum lac_status read_stack(struct lac_profile *profile, uint32_t bottom, const char *line,
                                  size_t length, uint32_t *ret_stack)
{
    enum lac_status status = LAC_OK;
    *ret_stack = bottom;
    for (size_t at = 0; at <= length && status == LAC_OK;) {
        const char *const semicolon = at < length ? memchr(line + at, ';', length - at) : NULL;
        const size_t size = semicolon != NULL ? (size_t)(semicolon - line) - at : length - at;
        uint32_t name = 0;
        status = size > 0 ? lac_stacks_name(profile->stacks, line + at, size, &name) : LAC_OK;
        if (status == LAC_OK && size > 0) {
            status = lac_stacks_push(profile->stacks, *ret_stack, name, ret_stack);
        }
        at += size + 1;
    }
    return status;
}

static enum lac_status read_line(struct lac_profile *profile, uint32_t bottom, const char *line,
                                 size_t length)
{
    const uint64_t offset = profile->lines.offset_bytes - length;
    const char *text;
    size_t size;
    int64_t weight = 0;
    uint32_t stack;
    const size_t stack_length = split(line, length, &text, &size);
    if (length == 0 || line[0] == '#') {
        return LAC_OK;
    }
    profile->model->info.event_count++;
    const char *const point = memchr(text, '.', size);
    size_t digits = point != NULL ? size - (size_t)(point - text) - 1 : 0;
    while (digits > 0 && text[size - 1] == '0') { /* 1.500 is 1.5 */
        size--;
        digits--;
    }
    size -= point != NULL && digits == 0 ? 1 : 0;
    digits = digits < LAC_STACK_DIGITS_MAX ? digits : LAC_STACK_DIGITS_MAX;
    if (stack_length == 0 ||
        !lac_decimal_scaled((const uint8_t *)text, size, (int)digits, &weight)) {
        lac_model_report(profile->model, LAC_REPORT_DROPPED, "line_not_understood", 1, offset,
                         "lines that are no stack with a weight");
        return LAC_OK;
    }
    enum lac_status status = read_stack(profile, bottom, line, stack_length, &stack);
    if (status == LAC_OK) {
        status = lac_stacks_weigh(profile->stacks, stack, weight, (unsigned)digits);
    }
    return lac_profile_failed(profile, status);
}

enum lac_status lac_folded_import(struct lac_source *source,
                                  const struct lac_import_options *options, size_t window_bytes,
                                  const char *name, struct lac_model **ret_model,
                                  struct lac_error *reterr)
{
    struct lac_profile profile;
    uint32_t bottom = 0;
    enum lac_status status =
        lac_profile_open(&profile, source, options, window_bytes, name, LAC_FORMAT_FOLDED, reterr);
    if (status == LAC_OK) {
        status =
            lac_profile_failed(&profile, lac_stacks_thread(profile.stacks, 0, 0, 0, 0, &bottom));
    }
    while (status == LAC_OK) {
        const char *line;
        size_t length;
        status = lac_lines_next(&profile.lines, &line, &length, reterr);
        if (status != LAC_OK || line == NULL) {
            break;
        }
        status = read_line(&profile, bottom, line, length);
    }
    return lac_profile_close(&profile, status, "file of folded stacks", "samples", 0, ret_model);
}
