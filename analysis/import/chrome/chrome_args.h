#ifndef LAC_ANALYSIS_IMPORT_CHROME_CHROME_ARGS_H
#define LAC_ANALYSIS_IMPORT_CHROME_CHROME_ARGS_H

/*
 * Argument templates: interned once, and what they say (correlation, stream, launch configuration)
 * worked out once for each distinct template. Per event only the numbers are looked up.
 */

#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lac_args_field {
    LAC_FIELD_CORRELATION = 0,
    LAC_FIELD_DEVICE,
    LAC_FIELD_STREAM,
    LAC_FIELD_BYTES,
    LAC_FIELD_REGISTERS,
    LAC_FIELD_SHARED_MEMORY,
    LAC_FIELD_OCCUPANCY,
    LAC_FIELD_BLOCKS_PER_SM,
    LAC_FIELD_GRAPH_NODE,
    LAC_FIELD_GRID_X,
    LAC_FIELD_GRID_Y,
    LAC_FIELD_GRID_Z,
    LAC_FIELD_BLOCK_X,
    LAC_FIELD_BLOCK_Y,
    LAC_FIELD_BLOCK_Z,
    LAC_FIELD_BATCH,
    LAC_FIELD_WORKER,
    LAC_FIELD_CPU_NS,
    LAC_FIELD_MEMORY_BYTES,
    LAC_FIELD_MEMORY_TOTAL,
    LAC_FIELD_MEMORY_DEVICE,
    LAC_FIELD_MEMORY_TYPE,
    LAC_FIELD_COUNT_
};

/** Fields of one template. Fields that it lacks are not in `has`. */
struct lac_args_recipe {
    uint32_t has;        /**< bit per field */
    uint32_t is_real;    /**< bit per field: value or number holds the bits of a double */
    uint32_t varies;     /**< bit per field: value is the index of one of the event's numbers */
    uint32_t config_row; /**< row of the launch configuration when it does not vary, LAC_NONE */
    uint32_t module;   /**< string id of what PyTorch's annotations of CUDA graphs call it, or 0 */
    uint8_t copy_kind; /**< enum lac_copy_kind, from "kind" */
    uint8_t src, dst;  /**< enum lac_memory_kind, from XProf's details of a copy or memset */
    int64_t value[LAC_FIELD_COUNT_];
};

struct lac_args {
    uint64_t hash;
    uint32_t template_id; /**< string id */
    uint32_t number_count;
    uint32_t recipe; /**< index into recipes, LAC_NONE when it says nothing we know */
    bool has_shapes;
    bool has_stack; /**< the Python frames that the event was recorded in */
};

struct lac_args_cache {
    struct lac_args *entries; /**< one a template, in order of appearance */
    uint64_t count, capacity;
    uint32_t *slots; /**< open addressing: index + 1 */
    uint64_t slot_count;
    struct lac_args_recipe *recipes;
    uint64_t recipe_count, recipe_capacity;
};

void lac_args_cache_done(struct lac_args_cache *cache);

/**
 * Entry of the template. Valid until the next call.
 *
 * @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT (strings)
 */
LAC_MUST_USE enum lac_status lac_args_cache_find(struct lac_args_cache *cache,
                                                 struct lac_strings *strings, const uint8_t *text,
                                                 size_t size_bytes, uint64_t hash,
                                                 uint32_t number_count,
                                                 const struct lac_args **ret_args);

static inline struct lac_args_recipe *lac_args_recipe_of(struct lac_args_cache *cache,
                                                         const struct lac_args *args)
{
    return args != NULL && args->recipe != UINT32_MAX ? &cache->recipes[args->recipe] : NULL;
}

/** Value of a field, or `absent`. Reals are rounded toward 0. */
int64_t lac_args_field(const struct lac_args_recipe *recipe, const int64_t *numbers,
                       enum lac_args_field field, int64_t absent);
double lac_args_field_real(const struct lac_args_recipe *recipe, const int64_t *numbers,
                           enum lac_args_field field, double absent);

/** enum lac_memory_kind that a text names, as Kineto ("Pageable"), Kineto on Intel GPUs ("SHARED") or
 *  XProf ("device_static") writes it. */
uint8_t lac_memory_kind_of(const char *text, size_t size);

/* Walking a template, member by member. */

enum lac_member_kind {
    LAC_MEMBER_OTHER = 0,
    LAC_MEMBER_STRING,
    LAC_MEMBER_INTEGER,
    LAC_MEMBER_REAL
};

struct lac_member {
    const uint8_t *key; /**< raw, without quotes */
    size_t key_size;
    const uint8_t *text; /**< raw value; strings without quotes */
    size_t text_size;
    enum lac_member_kind kind;
    bool varies;           /**< one of the event's numbers */
    uint32_t first_number; /**< index of the first number in or after the value */
    int64_t integer;       /**< of kind INTEGER, unless it varies */
    double real;           /**< of kind REAL, unless it varies */
};

struct lac_member_cursor {
    const uint8_t *at, *end;
    uint32_t number;
};

/** Begin at the first member of an object in valid JSON without white space. */
struct lac_member_cursor lac_member_begin(const void *text, size_t size_bytes);
/** False after the last member. */
bool lac_member_next(struct lac_member_cursor *cursor, struct lac_member *arg);
/** The same for the elements of an array (arg->key is NULL). */
bool lac_member_next_element(struct lac_member_cursor *cursor, struct lac_member *arg);

bool lac_member_is(const struct lac_member *arg, const char *key);

#endif
