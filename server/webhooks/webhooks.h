#ifndef LAC_SERVER_WEBHOOKS_WEBHOOKS_H
#define LAC_SERVER_WEBHOOKS_WEBHOOKS_H

/* What happens in a project, sent to where the project wants it. README.md has the picture. */

#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/webhooks/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_webhooks;

struct lac_webhooks_options {
    struct lac_nets allowed; /**< beside the public Internet */
    int64_t retry_ms;        /**< the wait after the first failure; each next is four times that */
    const char *address;     /**< of the page, for links in messages; "" none; borrowed */
};

enum {
    LAC_WEBHOOK_RETRY_MS = 10000,
    LAC_WEBHOOK_RETRY_MS_MAX = 6 * 3600000,
    LAC_WEBHOOK_ATTEMPTS = 8, /**< over about 10 hours */
};

/** Starts the thread that delivers what waits, and what comes. */
LAC_MUST_USE enum lac_status lac_webhooks_create(struct lac_app *app,
                                                 const struct lac_webhooks_options *options,
                                                 struct lac_webhooks **ret_webhooks,
                                                 struct lac_error *reterr);
/** Stops it; a request in progress ends and is made again at the next start. NULL is allowed. */
void lac_webhooks_destroy(struct lac_webhooks *webhooks);

/** For lac_app.tell_news. */
void lac_webhooks_tell(struct lac_webhooks *webhooks, const struct lac_news *news);

/** News for one webhook, whatever it wants. @return false: the project has none of this id */
bool lac_webhooks_try(struct lac_webhooks *webhooks, const char *id, const struct lac_news *news);

/** The events that there are, NULL at the end. */
extern const char *const lac_webhook_events[];

/** "a b" as " a b ", as a webhook keeps it; "" is all. @return false: one of them is no event */
bool lac_webhook_events_read(const char *text, char *out, size_t capacity_bytes);

const struct lac_nets *lac_webhooks_allowed(const struct lac_webhooks *webhooks);

#endif
