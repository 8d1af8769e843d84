#ifndef LAC_SERVER_WEBHOOKS_SEND_H
#define LAC_SERVER_WEBHOOKS_SEND_H

/*
 * One POST by the host's libcurl, loaded when it is first needed. The address is checked when the
 * socket for it is made: what a name led to a moment ago does not matter. No redirect is followed,
 * no proxy is asked, no cookie kept, and of the reply nothing is read but its status.
 */

#include "server/webhooks/address.h"

#include <stdbool.h>
#include <stddef.h>

struct lac_sender;

/** @param stopping when it becomes true a request in progress ends; borrowed */
struct lac_sender *lac_sender_create(const struct lac_nets *allowed, const bool *stopping);
void lac_sender_destroy(struct lac_sender *sender);

enum { LAC_SEND_FIELDS_MAX = 8, LAC_SEND_MS = 15000 };

struct lac_post {
    const char *url, *body;
    const char *fields[LAC_SEND_FIELDS_MAX]; /**< "Name: value"; NULL ends them */
};

/** @param problem "" where a reply came @return its status, 0 none came. At most LAC_SEND_MS. */
int lac_sender_post(struct lac_sender *sender, const struct lac_post *post, char *problem,
                    size_t capacity_bytes);

/** The hex digits of HMAC-SHA-256 of "TIME.BODY". @param out 65 bytes */
void lac_webhook_sign(const char *secret, const char *time, const char *body, char *out);

#endif
