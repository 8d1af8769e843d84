#ifndef LAC_SERVER_ACCOUNTS_ADMIN_USER_H
#define LAC_SERVER_ACCOUNTS_ADMIN_USER_H

/* `lacuna admin user`: people of a service, beside a running server or without one. */

#include <stdbool.h>

struct lac_admin_user {
    const char *data_dir;
    const char *catalog;       /**< of a folder that has none yet: postgresql://...; NULL: a file */
    const char *verb;          /**< add, list, password or remove */
    const char *name;          /**< NULL for list */
    const char *password_file; /**< NULL none; "-" standard input */
    bool is_admin;
};

/** @return exit status; what went wrong is said on stderr */
int lac_admin_user(const struct lac_admin_user *asked);

#endif
