#ifndef LAC_COLLECTOR_BASE_FOLDER_H
#define LAC_COLLECTOR_BASE_FOLDER_H

/* What a folder holds. */

#include <stdbool.h>

/**
 * Whether `is` says yes to a name in the folder; it is asked until it does, in the folder's own
 * order, "." and ".." included. False for a folder that cannot be read.
 */
bool lac_folder_any(const char *path, bool (*is)(const void *context, const char *name),
                    const void *context);

#endif
