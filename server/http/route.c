#include "collector/base/count_of.h"
#include "server/http/request.h"

#include <assert.h>
#include <string.h>

static const char *const method_names[] = {
    [LAC_METHOD_OTHER] = "OTHER",     [LAC_METHOD_GET] = "GET",     [LAC_METHOD_POST] = "POST",
    [LAC_METHOD_PUT] = "PUT",         [LAC_METHOD_PATCH] = "PATCH", [LAC_METHOD_DELETE] = "DELETE",
    [LAC_METHOD_OPTIONS] = "OPTIONS",
};
_Static_assert(LAC_COUNT_OF(method_names) == LAC_METHOD_COUNT_, "name every method");

const char *lac_method_name(enum lac_method method)
{
    assert(method < LAC_METHOD_COUNT_);
    return method_names[method];
}

enum lac_method lac_method_of(const char *name)
{
    if (strcmp(name, "HEAD") == 0) {
        return LAC_METHOD_GET;
    }
    for (unsigned i = LAC_METHOD_GET; i < LAC_METHOD_COUNT_; i++) {
        if (strcmp(name, method_names[i]) == 0) {
            return (enum lac_method)i;
        }
    }
    return LAC_METHOD_OTHER;
}

/*
 * Match one pattern. "{...}" takes one or more bytes up to the next '/' (or, inside a segment, up
 * to the literal byte that follows it): "/g{n}/" matches "/g12/".
 */
static bool matches(const char *pattern, const char *path, struct lac_route_match *match)
{
    unsigned param_count = 0;
    size_t used = 0;

    while (*pattern != '\0') {
        if (*pattern != '{') {
            if (*pattern != *path) {
                return false;
            }
            pattern++;
            path++;
            continue;
        }
        pattern = strchr(pattern, '}');
        assert(pattern != NULL);
        pattern++;

        const char stop[] = {'/', *pattern, '\0'};
        const size_t length = strcspn(path, stop);
        assert(param_count < LAC_REQUEST_PARAMS_MAX);
        if (length == 0 || used + length + 1 > sizeof(match->storage)) {
            return false;
        }
        memcpy(match->storage + used, path, length);
        match->storage[used + length] = '\0';
        match->param[param_count++] = match->storage + used;
        used += length + 1;
        path += length;
    }
    return *path == '\0';
}

const struct lac_route *lac_route_find(const struct lac_route *routes, unsigned route_count,
                                       enum lac_method method, const char *path,
                                       struct lac_route_match *match)
{
    match->allowed = 0;
    for (unsigned i = 0; i < route_count; i++) {
        if (!matches(routes[i].pattern, path, match)) {
            continue;
        }
        match->allowed |= 1u << routes[i].method;
        if (routes[i].method == method) {
            return &routes[i];
        }
    }
    return NULL;
}
