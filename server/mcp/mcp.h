#ifndef LAC_SERVER_MCP_MCP_H
#define LAC_SERVER_MCP_MCP_H

/*
 * The Model Context Protocol over standard input and output: coding agents list the traces that they
 * were given, analyze and compare them, and read what a finding means.
 *
 * One message a line (JSON-RPC 2.0). Both generations of clients are answered: those that begin with
 * `initialize` (2024-11-05 to 2025-11-25), and those that say their version in `_meta` of each request
 * (2026-07-28).
 */

#include <stddef.h>
#include <stdint.h>

struct lac_mcp_options {
    char *const *paths; /**< files and folders that may be read; nothing else is. Borrowed */
    size_t path_count;
    const char *program;       /**< runs the commands; NULL: this one (/proc/self/exe) */
    uint64_t memory_bytes_max; /**< address space of one command; 0: no limit */
    unsigned seconds_max;      /**< wall time of one command */
};

/**
 * Answer requests until the input ends.
 *
 * @param input_fd   requests; what was asked before it ends is answered
 * @param output_fd  replies, and nothing else; when nobody reads it any more, a command that runs
 *                   is ended
 * @return exit status: 0 when the input ended, 1 when a reply could not be written or memory ended
 */
int lac_mcp_serve(const struct lac_mcp_options *options, int input_fd, int output_fd);

#endif
