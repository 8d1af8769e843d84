#ifndef LAC_SERVER_JSON_JSON_MEMBERS_H
#define LAC_SERVER_JSON_JSON_MEMBERS_H

/*
 * Members of a JSON object that is kept as text, to pass them on as they were written: digits,
 * order and members of the same name included, which json_read.h does not keep. Whether the text is
 * JSON was checked by who wrote it; here it is only cut into pieces, never beyond its end.
 */

#include "server/json/json_out.h"

#include <stdbool.h>
#include <stddef.h>

struct lac_json_member {
    const char *key; /**< as written, between the quotes */
    size_t key_length;
    const char *value;
    size_t value_length;
};

/** What is left of an object; at first all of it, from its '{'. */
struct lac_json_members {
    const char *at;
    const char *end;
};

/** Next member. @return false at the object's end, and where it is no JSON. Cost: 3 ns a byte. */
bool lac_json_member_next(struct lac_json_members *members, struct lac_json_member *ret_member);

bool lac_json_member_is(const struct lac_json_member *member, const char *key);

/** Write the member as it is. */
void lac_json_member(struct lac_json *json, const struct lac_json_member *member);

/** Whether the object has that member. */
bool lac_json_has(struct lac_json_members members, const char *key);

#endif
