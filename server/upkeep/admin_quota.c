#include "server/upkeep/admin_quota.h"

#include "analysis/model/status.h"
#include "collector/base/byte_size.h"
#include "collector/base/terminal_text.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what)
{
    (void)fprintf(stderr, "lacuna admin quota: %s\n", what);
    return 1;
}

static const char *word_of(enum lac_quota_kind kind)
{
    return kind == LAC_QUOTA_PROJECT ? "project" : "token";
}

static void print_quota(void *context, const struct lac_quota_row *row)
{
    char shown[1024];

    (void)context;
    (void)printf("%s %s ", word_of(row->kind),
                 lac_terminal_string(*row->name != '\0' ? row->name : "-", shown, sizeof(shown)));
    if (row->limit_bytes == 0) {
        (void)printf("%.1f MB, no limit\n", (double)row->used_bytes / 1e6);
    } else {
        (void)printf("%.1f of %.1f MB\n", (double)row->used_bytes / 1e6,
                     (double)row->limit_bytes / 1e6);
    }
}

/** @param ret_bytes -1: as the server's own; 0: no limit. @return false: it is no size */
static bool read_bytes(const char *text, int64_t *ret_bytes)
{
    uint64_t bytes = 0;

    if (strcmp(text, "default") == 0 || strcmp(text, "none") == 0) {
        *ret_bytes = *text == 'd' ? -1 : 0;
        return true;
    }
    if (!lac_byte_size_parse(text, &bytes) || bytes == 0 || bytes > (uint64_t)INT64_MAX) {
        return false;
    }
    *ret_bytes = (int64_t)bytes;
    return true;
}

static enum lac_status set(struct lac_store *store, const struct lac_admin_quota *asked,
                           int64_t bytes, struct lac_error *reterr)
{
    const enum lac_quota_kind kind = asked->token != NULL ? LAC_QUOTA_TOKEN : LAC_QUOTA_PROJECT;
    const char *const project =
        asked->project != NULL && strcmp(asked->project, "-") == 0 ? "" : asked->project;
    const char *const name = kind == LAC_QUOTA_TOKEN ? asked->token : project;
    struct lac_error ignored;
    char object[512];
    enum lac_status status = lac_store_put_quota(store, kind, name, bytes, reterr);

    if (status == LAC_OK) {
        (void)snprintf(object, sizeof(object), "%s %.400s: %s", word_of(kind), name, asked->bytes);
        (void)!lac_store_audit(store, "local", "set-quota", object, &ignored);
    }
    return status;
}

int lac_admin_quota(const struct lac_admin_quota *asked)
{
    const struct lac_store_options options = {.data_dir = asked->data_dir};
    struct lac_store *store = NULL;
    struct lac_error error = {0};
    int64_t bytes = 0;
    enum lac_status status;

    if (asked->bytes == NULL ? asked->project != NULL || asked->token != NULL
                             : (asked->project != NULL) == (asked->token != NULL)) {
        (void)fprintf(stderr, "lacuna admin: quota takes --project NAME or --token ID, and --bytes "
                              "SIZE, none or default; without them it lists\n");
        return 2;
    }
    if (asked->bytes != NULL && !read_bytes(asked->bytes, &bytes)) {
        (void)fprintf(stderr, "lacuna admin: --bytes takes a size as 200G, none or default\n");
        return 2;
    }
    if (access(asked->data_dir, F_OK) != 0) {
        return fail("there is no data folder");
    }
    status = lac_store_open(&options, &store, &error);
    if (status == LAC_OK) {
        status = asked->bytes != NULL ? set(store, asked, bytes, &error)
                                      : lac_store_list_quotas(store, print_quota, NULL, &error);
    }
    lac_store_close(store);
    return status != LAC_OK ? fail(error.message) : fflush(stdout) == 0 ? 0 : 1;
}
