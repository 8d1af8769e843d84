/* Which addresses are of the public Internet. See address.h. */

#include "server/webhooks/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { HOST_BYTES = 256 };

static const uint8_t mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/** As IANA's registries of special-purpose addresses list them. */
static const char not_public[] =
    "0.0.0.0/8,10.0.0.0/8,100.64.0.0/10,127.0.0.0/8,169.254.0.0/16,172.16.0.0/12,192.0.0.0/24,"
    "192.0.2.0/24,192.88.99.0/24,192.168.0.0/16,198.18.0.0/15,198.51.100.0/24,203.0.113.0/24,"
    "224.0.0.0/4,240.0.0.0/4,::/96,100::/64,2001::/23,2001:db8::/32,3fff::/20,5f00::/16,fc00::/7,"
    "fe80::/9,ff00::/8";

static bool read_net(const char *text, struct lac_net *out)
{
    char address[64];
    const char *slash = strchr(text, '/');
    const size_t length = slash != NULL ? (size_t)(slash - text) : strlen(text);
    unsigned most = 128;
    unsigned skipped = 0;

    if (length >= sizeof(address)) {
        return false;
    }
    memcpy(address, text, length);
    address[length] = '\0';
    if (inet_pton(AF_INET, address, out->bytes + 12) == 1) {
        memcpy(out->bytes, mapped_prefix, sizeof(mapped_prefix));
        most = 32;
        skipped = 96;
    } else if (inet_pton(AF_INET6, address, out->bytes) != 1) {
        return false;
    }
    out->bits = most + skipped;
    if (slash != NULL) {
        char *end = NULL;
        const unsigned long bits = strtoul(slash + 1, &end, 10);

        if (!isdigit((unsigned char)slash[1]) || *end != '\0' || bits > most) {
            return false;
        }
        out->bits = (unsigned)bits + skipped;
    }
    return true;
}

bool lac_nets_read(const char *text, struct lac_nets *ret_nets)
{
    ret_nets->count = 0;
    while (*text != '\0') {
        const size_t length = strcspn(text, ", ");
        char word[80];

        if (length >= sizeof(word)) {
            return false;
        }
        if (length > 0) {
            memcpy(word, text, length);
            word[length] = '\0';
            if (ret_nets->count == LAC_ALLOWED_NETS_MAX ||
                !read_net(word, &ret_nets->at[ret_nets->count])) {
                return false;
            }
            ret_nets->count++;
        }
        text += length + (text[length] != '\0');
    }
    return true;
}

static bool contains(const struct lac_nets *nets, const uint8_t *bytes)
{
    for (unsigned i = 0; nets != NULL && i < nets->count; i++) {
        const unsigned whole = nets->at[i].bits / 8;
        const unsigned rest = nets->at[i].bits % 8;
        const uint8_t mask = (uint8_t)(0xff00U >> rest);

        if (memcmp(nets->at[i].bytes, bytes, whole) == 0 &&
            (rest == 0 || ((nets->at[i].bytes[whole] ^ bytes[whole]) & mask) == 0)) {
            return true;
        }
    }
    return false;
}

/** An address of IPv4 that one of IPv6 carries: mapped, 6to4, and through a translator. */
static bool inner_of(const uint8_t *bytes, uint8_t *inner)
{
    static const uint8_t translated[12] = {0, 0x64, 0xff, 0x9b};
    static const uint8_t translated_local[6] = {0, 0x64, 0xff, 0x9b, 0, 1};
    const uint8_t *at = NULL;

    if (bytes[0] == 0x20 && bytes[1] == 0x02) {
        at = bytes + 2;
    } else if (memcmp(bytes, translated, sizeof(translated)) == 0 ||
               memcmp(bytes, translated_local, sizeof(translated_local)) == 0) {
        at = bytes + 12;
    }
    if (at != NULL) {
        memcpy(inner, mapped_prefix, sizeof(mapped_prefix));
        memcpy(inner + 12, at, 4);
    }
    return at != NULL;
}

bool lac_address_may(const struct sockaddr *address, size_t size_bytes,
                     const struct lac_nets *allowed)
{
    struct lac_nets closed;
    uint8_t bytes[16];
    uint8_t inner[16];

    if (address->sa_family == AF_INET && size_bytes >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in v4;

        memcpy(&v4, address, sizeof(v4));
        memcpy(bytes, mapped_prefix, sizeof(mapped_prefix));
        memcpy(bytes + 12, &v4.sin_addr, 4);
    } else if (address->sa_family == AF_INET6 && size_bytes >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 v6;

        memcpy(&v6, address, sizeof(v6));
        memcpy(bytes, &v6.sin6_addr, sizeof(bytes));
    } else {
        return false;
    }
    if (contains(allowed, bytes)) {
        return true;
    }
    return lac_nets_read(not_public, &closed) && !contains(&closed, bytes) &&
           !(inner_of(bytes, inner) && contains(&closed, inner));
}

/** The host of a URL, without brackets. @return false: there is none that we take */
static bool host_of(const char *url, char *out, size_t capacity_bytes)
{
    const char *host = strstr(url, "://") + 3;
    const bool is_bracketed = *host == '[';
    size_t length;

    host += is_bracketed;
    length = strspn(host, is_bracketed ? "0123456789abcdefABCDEF:."
                                       : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789-._");
    if (length == 0 || length >= capacity_bytes || (is_bracketed && host[length] != ']')) {
        return false;
    }
    memcpy(out, host, length);
    out[length] = '\0';
    host += length + is_bracketed;
    if (*host == ':') { /* a port */
        const size_t digits = strspn(host + 1, "0123456789");

        if (digits == 0 || digits > 5 || strtoul(host + 1, NULL, 10) > 65535) {
            return false;
        }
        host += 1 + digits;
    }
    return *host == '\0' || *host == '/' || *host == '?';
}

const char *lac_webhook_url_problem(const char *url, const struct lac_nets *allowed)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[HOST_BYTES];
    bool may = true;

    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
        return "must begin with http:// or https://";
    }
    for (const char *at = url; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~' || *at == '\\' || *at == '#') {
            return "holds a character that no such address has";
        }
    }
    if (!host_of(url, host, sizeof(host))) {
        return "needs the name of a host, without user and password";
    }
    if (getaddrinfo(host, NULL, &hints, &found) == 0) { /* an address, in any spelling */
        may = lac_address_may(found->ai_addr, found->ai_addrlen, allowed);
        freeaddrinfo(found);
    } else if (strcasecmp(host, "localhost") == 0 && (allowed == NULL || allowed->count == 0)) {
        may = false;
    }
    return may ? NULL
               : "leads to a private, loopback or link-local address: `lacuna serve "
                 "--webhook-allow NET` allows one";
}
