/*
 * The event parser, compiled once for each instruction set: chrome_parse_avx2.c and
 * chrome_parse_scalar.c define LAC_PARSER_NAME (and LAC_SCAN_AVX2) and include this. Not a header:
 * it defines everything static but the parser itself.
 */

#include "analysis/import/chrome/chrome_parse.h"
#include "analysis/import/chrome/json_scan.h"
#include "analysis/model/grow.h"

/* Numbers of fewer characters stay in the template: a number costs 8 bytes an event, and short
 * ones mostly repeat. Nested numbers (shapes, grids) repeat even more. */
enum { EXTRACT_CHARS = 5, EXTRACT_NESTED_CHARS = 8, STRING_GROWTH = 6 };

/* Room that copying needs beyond the bytes it copies: vectors are stored whole. */
enum { COPY_ROOM = 64 };

/* State of copying one value: everything hot is local to copy_value(). */
struct copier {
    struct lac_chrome_scratch *scratch;
    struct lac_json_repairs *repairs;
    const uint8_t *end;
    uint8_t *out;
    uint32_t number_count;
    bool extract;
};

#define IS_DIGIT(c) ((uint8_t)((c) - '0') < 10)

/* Whether c cannot go on a number or word; quick, for the usual case. */
LAC_SCAN_INLINE bool ends_word(uint8_t c)
{
    return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n';
}

LAC_SCAN_TARGET static bool is_word(uint8_t c)
{
    return IS_DIGIT(c) || (uint8_t)((c | 0x20) - 'a') < 26 || c == '+' || c == '-' || c == '.' ||
           c == '_';
}

/* A string that is not plain: leave the fast loop for the rest of it. */
LAC_SCAN_TARGET static enum lac_parse copy_string_slow(struct copier *copier, const uint8_t **at)
{
    struct lac_chrome_scratch *scratch = copier->scratch;
    const uint8_t *p = *at;
    const uint8_t *close = lac_json_string_end(p, copier->end);
    if (close == NULL) {
        return LAC_PARSE_MORE;
    }
    size_t used = (size_t)(copier->out - scratch->text);
    size_t more =
        (size_t)(close + 1 - p) * STRING_GROWTH + (size_t)(copier->end - close) + COPY_ROOM;
    if (!lac_chrome_scratch_text(scratch, used, more)) {
        return LAC_PARSE_NOMEM;
    }
    copier->out = scratch->text + used;
    *at = lac_json_string_copy(p, copier->end, &copier->out, copier->repairs);
    return *at ? LAC_PARSE_OK : LAC_PARSE_MORE;
}

/* Words that JSON has not (NaN, inf, 007) become strings, so that nothing is lost. */
LAC_SCAN_TARGET static enum lac_parse copy_word(struct copier *copier, const uint8_t **at)
{
    const uint8_t *p = *at, *q = p;
    while (is_word(*q)) {
        q++;
    }
    if (q >= copier->end) {
        return LAC_PARSE_MORE;
    }
    size_t length = (size_t)(q - p);
    if (length == 0) {
        return LAC_PARSE_BAD;
    }
    bool known = (length == 4 && (memcmp(p, "true", 4) == 0 || memcmp(p, "null", 4) == 0)) ||
                 (length == 5 && memcmp(p, "false", 5) == 0);
    if (!known) {
        copier->repairs->odd_literal++;
        /* two quotes more than the input has: the room for that is in COPY_ROOM only once */
        size_t used = (size_t)(copier->out - copier->scratch->text);
        if (!lac_chrome_scratch_text(copier->scratch, used,
                                     (size_t)(copier->end - p) + 2 + COPY_ROOM)) {
            return LAC_PARSE_NOMEM;
        }
        copier->out = copier->scratch->text + used;
        *copier->out++ = '"';
    }
    memcpy(copier->out, p, length);
    copier->out += length;
    if (!known) {
        *copier->out++ = '"';
    }
    *at = q;
    return LAC_PARSE_OK;
}

LAC_SCAN_INLINE bool take_number(struct copier *copier, int64_t bits, uint8_t placeholder)
{
    if (copier->number_count >= copier->scratch->number_capacity &&
        !lac_chrome_scratch_number(copier->scratch, copier->number_count)) {
        return false;
    }
    copier->scratch->numbers[copier->number_count++] = bits;
    *copier->out++ = placeholder;
    return true;
}

/* Whether [p, q) is a JSON number (it consists of number characters only). */
LAC_SCAN_TARGET static bool is_json_number(const uint8_t *p, const uint8_t *q)
{
    p += *p == '-';
    if (p == q || !IS_DIGIT(*p) || (*p == '0' && q - p > 1 && IS_DIGIT(p[1]))) {
        return false;
    }
    while (p < q && IS_DIGIT(*p)) {
        p++;
    }
    if (p < q && *p == '.') {
        p++;
        if (p == q || !IS_DIGIT(*p)) {
            return false;
        }
        while (p < q && IS_DIGIT(*p)) {
            p++;
        }
    }
    if (p < q && (*p | 0x20) == 'e') {
        p++;
        p += p < q && (*p == '+' || *p == '-');
        if (p == q) {
            return false;
        }
        while (p < q && IS_DIGIT(*p)) {
            p++;
        }
    }
    return p == q;
}

/* The number at *at (a digit or '-'); `wide` is the length from which it is taken out. */
LAC_SCAN_INLINE enum lac_parse copy_number(struct copier *copier, const uint8_t **at,
                                           uint32_t depth, const struct lac_json_span *key)
{
    const uint8_t *p = *at, *q = p + (*p == '-');
    const uint8_t *digits = q;
    uint64_t value = 0;
    while (IS_DIGIT(*q)) {
        value = value * 10 + (uint64_t)(*q++ - '0');
    }
    bool whole = *q != '.' && (*q | 0x20) != 'e';
    if (!whole) {
        while (IS_DIGIT(*q) || *q == '.' || (*q | 0x20) == 'e' || *q == '+' || *q == '-') {
            q++;
        }
    }
    size_t length = (size_t)(q - p);
    if (!ends_word(*q) || (*digits == '0' && length > 1)) {
        if (q >= copier->end || is_word(*q) || !is_json_number(p, q)) {
            return copy_word(copier, at);
        }
    }
    if (digits == q) {
        return copy_word(copier, at);
    }
    *at = q;
    if (copier->extract && (length >= EXTRACT_CHARS || depth == 1)) {
        bool take =
            length >= EXTRACT_NESTED_CHARS || (whole && copier->scratch->extract_all_integers);
        if (depth == 1 && !(whole && copier->scratch->extract_all_integers)) {
            enum lac_key_class key_class = lac_chrome_key_class(key->at, key->size_bytes);
            take = key_class == LAC_KEY_VARIES ||
                   (key_class == LAC_KEY_BY_LENGTH && length >= EXTRACT_CHARS);
        }
        double real = 0;
        if (take && whole && q - digits <= 18 && !(value == 0 && *p == '-')) {
            int64_t number = *p == '-' ? -(int64_t)value : (int64_t)value;
            return take_number(copier, number, 1) ? LAC_PARSE_OK : LAC_PARSE_NOMEM;
        }
        if (take && !whole && lac_decimal_is_shortest(p, length, &real)) {
            int64_t bits;
            memcpy(&bits, &real, sizeof(bits));
            return take_number(copier, bits, 2) ? LAC_PARSE_OK : LAC_PARSE_NOMEM;
        }
    }
    if (!whole && !is_json_number(p, q)) {
        *at = p;
        return copy_word(copier, at);
    }
    memcpy(copier->out, p, length);
    copier->out += length;
    return LAC_PARSE_OK;
}

/* The string at *at (its opening quote). */
LAC_SCAN_INLINE enum lac_parse copy_string(struct copier *copier, const uint8_t **at)
{
    const uint8_t *p = *at;
    *copier->out++ = *p++;
    *at = lac_scan_copy(p, &copier->out);
    if (**at != '"') {
        return copy_string_slow(copier, at);
    }
    *copier->out++ = *(*at)++;
    return LAC_PARSE_OK;
}

/* What the end of the text, or else a byte that cannot be there, means. */
LAC_SCAN_INLINE enum lac_parse wrong_byte(const struct copier *copier, const uint8_t *p)
{
    return p >= copier->end ? LAC_PARSE_MORE : LAC_PARSE_BAD;
}

LAC_SCAN_INLINE enum lac_parse copy_scalar(struct copier *copier, const uint8_t **at,
                                           uint32_t depth, const struct lac_json_span *key)
{
    if (**at == '"') {
        return copy_string(copier, at);
    }
    if (IS_DIGIT(**at) || **at == '-') {
        return copy_number(copier, at, depth, key);
    }
    return copy_word(copier, at);
}

/* A key and its colon. */
LAC_SCAN_INLINE enum lac_parse copy_key(struct copier *copier, const uint8_t **at,
                                        struct lac_json_span *key)
{
    const uint8_t *begin = *at;
    if (*begin != '"') {
        return wrong_byte(copier, begin);
    }
    enum lac_parse parse = copy_string(copier, at);
    if (parse != LAC_PARSE_OK) {
        return parse;
    }
    *key = (struct lac_json_span){begin + 1, (uint32_t)(*at - begin - 2), false};
    *at = lac_skip_space(*at);
    if (**at != ':') {
        return wrong_byte(copier, *at);
    }
    *copier->out++ = *(*at)++;
    return LAC_PARSE_OK;
}

/*
 * Copy one value from p: a loop over tokens with a bit for each open bracket (1: object).
 * Invariant at every token: the room left in the output is at least what is left of the input
 * plus COPY_ROOM; what can grow (strings with escapes, odd words) makes room itself.
 */
LAC_SCAN_TARGET static enum lac_parse copy_value(struct copier *copier, const uint8_t *p,
                                                 const uint8_t **ret_next)
{
    struct lac_json_span key = {NULL, 0, false};
    uint64_t objects = 0;
    uint32_t depth = 0;
    enum lac_parse parse = LAC_PARSE_OK;

value:
    p = lac_skip_space(p);
    if (*p == '{' || *p == '[') {
        if (depth >= copier->scratch->depth_max) {
            parse = LAC_PARSE_DEPTH;
            goto done;
        }
        bool object = *p == '{';
        objects = objects << 1 | object;
        depth++;
        *copier->out++ = *p;
        p = lac_skip_space(p + 1);
        if (*p == (object ? '}' : ']')) {
            goto close;
        }
        goto element;
    }
    parse = copy_scalar(copier, &p, depth, &key);
    if (parse != LAC_PARSE_OK) {
        goto done;
    }

after:
    if (depth == 0) {
        goto done;
    }
    p = lac_skip_space(p);
    if (*p == ',') {
        *copier->out++ = *p;
        p = lac_skip_space(p + 1);
        if (*p != '}' && *p != ']') {
            goto element;
        }
        copier->repairs->trailing_comma++;
        copier->out--;
    }

close:
    if (*p != ((objects & 1) ? '}' : ']')) {
        parse = wrong_byte(copier, p);
        goto done;
    }
    *copier->out++ = *p++;
    objects >>= 1;
    depth--;
    goto after;

element:
    if (objects & 1) {
        parse = copy_key(copier, &p, &key);
    }
    if (parse == LAC_PARSE_OK) {
        goto value;
    }

done:
    *ret_next = p;
    return parse;
}

LAC_SCAN_TARGET static enum lac_parse begin_copy(struct copier *copier,
                                                 struct lac_chrome_scratch *scratch, size_t used,
                                                 const uint8_t *p, const uint8_t *end)
{
    if (!lac_chrome_scratch_text(scratch, used, (size_t)(end - p) + COPY_ROOM)) {
        return LAC_PARSE_NOMEM;
    }
    copier->scratch = scratch;
    copier->end = end;
    copier->out = scratch->text + used;
    return LAC_PARSE_OK;
}

LAC_SCAN_TARGET static enum lac_parse parse_value(struct lac_chrome_scratch *scratch,
                                                  const uint8_t *p, const uint8_t *end,
                                                  struct lac_raw_event *event,
                                                  const uint8_t **ret_next, size_t *ret_size)
{
    struct copier copier = {.repairs = &event->repairs};
    enum lac_parse parse = begin_copy(&copier, scratch, 0, p, end);
    if (parse == LAC_PARSE_OK) {
        parse = copy_value(&copier, p, ret_next);
    }
    if (parse == LAC_PARSE_OK) {
        *ret_size = (size_t)(copier.out - scratch->text);
    } else if (parse == LAC_PARSE_BAD) {
        event->bad_at = *ret_next;
    }
    /* a number or word that touches the end may go on */
    if (parse == LAC_PARSE_OK && *ret_next >= end && is_word((*ret_next)[-1])) {
        parse = LAC_PARSE_MORE;
    }
    return parse;
}

/* "args": its template goes to the front of scratch->text. Anything but an object is wrapped in
 * one, so that arguments are always an object. */
LAC_SCAN_TARGET static enum lac_parse parse_args(struct lac_chrome_scratch *scratch,
                                                 const uint8_t **at, const uint8_t *end,
                                                 struct lac_raw_event *event)
{
    static const char wrap[] = "{\"args\":";
    struct copier copier = {.repairs = &event->repairs, .extract = true};
    const uint8_t *p = *at;
    bool object = *p == '{';
    event->args_size = event->number_count = 0;
    if (p >= end) {
        return LAC_PARSE_MORE;
    }
    enum lac_parse parse = begin_copy(&copier, scratch, 0, p, end + sizeof(wrap) + 1);
    if (parse != LAC_PARSE_OK) {
        return parse;
    }
    copier.end = end;
    if (!object) {
        memcpy(copier.out, wrap, sizeof(wrap) - 1);
        copier.out += sizeof(wrap) - 1;
        copier.extract = false;
    }
    parse = copy_value(&copier, p, at);
    if (parse != LAC_PARSE_OK) {
        return parse;
    }
    if (!object) {
        *copier.out++ = '}';
    }
    size_t size = (size_t)(copier.out - scratch->text);
    bool empty = size == 2 || (!object && *p == 'n');
    event->args_size = empty ? 0 : (uint32_t)size;
    event->number_count = copier.number_count;
    return LAC_PARSE_OK;
}

/* A value that is only looked at where it lies: checked as JSON, its copy thrown away. */
LAC_SCAN_TARGET static enum lac_parse pass_value(struct lac_chrome_scratch *scratch,
                                                 const uint8_t **at, const uint8_t *end,
                                                 struct lac_raw_event *event,
                                                 struct lac_json_span *text)
{
    struct copier copier = {.repairs = &event->repairs};
    const uint8_t *p = *at;
    enum lac_parse parse = begin_copy(&copier, scratch, event->args_size, p, end);
    if (parse != LAC_PARSE_OK) {
        return parse;
    }
    parse = copy_value(&copier, p, at);
    if (parse == LAC_PARSE_OK && text != NULL) {
        *text = (struct lac_json_span){p, (uint32_t)(*at - p), false};
    }
    return parse;
}

/* A string where it lies. */
LAC_SCAN_INLINE enum lac_parse find_string(const uint8_t **at, const uint8_t *end,
                                           struct lac_json_span *text)
{
    const uint8_t *p = *at + 1;
    const uint8_t *close = lac_scan_string(p);
    bool plain = *close == '"';
    if (!plain) {
        close = lac_json_string_end(close, end);
        if (close == NULL) {
            return LAC_PARSE_MORE;
        }
    }
    *text = (struct lac_json_span){p, (uint32_t)(close - p), plain};
    *at = close + 1;
    return LAC_PARSE_OK;
}

/* A string or a number where it lies: a pid, a tid, an id. Anything else counts as absent. */
LAC_SCAN_INLINE enum lac_parse find_id(struct lac_chrome_scratch *scratch, const uint8_t **at,
                                       const uint8_t *end, struct lac_raw_event *event,
                                       struct lac_json_span *text, bool *is_number)
{
    const uint8_t *p = *at;
    *is_number = false;
    if (*p == '"') {
        return find_string(at, end, text);
    }
    if (IS_DIGIT(*p) || *p == '-') {
        const uint8_t *q = p + 1;
        while (!ends_word(*q) && is_word(*q)) {
            q++;
        }
        if (q >= end) {
            return LAC_PARSE_MORE;
        }
        *text = (struct lac_json_span){p, (uint32_t)(q - p), true};
        *is_number = true;
        *at = q;
        return LAC_PARSE_OK;
    }
    return pass_value(scratch, at, end, event, NULL);
}

/* Eight digits at once. */
LAC_SCAN_INLINE bool eight_digits(uint64_t word)
{
    return ((word & 0xf0f0f0f0f0f0f0f0u) == 0x3030303030303030u) &
           (((word + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) == 0x3030303030303030u);
}

LAC_SCAN_INLINE uint64_t value_of_eight(uint64_t word)
{
    word -= 0x3030303030303030u;
    word = word * 10 + (word >> 8); /* pairs in bytes 0, 2, 4, 6 */
    return (((word & 0x000000ff000000ffu) * (100 + (1000000ull << 32))) +
            (((word >> 16) & 0x000000ff000000ffu) * (1 + (10000ull << 32)))) >>
           32;
}

/* A time in microseconds, to nanoseconds. The common form, up to 16 digits and 3 decimals, takes
 * the short way; everything else goes to lac_decimal_scaled(). */
LAC_SCAN_INLINE enum lac_parse find_time(struct lac_chrome_scratch *scratch, const uint8_t **at,
                                         const uint8_t *end, struct lac_raw_event *event,
                                         int64_t *ret_ns, uint8_t *ret_state)
{
    const uint8_t *p = *at, *q = p;
    uint64_t value = 0;
    if (eight_digits(lac_load64(q))) {
        value = value_of_eight(lac_load64(q));
        q += 8;
    }
    while (IS_DIGIT(*q)) {
        value = value * 10 + (uint64_t)(*q++ - '0');
    }
    size_t count = (size_t)(q - p);
    value *= 1000;
    if (*q == '.') {
        const uint8_t *fraction = q + 1;
        uint32_t scale = 100, part = 0;
        q = fraction;
        for (; IS_DIGIT(*q) && scale > 0; q++, scale /= 10) {
            part += (uint32_t)(*q - '0') * scale;
        }
        value += part;
        if (q == fraction) {
            count = 0;
        }
    }
    if (count - 1 < 16 && value <= (uint64_t)INT64_MAX && ends_word(*q)) {
        *ret_ns = (int64_t)value;
        *ret_state = LAC_TIME_OK;
        *at = q;
        return LAC_PARSE_OK;
    }
    struct lac_json_span text = {0};
    bool is_number = false;
    enum lac_parse parse = find_id(scratch, at, end, event, &text, &is_number);
    if (parse != LAC_PARSE_OK) {
        return parse;
    }
    *ret_state = text.at != NULL && lac_decimal_scaled(text.at, text.size_bytes, 3, ret_ns)
                     ? LAC_TIME_OK
                     : LAC_TIME_BAD;
    return LAC_PARSE_OK;
}

/* A duration of null is none. */
LAC_SCAN_INLINE enum lac_parse find_duration(struct lac_chrome_scratch *scratch, const uint8_t **at,
                                             const uint8_t *end, struct lac_raw_event *event)
{
    const uint8_t *p = *at;
    enum lac_parse parse = find_time(scratch, at, end, event, &event->dur_ns, &event->dur_state);
    if (parse == LAC_PARSE_OK && event->dur_state == LAC_TIME_BAD && *at - p == 4 &&
        memcmp(p, "null", 4) == 0) {
        event->dur_ns = 0;
        event->dur_state = LAC_TIME_ABSENT;
    }
    return parse;
}

/* The text of a short string that is spelled with escapes, such as "\u0070h"; 0 bytes where it is
 * longer than any that has a meaning here. */
LAC_SCAN_TARGET static size_t unescape(const struct lac_json_span *text,
                                       uint8_t out[LAC_UNESCAPED_ROOM])
{
    struct lac_json_repairs ignored = {0};
    memset(out, 0, LAC_UNESCAPED_ROOM);
    if (text->size_bytes > LAC_UNESCAPED_MAX) {
        return 0;
    }
    return lac_json_string_decode(text->at, text->size_bytes, out, &ignored);
}

/* "ph" and other members of one letter. */
LAC_SCAN_INLINE enum lac_parse find_letter(struct lac_chrome_scratch *scratch, const uint8_t **at,
                                           const uint8_t *end, struct lac_raw_event *event,
                                           uint8_t *ret_letter)
{
    const uint8_t *p = *at;
    if (p[0] == '"' && p[2] == '"' && p[1] > ' ' && p[1] < 0x7f && p[1] != '\\' && p[1] != '"') {
        *ret_letter = p[1];
        *at = p + 3;
        return LAC_PARSE_OK;
    }
    *ret_letter = '?';
    struct lac_json_span value = {0};
    enum lac_parse parse = pass_value(scratch, at, end, event, &value);
    if (parse == LAC_PARSE_OK && *value.at == '"') {
        uint8_t text[LAC_UNESCAPED_ROOM];
        const struct lac_json_span inside = {value.at + 1, value.size_bytes - 2, false};
        if (unescape(&inside, text) == 1 && text[0] > ' ' && text[0] < 0x7f) {
            *ret_letter = text[0];
        }
    }
    return parse;
}

/* Members of an event, by the 8 bytes after the opening quote of the key. */
enum member {
    MEMBER_OTHER,
    MEMBER_PH,
    MEMBER_CAT,
    MEMBER_NAME,
    MEMBER_PID,
    MEMBER_TID,
    MEMBER_TS,
    MEMBER_DUR,
    MEMBER_ARGS,
    MEMBER_ID,
    MEMBER_ID2,
    MEMBER_BP,
    MEMBER_S,
    MEMBER_SCOPE,
};

#define KEY2(a, b) ((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)'"' << 16)
#define KEY3(a, b, c)                                                                              \
    ((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | (uint64_t)'"' << 24)
#define KEY4(a, b, c, d)                                                                           \
    ((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | (uint64_t)(d) << 24 |              \
     (uint64_t)'"' << 32)

LAC_SCAN_INLINE enum member find_member(const uint8_t *key, uint32_t *ret_length)
{
    uint64_t word = lac_load64(key);
    uint64_t of2 = word & 0xffffffu, of3 = word & 0xffffffffu, of4 = word & 0xffffffffffu;
    *ret_length = 3;
    if (of3 == KEY3('p', 'i', 'd')) {
        return MEMBER_PID;
    }
    if (of3 == KEY3('t', 'i', 'd')) {
        return MEMBER_TID;
    }
    if (of3 == KEY3('c', 'a', 't')) {
        return MEMBER_CAT;
    }
    if (of3 == KEY3('d', 'u', 'r')) {
        return MEMBER_DUR;
    }
    if (of3 == KEY3('i', 'd', '2')) {
        return MEMBER_ID2;
    }
    *ret_length = 2;
    if (of2 == KEY2('p', 'h')) {
        return MEMBER_PH;
    }
    if (of2 == KEY2('t', 's')) {
        return MEMBER_TS;
    }
    if (of2 == KEY2('i', 'd')) {
        return MEMBER_ID;
    }
    if (of2 == KEY2('b', 'p')) {
        return MEMBER_BP;
    }
    *ret_length = 4;
    if (of4 == KEY4('n', 'a', 'm', 'e')) {
        return MEMBER_NAME;
    }
    if (of4 == KEY4('a', 'r', 'g', 's')) {
        return MEMBER_ARGS;
    }
    *ret_length = 1;
    if ((word & 0xffffu) == ('s' | (uint64_t)'"' << 8)) {
        return MEMBER_S;
    }
    *ret_length = 5;
    if ((word & 0xffffffffffffu) == ((uint64_t)KEY4('s', 'c', 'o', 'p') - ((uint64_t)'"' << 32) +
                                     ((uint64_t)'e' << 32) + ((uint64_t)'"' << 40))) {
        return MEMBER_SCOPE;
    }
    return MEMBER_OTHER;
}

/* What a key means that is not plain ASCII, or has escapes. */
LAC_SCAN_TARGET static enum member find_escaped_member(const struct lac_json_span *key)
{
    uint8_t text[LAC_UNESCAPED_ROOM];
    uint32_t length = 0;
    size_t size = unescape(key, text);
    text[size] = '"'; /* there is room: what it decodes to is shorter than what it may need */
    enum member member = find_member(text, &length);
    return length == size ? member : MEMBER_OTHER;
}

LAC_SCAN_INLINE enum lac_parse parse_member(struct lac_chrome_scratch *scratch, enum member member,
                                            const uint8_t **at, const uint8_t *end,
                                            struct lac_raw_event *event)
{
    bool is_number;
    uint8_t letter = 0;
    enum lac_parse parse;
    switch (member) {
    case MEMBER_PH:
        return find_letter(scratch, at, end, event, &event->phase);
    case MEMBER_NAME:
        return find_id(scratch, at, end, event, &event->name, &is_number);
    case MEMBER_CAT:
        return find_id(scratch, at, end, event, &event->cat, &is_number);
    case MEMBER_PID:
        return find_id(scratch, at, end, event, &event->pid, &is_number);
    case MEMBER_TID:
        return find_id(scratch, at, end, event, &event->tid, &is_number);
    case MEMBER_TS:
        return find_time(scratch, at, end, event, &event->ts_ns, &event->ts_state);
    case MEMBER_DUR:
        return find_duration(scratch, at, end, event);
    case MEMBER_ARGS:
        return parse_args(scratch, at, end, event);
    case MEMBER_ID:
        return find_id(scratch, at, end, event, &event->id, &event->id_is_number);
    case MEMBER_ID2:
        return pass_value(scratch, at, end, event, &event->id2);
    case MEMBER_SCOPE:
        return find_id(scratch, at, end, event, &event->scope, &is_number);
    case MEMBER_BP:
        parse = find_letter(scratch, at, end, event, &letter);
        event->bind_enclosing = letter == 'e';
        return parse;
    case MEMBER_S:
        return pass_value(scratch, at, end, event, NULL);
    case MEMBER_OTHER:
    default:
        event->unknown_members++;
        return pass_value(scratch, at, end, event, NULL);
    }
}

LAC_SCAN_TARGET static enum lac_parse stop_at(const uint8_t *p, const uint8_t *end,
                                              struct lac_raw_event *event)
{
    event->bad_at = p;
    return p >= end ? LAC_PARSE_MORE : LAC_PARSE_BAD;
}

LAC_SCAN_TARGET static enum lac_parse parse_event(struct lac_chrome_scratch *scratch,
                                                  const uint8_t *p, const uint8_t *end,
                                                  struct lac_raw_event *event,
                                                  const uint8_t **ret_next)
{
    memset(event, 0, sizeof(*event));
    p = lac_skip_space(p + 1);
    if (*p == '}') {
        goto done;
    }
    for (;;) {
        if (*p != '"') {
            return stop_at(p, end, event);
        }
        uint32_t length = 0;
        enum member member = find_member(p + 1, &length);
        enum lac_parse parse;
        if (member == MEMBER_OTHER) {
            struct lac_json_span key;
            parse = find_string(&p, end, &key);
            if (parse != LAC_PARSE_OK) {
                return parse;
            }
            if (!key.plain) {
                member = find_escaped_member(&key);
            }
        } else {
            p += length + 2;
        }
        p = lac_skip_space(p);
        if (*p != ':') {
            return stop_at(p, end, event);
        }
        p = lac_skip_space(p + 1);
        parse = parse_member(scratch, member, &p, end, event);
        if (parse != LAC_PARSE_OK) {
            event->bad_at = p;
            return parse == LAC_PARSE_BAD && p >= end ? LAC_PARSE_MORE : parse;
        }
        p = lac_skip_space(p);
        if (*p == '}') {
            break;
        }
        if (*p != ',') {
            return stop_at(p, end, event);
        }
        p = lac_skip_space(p + 1);
        if (*p == '}') {
            event->repairs.trailing_comma++;
            break;
        }
    }
done:
    if (p >= end) {
        return LAC_PARSE_MORE;
    }
    if (event->args_size) {
        event->args_hash = lac_hash_bytes(scratch->text, event->args_size, scratch->hash_seed);
    }
    *ret_next = p + 1;
    return LAC_PARSE_OK;
}

const struct lac_chrome_parser LAC_PARSER_NAME = {parse_event, parse_value};
