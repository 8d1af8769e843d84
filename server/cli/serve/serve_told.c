/* What `lacuna serve` says of itself: on its terminal, and to other servers. */
#include "analysis/model/status.h"
#include "server/base/output_file.h"
#include "server/cli/options.h"
#include "server/cli/serve/serve.h"
#include "server/http/guard.h"
#include "server/http/server.h"
#include "server/store/database/holder.h"
#include "server/tls/tls.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static enum lac_status write_port_file(const char *path, unsigned port, struct lac_error *reterr)
{
    struct lac_output_file output;
    struct lac_error error = {0};
    enum lac_status status = lac_output_file_find(&output, path, &error);
    const int fd = status == LAC_OK ? lac_output_file_open(&output, &error) : -1;

    if (fd >= 0) {
        const bool is_written = dprintf(fd, "%u\n", port) > 0;

        if (close(fd) != 0 || !is_written) {
            status = lac_fail(&error, LAC_ERR_IO, 0, "cannot be written: %s", strerror(errno));
            lac_output_file_remove(&output);
        } else {
            status = lac_output_file_publish(&output, &error);
        }
    }
    return fd >= 0 && status == LAC_OK
               ? LAC_OK
               : lac_fail(reterr, LAC_ERR_IO, 0, "%s: %s", path, error.message);
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

static void announce(const struct service *service, const char *does)
{
    uint64_t address_fd = 0;
    struct addresses addresses;

    make_addresses(service, &addresses);
    if (lac_options_number(&service->options, "address-fd", 3, INT_MAX, 0, &address_fd) &&
        address_fd > 0) {
        (void)dprintf((int)address_fd, "%s\n%s\n", addresses.open, addresses.remote);
        (void)close((int)address_fd);
    }
    (void)printf("lacuna %s %s %s\n\n", LAC_VERSION, does, service->data_dir);
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
    clearerr(stdout); /* a server that is not seen to start still serves */
}

static void write_place(const struct service *service, char out[LAC_NODE_ADDRESS_BYTES])
{
    const char *const listen = service->http_options.listen;
    char host[LAC_AUTHORITY_BYTES_MAX];
    char name[HOST_NAME_MAX + 1] = "";
    unsigned port;

    out[0] = '\0';
    if (service->node_address != NULL) {
        (void)snprintf(out, LAC_NODE_ADDRESS_BYTES, "%s", service->node_address);
        return;
    }
    if (!lac_listen_address_split(listen, host, sizeof(host), &port)) {
        return;
    }
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0) {
        (void)gethostname(name, sizeof(name) - 1);
        (void)snprintf(out, LAC_NODE_ADDRESS_BYTES, "%s:%u", name,
                       lac_http_server_port(service->app.http));
        return;
    }
    own_host(listen, host, sizeof(host));
    (void)snprintf(out, LAC_NODE_ADDRESS_BYTES, "%s:%u", host,
                   lac_http_server_port(service->app.http));
}

void lac_serve_node_address(const struct service *service, char *out)
{
    char place[LAC_NODE_ADDRESS_BYTES];
    char fingerprint[LAC_TLS_FINGERPRINT_BYTES];

    write_place(service, place);
    out[0] = '\0';
    if (service->tls == NULL) {
        (void)snprintf(out, LAC_NODE_ADDRESS_BYTES, "%s", place);
    } else if (place[0] != '\0' && lac_tls_fingerprint(service->tls, fingerprint)) {
        const int length = snprintf(out, LAC_NODE_ADDRESS_BYTES, "tls:%s@%s", fingerprint, place);

        if (length >= LAC_NODE_ADDRESS_BYTES) {
            out[0] = '\0';
        }
    }
}

enum lac_status lac_serve_tell(struct service *service, struct lac_error *reterr)
{
    if (service->is_told) {
        return LAC_OK;
    }
    if (service->port_file != NULL) {
        const enum lac_status status =
            write_port_file(service->port_file, lac_http_server_port(service->app.http), reterr);

        if (status != LAC_OK) {
            return status;
        }
    }
    service->is_told = true;
    announce(service, service->app.stands_by ? "stands by, and answers reads, with" : "serves");
    return LAC_OK;
}
