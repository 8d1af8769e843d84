#include "server/tls/link.h"

#include "analysis/model/status.h"
#include "server/tls/tls.h"
#include "server/tls/tls_private.h"

#include <assert.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

struct lac_tls_link {
    struct tls_library library;
    gnutls_priority_t priority;
    gnutls_certificate_credentials_t credentials;
    gnutls_session_t session;
    int fd;
    int wait_ms;
};

/** What a call of GnuTLS asks for. @return false: it has failed, or took too long */
static bool may_go_on(const struct lac_tls_link *link, ssize_t result)
{
    struct pollfd wait = {.fd = link->fd};
    int ready;

    if (result != GNUTLS_E_AGAIN && result != GNUTLS_E_INTERRUPTED) {
        return link->library.error_is_fatal((int)result) == 0;
    }
    wait.events = link->library.record_get_direction(link->session) == 0 ? POLLIN : POLLOUT;
    do {
        ready = poll(&wait, 1, link->wait_ms);
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

static bool begin_session(struct lac_tls_link *link)
{
    const struct tls_library *const library = &link->library;

    if (library->certificate_allocate_credentials(&link->credentials) < 0) {
        link->credentials = NULL;
        return false;
    }
    if (library->priority_init(&link->priority, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2",
                               NULL) < 0) {
        link->priority = NULL;
        return false;
    }
    if (library->init(&link->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0) {
        link->session = NULL;
        return false;
    }
    library->transport_set_int2(link->session, link->fd, link->fd);
    return library->priority_set(link->session, link->priority) >= 0 &&
           library->credentials_set(link->session, GNUTLS_CRD_CERTIFICATE, link->credentials) >= 0;
}

static bool is_the_one(const struct lac_tls_link *link, const char *fingerprint)
{
    unsigned count = 0;
    const gnutls_datum_t *const certificates =
        link->library.certificate_get_peers(link->session, &count);
    char found[LAC_TLS_FINGERPRINT_BYTES];

    if (certificates == NULL || count == 0) {
        return false;
    }
    lac_tls_write_fingerprint(certificates[0].data, certificates[0].size, found);
    return strcmp(found, fingerprint) == 0; /* nothing that is secret */
}

enum lac_status lac_tls_link_open(int fd, const char *fingerprint, int wait_ms,
                                  struct lac_tls_link **ret_link, struct lac_error *reterr)
{
    assert(fd >= 0 && fingerprint != NULL && ret_link != NULL);
    struct lac_tls_link *const link = calloc(1, sizeof(*link));
    enum lac_status status;
    int result;

    if (link == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for TLS");
    }
    link->fd = fd;
    link->wait_ms = wait_ms;
    status = lac_tls_load(&link->library, reterr);
    if (status == LAC_OK && !begin_session(link)) {
        status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for TLS");
    }
    if (status == LAC_OK) {
        do {
            result = link->library.handshake(link->session);
        } while (result < 0 && may_go_on(link, result));
        if (result < 0) {
            status = lac_fail(reterr, LAC_ERR_IO, 0, "no TLS with the other server: %s",
                              link->library.strerror(result));
        } else if (!is_the_one(link, fingerprint)) {
            status = lac_fail(reterr, LAC_ERR_IO, 0,
                              "the other server has another certificate than it says");
        }
    }
    if (status != LAC_OK) {
        lac_tls_link_close(link);
        return status;
    }
    *ret_link = link;
    return LAC_OK;
}

bool lac_tls_link_send(struct lac_tls_link *link, const void *bytes, size_t size_bytes)
{
    const char *at = bytes;

    while (size_bytes > 0) {
        const ssize_t sent = link->library.record_send(link->session, at, size_bytes);

        if (sent > 0) {
            at += sent;
            size_bytes -= (size_t)sent;
        } else if (sent == 0 || !may_go_on(link, sent)) {
            return false;
        }
    }
    return true;
}

ssize_t lac_tls_link_receive(struct lac_tls_link *link, void *bytes, size_t size_bytes)
{
    for (;;) {
        const ssize_t got = link->library.record_recv(link->session, bytes, size_bytes);

        if (got >= 0) {
            return got;
        }
        if (!may_go_on(link, got)) {
            return -1;
        }
    }
}

void lac_tls_link_close(struct lac_tls_link *link)
{
    if (link == NULL) {
        return;
    }
    if (link->session != NULL) {
        (void)link->library.bye(link->session, GNUTLS_SHUT_WR); /* does not wait */
        link->library.deinit(link->session);
    }
    if (link->priority != NULL) {
        link->library.priority_deinit(link->priority);
    }
    if (link->credentials != NULL) {
        link->library.certificate_free_credentials(link->credentials);
    }
    free(link);
}
