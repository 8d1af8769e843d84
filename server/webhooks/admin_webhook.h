#ifndef LAC_SERVER_WEBHOOKS_ADMIN_WEBHOOK_H
#define LAC_SERVER_WEBHOOKS_ADMIN_WEBHOOK_H

/* `lacuna admin webhook`: a project's webhooks without a browser, also beside a running server. */

#include <stdbool.h>

struct lac_admin_webhook {
    const char *data_dir;
    const char *verb;    /**< "list", "add" or "remove" */
    const char *operand; /**< URL or id; NULL for list */
    const char *project; /**< "-": what belongs to none */
    const char *events;  /**< "" all */
    const char *allowed; /**< networks, as for `serve --webhook-allow` */
    bool is_slack;
};

/** @return an exit status; on failure one line was printed */
int lac_admin_webhook(const struct lac_admin_webhook *asked);

#endif
