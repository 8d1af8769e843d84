/*
 * Where requests end: any bytes, in any pieces. However they are cut, the verdict and the ends are
 * the same, nothing is taken beyond what is there, and what was accepted reads back as RFC 9112
 * wants it: checked by a second, plainer reader of the header.
 *
 * The mutator knows the pieces that requests are made of: lengths, codings, chunks, folds.
 */
#include "collector/base/count_of.h"
#include "server/http/framing.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);

enum { ENDS_MAX = 256 };

struct reading {
    size_t taken; /* where it stopped, or the size */
    unsigned end_count;
    size_t end[ENDS_MAX];
    enum lac_framing_verdict verdict;
};

/* All requests of the input, in pieces of 1 to `piece_max` bytes. */
static void read_all(const uint8_t *data, size_t size, size_t piece_max, struct reading *reading)
{
    struct lac_framing framing = {0};
    uint32_t random = 1;

    *reading = (struct reading){0};
    while (reading->taken < size) {
        random = random * 1664525u + 1013904223u;
        const size_t wanted = piece_max == 1 ? 1 : 1 + (random >> 8) % piece_max;
        const size_t rest = size - reading->taken;
        const size_t piece = wanted < rest ? wanted : rest;
        uint8_t *const copy = malloc(piece); /* so that a byte too far is seen */

        require(copy != NULL);
        memcpy(copy, data + reading->taken, piece);
        const size_t taken = lac_framing_take(&framing, copy, piece);
        free(copy);
        require(taken <= piece);
        reading->taken += taken;
        reading->verdict = framing.verdict;
        if (framing.verdict == LAC_FRAMING_BAD) {
            require(framing.message != NULL && framing.http_status >= 400);
            require(lac_framing_take(&framing, data, size) == 0);
            return;
        }
        if (framing.verdict == LAC_FRAMING_END) {
            require(taken > 0);
            if (reading->end_count < ENDS_MAX) {
                reading->end[reading->end_count++] = reading->taken;
            }
        } else {
            require(taken == piece);
        }
    }
}

static bool has(const uint8_t *data, size_t size, const char *text)
{
    return memmem(data, size, text, strlen(text)) != NULL;
}

/* A request that was accepted whole, read plainly. */
static void check_header(const uint8_t *data, size_t size)
{
    const uint8_t *const end = memmem(data, size, "\r\n\r\n", 4);
    const size_t skip = size >= 2 && data[0] == '\r' ? 2 : 0;
    size_t header;

    require(end != NULL && size > skip);
    data += skip;
    header = (size_t)(end - data) + 4;
    require(header <= (size_t)LAC_FRAMING_HEADER_MAX);
    for (size_t i = 0; i < header; i++) {
        require(data[i] != '\0' &&
                (data[i] >= 0x20 || data[i] == '\t' || data[i] == '\r' || data[i] == '\n'));
        require(data[i] != '\n' || (i > 0 && data[i - 1] == '\r'));
        require(data[i] != '\r' || data[i + 1] == '\n');
    }
    require(!has(data, header, "\n ") && !has(data, header, "\n\t") && !has(data, header, "\n:"));
    require(has(data, header, " HTTP/1.1\r\n") || has(data, header, " HTTP/1.0\r\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct reading whole;
    static struct reading pieces;
    size_t start = 0;

    read_all(data, size, size + 1, &whole);
    for (size_t piece_max = 1; piece_max <= 64; piece_max *= 8) {
        read_all(data, size, piece_max, &pieces);
        require(pieces.verdict == whole.verdict && pieces.taken == whole.taken);
        require(pieces.end_count == whole.end_count);
        require(memcmp(pieces.end, whole.end, whole.end_count * sizeof(whole.end[0])) == 0);
    }
    for (unsigned i = 0; i < whole.end_count; i++) {
        check_header(data + start, whole.end[i] - start);
        start = whole.end[i];
    }
    return 0;
}

/* -- mutator ----------------------------------------------------------------------------------- */

static const char *const parts[] = {
    "GET / HTTP/1.1\r\n",
    "POST /a HTTP/1.1\r\n",
    "HEAD /a?b=c HTTP/1.0\r\n",
    "Host: 127.0.0.1\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: 18446744073709551615\r\n",
    "Content-Length\t: 5\r\n",
    "content-length:5 \r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked \t\r\n",
    "transfer-encoding:\tCHUNKED\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Expect: 100-continue\r\n",
    " folded\r\n",
    "\tfolded\r\n",
    ": no name\r\n",
    "X: a\rb\r\n",
    "X: a\r\r\n",
    "X: a\n",
    "X:\r\n",
    "\r\n",
    "\n",
    "\r",
    "hello",
    "5\r\nhello\r\n",
    "5;a=b\r\nhello\r\n",
    "5;\nhello\r\n",
    "5\nhello\r\n",
    "00000000000000005\r\n",
    "ffffffffffffffff\r\n",
    "0\r\n\r\n",
    "0\r\nT: x\r\n\r\n",
    "0\r\n folded\r\n\r\n",
};

static size_t insert(uint8_t *data, size_t size, size_t size_max, size_t at, const char *text)
{
    const size_t length = strlen(text);

    if (length > size_max - size) {
        return size;
    }
    memmove(data + at + length, data + at, size - at);
    memcpy(data + at, text, length);
    return size + length;
}

/* Where line `index` (modulo their number) begins. */
static size_t line_start(const uint8_t *data, size_t size, unsigned index)
{
    unsigned count = 1;
    size_t at = 0;

    for (size_t i = 0; i + 1 < size; i++) {
        count += data[i] == '\n' ? 1 : 0;
    }
    for (index %= count; index > 0; index--) {
        at = (size_t)((const uint8_t *)memchr(data + at, '\n', size - at) - data) + 1;
    }
    return at;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
    const char *const part = parts[(seed >> 8) % (LAC_COUNT_OF(parts))];
    const size_t at = size > 0 ? line_start(data, size, seed >> 16) : 0;
    const uint8_t *const end = size > at ? memchr(data + at, '\n', size - at) : NULL;
    const size_t length = end == NULL ? size - at : (size_t)(end - data) + 1 - at;

    switch (seed % 8) {
    case 0:
    case 1:
    case 2:
        return insert(data, size, size_max, at, part);
    case 3: /* a line goes */
        memmove(data + at, data + at + length, size - at - length);
        return size - length;
    case 4: /* a line twice */
        if (length > size_max - size) {
            return size;
        }
        memmove(data + at + length, data + at, size - at);
        return size + length;
    case 5: /* another line in its place */
        memmove(data + at, data + at + length, size - at - length);
        return insert(data, size - length, size_max, at, part);
    default:
        return LLVMFuzzerMutate(data, size, size_max);
    }
}
