#ifndef LAC_SERVER_EXPORT_EXPORT_OUT_H
#define LAC_SERVER_EXPORT_EXPORT_OUT_H

/* Where the large exports go: a buffer that empties itself into a file. */

#include "server/base/buffer.h"

#include <stdbool.h>
#include <stdio.h>

struct lac_export_out {
    struct lac_buffer buffer; /**< append here */
    FILE *file;
    bool has_failed; /**< the disk refused; errno was kept by the caller's fclose */
};

/** Write the buffer out when it is large and there is a file. Call after each event. */
void lac_export_flow(struct lac_export_out *out);

/** Write the rest. @return LAC_OK, LAC_ERR_IO or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_export_finish(struct lac_export_out *out);

#endif
