#include "server/json/list_page.h"

#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/** Where the elements of a list are. */
struct list {
    const char *begin; /**< behind the bracket */
    const char *from;  /**< the first that is kept */
    const char *to;    /**< behind the last of those, without its comma */
    const char *end;   /**< the closing bracket */
    uint64_t count;
};

/** Behind the string that begins at `at`. */
static const char *string_end(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++) {
        at += *at == '\\';
    }
    return at < end ? at + 1 : end;
}

/** @return false: no list begins at `at`, or it does not end */
static bool find_elements(const char *at, const char *end, uint64_t after, uint64_t limit,
                          struct list *ret_list)
{
    struct list list = {.begin = at, .from = at, .to = at};
    unsigned depth = 0;
    bool is_empty = true;

    while (at < end && (depth > 0 || *at != ']')) {
        const bool is_between = depth == 0 && *at == ',';

        is_empty = false;
        if (is_between && list.count < after + limit) {
            list.to = at;
        }
        list.count += is_between;
        if (is_between && list.count == after) {
            list.from = at + 1;
        }
        depth += *at == '[' || *at == '{';
        depth -= *at == ']' || *at == '}';
        at = *at == '"' ? string_end(at, end) : at + 1;
    }
    list.count += !is_empty;
    list.end = at;
    if (list.count <= after) {
        list.from = at;
    }
    if (list.count <= after || list.count - after <= limit) {
        list.to = at;
    }
    *ret_list = list;
    return at < end;
}

enum lac_status lac_list_page(struct lac_buffer *reply, const char *list, uint64_t after,
                              uint64_t limit)
{
    assert(reply != NULL && list != NULL && limit > 0);
    static const char NEXT[] = "\"next\":null";
    char opening[64];
    char next[48];
    struct list found;
    struct lac_buffer page = {.size_bytes_max = reply->size_bytes_max};
    const char *const end = reply->bytes + reply->size_bytes;
    const char *at;
    const char *next_at;

    (void)snprintf(opening, sizeof(opening), "\"%s\":[", list);
    at = memmem(reply->bytes, reply->size_bytes, opening, strlen(opening));
    if (at == NULL || !find_elements(at + strlen(opening), end, after, limit, &found)) {
        return LAC_OK;
    }
    lac_buffer_add(&page, reply->bytes, (size_t)(found.begin - reply->bytes));
    lac_buffer_add(&page, found.from, (size_t)(found.to - found.from));
    next_at = memmem(found.end, (size_t)(end - found.end), NEXT, sizeof(NEXT) - 1);
    if (next_at != NULL && found.to < found.end) {
        const int length = snprintf(next, sizeof(next), "\"next\":\"%" PRIu64 "\"", after + limit);

        lac_buffer_add(&page, found.end, (size_t)(next_at - found.end));
        lac_buffer_add(&page, next, (size_t)length);
        found.end = next_at + sizeof(NEXT) - 1;
    }
    lac_buffer_add(&page, found.end, (size_t)(end - found.end));
    if (page.status != LAC_OK) {
        lac_buffer_done(&page);
        return LAC_ERR_NOMEM;
    }
    lac_buffer_done(reply);
    *reply = page;
    return LAC_OK;
}
