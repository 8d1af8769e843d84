#include "analysis/model/status.h"
#include "server/http/guard.h"
#include "server/http/peers.h"
#include "server/http/server_private.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTEN_BACKLOG = 1024 };

unsigned lac_http_bound_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {.v6 = {.sin6_port = 0}};
    socklen_t length = sizeof(address);

    if (getsockname(fd, &address.any, &length) != 0) {
        return 0;
    }
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

static enum lac_status open_socket(const struct addrinfo *info, const char *address, int *ret_fd,
                                   struct lac_error *reterr)
{
    const int one = 1;
    const int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

    if (fd < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: no socket: %s", address, strerror(errno));
    }
    /* restart at once after a stop; never SO_REUSEPORT: a second server must not share the port */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (info->ai_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    }
    if (bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, LISTEN_BACKLOG) != 0) {
        const int error = errno;

        (void)close(fd);
        errno = error;
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot listen on %s: %s%s", address,
                        strerror(error),
                        error == EADDRINUSE ? ": choose another with --listen, or port 0" : "");
    }
    *ret_fd = fd;
    return LAC_OK;
}

enum lac_status lac_http_listen(const char *address, bool allow_remote, int *ret_fd,
                                unsigned *ret_port, struct lac_error *reterr)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    char host[LAC_AUTHORITY_BYTES_MAX];
    char service[8];
    unsigned port;
    enum lac_status status;

    if (!lac_listen_address_split(address, host, sizeof(host), &port)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "--listen %s: must be ADDRESS:PORT, [ADDRESS]:PORT or PORT", address);
    }
    (void)snprintf(service, sizeof(service), "%u", port);
    if (getaddrinfo(host[0] != '\0' ? host : "127.0.0.1", service, &hints, &found) != 0 ||
        found == NULL) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "--listen %s: no such address", address);
    }
    if (!lac_address_is_loopback(found->ai_addr) && !allow_remote) {
        freeaddrinfo(found);
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "--listen %s: others could reach this address: use ssh -L, or "
                        "`lacuna serve` with --allow-remote (and --allow-host)",
                        address);
    }
    status = open_socket(found, address, ret_fd, reterr);
    freeaddrinfo(found);
    if (status == LAC_OK) {
        *ret_port = lac_http_bound_port(*ret_fd);
    }
    return status;
}
