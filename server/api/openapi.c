#include "server/api/app.h"
#include "server/base/buffer.h"
#include "server/http/request.h"

#include <stddef.h>

/*
 * openapi.json as it lies beside this file, put into the program by the assembler (which looks from
 * the root of the repository, where the compiler runs).
 */
__asm__(".section .rodata\n"
        ".balign 16\n"
        "lac_openapi_begin:\n"
        ".incbin \"server/api/openapi.json\"\n"
        "lac_openapi_end:\n"
        ".byte 0\n"
        ".text\n");

extern const char lac_openapi_begin[];
extern const char lac_openapi_end[];

const char *lac_openapi_text(size_t *ret_size_bytes)
{
    *ret_size_bytes = (size_t)(lac_openapi_end - lac_openapi_begin);
    return lac_openapi_begin;
}

void lac_api_openapi(void *app, const struct lac_request *request, struct lac_response *response)
{
    (void)app;
    lac_response_etag(response, "openapi %s %zu", LAC_VERSION,
                      (size_t)(lac_openapi_end - lac_openapi_begin));
    response->cache = "no-cache";
    if (!lac_response_is_unchanged(request, response)) {
        lac_buffer_add(&response->body, lac_openapi_begin,
                       (size_t)(lac_openapi_end - lac_openapi_begin));
    }
}
