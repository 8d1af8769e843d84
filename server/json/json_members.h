#ifndef LAC_SERVER_JSON_JSON_MEMBERS_H
#define LAC_SERVER_JSON_JSON_MEMBERS_H

/* Members of a JSON object that is kept as text: to pass them on without reading what they say. */

#include <stdbool.h>
#include <stddef.h>

struct lac_json_member {
    const char *key; /**< as written, between the quotes */
    size_t key_length;
    const char *value;
    size_t value_length;
};

/** Next member; `*at` starts at the object's '{'. @return false at its end, or where it
 *  is no JSON */
bool lac_json_member_next(const char **at, struct lac_json_member *ret_member);

bool lac_json_member_is(const struct lac_json_member *member, const char *key);

/** Whether the object has that member. */
bool lac_json_has(const char *object, const char *key);

#endif
