#include "collector/hang/hang_flight.h"

#include "collector/hang/hang_pickle.h"
#include "collector/hang/hang_words.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { VALUES_MAX = 1 << 20, SIZES_MAX = 8 };

/* A text of the dump that may be printed, cut where it does not fit. */
static void copy_text(const struct lac_hang_value *value, char *text, size_t capacity)
{
    size_t used = 0;

    if (value != NULL && value->kind == LAC_HANG_VALUE_TEXT) {
        for (; used < value->text.size && used + 1 < capacity; used++) {
            const unsigned char c = (unsigned char)value->text.at[used];

            text[used] = c < ' ' || c >= 0x7f ? '?' : (char)c;
        }
    }
    text[used] = '\0';
}

static const struct lac_hang_value *first_of(const struct lac_hang_value *list)
{
    return list != NULL && list->kind != LAC_HANG_VALUE_DICT && list->kind >= LAC_HANG_VALUE_LIST &&
                   list->items != NULL
               ? list->items->value
               : NULL;
}

/* "[4096, 1024] Float" of the first input. */
static void copy_sizes(const struct lac_hang_value *entry, char *text, size_t capacity)
{
    const struct lac_hang_value *const sizes = first_of(lac_hang_value_get(entry, "input_sizes"));
    char type[24];
    unsigned told = 0;

    text[0] = '\0';
    if (sizes == NULL || sizes->kind < LAC_HANG_VALUE_LIST) {
        return;
    }
    lac_hang_add(text, capacity, "[");
    for (const struct lac_hang_item *item = sizes->items; item != NULL && told < SIZES_MAX;
         item = item->next) {
        lac_hang_add(text, capacity, "%s%lld", told++ > 0 ? ", " : "",
                     (long long)lac_hang_value_integer(item->value, 0));
    }
    copy_text(first_of(lac_hang_value_get(entry, "input_dtypes")), type, sizeof(type));
    lac_hang_add(text, capacity, "]%s%s", type[0] != '\0' ? " " : "", type);
}

/* The group's name, and what it is for where that is told: ("0", "default_pg"). */
static void copy_group(const struct lac_hang_value *entry, char *text, size_t capacity)
{
    const struct lac_hang_value *const group = lac_hang_value_get(entry, "process_group");
    const struct lac_hang_item *item =
        group != NULL && group->kind >= LAC_HANG_VALUE_LIST && group->kind != LAC_HANG_VALUE_DICT
            ? group->items
            : NULL;

    copy_text(item != NULL ? item->value : group, text, capacity);
    item = item != NULL ? item->next : NULL;
    if (item != NULL && item->value->kind == LAC_HANG_VALUE_TEXT && item->value->text.size > 0 &&
        !lac_hang_value_is_text(item->value, "undefined")) {
        copy_text(item->value, text, capacity);
    }
}

static struct lac_flight_group *group_of(struct lac_flight *flight, const char *name)
{
    struct lac_flight_group *group;

    for (uint32_t i = 0; i < flight->group_count; i++) {
        if (strcmp(flight->groups[i].name, name) == 0) {
            return &flight->groups[i];
        }
    }
    if (flight->group_count == LAC_FLIGHT_GROUPS) {
        return NULL;
    }
    group = &flight->groups[flight->group_count++];
    memset(group, 0, sizeof(*group));
    (void)snprintf(group->name, sizeof(group->name), "%s", name);
    group->last.number = group->pending.number = -1;
    return group;
}

static void read_entry(struct lac_flight *flight, const struct lac_hang_value *entry)
{
    const struct lac_hang_value *number = lac_hang_value_get(entry, "collective_seq_id");
    struct lac_flight_call call;
    struct lac_flight_group *group;
    char name[sizeof(group->name)];

    if (number == NULL) { /* PyTorch 2.3 and before */
        number = lac_hang_value_get(entry, "seq_id");
    }
    call.number = lac_hang_value_integer(number, -1);
    if (call.number < 0 || lac_hang_value_integer(lac_hang_value_get(entry, "is_p2p"), 0) != 0) {
        return;
    }
    copy_text(lac_hang_value_get(entry, "profiling_name"), call.name, sizeof(call.name));
    copy_text(lac_hang_value_get(entry, "state"), call.state, sizeof(call.state));
    copy_sizes(entry, call.sizes, sizeof(call.sizes));
    copy_group(entry, name, sizeof(name));
    group = group_of(flight, name);
    if (group == NULL) {
        return;
    }
    if (call.number >= group->last.number) {
        group->last = call;
    }
    if (strcmp(call.state, "completed") != 0 &&
        (group->pending.number < 0 || call.number < group->pending.number)) {
        group->pending = call;
    }
}

bool lac_flight_read(const void *bytes, size_t size, struct lac_flight *ret)
{
    assert((bytes != NULL || size == 0) && ret != NULL);
    struct lac_hang_pickle *const pickle =
        lac_hang_pickle_read(bytes, size, VALUES_MAX, NULL, NULL);
    const struct lac_hang_value *const entries =
        pickle != NULL ? lac_hang_value_get(lac_hang_pickle_root(pickle), "entries") : NULL;
    const bool is_dump = entries != NULL && entries->kind == LAC_HANG_VALUE_LIST;

    ret->group_count = 0;
    for (const struct lac_hang_item *item = is_dump ? entries->items : NULL; item != NULL;
         item = item->next) {
        read_entry(ret, item->value);
    }
    lac_hang_pickle_free(pickle);
    return is_dump;
}

/* ---- words */

static const struct lac_flight_group *waiting_group(const struct lac_flight *flight)
{
    for (uint32_t i = 0; i < flight->group_count; i++) {
        if (flight->groups[i].pending.number >= 0) {
            return &flight->groups[i];
        }
    }
    return flight->group_count > 0 ? &flight->groups[0] : NULL;
}

void lac_flight_say(const struct lac_flight *flight, char *text, size_t capacity)
{
    assert(flight != NULL && text != NULL && capacity > 0);
    const struct lac_flight_group *const group = waiting_group(flight);
    const struct lac_flight_call *call;

    text[0] = '\0';
    lac_hang_add(text, capacity, "rank %d ", (int)flight->rank);
    if (group == NULL) {
        lac_hang_add(text, capacity, "has called no collective");
        return;
    }
    call = group->pending.number >= 0 ? &group->pending : &group->last;
    lac_hang_add(text, capacity, "%s %s, number %lld of %s%s%s, %s",
                 group->pending.number >= 0 ? "waits in" : "called last", call->name,
                 (long long)call->number, group->name, call->sizes[0] != '\0' ? ", " : "",
                 call->sizes, call->state);
}

static const struct lac_flight_group *find_group(const struct lac_flight *flight, const char *name)
{
    for (uint32_t i = 0; i < flight->group_count; i++) {
        if (strcmp(flight->groups[i].name, name) == 0) {
            return &flight->groups[i];
        }
    }
    return NULL;
}

/* Of two ranks in a group that both know. */
static bool compare_two(const struct lac_flight *a, const struct lac_flight *b,
                        const struct lac_flight_group *of_a, const struct lac_flight_group *of_b,
                        char *text, size_t capacity)
{
    const bool is_a_behind = of_a->last.number < of_b->last.number;
    const struct lac_flight *const behind = is_a_behind ? a : b;
    const struct lac_flight *const ahead = is_a_behind ? b : a;
    const struct lac_flight_group *const of_behind = is_a_behind ? of_a : of_b;
    const struct lac_flight_group *const of_ahead = is_a_behind ? of_b : of_a;

    if (of_a->last.number == of_b->last.number) {
        if (strcmp(of_a->last.name, of_b->last.name) == 0) {
            return false;
        }
        lac_hang_add(text, capacity, "number %lld of %s is %s on rank %d and %s on rank %d",
                     (long long)of_a->last.number, of_a->name, of_a->last.name, (int)a->rank,
                     of_b->last.name, (int)b->rank);
        return true;
    }
    lac_hang_add(text, capacity, "rank %d has not called number %lld of %s", (int)behind->rank,
                 (long long)of_behind->last.number + 1, of_ahead->name);
    if (of_ahead->pending.number == of_behind->last.number + 1) {
        lac_hang_add(text, capacity, " (%s), in which rank %d waits", of_ahead->pending.name,
                     (int)ahead->rank);
    } else {
        lac_hang_add(text, capacity, ", which rank %d has", (int)ahead->rank);
    }
    return true;
}

bool lac_flight_compare(const struct lac_flight *flights, uint32_t count, char *text,
                        size_t capacity)
{
    assert((flights != NULL || count == 0) && text != NULL && capacity > 0);
    text[0] = '\0';
    for (uint32_t i = 0; i + 1 < count; i++) {
        for (uint32_t g = 0; g < flights[i].group_count; g++) {
            const struct lac_flight_group *const group = &flights[i].groups[g];

            for (uint32_t k = i + 1; k < count; k++) {
                const struct lac_flight_group *const other = find_group(&flights[k], group->name);

                if (other != NULL &&
                    compare_two(&flights[i], &flights[k], group, other, text, capacity)) {
                    return true;
                }
            }
        }
    }
    return false;
}
