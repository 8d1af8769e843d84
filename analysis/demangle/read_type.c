/* Types. */

#include "analysis/demangle/demangle_private.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <string.h>

uint8_t lac_read_qualifiers(struct lac_demangler *d)
{
    uint8_t flags = 0;

    flags |= lac_take(d, "r") ? LAC_QUAL_RESTRICT : 0;
    flags |= lac_take(d, "V") ? LAC_QUAL_VOLATILE : 0;
    flags |= lac_take(d, "K") ? LAC_QUAL_CONST : 0;
    return flags;
}

static const char *builtin(char code)
{
    static const char *const names['z' - 'a' + 1] = {
        ['a' - 'a'] = "signed char", ['b' - 'a'] = "bool",
        ['c' - 'a'] = "char",        ['d' - 'a'] = "double",
        ['e' - 'a'] = "long double", ['f' - 'a'] = "float",
        ['g' - 'a'] = "__float128",  ['h' - 'a'] = "unsigned char",
        ['i' - 'a'] = "int",         ['j' - 'a'] = "unsigned int",
        ['l' - 'a'] = "long",        ['m' - 'a'] = "unsigned long",
        ['n' - 'a'] = "__int128",    ['o' - 'a'] = "unsigned __int128",
        ['s' - 'a'] = "short",       ['t' - 'a'] = "unsigned short",
        ['v' - 'a'] = "void",        ['w' - 'a'] = "wchar_t",
        ['x' - 'a'] = "long long",   ['y' - 'a'] = "unsigned long long",
        ['z' - 'a'] = "...",
    };
    return code >= 'a' && code <= 'z' ? names[code - 'a'] : NULL;
}

/* Builtin types of two letters; NULL: no such. */
static const char *builtin_of_two(struct lac_demangler *d)
{
    static const struct {
        const char *code;
        const char *name;
    } known[] = {{"Dd", "decimal64"},      {"De", "decimal128"},
                 {"Df", "decimal32"},      {"Dh", "half"},
                 {"Di", "char32_t"},       {"Ds", "char16_t"},
                 {"Du", "char8_t"},        {"Da", "auto"},
                 {"Dc", "decltype(auto)"}, {"DF16b", "std::bfloat16_t"},
                 {"DF16_", "_Float16"},    {"DF32_", "_Float32"},
                 {"DF64_", "_Float64"},    {"Dn", "decltype(nullptr)"}};

    for (size_t i = 0; i < LAC_COUNT_OF(known); i++) {
        if (lac_take(d, known[i].code)) {
            return known[i].name;
        }
    }
    return NULL;
}

uint32_t lac_read_function(struct lac_demangler *d, bool has_result)
{
    struct lac_name_node function = {.kind = LAC_NODE_FUNCTION};
    uint32_t last = 0;

    if (has_result) {
        function.a = lac_read_type(d);
    }
    if (lac_take(d, "v")) { /* no parameters */
        return lac_node_add(d, &function);
    }
    do {
        lac_list_append(d, &function.b, &last, lac_read_type(d));
    } while (!d->is_bad && strchr("E.", lac_peek(d, 0)) == NULL &&
             !(strchr("RO", lac_peek(d, 0)) != NULL && lac_peek(d, 1) == 'E'));
    return lac_node_add(d, &function);
}

/* F [Y] types [R|O] E */
static uint32_t read_function_type(struct lac_demangler *d, uint8_t flags)
{
    uint32_t function;

    (void)lac_take(d, "Y");
    function = lac_read_function(d, true);
    flags |= lac_take(d, "R") ? LAC_QUAL_LVALUE : lac_take(d, "O") ? LAC_QUAL_RVALUE : 0;
    if (d->is_bad || !lac_take(d, "E")) {
        return lac_node_bad(d);
    }
    d->nodes[function].flags = flags;
    return function;
}

/* Digits or an expression, then _. 0: none of both. */
static uint32_t read_dimension(struct lac_demangler *d)
{
    const char *const from = d->at;
    uint32_t number;
    uint32_t dimension = 0;

    if (lac_take_number(d, &number)) {
        dimension = lac_node_text(d, from, (size_t)(d->at - from));
    } else if (!d->is_bad && lac_peek(d, 0) != '_') {
        dimension = lac_read_expression(d);
    }
    return lac_take(d, "_") ? dimension : lac_node_bad(d);
}

static uint32_t read_array(struct lac_demangler *d)
{
    const uint32_t dimension = read_dimension(d);

    return lac_node_pair(d, LAC_NODE_ARRAY, lac_read_type(d), dimension);
}

static uint32_t read_member_pointer(struct lac_demangler *d)
{
    const uint32_t of_class = lac_read_type(d);

    return lac_node_pair(d, LAC_NODE_MEMBER_POINTER, of_class, lac_read_type(d));
}

static uint32_t read_vector(struct lac_demangler *d)
{
    const uint32_t dimension = read_dimension(d);

    return lac_node_pair(d, LAC_NODE_VECTOR, lac_read_type(d), dimension);
}

static uint32_t read_decltype(struct lac_demangler *d)
{
    const uint32_t expression = lac_read_expression(d);

    return lac_take(d, "E") ? lac_node_pair(d, LAC_NODE_DECLTYPE, expression, 0) : lac_node_bad(d);
}

/* What follows D; *ret_is_new false: a type that is not substituted. */
static uint32_t read_d(struct lac_demangler *d, bool *ret_is_new)
{
    const char *const name = builtin_of_two(d);

    if (name != NULL) {
        *ret_is_new = false;
        return lac_node_text(d, name, strlen(name));
    }
    if (lac_take(d, "Dp")) {
        return lac_node_pair(d, LAC_NODE_EXPANSION, lac_read_type(d), 0);
    }
    if (lac_take(d, "Dt") || lac_take(d, "DT")) {
        return read_decltype(d);
    }
    if (lac_take(d, "Dv")) {
        return read_vector(d);
    }
    if (lac_take(d, "DoF")) {
        return read_function_type(d, LAC_QUAL_NOEXCEPT);
    }
    return lac_node_bad(d);
}

/* A type that is named by an earlier one or by a template's parameter, perhaps with arguments. */
static uint32_t read_reference(struct lac_demangler *d, bool *ret_is_new)
{
    const bool is_parameter = lac_peek(d, 0) == 'T';
    uint32_t index = 0;
    uint32_t type = is_parameter ? lac_read_parameter(d, &index) : lac_read_substitution(d);

    *ret_is_new = false;
    if (is_parameter) {
        (void)lac_substitute_add(d, LAC_SUBSTITUTE_PARAMETER + index);
    }
    if (!d->is_bad && lac_peek(d, 0) == 'I') {
        type = lac_node_pair(d, LAC_NODE_TEMPLATE, type, lac_read_arguments(d, false));
        *ret_is_new = true;
    }
    return type;
}

static uint32_t read_qualified(struct lac_demangler *d)
{
    const uint8_t flags = lac_read_qualifiers(d);

    if (lac_take(d, "F")) { /* of a member function */
        return read_function_type(d, flags);
    }
    return lac_node_add(d, &(struct lac_name_node){
                               .kind = LAC_NODE_QUALIFIED, .flags = flags, .a = lac_read_type(d)});
}

static uint32_t read_vendor(struct lac_demangler *d)
{
    const uint32_t name = lac_read_source_name(d);
    uint32_t qualifier = name;

    if (lac_peek(d, 0) == 'I') {
        qualifier = lac_node_pair(d, LAC_NODE_TEMPLATE, name, lac_read_arguments(d, false));
    }
    return lac_node_pair(d, LAC_NODE_VENDOR, lac_read_type(d), qualifier);
}

static uint32_t read_compound(struct lac_demangler *d, bool *ret_is_new)
{
    switch (lac_peek(d, 0)) {
    case 'r':
    case 'V':
    case 'K':
        return read_qualified(d);
    case 'P':
        d->at++;
        return lac_node_pair(d, LAC_NODE_POINTER, lac_read_type(d), 0);
    case 'R':
        d->at++;
        return lac_node_pair(d, LAC_NODE_LVALUE, lac_read_type(d), 0);
    case 'O':
        d->at++;
        return lac_node_pair(d, LAC_NODE_RVALUE, lac_read_type(d), 0);
    case 'C':
        d->at++;
        return lac_node_pair(d, LAC_NODE_COMPLEX, lac_read_type(d), 0);
    case 'F':
        d->at++;
        return read_function_type(d, 0);
    case 'A':
        d->at++;
        return read_array(d);
    case 'M':
        d->at++;
        return read_member_pointer(d);
    case 'U':
        if (lac_peek(d, 1) == 'l' || lac_peek(d, 1) == 't') {
            return lac_read_name(d, NULL);
        }
        d->at++;
        return read_vendor(d);
    case 'D':
        return read_d(d, ret_is_new);
    case 'u':
        d->at++;
        return lac_read_source_name(d);
    case 'T':
        if (strchr("sue", lac_peek(d, 1)) != NULL && lac_peek(d, 1) != '\0') {
            d->at += 2; /* struct, union, enum */
            return lac_read_name(d, NULL);
        }
        return read_reference(d, ret_is_new);
    case 'S':
        if (lac_peek(d, 1) != 't') {
            return read_reference(d, ret_is_new);
        }
        return lac_read_name(d, NULL);
    default:
        return lac_read_name(d, NULL);
    }
}

uint32_t lac_read_type(struct lac_demangler *d)
{
    const char *const name = builtin(lac_peek(d, 0));
    bool is_new = true;
    uint32_t type;

    if (!lac_demangle_enter(d)) {
        return 0;
    }
    if (name != NULL) {
        d->at++;
        type = lac_node_text(d, name, strlen(name));
    } else {
        type = read_compound(d, &is_new);
        if (is_new) {
            (void)lac_substitute_add(d, type);
        }
    }
    d->depth--;
    return type;
}
