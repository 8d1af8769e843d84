/* The relay's sockets where another process still has copies of them, as a forked importer has. */
#include "analysis/model/status.h"
#include "server/tls/tls.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/lacuna-test-XXXXXX";

static uint16_t port_of(int fd, bool of_peer)
{
    struct sockaddr_in address = {0};
    socklen_t length = sizeof(address);
    const int status = of_peer ? getpeername(fd, (struct sockaddr *)&address, &length)
                               : getsockname(fd, (struct sockaddr *)&address, &length);

    return status == 0 && address.sin_family == AF_INET ? address.sin_port : 0;
}

/* The relay's end of a client's connection: -1 while, or once, there is none. */
static int other_end(int client, int but)
{
    DIR *const all = opendir("/proc/self/fd");
    int found = -1;

    ck_assert_ptr_nonnull(all);
    for (struct dirent *one = readdir(all); one != NULL && found < 0; one = readdir(all)) {
        const int fd = (int)strtol(one->d_name, NULL, 10);

        if (one->d_name[0] != '.' && fd != client && fd != but && fd != dirfd(all) &&
            port_of(fd, true) == port_of(client, false)) {
            found = fd;
        }
    }
    (void)closedir(all);
    return found;
}

static int wait_for_end(int client, int but, bool is_there)
{
    for (unsigned i = 0; i < 6000; i++) {
        const int fd = other_end(client, but);

        if ((fd >= 0) == is_there) {
            return fd;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ck_abort_msg("the relay did not %s the connection", is_there ? "accept" : "close");
    return -1;
}

static int connect_to(int listening)
{
    struct sockaddr_in address = {0};
    socklen_t length = sizeof(address);
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(client, 0);
    ck_assert_int_eq(getsockname(listening, (struct sockaddr *)&address, &length), 0);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&address, length), 0);
    return client;
}

static void adopt(void *context, int fd, const struct sockaddr *address, socklen_t length)
{
    (void)context;
    (void)address;
    (void)length;
    (void)close(fd);
}

static bool make_certificate(char *certificate, char *key, size_t capacity)
{
    char command[512];

    (void)snprintf(certificate, capacity, "%s/cert.pem", folder);
    (void)snprintf(key, capacity, "%s/key.pem", folder);
    (void)snprintf(command, sizeof(command),
                   "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 "
                   "-subj /CN=test -keyout %s -out %s >%s/said 2>&1",
                   key, certificate, folder);
    return system(command) == 0;
}

/* A connection that was closed here is told of no more, though its socket lives on in a copy: under
 * the sanitizer what is told of it is seen to be freed. */
START_TEST(a_closed_connection_is_told_of_no_more)
{
    static const char no_tls[] = "GET / HTTP/1.1\r\n\r\n";
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    char certificate[128];
    char key[128];
    struct lac_tls_options options = {
        .certificate_path = certificate, .key_path = key, .thread_count = 1, .adopt = adopt};
    struct lac_tls *tls = NULL;
    struct lac_error error = {0};

    ck_assert_int_ge(listening, 0);
    ck_assert(make_certificate(certificate, key, sizeof(key)));
    ck_assert_int_eq(bind(listening, (struct sockaddr *)&any, sizeof(any)), 0);
    ck_assert_int_eq(listen(listening, 8), 0);
    ck_assert_msg(lac_tls_create(&options, &tls, &error) == LAC_OK, "%s", error.message);
    ck_assert_msg(lac_tls_start(tls, listening, &error) == LAC_OK, "%s", error.message);
    for (unsigned i = 0; i < 4; i++) {
        const int client = connect_to(listening);
        const int end = wait_for_end(client, -1, true);
        const int copy = fcntl(end, F_DUPFD_CLOEXEC, 100);
        int next;

        ck_assert_int_ge(copy, 100);
        ck_assert_int_gt(send(client, no_tls, sizeof(no_tls) - 1, MSG_NOSIGNAL), 0);
        (void)wait_for_end(client, copy, false);
        (void)send(client, "more", 4, MSG_NOSIGNAL);
        next =
            connect_to(listening); /* the relay comes round: to this one, and to what it is told */
        (void)wait_for_end(next, -1, true);
        (void)close(next);
        (void)close(client);
        (void)close(copy);
    }
    lac_tls_destroy(tls);
    (void)close(listening);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("tls_relay");
    TCase *const tcase = tcase_create("all");
    void *const library = dlopen("libgnutls.so.30", RTLD_NOW | RTLD_LOCAL);
    char remove[64];
    int status;

    if (library == NULL || system("openssl version >/dev/null 2>&1") != 0) {
        (void)printf("skip: no GnuTLS, or no openssl to make a certificate\n0 passed, 0 failed\n");
        return 0;
    }
    (void)dlclose(library);
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    tcase_set_timeout(tcase, 240);
    tcase_add_test(tcase, a_closed_connection_is_told_of_no_more);
    suite_add_tcase(suite, tcase);
    status = check_main(suite);
    (void)snprintf(remove, sizeof(remove), "rm -r %s", folder);
    return system(remove) == 0 ? status : 1;
}
