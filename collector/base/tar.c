#include "collector/base/tar.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MODE_AT = 100, SIZE_AT = 124, TIME_AT = 136, CHECKSUM_AT = 148, CHECKSUM_BYTES = 8 };
enum { SIZE_BYTES = 12 };

static const uint64_t octal_end = (uint64_t)1 << 33; /* what eleven octal digits do not hold */

/* Its own field counts as blanks. */
static uint32_t checksum_of(const uint8_t *block)
{
    uint32_t sum = CHECKSUM_BYTES * ' ';

    for (size_t i = 0; i < LAC_TAR_BLOCK_BYTES; i++) {
        sum += i < CHECKSUM_AT || i >= CHECKSUM_AT + CHECKSUM_BYTES ? block[i] : 0;
    }
    return sum;
}

void lac_tar_header_make(uint8_t *block, const char *name, char type, uint64_t size_bytes)
{
    char number[SIZE_BYTES + 1];

    memset(block, 0, LAC_TAR_BLOCK_BYTES);
    memcpy(block, name, strnlen(name, LAC_TAR_NAME_BYTES));
    memcpy(block + MODE_AT, "0000600", 7);
    if (size_bytes < octal_end) {
        (void)snprintf(number, sizeof(number), "%011" PRIo64, size_bytes);
        memcpy(block + SIZE_AT, number, SIZE_BYTES);
    } else { /* base 256, as GNU tar writes it */
        block[SIZE_AT] = 0x80;
        for (unsigned i = 0; i < 8; i++) {
            block[SIZE_AT + 4 + i] = (uint8_t)(size_bytes >> (56 - 8 * i));
        }
    }
    memcpy(block + TIME_AT, "00000000000", 11);
    block[LAC_TAR_TYPE_AT] = (uint8_t)type;
    memcpy(block + LAC_TAR_MAGIC_AT, "ustar\00000", 8);
    (void)snprintf(number, sizeof(number), "%06" PRIo32, checksum_of(block));
    memcpy(block + CHECKSUM_AT, number, 7);
    block[CHECKSUM_AT + 7] = ' ';
}

/* An octal field, or base 256 when its first bit is set (GNU). */
static bool parse_number(const uint8_t *field, size_t width, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t i = 0;

    if ((field[0] & 0x80) != 0) {
        for (; i < width; i++) {
            if (value >> 55 != 0) {
                return false;
            }
            value = value << 8 | (i == 0 ? field[i] & 0x7fu : field[i]);
        }
        *ret_value = value;
        return true;
    }
    while (i < width && field[i] == ' ') {
        i++;
    }
    for (; i < width && field[i] >= '0' && field[i] <= '7'; i++) {
        value = value << 3 | (uint64_t)(field[i] - '0');
    }
    *ret_value = value;
    return i == width || field[i] == ' ' || field[i] == 0;
}

bool lac_tar_is_header(const uint8_t *block, size_t size_bytes)
{
    uint64_t recorded = 0;

    return size_bytes >= LAC_TAR_BLOCK_BYTES && block[0] != 0 &&
           parse_number(block + CHECKSUM_AT, CHECKSUM_BYTES, &recorded) &&
           recorded == checksum_of(block);
}

bool lac_tar_header_size(const uint8_t *block, uint64_t *ret_size_bytes)
{
    return parse_number(block + SIZE_AT, SIZE_BYTES, ret_size_bytes);
}

uint64_t lac_tar_padding(uint64_t size_bytes)
{
    return -size_bytes % LAC_TAR_BLOCK_BYTES;
}
