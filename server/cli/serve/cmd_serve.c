#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/api/document_cache.h"
#include "server/base/log.h"
#include "server/cli/commands.h"
#include "server/cli/options.h"
#include "server/cli/own_names.h"
#include "server/cli/serve/serve.h"
#include "server/forms/forms.h"
#include "server/hangs/hangs.h"
#include "server/http/assets.h"
#include "server/http/key.h"
#include "server/http/server.h"
#include "server/ingest/ingest.h"
#include "server/ingest/resumable.h"
#include "server/ingest/tender.h"
#include "server/nodes/forward.h"
#include "server/oidc/oidc.h"
#include "server/people/people.h"
#include "server/store/database/holder.h"
#include "server/store/store.h"
#include "server/tls/tls.h"
#include "server/webhooks/webhooks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

/** Documents of runs kept in memory. */
#define DOCUMENT_CACHE_BYTES ((uint64_t)64 << 20)

/* -- what ends it or has it look at its files ------------------------------------------------ */

static int signal_fd = -1;
static volatile sig_atomic_t signal_count;
static volatile sig_atomic_t signal_number; /* of the first */
static struct lac_store *_Atomic served;    /* while the main thread may wait for its catalog */
static volatile sig_atomic_t reload_count;
static atomic_bool is_overtaken;

/* -- start ------------------------------------------------------------------------------------- */

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

/* What requests are answered from. */
enum lac_status lac_serve_open_state(struct service *service, struct lac_error *reterr)
{
    struct lac_app *app = &service->app;
    enum lac_status status;

    service->store_options.data_dir = service->data_dir;
    service->store_options.only_reads = app->stands_by;
    service->store_options.sweep = !app->stands_by;
    service->store_options.notice = tell_notice;
    service->store_options.changed = tell_swept;
    service->store_options.changed_context = app;
    name_node(service);
    status = lac_store_open(&service->store_options, &app->store, reterr);
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
    app->hangs = lac_hangs_create();
    return status == LAC_OK && (app->documents == NULL || app->hangs == NULL)
               ? lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory to start")
               : status;
}

/* Listens, and does not answer yet. */
enum lac_status lac_serve_open_http(struct service *service, struct lac_error *reterr)
{
    struct lac_app *app = &service->app;
    struct lac_http_options *http = &service->http_options;
    enum lac_status status;

    http->identify = lac_api_identify;
    http->identify_named = lac_api_identify_named;
    http->permit = lac_api_permit;
    http->finish = lac_forms_finish;
    http->may_hear = lac_api_may_hear;
    http->is_elsewhere = app->stands_by ? lac_nodes_is_elsewhere : NULL;
    http->elsewhere = &lac_nodes_elsewhere;
    http->node_secret = service->node_secret;
    http->listen_fd = service->socket;
    http->has_socket = service->socket >= 0;
    http->routes = lac_api_routes;
    http->route_count = lac_api_route_count;
    http->app = app;
    http->assets = lac_assets;
    http->asset_count = lac_asset_count;
    status = lac_http_server_create(http, &app->http, reterr);
    return status == LAC_OK ? may_be_remote(app, http, reterr) : status;
}

enum lac_status lac_serve_start_http(struct service *service, struct lac_error *reterr)
{
    const enum lac_status status = lac_http_server_start(service->app.http, reterr);

    return status == LAC_OK && service->tls != NULL
               ? lac_tls_start(service->tls, lac_http_server_socket(service->app.http), reterr)
               : status;
}

/* Those that stand by pass on what they do not answer. */
static enum lac_status be_found(struct service *service, struct lac_error *reterr)
{
    char address[LAC_NODE_ADDRESS_BYTES];

    lac_serve_node_address(service, address);
    return lac_store_announce(service->app.store, address, service->node_secret, reterr);
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
    if (status == LAC_OK) {
        status = lac_tender_start(app->store, &service->tender, reterr);
    }
    return status == LAC_OK ? be_found(service, reterr) : status;
}

static enum lac_status start(struct service *service, struct lac_error *reterr)
{
    enum lac_status status = lac_serve_open_state(service, reterr);

    if (status == LAC_OK) {
        status = prepare_oidc(service, reterr);
    }
    if (status == LAC_OK) {
        status = lac_serve_open_http(service, reterr);
    }
    if (status == LAC_OK) {
        status = start_work(service, reterr);
    }
    return status == LAC_OK ? lac_serve_start_http(service, reterr) : status;
}

void lac_serve_stop(struct service *service)
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
    lac_hangs_destroy(app->hangs);
    lac_webhooks_destroy(app->webhooks);
    lac_http_server_destroy(app->http);
    lac_document_cache_destroy(app->documents);
    lac_oidc_destroy(app->oidc);
    lac_people_destroy(app->people);
    lac_store_close(app->store);
    service->tls = NULL;
    service->tender = NULL;
    service->node_secret[0] = '\0';
    *app = (struct lac_app){.http = NULL};
}

/* Serve, or stand by for as long as somebody else does. */
static enum lac_status start_when_free(struct service *service, struct lac_error *reterr)
{
    bool has_waited = false;
    char why[sizeof(reterr->message)];

    for (;;) {
        enum lac_status status = prepare_tls(service, reterr);

        status = status == LAC_OK ? start(service, reterr) : status;
        if (status == LAC_OK || !service->is_standby || signal_count > 0 ||
            (status != LAC_ERR_BUSY && !(status == LAC_ERR_IO && has_waited))) {
            return status;
        }
        lac_serve_stop(service);
        (void)snprintf(why, sizeof(why), "%s", reterr->message);
        *reterr = (struct lac_error){0};
        status = prepare_tls(service, reterr);
        if (status == LAC_OK) {
            status = lac_serve_stand_by(service, has_waited ? "" : why, reterr);
        }
        has_waited = true;
        if (status != LAC_OK || signal_count > 0) {
            return status;
        }
    }
}

/* -- the command ------------------------------------------------------------------------------- */

/* A handler, not a blocked mask: import children would inherit a mask. */
static void on_signal(int number)
{
    const uint64_t one = 1;
    const int saved = errno;
    struct lac_store *const store = atomic_load(&served);

    signal_count++;
    if (signal_count > 1) {
        _exit(128 + number); /* asked twice: at once */
    }
    signal_number = number;
    if (store != NULL) { /* only sets flags */
        lac_store_stop_waiting(store);
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

/* Without a certificate there is nothing to read, and a service manager that says "reload" shall not
 * end the service. The end of its terminal still does. */
static bool catch_reload(const struct service *service)
{
    const int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (terminal >= 0) {
        (void)close(terminal);
    }
    if (terminal >= 0 && service->tls_options.key_path == NULL) {
        return true;
    }

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

bool lac_serve_reload(struct service *service)
{
    static sig_atomic_t done;
    struct lac_error error = {0};

    if (done == reload_count || service->tls == NULL) {
        return false;
    }
    done = reload_count;
    if (lac_tls_reload(service->tls, &error) == LAC_OK) {
        LAC_LOG(LAC_LOG_INFO, "certificate reloaded", lac_log_int("signal", SIGHUP));
    } else {
        LAC_LOG(LAC_LOG_ERROR, "the certificate stays as it was",
                lac_log_text("why", error.message));
    }
    return true;
}

/* Until then, once a second: what another process changed of users and tokens. */
static void wait_for_signal(struct service *service)
{
    struct lac_error error = {0};
    struct pollfd wait = {.fd = signal_fd, .events = POLLIN};
    int ready;

    atomic_store(&served, service->app.store);
    while ((ready = poll(&wait, 1, 1000)) == 0 || (ready < 0 && errno == EINTR)) {
        if (ready == 0) {
            lac_people_refresh(service->app.people);
            lac_ingest_take_over(service->app.ingest);
        }
        if (lac_serve_reload(service) && be_found(service, &error) != LAC_OK) {
            LAC_LOG(LAC_LOG_WARN, "other servers know the certificate of before",
                    lac_log_text("why", error.message));
        }
    }
    atomic_store(&served, NULL);
}

static void done(struct service *service)
{
    if (service->socket >= 0) {
        (void)close(service->socket);
    }
    lac_own_names_done(&service->own_names);
    lac_options_done(&service->options);
}

/* From the first start to the end. */
static enum lac_status serve(struct service *service, struct lac_error *reterr)
{
    enum lac_status status = catch_reload(service)
                                 ? start_when_free(service, reterr)
                                 : lac_fail(reterr, LAC_ERR_IO, 0, "cannot catch signals");

    if (status == LAC_OK && service->app.http != NULL) {
        status = lac_serve_tell(service, reterr);
        if (status == LAC_OK) {
            LAC_LOG(LAC_LOG_INFO, "listening",
                    lac_log_text("address", service->http_options.listen),
                    lac_log_int("port", lac_http_server_port(service->app.http)),
                    lac_log_int("connections", service->http_options.connections_max));
            wait_for_signal(service);
            LAC_LOG(LAC_LOG_INFO, "stopping", lac_log_int("signal", signal_number));
        }
    }
    if (service->socket >= 0) { /* nobody is to wait for an answer */
        (void)close(service->socket);
        service->socket = -1;
    }
    return status;
}

int lac_cmd_serve(int argc, char **argv)
{
    static struct service service = {.socket = -1};
    struct lac_error error = {0};
    enum lac_status status;
    int exit_status;

    exit_status = lac_serve_parse(&service, argc, argv);
    if (exit_status < 0 && service.options.operand_count > 0) {
        (void)lac_serve_fail("takes no files: use `lacuna import`, or drop them on the page");
        exit_status = 2;
    }
    if (exit_status < 0 && !lac_serve_read_options(&service)) {
        exit_status = 2;
    }
    if (exit_status < 0 && !lac_serve_fit_descriptors(&service.http_options)) {
        exit_status = 1;
    }
    if (exit_status >= 0) {
        done(&service);
        return exit_status;
    }
    /* a large reply is given back to the system when it was read: by default the allocator keeps
     * blocks of the size of those that it has seen */
    (void)mallopt(M_MMAP_THRESHOLD, 2 << 20);
    /* with that, it gives all but 128 KiB at the top back as well, and takes them again, cleared and
     * mapped anew, for the next block that is unpacked */
    (void)mallopt(M_TRIM_THRESHOLD, 4 << 20);
    /* what one worker's request puts into a cache, another's takes out: with an arena for each, all
     * of them would keep room for a whole cache */
    (void)mallopt(M_ARENA_MAX, 2);
    if (!catch_signals()) {
        return lac_serve_fail("cannot catch signals");
    }
    service.signal_fd = signal_fd;
    if (lac_log_start() != LAC_OK) {
        return lac_serve_fail("cannot start the log's thread");
    }
    status = serve(&service, &error);
    const bool has_served = service.app.store != NULL;

    lac_serve_stop(&service);
    lac_log_stop();
    done(&service);
    if (is_overtaken) {
        (void)lac_serve_fail(
            "another server has taken the catalog over: start this one again with --standby");
        return EX_TEMPFAIL;
    }
    if (signal_count > 0 && !has_served) {
        return 0; /* it was standing by */
    }
    return status == LAC_OK ? 0 : lac_serve_fail(error.message);
}
