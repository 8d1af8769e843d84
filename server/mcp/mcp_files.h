#ifndef LAC_SERVER_MCP_MCP_FILES_H
#define LAC_SERVER_MCP_MCP_FILES_H

/*
 * The files and folders that a client was given, by names. A name that the list does not hold cannot
 * be read: no path of the client's own ever reaches the system. Private to this folder.
 */

#include "analysis/model/status.h"
#include "server/mcp/mcp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** More is not listed, and the list says so. */
enum { LAC_MCP_FILES_MAX = 10000, LAC_MCP_DEPTH_MAX = 8 };

struct lac_mcp_file {
    char *name; /**< "runs/rank0.json.gz": the folder that was given, and what is in it */
    char *path;
    bool is_folder;
    uint64_t size_bytes; /**< of a folder: of the files directly in it */
    int64_t changed_ns;
};

struct lac_mcp_files {
    struct lac_mcp_file *files; /**< by name */
    size_t count;
    size_t capacity;
    bool is_cut;
};

/** Look at what was given. Links inside it are not followed. @param ret_files zeroed; the caller
 *  calls lac_mcp_files_done() @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_mcp_files_list(const struct lac_mcp_options *options,
                                                struct lac_mcp_files *ret_files);

void lac_mcp_files_done(struct lac_mcp_files *files);

/** @return NULL: no such name */
const struct lac_mcp_file *lac_mcp_file_named(const struct lac_mcp_files *files, const char *name);

#endif
