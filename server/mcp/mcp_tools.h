#ifndef LAC_SERVER_MCP_MCP_TOOLS_H
#define LAC_SERVER_MCP_MCP_TOOLS_H

/* The tools: what they are called, what they take, what they answer. Private to this folder. */

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/json/json_out.h"
#include "server/mcp/mcp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_MCP_ARGUMENTS_MAX = 5, LAC_MCP_TEXT_BYTES = 16384, LAC_MCP_FAILURE_BYTES = 2560 };

struct lac_mcp_argument {
    const char *name; /**< NULL: no more */
    const char *description;
    bool is_required;
};

struct lac_mcp_call;

struct lac_mcp_tool {
    const char *name;
    const char *title;
    const char *description;
    struct lac_mcp_argument arguments[LAC_MCP_ARGUMENTS_MAX];
    /** @return LAC_OK with the answer in call->answer; else a sentence in call->failure */
    enum lac_status (*run)(struct lac_mcp_call *call);
};

/** One use of a tool. */
struct lac_mcp_call {
    const struct lac_mcp_options *options;
    const struct lac_mcp_tool *tool;
    int output_fd;
    char *texts[LAC_MCP_ARGUMENTS_MAX]; /**< of the arguments; NULL: not given. Owned */
    struct lac_buffer answer;
    char failure[LAC_MCP_FAILURE_BYTES];
    bool is_client_gone;
};

extern const struct lac_mcp_tool lac_mcp_tools[];
extern const size_t lac_mcp_tool_count;

/** NULL: there is none. */
const struct lac_mcp_tool *lac_mcp_tool_named(const char *name);

/** The argument of that name. @return NULL: not given */
const char *lac_mcp_text(const struct lac_mcp_call *call, const char *name);

/** "tools" of tools/list. */
void lac_mcp_tools_write(struct lac_json *json);

#endif
