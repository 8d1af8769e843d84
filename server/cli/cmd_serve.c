#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/api/document_cache.h"
#include "server/base/log.h"
#include "server/cli/commands.h"
#include "server/cli/options.h"
#include "server/cli/own_names.h"
#include "server/forms/forms.h"
#include "server/http/assets.h"
#include "server/http/guard.h"
#include "server/http/key.h"
#include "server/http/server.h"
#include "server/ingest/ingest.h"
#include "server/ingest/resumable.h"
#include "server/ingest/tender.h"
#include "server/oidc/oidc.h"
#include "server/people/people.h"
#include "server/store/store.h"
#include "server/tls/tls.h"
#include "server/webhooks/address.h"
#include "server/webhooks/webhooks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

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
    {.name = "standby", .help = "wait while another server holds the catalog, then take it over"},
    {.name = "objects",
     .value = "URL",
     .help = "keep traces in s3://BUCKET/PREFIX (AWS_... variables), DIR holds copies"},
    {.name = "object-copies", .value = "BYTES", .help = "size of the copies in DIR (16G)"},
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
    {.name = "cache", .value = "BYTES", .help = "cache of columns and tiles (256M)"},
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

/** Documents of runs kept in memory. */
#define DOCUMENT_CACHE_BYTES ((uint64_t)64 << 20)

/* Everything that the command holds, so that one function takes it down. */
struct service {
    struct lac_options options;
    struct lac_http_options http_options;
    struct lac_store_options store_options;
    struct lac_ingest_options ingest_options;
    struct lac_resumable_options upload_options;
    struct lac_webhooks_options webhooks;
    struct lac_key key;
    struct lac_app app;
    char data_dir[PATH_MAX];
    char allow_hosts[2048];
    const char *port_file;
    char trust_from[INET6_ADDRSTRLEN];
    struct lac_tls_options tls_options;
    struct lac_tls *tls;
    struct lac_tender *tender;
    struct lac_own_names own_names;
    char node[HOST_NAME_MAX + LAC_AUTHORITY_BYTES_MAX + 4];
    bool is_standby;
};

static int fail(const char *what)
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
        (void)fail("--allow-host: the list is too long");
        return false;
    }
    memcpy(service->allow_hosts, text, strlen(text) + 1);
    while ((word = strsep(&next, ", ")) != NULL) {
        if (*word == '\0') {
            continue;
        }
        if (guard->allow_host_count == LAC_ALLOW_HOSTS_MAX) {
            (void)fail("--allow-host: at most 16 names");
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
        (void)fail("--trust-header needs --behind-proxy, and --trust-from needs --trust-header: "
                   "anybody could name anybody");
        return false;
    }
    if (http->trust_header != NULL &&
        (http->trust_header[0] == '\0' ||
         strspn(http->trust_header, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789-_") != strlen(http->trust_header))) {
        (void)fail("--trust-header: must be the name of a header field");
        return false;
    }
    if (from != NULL) { /* as the address of a connection is written */
        const int family = strchr(from, ':') != NULL ? AF_INET6 : AF_INET;

        if (inet_pton(family, from, address) != 1 ||
            inet_ntop(family, address, service->trust_from, sizeof(service->trust_from)) == NULL) {
            (void)fail("--trust-from: must be an IP address");
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
        (void)fail(
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
        (void)fail("--log-level must be error, warn, info or debug");
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
        (void)fail("--tls-cert and --tls-key belong together");
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
    ingest->worker_count = (uint32_t)import_workers;
    ingest->upload_bytes_max = http->upload_bytes_max;
    service->upload_options.upload_bytes_max = http->upload_bytes_max;
    return true;
}

static bool read_options(struct service *service)
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
    return read_allow_hosts(service) && read_webhooks(service) && read_numbers(service) &&
           lac_options_data_dir(options, service->data_dir, sizeof(service->data_dir));
}

/* -- what ends it or has it look at its files ------------------------------------------------ */

static int signal_fd = -1;
static volatile sig_atomic_t signal_count;
static volatile sig_atomic_t reload_count;
static atomic_bool is_overtaken;

/* -- start ------------------------------------------------------------------------------------- */

enum {
    STANDBY_MS = 1000,
    CONNECTIONS_DEFAULT = 8192,
    DESCRIPTORS_LEAST = 64,     /* 20 of our own, 16 traces, an import, a few connections */
    DESCRIPTORS_RESERVED = 512, /* of many: for traces, imports and uploads */
};

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
static bool fit_descriptors(struct lac_http_options *http)
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

/* What the start found in the data folder and did about it. */
static void tell_notice(void *context, const char *line)
{
    (void)context;
    LAC_LOG(LAC_LOG_WARN, "data folder", lac_log_text("what", line));
}

static void tell_swept(void *context, const char *id, bool deleted)
{
    lac_api_trace_changed(context, id, deleted, NULL);
}

/* Beyond this machine: only for people and tokens, and not in clear. */
static enum lac_status may_be_remote(const struct lac_app *app,
                                     const struct lac_http_options *options,
                                     struct lac_error *reterr)
{
    if (!lac_http_server_is_remote(app->http)) {
        return LAC_OK;
    }
    if (!lac_people_has_any(app->people)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "other machines could connect, but there are no users: run `lacuna admin "
                        "user add NAME --admin --password-file FILE` first");
    }
    if (!options->is_behind_proxy && !options->is_fed) {
        return lac_fail(
            reterr, LAC_ERR_MISUSE, 0,
            "passwords and traces would travel in clear: give --tls-cert and --tls-key, "
            "or put a proxy with TLS in front and give --behind-proxy (README.md)");
    }
    return LAC_OK;
}

static void adopt(void *context, int fd, const struct sockaddr *address, socklen_t length)
{
    const struct service *service = context;

    lac_http_server_adopt(service->app.http, fd, address, length);
}

static enum lac_status prepare_tls(struct service *service, struct lac_error *reterr)
{
    struct lac_tls_options *options = &service->tls_options;

    if (options->key_path == NULL) {
        return LAC_OK;
    }
    options->handshake_ms_max = service->http_options.header_ms_max;
    options->stall_ms_max = service->http_options.rate_window_ms;
    options->thread_count = service->http_options.loop_count;
    options->adopt = adopt;
    options->context = service;
    return lac_tls_create(options, &service->tls, reterr);
}

static enum lac_status prepare_oidc(struct service *service, struct lac_error *reterr)
{
    const struct lac_options *options = &service->options;
    const struct lac_oidc_options oidc = {
        .issuer = lac_options_text(options, "oidc-issuer", NULL),
        .client = lac_options_text(options, "oidc-client", NULL),
        .secret_file = lac_options_text(options, "oidc-secret-file", NULL),
        .claim = lac_options_text(options, "oidc-claim", "email"),
        .public_url = lac_options_text(options, "public-url", NULL),
    };

    return oidc.issuer == NULL && oidc.client == NULL
               ? LAC_OK
               : lac_oidc_create(&oidc, &service->app.oidc, reterr);
}

/* Another server has the catalog: end, and be started again, to wait for it. */
static void on_overtaken(void *context)
{
    const uint64_t one = 1;

    (void)context;
    is_overtaken = true;
    (void)!write(signal_fd, &one, sizeof(one));
}

/* As messages of other servers call this one. */
static void name_node(struct service *service)
{
    char host[HOST_NAME_MAX + 1] = "";

    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(service->node, sizeof(service->node), "%s (%s)", host,
                   service->http_options.listen);
    service->store_options.node = service->node;
    service->store_options.overtaken = on_overtaken;
}

/* Where another server holds the catalog: try once a second until it is free. */
static enum lac_status open_store(struct service *service, struct lac_error *reterr)
{
    struct pollfd wait = {.fd = signal_fd, .events = POLLIN};
    bool is_waiting = false;

    for (;;) {
        const enum lac_status status =
            lac_store_open(&service->store_options, &service->app.store, reterr);

        if (status == LAC_OK || !service->is_standby ||
            (status != LAC_ERR_BUSY && !(status == LAC_ERR_IO && is_waiting))) {
            return status;
        }
        if (!is_waiting) {
            LAC_LOG(LAC_LOG_INFO, "standby", lac_log_text("why", reterr->message));
        }
        is_waiting = true;
        *reterr = (struct lac_error){0};
        if (poll(&wait, 1, STANDBY_MS) > 0) {
            return lac_fail(reterr, LAC_ERR_BUSY, 0, "ended while it waited for the catalog");
        }
    }
}

/* What requests are answered from. */
static enum lac_status open_state(struct service *service, struct lac_error *reterr)
{
    struct lac_app *app = &service->app;
    enum lac_status status;

    service->store_options.data_dir = service->data_dir;
    service->store_options.sweep = true;
    service->store_options.notice = tell_notice;
    service->store_options.changed = tell_swept;
    service->store_options.changed_context = app;
    name_node(service);
    status = open_store(service, reterr);
    if (status == LAC_OK) {
        status = lac_key_load(service->data_dir, &service->key, reterr);
    }
    if (status == LAC_OK) {
        status = lac_key_write_header(service->data_dir, &service->key, reterr);
    }
    if (status == LAC_OK) {
        status = lac_people_create(app->store, &app->people, reterr);
    }
    app->key = &service->key;
    app->is_secure = service->http_options.is_behind_proxy || service->http_options.is_fed;
    app->base_path = service->http_options.base_path;
    app->documents = lac_document_cache_create(DOCUMENT_CACHE_BYTES);
    return status == LAC_OK && app->documents == NULL
               ? lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory to start")
               : status;
}

/* Listens, and does not answer yet. */
static enum lac_status open_http(struct service *service, struct lac_error *reterr)
{
    struct lac_app *app = &service->app;
    struct lac_http_options *http = &service->http_options;
    enum lac_status status;

    http->identify = lac_api_identify;
    http->identify_named = lac_api_identify_named;
    http->permit = lac_api_permit;
    http->finish = lac_forms_finish;
    http->may_hear = lac_api_may_hear;
    http->routes = lac_api_routes;
    http->route_count = lac_api_route_count;
    http->app = app;
    http->assets = lac_assets;
    http->asset_count = lac_asset_count;
    status = lac_http_server_create(http, &app->http, reterr);
    return status == LAC_OK ? may_be_remote(app, http, reterr) : status;
}

/* What works beside the requests. */
static enum lac_status start_work(struct service *service, struct lac_error *reterr)
{
    struct lac_app *app = &service->app;
    enum lac_status status = lac_webhooks_create(app, &service->webhooks, &app->webhooks, reterr);

    if (status != LAC_OK) {
        return status;
    }
    app->tell_news = lac_webhooks_tell;
    service->ingest_options.store = app->store;
    service->ingest_options.changed = lac_api_trace_changed;
    service->ingest_options.changed_context = app;
    status = lac_ingest_create(&service->ingest_options, &app->ingest, reterr);
    if (status == LAC_OK) {
        service->upload_options.ingest = app->ingest;
        service->upload_options.store = app->store;
        status = lac_resumable_create(&service->upload_options, &app->uploads, reterr);
    }
    return status == LAC_OK ? lac_tender_start(app->store, &service->tender, reterr) : status;
}

static enum lac_status start(struct service *service, struct lac_error *reterr)
{
    enum lac_status status = prepare_tls(service, reterr);

    if (status == LAC_OK) {
        status = prepare_oidc(service, reterr);
    }
    if (status == LAC_OK) {
        status = open_state(service, reterr);
    }
    if (status == LAC_OK) {
        status = open_http(service, reterr);
    }
    if (status == LAC_OK) {
        status = start_work(service, reterr);
    }
    if (status == LAC_OK) {
        status = lac_http_server_start(service->app.http, reterr);
    }
    return status == LAC_OK && service->tls != NULL
               ? lac_tls_start(service->tls, lac_http_server_socket(service->app.http), reterr)
               : status;
}

static void stop(struct service *service)
{
    struct lac_app *app = &service->app;

    if (app->store != NULL) {
        lac_store_stop_waiting(app->store);
    }
    if (app->http != NULL) {
        lac_http_server_stop(app->http);
    }
    lac_tls_destroy(service->tls); /* sends what it had to say */
    lac_tender_stop(service->tender);
    lac_resumable_destroy(app->uploads);
    lac_ingest_destroy(app->ingest); /* its last news find no listener */
    lac_webhooks_destroy(app->webhooks);
    lac_http_server_destroy(app->http);
    lac_document_cache_destroy(app->documents);
    lac_oidc_destroy(app->oidc);
    lac_people_destroy(app->people);
    lac_store_close(app->store);
    lac_own_names_done(&service->own_names);
    lac_options_done(&service->options);
}

/* -- what is told ------------------------------------------------------------------------------ */

static enum lac_status write_port_file(const char *path, unsigned port, struct lac_error *reterr)
{
    char temporary[PATH_MAX];
    FILE *file;
    int length;

    length = snprintf(temporary, sizeof(temporary), "%s.%ld", path, (long)getpid());
    file = (length < 0 || (size_t)length >= sizeof(temporary)) ? NULL : fopen(temporary, "we");
    if (file == NULL) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: cannot be written: %s", path, strerror(errno));
    }
    const bool written = fprintf(file, "%u\n", port) > 0;
    if (fclose(file) != 0 || !written || rename(temporary, path) != 0) {
        (void)unlink(temporary);
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: cannot be written: %s", path, strerror(errno));
    }
    return LAC_OK;
}

/* The host that a browser on this machine would use for the address that is listened on. */
static void own_host(const char *listen, char *out, size_t capacity)
{
    char host[LAC_AUTHORITY_BYTES_MAX];
    unsigned port;

    if (!lac_listen_address_split(listen, host, sizeof(host), &port) || host[0] == '\0' ||
        strcmp(host, "0.0.0.0") == 0) {
        (void)snprintf(out, capacity, "127.0.0.1");
    } else if (strcmp(host, "::") == 0) {
        (void)snprintf(out, capacity, "[::1]");
    } else {
        (void)snprintf(out, capacity, strchr(host, ':') != NULL ? "[%s]" : "%s", host);
    }
}

/* Where it is reached, without the key, and what reaches it from another machine. */
struct addresses {
    char open[2048];
    char remote[2048];
};

static void make_addresses(const struct service *service, struct addresses *out)
{
    const unsigned port = lac_http_server_port(service->app.http);
    const char *const base = service->app.base_path;
    const struct passwd *user = getpwuid(geteuid());
    char host[HOST_NAME_MAX + 1] = "HOST";
    char own[LAC_AUTHORITY_BYTES_MAX + 2];

    own_host(service->http_options.listen, own, sizeof(own));
    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(out->open, sizeof(out->open), "%s://%s:%u%s",
                   service->tls != NULL ? "https" : "http", own, port, base);
    (void)snprintf(out->remote, sizeof(out->remote),
                   "ssh -L %u:%s:%u %s@%s   and open %s://127.0.0.1:%u%s/#key=...", port, own, port,
                   user != NULL ? user->pw_name : "USER", host,
                   service->tls != NULL ? "https" : "http", port, base);
}

static void announce(const struct service *service)
{
    uint64_t address_fd = 0;
    struct addresses addresses;

    make_addresses(service, &addresses);
    if (lac_options_number(&service->options, "address-fd", 3, INT_MAX, 0, &address_fd) &&
        address_fd > 0) {
        (void)dprintf((int)address_fd, "%s\n%s\n", addresses.open, addresses.remote);
        (void)close((int)address_fd);
    }
    (void)printf("lacuna %s serves %s\n\n", LAC_VERSION, service->data_dir);
    (void)printf("  open     %s/#key=", addresses.open);
    if (isatty(STDOUT_FILENO) != 0) {
        (void)printf("%s\n", service->key.text);
    } else { /* a log that others may read */
        (void)printf("...   with the key in %s/local.token\n", service->data_dir);
    }
    (void)printf("  remote   %s\n", addresses.remote);
    (void)printf("  scripts  curl -H \"@%s/local.header\" --data-binary @trace.json "
                 "%s/api/v1/traces\n",
                 service->data_dir, addresses.open);
    (void)printf("  stop     Ctrl-C\n");
    (void)fflush(stdout);
}

/* -- the command ------------------------------------------------------------------------------- */

/* A handler, not a blocked mask: import children would inherit a mask. */
static void on_signal(int number)
{
    const uint64_t one = 1;
    const int saved = errno;

    signal_count++;
    if (signal_count > 1) {
        _exit(128 + number); /* asked twice: at once */
    }
    (void)!write(signal_fd, &one, sizeof(one));
    errno = saved;
}

/* Read the certificate again; the loop below looks once a second. */
static void on_reload(int number)
{
    (void)number;
    reload_count++;
}

static bool catch_reload(void)
{
    struct sigaction action = {.sa_handler = on_reload, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    return sigaction(SIGHUP, &action, NULL) == 0;
}

static bool catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    signal_fd = eventfd(0, EFD_CLOEXEC);
    sigemptyset(&action.sa_mask);
    return signal_fd >= 0 && sigaction(SIGTERM, &action, NULL) == 0 &&
           sigaction(SIGINT, &action, NULL) == 0 && signal(SIGPIPE, SIG_IGN) != SIG_ERR &&
           signal(SIGXFSZ, SIG_IGN) != SIG_ERR; /* a limit of files is an error, not the end */
}

static void reload(struct lac_tls *tls)
{
    struct lac_error error = {0};

    if (lac_tls_reload(tls, &error) == LAC_OK) {
        LAC_LOG(LAC_LOG_INFO, "certificate reloaded", lac_log_int("signal", SIGHUP));
    } else {
        LAC_LOG(LAC_LOG_ERROR, "the certificate stays as it was",
                lac_log_text("why", error.message));
    }
}

/* Until then, once a second: what another process changed of users and tokens. */
static void wait_for_signal(struct lac_people *people, struct lac_ingest *ingest,
                            struct lac_tls *tls)
{
    sig_atomic_t reloads = 0;
    struct pollfd wait = {.fd = signal_fd, .events = POLLIN};
    int ready;

    while ((ready = poll(&wait, 1, 1000)) == 0 || (ready < 0 && errno == EINTR)) {
        if (ready == 0) {
            lac_people_refresh(people);
            lac_ingest_take_over(ingest);
        }
        if (reloads != reload_count) {
            reloads = reload_count;
            reload(tls);
        }
    }
}

int lac_cmd_serve(int argc, char **argv)
{
    static struct service service;
    struct lac_error error = {0};
    enum lac_status status;
    int exit_status;

    exit_status = lac_options_parse(&service.options, option_table, usage, argc, argv);
    if (exit_status >= 0) {
        lac_own_names_done(&service.own_names);
        lac_options_done(&service.options);
        return exit_status;
    }
    if (service.options.operand_count > 0 || !read_options(&service)) {
        if (service.options.operand_count > 0) {
            (void)fail("takes no files: use `lacuna import`, or drop them on the page");
        }
        lac_own_names_done(&service.own_names);
        lac_options_done(&service.options);
        return 2;
    }
    if (!fit_descriptors(&service.http_options)) {
        lac_own_names_done(&service.own_names);
        lac_options_done(&service.options);
        return 1;
    }
    /* a large reply is given back to the system when it was read: by default the allocator keeps
     * blocks of the size of those that it has seen */
    (void)mallopt(M_MMAP_THRESHOLD, 2 << 20);
    if (!catch_signals()) {
        return fail("cannot catch signals");
    }
    status = start(&service, &error);
    if (status == LAC_OK && service.tls != NULL && !catch_reload()) {
        return fail("cannot catch signals");
    }
    if (status == LAC_OK && service.port_file != NULL) {
        status = write_port_file(service.port_file, lac_http_server_port(service.app.http), &error);
    }
    if (status == LAC_OK && lac_log_start() != LAC_OK) {
        status = lac_fail(&error, LAC_ERR_IO, 0, "cannot start the log's thread");
    }
    if (status == LAC_OK) {
        announce(&service);
        LAC_LOG(LAC_LOG_INFO, "listening", lac_log_text("address", service.http_options.listen),
                lac_log_int("port", lac_http_server_port(service.app.http)),
                lac_log_int("connections", service.http_options.connections_max));
        wait_for_signal(service.app.people, service.app.ingest, service.tls);
        LAC_LOG(LAC_LOG_INFO, "stopping", lac_log_int("signal", signal_count));
    }
    stop(&service);
    lac_log_stop();
    if (is_overtaken) {
        (void)fail(
            "another server has taken the catalog over: start this one again with --standby");
        return EX_TEMPFAIL;
    }
    if (signal_count > 0 && service.app.store == NULL) {
        return 0; /* it was waiting for the catalog */
    }
    return status == LAC_OK ? 0 : fail(error.message);
}
