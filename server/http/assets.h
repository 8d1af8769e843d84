#ifndef LAC_SERVER_HTTP_ASSETS_H
#define LAC_SERVER_HTTP_ASSETS_H

/*
 * The page and the collector inside the program: files as constant arrays, generated at build time
 * by server/http/embed/embed_assets.c. Everything here is static and read only.
 */

#include <stddef.h>

struct lac_asset {
    const char *path; /**< without a leading slash: "index.html", "assets/app.js" */
    const char *mime; /**< "text/html; charset=utf-8" */
    const char *etag; /**< strong, of the bytes, quotes included; the gzip form appends "-gz" */
    const unsigned char *bytes;
    size_t size_bytes;
    const unsigned char *gzip_bytes; /**< NULL when compression does not pay */
    size_t gzip_size_bytes;
};

/** Ascending by path (strcmp). Defined by the generated file. */
extern const struct lac_asset lac_assets[];
extern const unsigned lac_asset_count;

/** The collector, written out by `lacuna run` where it is not installed next to the program. */
extern const struct lac_asset lac_collector_assets[];
extern const unsigned lac_collector_asset_count;

#endif
