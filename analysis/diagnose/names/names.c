/* The name tables and how they are matched. The language is described in name_table.def. */

#include "analysis/diagnose/names/names.h"

#include "analysis/diagnose/names/names_file.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

static const struct lac_names_row rows[] = {
#define LAC_NAME_TABLE_VERSION(version)
#define LAC_NAME_ROW(table, value, pattern, example)                                               \
    {LAC_NAMES_##table, (int)(value), (pattern), (example)},
#include "analysis/diagnose/names/name_table.def"
#undef LAC_NAME_ROW
#undef LAC_NAME_TABLE_VERSION
};
enum { ROW_COUNT = LAC_COUNT_OF(rows) };

enum {
#define LAC_NAME_TABLE_VERSION(version) TABLE_VERSION = (version)
#define LAC_NAME_ROW(table, value, pattern, example)
#include "analysis/diagnose/names/name_table.def"
#undef LAC_NAME_ROW
#undef LAC_NAME_TABLE_VERSION
};

uint32_t lac_names_version(void)
{
    return TABLE_VERSION;
}

const struct lac_names_row *lac_names_rows(uint32_t *ret_count)
{
    *ret_count = ROW_COUNT;
    return rows;
}

/** One term of a pattern, its marks taken off. */
struct term {
    const char *text;
    size_t length;
    bool is_absent, is_at_start, is_at_word, is_case_blind, is_own_name;
};

static char fold(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (char)(c + ('a' - 'A'));
    }
    return c;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
    return is_digit(c) || (fold(c) >= 'a' && fold(c) <= 'z');
}

/** Whether the term's text stands at name[at]. */
static bool term_stands_at(const struct term *term, const char *name, size_t length, size_t at)
{
    if (term->is_at_word && at > 0 && is_alnum(name[at - 1])) {
        return false;
    }
    size_t pos = at;
    for (size_t i = 0; i < term->length; i++) {
        char want = term->text[i];
        if (want == '$' && i + 1 == term->length) {
            return pos == length;
        }
        if (pos >= length) {
            return false;
        }
        if (want == '@') {
            if (!is_digit(name[pos])) {
                return false;
            }
            while (pos < length && is_digit(name[pos])) {
                pos++;
            }
            continue;
        }
        char have = name[pos];
        if (term->is_case_blind) {
            have = fold(have);
        }
        if (have != want) {
            return false;
        }
        pos++;
    }
    return true;
}

static bool term_occurs(const struct term *term, const char *name, size_t length)
{
    if (term->is_at_start) {
        return term_stands_at(term, name, length, 0);
    }
    char first = term->text[0];
    bool is_plain = !term->is_case_blind && first != '@';
    for (size_t at = 0; at < length; at++) {
        if (is_plain) {
            const char *hit = memchr(name + at, first, length - at);
            if (hit == NULL) {
                return false;
            }
            at = (size_t)(hit - name);
        }
        if (term_stands_at(term, name, length, at)) {
            return true;
        }
    }
    return false;
}

/** Length of the function's own name: up to the first '<' or '(' that opens
 *  no anonymous namespace. */
static size_t own_name_length(const char *name, size_t length)
{
    static const char anonymous[] = "(anonymous namespace)";
    for (size_t i = 0; i < length; i++) {
        if (name[i] == '<') {
            return i;
        }
        if (name[i] != '(') {
            continue;
        }
        if (length - i < sizeof(anonymous) - 1) {
            return i;
        }
        if (memcmp(name + i, anonymous, sizeof(anonymous) - 1) != 0) {
            return i;
        }
        i += sizeof(anonymous) - 2;
    }
    return length;
}

/** Next term of the pattern, or false at its end. */
static bool term_next(const char **pattern, struct term *ret_term)
{
    const char *at = *pattern;
    if (*at == '\0') {
        return false;
    }
    struct term term = {0};
    for (;; at++) {
        if (*at == '!') {
            term.is_absent = true;
        } else if (*at == '^') {
            term.is_at_start = true;
        } else if (*at == '%') {
            term.is_at_word = true;
        } else if (*at == '~') {
            term.is_case_blind = true;
        } else if (*at == '*') {
            term.is_own_name = true;
        } else {
            break;
        }
    }
    term.text = at;
    while (*at != '\0' && *at != '&') {
        at++;
    }
    term.length = (size_t)(at - term.text);
    assert(term.length > 0);
    *pattern = *at == '&' ? at + 1 : at;
    *ret_term = term;
    return true;
}

static bool pattern_matches(const char *pattern, const char *name, size_t length)
{
    struct term term;
    while (term_next(&pattern, &term)) {
        size_t within = term.is_own_name ? own_name_length(name, length) : length;
        if (term_occurs(&term, name, within) == term.is_absent) {
            return false;
        }
    }
    return true;
}

/** First row of each table, and one past the last: rows of a table are contiguous. */
static void table_bounds(enum lac_names_table table, uint32_t *ret_first, uint32_t *ret_end)
{
    static const struct lac_names_row *const all = rows;
    uint32_t first = 0;
    while (first < ROW_COUNT && all[first].table != table) {
        first++;
    }
    uint32_t end = first;
    while (end < ROW_COUNT && all[end].table == table) {
        end++;
    }
    *ret_first = first;
    *ret_end = end;
}

const struct lac_names_row *lac_names_match(enum lac_names_table table, const char *name,
                                            size_t length)
{
    uint32_t first = 0;
    uint32_t end = 0;
    table_bounds(table, &first, &end);
    for (uint32_t i = first; i < end; i++) {
        if (pattern_matches(rows[i].pattern, name, length)) {
            return &rows[i];
        }
    }
    return NULL;
}

/** The first row of that table that somebody added and that matches, or NULL. */
static const struct lac_names_row *match_own(const struct lac_names *names,
                                             enum lac_names_table table, const char *name,
                                             size_t length)
{
    uint32_t count = 0;
    const struct lac_names_row *own = lac_names_own_rows(names, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (own[i].table == table && pattern_matches(own[i].pattern, name, length)) {
            return &own[i];
        }
    }
    return NULL;
}

/** Rows that somebody added first, then the table's. */
static const struct lac_names_row *match(const struct lac_names *names, enum lac_names_table table,
                                         const char *name, size_t length)
{
    const struct lac_names_row *row = match_own(names, table, name, length);
    return row != NULL ? row : lac_names_match(table, name, length);
}

bool lac_names_pattern_matches(const char *pattern, const char *name, size_t length)
{
    return pattern_matches(pattern, name, length);
}

static int match_value(const struct lac_names *names, enum lac_names_table table, const char *name,
                       size_t length, int otherwise)
{
    const struct lac_names_row *row = match(names, table, name, length);
    return row != NULL ? row->value : otherwise;
}

/** The narrow rule of layout.kernel_count; fixed by the analysis format, so no table row. */
bool lac_names_is_strict_layout(const char *name, size_t length)
{
    static const struct term anywhere[] = {
        {.text = "nchwtonhwc", .length = 10, .is_case_blind = true},
        {.text = "nhwctonchw", .length = 10, .is_case_blind = true},
        {.text = "swapdimension", .length = 13, .is_case_blind = true},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(anywhere); i++) {
        if (term_occurs(&anywhere[i], name, length)) {
            return true;
        }
    }
    if (length >= 2 && name[0] == '_' && fold(name[1]) == 'z') {
        return false;
    }
    static const struct term transpose = {.text = "transpose", .length = 9, .is_case_blind = true};
    return term_occurs(&transpose, name, own_name_length(name, length));
}

static enum lac_tensor_core tensor_core_of(const struct lac_names *names, const char *name,
                                           size_t length, enum lac_family family)
{
    bool is_matrix_work =
        family == LAC_FAMILY_GEMM || family == LAC_FAMILY_CONV || family == LAC_FAMILY_ATTENTION;
    if (!is_matrix_work) {
        bool is_open = family == LAC_FAMILY_OTHER || family == LAC_FAMILY_TRITON;
        return is_open ? LAC_TENSOR_CORE_UNKNOWN : LAC_TENSOR_CORE_NO;
    }
    if (match_own(names, LAC_NAMES_TENSOR_YES, name, length) != NULL) {
        return LAC_TENSOR_CORE_YES;
    }
    if (match(names, LAC_NAMES_TENSOR_VETO, name, length) != NULL) {
        return LAC_TENSOR_CORE_NO;
    }
    if (lac_names_match(LAC_NAMES_TENSOR_YES, name, length) != NULL) {
        return LAC_TENSOR_CORE_YES;
    }
    return LAC_TENSOR_CORE_UNKNOWN;
}

/** Matrix-vector products and depthwise convolutions gain nothing from tensor cores. */
static bool is_eligible(const char *name, size_t length, enum lac_family family)
{
    if (family == LAC_FAMILY_ATTENTION) {
        return true;
    }
    if (family != LAC_FAMILY_GEMM && family != LAC_FAMILY_CONV) {
        return false;
    }
    static const char *const never[] = {"gemv", "%dot_kernel", "~depthwise", "dgemm", "zgemm"};
    for (size_t i = 0; i < LAC_COUNT_OF(never); i++) {
        if (pattern_matches(never[i], name, length)) {
            return false;
        }
    }
    return true;
}

void lac_names_classify(const char *name, size_t length, struct lac_name_class *ret_class)
{
    lac_names_classify_with(NULL, name, length, ret_class);
}

/** "CUDA graph", "CUDA Graph 3": what recorders call a graph that has one record. No kernel's name
 *  begins like that. */
static bool is_whole_graph(const char *name, size_t length)
{
    static const char words[] = "cuda graph";
    size_t at = 0;
    while (at < length && at < sizeof(words) - 1 && fold(name[at]) == words[at]) {
        at++;
    }
    return at == sizeof(words) - 1 && (length == at || name[at] == ' ');
}

void lac_names_classify_with(const struct lac_names *names, const char *name, size_t length,
                             struct lac_name_class *ret_class)
{
    assert(ret_class != NULL);
    assert(name != NULL || length == 0);
    struct lac_name_class name_class = {0};
    name_class.is_strict_layout = lac_names_is_strict_layout(name, length);
    name_class.is_graph = is_whole_graph(name, length);
    const struct lac_names_row *own = match_own(names, LAC_NAMES_FAMILY, name, length);
    if (match_value(names, LAC_NAMES_COMM, name, length, 0) != 0) {
        name_class.is_comm = true;
        name_class.family = LAC_FAMILY_COMM;
        name_class.tensor_core = LAC_TENSOR_CORE_NO;
        *ret_class = name_class;
        return;
    }
    name_class.layout =
        (enum lac_layout_class)match_value(names, LAC_NAMES_LAYOUT, name, length, LAC_LAYOUT_NONE);
    if (own != NULL) { /* who says what it is, says that it is not something else */
        name_class.family = (enum lac_family)own->value;
        name_class.layout = LAC_LAYOUT_NONE;
    } else if (name_class.layout == LAC_LAYOUT_L || name_class.layout == LAC_LAYOUT_PD) {
        name_class.family = LAC_FAMILY_LAYOUT;
    } else if (name_class.layout == LAC_LAYOUT_U || name_class.layout == LAC_LAYOUT_K) {
        name_class.family = LAC_FAMILY_COPY;
    } else {
        name_class.family =
            (enum lac_family)match_value(names, LAC_NAMES_FAMILY, name, length, LAC_FAMILY_OTHER);
    }
    name_class.tensor_core = tensor_core_of(names, name, length, name_class.family);
    name_class.is_eligible = is_eligible(name, length, name_class.family);
    *ret_class = name_class;
}

enum lac_api_class lac_names_api_class_with(const struct lac_names *names, const char *name,
                                            size_t length)
{
    return (enum lac_api_class)match_value(names, LAC_NAMES_API, name, length, LAC_API_OTHER);
}

/** Skip `word` at the start, whatever its case. */
static bool skip_word(const char **name, size_t *length, const char *word)
{
    size_t word_length = strlen(word);
    if (*length < word_length) {
        return false;
    }
    for (size_t i = 0; i < word_length; i++) {
        if (fold((*name)[i]) != word[i]) {
            return false;
        }
    }
    *name += word_length;
    *length -= word_length;
    return true;
}

/** "step 12", "train_step", "Iteration_7", "global_step#3": a word for a step, then no letter
 *  but in a separate word. */
static bool is_step_like(const char *name, size_t length)
{
    static const char *const before[] = {"training", "train", "global"};
    static const char *const words[] = {"iteration", "iter", "step", "batch"};
    for (size_t i = 0; i < LAC_COUNT_OF(before); i++) {
        if (skip_word(&name, &length, before[i])) {
            break;
        }
    }
    while (length > 0 && (*name == '_' || *name == ' ' || *name == '-')) {
        name++;
        length--;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(words); i++) {
        if (!skip_word(&name, &length, words[i])) {
            continue;
        }
        while (length > 0 && !is_alnum(*name)) {
            name++;
            length--;
        }
        return length == 0 || is_digit(*name);
    }
    return false;
}

/** "execute_context_1(888)_generation_0(0)", "execute_model": an iteration of a serving engine. */
static bool is_iteration_of_engine(const char *name, size_t length)
{
    return skip_word(&name, &length, "execute_context_") ||
           skip_word(&name, &length, "execute_model") ||
           skip_word(&name, &length, "execute_generation_");
}

enum lac_host_class lac_names_host_class(const char *name, size_t length)
{
    return lac_names_host_class_with(NULL, name, length);
}

enum lac_host_class lac_names_host_class_with(const struct lac_names *names, const char *name,
                                              size_t length)
{
    const struct lac_names_row *own = match_own(names, LAC_NAMES_HOST, name, length);
    if (own != NULL) {
        return (enum lac_host_class)own->value;
    }
    if (is_step_like(name, length) || is_iteration_of_engine(name, length)) {
        return LAC_HOST_STEP_LIKE;
    }
    return (enum lac_host_class)match_value(NULL, LAC_NAMES_HOST, name, length, LAC_HOST_OTHER);
}

const char *lac_tensor_core_name(enum lac_tensor_core tensor_core)
{
    if (tensor_core == LAC_TENSOR_CORE_YES) {
        return "yes";
    }
    return tensor_core == LAC_TENSOR_CORE_NO ? "no" : "unknown";
}
