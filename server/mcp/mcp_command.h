#ifndef LAC_SERVER_MCP_MCP_COMMAND_H
#define LAC_SERVER_MCP_MCP_COMMAND_H

/* One of this program's commands as a child with limits: a damaged trace, or one that is too large,
 * ends the child and not the conversation. Private to this folder. */

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/mcp/mcp.h" // IWYU pragma: export

#include <stdbool.h>

/** What a command may say on standard output and on standard error. */
#define LAC_MCP_OUTPUT_BYTES_MAX ((size_t)64 << 20)
enum { LAC_MCP_COMPLAINT_BYTES = 2048, LAC_MCP_WORDS_MAX = 16 };

struct lac_mcp_command {
    const struct lac_mcp_options *options;
    int output_fd;           /**< watched: when nobody reads it any more, the command is ended */
    const char *const *argv; /**< from "lacuna" on, NULL at the end; at most LAC_MCP_WORDS_MAX */
};

struct lac_mcp_outcome {
    struct lac_buffer output;
    int exit_status; /**< 128 + n after a signal */
    /** What it wrote on standard error, or what ended it. */
    char complaint[LAC_MCP_COMPLAINT_BYTES];
    bool is_client_gone;
};

/**
 * Run it and wait.
 *
 * @param ret_outcome zeroed; the caller frees its output, in every case
 * @return LAC_OK when it ran, whatever its exit status; LAC_ERR_NOMEM, or LAC_ERR_IO with a complaint
 */
LAC_MUST_USE enum lac_status lac_mcp_command_run(const struct lac_mcp_command *command,
                                                 struct lac_mcp_outcome *ret_outcome);

#endif
