/*
 * Old profilers wrote quotes inside strings without escaping them. This rewrites such an event with
 * those quotes escaped: a quote ends a string only where what follows can follow a string.
 */

#include "analysis/import/chrome/chrome.h"
#include "analysis/import/chrome/json_window.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct rewriter {
    const uint8_t *p, *end;
    uint8_t *out;
    uint64_t objects; /**< bit per open bracket: 1 object */
    uint32_t depth;
    uint32_t escaped;
    bool at_key;
};

static const uint8_t *skip_space(const uint8_t *p, const uint8_t *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
        p++;
    }
    return p;
}

/* Whether the quote at p can end the string it stands in. */
static bool ends_string(const struct rewriter *rewriter, const uint8_t *p)
{
    const uint8_t *next = skip_space(p + 1, rewriter->end);
    bool in_object = rewriter->objects & 1;
    if (next == rewriter->end) {
        return false;
    }
    if (rewriter->at_key) {
        return *next == ':';
    }
    if (*next == (in_object ? '}' : ']')) {
        return true;
    }
    if (*next != ',') {
        return false;
    }
    next = skip_space(next + 1, rewriter->end);
    return next < rewriter->end && (!in_object || *next == '"' || *next == '}');
}

/* The string at p (its opening quote). False when it does not end. */
static bool rewrite_string(struct rewriter *rewriter)
{
    *rewriter->out++ = *rewriter->p++;
    while (rewriter->p < rewriter->end) {
        uint8_t c = *rewriter->p;
        if (c == '\\' && rewriter->p + 1 < rewriter->end) {
            *rewriter->out++ = *rewriter->p++;
        } else if (c == '"') {
            if (ends_string(rewriter, rewriter->p)) {
                *rewriter->out++ = *rewriter->p++;
                return true;
            }
            *rewriter->out++ = '\\';
            rewriter->escaped++;
        }
        *rewriter->out++ = *rewriter->p++;
    }
    return false;
}

/* One token; false when the text makes no sense or ends. */
static bool rewrite_token(struct rewriter *rewriter)
{
    uint8_t c = *rewriter->p;
    if (c == '"') {
        return rewrite_string(rewriter);
    }
    if (c == '{' || c == '[') {
        if (rewriter->depth == 64) {
            return false;
        }
        rewriter->objects = rewriter->objects << 1 | (c == '{');
        rewriter->depth++;
        rewriter->at_key = c == '{';
    } else if (c == '}' || c == ']') {
        if ((rewriter->objects & 1) != (c == '}')) {
            return false;
        }
        rewriter->objects >>= 1;
        rewriter->depth--;
        rewriter->at_key = false;
    } else if (c == ',') {
        rewriter->at_key = rewriter->objects & 1;
    } else if (c == ':') {
        rewriter->at_key = false;
    }
    *rewriter->out++ = *rewriter->p++;
    return true;
}

enum lac_status lac_chrome_rewrite(struct lac_chrome *chrome, const uint8_t *p, const uint8_t *end,
                                   size_t *ret_size, const uint8_t **ret_next)
{
    size_t need = (size_t)(end - p) * 2 + LAC_JSON_PAD;
    if (need > chrome->rewritten_capacity) {
        uint8_t *rewritten = realloc(chrome->rewritten, need);
        if (rewritten == NULL) {
            return lac_chrome_no_memory(chrome);
        }
        chrome->rewritten = rewritten;
        chrome->rewritten_capacity = need;
    }
    struct rewriter rewriter = {.p = p, .end = end, .out = chrome->rewritten};
    bool sound = true;
    do {
        sound = rewriter.p < end && rewrite_token(&rewriter);
    } while (sound && rewriter.depth > 0);
    *ret_size = sound && rewriter.escaped ? (size_t)(rewriter.out - chrome->rewritten) : 0;
    *ret_next = rewriter.p;
    memset(rewriter.out, 0, LAC_JSON_PAD);
    return LAC_OK;
}
