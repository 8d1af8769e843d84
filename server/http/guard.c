#include "server/http/guard.h"

#include "server/http/query.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/*
 * Split an authority into host (brackets kept) and port text ("" when none). Anything that is not
 * host[:digits] is refused.
 */
static bool split_authority(const char *text, char *host, size_t capacity, const char **ret_port)
{
    size_t length;

    if (text[0] == '[') {
        const char *end = strchr(text, ']');

        if (end == NULL) {
            return false;
        }
        length = (size_t)(end - text) + 1;
    } else {
        length = strcspn(text, ":");
    }
    if (length == 0 || length >= capacity || strcspn(text, "/@?#\\ \t,") < strlen(text)) {
        return false;
    }
    memcpy(host, text, length);
    host[length] = '\0';
    if (text[length] == '\0') {
        *ret_port = text + length;
        return true;
    }
    if (text[length] != ':') {
        return false;
    }
    *ret_port = text + length + 1;
    return strspn(*ret_port, "0123456789") == strlen(*ret_port) && strlen(*ret_port) <= 5;
}

static bool is_allowed_host(const struct lac_guard *guard, const char *authority, const char *host)
{
    for (unsigned i = 0; i < guard->allow_host_count; i++) {
        if (strcasecmp(guard->allow_host[i], host) == 0 ||
            strcasecmp(guard->allow_host[i], authority) == 0) {
            return true;
        }
    }
    return false;
}

bool lac_guard_host_is_ours(const struct lac_guard *guard, const char *host)
{
    char name[LAC_AUTHORITY_BYTES_MAX];
    const char *port;

    if (host == NULL || !split_authority(host, name, sizeof(name), &port)) {
        return false;
    }
    return strcasecmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0 ||
           strcmp(name, "[::1]") == 0 || is_allowed_host(guard, host, name);
}

bool lac_guard_origin_is_ours(const struct lac_guard *guard, const char *origin, const char *host)
{
    char name[LAC_AUTHORITY_BYTES_MAX];
    const char *authority;
    const char *port;

    if (strncmp(origin, "http://", 7) == 0) {
        authority = origin + 7;
    } else if (strncmp(origin, "https://", 8) == 0) {
        authority = origin + 8;
    } else {
        return false;
    }
    if (!split_authority(authority, name, sizeof(name), &port)) {
        return false;
    }
    return strcasecmp(authority, host) == 0 || is_allowed_host(guard, authority, name);
}

bool lac_guard_fetch_site_is_ours(const char *sec_fetch_site)
{
    return sec_fetch_site == NULL || strcmp(sec_fetch_site, "same-origin") == 0 ||
           strcmp(sec_fetch_site, "none") == 0;
}

bool lac_cookie_get(const char *header, const char *name, char *out, size_t capacity_bytes)
{
    const size_t name_length = strlen(name);

    while (header != NULL && *header != '\0') {
        header += strspn(header, " \t;");
        const size_t length = strcspn(header, ";");

        if (length > name_length && header[name_length] == '=' &&
            memcmp(header, name, name_length) == 0) {
            size_t value_length = length - name_length - 1;

            while (value_length > 0 && strchr(" \t", header[name_length + value_length]) != NULL) {
                value_length--;
            }
            if (value_length >= capacity_bytes) {
                return false;
            }
            memcpy(out, header + name_length + 1, value_length);
            out[value_length] = '\0';
            return true;
        }
        header += length;
    }
    return false;
}

const char *lac_bearer_get(const char *header)
{
    if (header == NULL || strncasecmp(header, "bearer", 6) != 0 || header[6] != ' ') {
        return NULL;
    }
    header += 6;
    return header + strspn(header, " ");
}

/* Whether the parameters of a coding say q=0 (also 0.0, 0.000). */
static bool has_zero_weight(const char *text, size_t length)
{
    for (size_t i = 0; i + 2 < length; i++) {
        if ((text[i] == 'q' || text[i] == 'Q') && text[i + 1] == '=') {
            const size_t digits = strspn(text + i + 2, "0.");
            const char after = text[i + 2 + digits];

            return digits > 0 && (after < '0' || after > '9');
        }
    }
    return false;
}

bool lac_accepts_gzip(const char *accept_encoding)
{
    const char *c = accept_encoding;

    while (c != NULL && *c != '\0') {
        c += strspn(c, " \t,");
        const size_t length = strcspn(c, ",");
        const size_t name_length = strcspn(c, "; \t,");

        if ((name_length == 4 && strncasecmp(c, "gzip", 4) == 0) ||
            (name_length == 6 && strncasecmp(c, "x-gzip", 6) == 0)) {
            return !has_zero_weight(c + name_length, length - name_length);
        }
        c += length;
    }
    return false;
}

bool lac_listen_address_split(const char *text, char *host, size_t host_capacity,
                              unsigned *ret_port)
{
    assert(text != NULL && host != NULL && ret_port != NULL);
    assert(host_capacity > 0);
    const char *colon = strrchr(text, ':');
    size_t length = (colon == NULL) ? 0 : (size_t)(colon - text);
    uint64_t port;

    if (length >= host_capacity || !lac_parse_uint(colon == NULL ? text : colon + 1, &port) ||
        port > 65535) {
        return false;
    }
    if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    } else if (memchr(text, ':', length) != NULL) {
        return false; /* an IPv6 address needs its brackets */
    }
    memcpy(host, text, length);
    host[length] = '\0';
    *ret_port = (unsigned)port;
    return true;
}
