#ifndef LAC_TESTS_CATALOG_PLACE_H
#define LAC_TESTS_CATALOG_PLACE_H

/* Where the catalogs of a test's data folders are: in a file, or, when the environment's
 * LACUNA_TEST_CATALOG is the address of a PostgreSQL, there, a schema to each folder. */

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline bool catalog_is_file(void)
{
    return getenv("LACUNA_TEST_CATALOG") == NULL;
}

/** Say where the catalog of a folder will be, which has none yet; it is made when it is missing. */
static inline void place_catalog(const char *folder)
{
    const char *const address = getenv("LACUNA_TEST_CATALOG");
    char path[256];
    char schema[64] = "t";
    size_t used = 1;
    FILE *file;

    if (address == NULL) {
        return;
    }
    for (const char *at = folder; *at != '\0' && used < sizeof(schema) - 1; at++) {
        const char low = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;

        /* a capital becomes two characters: folders that differ only in it are two */
        if (low != *at && used < sizeof(schema) - 2) {
            schema[used++] = '_';
        }
        if ((low >= 'a' && low <= 'z') || (low >= '0' && low <= '9')) {
            schema[used++] = low;
        }
    }
    schema[used] = '\0';
    for (size_t i = 1; i <= strlen(folder); i++) {
        if (folder[i] == '/' || folder[i] == '\0') {
            (void)snprintf(path, sizeof(path), "%.*s", (int)i, folder);
            (void)mkdir(path, 0700);
        }
    }
    (void)snprintf(path, sizeof(path), "%s/catalog.url", folder);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(
        fprintf(file, "%s&options=-csearch_path%%3D%s_%d\n", address, schema, getpid()), 0);
    ck_assert_int_eq(fclose(file), 0);
}

#endif
