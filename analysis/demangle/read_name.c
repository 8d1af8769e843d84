/* Names: of functions, of what lies inside of others, of operators, lambdas and templates. */

#include "analysis/demangle/demangle_private.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static uint32_t constant(struct lac_demangler *d, const char *text)
{
    return lac_node_text(d, text, strlen(text));
}

/* ---- the last part of a name */

uint32_t lac_read_source_name(struct lac_demangler *d)
{
    static const char anonymous[] = "(anonymous namespace)";
    const char *text;
    uint32_t length;

    if (!lac_take_number(d, &length) || length == 0 || length > (size_t)(d->end - d->at)) {
        return lac_node_bad(d);
    }
    text = d->at;
    d->at += length;
    if (length >= 10 && memcmp(text, "_GLOBAL_", 8) == 0 && strchr("._$", text[8]) != NULL &&
        text[9] == 'N') {
        return constant(d, anonymous);
    }
    return lac_node_text(d, text, length);
}

/* Ul types E [number] _ */
static uint32_t read_lambda(struct lac_demangler *d)
{
    struct lac_name_node lambda = {.kind = LAC_NODE_LAMBDA};
    uint32_t function;

    d->in_lambda++;
    function = lac_read_function(d, false);
    d->in_lambda--;
    if (d->is_bad || !lac_take(d, "E") || !lac_take_index(d, 10, &lambda.number)) {
        return lac_node_bad(d);
    }
    lambda.b = d->nodes[function].b;
    lambda.number++;
    return lac_node_add(d, &lambda);
}

static uint32_t read_unnamed(struct lac_demangler *d)
{
    struct lac_name_node unnamed = {.kind = LAC_NODE_UNNAMED};

    if (!lac_take_index(d, 10, &unnamed.number)) {
        return lac_node_bad(d);
    }
    unnamed.number++;
    return lac_node_add(d, &unnamed);
}

static uint32_t read_constructor(struct lac_demangler *d, uint32_t scope,
                                 struct lac_name_state *state)
{
    const enum lac_name_node_kind kind = *d->at == 'C' ? LAC_NODE_CONSTRUCTOR : LAC_NODE_DESTRUCTOR;

    d->at++;
    if (scope == 0 || !is_digit(lac_peek(d, 0))) { /* inherited ones name another class */
        return lac_node_bad(d);
    }
    d->at++;
    if (state != NULL) {
        state->has_no_result = true;
    }
    return lac_node_pair(d, kind, scope, 0);
}

static uint32_t read_operator(struct lac_demangler *d, struct lac_name_state *state)
{
    const struct lac_operator *const known = lac_peek_operator(d);

    if (known != NULL) {
        d->at += 2;
        return constant(d, known->name);
    }
    if (lac_take(d, "cv")) {
        if (state != NULL) {
            state->has_no_result = true;
        }
        return lac_node_pair(d, LAC_NODE_CONVERSION, lac_read_type(d), 0);
    }
    if (lac_take(d, "li")) {
        return lac_node_add(d, &(struct lac_name_node){.kind = LAC_NODE_SPECIAL,
                                                       .text = "operator\"\" ",
                                                       .length = 11,
                                                       .a = lac_read_source_name(d)});
    }
    return lac_node_bad(d);
}

static uint32_t read_tags(struct lac_demangler *d, uint32_t name)
{
    while (!d->is_bad && lac_take(d, "B")) {
        const uint32_t tag = lac_read_source_name(d);

        if (!d->is_bad) {
            name = lac_node_add(d, &(struct lac_name_node){.kind = LAC_NODE_TAGGED,
                                                           .a = name,
                                                           .text = d->nodes[tag].text,
                                                           .length = d->nodes[tag].length});
        }
    }
    return name;
}

uint32_t lac_read_unqualified(struct lac_demangler *d, uint32_t scope, struct lac_name_state *state)
{
    uint32_t name;

    if (state != NULL) {
        state->has_no_result = false;
    }
    if (lac_peek(d, 0) == 'L' && is_digit(lac_peek(d, 1))) {
        d->at++; /* of one file only */
    }
    if (is_digit(lac_peek(d, 0))) {
        name = lac_read_source_name(d);
    } else if (lac_take(d, "Ul")) {
        name = read_lambda(d);
    } else if (lac_take(d, "Ut")) {
        name = read_unnamed(d);
    } else if (lac_peek(d, 0) == 'C' || lac_peek(d, 0) == 'D') {
        name = read_constructor(d, scope, state);
    } else {
        name = read_operator(d, state);
    }
    return read_tags(d, name);
}

/* ---- templates and substitutions */

/* X expression E, L literal, J arguments E, or a type */
static uint32_t read_argument(struct lac_demangler *d)
{
    uint32_t first = 0;
    uint32_t last = 0;
    uint32_t argument;

    if (!lac_demangle_enter(d)) {
        return 0;
    }
    if (lac_take(d, "X")) {
        argument = lac_read_expression(d);
        if (!lac_take(d, "E")) {
            return lac_node_bad(d);
        }
    } else if (lac_peek(d, 0) == 'L') {
        argument = lac_read_literal(d);
    } else if (lac_take(d, "J") || lac_take(d, "I")) { /* I: as GCC wrote it before 4.5 */
        while (!d->is_bad && !lac_take(d, "E")) {
            lac_list_append(d, &first, &last, read_argument(d));
        }
        argument = lac_node_pair(d, LAC_NODE_PACK, 0, first);
    } else {
        argument = lac_read_type(d);
    }
    d->depth--;
    return argument;
}

uint32_t lac_read_arguments(struct lac_demangler *d, bool is_function)
{
    uint32_t first = 0;
    uint32_t last = 0;

    if (!lac_take(d, "I")) {
        return lac_node_bad(d);
    }
    while (!d->is_bad && !lac_take(d, "E")) {
        lac_list_append(d, &first, &last, read_argument(d));
        if (is_function) { /* the next one may already mean this one */
            d->arguments = first;
        }
    }
    return first;
}

static uint32_t put_arguments(struct lac_demangler *d, uint32_t name, bool is_function)
{
    return lac_node_pair(d, LAC_NODE_TEMPLATE, name, lac_read_arguments(d, is_function));
}

/* What T_ and those after it mean here. */
static uint32_t parameter(struct lac_demangler *d, uint32_t index)
{
    uint32_t cell = d->arguments;

    if (d->in_lambda > 0) {
        return lac_node_add(d, &(struct lac_name_node){.kind = LAC_NODE_AUTO, .number = index + 1});
    }
    d->steps += index;
    for (; cell != 0 && index > 0; index--) {
        cell = d->nodes[cell].b;
    }
    if (cell == 0) {
        return lac_node_bad(d);
    }
    cell = d->nodes[cell].a;
    return d->nodes[cell].kind == LAC_NODE_PACK ? lac_node_pair(d, LAC_NODE_PACK_USE, cell, 0)
                                                : cell;
}

uint32_t lac_read_parameter(struct lac_demangler *d, uint32_t *ret_index)
{
    if (!lac_take(d, "T") || !lac_take_index(d, 10, ret_index)) {
        return lac_node_bad(d);
    }
    return parameter(d, *ret_index);
}

uint32_t lac_read_substitution(struct lac_demangler *d)
{
    static const struct {
        char code;
        const char *name;
    } known[] = {{'a', "std::allocator"}, {'b', "std::basic_string"}, {'s', "std::string"},
                 {'i', "std::istream"},   {'o', "std::ostream"},      {'d', "std::iostream"}};
    uint32_t index;

    if (!lac_take(d, "S")) {
        return lac_node_bad(d);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(known); i++) {
        if (lac_peek(d, 0) == known[i].code) {
            d->at++;
            return read_tags(d, constant(d, known[i].name));
        }
    }
    if (!lac_take_index(d, 36, &index) || index >= d->substitute_count) {
        return lac_node_bad(d);
    }
    index = d->substitutes[index];
    return index < LAC_SUBSTITUTE_PARAMETER ? index
                                            : parameter(d, index - LAC_SUBSTITUTE_PARAMETER);
}

/* ---- names with a scope */

static uint32_t scoped(struct lac_demangler *d, uint32_t scope, uint32_t name)
{
    return scope == 0 ? name : lac_node_pair(d, LAC_NODE_SCOPED, scope, name);
}

/* One part of a nested name behind `name`, 0 at first. `ret_is_new`: it may be substituted. */
static uint32_t read_part(struct lac_demangler *d, uint32_t name, struct lac_name_state *state,
                          bool *ret_is_new)
{
    *ret_is_new = true;
    if (lac_peek(d, 0) == 'S' && lac_peek(d, 1) != 't') {
        *ret_is_new = false;
        return name == 0 ? lac_read_substitution(d) : lac_node_bad(d);
    }
    if (lac_take(d, "St")) {
        *ret_is_new = false;
        return name == 0 ? constant(d, "std") : lac_node_bad(d);
    }
    if (lac_peek(d, 0) == 'T') {
        uint32_t index = 0;

        *ret_is_new = false;
        name = name == 0 ? lac_read_parameter(d, &index) : lac_node_bad(d);
        (void)lac_substitute_add(d, LAC_SUBSTITUTE_PARAMETER + index);
        return name;
    }
    if (lac_peek(d, 0) == 'I') {
        if (name == 0) {
            return lac_node_bad(d);
        }
        state->has_arguments = true;
        return put_arguments(d, name, state->flags != UINT8_MAX);
    }
    if (lac_peek(d, 0) == 'D' && (lac_peek(d, 1) == 't' || lac_peek(d, 1) == 'T')) {
        return name == 0 ? lac_read_type(d) : lac_node_bad(d);
    }
    state->has_arguments = false;
    return scoped(d, name, lac_read_unqualified(d, name, state));
}

/* N [qualifiers] parts E */
static uint32_t read_nested(struct lac_demangler *d, struct lac_name_state *state)
{
    struct lac_name_state of_type = {.flags = UINT8_MAX};
    uint8_t flags = lac_read_qualifiers(d);
    uint32_t name = 0;
    bool is_new = false;

    flags |= lac_take(d, "R") ? LAC_QUAL_LVALUE : lac_take(d, "O") ? LAC_QUAL_RVALUE : 0;
    if (state != NULL) {
        state->flags = flags;
    }
    while (!d->is_bad && !lac_take(d, "E")) {
        name = read_part(d, name, state != NULL ? state : &of_type, &is_new);
        if (is_new) {
            (void)lac_substitute_add(d, name);
        }
        (void)lac_take(d, "M"); /* the initializer of a member, before the closure in it */
    }
    if (d->is_bad || name == 0) {
        return lac_node_bad(d);
    }
    d->substitute_count -= is_new ? 1 : 0; /* the whole is not a part of itself */
    return name;
}

/* _ digit, or __ digits _: which of equal names in a function */
static void skip_discriminator(struct lac_demangler *d)
{
    uint32_t number;

    if (lac_peek(d, 0) == '_' && is_digit(lac_peek(d, 1))) {
        d->at += 2;
    } else if (lac_peek(d, 0) == '_' && lac_peek(d, 1) == '_' && is_digit(lac_peek(d, 2))) {
        d->at += 2;
        if (!lac_take_number(d, &number) || !lac_take(d, "_")) {
            (void)lac_node_bad(d);
        }
    }
}

/* Z function E name [discriminator] */
static uint32_t read_local(struct lac_demangler *d, struct lac_name_state *state)
{
    struct lac_name_node inside = {.kind = LAC_NODE_DEFAULT};
    const uint32_t function = lac_read_encoding(d, false);
    uint32_t name;

    if (!lac_take(d, "E")) {
        return lac_node_bad(d);
    }
    if (lac_take(d, "s")) {
        name = constant(d, "string literal");
    } else if (lac_take(d, "d")) {
        if (!lac_take_index(d, 10, &inside.number)) {
            return lac_node_bad(d);
        }
        inside.number++;
        inside.a = lac_read_name(d, state);
        name = lac_node_add(d, &inside);
    } else {
        name = lac_read_name(d, state);
    }
    skip_discriminator(d);
    return scoped(d, function, name);
}

uint32_t lac_read_name(struct lac_demangler *d, struct lac_name_state *state)
{
    bool is_new = true;
    uint32_t name;

    if (!lac_demangle_enter(d)) {
        return 0;
    }
    if (lac_take(d, "N")) {
        name = read_nested(d, state);
    } else if (lac_take(d, "Z")) {
        name = read_local(d, state);
    } else {
        if (lac_peek(d, 0) == 'S' && lac_peek(d, 1) != 't') {
            is_new = false;
            name = lac_read_substitution(d);
        } else {
            const uint32_t scope = lac_take(d, "St") ? constant(d, "std") : 0;

            name = scoped(d, scope, lac_read_unqualified(d, scope, state));
        }
        if (lac_peek(d, 0) == 'I') {
            if (is_new) {
                (void)lac_substitute_add(d, name);
            }
            name = put_arguments(d, name, state != NULL);
            if (state != NULL) {
                state->has_arguments = true;
            }
        }
    }
    d->depth--;
    return name;
}

/* ---- what a mangled name stands for */

static uint32_t special(struct lac_demangler *d, const char *text, uint32_t of)
{
    return lac_node_add(
        d, &(struct lac_name_node){
               .kind = LAC_NODE_SPECIAL, .text = text, .length = (uint32_t)strlen(text), .a = of});
}

/* h or v, then how far the object lies from where it is called: that says nothing to a reader. */
static void skip_offset(struct lac_demangler *d)
{
    const int count = lac_take(d, "v") ? 2 : lac_take(d, "h") ? 1 : 0;
    uint32_t number;

    for (int i = 0; i < count; i++) {
        (void)lac_take(d, "n");
        if (!lac_take_number(d, &number) || !lac_take(d, "_")) {
            (void)lac_node_bad(d);
        }
    }
    if (count == 0) {
        (void)lac_node_bad(d);
    }
}

static uint32_t read_special(struct lac_demangler *d)
{
    static const struct {
        const char *code;
        const char *text;
        bool is_of_type;
    } known[] = {{"TV", "vtable for ", true},
                 {"TT", "VTT for ", true},
                 {"TI", "typeinfo for ", true},
                 {"TS", "typeinfo name for ", true},
                 {"TW", "TLS wrapper function for ", false},
                 {"TH", "TLS init function for ", false},
                 {"GV", "guard variable for ", false}};

    for (size_t i = 0; i < LAC_COUNT_OF(known); i++) {
        if (lac_take(d, known[i].code)) {
            return special(d, known[i].text,
                           known[i].is_of_type ? lac_read_type(d) : lac_read_name(d, NULL));
        }
    }
    if (lac_take(d, "Tc")) {
        skip_offset(d);
        skip_offset(d);
        return special(d, "covariant return thunk to ", lac_read_encoding(d, true));
    }
    if (lac_peek(d, 0) == 'T' && (lac_peek(d, 1) == 'h' || lac_peek(d, 1) == 'v')) {
        const bool is_virtual = lac_peek(d, 1) == 'v';

        d->at++;
        skip_offset(d);
        return special(d, is_virtual ? "virtual thunk to " : "non-virtual thunk to ",
                       lac_read_encoding(d, true));
    }
    return lac_node_bad(d);
}

uint32_t lac_read_encoding(struct lac_demangler *d, bool is_outermost)
{
    const uint32_t outer_arguments = d->arguments;
    struct lac_name_state state = {0};
    uint32_t name;
    uint32_t function;

    if (!lac_demangle_enter(d)) {
        return 0;
    }
    if (lac_peek(d, 0) == 'T' || lac_peek(d, 0) == 'G') {
        name = read_special(d);
    } else {
        name = lac_read_name(d, &state);
        if (lac_peek(d, 0) != '\0' && lac_peek(d, 0) != 'E' && lac_peek(d, 0) != '.') {
            function = lac_read_function(d, state.has_arguments && !state.has_no_result);
            if (!d->is_bad) {
                if (!is_outermost) { /* what is inside of a function is named without its result */
                    d->nodes[function].a = 0;
                }
                d->nodes[function].flags = state.flags;
            }
            name = lac_node_pair(d, LAC_NODE_ENCODING, name, function);
        }
    }
    d->arguments = outer_arguments;
    d->depth--;
    return name;
}
