/* Expressions: values of template arguments, and what decltype looks at. */

#include "analysis/demangle/demangle_private.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <string.h>

const struct lac_operator *lac_peek_operator(const struct lac_demangler *d)
{
    static const struct lac_operator known[] = {
        {"aN", 2, "operator&="},        {"aS", 2, "operator="},
        {"aa", 2, "operator&&"},        {"ad", 1, "operator&"},
        {"an", 2, "operator&"},         {"aw", 1, "operator co_await"},
        {"cl", 0, "operator()"},        {"cm", 2, "operator,"},
        {"co", 1, "operator~"},         {"dV", 2, "operator/="},
        {"da", 1, "operator delete[]"}, {"de", 1, "operator*"},
        {"dl", 1, "operator delete"},   {"dv", 2, "operator/"},
        {"eO", 2, "operator^="},        {"eo", 2, "operator^"},
        {"eq", 2, "operator=="},        {"ge", 2, "operator>="},
        {"gt", 2, "operator>"},         {"ix", 0, "operator[]"},
        {"lS", 2, "operator<<="},       {"le", 2, "operator<="},
        {"ls", 2, "operator<<"},        {"lt", 2, "operator<"},
        {"mI", 2, "operator-="},        {"mL", 2, "operator*="},
        {"mi", 2, "operator-"},         {"ml", 2, "operator*"},
        {"mm", 1, "operator--"},        {"na", 0, "operator new[]"},
        {"ne", 2, "operator!="},        {"ng", 1, "operator-"},
        {"nt", 1, "operator!"},         {"nw", 0, "operator new"},
        {"oR", 2, "operator|="},        {"oo", 2, "operator||"},
        {"or", 2, "operator|"},         {"pL", 2, "operator+="},
        {"pl", 2, "operator+"},         {"pm", 2, "operator->*"},
        {"pp", 1, "operator++"},        {"ps", 1, "operator+"},
        {"pt", 0, "operator->"},        {"rM", 2, "operator%="},
        {"rS", 2, "operator>>="},       {"rm", 2, "operator%"},
        {"rs", 2, "operator>>"},        {"ss", 2, "operator<=>"}};
    const char first = lac_peek(d, 0);
    const char second = lac_peek(d, 1);

    for (size_t i = 0; i < LAC_COUNT_OF(known); i++) {
        if (known[i].code[0] == first && known[i].code[1] == second) {
            return &known[i];
        }
    }
    return NULL;
}

/* "operator+" is written "+" between operands, "operator new" as "new". */
static uint32_t put_operator(struct lac_demangler *d, enum lac_name_node_kind kind,
                             const char *name, uint32_t a, uint32_t b)
{
    const char *const symbol = name + strlen("operator") + (name[strlen("operator")] == ' ');

    return lac_node_add(d, &(struct lac_name_node){.kind = (uint8_t)kind,
                                                   .text = symbol,
                                                   .length = (uint32_t)strlen(symbol),
                                                   .a = a,
                                                   .b = b});
}

/* L type value E, or L _Z function E */
uint32_t lac_read_literal(struct lac_demangler *d)
{
    struct lac_name_node literal = {.kind = LAC_NODE_LITERAL};

    if (!lac_take(d, "L")) {
        return lac_node_bad(d);
    }
    if (lac_take(d, "_Z") || lac_take(d, "Z")) {
        const uint32_t function = lac_read_encoding(d, true);

        return lac_take(d, "E") ? function : lac_node_bad(d);
    }
    literal.a = lac_read_type(d);
    literal.text = d->at;
    while (lac_peek(d, 0) != 'E' && d->at < d->end) {
        d->at++;
    }
    literal.length = (uint32_t)(d->at - literal.text);
    return lac_take(d, "E") ? lac_node_add(d, &literal) : lac_node_bad(d);
}

/* Expressions until E. */
static uint32_t read_list(struct lac_demangler *d)
{
    uint32_t first = 0;
    uint32_t last = 0;

    while (!d->is_bad && !lac_take(d, "E")) {
        lac_list_append(d, &first, &last, lac_read_expression(d));
    }
    return first;
}

/* fp [qualifiers] [number] _, fL level p ..., fpT */
static uint32_t read_function_parameter(struct lac_demangler *d)
{
    struct lac_name_node parameter = {.kind = LAC_NODE_PARAMETER};
    uint32_t level;

    if (lac_take(d, "fpT")) {
        return lac_node_add(d, &parameter);
    }
    if (lac_take(d, "fL")) {
        if (!lac_take_number(d, &level) || !lac_take(d, "p")) {
            return lac_node_bad(d);
        }
    } else if (!lac_take(d, "fp")) {
        return lac_node_bad(d);
    }
    (void)lac_read_qualifiers(d);
    if (!lac_take_index(d, 10, &parameter.number)) {
        return lac_node_bad(d);
    }
    parameter.number++;
    return lac_node_add(d, &parameter);
}

/* A name that is looked up later, with its arguments. */
static uint32_t read_base_name(struct lac_demangler *d)
{
    uint32_t name;

    (void)lac_take(d, "on");
    name = lac_read_unqualified(d, 0, NULL);
    if (lac_peek(d, 0) == 'I') {
        name = lac_node_pair(d, LAC_NODE_TEMPLATE, name, lac_read_arguments(d, false));
    }
    return name;
}

/* sr type name, or sr names E name: the names are looked up later and never substituted. */
static uint32_t read_scope(struct lac_demangler *d)
{
    uint32_t name;

    if (!lac_take(d, "sr")) {
        return lac_node_bad(d);
    }
    if (lac_peek(d, 0) < '0' || lac_peek(d, 0) > '9') {
        name = lac_read_type(d);
    } else {
        name = read_base_name(d);
        while (!d->is_bad && !lac_take(d, "E")) {
            name = lac_node_pair(d, LAC_NODE_SCOPED, name, read_base_name(d));
        }
    }
    return lac_node_pair(d, LAC_NODE_SCOPED, name, read_base_name(d));
}

/* cv type expression, or cv type _ expressions E */
static uint32_t read_cast(struct lac_demangler *d)
{
    const uint32_t type = lac_read_type(d);
    uint32_t first = 0;
    uint32_t last = 0;

    if (lac_take(d, "_")) {
        return lac_node_pair(d, LAC_NODE_CAST, type, read_list(d));
    }
    lac_list_append(d, &first, &last, lac_read_expression(d));
    return lac_node_pair(d, LAC_NODE_CAST, type, first);
}

static uint32_t read_conditional(struct lac_demangler *d)
{
    const uint32_t condition = lac_read_expression(d);
    uint32_t first = 0;
    uint32_t last = 0;

    lac_list_append(d, &first, &last, lac_read_expression(d));
    lac_list_append(d, &first, &last, lac_read_expression(d));
    return lac_node_pair(d, LAC_NODE_CONDITIONAL, condition, first);
}

/* What is written as a word and one operand in parentheses; 0: nothing of that comes next. */
static uint32_t read_word(struct lac_demangler *d)
{
    static const struct {
        const char *code;
        const char *word;
        bool is_of_type;
    } known[] = {{"st", "sizeof ", true},   {"sz", "sizeof ", false},  {"at", "alignof ", true},
                 {"az", "alignof ", false}, {"nx", "noexcept", false}, {"ti", "typeid ", true},
                 {"te", "typeid ", false},  {"sZ", "sizeof...", false}};

    for (size_t i = 0; i < LAC_COUNT_OF(known); i++) {
        if (lac_take(d, known[i].code)) {
            return lac_node_add(
                d, &(struct lac_name_node){.kind = LAC_NODE_SIZEOF,
                                           .text = known[i].word,
                                           .length = (uint32_t)strlen(known[i].word),
                                           .a = known[i].is_of_type ? lac_read_type(d)
                                                                    : lac_read_expression(d)});
        }
    }
    return 0;
}

/* What has a form of its own; 0: nothing of that comes next. */
static uint32_t read_form(struct lac_demangler *d)
{
    uint32_t first;

    if (lac_take(d, "cl")) {
        first = lac_read_expression(d);
        return lac_node_pair(d, LAC_NODE_CALL, first, read_list(d));
    }
    if (lac_take(d, "cv")) {
        return read_cast(d);
    }
    if (lac_take(d, "qu")) {
        return read_conditional(d);
    }
    if (lac_take(d, "tl")) {
        first = lac_read_type(d);
        return lac_node_pair(d, LAC_NODE_BRACED, first, read_list(d));
    }
    if (lac_take(d, "il")) {
        return lac_node_pair(d, LAC_NODE_BRACED, 0, read_list(d));
    }
    if (lac_take(d, "sp")) {
        return lac_node_pair(d, LAC_NODE_EXPANSION, lac_read_expression(d), 0);
    }
    if (lac_take(d, "dt")) {
        first = lac_read_expression(d);
        return put_operator(d, LAC_NODE_BINARY, "operator.", first, read_base_name(d));
    }
    if (lac_take(d, "pt")) {
        first = lac_read_expression(d);
        return put_operator(d, LAC_NODE_BINARY, "operator->", first, read_base_name(d));
    }
    return 0;
}

static uint32_t read_any(struct lac_demangler *d)
{
    const struct lac_operator *known;
    uint32_t index;
    uint32_t a;

    (void)lac_take(d, "gs");
    switch (lac_peek(d, 0)) {
    case 'L':
        return lac_read_literal(d);
    case 'T':
        return lac_read_parameter(d, &index);
    case 'f':
        return read_function_parameter(d);
    default:
        break;
    }
    if (lac_peek(d, 0) == 's' && lac_peek(d, 1) == 'r') {
        return read_scope(d);
    }
    if ((lac_peek(d, 0) >= '0' && lac_peek(d, 0) <= '9') ||
        (lac_peek(d, 0) == 'o' && lac_peek(d, 1) == 'n')) {
        return read_base_name(d);
    }
    a = read_word(d);
    a = a != 0 ? a : read_form(d);
    if (a != 0 || d->is_bad) {
        return a;
    }
    known = lac_peek_operator(d);
    if (known == NULL || known->operands == 0) {
        return lac_node_bad(d);
    }
    d->at += 2;
    if (known->operands == 1 &&
        (strcmp(known->code, "pp") == 0 || strcmp(known->code, "mm") == 0) && !lac_take(d, "_")) {
        return put_operator(d, LAC_NODE_POSTFIX, known->name, lac_read_expression(d), 0);
    }
    a = lac_read_expression(d);
    return known->operands == 1
               ? put_operator(d, LAC_NODE_UNARY, known->name, a, 0)
               : put_operator(d, LAC_NODE_BINARY, known->name, a, lac_read_expression(d));
}

uint32_t lac_read_expression(struct lac_demangler *d)
{
    uint32_t expression;

    if (!lac_demangle_enter(d)) {
        return 0;
    }
    expression = read_any(d);
    d->depth--;
    return expression;
}
