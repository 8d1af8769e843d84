/* Nodes as C++ text. A type stands on both sides of what it declares: "int (*" and ") [3]". */

#include "analysis/demangle/demangle_private.h"
#include "collector/base/count_of.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void write_left(struct lac_demangler *d, uint32_t at);
static void write_right(struct lac_demangler *d, uint32_t at);

/* ---- characters */

static void put(struct lac_demangler *d, const char *text, size_t length)
{
    if (d->is_bad || length > LAC_DEMANGLED_BYTES_MAX - d->used) {
        d->is_bad = true;
        return;
    }
    memcpy(d->text + d->used, text, length);
    d->used += length;
}

static void puts_to(struct lac_demangler *d, const char *text)
{
    put(d, text, strlen(text));
}

static char last(const struct lac_demangler *d)
{
    return d->used > 0 ? d->text[d->used - 1] : '\0';
}

static void put_number(struct lac_demangler *d, const char *before, uint32_t number,
                       const char *after)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%" PRIu32, number);
    puts_to(d, before);
    puts_to(d, text);
    puts_to(d, after);
}

static void write_whole(struct lac_demangler *d, uint32_t at)
{
    write_left(d, at);
    write_right(d, at);
}

/* One more step, one deeper. False: no further. */
static bool enter(struct lac_demangler *d)
{
    d->is_bad = d->is_bad || d->steps > LAC_DEMANGLE_STEPS_MAX;
    d->steps++;
    return !d->is_bad && lac_demangle_enter(d);
}

/* ---- packs */

/* What stands for a node: where a pack is used, one of its elements while these are written. */
static uint32_t resolve(struct lac_demangler *d, uint32_t at)
{
    uint32_t cell;

    if (d->nodes[at].kind != LAC_NODE_PACK_USE) {
        return at;
    }
    at = d->nodes[at].a;
    if (d->pack_at == LAC_PACK_WHOLE) {
        return at;
    }
    cell = d->nodes[at].b;
    for (uint32_t i = 0; i < d->pack_at && cell != 0; i++) {
        cell = d->nodes[cell].b;
    }
    d->steps += d->pack_at;
    return cell != 0 ? d->nodes[cell].a : 0;
}

/* Elements of the pack that a pattern uses; -1: it uses none. */
static int64_t pack_length(struct lac_demangler *d, uint32_t at)
{
    const struct lac_name_node *const node = &d->nodes[at];
    int64_t length = -1;

    if (at == 0 || node->kind == LAC_NODE_EXPANSION || node->kind == LAC_NODE_TEXT) {
        return -1;
    }
    if (!enter(d)) {
        return -1;
    }
    if (node->kind == LAC_NODE_PACK_USE) {
        length = 0;
        for (uint32_t cell = d->nodes[node->a].b; cell != 0; cell = d->nodes[cell].b) {
            length++;
        }
        d->steps += (unsigned)length;
        d->depth--;
        return length;
    }
    length = pack_length(d, node->a);
    length = length >= 0 ? length : pack_length(d, node->b);
    d->depth--;
    return length;
}

/* Items with commas between those that are not empty. */
static void write_list(struct lac_demangler *d, uint32_t cell)
{
    bool is_first = true;

    for (; cell != 0 && !d->is_bad; cell = d->nodes[cell].b) {
        const size_t before = d->used;

        if (!is_first) {
            puts_to(d, ", ");
        }
        const size_t from = d->used;
        write_whole(d, d->nodes[cell].a);
        if (d->used == from) {
            d->used = before;
        } else {
            is_first = false;
        }
    }
}

static void write_expansion(struct lac_demangler *d, uint32_t pattern)
{
    const uint32_t outer = d->pack_at;
    const int64_t length = pack_length(d, pattern);
    bool is_first = true;

    if (length < 0) {
        write_whole(d, pattern);
        puts_to(d, "...");
        return;
    }
    for (int64_t i = 0; i < length && !d->is_bad; i++) {
        if (!is_first) {
            puts_to(d, ", ");
        }
        is_first = false;
        d->pack_at = (uint32_t)i;
        write_whole(d, pattern);
    }
    d->pack_at = outer;
}

/* ---- types */

/* A type behind packs and qualifiers. */
static enum lac_name_node_kind shape(struct lac_demangler *d, uint32_t at)
{
    at = resolve(d, at);
    while (d->nodes[at].kind == LAC_NODE_QUALIFIED) {
        at = resolve(d, d->nodes[at].a);
    }
    return (enum lac_name_node_kind)d->nodes[at].kind;
}

/* A reference to a reference is one: & where one of them is &, else &&. Returns what it is to. */
static uint32_t collapse(struct lac_demangler *d, uint32_t at, bool *ret_is_lvalue)
{
    const struct lac_name_node *node = &d->nodes[at];

    *ret_is_lvalue = false;
    for (unsigned i = 0; i < LAC_DEMANGLE_DEPTH_MAX &&
                         (node->kind == LAC_NODE_LVALUE || node->kind == LAC_NODE_RVALUE);
         i++) {
        *ret_is_lvalue = *ret_is_lvalue || node->kind == LAC_NODE_LVALUE;
        at = resolve(d, node->a);
        node = &d->nodes[at];
    }
    return at;
}

static void write_qualifiers(struct lac_demangler *d, uint8_t flags)
{
    puts_to(d, (flags & LAC_QUAL_CONST) != 0 ? " const" : "");
    puts_to(d, (flags & LAC_QUAL_VOLATILE) != 0 ? " volatile" : "");
    puts_to(d, (flags & LAC_QUAL_RESTRICT) != 0 ? " restrict" : "");
    puts_to(d, (flags & LAC_QUAL_LVALUE) != 0 ? " &" : "");
    puts_to(d, (flags & LAC_QUAL_RVALUE) != 0 ? " &&" : "");
    puts_to(d, (flags & LAC_QUAL_NOEXCEPT) != 0 ? " noexcept" : "");
}

/* Whether a type goes on behind what it declares: a pointer to an array or a function. */
static bool is_open(struct lac_demangler *d, uint32_t at)
{
    const struct lac_name_node *const node = &d->nodes[resolve(d, at)];
    const bool is_member = node->kind == LAC_NODE_MEMBER_POINTER;
    const enum lac_name_node_kind to = shape(d, is_member ? node->b : node->a);

    return (is_member || (node->kind >= LAC_NODE_POINTER && node->kind <= LAC_NODE_RVALUE)) &&
           (to == LAC_NODE_FUNCTION || to == LAC_NODE_ARRAY);
}

/* "int (" before the mark of a pointer to an array or a function, "int" before others. */
static void open_pointer(struct lac_demangler *d, uint32_t to)
{
    const enum lac_name_node_kind kind = shape(d, to);

    write_left(d, to);
    if (kind == LAC_NODE_ARRAY) {
        puts_to(d, " ");
    }
    if (kind == LAC_NODE_ARRAY || kind == LAC_NODE_FUNCTION) {
        puts_to(d, "(");
    }
}

static void close_pointer(struct lac_demangler *d, uint32_t to)
{
    const enum lac_name_node_kind kind = shape(d, to);

    if (kind == LAC_NODE_ARRAY || kind == LAC_NODE_FUNCTION) {
        puts_to(d, ")");
    }
    write_right(d, to);
}

static void write_function_right(struct lac_demangler *d, const struct lac_name_node *function)
{
    const uint32_t result = function->a;
    const uint8_t flags = function->flags;

    puts_to(d, "(");
    write_list(d, function->b);
    puts_to(d, ")");
    write_qualifiers(d, flags);
    if (result != 0) {
        write_right(d, result);
    }
}

/* ---- names */

static void write_template(struct lac_demangler *d, const struct lac_name_node *node)
{
    write_whole(d, node->a);
    puts_to(d, last(d) == '<' ? " <" : "<");
    write_list(d, node->b);
    puts_to(d, last(d) == '>' ? " >" : ">");
}

/* The last part of a class's name, which its constructors have. */
static void write_class(struct lac_demangler *d, uint32_t at)
{
    for (unsigned i = 0; i < LAC_DEMANGLE_DEPTH_MAX; i++) {
        const struct lac_name_node *const node = &d->nodes[resolve(d, at)];

        if (node->kind == LAC_NODE_SCOPED) {
            at = node->b;
        } else if (node->kind == LAC_NODE_TEMPLATE || node->kind == LAC_NODE_TAGGED) {
            at = node->a;
        } else if (node->kind == LAC_NODE_TEXT) { /* "std::string" is one text */
            const char *from = node->text;

            for (const char *c = node->text; c < node->text + node->length; c++) {
                from = *c == ':' ? c + 1 : from;
            }
            put(d, from, (size_t)(node->text + node->length - from));
            return;
        } else {
            write_whole(d, at);
            return;
        }
    }
    d->is_bad = true;
}

static bool has_text(const struct lac_demangler *d, uint32_t at, const char *text)
{
    const struct lac_name_node *const node = &d->nodes[at];

    return node->kind == LAC_NODE_TEXT && node->length == strlen(text) &&
           memcmp(node->text, text, node->length) == 0;
}

/* ---- expressions */

static void write_literal(struct lac_demangler *d, const struct lac_name_node *node)
{
    static const struct {
        const char *type;
        const char *suffix;
    } plain[] = {{"int", ""},         {"unsigned int", "u"},
                 {"long", "l"},       {"unsigned long", "ul"},
                 {"long long", "ll"}, {"unsigned long long", "ull"}};
    const char *text = node->text;
    size_t length = node->length;
    const uint32_t type = node->a;
    const char *suffix = NULL;

    if (has_text(d, type, "bool") && length == 1 && (*text == '0' || *text == '1')) {
        puts_to(d, *text == '0' ? "false" : "true");
        return;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(plain); i++) {
        suffix = has_text(d, type, plain[i].type) ? plain[i].suffix : suffix;
    }
    if (suffix == NULL) {
        puts_to(d, "(");
        write_whole(d, type);
        puts_to(d, ")");
    }
    if (length > 0 && *text == 'n') {
        puts_to(d, "-");
        text++;
        length--;
    }
    const bool is_float = has_text(d, type, "float") || has_text(d, type, "double");
    puts_to(d, is_float ? "[" : ""); /* its bits */
    put(d, text, length);
    puts_to(d, is_float ? "]" : suffix != NULL ? suffix : "");
}

/* A function that is called has no parameters here, nor has one in a scope whose address is taken:
 * c++filt's way. */
static uint32_t without_parameters(const struct lac_demangler *d, uint32_t at, bool is_called)
{
    const struct lac_name_node *const node = &d->nodes[at];
    const bool is_scoped = d->nodes[node->a].kind == LAC_NODE_SCOPED;

    return node->kind == LAC_NODE_ENCODING && (is_called || is_scoped) ? node->a : at;
}

/* An operand: in parentheses unless it is a name. */
static void write_operand(struct lac_demangler *d, uint32_t at)
{
    const enum lac_name_node_kind kind = (enum lac_name_node_kind)d->nodes[at].kind;
    const bool is_simple = kind == LAC_NODE_TEXT || kind == LAC_NODE_SCOPED ||
                           kind == LAC_NODE_PARAMETER || kind == LAC_NODE_BRACED;

    puts_to(d, is_simple ? "" : "(");
    write_whole(d, at);
    puts_to(d, is_simple ? "" : ")");
}

static void write_binary(struct lac_demangler *d, const struct lac_name_node *node)
{
    /* a bare > would end the arguments of a template */
    const bool is_greater = node->length == 1 && node->text[0] == '>';

    puts_to(d, is_greater ? "(" : "");
    write_operand(d, node->a);
    put(d, node->text, node->length);
    write_operand(d, node->b);
    puts_to(d, is_greater ? ")" : "");
}

static void write_conditional(struct lac_demangler *d, const struct lac_name_node *node)
{
    const struct lac_name_node *const first = &d->nodes[node->b];

    write_operand(d, node->a);
    puts_to(d, "?");
    write_operand(d, first->a);
    puts_to(d, " : ");
    write_operand(d, d->nodes[first->b].a);
}

/* "f(list)", "(type)(list)" or "type{list}" */
static void write_bracketed(struct lac_demangler *d, const struct lac_name_node *node)
{
    const bool is_braced = node->kind == LAC_NODE_BRACED;

    if (node->kind == LAC_NODE_CALL) {
        write_operand(d, without_parameters(d, node->a, true));
    } else if (node->kind == LAC_NODE_CAST) {
        puts_to(d, "(");
        write_whole(d, node->a);
        puts_to(d, ")");
    } else if (node->a != 0) {
        write_whole(d, node->a);
    }
    puts_to(d, is_braced ? "{" : "(");
    write_list(d, node->b);
    puts_to(d, is_braced ? "}" : ")");
}

/* A word and what it is about in parentheses. */
static void write_word(struct lac_demangler *d, const struct lac_name_node *node)
{
    if (node->kind == LAC_NODE_DECLTYPE) {
        puts_to(d, "decltype ");
    } else {
        put(d, node->text, node->length);
    }
    puts_to(d, "(");
    write_whole(d, node->a);
    puts_to(d, ")");
}

static void write_expression(struct lac_demangler *d, const struct lac_name_node *node)
{
    switch (node->kind) {
    case LAC_NODE_LITERAL:
        write_literal(d, node);
        return;
    case LAC_NODE_UNARY:
        put(d, node->text, node->length);
        write_operand(d, node->length == 1 && *node->text == '&'
                             ? without_parameters(d, node->a, false)
                             : node->a);
        return;
    case LAC_NODE_POSTFIX:
        write_operand(d, node->a);
        put(d, node->text, node->length);
        return;
    case LAC_NODE_BINARY:
        write_binary(d, node);
        return;
    case LAC_NODE_CONDITIONAL:
        write_conditional(d, node);
        return;
    case LAC_NODE_CALL:
    case LAC_NODE_CAST:
    case LAC_NODE_BRACED:
        write_bracketed(d, node);
        return;
    case LAC_NODE_PARAMETER:
        if (node->number == 0) {
            puts_to(d, "this");
        } else {
            put_number(d, "{parm#", node->number, "}");
        }
        return;
    default:
        write_word(d, node);
        return;
    }
}

/* ".isra.0.cold" is two suffixes: a word takes the numbers behind it. */
static void write_suffix(struct lac_demangler *d, const struct lac_name_node *node)
{
    const char *const end = node->text + node->length;
    const char *from = node->text;

    while (from < end) {
        const char *at = from + 1;

        while (at < end && !(*at == '.' && !(at + 1 < end && at[1] >= '0' && at[1] <= '9'))) {
            at++;
        }
        puts_to(d, " [clone ");
        put(d, from, (size_t)(at - from));
        puts_to(d, "]");
        from = at;
    }
}

/* ---- the two sides */

static void write_name(struct lac_demangler *d, uint32_t at)
{
    const struct lac_name_node *const node = &d->nodes[at];

    switch (node->kind) {
    case LAC_NODE_SCOPED:
        write_whole(d, node->a);
        puts_to(d, "::");
        write_whole(d, node->b);
        return;
    case LAC_NODE_TEMPLATE:
        write_template(d, node);
        return;
    case LAC_NODE_ENCODING:
        write_left(d, node->b);
        write_whole(d, node->a);
        write_right(d, node->b);
        return;
    case LAC_NODE_SPECIAL:
        put(d, node->text, node->length);
        write_whole(d, node->a);
        return;
    case LAC_NODE_SUFFIXED:
        write_whole(d, node->a);
        write_suffix(d, node);
        return;
    case LAC_NODE_TAGGED:
        write_whole(d, node->a);
        puts_to(d, "[abi:");
        put(d, node->text, node->length);
        puts_to(d, "]");
        return;
    case LAC_NODE_DESTRUCTOR:
        puts_to(d, "~");
        write_class(d, node->a);
        return;
    case LAC_NODE_CONSTRUCTOR:
        write_class(d, node->a);
        return;
    case LAC_NODE_CONVERSION:
        puts_to(d, "operator ");
        write_whole(d, node->a);
        return;
    case LAC_NODE_LAMBDA:
        puts_to(d, "{lambda(");
        write_list(d, node->b);
        put_number(d, ")#", node->number, "}");
        return;
    case LAC_NODE_UNNAMED:
        put_number(d, "{unnamed type#", node->number, "}");
        return;
    case LAC_NODE_DEFAULT:
        put_number(d, "{default arg#", node->number, "}::");
        write_whole(d, node->a);
        return;
    default:
        put_number(d, "auto:", node->number, "");
        return;
    }
}

/* One side of a type; false: the node is none. */
static bool write_type_left(struct lac_demangler *d, uint32_t at)
{
    const struct lac_name_node *const node = &d->nodes[at];
    bool is_lvalue;
    uint32_t to;

    switch (node->kind) {
    case LAC_NODE_QUALIFIED:
        write_left(d, node->a);
        write_qualifiers(d, node->flags);
        return true;
    case LAC_NODE_VENDOR:
        write_left(d, node->a);
        puts_to(d, " ");
        write_whole(d, node->b);
        return true;
    case LAC_NODE_POINTER:
        open_pointer(d, node->a);
        puts_to(d, "*");
        return true;
    case LAC_NODE_LVALUE:
    case LAC_NODE_RVALUE:
        to = collapse(d, at, &is_lvalue);
        open_pointer(d, to);
        puts_to(d, is_lvalue ? "&" : "&&");
        return true;
    case LAC_NODE_COMPLEX:
        write_left(d, node->a);
        puts_to(d, " _Complex");
        return true;
    case LAC_NODE_FUNCTION:
        if (node->a != 0) {
            write_left(d, node->a);
            puts_to(d, is_open(d, node->a) ? "" : " ");
        }
        return true;
    case LAC_NODE_ARRAY:
        write_left(d, node->a);
        return true;
    case LAC_NODE_MEMBER_POINTER:
        open_pointer(d, node->b);
        puts_to(d, shape(d, node->b) == LAC_NODE_FUNCTION ? "" : " ");
        write_whole(d, node->a);
        puts_to(d, "::*");
        return true;
    case LAC_NODE_VECTOR:
        write_left(d, node->a);
        puts_to(d, " __vector(");
        write_whole(d, node->b);
        puts_to(d, ")");
        return true;
    default:
        return false;
    }
}

static void write_right(struct lac_demangler *d, uint32_t at)
{
    bool is_lvalue;

    at = resolve(d, at);
    const struct lac_name_node *const node = &d->nodes[at];
    if (at == 0 || !enter(d)) {
        return;
    }
    switch (node->kind) {
    case LAC_NODE_QUALIFIED:
    case LAC_NODE_VENDOR:
    case LAC_NODE_COMPLEX:
    case LAC_NODE_VECTOR:
        write_right(d, node->a);
        break;
    case LAC_NODE_POINTER:
        close_pointer(d, node->a);
        break;
    case LAC_NODE_LVALUE:
    case LAC_NODE_RVALUE:
        close_pointer(d, collapse(d, at, &is_lvalue));
        break;
    case LAC_NODE_FUNCTION:
        write_function_right(d, node);
        break;
    case LAC_NODE_ARRAY:
        puts_to(d, last(d) == ']' ? "[" : " [");
        if (node->b != 0) {
            write_whole(d, node->b);
        }
        puts_to(d, "]");
        write_right(d, node->a);
        break;
    case LAC_NODE_MEMBER_POINTER:
        close_pointer(d, node->b);
        break;
    default:
        break;
    }
    d->depth--;
}

static void write_left(struct lac_demangler *d, uint32_t at)
{
    at = resolve(d, at);
    const struct lac_name_node *const node = &d->nodes[at];
    if (at == 0 || !enter(d)) {
        return;
    }
    if (node->kind == LAC_NODE_TEXT) {
        put(d, node->text, node->length);
    } else if (node->kind == LAC_NODE_PACK) {
        write_list(d, node->b);
    } else if (node->kind == LAC_NODE_EXPANSION) {
        write_expansion(d, node->a);
    } else if (node->kind >= LAC_NODE_LITERAL) {
        write_expression(d, node);
    } else if (!write_type_left(d, at)) {
        write_name(d, at);
    }
    d->depth--;
}

void lac_demangle_write(struct lac_demangler *d, uint32_t node)
{
    d->depth = 0;
    write_whole(d, node);
}
