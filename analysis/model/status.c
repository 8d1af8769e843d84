#include "analysis/model/status.h"

#include "collector/base/count_of.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

const char *lac_status_name(enum lac_status status)
{
    static const char *const names[] = {
        [LAC_OK] = "ok",
        [LAC_ERR_NOMEM] = "out_of_memory",
        [LAC_ERR_IO] = "io",
        [LAC_ERR_CORRUPT] = "corrupt",
        [LAC_ERR_LIMIT] = "limit",
        [LAC_ERR_NOT_FOUND] = "not_found",
        [LAC_ERR_MISUSE] = "misuse",
        [LAC_ERR_NO_SPACE] = "no_space",
        [LAC_ERR_BUSY] = "busy",
    };
    _Static_assert(LAC_COUNT_OF(names) == LAC_STATUS_COUNT_, "name every status");

    assert(status >= 0);
    assert(status < LAC_STATUS_COUNT_);
    return names[status];
}

enum lac_status lac_fail(struct lac_error *err, enum lac_status status, uint64_t offset_bytes,
                         const char *fmt, ...)
{
    assert(status != LAC_OK);
    if (err != NULL) {
        va_list args;

        err->status = status;
        err->sys_errno = (status == LAC_ERR_IO) ? errno : 0;
        err->offset_bytes = offset_bytes;
        va_start(args, fmt);
        (void)vsnprintf(err->message, sizeof(err->message), fmt, args);
        va_end(args);
    }
    return status;
}
