#ifndef LAC_ANALYSIS_DEMANGLE_DEMANGLE_PRIVATE_H
#define LAC_ANALYSIS_DEMANGLE_DEMANGLE_PRIVATE_H

/*
 * Private: a mangled name is read into nodes (read_*.c), which are then written (write.c).
 * Substitutions make the nodes a graph without circles: a node names only nodes made before it.
 */

#include "analysis/demangle/demangle.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAC_MANGLED_BYTES_MAX = 1 << 16,
    LAC_DEMANGLED_BYTES_MAX = 1 << 16,
    LAC_DEMANGLE_STEPS_MAX = 1 << 20,
    LAC_DEMANGLE_WORK_MAX = 1 << 28,
    LAC_DEMANGLE_DEPTH_MAX = 256, /**< of the text when read and of the graph when written */
};

enum lac_name_node_kind {
    LAC_NODE_NONE = 0,
    LAC_NODE_TEXT,           /**< text */
    LAC_NODE_LIST,           /**< a: item, b: the rest or 0 */
    LAC_NODE_SCOPED,         /**< a :: b */
    LAC_NODE_TEMPLATE,       /**< a: name, b: list of arguments */
    LAC_NODE_PACK,           /**< b: list of arguments that are one */
    LAC_NODE_PACK_USE,       /**< a: a pack that a parameter means: one element in an expansion */
    LAC_NODE_EXPANSION,      /**< a: pattern of a pack */
    LAC_NODE_QUALIFIED,      /**< a: type, flags */
    LAC_NODE_VENDOR,         /**< a: type, b: the qualifier */
    LAC_NODE_POINTER,        /**< a: type */
    LAC_NODE_LVALUE,         /**< a: type */
    LAC_NODE_RVALUE,         /**< a: type */
    LAC_NODE_COMPLEX,        /**< a: type, text: " _Complex" */
    LAC_NODE_FUNCTION,       /**< a: result or 0, b: list of parameters, flags */
    LAC_NODE_ARRAY,          /**< a: element, b: how many or 0 */
    LAC_NODE_MEMBER_POINTER, /**< a: class, b: type of the member */
    LAC_NODE_VECTOR,         /**< a: element, b: how many */
    LAC_NODE_ENCODING,       /**< a: name, b: function; flags are the name's */
    LAC_NODE_SPECIAL,        /**< text, then a */
    LAC_NODE_SUFFIXED,       /**< a, then " [clone .text]" for each part of the text */
    LAC_NODE_TAGGED,         /**< a [abi:text] */
    LAC_NODE_CONSTRUCTOR,    /**< a: class */
    LAC_NODE_DESTRUCTOR,     /**< a: class */
    LAC_NODE_CONVERSION,     /**< a: type */
    LAC_NODE_LAMBDA,         /**< b: list of parameters, number */
    LAC_NODE_UNNAMED,        /**< number */
    LAC_NODE_DEFAULT,        /**< number: of the parameter, a: what is inside of its default */
    LAC_NODE_AUTO,           /**< number: a parameter of a generic lambda */
    LAC_NODE_LITERAL,        /**< a: type, text */
    LAC_NODE_UNARY,          /**< text: operator, a */
    LAC_NODE_POSTFIX,        /**< a, text: operator */
    LAC_NODE_BINARY,         /**< a, text: operator, b */
    LAC_NODE_CONDITIONAL,    /**< a ? LIST(b, c) */
    LAC_NODE_CALL,           /**< a: what is called, b: list */
    LAC_NODE_CAST,           /**< a: type, b: list */
    LAC_NODE_BRACED,         /**< a: type or 0, b: list in braces */
    LAC_NODE_SIZEOF,         /**< text, a */
    LAC_NODE_PARAMETER,      /**< number: of a function, from 1; 0 is "this" */
    LAC_NODE_DECLTYPE,       /**< a: expression */
};

enum {
    LAC_QUAL_CONST = 1,
    LAC_QUAL_VOLATILE = 2,
    LAC_QUAL_RESTRICT = 4,
    LAC_QUAL_LVALUE = 8,   /**< of a member function */
    LAC_QUAL_RVALUE = 16,  /**< likewise */
    LAC_QUAL_NOEXCEPT = 32 /**< of a function's type */
};

struct lac_name_node {
    uint8_t kind; /**< enum lac_name_node_kind */
    uint8_t flags;
    uint32_t a, b; /**< other nodes, 0 none */
    uint32_t number;
    uint32_t length;
    const char *text; /**< in the mangled name or constant */
};

struct lac_demangler {
    /* of the name that is read */
    const char *at, *end;
    bool is_bad;        /**< not understood, or memory was short */
    unsigned depth;     /**< of the functions that read, or write */
    unsigned in_lambda; /**< parameters of generic lambdas that are being read */
    uint32_t arguments; /**< list that T_ means, 0 none */

    struct lac_name_node *nodes; /**< [0] is none */
    size_t node_count, node_capacity;
    uint32_t *substitutes; /**< what S_, S0_, ... mean: a node, or LAC_SUBSTITUTE_PARAMETER + n */
    size_t substitute_count, substitute_capacity;

    /* of the text that is written */
    char *text;
    size_t used;
    unsigned steps;   /**< of this name */
    uint64_t work;    /**< steps and bytes of all names */
    uint32_t pack_at; /**< which of a pack is written; LAC_PACK_WHOLE: all */
};

#define LAC_PACK_WHOLE UINT32_MAX
/* T_, T0_, ...: they mean what they mean where they are substituted. */
#define LAC_SUBSTITUTE_PARAMETER ((uint32_t)1 << 31)

/** What is known of a function's name when it has been read. */
struct lac_name_state {
    uint8_t flags;      /**< qualifiers of a member function */
    bool has_arguments; /**< ends with template arguments: a result type follows */
    bool has_no_result; /**< a constructor, a destructor or a conversion */
};

/* demangle.c: nodes. All return 0 once something is bad. */
uint32_t lac_node_add(struct lac_demangler *d, const struct lac_name_node *node);
uint32_t lac_node_pair(struct lac_demangler *d, enum lac_name_node_kind kind, uint32_t a,
                       uint32_t b);
uint32_t lac_node_text(struct lac_demangler *d, const char *text, size_t length);
uint32_t lac_node_bad(struct lac_demangler *d);
/** Append to a list that is being made; *last is its last cell, 0 at first. */
void lac_list_append(struct lac_demangler *d, uint32_t *first, uint32_t *last, uint32_t item);
uint32_t lac_substitute_add(struct lac_demangler *d, uint32_t node);
/** Count one more function inside another. @return false: too many, and the name is bad */
bool lac_demangle_enter(struct lac_demangler *d);

/* demangle.c: characters */
static inline char lac_peek(const struct lac_demangler *d, size_t ahead)
{
    return (size_t)(d->end - d->at) > ahead ? d->at[ahead] : '\0';
}
/** Take these characters, if they come next. */
bool lac_take(struct lac_demangler *d, const char *text);
/** A number in base 10. False: there is none. */
bool lac_take_number(struct lac_demangler *d, uint32_t *ret_number);
/** "_" is 0, "0_" is 1, ... in base 10 or 36. */
bool lac_take_index(struct lac_demangler *d, unsigned base, uint32_t *ret_index);

/* read_name.c */
uint32_t lac_read_encoding(struct lac_demangler *d, bool is_outermost);
uint32_t lac_read_name(struct lac_demangler *d, struct lac_name_state *state);
/** The last part of a name. `scope`: what stands before it, for constructors; 0 none. */
uint32_t lac_read_unqualified(struct lac_demangler *d, uint32_t scope,
                              struct lac_name_state *state);
uint32_t lac_read_source_name(struct lac_demangler *d);
/** I ... E. `is_function`: T_ means these from now on. */
uint32_t lac_read_arguments(struct lac_demangler *d, bool is_function);
uint32_t lac_read_substitution(struct lac_demangler *d);
/** T_, T0_, ...; *ret_index is which. */
uint32_t lac_read_parameter(struct lac_demangler *d, uint32_t *ret_index);

/* read_type.c */
uint32_t lac_read_type(struct lac_demangler *d);
/** Types until the end of a function: the result first where there is one. */
uint32_t lac_read_function(struct lac_demangler *d, bool has_result);
uint8_t lac_read_qualifiers(struct lac_demangler *d);

/* read_expression.c */
uint32_t lac_read_expression(struct lac_demangler *d);
uint32_t lac_read_literal(struct lac_demangler *d);

struct lac_operator {
    char code[3];
    uint8_t operands; /**< 0: a name only, in no expression */
    const char *name; /**< "operator+", "operator new" */
};
/** The operator that comes next, or NULL; nothing is taken. */
const struct lac_operator *lac_peek_operator(const struct lac_demangler *d);

/* write.c */
void lac_demangle_write(struct lac_demangler *d, uint32_t node);

#endif
