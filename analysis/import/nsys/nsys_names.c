/* Strings of an Nsight Systems export: StringIds, read once, interned where they are used. */

#include "analysis/import/nsys/nsys_db.h"
#include "analysis/import/nsys/nsys_private.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/reserve.h"
#include "collector/base/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- map ---- */

static uint64_t slot_of(const struct lac_nsys_map *map, uint64_t key)
{
    uint64_t slot = lac_hash_bytes(&key, sizeof(key), map->seed) & (map->slot_count - 1);
    while (map->values[slot] != LAC_NONE && map->keys[slot] != key) {
        slot = (slot + 1) & (map->slot_count - 1);
    }
    return slot;
}

static bool grow(struct lac_nsys_map *map)
{
    struct lac_nsys_map wider = {.slot_count = map->slot_count == 0 ? 64 : map->slot_count * 2,
                                 .count = map->count,
                                 .seed = map->slot_count == 0 ? lac_hash_seed() : map->seed};
    wider.keys = malloc(wider.slot_count * sizeof(*wider.keys));
    wider.values = malloc(wider.slot_count * sizeof(*wider.values));
    if (wider.keys == NULL || wider.values == NULL) {
        lac_nsys_map_done(&wider);
        return false;
    }
    memset(wider.values, 0xff, wider.slot_count * sizeof(*wider.values));
    for (uint64_t i = 0; i < map->slot_count; i++) {
        if (map->values[i] != LAC_NONE) {
            uint64_t slot = slot_of(&wider, map->keys[i]);
            wider.keys[slot] = map->keys[i];
            wider.values[slot] = map->values[i];
        }
    }
    lac_nsys_map_done(map);
    *map = wider;
    return true;
}

uint32_t *lac_nsys_map_at(struct lac_nsys_map *map, uint64_t key)
{
    if (map->slot_count > 0) {
        uint64_t slot = slot_of(map, key);
        if (map->values[slot] != LAC_NONE) {
            return &map->values[slot];
        }
    }
    if (map->count * 2 >= map->slot_count && !grow(map)) {
        return NULL;
    }
    uint64_t slot = slot_of(map, key);
    map->keys[slot] = key;
    map->count++; /* the caller sets the value; a slot left free costs only room */
    return &map->values[slot];
}

uint32_t lac_nsys_map_get(const struct lac_nsys_map *map, uint64_t key)
{
    return map->slot_count == 0 ? LAC_NONE : map->values[slot_of(map, key)];
}

void lac_nsys_map_done(struct lac_nsys_map *map)
{
    free(map->keys);
    free(map->values);
    *map = (struct lac_nsys_map){0};
}

/* ---- strings ---- */

enum lac_status lac_nsys_pass(struct lac_nsys *nsys, enum lac_status status)
{
    if (status == LAC_ERR_NOMEM) {
        return lac_fail(nsys->reterr, status, 0, "out of memory");
    }
    if (status == LAC_ERR_LIMIT) {
        return lac_fail(nsys->reterr, status, 0, "more rows or names than a trace may have");
    }
    return status;
}

static enum lac_status keep_bytes(struct lac_nsys *nsys, const char *text, size_t size)
{
    if (!LAC_RESERVE(nsys->bytes, nsys->bytes_capacity, nsys->bytes_used, size)) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    if (size > 0) {
        memcpy(nsys->bytes + nsys->bytes_used, text, size);
    }
    nsys->bytes_used += size;
    return LAC_OK;
}

static enum lac_status keep_string(struct lac_nsys *nsys, int64_t number, const char *text,
                                   size_t size)
{
    if (!LAC_RESERVE(nsys->strings, nsys->string_capacity, nsys->string_count, 1)) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    uint32_t *index = lac_nsys_map_at(&nsys->string_of, (uint64_t)number);
    if (index == NULL) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    *index = nsys->string_count;
    nsys->strings[nsys->string_count++] = (struct lac_nsys_string){
        .offset = nsys->bytes_used, .size = (uint32_t)size, .interned = LAC_NONE};
    return keep_bytes(nsys, text, size);
}

static enum lac_status on_string(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    int64_t number;
    size_t size = 0;
    const char *text = lac_nsys_rows_text(rows, 1, &size);
    return text != NULL && lac_nsys_rows_integer(rows, 0, &number)
               ? keep_string(nsys, number, text, size)
               : LAC_OK;
}

enum lac_status lac_nsys_read_strings(struct lac_nsys *nsys)
{
    static const char *const COLUMNS[] = {"id", "value", NULL};
    static const char *const NVPROF_COLUMNS[] = {"_id_", "value", NULL};
    return nsys->is_nvprof ? lac_nsys_each(nsys, "StringTable", NVPROF_COLUMNS, false, on_string)
                           : lac_nsys_each(nsys, "StringIds", COLUMNS, false, on_string);
}

enum lac_status lac_nsys_read_string_table(struct lac_nsys *nsys, const char *table,
                                           const char *const *columns)
{
    return lac_nsys_each(nsys, table, columns, false, on_string);
}

enum lac_status lac_nsys_intern(struct lac_nsys *nsys, const char *text, size_t size,
                                uint32_t *ret_id)
{
    if (size > nsys->limits->name_bytes_max) {
        return lac_fail(nsys->reterr, LAC_ERR_LIMIT, 0,
                        "a name of %zu bytes (limit name_bytes_max is %u)", size,
                        nsys->limits->name_bytes_max);
    }
    char *const clean = malloc(size * 3 + 1);
    size_t repaired_count = 0;
    if (clean == NULL) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    const size_t used = lac_utf8_repair(text, size, clean, size * 3, &repaired_count);
    const enum lac_status status = lac_strings_intern(&nsys->model->strings, clean, used, ret_id);
    free(clean);
    if (repaired_count > 0) {
        lac_model_report(nsys->model, LAC_REPORT_REPAIRED, "bad_utf8", 1, 0,
                         "Bytes of names that are not UTF-8 were replaced.");
    }
    return lac_nsys_pass(nsys, status);
}

enum lac_status lac_nsys_intern_own(struct lac_nsys *nsys, uint32_t *ret_id, const char *format,
                                    ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    size_t size = length < 0                      ? 0
                  : (size_t)length < sizeof(text) ? (size_t)length
                                                  : sizeof(text) - 1;
    return lac_nsys_pass(nsys, lac_strings_intern(&nsys->model->strings, text, size, ret_id));
}

/** When all strings are empty there are no bytes at all. */
static const char *bytes_of(const struct lac_nsys *nsys, const struct lac_nsys_string *string)
{
    return string->size > 0 ? nsys->bytes + string->offset : "";
}

enum lac_status lac_nsys_string(struct lac_nsys *nsys, int64_t number, uint32_t *ret_id)
{
    uint32_t index = lac_nsys_map_get(&nsys->string_of, (uint64_t)number);
    if (index == LAC_NONE) {
        lac_model_report(nsys->model, LAC_REPORT_REPAIRED, "string_missing", 1, 0,
                         "Names whose string is not in the file are shown as its number.");
        return lac_nsys_intern_own(nsys, ret_id, "%" PRId64, number);
    }
    struct lac_nsys_string *string = &nsys->strings[index];
    if (string->interned == LAC_NONE) {
        enum lac_status status =
            lac_nsys_intern(nsys, bytes_of(nsys, string), string->size, &string->interned);
        if (status != LAC_OK) {
            return status;
        }
    }
    *ret_id = string->interned;
    return LAC_OK;
}

const char *lac_nsys_column_bytes(const struct lac_nsys *nsys, const struct lac_nsys_rows *rows,
                                  int text, int number, size_t *ret_size)
{
    const char *bytes = lac_nsys_rows_text(rows, text, ret_size);
    int64_t id;
    if (bytes != NULL || !lac_nsys_rows_integer(rows, number, &id)) {
        return bytes;
    }
    uint32_t index = lac_nsys_map_get(&nsys->string_of, (uint64_t)id);
    if (index == LAC_NONE) {
        return NULL;
    }
    *ret_size = nsys->strings[index].size;
    return bytes_of(nsys, &nsys->strings[index]);
}

enum lac_status lac_nsys_column_name(struct lac_nsys *nsys, const struct lac_nsys_rows *rows,
                                     int text, int number, uint32_t *ret_id)
{
    size_t size = 0;
    const char *bytes = text < 0 ? NULL : lac_nsys_rows_text(rows, text, &size);
    int64_t id;
    if (bytes != NULL) {
        return lac_nsys_intern(nsys, bytes, size, ret_id);
    }
    if (number >= 0 && lac_nsys_rows_integer(rows, number, &id)) {
        return lac_nsys_string(nsys, id, ret_id);
    }
    *ret_id = 0;
    return LAC_OK;
}
