#include "server/tls/tls.h"

#include "analysis/model/status.h"
#include "collector/base/sha.h"
#include "server/tls/tls_private.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* TLS 1.2 and 1.3, of which GnuTLS chooses the ciphers. */
static const char priority_text[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE";

static bool find(void *handle, const char *name, void *place)
{
    void *const symbol = dlsym(handle, name);

    memcpy(place, &symbol, sizeof(symbol));
    return symbol != NULL;
}

enum lac_status lac_tls_load(struct tls_library *library, struct lac_error *reterr)
{
    void *const handle = dlopen("libgnutls.so.30", RTLD_NOW | RTLD_LOCAL);
    bool all = handle != NULL;

#define LAC_TLS_FIND(name) all = all && find(handle, "gnutls_" #name, &library->name);
    LAC_TLS_FUNCTIONS(LAC_TLS_FIND)
#undef LAC_TLS_FIND
    if (!all) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "TLS needs GnuTLS (libgnutls.so.30), which is not on this machine: install "
                        "libgnutls30, or put a proxy with TLS in front and give --behind-proxy");
    }
    return LAC_OK;
}

/* -- certificates ------------------------------------------------------------------------------ */

static enum lac_status read_identity(struct lac_tls *tls, struct tls_identity **ret_identity,
                                     struct lac_error *reterr)
{
    const struct lac_tls_options *options = &tls->options;
    struct tls_identity *identity = calloc(1, sizeof(*identity));
    int result;

    if (identity == NULL ||
        tls->library.certificate_allocate_credentials(&identity->credentials) < 0) {
        free(identity);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for a certificate");
    }
    for (unsigned i = 0; i < 2; i++) { /* GnuTLS does not say which file it is */
        const char *path = i == 0 ? options->certificate_path : options->key_path;

        if (access(path, R_OK) != 0) {
            (void)lac_fail(reterr, LAC_ERR_MISUSE, 0, "%s: %s", path, strerror(errno));
            lac_tls_release(tls, identity);
            return LAC_ERR_MISUSE;
        }
    }
    result = tls->library.certificate_set_x509_key_file2(
        identity->credentials, options->certificate_path, options->key_path, GNUTLS_X509_FMT_PEM,
        NULL, 0);
    if (result < 0) {
        (void)lac_fail(reterr, LAC_ERR_MISUSE, 0, "%s and %s are not a certificate and its key: %s",
                       options->certificate_path, options->key_path, tls->library.strerror(result));
        lac_tls_release(tls, identity);
        return LAC_ERR_MISUSE;
    }
    *ret_identity = identity;
    return LAC_OK;
}

struct tls_identity *lac_tls_hold(struct lac_tls *tls)
{
    struct tls_identity *identity;

    pthread_mutex_lock(&tls->lock);
    identity = tls->identity;
    identity->holders++;
    pthread_mutex_unlock(&tls->lock);
    return identity;
}

void lac_tls_release(struct lac_tls *tls, struct tls_identity *identity)
{
    bool is_last;

    pthread_mutex_lock(&tls->lock);
    is_last = identity->holders <= 1;
    identity->holders -= identity->holders > 0;
    pthread_mutex_unlock(&tls->lock);
    if (is_last) {
        tls->library.certificate_free_credentials(identity->credentials);
        free(identity);
    }
}

void lac_tls_write_fingerprint(const void *certificate, size_t size_bytes,
                               char out[LAC_TLS_FINGERPRINT_BYTES])
{
    uint8_t digest[LAC_SHA256_SIZE];
    struct lac_sha hash;

    lac_sha256_init(&hash);
    lac_sha_add(&hash, certificate, size_bytes);
    lac_sha_end(&hash, digest);
    for (size_t i = 0; i < sizeof(digest); i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", digest[i]);
    }
}

bool lac_tls_fingerprint(struct lac_tls *tls, char out[LAC_TLS_FINGERPRINT_BYTES])
{
    assert(tls != NULL && out != NULL);
    struct tls_identity *const identity = lac_tls_hold(tls);
    gnutls_datum_t certificate = {.data = NULL};
    const bool is_there =
        tls->library.certificate_get_crt_raw(identity->credentials, 0, 0, &certificate) >= 0;

    if (is_there) {
        lac_tls_write_fingerprint(certificate.data, certificate.size, out);
    }
    lac_tls_release(tls, identity);
    return is_there;
}

enum lac_status lac_tls_reload(struct lac_tls *tls, struct lac_error *reterr)
{
    assert(tls != NULL);
    struct tls_identity *fresh = NULL;
    struct tls_identity *before;
    const enum lac_status status = read_identity(tls, &fresh, reterr);

    if (status != LAC_OK || fresh == NULL) {
        return status;
    }
    pthread_mutex_lock(&tls->lock);
    before = tls->identity;
    fresh->holders = 1;
    tls->identity = fresh;
    pthread_mutex_unlock(&tls->lock);
    lac_tls_release(tls, before);
    return LAC_OK;
}

/* -- threads ----------------------------------------------------------------------------------- */

static unsigned or_else(unsigned value, unsigned fallback)
{
    return value != 0 ? value : fallback;
}

enum lac_status lac_tls_create(const struct lac_tls_options *options, struct lac_tls **ret_tls,
                               struct lac_error *reterr)
{
    assert(options != NULL && options->adopt != NULL && ret_tls != NULL);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    struct lac_tls *tls = calloc(1, sizeof(*tls));
    enum lac_status status;

    if (tls == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for TLS");
    }
    tls->options = *options;
    tls->options.handshake_ms_max = or_else(options->handshake_ms_max, 10000);
    tls->options.stall_ms_max = or_else(options->stall_ms_max, 10000);
    tls->relay_count = or_else(options->thread_count, online < 2   ? 1
                                                      : online > 4 ? 4
                                                                   : (unsigned)online);
    pthread_mutex_init(&tls->lock, NULL);
    tls->relays = calloc(tls->relay_count, sizeof(*tls->relays));
    status = tls->relays != NULL ? lac_tls_load(&tls->library, reterr)
                                 : lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for TLS");
    if (status == LAC_OK && tls->library.priority_init(&tls->priority, priority_text, NULL) < 0) {
        status = lac_fail(reterr, LAC_ERR_MISUSE, 0, "this GnuTLS has neither TLS 1.2 nor 1.3");
    }
    if (status == LAC_OK) {
        status = read_identity(tls, &tls->identity, reterr);
    }
    if (status != LAC_OK) {
        lac_tls_destroy(tls);
        return status;
    }
    tls->identity->holders = 1;
    *ret_tls = tls;
    return LAC_OK;
}

static bool start_relay(struct lac_tls *tls, struct tls_relay *relay)
{
    struct epoll_event listening = {.events = EPOLLIN | EPOLLEXCLUSIVE};
    sigset_t all;
    sigset_t before;

    relay->tls = tls;
    relay->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (relay->epoll_fd < 0) {
        return false;
    }
    if (epoll_ctl(relay->epoll_fd, EPOLL_CTL_ADD, tls->listen_fd, &listening) == 0) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        relay->is_started = pthread_create(&relay->thread, NULL, lac_tls_relay, relay) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (!relay->is_started) {
        (void)close(relay->epoll_fd);
    }
    return relay->is_started;
}

enum lac_status lac_tls_start(struct lac_tls *tls, int listen_fd, struct lac_error *reterr)
{
    assert(tls != NULL && listen_fd >= 0);
    tls->listen_fd = listen_fd;
    for (unsigned i = 0; i < tls->relay_count; i++) {
        if (!start_relay(tls, &tls->relays[i])) {
            return lac_fail(reterr, LAC_ERR_IO, 0, "cannot start a thread for TLS");
        }
    }
    return LAC_OK;
}

void lac_tls_destroy(struct lac_tls *tls)
{
    if (tls == NULL) {
        return;
    }
    atomic_store(&tls->is_stopping, true);
    for (unsigned i = 0; tls->relays != NULL && i < tls->relay_count; i++) {
        if (tls->relays[i].is_started) {
            pthread_join(tls->relays[i].thread, NULL);
            (void)close(tls->relays[i].epoll_fd);
        }
    }
    if (tls->identity != NULL) {
        lac_tls_release(tls, tls->identity);
    }
    if (tls->priority != NULL) {
        tls->library.priority_deinit(tls->priority);
    }
    pthread_mutex_destroy(&tls->lock);
    free(tls->relays);
    free(tls);
}
