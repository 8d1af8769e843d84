#include "server/objects/sigv4.h"

#include "collector/base/count_of.h"
#include "collector/base/encode.h"
#include "collector/base/sha.h"
#include "server/base/hmac.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DAY_LENGTH = 8, SIGNED_SIZE = 256, SCOPE_SIZE = 256 };

bool lac_uri_encode(const char *text, bool keep_slash, char *out, size_t capacity)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t used = 0;

    for (const char *at = text; *at != '\0'; at++) {
        const bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                           (*at >= '0' && *at <= '9') || strchr("-._~", *at) != NULL ||
                           (*at == '/' && keep_slash);

        if (used + 4 > capacity) {
            return false;
        }
        if (plain) {
            out[used++] = *at;
        } else {
            out[used++] = '%';
            out[used++] = digits[(uint8_t)*at >> 4];
            out[used++] = digits[(uint8_t)*at & 15];
        }
    }
    if (used >= capacity) {
        return false;
    }
    out[used] = '\0';
    return true;
}

static void add(struct lac_sha *hash, const char *text)
{
    lac_sha_add(hash, text, strlen(text));
}

/** The hash of the canonical request. @param ret_signed "host;range;..." @return false: no room */
static bool hash_request(const struct lac_sigv4_request *request, char *ret_signed, char *ret_hex)
{
    struct lac_sha hash;
    uint8_t digest[LAC_SHA256_SIZE];
    size_t used = 0;

    lac_sha256_init(&hash);
    add(&hash, request->method);
    add(&hash, "\n");
    add(&hash, request->path);
    add(&hash, "\n");
    add(&hash, request->query);
    add(&hash, "\n");
    ret_signed[0] = '\0';
    for (size_t i = 0; i < request->header_count; i++) {
        const int length = snprintf(ret_signed + used, SIGNED_SIZE - used, "%s%s", i > 0 ? ";" : "",
                                    request->headers[i].name);

        if (length < 0 || (size_t)length >= SIGNED_SIZE - used) {
            return false;
        }
        used += (size_t)length;
        add(&hash, request->headers[i].name);
        add(&hash, ":");
        add(&hash, request->headers[i].value);
        add(&hash, "\n");
    }
    add(&hash, "\n");
    add(&hash, ret_signed);
    add(&hash, "\n");
    add(&hash, request->payload_sha256);
    lac_sha_end(&hash, digest);
    lac_hex_encode(digest, sizeof(digest), ret_hex);
    return true;
}

bool lac_sigv4_sign(const struct lac_sigv4_key *key, const struct lac_sigv4_request *request,
                    char *out)
{
    char signed_names[SIGNED_SIZE];
    char scope[SCOPE_SIZE];
    char secret[512];
    char text[SCOPE_SIZE + 128];
    char hex[LAC_SHA256_HEX_SIZE];
    uint8_t mac[LAC_SHA256_SIZE];
    const char *const parts[] = {key->region, key->service, "aws4_request"};
    int length = snprintf(scope, sizeof(scope), "%.*s/%s/%s/aws4_request", DAY_LENGTH,
                          request->time, key->region, key->service);

    if (length < 0 || (size_t)length >= sizeof(scope) ||
        !hash_request(request, signed_names, hex)) {
        return false;
    }
    (void)snprintf(text, sizeof(text), "AWS4-HMAC-SHA256\n%s\n%s\n%s", request->time, scope, hex);
    length = snprintf(secret, sizeof(secret), "AWS4%s", key->secret_key);
    if (length < 0 || (size_t)length >= sizeof(secret)) {
        return false;
    }
    lac_hmac_sha256(secret, (size_t)length, request->time, DAY_LENGTH, mac);
    for (size_t i = 0; i < LAC_COUNT_OF(parts); i++) {
        lac_hmac_sha256(mac, sizeof(mac), parts[i], strlen(parts[i]), mac);
    }
    lac_hmac_sha256(mac, sizeof(mac), text, strlen(text), mac);
    lac_hex_encode(mac, sizeof(mac), hex);
    length = snprintf(out, LAC_SIGV4_AUTHORIZATION_SIZE,
                      "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s",
                      key->access_key, scope, signed_names, hex);
    return length > 0 && length < LAC_SIGV4_AUTHORIZATION_SIZE;
}
