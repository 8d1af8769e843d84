/* A demangler: its memory, its characters, and how a name is taken apart as a whole. */

#include "analysis/demangle/demangle.h"

#include "analysis/demangle/demangle_private.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct lac_demangler *lac_demangler_create(void)
{
    return calloc(1, sizeof(struct lac_demangler));
}

void lac_demangler_destroy(struct lac_demangler *demangler)
{
    if (demangler != NULL) {
        free(demangler->nodes);
        free(demangler->substitutes);
        free(demangler->text);
        free(demangler);
    }
}

/* ---- nodes */

uint32_t lac_node_bad(struct lac_demangler *d)
{
    d->is_bad = true;
    d->at = d->end;
    return 0;
}

uint32_t lac_node_add(struct lac_demangler *d, const struct lac_name_node *node)
{
    if (d->is_bad) {
        return 0;
    }
    if (d->node_count == d->node_capacity) {
        const size_t capacity = d->node_capacity == 0 ? 256 : 2 * d->node_capacity;
        struct lac_name_node *const nodes = realloc(d->nodes, capacity * sizeof(*nodes));

        if (nodes == NULL) {
            return lac_node_bad(d);
        }
        d->nodes = nodes;
        d->node_capacity = capacity;
    }
    d->nodes[d->node_count] = *node;
    return (uint32_t)d->node_count++;
}

uint32_t lac_node_pair(struct lac_demangler *d, enum lac_name_node_kind kind, uint32_t a,
                       uint32_t b)
{
    return lac_node_add(d, &(struct lac_name_node){.kind = (uint8_t)kind, .a = a, .b = b});
}

uint32_t lac_node_text(struct lac_demangler *d, const char *text, size_t length)
{
    return lac_node_add(d, &(struct lac_name_node){
                               .kind = LAC_NODE_TEXT, .text = text, .length = (uint32_t)length});
}

void lac_list_append(struct lac_demangler *d, uint32_t *first, uint32_t *last, uint32_t item)
{
    const uint32_t cell = lac_node_pair(d, LAC_NODE_LIST, item, 0);

    if (cell == 0) {
        return;
    }
    if (*last == 0) {
        *first = cell;
    } else {
        d->nodes[*last].b = cell;
    }
    *last = cell;
}

uint32_t lac_substitute_add(struct lac_demangler *d, uint32_t node)
{
    if (d->is_bad) {
        return 0;
    }
    if (d->substitute_count == d->substitute_capacity) {
        const size_t capacity = d->substitute_capacity == 0 ? 64 : 2 * d->substitute_capacity;
        uint32_t *const substitutes = realloc(d->substitutes, capacity * sizeof(*substitutes));

        if (substitutes == NULL) {
            return lac_node_bad(d);
        }
        d->substitutes = substitutes;
        d->substitute_capacity = capacity;
    }
    d->substitutes[d->substitute_count++] = node;
    return node;
}

bool lac_demangle_enter(struct lac_demangler *d)
{
    if (++d->depth > LAC_DEMANGLE_DEPTH_MAX) {
        (void)lac_node_bad(d);
    }
    return !d->is_bad;
}

/* ---- characters */

bool lac_take(struct lac_demangler *d, const char *text)
{
    const size_t length = strlen(text);

    if ((size_t)(d->end - d->at) < length || memcmp(d->at, text, length) != 0) {
        return false;
    }
    d->at += length;
    return true;
}

bool lac_take_number(struct lac_demangler *d, uint32_t *ret_number)
{
    uint32_t number = 0;

    if (lac_peek(d, 0) < '0' || lac_peek(d, 0) > '9') {
        return false;
    }
    while (lac_peek(d, 0) >= '0' && lac_peek(d, 0) <= '9') {
        number = 10 * number + (uint32_t)(*d->at++ - '0');
        if (number > LAC_MANGLED_BYTES_MAX) {
            (void)lac_node_bad(d);
            return false;
        }
    }
    *ret_number = number;
    return true;
}

bool lac_take_index(struct lac_demangler *d, unsigned base, uint32_t *ret_index)
{
    uint32_t index = 0;

    while (lac_peek(d, 0) != '_') {
        const char c = lac_peek(d, 0);

        if (c >= '0' && c <= '9') {
            index = base * index + (uint32_t)(c - '0');
        } else if (base == 36 && c >= 'A' && c <= 'Z') {
            index = base * index + (uint32_t)(c - 'A') + 10;
        } else {
            return false;
        }
        d->at++;
        if (index > LAC_MANGLED_BYTES_MAX) {
            return false;
        }
        if (lac_peek(d, 0) == '_') {
            index++;
        }
    }
    d->at++;
    *ret_index = index;
    return true;
}

/* ---- the whole */

/* Compilers add ".isra.0" and the like to what they cloned. */
static uint32_t read_suffix(struct lac_demangler *d, uint32_t name)
{
    const char *const from = d->at;

    if (lac_peek(d, 0) != '.') {
        return name;
    }
    d->at = d->end;
    return lac_node_add(d, &(struct lac_name_node){.kind = LAC_NODE_SUFFIXED,
                                                   .a = name,
                                                   .text = from,
                                                   .length = (uint32_t)(d->end - from)});
}

/* Identifiers are counted in bytes: cut inside of a character, others would be no text. */
static bool is_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] <= ' ' || text[i] > '~') {
            return false;
        }
    }
    return true;
}

const char *lac_demangle(struct lac_demangler *demangler, const char *mangled, size_t length,
                         size_t *ret_length)
{
    struct lac_demangler *const d = demangler;
    uint32_t name;

    if (!lac_is_mangled(mangled, length) || length > LAC_MANGLED_BYTES_MAX ||
        d->work > LAC_DEMANGLE_WORK_MAX || !is_plain(mangled, length)) {
        return NULL;
    }
    if (d->text == NULL) {
        d->text = malloc(LAC_DEMANGLED_BYTES_MAX);
        if (d->text == NULL) {
            return NULL;
        }
    }
    d->at = mangled + 2;
    d->end = mangled + length;
    d->is_bad = false;
    d->depth = 0;
    d->in_lambda = 0;
    d->arguments = 0;
    d->node_count = 0;
    d->substitute_count = 0;
    d->used = 0;
    d->steps = 0;
    d->pack_at = LAC_PACK_WHOLE;
    (void)lac_node_add(d, &(struct lac_name_node){.kind = LAC_NODE_NONE});
    name = read_suffix(d, lac_read_encoding(d, true));
    if (d->is_bad || d->at != d->end) {
        return NULL;
    }
    lac_demangle_write(d, name);
    d->work += d->steps + d->used;
    *ret_length = d->used;
    return d->is_bad ? NULL : d->text;
}
