/* The options of `lacuna serve`. */
#include "analysis/crew/crew.h"
#include "server/base/log.h"
#include "server/cli/options.h"
#include "server/cli/own_names.h"
#include "server/cli/serve/serve.h"
#include "server/http/guard.h"
#include "server/http/server.h"
#include "server/ingest/ingest.h"
#include "server/ingest/resumable.h"
#include "server/store/store.h"
#include "server/tls/tls.h"
#include "server/webhooks/address.h"
#include "server/webhooks/webhooks.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

static const char usage[] =
    "lacuna serve [--data DIR] [--listen ADDR:PORT]\n"
    "Serves the data folder: the page in the browser, and the same API for scripts.\n"
    "Prints the address to open, on a terminal with the access key (DIR/local.token).\n"
    "For scripts, DIR/local.header holds it as a header line: curl -H @DIR/local.header\n"
    "Defaults are in parentheses.\n";

static const struct lac_option option_table[] = {
    {.name = "data", .value = "DIR", .help = "the data folder"},
    {.name = "listen",
     .value = "ADDR:PORT",
     .help = "address (127.0.0.1:7070); port 0: any free port"},
    {.name = "port-file", .value = "FILE", .help = "write the listening port to FILE"},
    {.name = "address-fd",
     .value = "FD",
     .flag_only = true}, /* for `lacuna demo`, which starts us */
    {.name = "allow-remote", .help = "allow non-loopback addresses"},
    {.name = "behind-proxy", .help = "a proxy with TLS is in front: cookies are Secure"},
    {.name = "oidc-issuer", .value = "URL", .help = "people sign in at this provider"},
    {.name = "oidc-client", .value = "ID", .help = "what it calls this service"},
    {.name = "oidc-secret-file", .value = "FILE", .help = "with its secret"},
    {.name = "oidc-claim", .value = "NAME", .help = "what names the user (email)"},
    {.name = "public-url", .value = "URL", .help = "the page's address: sign-in, webhooks"},
    {.name = "trust-header",
     .value = "NAME",
     .help = "with --behind-proxy: it names the user in this header"},
    {.name = "trust-from", .value = "ADDRESS", .help = "only from there (this machine)"},
    {.name = "tls-cert", .value = "FILE", .help = "serve TLS: the certificate and its chain, PEM"},
    {.name = "tls-key", .value = "FILE", .help = "its key, PEM; SIGHUP reads both again"},
    {.name = "allow-host", .value = "HOST,...", .help = "accept these Host names too"},
    {.name = "webhook-allow",
     .value = "NET,...",
     .help = "private networks that webhooks may lead to (none)"},
    {.name = "webhook-retry", .value = "MS", .help = "wait after a failed webhook (10000)"},
    {.name = "base-path", .value = "/X/Y", .help = "path prefix behind a proxy"},
    {.name = "log-level", .value = "LEVEL", .help = "error, warn, info or debug (info)"},
    LAC_OPTION_NAMES,
    {.name = "catalog",
     .value = "URL",
     .help = "keep the catalog in postgresql://... (LACUNA_CATALOG), not in DIR/catalog.db"},
    {.name = "standby",
     .help = "while another server holds the catalog, answer reads; then take it over"},
    {.name = "node-address",
     .value = "HOST:PORT",
     .help = "where servers with --standby reach this one (--listen)"},
    {.name = "objects",
     .value = "URL",
     .help = "keep traces in s3://BUCKET/PREFIX (AWS_... variables), DIR holds copies"},
    {.name = "object-copies", .value = "BYTES", .help = "size of the copies in DIR (16G)"},
    {.name = "object-whole",
     .value = "BYTES",
     .help = "standing by, fetch smaller traces whole, of others what is read (32M)"},
    {.name = "keep-originals", .help = "keep uploaded files, compressed (on)"},
    {.name = "upload-max", .value = "BYTES", .help = "largest upload (16G)"},
    {.name = "uploads-open", .value = "N", .help = "resumable uploads in progress (256)"},
    {.name = "uploads-bytes", .value = "BYTES", .help = "their total size (4 x --upload-max)"},
    {.name = "upload-lifetime", .value = "S", .help = "time to keep stalled uploads (86400)"},
    {.name = "disk-free", .value = "BYTES", .help = "refuse uploads below it (256M)"},
    {.name = "quota-project", .value = "BYTES", .help = "uploads a project may hold (no limit)"},
    {.name = "quota-token", .value = "BYTES", .help = "uploads a token may bring (no limit)"},
    {.name = "import-memory", .value = "BYTES", .help = "memory for all imports (half of it)"},
    {.name = "import-workers", .value = "N", .help = "concurrent imports"},
    {.name = "import-time", .value = "S", .help = "limit per import (1 h plus 1 s per MiB)"},
    {.name = "import-queue", .value = "N", .help = "queued imports (10000)"},
    {.name = "cache", .value = "BYTES", .help = "cache of columns and tiles (160M)"},
    {.name = "model-cache", .value = "BYTES", .help = "cache of whole traces (1/4 of memory)"},
    {.name = "reply-memory", .value = "BYTES", .help = "replies in progress (1/8 of memory)"},
    {.name = "connections", .value = "N", .help = "open connections (8192)"},
    {.name = "connections-per-address", .value = "N", .help = "of one remote address (128)"},
    {.name = "connections-loopback", .value = "N", .help = "of this machine (4096)"},
    {.name = "header-timeout", .value = "MS", .help = "to receive a request header (10000)"},
    {.name = "idle-timeout", .value = "MS", .help = "between requests (75000)"},
    {.name = "keyless-timeout", .value = "MS", .help = "between requests, without key (10000)"},
    {.name = "body-timeout", .value = "MS", .help = "to receive a small body (30000)"},
    {.name = "rate-window", .value = "MS", .help = "over which the rate is measured (10000)"},
    {.name = "rate-min", .value = "BYTES", .help = "minimum transfer rate per second (1K)"},
    {.name = "stop-timeout", .value = "MS", .help = "to finish requests at stop (10000)"},
    {.name = "loops", .value = "N", .help = "network threads"},
    {.name = "workers", .value = "N", .help = "worker threads"},
    {0},
};

#define MODEL_CACHE_LEAST  (UINT64_C(1) << 30)
#define REPLY_MEMORY_LEAST (UINT64_C(256) << 20)

enum {
    CONNECTIONS_DEFAULT = 8192,
    DESCRIPTORS_LEAST = 64,     /* 20 of our own, 16 traces, an import, a few connections */
    DESCRIPTORS_RESERVED = 512, /* of many: for traces, imports and uploads */
};

int lac_serve_fail(const char *what)
{
    (void)fprintf(stderr, "lacuna serve: %s\n", what);
    return 1;
}
/* -- options ----------------------------------------------------------------------------------- */

static bool read_unsigned(struct service *service, const char *name, unsigned max, unsigned *ret)
{
    uint64_t value;

    if (!lac_options_number(&service->options, name, 0, max, 0, &value)) {
        return false;
    }
    *ret = (unsigned)value;
    return true;
}

static bool read_http_numbers(struct service *service)
{
    struct lac_http_options *http = &service->http_options;

    return read_unsigned(service, "connections", 1000000, &http->connections_max) &&
           read_unsigned(service, "connections-per-address", 1000000,
                         &http->peer_connections_max) &&
           read_unsigned(service, "connections-loopback", 1000000,
                         &http->loopback_connections_max) &&
           read_unsigned(service, "header-timeout", 3600000, &http->header_ms_max) &&
           read_unsigned(service, "idle-timeout", 86400000, &http->idle_ms_max) &&
           read_unsigned(service, "keyless-timeout", 86400000, &http->keyless_idle_ms_max) &&
           read_unsigned(service, "body-timeout", 3600000, &http->body_ms_max) &&
           read_unsigned(service, "rate-window", 3600000, &http->rate_window_ms) &&
           read_unsigned(service, "rate-min", 1u << 30, &http->rate_bytes_per_s_min) &&
           read_unsigned(service, "stop-timeout", 3600000, &http->stop_ms_max) &&
           read_unsigned(service, "loops", 64, &http->loop_count) &&
           read_unsigned(service, "workers", 256, &http->worker_count) &&
           lac_options_number(&service->options, "upload-max", 0, UINT64_C(1) << 50, 0,
                              &http->upload_bytes_max);
}

static bool read_upload_numbers(struct service *service)
{
    struct lac_resumable_options *uploads = &service->upload_options;

    return read_unsigned(service, "uploads-open", 100000, &uploads->open_count_max) &&
           read_unsigned(service, "upload-lifetime", 31536000, &uploads->lifetime_s) &&
           lac_options_number(&service->options, "quota-project", 0, UINT64_C(1) << 60, 0,
                              &service->ingest_options.quota_project_bytes) &&
           lac_options_number(&service->options, "quota-token", 0, UINT64_C(1) << 60, 0,
                              &service->ingest_options.quota_token_bytes) &&
           lac_options_number(&service->options, "disk-free", 0, UINT64_C(1) << 50, 0,
                              &service->ingest_options.free_bytes_min) &&
           lac_options_number(&service->options, "uploads-bytes", 0, UINT64_C(1) << 50, 0,
                              &uploads->open_bytes_max);
}

static bool read_allow_hosts(struct service *service)
{
    struct lac_guard *guard = &service->http_options.guard;
    const char *text = lac_options_text(&service->options, "allow-host", "");
    char *next = service->allow_hosts;
    char *word;

    if (strlen(text) >= sizeof(service->allow_hosts)) {
        (void)lac_serve_fail("--allow-host: the list is too long");
        return false;
    }
    memcpy(service->allow_hosts, text, strlen(text) + 1);
    while ((word = strsep(&next, ", ")) != NULL) {
        if (*word == '\0') {
            continue;
        }
        if (guard->allow_host_count == LAC_ALLOW_HOSTS_MAX) {
            (void)lac_serve_fail("--allow-host: at most 16 names");
            return false;
        }
        guard->allow_host[guard->allow_host_count++] = word;
    }
    return true;
}

/* Who is believed when a header names the user. */
static bool read_trust(struct service *service)
{
    struct lac_http_options *http = &service->http_options;
    const char *from = lac_options_text(&service->options, "trust-from", NULL);
    uint8_t address[16];

    http->trust_header = lac_options_text(&service->options, "trust-header", NULL);
    if ((http->trust_header != NULL && !http->is_behind_proxy) ||
        (from != NULL && http->trust_header == NULL)) {
        (void)lac_serve_fail(
            "--trust-header needs --behind-proxy, and --trust-from needs --trust-header: "
            "anybody could name anybody");
        return false;
    }
    if (http->trust_header != NULL &&
        (http->trust_header[0] == '\0' ||
         strspn(http->trust_header, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789-_") != strlen(http->trust_header))) {
        (void)lac_serve_fail("--trust-header: must be the name of a header field");
        return false;
    }
    if (from != NULL) { /* as the address of a connection is written */
        const int family = strchr(from, ':') != NULL ? AF_INET6 : AF_INET;

        if (inet_pton(family, from, address) != 1 ||
            inet_ntop(family, address, service->trust_from, sizeof(service->trust_from)) == NULL) {
            (void)lac_serve_fail("--trust-from: must be an IP address");
            return false;
        }
        http->trust_from = service->trust_from;
    }
    return true;
}

static bool read_webhooks(struct service *service)
{
    unsigned retry_ms = 0;

    if (!lac_nets_read(lac_options_text(&service->options, "webhook-allow", ""),
                       &service->webhooks.allowed)) {
        (void)lac_serve_fail(
            "--webhook-allow: addresses and networks, as in 10.0.0.0/8,fd00::/8, at most 32");
        return false;
    }
    if (!read_unsigned(service, "webhook-retry", LAC_WEBHOOK_RETRY_MS_MAX, &retry_ms)) {
        return false;
    }
    service->webhooks.retry_ms = retry_ms > 0 ? retry_ms : LAC_WEBHOOK_RETRY_MS;
    service->webhooks.address = lac_options_text(&service->options, "public-url", "");
    return true;
}

static bool read_address(struct service *service)
{
    struct lac_options *options = &service->options;
    struct lac_http_options *http = &service->http_options;
    enum lac_log_level level;
    char host[LAC_AUTHORITY_BYTES_MAX];
    unsigned port;

    if (!lac_log_level_parse(lac_options_text(options, "log-level", "info"), &level)) {
        (void)lac_serve_fail("--log-level must be error, warn, info or debug");
        return false;
    }
    lac_log_set_level(level);
    http->listen = lac_options_text(options, "listen", "127.0.0.1:7070");
    if (!lac_listen_address_split(http->listen, host, sizeof(host), &port)) {
        (void)fprintf(stderr,
                      "lacuna serve: --listen %s: must be ADDRESS:PORT, [ADDRESS]:PORT or "
                      "PORT\n",
                      http->listen);
        return false;
    }
    http->allow_remote = lac_options_on(options, "allow-remote", false);
    http->is_behind_proxy = lac_options_on(options, "behind-proxy", false);
    http->base_path = lac_options_text(options, "base-path", "");
    service->port_file = lac_options_text(options, "port-file", NULL);
    return true;
}

static bool read_tls(struct service *service)
{
    const struct lac_options *options = &service->options;
    struct lac_tls_options *tls = &service->tls_options;

    tls->certificate_path = lac_options_text(options, "tls-cert", NULL);
    tls->key_path = lac_options_text(options, "tls-key", NULL);
    if ((tls->certificate_path == NULL) != (tls->key_path == NULL)) {
        (void)lac_serve_fail("--tls-cert and --tls-key belong together");
        return false;
    }
    service->http_options.is_fed = tls->key_path != NULL;
    return true;
}

static bool read_numbers(struct service *service)
{
    struct lac_options *options = &service->options;
    struct lac_http_options *http = &service->http_options;
    struct lac_ingest_options *ingest = &service->ingest_options;
    struct lac_store_options *store = &service->store_options;
    uint64_t import_workers = 0;

    if (!read_http_numbers(service) || !read_upload_numbers(service) ||
        !lac_options_number(options, "import-memory", 0, UINT64_C(1) << 50, 0,
                            &ingest->memory_budget_bytes) ||
        !lac_options_number(options, "import-workers", 0, 1024, 0, &import_workers) ||
        !read_unsigned(service, "import-time", 31536000, &ingest->import_wall_seconds_max) ||
        !read_unsigned(service, "import-queue", 1000000, &ingest->queue_max) ||
        !lac_options_number(options, "cache", 0, UINT64_C(1) << 50, 0, &store->cache_bytes) ||
        !lac_options_number(options, "model-cache", 0, UINT64_C(1) << 50, 0,
                            &store->model_cache_bytes) ||
        !lac_options_number(options, "object-whole", 0, UINT64_C(1) << 60, 0,
                            &store->whole_bytes_max) ||
        !lac_options_number(options, "object-copies", 0, UINT64_C(1) << 60, 0,
                            &store->copies_bytes_max) ||
        !lac_options_number(options, "reply-memory", 0, UINT64_C(1) << 50, 0,
                            &http->reply_bytes_max)) {
        return false;
    }
    if (http->reply_bytes_max == 0) {
        const uint64_t share = lac_ingest_machine_bytes() / 8;

        http->reply_bytes_max = share > REPLY_MEMORY_LEAST ? share : REPLY_MEMORY_LEAST;
    }
    if (store->model_cache_bytes == 0) {
        /* 27 bytes a slice: 100 M events need 3 GiB */
        const uint64_t share = lac_ingest_machine_bytes() / 4;

        store->model_cache_bytes = share > MODEL_CACHE_LEAST ? share : MODEL_CACHE_LEAST;
    }
    store->helpers = lac_crew_helpers(LAC_STORE_HELPERS);
    ingest->worker_count = (uint32_t)import_workers;
    ingest->upload_bytes_max = http->upload_bytes_max;
    service->upload_options.upload_bytes_max = http->upload_bytes_max;
    return true;
}

bool lac_serve_read_options(struct service *service)
{
    struct lac_options *options = &service->options;

    if (!read_address(service) || !read_trust(service) || !read_tls(service) ||
        lac_own_names_read("lacuna serve", options, &service->own_names)) {
        return false;
    }
    service->ingest_options.keep_originals = lac_options_on(options, "keep-originals", true);
    service->ingest_options.names_text = service->own_names.text;
    service->store_options.names = service->own_names.names;
    service->store_options.catalog_address = lac_options_text(options, "catalog", NULL);
    service->store_options.objects_url = lac_options_text(options, "objects", NULL);
    service->is_standby = lac_options_on(options, "standby", false);
    service->node_address = lac_options_text(options, "node-address", NULL);
    return read_allow_hosts(service) && read_webhooks(service) && read_numbers(service) &&
           lac_options_data_dir(options, service->data_dir, sizeof(service->data_dir));
}

/* How many connections there may be where so many files may be open. */
static unsigned connections_for(rlim_t descriptors, unsigned wanted)
{
    const rlim_t reserved = descriptors / 8 + DESCRIPTORS_LEAST - DESCRIPTORS_LEAST / 4;
    const rlim_t room =
        descriptors - (reserved < DESCRIPTORS_RESERVED ? reserved : DESCRIPTORS_RESERVED);

    return room < wanted ? (unsigned)room : wanted;
}

/* Each connection is a descriptor, and an upload's file another: raise the soft limit to what is
 * needed, and take fewer connections where the hard limit is lower. */
bool lac_serve_fit_descriptors(struct lac_http_options *http)
{
    const unsigned wanted =
        http->connections_max != 0 ? http->connections_max : CONNECTIONS_DEFAULT;
    const rlim_t needed = (rlim_t)wanted * 2 + DESCRIPTORS_RESERVED;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return true;
    }
    if (limit.rlim_cur < needed && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur < DESCRIPTORS_LEAST) {
        (void)fprintf(stderr,
                      "lacuna serve: only %llu files may be open (ulimit -n): at least %d are "
                      "needed\n",
                      (unsigned long long)limit.rlim_cur, DESCRIPTORS_LEAST);
        return false;
    }
    http->connections_max = connections_for(limit.rlim_cur, wanted);
    return true;
}
int lac_serve_parse(struct service *service, int argc, char **argv)
{
    return lac_options_parse(&service->options, option_table, usage, argc, argv);
}
