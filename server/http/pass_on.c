/* The head of a request that another server answers. */
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/http/request.h"
#include "server/http/server.h"
#include "server/http/server_private.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct head {
    struct lac_buffer text;
    const char *without; /**< a field that is not to be believed; NULL none */
};

/* What is of this connection alone, what is said anew, and what only servers may say. The reply is
 * read here, so it comes as it is: no compression, no part. */
static bool is_left_out(const char *key)
{
    static const char *const names[] = {
        "Connection",      "Keep-Alive",      "TE",
        "Trailer",         "Upgrade",         "Transfer-Encoding",
        "Content-Length",  "Expect",          "Proxy-Authorization",
        "X-Forwarded-For", "Accept-Encoding", "Range",
    };

    for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
        if (strcasecmp(key, names[i]) == 0) {
            return true;
        }
    }
    return strncasecmp(key, "Lacuna-", 7) == 0;
}

static enum MHD_Result add_field(void *context, enum MHD_ValueKind kind, const char *key,
                                 const char *value)
{
    struct head *const head = context;

    (void)kind;
    /* framing.c lets no line break in; one that came all the same would be a second field */
    if (value != NULL && !is_left_out(key) && strpbrk(value, "\r\n") == NULL &&
        (head->without == NULL || strcasecmp(key, head->without) != 0)) {
        lac_buffer_printf(&head->text, "%s: %s\r\n", key, value);
    }
    return MHD_YES;
}

bool lac_pass_on_prepare(struct exchange *x, struct MHD_Connection *mhd, bool keeps_name)
{
    const struct lac_http_options *options = &x->loop->server->options;
    struct head head = {.without = keeps_name ? NULL : options->trust_header};

    lac_buffer_printf(&head.text, "%s %s HTTP/1.1\r\n", x->method,
                      x->raw_target != NULL ? x->raw_target : "");
    (void)MHD_get_connection_values(mhd, MHD_HEADER_KIND, add_field, &head);
    if (x->request.peer[0] != '\0') {
        lac_buffer_printf(&head.text, "X-Forwarded-For: %s\r\n", x->request.peer);
    }
    if (x->request.who.kind == LAC_PRINCIPAL_KEY) {
        lac_buffer_printf(&head.text, "Lacuna-As: %s\r\n",
                          x->pass_proof == LAC_PROOF_BEARER ? "bearer" : "cookie");
    }
    if (head.text.status != LAC_OK || x->raw_target == NULL) {
        lac_buffer_done(&head.text);
        x->close_after = true;
        lac_response_error(&x->response, 503, "out_of_memory", "no memory for this request");
        return false;
    }
    lac_buffer_puts(&head.text, ""); /* ends with a NUL */
    x->head = head.text.bytes;
    x->request.head = x->head;
    return true;
}
