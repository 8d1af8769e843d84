#include "analysis/model/status.h"
#include "server/doctor/doctor.h"
#include "server/json/json_read.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { REACH_MS = 400 };

/* "http://host:port" -> its parts; only that form. */
static bool split(const char *server, char host[256], char port[8])
{
    const char *start = server + strlen("http://");
    const char *colon;
    size_t length;

    if (strncmp(server, "http://", strlen("http://")) != 0) {
        return false;
    }
    length = strcspn(start, "/");
    colon = memchr(start, ':', length);
    if (start[0] == '[' || (colon != NULL && (size_t)(colon - start) >= 256) || length >= 256) {
        return false;
    }
    (void)snprintf(host, 256, "%.*s", (int)(colon != NULL ? colon - start : (long)length), start);
    if (colon == NULL) {
        (void)snprintf(port, 8, "80");
    } else {
        (void)snprintf(port, 8, "%.*s", (int)(start + length - colon - 1), colon + 1);
    }
    return host[0] != '\0';
}

static bool wait_for(int fd, short events)
{
    struct pollfd wait = {.fd = fd, .events = events};

    return poll(&wait, 1, REACH_MS) == 1;
}

/* Whether an HTTP reply is that of /healthz here. */
static bool is_ours(const char *reply)
{
    static const struct lac_json_limits limits = {.size_bytes_max = 2048, .depth_max = 4};
    const char *body = strstr(reply, "\r\n\r\n");
    struct json_object *object = NULL;
    char status[16];
    bool is_ok;

    if (body == NULL || lac_json_read(body, strlen(body), &limits, &object, NULL) != LAC_OK) {
        return false;
    }
    is_ok = lac_json_read_text(object, "status", status, sizeof(status), NULL) == LAC_OK &&
            strcmp(status, "ok") == 0;
    lac_json_read_done(object);
    return is_ok;
}

/* Ask /healthz. @return 1 Lacuna answers, 0 something else does, -1 nothing */
static int knock(const struct addrinfo *address, const char *host)
{
    const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    char text[2048];
    socklen_t length = sizeof(int);
    ssize_t got = 0;
    int error = 0;
    int result = -1;

    if (fd < 0) {
        return -1;
    }
    if ((connect(fd, address->ai_addr, address->ai_addrlen) == 0 || errno == EINPROGRESS) &&
        wait_for(fd, POLLOUT) && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 &&
        error == 0) {
        const int size = snprintf(text, sizeof(text),
                                  "GET /healthz HTTP/1.1\r\nHost: %.255s\r\nConnection: "
                                  "close\r\n\r\n",
                                  host);

        if (send(fd, text, (size_t)size, MSG_NOSIGNAL) == size && wait_for(fd, POLLIN)) {
            got = recv(fd, text, sizeof(text) - 1, 0);
        }
        text[got > 0 ? got : 0] = '\0';
        result = is_ours(text) ? 1 : 0;
    }
    (void)close(fd);
    return result;
}

void lac_doctor_reach(struct lac_doctor *doctor)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[256];
    char port[8];
    int result;

    if (!split(doctor->server, host, port)) {
        lac_doctor_add(doctor, "server", LAC_DOCTOR_UNSEEN, NULL,
                       "%.100s is not checked: only http://host:port is supported", doctor->server);
        return;
    }
    if (getaddrinfo(host, port, &hints, &found) != 0 || found == NULL) {
        lac_doctor_add(doctor, "server", LAC_DOCTOR_AMBER, "check the name, or give the address",
                       "%.100s: no such host", doctor->server);
        return;
    }
    result = knock(found, host);
    freeaddrinfo(found);
    if (result == 1) {
        lac_doctor_add(doctor, "server", LAC_DOCTOR_OK, NULL, "%.100s answers", doctor->server);
    } else if (result == 0) {
        lac_doctor_add(doctor, "server", LAC_DOCTOR_AMBER,
                       "choose another port: lacuna serve --listen 127.0.0.1:0",
                       "another program listens on %.100s", doctor->server);
    } else {
        lac_doctor_add(doctor, "server", LAC_DOCTOR_AMBER,
                       "start it with `lacuna serve`, or from elsewhere forward its port with ssh "
                       "-L",
                       "no server answers on %.100s", doctor->server);
    }
}
