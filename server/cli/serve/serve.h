#ifndef LAC_SERVER_CLI_SERVE_SERVE_H
#define LAC_SERVER_CLI_SERVE_SERVE_H

/* What the files of `lacuna serve` share. */

#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/cli/options.h"
#include "server/cli/own_names.h"
#include "server/http/key.h"
#include "server/http/server.h"
#include "server/ingest/ingest.h"
#include "server/ingest/resumable.h"
#include "server/ingest/tender.h"
#include "server/store/store.h"
#include "server/tls/tls.h"
#include "server/webhooks/webhooks.h"

#include <limits.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>

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
    const char
        *node_address;    /**< of the options: where others reach this server; NULL: see listen */
    char node_secret[32]; /**< by which this one knows those that stand by; "" none */
    int socket;           /**< listens; of --standby, for as long as the command runs; -1 none */
    int signal_fd;        /**< readable once it has to end */
    bool is_told;         /**< the address was printed */
    atomic_bool is_free;  /**< standing by: nobody holds the catalog any more */
};

/** Read the command line's options. @return false: said on stderr; wrong usage */
bool lac_serve_read_options(struct service *service);
/** The command line itself. @return as lac_options_parse() */
int lac_serve_parse(struct service *service, int argc, char **argv);

/** One line on stderr. @return 1 */
int lac_serve_fail(const char *what);

/** Take as many connections as there may be open files. @return false: said on stderr */
bool lac_serve_fit_descriptors(struct lac_http_options *http);

/** Print where it is reached, and write the port's file. Once. */
LAC_MUST_USE enum lac_status lac_serve_tell(struct service *service, struct lac_error *reterr);

/** Where other servers reach this one: HOST:PORT, with TLS "tls:FINGERPRINT@HOST:PORT". @param out LAC_NODE_ADDRESS_BYTES bytes */
void lac_serve_node_address(const struct service *service, char *out);

/* cmd_serve.c: parts of a start, which standing by shares */
LAC_MUST_USE enum lac_status lac_serve_open_state(struct service *service,
                                                  struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_serve_open_http(struct service *service, struct lac_error *reterr);
/** Answer: the server, and TLS in front of it. */
LAC_MUST_USE enum lac_status lac_serve_start_http(struct service *service,
                                                  struct lac_error *reterr);
/** Read the certificate again if a SIGHUP asked for it since the last call. @return whether it did */
bool lac_serve_reload(struct service *service);
/** Undo all of it; may be started again. */
void lac_serve_stop(struct service *service);

/** Answer what only reads while another server holds the catalog. Returns when it may be free, or
 *  when this one is to end. @param why said in the log */
LAC_MUST_USE enum lac_status lac_serve_stand_by(struct service *service, const char *why,
                                                struct lac_error *reterr);

#endif
