#include "server/accounts/admin_user.h"

#include "analysis/model/status.h"
#include "server/people/people.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what)
{
    (void)fprintf(stderr, "lacuna admin user: %s\n", what);
    return 1;
}

/* The first line of the file. @return false: it was told why not */
static bool read_password(const char *path, char *out, size_t capacity_bytes)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got = 0;

    if (fd < 0) {
        (void)fprintf(stderr, "lacuna admin user: %s: %s\n", path, strerror(errno));
        return false;
    }
    while (used < capacity_bytes - 1 &&
           (got = read(fd, out + used, capacity_bytes - 1 - used)) > 0) {
        used += (size_t)got;
    }
    if (!is_stdin) {
        (void)close(fd);
    }
    out[used] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    if (got < 0 || strlen(out) < LAC_PASSWORD_BYTES_MIN) {
        (void)fprintf(stderr,
                      "lacuna admin user: %s: the first line is the password, of at least %d "
                      "bytes\n",
                      path, LAC_PASSWORD_BYTES_MIN);
        return false;
    }
    return true;
}

static void print_users(void *context, const struct lac_people_rows *rows)
{
    (void)context;
    for (uint32_t i = 0; i < rows->user_count; i++) {
        (void)printf("%-24s %s%s\n", rows->users[i].name,
                     rows->users[i].is_admin ? "administrator" : "user",
                     rows->users[i].password[0] == '\0' ? ", no password" : "");
    }
}

struct known {
    const char *name;
    bool is_there, is_admin;
};

static void look_for(void *context, const struct lac_people_rows *rows)
{
    struct known *known = context;

    for (uint32_t i = 0; i < rows->user_count; i++) {
        if (strcmp(rows->users[i].name, known->name) == 0) {
            known->is_there = true;
            known->is_admin = rows->users[i].is_admin;
        }
    }
}

static enum lac_status put(struct lac_people *people, const struct lac_admin_user *asked,
                           struct lac_error *reterr)
{
    const bool is_new = strcmp(asked->verb, "add") == 0;
    struct known known = {.name = asked->name};
    char password[LAC_PASSWORD_BYTES_MAX + 2] = "";
    enum lac_status status;

    lac_people_look(people, look_for, &known);
    if (is_new == known.is_there) {
        return lac_fail(reterr, is_new ? LAC_ERR_MISUSE : LAC_ERR_NOT_FOUND, 0,
                        is_new ? "there is a user of this name: see `lacuna admin user password`"
                               : "no such user");
    }
    if (asked->password_file == NULL && !is_new) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "give --password-file FILE");
    }
    if (asked->password_file != NULL &&
        !read_password(asked->password_file, password, sizeof(password))) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "no password was set");
    }
    status =
        lac_people_put_user(people, asked->name, asked->password_file != NULL ? password : NULL,
                            is_new ? asked->is_admin : known.is_admin, reterr);
    sodium_memzero(password, sizeof(password));
    return status;
}

static enum lac_status act(struct lac_store *store, struct lac_people *people,
                           const struct lac_admin_user *asked, struct lac_error *reterr)
{
    char action[64];
    struct lac_error error;
    enum lac_status status;

    if (strcmp(asked->verb, "list") == 0) {
        lac_people_look(people, print_users, NULL);
        return LAC_OK;
    }
    status = strcmp(asked->verb, "remove") == 0
                 ? lac_people_remove_user(people, asked->name, reterr)
                 : put(people, asked, reterr);
    if (status == LAC_OK) {
        (void)snprintf(action, sizeof(action), "%s-user", asked->verb);
        (void)!lac_store_audit(store, "local", action, asked->name, &error);
    }
    return status;
}

int lac_admin_user(const struct lac_admin_user *asked)
{
    /* people come before the first server that others reach */
    const struct lac_store_options options = {.data_dir = asked->data_dir,
                                              .catalog_address = asked->catalog};
    struct lac_store *store = NULL;
    struct lac_people *people = NULL;
    struct lac_error error = {0};
    enum lac_status status = lac_store_open(&options, &store, &error);

    if (status == LAC_OK) {
        status = lac_people_create(store, &people, &error);
    }
    if (status == LAC_OK) {
        status = act(store, people, asked, &error);
    }
    lac_people_destroy(people);
    lac_store_close(store);
    return status == LAC_OK ? 0 : fail(error.message);
}
