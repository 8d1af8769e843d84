#ifndef LAC_SERVER_WEBHOOKS_ADDRESS_H
#define LAC_SERVER_WEBHOOKS_ADDRESS_H

/* Where a webhook may lead: addresses of the public Internet, and what an administrator allowed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { LAC_ALLOWED_NETS_MAX = 32 };

/** A network: the first `bits` of an IPv6 address; one of IPv4 is ::ffff:a.b.c.d. */
struct lac_net {
    uint8_t bytes[16];
    unsigned bits;
};

struct lac_nets {
    struct lac_net at[LAC_ALLOWED_NETS_MAX];
    unsigned count;
};

/** "10.0.0.0/8,127.0.0.1,fd00::/8": addresses and networks, no names. @return false: one is none */
bool lac_nets_read(const char *text, struct lac_nets *ret_nets);

/** Whether a webhook may connect to it. What is no address of the public Internet (loopback,
 *  private, link-local with its metadata services, shared, multicast, documentation, and these
 *  inside of IPv6) needs a network that allows it. */
bool lac_address_may(const struct sockaddr *address, size_t size_bytes,
                     const struct lac_nets *allowed);

/**
 * Whether the text can be the address of a webhook: http or https, a name or an address, no user
 * and password, no blank or control character; and where it names an address, one that may be.
 * @return NULL, or what is wrong, for the end of a sentence
 */
const char *lac_webhook_url_problem(const char *url, const struct lac_nets *allowed);

#endif
