#include "collector/base/folder.h"

#include <dirent.h>
#include <stddef.h>

bool lac_folder_any(const char *path, bool (*is)(const void *context, const char *name),
                    const void *context)
{
    DIR *const folder = opendir(path);
    bool found = false;

    if (folder == NULL) {
        return false;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL && !found;
         entry = readdir(folder)) {
        found = is(context, entry->d_name);
    }
    (void)closedir(folder);
    return found;
}
