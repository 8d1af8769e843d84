#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/http/assets.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/http/server.h"
#include "server/http/server_private.h"

#include <stdio.h>
#include <string.h>

static const struct lac_asset *find(const struct lac_http_options *options, const char *path)
{
    unsigned low = 0;
    unsigned high = options->asset_count;

    while (low < high) {
        const unsigned middle = low + (high - low) / 2;
        const int order = strcmp(path, options->assets[middle].path);

        if (order == 0) {
            return &options->assets[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

/* The page names its two files by absolute paths, so that "/t/ID" finds them; these start with the
 * base path when there is one. */
bool lac_static_prepare(struct lac_http_server *server)
{
    static const char *const marks[] = {"href=\"/", "src=\"/"};
    const struct lac_asset *plain = find(&server->options, "index.html");
    const char *text = (plain == NULL) ? NULL : (const char *)plain->bytes;
    struct lac_buffer *out = &server->index_text;
    size_t from = 0;

    if (plain == NULL || server->base_path_length == 0) {
        return true;
    }
    for (size_t i = 0; i < plain->size_bytes; i++) {
        for (unsigned m = 0; m < 2; m++) {
            const size_t length = strlen(marks[m]);

            if (plain->size_bytes - i >= length && memcmp(text + i, marks[m], length) == 0) {
                lac_buffer_add(out, text + from, i + length - 1 - from);
                lac_buffer_puts(out, server->options.base_path);
                from = i + length - 1;
            }
        }
    }
    lac_buffer_add(out, text + from, plain->size_bytes - from);
    (void)snprintf(server->index_etag, sizeof(server->index_etag), "%.*s-b\"",
                   (int)strlen(plain->etag) - 1, plain->etag);
    server->index = *plain;
    server->index.bytes = (const unsigned char *)out->bytes;
    server->index.size_bytes = out->size_bytes;
    server->index.gzip_bytes = NULL;
    server->index.etag = server->index_etag;
    return out->status == LAC_OK;
}

/* The page's own policy, but that the page, asked to by `?url=`, may fetch a trace from elsewhere
 * (without cookies, and where the other server allows it). Scripts stay ours alone. */
static const char fetching_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self' https: http://localhost:* http://127.0.0.1:*; font-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* "chunk-RIKJVHUA.js": the bundler wrote a hash of the content into the name. */
static bool has_hash(const char *name)
{
    static const char hash[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const char *const dash = strrchr(name, '-');

    return dash != NULL && strspn(dash + 1, hash) == 8 && strcmp(dash + 9, ".js") == 0;
}

/* How long a browser keeps a file of the page without asking. */
static const char *kept(const struct lac_asset *asset)
{
    if (has_hash(asset->path)) {
        return "public, max-age=31536000, immutable";
    }
    if (strcmp(asset->mime, "image/svg+xml") == 0) {
        return "public, max-age=86400"; /* asked for whenever the address changes */
    }
    return "no-cache"; /* keep it, but ask: the tag answers in one round trip */
}

bool lac_static_find(const struct lac_http_server *server, const struct lac_target *target,
                     bool accepts_gzip, struct lac_response *response)
{
    const char *const path = target->path;
    const struct lac_http_options *options = &server->options;
    const char *name = path + 1;
    const char *last = strrchr(path, '/') + 1;
    const struct lac_asset *asset = find(options, name);

    /* an address of the page ("/t/ID"), not of a file: the page itself looks at it */
    if (asset == NULL && strchr(last, '.') == NULL) {
        asset = find(options, "index.html");
    }
    if (asset == NULL) {
        return false;
    }
    if (server->index.path != NULL && strcmp(asset->path, server->index.path) == 0) {
        asset = &server->index;
    }
    if (strcmp(path, "/") == 0) {
        response->may_have_opener = true;
        if (lac_target_get(target, "url") != NULL) {
            response->policy = fetching_policy;
        }
    }
    response->mime = asset->mime;
    response->cache = kept(asset);
    response->borrowed = asset->bytes;
    response->borrowed_size_bytes = asset->size_bytes;
    if (asset->gzip_bytes == NULL) {
        response->may_gzip = false;
    } else if (accepts_gzip) {
        response->borrowed = asset->gzip_bytes;
        response->borrowed_size_bytes = asset->gzip_size_bytes;
        response->encoding = "gzip";
    }
    const size_t length = strlen(asset->etag);
    if (length >= 2 && length + 4 <= sizeof(response->etag)) {
        memcpy(response->etag, asset->etag, length + 1);
        if (response->encoding != NULL) {
            memcpy(response->etag + length - 1, "-gz\"", 5);
        }
    }
    return true;
}
