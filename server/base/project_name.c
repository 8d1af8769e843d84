#include "server/base/project_name.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

bool lac_project_name_is_valid(const char *name)
{
    assert(name != NULL);
    const size_t length = strlen(name);

    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f || name[i] == '/') {
            return false;
        }
    }
    return length >= 1 && length <= LAC_PROJECT_NAME_MAX && strcmp(name, "-") != 0 &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}
