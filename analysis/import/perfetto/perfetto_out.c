/* Events as JSON, into the file without a name. */

#include "analysis/import/perfetto/perfetto_private.h"
#include "analysis/model/status.h"
#include "collector/base/io_full.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { OUT_BYTES = 1 << 18, PIECE_BYTES = 512 };

enum lac_status lac_perfetto_flush(struct lac_perfetto *p)
{
    if (!lac_write_full(p->fd, p->out, p->out_used)) {
        return lac_fail(p->reterr, LAC_ERR_IO, 0, "cannot write a temporary file: %s",
                        strerror(errno));
    }
    p->out_bytes += p->out_used;
    p->out_used = 0;
    return LAC_OK;
}

static enum lac_status put_bytes(struct lac_perfetto *p, const char *bytes, size_t size)
{
    enum lac_status status = LAC_OK;
    while (size > 0 && status == LAC_OK) {
        size_t room = OUT_BYTES - p->out_used;
        size_t part = size < room ? size : room;
        memcpy(p->out + p->out_used, bytes, part);
        p->out_used += part;
        bytes += part;
        size -= part;
        status = p->out_used == OUT_BYTES ? lac_perfetto_flush(p) : LAC_OK;
    }
    return status;
}

enum lac_status lac_perfetto_put(struct lac_perfetto *p, const char *format, ...)
{
    char text[PIECE_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    size_t size = length < 0 ? 0 : (size_t)length;
    return put_bytes(p, text, size < sizeof(text) ? size : sizeof(text) - 1);
}

enum lac_status lac_perfetto_put_string(struct lac_perfetto *p, const char *text)
{
    enum lac_status status = put_bytes(p, "\"", 1);
    while (*text != '\0' && status == LAC_OK) {
        size_t plain = 0;
        while ((unsigned char)text[plain] >= 0x20 && text[plain] != '"' && text[plain] != '\\') {
            plain++;
        }
        status = put_bytes(p, text, plain);
        text += plain;
        if (*text != '\0' && status == LAC_OK) {
            status = lac_perfetto_put(p, "\\u%04x", (unsigned)(unsigned char)*text++);
        }
    }
    return status == LAC_OK ? put_bytes(p, "\"", 1) : status;
}

enum lac_status lac_perfetto_begin_event(struct lac_perfetto *p, char phase, int64_t time_ns)
{
    const bool is_first = !p->has_event;
    const char *sign = time_ns < 0 ? "-" : "";
    const uint64_t ns = time_ns < 0 ? (uint64_t)-time_ns : (uint64_t)time_ns;
    p->has_event = true;
    p->event_count++;
    return lac_perfetto_put(p, "%s{\"ph\":\"%c\",\"ts\":%s%" PRIu64 ".%03u", is_first ? "" : ",\n",
                            phase, sign, ns / 1000, (unsigned)(ns % 1000));
}
