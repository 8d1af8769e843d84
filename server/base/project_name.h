#ifndef LAC_SERVER_BASE_PROJECT_NAME_H
#define LAC_SERVER_BASE_PROJECT_NAME_H

/* What a project may be called: its name is a part of addresses. */

#include <stdbool.h>

enum { LAC_PROJECT_NAME_MAX = 255 };

/** What is wrong with a name, for people. */
#define LAC_PROJECT_NAME_RULE "a project's name is one line of text without '/', 1 to 255 bytes"

/** One line of text without '/', neither ".", ".." nor "-" (traces without a project). */
bool lac_project_name_is_valid(const char *name);

#endif
