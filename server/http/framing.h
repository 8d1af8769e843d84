#ifndef LAC_SERVER_HTTP_FRAMING_H
#define LAC_SERVER_HTTP_FRAMING_H

/*
 * Where a request ends, byte by byte, in front of libmicrohttpd (receive.c). RFC 9112 without its
 * leniencies: what two programs could read differently is refused, so that no proxy can take one
 * request for two. Hostile bytes; fuzzed (tests/fuzz/fuzz_framing.c). Nothing here allocates;
 * constant memory per connection.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAC_FRAMING_HEADER_MAX = 20480, /**< request line and header fields together; trailers alike */
    LAC_FRAMING_CHUNK_LINE_MAX = 1024, /**< a chunk's size and extensions */
};

enum lac_framing_verdict {
    LAC_FRAMING_MORE = 0, /**< the request goes on */
    LAC_FRAMING_END,      /**< it ended with the last byte taken; the next one begins a new one */
    LAC_FRAMING_BAD,      /**< refused: status and message say why. Final */
    /** Its length is unknown (contradicting lengths): all bytes pass, and whoever
     * reads the header fields must refuse it and close. Final */
    LAC_FRAMING_UNCLEAR,
};

/** One connection's place in its requests. All zero: before the first. */
struct lac_framing {
    enum lac_framing_verdict verdict;
    unsigned http_status;    /**< of LAC_FRAMING_BAD: 400, 414, 431 or 505 */
    const char *message;     /**< of LAC_FRAMING_BAD; static */
    uint64_t header_count;   /**< whole headers seen on this connection */
    uint64_t rest_bytes;     /**< of the body, or of the chunk */
    uint64_t content_length; /**< announced */
    uint32_t part_bytes;     /**< taken of the header, the trailers or the chunk's line */
    uint8_t state;
    uint8_t word_length; /**< of word; more than it holds when the text was longer */
    uint8_t line_kind;   /**< which header field this line is */
    uint8_t length_count;
    uint8_t coding_count;
    bool is_length_clear;
    bool is_coding_clear;
    bool is_http_1_0;
    bool has_host;
    bool had_empty_line;
    char word[24]; /**< method, version, field name or the value of a field that matters here */
};

/**
 * Take the next bytes of the connection.
 *
 * @return how many belong to the request: all of them (LAC_FRAMING_MORE, _UNCLEAR), up to and with
 *         the request's last (LAC_FRAMING_END), or those before the first bad one (LAC_FRAMING_BAD)
 */
size_t lac_framing_take(struct lac_framing *framing, const uint8_t *bytes, size_t size_bytes);

#endif
