/*
 * A server that stands by: another one holds the catalog and writes; this one reads the catalog from
 * PostgreSQL and traces from object storage, answers what only reads, and passes the rest on. Its
 * socket listens on when it takes the catalog over, so that who connects meanwhile waits instead of
 * being refused.
 */
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/base/log.h"
#include "server/cli/serve/serve.h"
#include "server/http/server.h"
#include "server/ingest/ingest.h"
#include "server/nodes/forward.h"
#include "server/people/people.h"
#include "server/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { LOOK_MS = 1000, STOP_MS = 2000 };

/* -- what the holder does, told from the thread that watches it ---------------------------------- */

static void hear_change(void *context)
{
    struct service *const service = context;

    lac_people_read_again(service->app.people);
}

static void hear_trace(void *context, const char *id, bool deleted,
                       const struct lac_store_moving *moving)
{
    struct service *const service = context;
    struct lac_ingest_progress progress;

    if (moving == NULL) {
        lac_api_trace_changed(&service->app, id, deleted, NULL);
        return;
    }
    progress = (struct lac_ingest_progress){.state = (enum lac_trace_state)moving->state,
                                            .done_bytes = moving->done_bytes,
                                            .total_bytes = moving->total_bytes,
                                            .bytes_per_s = moving->bytes_per_s,
                                            .events = moving->events,
                                            .eta_s = moving->eta_s};
    lac_api_trace_changed(&service->app, id, false, &progress);
}

static void hear_holder(void *context, const struct lac_store_holder *holder)
{
    struct service *const service = context;

    /* without PostgreSQL nobody can tell: the last that was known stays */
    if (holder != NULL) {
        lac_main_node_set(service->app.main_node, holder);
        atomic_store(&service->is_free, !holder->is_there);
    }
}

/* -- one stretch of standing by ------------------------------------------------------------------ */

/* One server a data folder. @return a descriptor or -1 */
static int lock_folder(const struct service *service, struct lac_error *reterr)
{
    char path[PATH_MAX + 16];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/serve.lock", service->data_dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const bool is_served = fd >= 0 && errno == EWOULDBLOCK;

        (void)lac_fail(reterr, is_served ? LAC_ERR_MISUSE : LAC_ERR_IO, 0,
                       is_served ? "another server runs on the data folder %s"
                                 : "cannot lock the data folder %s",
                       service->data_dir);
        if (fd >= 0) {
            (void)close(fd);
        }
        return -1;
    }
    return fd;
}

static enum lac_status open_socket(struct service *service, struct lac_error *reterr)
{
    const struct lac_http_options *http = &service->http_options;
    unsigned port;

    return service->socket >= 0
               ? LAC_OK
               : lac_http_listen(http->listen, http->allow_remote, &service->socket, &port, reterr);
}

static enum lac_status begin(struct service *service, struct lac_error *reterr)
{
    struct lac_app *const app = &service->app;
    const struct lac_store_ears ears = {
        .changed = hear_change, .trace = hear_trace, .holder = hear_holder, .context = service};
    const unsigned stop_ms = service->http_options.stop_ms_max;
    enum lac_status status;

    app->stands_by = true;
    atomic_store(&service->is_free, false);
    status = lac_main_node_create(&app->main_node, reterr);
    if (status == LAC_OK) {
        status = lac_serve_open_state(service, reterr);
    }
    if (status == LAC_OK) {
        status = open_socket(service, reterr);
    }
    if (status == LAC_OK) {
        /* those who wait for another server's answer must not hold up the taking over */
        service->http_options.stop_ms_max = stop_ms != 0 && stop_ms < STOP_MS ? stop_ms : STOP_MS;
        status = lac_serve_open_http(service, reterr);
        service->http_options.stop_ms_max = stop_ms;
    }
    if (status == LAC_OK) {
        status = lac_store_watch(app->store, &ears, reterr);
    }
    if (status == LAC_OK) {
        status = lac_serve_start_http(service, reterr);
    }
    return status == LAC_OK ? lac_serve_tell(service, reterr) : status;
}

static void end(struct service *service)
{
    struct lac_main_node *const main_node = service->app.main_node;

    if (main_node != NULL) {
        lac_main_node_stop(main_node);
    }
    if (service->app.http != NULL) {
        lac_http_server_stop(service->app.http);
    }
    if (service->app.store != NULL) {
        lac_store_watch_stop(service->app.store);
    }
    lac_serve_stop(service);
    lac_main_node_destroy(main_node);
}

enum lac_status lac_serve_stand_by(struct service *service, const char *why,
                                   struct lac_error *reterr)
{
    struct pollfd wait = {.fd = service->signal_fd, .events = POLLIN};
    const int folder = lock_folder(service, reterr);
    enum lac_status status;

    if (folder < 0) {
        return reterr->status;
    }
    status = begin(service, reterr);
    if (why[0] != '\0') {
        LAC_LOG(LAC_LOG_INFO, "standby", lac_log_text("why", why),
                lac_log_text("reads", status == LAC_OK ? "answered here" : reterr->message));
    }
    if (status == LAC_OK) {
        while (poll(&wait, 1, LOOK_MS) <= 0 && !atomic_load(&service->is_free)) {
            lac_people_refresh(service->app.people);
            (void)lac_serve_reload(service);
        }
    } else if (status == LAC_ERR_BUSY || status == LAC_ERR_IO) {
        (void)poll(&wait, 1, LOOK_MS); /* the holder has just begun, or PostgreSQL is away */
        *reterr = (struct lac_error){0};
        status = LAC_OK;
    }
    end(service);
    (void)close(folder);
    return status;
}
