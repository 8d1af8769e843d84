#ifndef LAC_TESTS_SUPPORT_MADE_FILE_H
#define LAC_TESTS_SUPPORT_MADE_FILE_H

/* A file of a made-up machine, below a folder that stands for its root. */

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/** Write `text` to `root`/`path`, with the folders on the way; `path` begins with '/'. */
static inline void make_file(const char *root, const char *path, const char *text)
{
    char full[512];
    FILE *file;

    (void)snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *c = full + strlen(root) + 1; *c != '\0'; c++) {
        if (*c == '/') {
            *c = '\0';
            (void)mkdir(full, 0755);
            *c = '/';
        }
    }
    file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

#endif
