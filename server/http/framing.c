#include "server/http/framing.h"

#include "collector/base/encode.h"
#include "server/http/query.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

enum state {
    AT_START = 0, /* before a request, or in the empty line that may precede it */
    AT_START_LF,  /* CR of that empty line */
    IN_METHOD,
    IN_TARGET,
    IN_VERSION,
    AT_LINE_LF, /* CR of the request line or of a field */
    AT_LINE,    /* first byte of a line of the header */
    IN_NAME,
    BEFORE_VALUE, /* white space after the colon */
    IN_VALUE,
    AT_HEADER_LF, /* CR of the empty line */
    IN_BODY,      /* rest_bytes */
    AT_CHUNK,     /* first digit of a chunk's size */
    IN_CHUNK_SIZE,
    IN_CHUNK_NOTE, /* extensions */
    AT_CHUNK_LF,   /* CR of the chunk's line */
    IN_CHUNK,      /* rest_bytes */
    AFTER_CHUNK,   /* CR */
    AFTER_CHUNK_LF,
    AT_TRAILER, /* first byte of a line after the last chunk */
    IN_TRAILER_NAME,
    IN_TRAILER,
    AT_TRAILER_LF,
    AT_END_LF, /* CR of the last empty line */
};

enum line_kind { LINE_OTHER = 0, LINE_LENGTH, LINE_CODING, LINE_HOST };

static const char bad_line[] =
    "the header has a control character, or a line that does not end in CR LF";
static const char bad_name[] =
    "a header field's name is empty or has a character that names do not have";
static const char bad_fold[] = "a header field is folded over two lines";
static const char bad_request_line[] = "the first line is not METHOD TARGET HTTP/1.1";
static const char bad_chunk[] = "the chunked body is malformed";

static bool bad(struct lac_framing *f, unsigned http_status, const char *message)
{
    f->verdict = LAC_FRAMING_BAD;
    f->http_status = http_status;
    f->message = message;
    return false;
}

/* RFC 9110, 5.6.2 */
static bool is_token_char(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* What a field's value may hold: no control character but the tab. */
static bool is_text_char(uint8_t c)
{
    return (c >= 0x20 && c != 0x7f) || c == '\t';
}

static void word_start(struct lac_framing *f)
{
    f->word_length = 0;
}

static void word_add(struct lac_framing *f, uint8_t c)
{
    if (f->word_length < sizeof(f->word)) {
        f->word[f->word_length] = (char)c;
    }
    if (f->word_length <= sizeof(f->word)) {
        f->word_length++;
    }
}

/* The word as text; NULL when it is longer than any that matters. */
static const char *word_text(struct lac_framing *f)
{
    if (f->word_length >= sizeof(f->word)) {
        return NULL;
    }
    f->word[f->word_length] = '\0';
    return f->word;
}

static bool word_is(struct lac_framing *f, const char *text)
{
    const char *const word = word_text(f);

    return word != NULL && strcasecmp(word, text) == 0;
}

static bool start_request(struct lac_framing *f, uint8_t c)
{
    if (c == '\r' && !f->had_empty_line) { /* one may follow the body before (RFC 9112, 2.2) */
        f->state = AT_START_LF;
        return true;
    }
    *f = (struct lac_framing){.header_count = f->header_count,
                              .state = IN_METHOD,
                              .is_length_clear = true,
                              .is_coding_clear = true,
                              .part_bytes = 1};
    return is_token_char(c) || bad(f, 400, bad_request_line);
}

static bool end_version(struct lac_framing *f)
{
    const char *const version = word_text(f);

    f->state = AT_LINE_LF;
    if (version == NULL || strlen(version) != 8 || memcmp(version, "HTTP/", 5) != 0 ||
        version[5] < '0' || version[5] > '9' || version[6] != '.' || version[7] < '0' ||
        version[7] > '9') {
        return bad(f, 400, bad_request_line);
    }
    f->is_http_1_0 = strcmp(version, "HTTP/1.0") == 0;
    return f->is_http_1_0 || strcmp(version, "HTTP/1.1") == 0 ||
           bad(f, 505, "only HTTP/1.1 and HTTP/1.0 are understood");
}

static void end_name(struct lac_framing *f)
{
    f->line_kind = word_is(f, "content-length")      ? LINE_LENGTH
                   : word_is(f, "transfer-encoding") ? LINE_CODING
                   : word_is(f, "host")              ? LINE_HOST
                                                     : LINE_OTHER;
    f->has_host = f->has_host || f->line_kind == LINE_HOST;
    word_start(f);
    f->state = BEFORE_VALUE;
}

static void end_value(struct lac_framing *f)
{
    while (f->word_length > 0 && f->word_length <= sizeof(f->word) &&
           (f->word[f->word_length - 1] == ' ' || f->word[f->word_length - 1] == '\t')) {
        f->word_length--;
    }
    if (f->line_kind == LINE_LENGTH) {
        const char *const digits = word_text(f);

        f->length_count = f->length_count > 0 ? 2 : 1;
        f->is_length_clear = digits != NULL && lac_parse_uint(digits, &f->content_length);
    } else if (f->line_kind == LINE_CODING) {
        f->coding_count = f->coding_count > 0 ? 2 : 1;
        f->is_coding_clear = word_is(f, "chunked");
    }
    f->state = AT_LINE_LF;
}

static void end_request(struct lac_framing *f)
{
    f->verdict = LAC_FRAMING_END;
    f->state = AT_START;
    f->had_empty_line = false;
}

static bool end_header(struct lac_framing *f)
{
    if (!f->has_host && !f->is_http_1_0) {
        return bad(f, 400, "a request of HTTP/1.1 needs a Host header");
    }
    if (f->length_count == 1 && !f->is_length_clear) {
        return bad(f, 400, "the Content-Length is no number of bytes");
    }
    f->header_count++;
    if (f->length_count + f->coding_count > 1 || !f->is_length_clear || !f->is_coding_clear ||
        (f->coding_count > 0 && f->is_http_1_0)) {
        f->verdict = LAC_FRAMING_UNCLEAR;
    } else if (f->coding_count > 0) {
        f->state = AT_CHUNK;
        f->part_bytes = 0;
    } else if (f->length_count > 0 && f->content_length > 0) {
        f->rest_bytes = f->content_length;
        f->state = IN_BODY;
    } else {
        end_request(f);
    }
    return true;
}

/* -- one byte in each part; false: it is the first bad one -------------------------------------*/

static bool take_in_request_line(struct lac_framing *f, uint8_t c)
{
    switch (f->state) {
    case IN_METHOD:
        if (c == ' ') {
            f->state = IN_TARGET;
            f->word_length = 0;
            return true;
        }
        return is_token_char(c) || bad(f, 400, bad_request_line);
    case IN_TARGET:
        if (c == ' ' && f->word_length > 0) {
            f->state = IN_VERSION;
            word_start(f);
            return true;
        }
        word_add(f, c); /* only whether there is any; query.c reads it */
        return (c > 0x20 && c != 0x7f) || bad(f, 400, bad_request_line);
    default:
        if (c == '\r') {
            return end_version(f);
        }
        word_add(f, c);
        return is_text_char(c) || bad(f, 400, bad_request_line);
    }
}

static bool take_in_fields(struct lac_framing *f, uint8_t c)
{
    switch (f->state) {
    case AT_LINE_LF:
        f->state = AT_LINE;
        return c == '\n' || bad(f, 400, bad_line);
    case AT_LINE:
        if (c == '\r') {
            f->state = AT_HEADER_LF;
            return true;
        }
        if (c == ' ' || c == '\t') {
            return bad(f, 400, bad_fold);
        }
        word_start(f);
        word_add(f, c);
        f->state = IN_NAME;
        return is_token_char(c) || bad(f, 400, bad_name);
    case IN_NAME:
        if (c == ':') {
            end_name(f);
            return true;
        }
        word_add(f, c);
        return is_token_char(c) || bad(f, 400, bad_name);
    case BEFORE_VALUE:
        if (c == ' ' || c == '\t') {
            return true;
        }
        f->state = IN_VALUE;
        __attribute__((fallthrough));
    case IN_VALUE:
        if (c == '\r') {
            end_value(f);
            return true;
        }
        word_add(f, c);
        return is_text_char(c) || bad(f, 400, bad_line);
    default:
        if (c != '\n') {
            return bad(f, 400, bad_line);
        }
        return end_header(f);
    }
}

static bool take_chunk_size(struct lac_framing *f, uint8_t c)
{
    const int digit = lac_hex_digit((char)c);

    if (digit >= 0) {
        if (f->part_bytes > 16 || f->rest_bytes >> 58 != 0) {
            return bad(f, 400, "a chunk's size is too large");
        }
        f->rest_bytes = f->rest_bytes * 16 + (unsigned)digit;
        f->state = IN_CHUNK_SIZE;
        return true;
    }
    if (f->state == AT_CHUNK || (c != '\r' && c != ';')) {
        return bad(f, 400, bad_chunk);
    }
    f->state = c == '\r' ? AT_CHUNK_LF : IN_CHUNK_NOTE;
    return true;
}

static bool take_around_chunk(struct lac_framing *f, uint8_t c)
{
    switch (f->state) {
    case AT_CHUNK:
    case IN_CHUNK_SIZE:
        return take_chunk_size(f, c);
    case IN_CHUNK_NOTE:
        f->state = c == '\r' ? AT_CHUNK_LF : IN_CHUNK_NOTE;
        return c == '\r' || is_text_char(c) || bad(f, 400, bad_chunk);
    case AT_CHUNK_LF:
        f->state = f->rest_bytes > 0 ? IN_CHUNK : AT_TRAILER;
        f->part_bytes = 0;
        return c == '\n' || bad(f, 400, bad_chunk);
    case AFTER_CHUNK:
        f->state = AFTER_CHUNK_LF;
        return c == '\r' || bad(f, 400, bad_chunk);
    default: /* AFTER_CHUNK_LF */
        f->state = AT_CHUNK;
        f->part_bytes = 0;
        return c == '\n' || bad(f, 400, bad_chunk);
    }
}

static bool take_in_trailers(struct lac_framing *f, uint8_t c)
{
    switch (f->state) {
    case AT_TRAILER:
        if (c == '\r') {
            f->state = AT_END_LF;
            return true;
        }
        f->state = IN_TRAILER_NAME;
        return is_token_char(c) || bad(f, 400, c == ' ' || c == '\t' ? bad_fold : bad_name);
    case IN_TRAILER_NAME:
        f->state = c == ':' ? IN_TRAILER : IN_TRAILER_NAME;
        return c == ':' || is_token_char(c) || bad(f, 400, bad_name);
    case IN_TRAILER:
        f->state = c == '\r' ? AT_TRAILER_LF : IN_TRAILER;
        return c == '\r' || is_text_char(c) || bad(f, 400, bad_line);
    case AT_TRAILER_LF:
        f->state = AT_TRAILER;
        return c == '\n' || bad(f, 400, bad_line);
    default: /* AT_END_LF */
        if (c != '\n') {
            return bad(f, 400, bad_line);
        }
        end_request(f);
        return true;
    }
}

static bool part_is_short(struct lac_framing *f)
{
    if (f->part_bytes++ < LAC_FRAMING_CHUNK_LINE_MAX) {
        return true;
    }
    if (f->state >= AT_CHUNK && f->state < AT_TRAILER) {
        return bad(f, 400, "a chunk's extensions are too long");
    }
    if (f->part_bytes <= LAC_FRAMING_HEADER_MAX) {
        return true;
    }
    if (f->state == IN_TARGET) {
        return bad(f, 414, "the request's target is too long");
    }
    return bad(f, 431, "the request's header is too large");
}

static bool take_byte(struct lac_framing *f, uint8_t c)
{
    switch (f->state) {
    case AT_START:
        return start_request(f, c);
    case AT_START_LF:
        f->state = AT_START;
        f->had_empty_line = true;
        return c == '\n' || bad(f, 400, bad_request_line);
    case IN_METHOD:
    case IN_TARGET:
    case IN_VERSION:
        return part_is_short(f) && take_in_request_line(f, c);
    case AT_LINE_LF:
    case AT_LINE:
    case IN_NAME:
    case BEFORE_VALUE:
    case IN_VALUE:
    case AT_HEADER_LF:
        return part_is_short(f) && take_in_fields(f, c);
    case AT_TRAILER:
    case IN_TRAILER_NAME:
    case IN_TRAILER:
    case AT_TRAILER_LF:
    case AT_END_LF:
        return part_is_short(f) && take_in_trailers(f, c);
    case AT_CHUNK:
    case IN_CHUNK_SIZE:
    case IN_CHUNK_NOTE:
    case AT_CHUNK_LF:
    case AFTER_CHUNK:
    case AFTER_CHUNK_LF:
        return part_is_short(f) && take_around_chunk(f, c);
    case IN_BODY:
    case IN_CHUNK:
    default:
        return bad(f, 400, bad_chunk); /* taken as blocks, never a byte at a time */
    }
}

/* As much of the body or of the chunk as is here. */
static size_t take_block(struct lac_framing *f, size_t size_bytes)
{
    const size_t taken = f->rest_bytes < size_bytes ? (size_t)f->rest_bytes : size_bytes;

    f->rest_bytes -= taken;
    if (f->rest_bytes == 0) {
        if (f->state == IN_BODY) {
            end_request(f);
        } else {
            f->state = AFTER_CHUNK;
            f->part_bytes = 0;
        }
    }
    return taken;
}

size_t lac_framing_take(struct lac_framing *framing, const uint8_t *bytes, size_t size_bytes)
{
    size_t taken = 0;

    if (framing->verdict == LAC_FRAMING_UNCLEAR) {
        return size_bytes;
    }
    if (framing->verdict == LAC_FRAMING_BAD) {
        return 0;
    }
    framing->verdict = LAC_FRAMING_MORE;
    while (taken < size_bytes && framing->verdict == LAC_FRAMING_MORE) {
        if (framing->state == IN_BODY || framing->state == IN_CHUNK) {
            taken += take_block(framing, size_bytes - taken);
        } else if (take_byte(framing, bytes[taken])) {
            taken++;
        }
    }
    return framing->verdict == LAC_FRAMING_UNCLEAR ? size_bytes : taken;
}
