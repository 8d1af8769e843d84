#include "analysis/import/spool/spool_schema.h"

#include "analysis/import/spool/spool_events.h"
#include "analysis/model/grow.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"
#include "lacuna/spool.h"

#include <stdint.h>
#include <stdlib.h>

enum {
    SCHEMAS_MAX = 1024,
    SLOTS = 4096, /* a power of two beyond SCHEMAS_MAX */
    MEMBERS_MAX = 1 << 16,
};

struct lac_spool_schemas {
    struct lac_spool_schema *schemas;
    uint32_t count;
    uint32_t capacity;
    struct lac_spool_member *members;
    uint32_t member_count;
    uint32_t member_capacity;
    uint16_t slots[SLOTS]; /* index + 1 by domain and id, open addressing */
    uint64_t seed;
};

/* Where the schema is, or where it would go. */
static uint32_t slot_of(const struct lac_spool_schemas *known, uint16_t domain, uint64_t id)
{
    uint32_t at = (uint32_t)lac_hash_bytes(&id, sizeof(id), known->seed ^ domain) & (SLOTS - 1);

    while (known->slots[at] != 0 && (known->schemas[known->slots[at] - 1].id != id ||
                                     known->schemas[known->slots[at] - 1].domain != domain)) {
        at = (at + 1) & (SLOTS - 1);
    }
    return at;
}

const struct lac_spool_schema *lac_spool_schema_find(const struct lac_spool_process *process,
                                                     uint16_t domain, uint64_t id)
{
    const struct lac_spool_schemas *const known = process->schemas;
    const uint16_t slot =
        known != NULL && id >= LAC_SCHEMA_ID_STATIC ? known->slots[slot_of(known, domain, id)] : 0;

    return slot != 0 ? &known->schemas[slot - 1] : NULL;
}

void lac_spool_schemas_destroy(struct lac_spool_schemas *schemas)
{
    if (schemas != NULL) {
        free(schemas->schemas);
        free(schemas->members);
        free(schemas);
    }
}

static uint32_t string_of(const struct lac_spool_process *process, uint32_t id)
{
    return id < process->string_count ? process->string_of_id[id] : 0;
}

/* A SCHEMA event and those that follow it; returns how many were used. */
static enum lac_status add_schema(struct lac_spool_process *process, const struct lac_event *events,
                                  size_t count)
{
    struct lac_spool_schemas *const known = process->schemas;
    struct lac_spool_schema schema = {.id = events->ts,
                                      .kind = events->flags,
                                      .domain = events->domain,
                                      .name = string_of(process, events->name),
                                      .first = known->member_count};

    if (known->count >= SCHEMAS_MAX || count < 2 || events[1].type != LAC_EVENT_SCHEMA_PLACE) {
        process->payload_members_left_out++;
        return LAC_OK;
    }
    schema.size_bytes = (uint32_t)(events[1].ts >> 32);
    schema.alignment = (uint32_t)events[1].ts;
    for (size_t i = 2; i + 1 < count && events[i].type == LAC_EVENT_SCHEMA_ENTRY &&
                       events[i + 1].type == LAC_EVENT_SCHEMA_PLACE &&
                       schema.count < LAC_SCHEMA_ENTRIES_MAX && known->member_count < MEMBERS_MAX;
         i += 2) {
        const uint64_t place = events[i + 1].ts;

        if (!LAC_RESERVE(known->members, known->member_capacity, known->member_count, 1)) {
            return LAC_ERR_NOMEM;
        }
        known->members[known->member_count++] = (struct lac_spool_member){
            .type = events[i].ts,
            .name = string_of(process, events[i].name),
            .flags = events[i + 1].name,
            .offset = place >> 32 == UINT32_MAX ? -1 : (int64_t)(place >> 32),
            .detail = (uint32_t)place};
        schema.count++;
    }
    if (!LAC_RESERVE(known->schemas, known->capacity, known->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    known->schemas[known->count++] = schema;
    known->slots[slot_of(known, schema.domain, schema.id)] = (uint16_t)known->count;
    return LAC_OK;
}

enum lac_status lac_spool_schemas_collect(struct lac_spool_process *process,
                                          const struct lac_event *events, size_t count)
{
    enum lac_status status = LAC_OK;

    for (size_t i = 0; i < count && events[i].type != 0 && status == LAC_OK; i++) {
        if (events[i].type != LAC_EVENT_SCHEMA ||
            lac_spool_schema_find(process, events[i].domain, events[i].ts) != NULL) {
            continue;
        }
        if (process->schemas == NULL) {
            process->schemas = calloc(1, sizeof(*process->schemas));
            if (process->schemas == NULL) {
                return LAC_ERR_NOMEM;
            }
            process->schemas->seed = lac_hash_seed();
        }
        status = add_schema(process, &events[i], count - i);
    }
    return status;
}

const struct lac_spool_member *lac_spool_schema_members(const struct lac_spool_process *process,
                                                        const struct lac_spool_schema *schema)
{
    return schema->count > 0 ? process->schemas->members + schema->first : NULL;
}

/* ---- types */

struct lac_spool_type lac_spool_type_of(uint64_t type)
{
    /* by NVTX's numbers, where long has 64 bits */
    static const struct lac_spool_type basic[] = {
        {0, 0},    {1, 'c'}, {1, 'u'}, {2, 'i'}, {2, 'u'}, {4, 'i'}, {4, 'u'},
        {8, 'i'},  {8, 'u'}, {8, 'i'}, {8, 'u'}, {1, 'i'}, {1, 'u'}, {2, 'i'},
        {2, 'u'},  {4, 'i'}, {4, 'u'}, {8, 'i'}, {8, 'u'}, {4, 'f'}, {8, 'f'},
        {16, 'f'}, {8, 'u'}, {8, 'u'}, {4, 'c'}, {1, 'c'}, {2, 'c'}, {4, 'c'},
    };

    if (type < LAC_COUNT_OF(basic)) {
        return basic[type];
    }
    switch (type) {
    case LAC_TYPE_BYTE:
    case LAC_TYPE_UNION_SELECTOR:
        return (struct lac_spool_type){1, 'u'};
    case LAC_TYPE_INT128:
        return (struct lac_spool_type){16, 'i'};
    case LAC_TYPE_UINT128:
        return (struct lac_spool_type){16, 'u'};
    case LAC_TYPE_FLOAT16:
    case LAC_TYPE_BF16:
        return (struct lac_spool_type){2, 'f'};
    case LAC_TYPE_FLOAT32:
    case LAC_TYPE_TF32:
        return (struct lac_spool_type){4, 'f'};
    case LAC_TYPE_FLOAT64:
        return (struct lac_spool_type){8, 'f'};
    case LAC_TYPE_FLOAT128:
        return (struct lac_spool_type){16, 'f'};
    case LAC_TYPE_CATEGORY:
    case LAC_TYPE_COLOR:
    case LAC_TYPE_PID_UINT32:
    case LAC_TYPE_TID_UINT32:
        return (struct lac_spool_type){4, 'u'};
    case LAC_TYPE_RANGE_ID:
    case LAC_TYPE_SCOPE_ID:
    case LAC_TYPE_PID_UINT64:
    case LAC_TYPE_TID_UINT64:
        return (struct lac_spool_type){8, 'u'};
    case LAC_TYPE_CSTRING:
    case LAC_TYPE_CSTRING_UTF8:
        return (struct lac_spool_type){1, 't'};
    case LAC_TYPE_CSTRING_UTF16:
        return (struct lac_spool_type){2, 't'};
    case LAC_TYPE_CSTRING_UTF32:
        return (struct lac_spool_type){4, 't'};
    default:
        return (struct lac_spool_type){0, 0};
    }
}
