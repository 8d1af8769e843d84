#include "analysis/import/chrome/chrome_args.h"

#include "analysis/import/text/json_text.h"
#include "analysis/model/args.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void lac_args_cache_done(struct lac_args_cache *cache)
{
    free(cache->entries);
    free(cache->slots);
    free(cache->recipes);
    *cache = (struct lac_args_cache){0};
}

/* --- walking -----------------------------------------------------------------------------------*/

struct lac_member_cursor lac_member_begin(const void *text, size_t size_bytes)
{
    static const uint8_t nothing[1];
    const uint8_t *bytes = size_bytes ? text : nothing;
    return (struct lac_member_cursor){bytes + (size_bytes > 0), bytes + size_bytes, 0};
}

/* Closing quote of a valid string whose inside begins at p. */
static const uint8_t *string_end(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *close = lac_json_string_end(p, end);
    return close != NULL ? close : end;
}

/* Past the value at p, counting the numbers in it. */
static const uint8_t *value_end(const uint8_t *p, const uint8_t *end, uint32_t *number)
{
    uint32_t depth = 0;
    while (p < end) {
        uint8_t c = *p;
        if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
            break;
        }
        if (c == '"') {
            p = string_end(p + 1, end);
            if (p == end) {
                break;
            }
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (c == LAC_ARG_INTEGER || c == LAC_ARG_REAL) {
            (*number)++;
        }
        p++;
    }
    return p;
}

static void read_value(struct lac_member_cursor *cursor, struct lac_member *arg)
{
    const uint8_t *p = cursor->at;
    arg->first_number = cursor->number;
    cursor->at = value_end(p, cursor->end, &cursor->number);
    arg->text = p;
    arg->text_size = (size_t)(cursor->at - p);
    arg->kind = LAC_MEMBER_OTHER;
    arg->varies = false;
    if (arg->text_size == 0) {
        return;
    }
    if (*p == LAC_ARG_INTEGER || *p == LAC_ARG_REAL) {
        arg->kind = *p == LAC_ARG_INTEGER ? LAC_MEMBER_INTEGER : LAC_MEMBER_REAL;
        arg->varies = true;
    } else if (*p == '"' && arg->text_size >= 2) {
        arg->kind = LAC_MEMBER_STRING;
        arg->text++;
        arg->text_size -= 2;
    } else if (lac_decimal_integer(p, arg->text_size, &arg->integer)) {
        arg->kind = LAC_MEMBER_INTEGER;
    } else if ((*p == '-' || (*p >= '0' && *p <= '9')) && arg->text_size < 64) {
        char copy[64];
        memcpy(copy, p, arg->text_size);
        copy[arg->text_size] = 0;
        arg->kind = LAC_MEMBER_REAL;
        arg->real = strtod(copy, NULL);
    }
    if (cursor->at < cursor->end && *cursor->at == ',') {
        cursor->at++;
    }
}

bool lac_member_next(struct lac_member_cursor *cursor, struct lac_member *arg)
{
    const uint8_t *p = cursor->at;
    if (p >= cursor->end || *p != '"') {
        return false;
    }
    const uint8_t *close = string_end(p + 1, cursor->end);
    if (close >= cursor->end || close + 1 >= cursor->end) {
        return false;
    }
    arg->key = p + 1;
    arg->key_size = (size_t)(close - p - 1);
    cursor->at = close + 2; /* quote and colon */
    read_value(cursor, arg);
    return true;
}

bool lac_member_next_element(struct lac_member_cursor *cursor, struct lac_member *arg)
{
    if (cursor->at >= cursor->end || *cursor->at == ']') {
        return false;
    }
    arg->key = NULL;
    arg->key_size = 0;
    const uint8_t *before = cursor->at;
    read_value(cursor, arg);
    return cursor->at > before;
}

bool lac_member_is(const struct lac_member *arg, const char *key)
{
    return strlen(key) == arg->key_size && memcmp(key, arg->key, arg->key_size) == 0;
}

/* --- recipes -----------------------------------------------------------------------------------*/

static const struct {
    const char *key;
    enum lac_args_field field;
} known_keys[] = {
    {"correlation", LAC_FIELD_CORRELATION},
    {"correlationId", LAC_FIELD_CORRELATION},
    {"device", LAC_FIELD_DEVICE},
    {"stream", LAC_FIELD_STREAM},
    {"bytes", LAC_FIELD_BYTES},
    {"registers per thread", LAC_FIELD_REGISTERS},
    {"shared memory", LAC_FIELD_SHARED_MEMORY},
    {"est. achieved occupancy %", LAC_FIELD_OCCUPANCY},
    {"theoretical occupancy %", LAC_FIELD_OCCUPANCY},
    {"blocks per SM", LAC_FIELD_BLOCKS_PER_SM},
    {"graph node id", LAC_FIELD_GRAPH_NODE},
    {"batch", LAC_FIELD_BATCH},
    {"worker", LAC_FIELD_WORKER},
    {"cpu_ns", LAC_FIELD_CPU_NS},
    {"Bytes", LAC_FIELD_MEMORY_BYTES},
    {"Total Allocated", LAC_FIELD_MEMORY_TOTAL},
    {"Device Id", LAC_FIELD_MEMORY_DEVICE},
    {"Device Type", LAC_FIELD_MEMORY_TYPE},
};

static void set_field(struct lac_args_recipe *recipe, enum lac_args_field field,
                      const struct lac_member *arg)
{
    uint32_t bit = (uint32_t)1 << field;
    int64_t value = 0;
    bool real = arg->kind == LAC_MEMBER_REAL;
    if (arg->varies) {
        value = arg->first_number;
    } else if (arg->kind == LAC_MEMBER_INTEGER) {
        value = arg->integer;
    } else if (real) {
        memcpy(&value, &arg->real, sizeof(value));
    } else if (arg->kind == LAC_MEMBER_STRING &&
               lac_decimal_integer(arg->text, arg->text_size, &value)) {
        real = false; /* numbers in quotes: "size": "2560" */
    } else {
        return;
    }
    recipe->has |= bit;
    recipe->varies = arg->varies ? recipe->varies | bit : recipe->varies & ~bit;
    recipe->is_real = real ? recipe->is_real | bit : recipe->is_real & ~bit;
    recipe->value[field] = value;
}

/* "grid": [x, y, z] */
static void set_dimensions(struct lac_args_recipe *recipe, enum lac_args_field first,
                           const struct lac_member *arg)
{
    struct lac_member_cursor cursor = lac_member_begin(arg->text, arg->text_size);
    struct lac_member element = {0};
    cursor.number = arg->first_number;
    for (uint32_t i = 0; i < 3 && lac_member_next_element(&cursor, &element); i++) {
        set_field(recipe, first + i, &element);
    }
}

static void set_copy_kind(struct lac_args_recipe *recipe, const struct lac_member *arg)
{
    static const struct {
        const char *text;
        uint8_t kind;
    } kinds[] = {{"HtoD", LAC_COPY_HTOD},
                 {"DtoH", LAC_COPY_DTOH},
                 {"DtoD", LAC_COPY_DTOD},
                 {"HtoH", LAC_COPY_HTOH},
                 {"PtoP", LAC_COPY_PTOP}};
    for (size_t i = 0; i < LAC_COUNT_OF(kinds); i++) {
        if (arg->text_size == 4 && memcmp(arg->text, kinds[i].text, 4) == 0) {
            recipe->copy_kind = kinds[i].kind;
        }
    }
}

uint8_t lac_memory_kind_of(const char *text, size_t size)
{
    static const struct {
        const char *text;
        uint8_t kind;
    } kinds[] = {
        {"Pageable", LAC_MEMORY_PAGEABLE}, /* Kineto */
        {"Pinned", LAC_MEMORY_PINNED},        {"Device", LAC_MEMORY_DEVICE},
        {"Device Static", LAC_MEMORY_DEVICE}, {"Array", LAC_MEMORY_ARRAY},
        {"Managed", LAC_MEMORY_MANAGED},      {"Managed Static", LAC_MEMORY_MANAGED},
        {"HOST", LAC_MEMORY_PINNED}, /* Kineto on Intel GPUs */
        {"DEVICE", LAC_MEMORY_DEVICE},        {"SHARED", LAC_MEMORY_MANAGED},
        {"pageable", LAC_MEMORY_PAGEABLE}, /* XProf */
        {"pinned", LAC_MEMORY_PINNED},        {"device", LAC_MEMORY_DEVICE},
        {"device_static", LAC_MEMORY_DEVICE}, {"array", LAC_MEMORY_ARRAY},
        {"managed", LAC_MEMORY_MANAGED},      {"managed_static", LAC_MEMORY_MANAGED},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(kinds); i++) {
        if (strlen(kinds[i].text) == size && memcmp(kinds[i].text, text, size) == 0) {
            return kinds[i].kind;
        }
    }
    return LAC_MEMORY_UNKNOWN; /* "Host" of ROCm says nothing of pinning */
}

/* What follows `key` in a word of XProf's details, or NULL. */
static const char *after_key(const char *word, size_t size, const char *key, size_t *ret_size)
{
    const size_t length = strlen(key);
    if (size < length || memcmp(word, key, length) != 0) {
        return NULL;
    }
    *ret_size = size - length;
    return word + length;
}

/* XProf tells a copy or a memset in one text: "kind_src:pinned kind_dst:device size:4096 dest:0
 * async:1", "kind:device size:4096 async:1". */
static void set_details(struct lac_args_recipe *recipe, const struct lac_member *arg)
{
    const char *text = (const char *)arg->text;
    for (size_t at = 0; at < arg->text_size;) {
        const char *end = memchr(text + at, ' ', arg->text_size - at);
        const size_t size = end != NULL ? (size_t)(end - text) - at : arg->text_size - at;
        size_t length = 0;
        const char *value = after_key(text + at, size, "kind_src:", &length);
        if (value != NULL) {
            recipe->src = lac_memory_kind_of(value, length);
        }
        value = after_key(text + at, size, "kind_dst:", &length);
        value = value != NULL ? value : after_key(text + at, size, "kind:", &length);
        if (value != NULL) {
            recipe->dst = lac_memory_kind_of(value, length);
        }
        value = after_key(text + at, size, "size:", &length);
        if (value != NULL) {
            const struct lac_member bytes = {
                .kind = LAC_MEMBER_STRING, .text = (const uint8_t *)value, .text_size = length};
            set_field(recipe, LAC_FIELD_BYTES, &bytes);
        }
        at += size + 1;
    }
}

/* The keys by which annotations of CUDA graphs name a module, the last one first. */
static uint8_t module_rank(const struct lac_member *arg)
{
    static const char *const KEYS[] = {"str", "name", "fqn", "module_fqn", "module"};
    for (size_t i = 0; i < LAC_COUNT_OF(KEYS); i++) {
        if (lac_member_is(arg, KEYS[i])) {
            return (uint8_t)(i + 1);
        }
    }
    return 0;
}

/** A member that may name the module of a kernel of a CUDA graph. */
struct module_name {
    const uint8_t *text; /**< raw */
    size_t text_size;
    uint8_t rank;
};

static void look_for_module(const struct lac_member *arg, struct module_name *name)
{
    const uint8_t rank = module_rank(arg);
    if (rank > name->rank && arg->kind == LAC_MEMBER_STRING && arg->text_size > 0) {
        *name = (struct module_name){arg->text, arg->text_size, rank};
    }
}

static enum lac_status set_module(struct lac_args_recipe *recipe, struct lac_strings *strings,
                                  const struct module_name *name)
{
    struct lac_json_repairs repairs = {0};
    const bool is_node = (recipe->has & (uint32_t)1 << LAC_FIELD_GRAPH_NODE) != 0;
    if (!is_node || name->rank == 0) {
        return LAC_OK;
    }
    uint8_t *text = malloc(3 * name->text_size + 4);
    if (text == NULL) {
        return LAC_ERR_NOMEM;
    }
    const size_t size = lac_json_string_decode(name->text, name->text_size, text, &repairs);
    const enum lac_status status =
        lac_strings_intern(strings, (const char *)text, size, &recipe->module);
    free(text);
    return status;
}

static enum lac_status read_template(const uint8_t *text, size_t size_bytes,
                                     struct lac_strings *strings, struct lac_args_recipe *recipe,
                                     struct lac_args *args)
{
    struct module_name module = {0};
    struct lac_member_cursor cursor = lac_member_begin(text, size_bytes);
    struct lac_member arg = {0};
    while (lac_member_next(&cursor, &arg)) {
        for (size_t i = 0; i < LAC_COUNT_OF(known_keys); i++) {
            if (lac_member_is(&arg, known_keys[i].key)) {
                set_field(recipe, known_keys[i].field, &arg);
            }
        }
        if (lac_member_is(&arg, "grid")) {
            set_dimensions(recipe, LAC_FIELD_GRID_X, &arg);
        } else if (lac_member_is(&arg, "block")) {
            set_dimensions(recipe, LAC_FIELD_BLOCK_X, &arg);
        } else if (lac_member_is(&arg, "kind") && arg.kind == LAC_MEMBER_STRING) {
            set_copy_kind(recipe, &arg);
        } else if (arg.kind == LAC_MEMBER_STRING && (lac_member_is(&arg, "memcpy_details") ||
                                                     lac_member_is(&arg, "memset_details"))) {
            set_details(recipe, &arg);
        } else if (lac_member_is(&arg, "Input Dims") || lac_member_is(&arg, "Input dims")) {
            args->has_shapes = true;
        } else if (lac_member_is(&arg, "Call stack") && arg.kind == LAC_MEMBER_STRING) {
            args->has_stack = args->has_stack || arg.text_size > 0;
        } else {
            look_for_module(&arg, &module);
        }
    }
    return set_module(recipe, strings, &module);
}

int64_t lac_args_field(const struct lac_args_recipe *recipe, const int64_t *numbers,
                       enum lac_args_field field, int64_t absent)
{
    uint32_t bit = (uint32_t)1 << field;
    if (recipe == NULL || !(recipe->has & bit)) {
        return absent;
    }
    int64_t value = recipe->varies & bit ? numbers[recipe->value[field]] : recipe->value[field];
    if (recipe->is_real & bit) {
        double real;
        memcpy(&real, &value, sizeof(real));
        return real > -9.0e18 && real < 9.0e18 ? (int64_t)real : absent;
    }
    return value;
}

double lac_args_field_real(const struct lac_args_recipe *recipe, const int64_t *numbers,
                           enum lac_args_field field, double absent)
{
    uint32_t bit = (uint32_t)1 << field;
    if (recipe == NULL || !(recipe->has & bit)) {
        return absent;
    }
    int64_t value = recipe->varies & bit ? numbers[recipe->value[field]] : recipe->value[field];
    if (!(recipe->is_real & bit)) {
        return (double)value;
    }
    double real;
    memcpy(&real, &value, sizeof(real));
    return real;
}

/* --- the cache ---------------------------------------------------------------------------------*/

static enum lac_status grow_slots(struct lac_args_cache *cache)
{
    uint64_t slot_count = cache->slot_count ? cache->slot_count * 2 : 1024;
    uint32_t *slots = calloc((size_t)slot_count, sizeof(*slots));
    if (slots == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < cache->count; i++) {
        uint64_t slot = cache->entries[i].hash & (slot_count - 1);
        while (slots[slot]) {
            slot = (slot + 1) & (slot_count - 1);
        }
        slots[slot] = (uint32_t)i + 1;
    }
    free(cache->slots);
    cache->slots = slots;
    cache->slot_count = slot_count;
    return LAC_OK;
}

static enum lac_status add(struct lac_args_cache *cache, struct lac_strings *strings,
                           const uint8_t *text, size_t size_bytes, struct lac_args *args)
{
    struct lac_args_recipe recipe = {.config_row = LAC_NONE};
    enum lac_status status = read_template(text, size_bytes, strings, &recipe, args);
    if (status == LAC_OK) {
        status = LAC_GROW(cache->entries, &cache->capacity, cache->count + 1);
    }
    if (status == LAC_OK && (recipe.has || recipe.copy_kind || recipe.src || recipe.dst)) {
        status = LAC_GROW(cache->recipes, &cache->recipe_capacity, cache->recipe_count + 1);
        args->recipe = (uint32_t)cache->recipe_count;
    }
    if (status == LAC_OK) {
        status = lac_strings_intern(strings, (const char *)text, size_bytes, &args->template_id);
    }
    if (status != LAC_OK) {
        return status;
    }
    if (args->recipe != LAC_NONE) {
        cache->recipes[cache->recipe_count++] = recipe;
    }
    cache->entries[cache->count++] = *args;
    return LAC_OK;
}

enum lac_status lac_args_cache_find(struct lac_args_cache *cache, struct lac_strings *strings,
                                    const uint8_t *text, size_t size_bytes, uint64_t hash,
                                    uint32_t number_count, const struct lac_args **ret_args)
{
    if (cache->count * 2 >= cache->slot_count) {
        enum lac_status status = grow_slots(cache);
        if (status != LAC_OK) {
            return status;
        }
    }
    uint64_t mask = cache->slot_count - 1, slot = hash & mask;
    for (; cache->slots[slot]; slot = (slot + 1) & mask) {
        const struct lac_args *entry = &cache->entries[cache->slots[slot] - 1];
        if (entry->hash == hash && lac_strings_length(strings, entry->template_id) == size_bytes &&
            memcmp(lac_strings_get(strings, entry->template_id), text, size_bytes) == 0) {
            *ret_args = entry;
            return LAC_OK;
        }
    }
    struct lac_args args = {.hash = hash, .number_count = number_count, .recipe = LAC_NONE};
    enum lac_status status = add(cache, strings, text, size_bytes, &args);
    if (status != LAC_OK) {
        return status;
    }
    cache->slots[slot] = (uint32_t)cache->count;
    *ret_args = &cache->entries[cache->count - 1];
    return LAC_OK;
}
