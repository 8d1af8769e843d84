#include "server/http/server_private.h"

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

bool lac_static_find(const struct lac_http_options *options, const char *path, bool accepts_gzip,
                     struct lac_response *response)
{
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
    response->mime = asset->mime;
    response->cache = "no-cache"; /* keep it, but ask: the tag answers in one round trip */
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
