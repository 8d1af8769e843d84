/*
 * The gate: framing, Host, Origin, route, access, body size. In that order, so that a request that
 * should not be here learns nothing.
 */
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/http/framing.h"
#include "server/http/guard.h"
#include "server/http/key.h"
#include "server/http/metrics.h"
#include "server/http/peers.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/http/server_private.h"

#include <microhttpd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* What of the header fields matters here. Borrowed from libmicrohttpd. */
struct fields {
    unsigned content_length_count;
    unsigned transfer_encoding_count;
    unsigned host_count;
    unsigned origin_count;
    unsigned authorization_count;
    bool expects_continue;
    const char *content_length;
    const char *transfer_encoding;
    const char *host;
    const char *origin;
    const char *authorization;
    const char *cookie;
    const char *sec_fetch_site;
    const char *accept_encoding;
    const char *if_none_match;
    const char *forwarded_for;
    const char *named_by; /**< the field in which our proxy names the user; NULL: it does not */
    const char *named;
    unsigned named_count;
    const char *node; /**< a server that passes requests on: its secret */
    const char *as;   /**< by what the local key was shown there */
    const char *wanted[LAC_FIELD_COUNT_];
    bool is_wanted_twice;
};

static const char *const field_names[LAC_FIELD_COUNT_] = {
    [LAC_FIELD_TUS_RESUMABLE] = "Tus-Resumable",
    [LAC_FIELD_UPLOAD_LENGTH] = "Upload-Length",
    [LAC_FIELD_UPLOAD_DEFER_LENGTH] = "Upload-Defer-Length",
    [LAC_FIELD_UPLOAD_OFFSET] = "Upload-Offset",
    [LAC_FIELD_UPLOAD_METADATA] = "Upload-Metadata",
    [LAC_FIELD_UPLOAD_CHECKSUM] = "Upload-Checksum",
    [LAC_FIELD_UPLOAD_CONCAT] = "Upload-Concat",
    [LAC_FIELD_CONTENT_TYPE] = "Content-Type",
    [LAC_FIELD_METHOD_OVERRIDE] = "X-HTTP-Method-Override",
    [LAC_FIELD_COOKIE] = "Cookie",
};

static void keep(const char **place, unsigned *count, const char *value)
{
    *place = value;
    if (count != NULL) {
        (*count)++;
    }
}

static void see_wanted(struct fields *fields, const char *key, const char *value)
{
    for (unsigned i = 0; i < LAC_FIELD_COUNT_; i++) {
        if (strcasecmp(key, field_names[i]) == 0) {
            fields->is_wanted_twice = fields->is_wanted_twice || fields->wanted[i] != NULL;
            fields->wanted[i] = value;
        }
    }
}

static enum MHD_Result see_field(void *context, enum MHD_ValueKind kind, const char *key,
                                 const char *value)
{
    struct fields *fields = context;

    (void)kind;
    if (value == NULL) {
        return MHD_YES;
    }
    if (fields->named_by != NULL && strcasecmp(key, fields->named_by) == 0) {
        keep(&fields->named, &fields->named_count, value);
    } else if (strcasecmp(key, "Content-Length") == 0) {
        keep(&fields->content_length, &fields->content_length_count, value);
    } else if (strcasecmp(key, "Transfer-Encoding") == 0) {
        keep(&fields->transfer_encoding, &fields->transfer_encoding_count, value);
    } else if (strcasecmp(key, "Host") == 0) {
        keep(&fields->host, &fields->host_count, value);
    } else if (strcasecmp(key, "Origin") == 0) {
        keep(&fields->origin, &fields->origin_count, value);
    } else if (strcasecmp(key, "Authorization") == 0) {
        keep(&fields->authorization, &fields->authorization_count, value);
    } else if (strcasecmp(key, "Cookie") == 0) {
        keep(&fields->cookie, NULL, value);
        fields->wanted[LAC_FIELD_COOKIE] = value;
    } else if (strcasecmp(key, "Sec-Fetch-Site") == 0) {
        keep(&fields->sec_fetch_site, NULL, value);
    } else if (strcasecmp(key, "Accept-Encoding") == 0) {
        keep(&fields->accept_encoding, NULL, value);
    } else if (strcasecmp(key, "Expect") == 0) {
        fields->expects_continue = true;
    } else if (strcasecmp(key, "X-Forwarded-For") == 0) {
        keep(&fields->forwarded_for, NULL, value); /* the last line, which our proxy wrote */
    } else if (strcasecmp(key, "Lacuna-Node") == 0) {
        keep(&fields->node, NULL, value);
    } else if (strcasecmp(key, "Lacuna-As") == 0) {
        keep(&fields->as, NULL, value);
    } else if (strcasecmp(key, "If-None-Match") == 0) {
        keep(&fields->if_none_match, NULL, value);
    } else {
        see_wanted(fields, key, value);
    }
    return MHD_YES;
}

static bool refuse(struct exchange *x, unsigned http_status, const char *code, const char *message)
{
    x->close_after = true; /* what follows on this connection cannot be trusted, or is its body */
    lac_response_error(&x->response, http_status, code, "%s", message);
    return false;
}

/* If the end of a request can be read in two ways, a proxy may see two requests. */
static bool framing_is_sound(struct exchange *x, const struct fields *fields, const char *version)
{
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0) {
        return refuse(x, 505, "http_version", "only HTTP/1.1 and HTTP/1.0 are understood");
    }
    if (x->connection->framing.header_count == 0) {
        return refuse(x, 500, "internal", "the request was not checked on its way here");
    }
    if (x->target_status != LAC_OK) {
        return refuse(x, x->target_status == LAC_ERR_LIMIT ? 414 : 400, "bad_request",
                      x->target_error.message);
    }
    if (fields->content_length_count > 1 || fields->transfer_encoding_count > 1) {
        return refuse(x, 400, "bad_request",
                      "Content-Length or Transfer-Encoding is given more than once");
    }
    if (fields->content_length_count > 0 && fields->transfer_encoding_count > 0) {
        return refuse(x, 400, "bad_request",
                      "Content-Length and Transfer-Encoding exclude each other");
    }
    if (fields->transfer_encoding != NULL &&
        (strcasecmp(fields->transfer_encoding, "chunked") != 0 ||
         strcmp(version, "HTTP/1.1") != 0)) {
        return refuse(x, 400, "bad_request", "Transfer-Encoding must be chunked, in HTTP/1.1");
    }
    if (fields->transfer_encoding != NULL) {
        x->request.content_length = LAC_SIZE_UNKNOWN;
    } else if (fields->content_length != NULL &&
               !lac_parse_uint(fields->content_length, &x->request.content_length)) {
        return refuse(x, 400, "bad_request", "Content-Length is not a number");
    }
    if (x->connection->framing.verdict == LAC_FRAMING_UNCLEAR) {
        return refuse(x, 400, "bad_request", "where this request ends is unknown");
    }
    /* a client that does not wait for "100 Continue" sends its body before it reads a refusal */
    x->drains_body = x->request.content_length > 0 && !fields->expects_continue &&
                     (x->request.content_length == LAC_SIZE_UNKNOWN ||
                      x->request.content_length <= LAC_DRAIN_BYTES_MAX);
    return true;
}

static bool origin_is_ours(struct exchange *x, const struct fields *fields)
{
    const struct lac_guard *guard = &x->loop->server->options.guard;

    if (fields->host_count != 1 || !lac_guard_host_is_ours(guard, fields->host)) {
        return refuse(
            x, 403, "host_not_allowed",
            "this server does not answer to that Host: open it as localhost or 127.0.0.1, "
            "or start it with --allow-host");
    }
    if (fields->origin_count > 1 ||
        (fields->origin != NULL &&
         !lac_guard_origin_is_ours(guard, fields->origin, fields->host))) {
        return refuse(x, 403, "origin_not_allowed",
                      "pages of another origin may not use this server");
    }
    return true;
}

/* The path without --base-path. A proxy may have removed it already, so both forms are taken. */
static void strip_base_path(struct exchange *x)
{
    const struct lac_http_server *server = x->loop->server;
    const size_t length = server->base_path_length;
    char *const path = x->target.path;

    if (length > 0 && strncmp(path, server->options.base_path, length) == 0 &&
        (path[length] == '/' || path[length] == '\0')) {
        memmove(path, path + length, strlen(path + length) + 1);
        if (path[0] == '\0') {
            memcpy(path, "/", 2);
        }
    }
}

/*
 * tus 1.0.0: a client whose surroundings know neither PATCH nor DELETE sends a POST that says in
 * X-HTTP-Method-Override what is meant. Nowhere but at uploads, and nowhere a POST has a meaning of
 * its own: elsewhere a proxy that lets no DELETE through would be led around.
 */
static void find_overridden(struct exchange *x, const char *name)
{
    const struct lac_http_options *options = &x->loop->server->options;
    const enum lac_method method = name != NULL ? lac_method_of(name) : LAC_METHOD_OTHER;

    if (x->route != NULL || x->request.method != LAC_METHOD_POST ||
        (method != LAC_METHOD_PATCH && method != LAC_METHOD_DELETE)) {
        return;
    }
    const struct lac_route *route =
        lac_route_find(options->routes, options->route_count, method, x->target.path, &x->match);
    if (route != NULL && route->access == LAC_ACCESS_UPLOAD) {
        x->route = route;
        x->request.method = method;
    }
}

static bool route_is_known(struct exchange *x, const struct fields *fields)
{
    const struct lac_http_options *options = &x->loop->server->options;
    char allow[80] = "";

    x->route = lac_route_find(options->routes, options->route_count, x->request.method,
                              x->target.path, &x->match);
    find_overridden(x, fields->wanted[LAC_FIELD_METHOD_OVERRIDE]);
    const unsigned allowed = x->match.allowed;
    if (x->route != NULL) {
        memcpy(x->request.param, x->match.param, sizeof(x->request.param));
        x->metrics_row = LAC_METRICS_ROUTES + (unsigned)(x->route - options->routes);
        return true;
    }
    if (allowed == 0 && x->request.method == LAC_METHOD_GET &&
        strncmp(x->target.path, "/api/", 5) != 0) {
        x->metrics_row = LAC_METRICS_STATIC;
        return true; /* static.c decides */
    }
    if (allowed == 0) {
        return refuse(x, 404, "not_found", "no such address");
    }
    for (unsigned m = LAC_METHOD_GET; m < LAC_METHOD_COUNT_; m++) {
        if ((allowed & (1u << m)) != 0) {
            const size_t used = strlen(allow);

            (void)snprintf(allow + used, sizeof(allow) - used, "%s%s", used > 0 ? ", " : "",
                           lac_method_name((enum lac_method)m));
        }
    }
    (void)refuse(x, 405, "method_not_allowed", "this address does not support that method");
    lac_response_header(&x->response, "Allow", "%s", allow);
    return false;
}

/* A server that passes requests on says by which secret it is known, and then whom it speaks for. */
static bool is_from_node(const struct exchange *x, const struct fields *fields)
{
    const char *secret = x->loop->server->options.node_secret;

    return secret != NULL && *secret != '\0' && fields->node != NULL &&
           lac_key_same_secret(secret, fields->node);
}

/* Whom it saw the local key of its own folder from: the owner of the machine is the same. */
static enum lac_proof identify_as(struct exchange *x, const char *as)
{
    if (as == NULL) {
        return LAC_PROOF_NONE;
    }
    x->request.who = (struct lac_principal){.kind = LAC_PRINCIPAL_KEY,
                                            .name = "local",
                                            .scope = LAC_RIGHTS_ALL,
                                            .is_service_admin = true};
    return strcmp(as, "bearer") == 0 ? LAC_PROOF_BEARER : LAC_PROOF_COOKIE;
}

/* Who asks, and how it was shown. A connection that showed a secret keeps its place (places.c). */
static enum lac_proof identify(struct exchange *x, const struct fields *fields)
{
    static const char *const cookies[] = {"lacuna_session", "lacuna_key"};
    const struct lac_http_options *options = &x->loop->server->options;
    const char *bearer = lac_bearer_get(fields->authorization);
    char cookie[LAC_KEY_TEXT_LENGTH + 2];
    enum lac_proof proof = is_from_node(x, fields) ? identify_as(x, fields->as) : LAC_PROOF_NONE;

    if (proof == LAC_PROOF_NONE && fields->authorization_count == 1 && bearer != NULL &&
        options->identify(options->app, LAC_PROOF_BEARER, bearer, &x->request.who)) {
        proof = LAC_PROOF_BEARER;
    }
    for (size_t i = 0;
         i < LAC_COUNT_OF(cookies) && fields->authorization_count == 0 && proof == LAC_PROOF_NONE;
         i++) {
        if (lac_cookie_get(fields->cookie, cookies[i], cookie, sizeof(cookie)) &&
            options->identify(options->app, LAC_PROOF_COOKIE, cookie, &x->request.who)) {
            proof = LAC_PROOF_COOKIE;
            (void)snprintf(x->request.cookie, sizeof(x->request.cookie), "%s", cookie);
        }
    }
    /* the name goes with whatever the browser asks, as a cookie does: the same guards hold */
    if (proof == LAC_PROOF_NONE && bearer == NULL && fields->named_count == 1 &&
        options->identify_named(options->app, fields->named, &x->request.who)) {
        proof = LAC_PROOF_COOKIE;
    }
    if (proof != LAC_PROOF_NONE) {
        lac_connection_trust(x->connection);
    }
    x->request.proof = proof;
    return proof;
}

/* Something that may be a secret, of a kind that servers with one catalog have in common. */
static bool shows_secret(const struct fields *fields)
{
    char cookie[LAC_KEY_TEXT_LENGTH + 2];

    return lac_bearer_get(fields->authorization) != NULL ||
           lac_cookie_get(fields->cookie, "lacuna_session", cookie, sizeof(cookie));
}

/* Another server answers: from here on the request is one of a route that only passes it on. What it
 * may is for that server to say. @return whether it is */
static bool goes_elsewhere(struct exchange *x, const struct fields *fields)
{
    const struct lac_http_options *options = &x->loop->server->options;

    if (options->is_elsewhere == NULL || x->route == NULL) {
        return false;
    }
    x->pass_proof = identify(x, fields);
    /* a session or a token that is new: the news of it may still be on its way here */
    x->is_passed_on = options->is_elsewhere(options->app, x->route) ||
                      (x->pass_proof == LAC_PROOF_NONE && x->route->access != LAC_ACCESS_OPEN &&
                       x->route->run != LAC_RUN_EVENTS && shows_secret(fields));
    return x->is_passed_on;
}

static bool access_is_granted(struct exchange *x, const struct fields *fields)
{
    const bool is_open = x->route == NULL || x->route->access == LAC_ACCESS_OPEN;
    enum lac_proof proof;

    if (x->route == NULL && x->connection->has_key) {
        return true;
    }
    proof = identify(x, fields);
    if (is_open || proof == LAC_PROOF_BEARER) {
        return true;
    }
    if (proof == LAC_PROOF_NONE) {
        (void)refuse(x, 401, "no_key",
                     "sign in, or show a key or a token: open the address that `lacuna serve` "
                     "printed, or send the token as a bearer");
        lac_response_header(&x->response, "WWW-Authenticate", "Bearer realm=\"lacuna\"");
        return false;
    }
    /* the browser sends the cookie for any page that asks: only ours may */
    if (!lac_guard_fetch_site_is_ours(fields->sec_fetch_site) ||
        (x->is_state_changing && fields->origin == NULL && fields->sec_fetch_site == NULL)) {
        return refuse(x, 403, "origin_not_allowed",
                      "a change with the cookie must come from our own page; scripts send the key "
                      "as a bearer token");
    }
    return true;
}

static bool body_fits(struct exchange *x)
{
    const uint64_t upload_max = x->loop->server->options.upload_bytes_max;
    const uint64_t limit = x->route == NULL                              ? 0
                           : x->route->body_bytes_max == LAC_BODY_UPLOAD ? upload_max
                                                                         : x->route->body_bytes_max;

    if (limit == 0 && x->request.content_length > 0) {
        return refuse(x, 413, "body_too_large", "this address takes no body");
    }
    if (x->request.content_length != LAC_SIZE_UNKNOWN && x->request.content_length > limit) {
        x->close_after = true;
        lac_response_error(&x->response, 413, "body_too_large",
                           "the body has %llu bytes; at most %llu are allowed here",
                           (unsigned long long)x->request.content_length,
                           (unsigned long long)limit);
        return false;
    }
    return true;
}

/* libmicrohttpd's copies go with the connection, which may end while a worker reads them. */
static bool copy_fields(struct exchange *x, const struct fields *fields)
{
    size_t size = 0;
    char *next;

    if (fields->is_wanted_twice) {
        return refuse(x, 400, "bad_request", "a header field is given more than once");
    }
    for (unsigned i = 0; i < LAC_FIELD_COUNT_; i++) {
        size += fields->wanted[i] != NULL ? strlen(fields->wanted[i]) + 1 : 0;
    }
    if (size == 0) {
        return true;
    }
    x->fields = malloc(size);
    if (x->fields == NULL) {
        return refuse(x, 503, "out_of_memory", "no memory for this request");
    }
    next = x->fields;
    for (unsigned i = 0; i < LAC_FIELD_COUNT_; i++) {
        if (fields->wanted[i] != NULL) {
            const size_t length = strlen(fields->wanted[i]) + 1;

            x->request.field[i] = memcpy(next, fields->wanted[i], length);
            next += length;
        }
    }
    return true;
}

/* Whom our proxy speaks for: it adds the address to the end of the list that it was sent. */
static void see_forwarded(struct exchange *x, const char *list)
{
    const char *last = strrchr(list, ',');
    const char *address = last != NULL ? last + 1 : list;

    address += strspn(address, " \t");
    const size_t length = strspn(address, "0123456789abcdefABCDEF.:");
    if (length > 0 && length < sizeof(x->request.peer) && address[length] == '\0') {
        (void)snprintf(x->request.peer, sizeof(x->request.peer), "%s", address);
    }
}

/* Whether our proxy connected: others who send its header are not believed. */
static bool is_from_proxy(const struct exchange *x)
{
    const struct lac_http_options *options = &x->loop->server->options;
    const struct sockaddr_storage *address = &x->connection->place.address;

    return options->trust_from != NULL
               ? strcmp(x->request.peer, options->trust_from) == 0
               : lac_address_is_loopback((const struct sockaddr *)(const void *)address);
}

bool lac_exchange_check(struct exchange *x, struct MHD_Connection *mhd, const char *version)
{
    const struct lac_http_options *options = &x->loop->server->options;
    struct fields fields = {0};

    fields.named_by = options->is_behind_proxy ? options->trust_header : NULL;
    (void)MHD_get_connection_values(mhd, MHD_HEADER_KIND, see_field, &fields);
    x->accepts_gzip = lac_accepts_gzip(fields.accept_encoding);
    if (!framing_is_sound(x, &fields, version) || !origin_is_ours(x, &fields)) {
        return false;
    }
    if (!is_from_node(x, &fields) && (fields.named_by == NULL || !is_from_proxy(x))) {
        fields.named_count = 0; /* anybody could name anybody */
    }
    if ((options->is_behind_proxy || is_from_node(x, &fields)) && fields.forwarded_for != NULL) {
        see_forwarded(x, fields.forwarded_for);
    }
    strip_base_path(x);
    if (!route_is_known(x, &fields) ||
        (!goes_elsewhere(x, &fields) && !access_is_granted(x, &fields)) || !body_fits(x) ||
        !copy_fields(x, &fields)) {
        return false;
    }
    if (x->is_passed_on) {
        x->route = options->elsewhere;
        return lac_pass_on_prepare(x, mhd, fields.named_count > 0);
    }
    if (fields.if_none_match != NULL) {
        x->if_none_match = strdup(fields.if_none_match); /* without it: a full reply */
    }
    x->request.if_none_match = x->if_none_match;
    return true;
}
