#include "analysis/diagnose/result/pack.h"

#include "analysis/model/grow.h"
#include "analysis/model/status.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void lac_pack_open(struct lac_pack *pack, const uint8_t *bytes, size_t size_bytes)
{
    *pack = (struct lac_pack){.is_reading = true, .from = bytes, .size_bytes = size_bytes};
}

void lac_pack_refuse(struct lac_pack *pack)
{
    if (pack->status == LAC_OK) {
        pack->status = LAC_ERR_CORRUPT;
    }
}

static void put(struct lac_pack *pack, const void *bytes, size_t size_bytes)
{
    if (pack->status == LAC_OK) {
        pack->status = LAC_GROW(pack->bytes, &pack->capacity_bytes, pack->size_bytes + size_bytes);
    }
    if (pack->status == LAC_OK) {
        memcpy(pack->bytes + pack->size_bytes, bytes, size_bytes);
        pack->size_bytes += size_bytes;
    }
}

static void put_int(struct lac_pack *pack, int64_t value)
{
    uint64_t left = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    uint8_t bytes[10];
    size_t size_bytes = 0;

    do {
        bytes[size_bytes++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
        left >>= 7;
    } while (left > 0);
    put(pack, bytes, size_bytes);
}

static int64_t get_int(struct lac_pack *pack)
{
    uint64_t value = 0;

    for (unsigned shift = 0; pack->status == LAC_OK; shift += 7) {
        if (pack->at == pack->size_bytes || shift > 63) {
            lac_pack_refuse(pack);
            break;
        }
        const uint8_t byte = pack->from[pack->at++];

        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            return (int64_t)((value >> 1) ^ (0 - (value & 1)));
        }
    }
    return 0;
}

void lac_pack_int(struct lac_pack *pack, int64_t *value, int64_t least, int64_t most)
{
    if (!pack->is_reading) {
        put_int(pack, *value);
        return;
    }
    *value = get_int(pack);
    if (pack->status == LAC_OK && (*value < least || *value > most)) {
        lac_pack_refuse(pack);
    }
    *value = pack->status == LAC_OK ? *value : 0;
}

void lac_pack_exactly(struct lac_pack *pack, int64_t value)
{
    int64_t read = value;

    lac_pack_int(pack, &read, value, value);
}

void lac_pack_real(struct lac_pack *pack, double *value)
{
    uint64_t bits = 0;

    if (!pack->is_reading) {
        uint8_t bytes[8];

        memcpy(&bits, value, sizeof(bits));
        for (unsigned i = 0; i < 8; i++) {
            bytes[i] = (uint8_t)(bits >> (8 * i));
        }
        put(pack, bytes, sizeof(bytes));
        return;
    }
    if (pack->status == LAC_OK && pack->size_bytes - pack->at < 8) {
        lac_pack_refuse(pack);
    }
    for (unsigned i = 0; i < 8 && pack->status == LAC_OK; i++) {
        bits |= (uint64_t)pack->from[pack->at++] << (8 * i);
    }
    memcpy(value, &bits, sizeof(*value));
    if (isinf(*value)) {
        lac_pack_refuse(pack);
        *value = 0.0;
    }
}

void lac_pack_text(struct lac_pack *pack, const char **text)
{
    int64_t length = pack->is_reading ? 0 : (int64_t)strlen(*text);

    lac_pack_int(pack, &length, 0, INT32_MAX);
    if (!pack->is_reading) {
        put(pack, *text, (size_t)length + 1);
        return;
    }
    *text = "";
    if (pack->status == LAC_OK && (uint64_t)length >= pack->size_bytes - pack->at) {
        lac_pack_refuse(pack);
    }
    if (pack->status == LAC_OK) {
        const char *at = (const char *)pack->from + pack->at;

        if (strnlen(at, (size_t)length + 1) != (size_t)length) {
            lac_pack_refuse(pack);
            return;
        }
        *text = at;
        pack->at += (uint64_t)length + 1;
    }
}

uint64_t lac_pack_array(struct lac_pack *pack, uint64_t count, size_t packed_bytes, void *array,
                        size_t element_bytes)
{
    int64_t elements = (int64_t)count;
    void *made = NULL;

    lac_pack_int(pack, &elements, 0, INT64_MAX);
    if (!pack->is_reading) {
        return count;
    }
    if (pack->status == LAC_OK &&
        (uint64_t)elements > (pack->size_bytes - pack->at) / packed_bytes) {
        lac_pack_refuse(pack);
    }
    if (pack->status == LAC_OK) {
        made = calloc((size_t)elements + 1, element_bytes);
        if (made == NULL) {
            pack->status = LAC_ERR_NOMEM;
        }
    }
    memcpy(array, &made, sizeof(made));
    return pack->status == LAC_OK ? (uint64_t)elements : 0;
}

bool lac_pack_is_at_end(const struct lac_pack *pack)
{
    return pack->status == LAC_OK && pack->at == pack->size_bytes;
}
