#include "server/export/export_out.h"

#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>

enum { FLOW_BYTES = 1 << 20 };

static void empty(struct lac_export_out *out)
{
    size_t size = out->buffer.size_bytes;
    if (size > 0 && fwrite(out->buffer.bytes, 1, size, out->file) != size) {
        out->has_failed = true;
    }
    out->buffer.size_bytes = 0;
}

void lac_export_flow(struct lac_export_out *out)
{
    if (out->file != NULL && out->buffer.size_bytes >= FLOW_BYTES) {
        empty(out);
    }
}

enum lac_status lac_export_finish(struct lac_export_out *out)
{
    assert(out != NULL);
    enum lac_status status = out->buffer.status;
    empty(out);
    lac_buffer_done(&out->buffer);
    if (status != LAC_OK) {
        return status;
    }
    return fflush(out->file) != 0 || out->has_failed ? LAC_ERR_IO : LAC_OK;
}
