#include "server/cli/commands.h"
#include "server/cli/options.h"
#include "server/mcp/mcp.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MEMORY_GIB = 16, SECONDS = 600 };

static const char usage[] =
    "lacuna mcp PATH...\n"
    "\n"
    "Answers a coding agent over the Model Context Protocol (standard input and output): it can\n"
    "list, analyze and compare the traces in PATH, ask what a change would gain, and read what a\n"
    "finding means. It reads nothing else and writes nothing.\n"
    "\n"
    "In the agent's settings: {\"mcpServers\": {\"lacuna\": {\"command\": \"lacuna\", \"args\":\n"
    "[\"mcp\", \"/path/to/traces\"]}}}\n";

static const struct lac_option options_table[] = {{0}};

int lac_cmd_mcp(int argc, char **argv)
{
    struct lac_options options;
    int status = lac_options_parse(&options, options_table, usage, argc, argv);
    if (status < 0 && options.operand_count == 0) {
        (void)fprintf(stderr, "lacuna mcp: name the traces that may be read: lacuna mcp PATH...\n");
        status = 2;
    }
    for (int i = 0; status < 0 && i < options.operand_count; i++) {
        if (access(options.operands[i], R_OK) != 0) {
            (void)fprintf(stderr, "lacuna mcp: %s: cannot be read\n", options.operands[i]);
            status = EXIT_FAILURE;
        }
    }
    if (status < 0) {
        const struct lac_mcp_options mcp = {
            .paths = options.operands,
            .path_count = (size_t)options.operand_count,
            .memory_bytes_max = (uint64_t)MEMORY_GIB << 30,
            .seconds_max = SECONDS,
        };
        status = lac_mcp_serve(&mcp, STDIN_FILENO, STDOUT_FILENO);
    }
    lac_options_done(&options);
    return status;
}
