#include "server/oidc/oidc.h"

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/json/json_read.h"
#include "server/oidc/fetch.h"

#include <assert.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CLOCK_SKEW_S = 120,
    ASK_AGAIN_S = 5,
    REDEEMING_MAX = 2,
    CLIENT_SECRET_BYTES = 512,
    CLAIM_BYTES = 1024
};

static const struct lac_json_limits limits = {.size_bytes_max = LAC_FETCH_BYTES_MAX,
                                              .depth_max = 16};

struct lac_oidc {
    struct lac_oidc_options options;
    char client_secret[CLIENT_SECRET_BYTES];
    pthread_mutex_t lock; /**< guards all below */
    bool is_known;
    time_t
        asked_s; /**< when it was last asked where it is: one that is away is not asked each time */
    _Atomic unsigned redeeming;
    char authorization_endpoint[512];
    char token_endpoint[512];
};

/* -- settings ---------------------------------------------------------------------------------- */

/* In clear only on this machine, as in tests. */
static bool is_sound_address(const char *url)
{
    return strncmp(url, "https://", 8) == 0 || strncmp(url, "http://127.0.0.1:", 17) == 0;
}

static enum lac_status read_secret(struct lac_oidc *oidc, struct lac_error *reterr)
{
    const char *path = oidc->options.secret_file;
    FILE *file = path == NULL ? NULL : fopen(path, "re");

    if (path == NULL) {
        return LAC_OK;
    }
    if (file == NULL || fgets(oidc->client_secret, CLIENT_SECRET_BYTES, file) == NULL) {
        (void)lac_fail(reterr, LAC_ERR_MISUSE, 0, "%s: cannot be read", path);
        if (file != NULL) {
            (void)fclose(file);
        }
        return LAC_ERR_MISUSE;
    }
    (void)fclose(file);
    oidc->client_secret[strcspn(oidc->client_secret, "\r\n")] = '\0';
    return LAC_OK;
}

enum lac_status lac_oidc_create(const struct lac_oidc_options *options, struct lac_oidc **ret_oidc,
                                struct lac_error *reterr)
{
    assert(options != NULL && ret_oidc != NULL);
    struct lac_oidc *oidc;
    enum lac_status status;

    if (options->issuer == NULL || options->client == NULL || options->public_url == NULL ||
        options->claim == NULL || !is_sound_address(options->issuer) ||
        !is_sound_address(options->public_url) || strlen(options->public_url) > 400 ||
        strlen(options->issuer) > 400 || strlen(options->client) > 200) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "a provider needs --oidc-issuer https://..., --oidc-client ID and "
                        "--public-url https://..., where browsers find this service");
    }
    oidc = calloc(1, sizeof(*oidc));
    if (oidc == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for the provider");
    }
    oidc->options = *options;
    pthread_mutex_init(&oidc->lock, NULL);
    status = read_secret(oidc, reterr);
    if (status != LAC_OK) {
        lac_oidc_destroy(oidc);
        return status;
    }
    *ret_oidc = oidc;
    return LAC_OK;
}

void lac_oidc_destroy(struct lac_oidc *oidc)
{
    if (oidc != NULL) {
        pthread_mutex_destroy(&oidc->lock);
        sodium_memzero(oidc->client_secret, sizeof(oidc->client_secret));
        free(oidc);
    }
}

/* -- where the provider is --------------------------------------------------------------------- */

static enum lac_status read_endpoints(struct lac_oidc *oidc, const char *text, size_t size_bytes,
                                      struct lac_error *reterr)
{
    struct json_object *object = NULL;
    char issuer[512];
    enum lac_status status = lac_json_read(text, size_bytes, &limits, &object, reterr);

    if (status == LAC_OK) {
        status = lac_json_read_text(object, "issuer", issuer, sizeof(issuer), reterr);
    }
    if (status == LAC_OK) {
        status = lac_json_read_text(object, "authorization_endpoint", oidc->authorization_endpoint,
                                    sizeof(oidc->authorization_endpoint), reterr);
    }
    if (status == LAC_OK) {
        status = lac_json_read_text(object, "token_endpoint", oidc->token_endpoint,
                                    sizeof(oidc->token_endpoint), reterr);
    }
    lac_json_read_done(object);
    if (status == LAC_OK && (strcmp(issuer, oidc->options.issuer) != 0 ||
                             !is_sound_address(oidc->authorization_endpoint) ||
                             !is_sound_address(oidc->token_endpoint) ||
                             strpbrk(oidc->authorization_endpoint, "\r\n") != NULL)) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                          "the provider calls itself another issuer, or has addresses without TLS");
    }
    return status;
}

static enum lac_status discover(struct lac_oidc *oidc, char *text, struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;
    char url[512];
    size_t size_bytes;

    (void)pthread_mutex_lock(&oidc->lock);
    if (!oidc->is_known && time(NULL) - oidc->asked_s < ASK_AGAIN_S) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "the provider is away: try again in a moment");
    } else if (!oidc->is_known) {
        const size_t length = strlen(oidc->options.issuer);
        const bool has_slash = oidc->options.issuer[length - 1] == '/';

        (void)snprintf(url, sizeof(url), "%s%s.well-known/openid-configuration",
                       oidc->options.issuer, has_slash ? "" : "/");
        status = lac_fetch(url, NULL, text, &size_bytes, reterr);
        if (status == LAC_OK) {
            status = read_endpoints(oidc, text, size_bytes, reterr);
        }
        oidc->is_known = status == LAC_OK;
        oidc->asked_s = time(NULL);
    }
    (void)pthread_mutex_unlock(&oidc->lock);
    return status;
}

/* -- what is derived from the secret of an attempt --------------------------------------------- */

static void derive(const char *secret, const char *what, char out[static LAC_OIDC_SECRET_BYTES])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state state;

    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, (const unsigned char *)what, strlen(what) + 1);
    crypto_hash_sha256_update(&state, (const unsigned char *)secret, strlen(secret));
    crypto_hash_sha256_final(&state, hash);
    sodium_bin2hex(out, LAC_OIDC_SECRET_BYTES, hash, sizeof(hash));
}

static void put_field(struct lac_buffer *out, const char *name, const char *value)
{
    lac_buffer_printf(
        out, "%s%s=", out->size_bytes > 0 && out->bytes[out->size_bytes - 1] != '?' ? "&" : "",
        name);
    for (const char *p = value; *p != '\0'; p++) {
        const unsigned char c = (unsigned char)*p;
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || strchr("-._~", c) != NULL;

        lac_buffer_printf(out, is_plain ? "%c" : "%%%02X", c);
    }
}

static void put_return(struct lac_buffer *out, const struct lac_oidc *oidc)
{
    char address[512];

    (void)snprintf(address, sizeof(address), "%s/api/v1/session/oidc/callback",
                   oidc->options.public_url);
    put_field(out, "redirect_uri", address);
}

enum lac_status lac_oidc_begin(struct lac_oidc *oidc, char *ret_secret, char *ret_address,
                               struct lac_error *reterr)
{
    assert(oidc != NULL && ret_secret != NULL && ret_address != NULL);
    unsigned char bytes[32];
    unsigned char hash[crypto_hash_sha256_BYTES];
    char derived[LAC_OIDC_SECRET_BYTES];
    char challenge[64];
    struct lac_buffer out = {.size_bytes_max = LAC_OIDC_ADDRESS_BYTES - 1};
    char *text = malloc(LAC_FETCH_BYTES_MAX);
    enum lac_status status = text != NULL
                                 ? discover(oidc, text, reterr)
                                 : lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for the provider");

    free(text);
    if (status != LAC_OK) {
        return status;
    }
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(ret_secret, LAC_OIDC_SECRET_BYTES, bytes, sizeof(bytes));
    lac_buffer_printf(&out, "%s%c", oidc->authorization_endpoint,
                      strchr(oidc->authorization_endpoint, '?') != NULL ? '&' : '?');
    put_field(&out, "response_type", "code");
    put_field(&out, "client_id", oidc->options.client);
    put_field(&out, "scope", "openid email profile");
    put_return(&out, oidc);
    derive(ret_secret, "state", derived);
    put_field(&out, "state", derived);
    derive(ret_secret, "nonce", derived);
    put_field(&out, "nonce", derived);
    derive(ret_secret, "verifier", derived);
    crypto_hash_sha256(hash, (const unsigned char *)derived, strlen(derived));
    sodium_bin2base64(challenge, sizeof(challenge), hash, sizeof(hash),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    put_field(&out, "code_challenge", challenge);
    put_field(&out, "code_challenge_method", "S256");
    status = out.status;
    if (status == LAC_OK) {
        memcpy(ret_address, out.bytes, out.size_bytes);
        ret_address[out.size_bytes] = '\0';
    } else {
        (void)lac_fail(reterr, status, 0, "the provider's address is too long");
    }
    lac_buffer_done(&out);
    return status;
}

/* -- the ID token ------------------------------------------------------------------------------ */

static bool has_line(const char *lines, const char *wanted)
{
    const size_t length = strlen(wanted);

    for (const char *p = lines; p != NULL;
         p = strchr(p, '\n') != NULL ? strchr(p, '\n') + 1 : NULL) {
        if (strncmp(p, wanted, length) == 0 && (p[length] == '\n' || p[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* For us: alone, or one of several, and then it must be made for us. */
static bool is_for_us(const struct lac_oidc *oidc, const struct json_object *claims)
{
    const char *client = oidc->options.client;
    char audience[CLAIM_BYTES];
    char party[CLAIM_BYTES];
    struct lac_error error;

    if (lac_json_read_has(claims, "azp") &&
        (lac_json_read_text(claims, "azp", party, sizeof(party), &error) != LAC_OK ||
         strcmp(party, client) != 0)) {
        return false;
    }
    if (lac_json_read_text(claims, "aud", audience, sizeof(audience), &error) == LAC_OK) {
        return strcmp(audience, client) == 0;
    }
    return lac_json_read_lines(claims, "aud", audience, sizeof(audience), &error) == LAC_OK &&
           has_line(audience, client) &&
           (strchr(audience, '\n') == NULL || lac_json_read_has(claims, "azp"));
}

static enum lac_status check_claims(const struct lac_oidc *oidc, const struct json_object *claims,
                                    const char *secret, char *ret_name, struct lac_error *reterr)
{
    char issuer[CLAIM_BYTES];
    char nonce[CLAIM_BYTES];
    char wanted[LAC_OIDC_SECRET_BYTES];
    int64_t expires_s;
    bool is_verified = false;
    struct lac_error error;

    derive(secret, "nonce", wanted);
    if (lac_json_read_text(claims, "iss", issuer, sizeof(issuer), &error) != LAC_OK ||
        strcmp(issuer, oidc->options.issuer) != 0 || !is_for_us(oidc, claims)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the provider's token is not for this service");
    }
    if (lac_json_read_int(claims, "exp", &expires_s, &error) != LAC_OK ||
        expires_s < (int64_t)time(NULL) - CLOCK_SKEW_S) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the provider's token has expired");
    }
    if (lac_json_read_text(claims, "nonce", nonce, sizeof(nonce), &error) != LAC_OK ||
        strcmp(nonce, wanted) != 0) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the provider's token is of another sign-in");
    }
    if (lac_json_read_text(claims, oidc->options.claim, ret_name, LAC_OIDC_NAME_BYTES, &error) !=
        LAC_OK) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the provider does not tell the claim \"%s\"",
                        oidc->options.claim);
    }
    if (strcmp(oidc->options.claim, "email") == 0 &&
        (lac_json_read_bool(claims, "email_verified", &is_verified, &error) != LAC_OK ||
         !is_verified)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "the provider has not verified this user's email address");
    }
    return LAC_OK;
}

static enum lac_status read_id_token(const struct lac_oidc *oidc, const char *token,
                                     const char *secret, char *ret_name, struct lac_error *reterr)
{
    const char *begin = strchr(token, '.');
    const char *end = begin != NULL ? strchr(begin + 1, '.') : NULL;
    struct json_object *claims = NULL;
    char *text = malloc(LAC_FETCH_BYTES_MAX);
    size_t length = 0;
    enum lac_status status = LAC_ERR_CORRUPT;

    if (text != NULL && end != NULL &&
        sodium_base642bin((unsigned char *)text, LAC_FETCH_BYTES_MAX, begin + 1,
                          (size_t)(end - begin - 1), NULL, &length, NULL,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0) {
        status = lac_json_read(text, length, &limits, &claims, reterr);
    }
    status = status == LAC_OK
                 ? check_claims(oidc, claims, secret, ret_name, reterr)
                 : lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the provider's token is not one");
    lac_json_read_done(claims);
    free(text);
    return status;
}

/* -- the way back ------------------------------------------------------------------------------ */

static enum lac_status redeem(struct lac_oidc *oidc, const char *secret, const char *code,
                              char *text, char *token, struct lac_error *reterr)
{
    struct lac_buffer form = {.size_bytes_max = 16384};
    struct json_object *object = NULL;
    char verifier[LAC_OIDC_SECRET_BYTES];
    size_t size_bytes = 0;
    enum lac_status status;

    derive(secret, "verifier", verifier);
    put_field(&form, "grant_type", "authorization_code");
    put_field(&form, "code", code);
    put_return(&form, oidc);
    put_field(&form, "client_id", oidc->options.client);
    put_field(&form, "code_verifier", verifier);
    if (oidc->client_secret[0] != '\0') {
        put_field(&form, "client_secret", oidc->client_secret);
    }
    lac_buffer_printf(&form, "%c", '\0');
    status = form.status == LAC_OK
                 ? lac_fetch(oidc->token_endpoint, form.bytes, text, &size_bytes, reterr)
                 : lac_fail(reterr, LAC_ERR_MISUSE, 0, "the provider's code is too long");
    lac_buffer_done(&form);
    if (status == LAC_OK) {
        status = lac_json_read(text, size_bytes, &limits, &object, reterr);
    }
    if (status == LAC_OK) {
        status = lac_json_read_text(object, "id_token", token, LAC_FETCH_BYTES_MAX, reterr);
    }
    lac_json_read_done(object);
    return status;
}

enum lac_status lac_oidc_finish(struct lac_oidc *oidc, const char *secret, const char *state,
                                const char *code, char *ret_name, struct lac_error *reterr)
{
    assert(oidc != NULL && secret != NULL && state != NULL && code != NULL && ret_name != NULL);
    char wanted[LAC_OIDC_SECRET_BYTES];
    char *text;
    char *token;
    enum lac_status status;

    derive(secret, "state", wanted);
    if (strlen(secret) != LAC_OIDC_SECRET_BYTES - 1 || strlen(state) != strlen(wanted) ||
        sodium_memcmp(state, wanted, strlen(wanted)) != 0) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "this sign-in was not begun in this browser, or long ago: begin again");
    }
    text = malloc(LAC_FETCH_BYTES_MAX);
    token = malloc(LAC_FETCH_BYTES_MAX);
    status = text != NULL && token != NULL
                 ? discover(oidc, text, reterr)
                 : lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for the provider");
    if (status == LAC_OK) { /* who asks has shown nothing: few may wait for the provider at once */
        status = atomic_fetch_add(&oidc->redeeming, 1) < REDEEMING_MAX
                     ? redeem(oidc, secret, code, text, token, reterr)
                     : lac_fail(reterr, LAC_ERR_IO, 0, "too many sign in now: try again");
        (void)atomic_fetch_sub(&oidc->redeeming, 1);
    }
    if (status == LAC_OK && token != NULL) {
        status = read_id_token(oidc, token, secret, ret_name, reterr);
    }
    free(text);
    free(token);
    return status;
}
