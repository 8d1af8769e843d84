#include "collector/push/push_compress.h"

#include "collector/base/old_symbols.h" /* IWYU pragma: keep */

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What we use of libzstd's interface, stable since 1.4. */
enum { PARAMETER_LEVEL = 100, LEVEL = 3, CONTINUE = 0, END = 2 };

struct in_buffer {
    const void *bytes;
    size_t size;
    size_t at;
};

struct out_buffer {
    void *bytes;
    size_t size;
    size_t at;
};

struct lac_push_compress {
    void *library;
    void *context;
    void *(*create)(void);
    size_t (*release)(void *);
    size_t (*set_parameter)(void *, int, int);
    size_t (*compress)(void *, struct out_buffer *, struct in_buffer *, int);
    unsigned (*is_error)(size_t);
};

static bool find(struct lac_push_compress *pack, const char *name, void *place)
{
    void *const symbol = dlsym(pack->library, name);

    memcpy(place, &symbol, sizeof(symbol));
    return symbol != NULL;
}

struct lac_push_compress *lac_push_compress_open(void)
{
    const char *const wish = getenv("LACUNA_LIBZSTD");
    struct lac_push_compress *const pack = calloc(1, sizeof(*pack));

    if (pack == NULL) {
        return NULL;
    }
    pack->library =
        dlopen(wish != NULL && wish[0] != '\0' ? wish : "libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (pack->library != NULL && find(pack, "ZSTD_createCCtx", &pack->create) &&
        find(pack, "ZSTD_freeCCtx", &pack->release) &&
        find(pack, "ZSTD_CCtx_setParameter", &pack->set_parameter) &&
        find(pack, "ZSTD_compressStream2", &pack->compress) &&
        find(pack, "ZSTD_isError", &pack->is_error)) {
        pack->context = pack->create();
    }
    if (pack->context == NULL ||
        pack->is_error(pack->set_parameter(pack->context, PARAMETER_LEVEL, LEVEL)) != 0) {
        lac_push_compress_close(pack);
        return NULL;
    }
    return pack;
}

void lac_push_compress_close(struct lac_push_compress *pack)
{
    if (pack == NULL) {
        return;
    }
    if (pack->context != NULL) {
        (void)pack->release(pack->context);
    }
    free(pack); /* the library stays: it is wanted again, and dlclose() is too new a symbol */
}

int64_t lac_push_compress_step(struct lac_push_compress *pack, const uint8_t **input,
                               size_t *input_bytes, bool is_last, void *out, size_t capacity,
                               bool *ret_done)
{
    struct in_buffer in = {.bytes = *input, .size = *input_bytes};
    struct out_buffer to = {.bytes = out, .size = capacity};
    const size_t left = pack->compress(pack->context, &to, &in, is_last ? END : CONTINUE);

    if (pack->is_error(left) != 0) {
        return -1;
    }
    *input += in.at;
    *input_bytes -= in.at;
    *ret_done = is_last && left == 0 && *input_bytes == 0;
    return (int64_t)to.at;
}
