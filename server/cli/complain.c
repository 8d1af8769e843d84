#include "server/cli/complain.h"

#include "analysis/model/status.h"
#include "collector/base/terminal_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 8192 };

void lac_complain(const char *command, const char *path, const char *fmt, ...)
{
    char text[TEXT_BYTES];
    int length = path != NULL ? snprintf(text, sizeof(text), "%s: %s: ", command, path)
                              : snprintf(text, sizeof(text), "%s: ", command);
    size_t used = length < 0 ? 0 : (size_t)length;
    va_list list;

    va_start(list, fmt);
    if (used < sizeof(text)) {
        (void)vsnprintf(text + used, sizeof(text) - used, fmt, list);
    }
    va_end(list);
    lac_terminal_print(stderr, text, strlen(text));
    (void)fputc('\n', stderr);
}

const char *lac_status_text(enum lac_status status)
{
    return status == LAC_ERR_NOMEM ? "out of memory" : lac_status_name(status);
}

const char *lac_error_text(const struct lac_error *error, enum lac_status status)
{
    return error->message[0] != '\0' ? error->message : lac_status_text(status);
}

static void complain_as(const char *what, const char *command, const char *path,
                        const struct lac_error *error)
{
    const char *text = lac_error_text(error, error->status);

    if (path != NULL && strncmp(text, path, strlen(path)) == 0) {
        path = NULL;
    }
    if (error->offset_bytes > 0 && strstr(text, "byte ") == NULL) {
        lac_complain(command, path, "%sat byte %llu: %s", what,
                     (unsigned long long)error->offset_bytes, text);
    } else {
        lac_complain(command, path, "%s%s", what, text);
    }
}

void lac_complain_error(const char *command, const char *path, const struct lac_error *error)
{
    complain_as("", command, path, error);
}

void lac_complain_skipped(const char *command, const char *path, const struct lac_error *error)
{
    complain_as("skipped, ", command, path, error);
}
