#ifndef LAC_SERVER_HTTP_GUARD_H
#define LAC_SERVER_HTTP_GUARD_H

/*
 * Who may ask: pure checks of header values, no I/O. Every string is hostile.
 *
 * Host: a page of another site can make a browser connect to 127.0.0.1 under its own name (DNS
 * rebinding), so only names that mean this machine, or that were allowed, are answered.
 * Origin: a page of another origin must not use our cookie, nor reach us at all.
 */

#include <stdbool.h>
#include <stddef.h>

enum { LAC_ALLOW_HOSTS_MAX = 16, LAC_AUTHORITY_BYTES_MAX = 256 };

struct lac_guard {
    const char *allow_host[LAC_ALLOW_HOSTS_MAX]; /**< "host" (any port) or "host:port" */
    unsigned allow_host_count;
};

/**
 * Whether a Host header names us: localhost, 127.0.0.1 or [::1] with any port (so that `ssh -L`
 * works), or an allowed host.
 */
bool lac_guard_host_is_ours(const struct lac_guard *guard, const char *host);

/**
 * Whether an Origin header is of our page: http or https and either the same authority as Host or
 * an allowed host (behind a proxy that rewrites Host). "null" is not.
 */
bool lac_guard_origin_is_ours(const struct lac_guard *guard, const char *origin, const char *host);

/**
 * Whether Sec-Fetch-Site lets a request use the cookie. Cookies ignore ports, so another user's
 * server on this host would be "same-site": only same-origin, none (typed in) and no header pass.
 */
bool lac_guard_fetch_site_is_ours(const char *sec_fetch_site);

/** Find cookie `name` in a Cookie header; copies the value. @return false when absent
 *  or too long */
bool lac_cookie_get(const char *header, const char *name, char *out, size_t capacity_bytes);

/** The token of `Authorization: Bearer TOKEN`, or NULL. Borrowed from the header. */
const char *lac_bearer_get(const char *header);

/** Whether Accept-Encoding admits gzip ("gzip;q=0" does not). */
bool lac_accepts_gzip(const char *accept_encoding);

/** Split "ADDR:PORT", "[ADDR]:PORT" or "PORT"; the host goes to `host` ("" for a bare port). */
bool lac_listen_address_split(const char *text, char *host, size_t host_capacity,
                              unsigned *ret_port);

#endif
