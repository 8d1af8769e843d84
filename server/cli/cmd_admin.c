#include "analysis/model/status.h"
#include "collector/base/terminal_text.h"
#include "server/accounts/admin_user.h"
#include "server/base/buffer.h"
#include "server/cli/commands.h"
#include "server/cli/options.h"
#include "server/ingest/original.h"
#include "server/json/json_out.h"
#include "server/store/database/copy.h"
#include "server/store/expire.h"
#include "server/store/store.h"
#include "server/store/verify.h"
#include "server/upkeep/admin_quota.h"
#include "server/upkeep/backup.h"
#include "server/upkeep/move_catalog.h"
#include "server/webhooks/admin_webhook.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "lacuna admin verify [--data DIR] [--json]\n"
    "       lacuna admin repair [--data DIR]\n"
    "       lacuna admin backup TO [--data DIR]\n"
    "       lacuna admin user add NAME [--admin] [--password-file FILE] [--data DIR]\n"
    "       lacuna admin user password NAME --password-file FILE [--data DIR]\n"
    "       lacuna admin user list|remove NAME [--data DIR]\n"
    "       lacuna admin move --to URL | --back [--data DIR]\n"
    "       lacuna admin move-catalog [--to URL] | --back [--data DIR]\n"
    "       lacuna admin quota [--project NAME | --token ID] [--bytes SIZE|none|default] [--data "
    "DIR]\n"
    "       lacuna admin webhook list [--project NAME] [--data DIR]\n"
    "       lacuna admin webhook add URL [--project NAME] [--slack] [--events EVENTS]\n"
    "                            [--webhook-allow NET,...] [--data DIR]\n"
    "       lacuna admin webhook remove ID [--project NAME] [--data DIR]\n"
    "       lacuna admin expire [--data DIR] [--originals DAYS] [--traces DAYS] [--dry-run]\n"
    "\n"
    "verify reads the whole data folder (the catalog, every page of every trace file, every\n"
    "original) and checks that the parts agree. Exit status 0 if all is intact, else 1 with one\n"
    "line per problem. A server may be running.\n"
    "\n"
    "repair moves damaged files to lost/ and has their traces imported again from the originals: "
    "by\n"
    "the server that is running, or at its next start. Without a server it does first what a "
    "server\n"
    "does at its start. With object storage no server may be running.\n"
    "\n"
    "backup copies the folder, as it is at one moment, to TO, which must not be there or be empty: "
    "the\n"
    "catalog, traces, originals, and uploads as far as they have come. `lacuna serve --data TO` is "
    "the\n"
    "same service. A server may be running: it waits for a moment only. TO holds the local key, "
    "so\n"
    "keep it private. What lies in object storage stays there, and TO refers to it.\n"
    "\n"
    "move puts traces and originals into object storage (s3://BUCKET/PREFIX with the variables\n"
    "AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a folder) and\n"
    "removes them from the data folder, which keeps the catalog and copies of what is looked at;\n"
    "--back takes all into the data folder again and empties the storage. No server may be "
    "running.\n"
    "\n"
    "move-catalog carries the catalog into PostgreSQL (postgresql://USER@HOST/DATABASE, or words "
    "of\n"
    "libpq; without --to, LACUNA_CATALOG says where, which keeps a password out of the list of\n"
    "processes), and --back into the folder again. The file is kept as catalog.db.moved. No "
    "server\n"
    "may be running.\n"
    "\n"
    "user keeps the people of a service, also beside a running server. The password is the first\n"
    "line of FILE, - for standard input. An administrator has every right in every project.\n"
    "\n"
    "quota says how many bytes, as they were uploaded, a project (- for traces without one) may "
    "hold\n"
    "or a token may bring; `default` is what the server was started with (--quota-project,\n"
    "--quota-token). It holds at once; an upload that was begun may end. Without --bytes: a list.\n"
    "\n"
    "webhook keeps where a project's news are sent (without --project: of traces without one).\n"
    "EVENTS are some of: trace.ready trace.failed report.published report.comment\n"
    "report.mention run.regression run.hang run.resumed. The secret that signs them is\n"
    "shown once.\n"
    "\n"
    "expire removes the uploads of traces that arrived more than --originals days ago, and traces\n"
    "that arrived more than --traces days ago. Pinned traces and baselines of projects stay.\n"
    "--dry-run only says what would go. A server may be running.\n";

static const struct lac_option options_table[] = {
    {.name = "data", .letter = 'd', .value = "DIR", .help = "the data folder"},
    {.name = "json", .help = "verify: print JSON", .flag_only = true},
    {.name = "to",
     .value = "URL",
     .help = "move: this object storage, or PostgreSQL",
     .flag_only = true},
    {.name = "back", .help = "move: into the data folder again", .flag_only = true},
    {.name = "catalog", .value = "URL"}, /* LACUNA_CATALOG, as serve has it */
    {.name = "admin", .help = "user add: an administrator", .flag_only = true},
    {.name = "password-file", .value = "FILE", .help = "user: the password"},
    {.name = "project", .value = "NAME", .help = "webhook, quota: of this project"},
    {.name = "token", .value = "ID", .help = "quota: of this token"},
    {.name = "bytes", .value = "SIZE", .help = "quota: as 200G, none or default"},
    {.name = "slack", .help = "webhook add: in the form of Slack", .flag_only = true},
    {.name = "events", .value = "EVENTS", .help = "webhook add: these alone (all)"},
    {.name = "webhook-allow", .value = "NET,...", .help = "webhook add: private networks"},
    {.name = "originals", .value = "DAYS", .help = "expire: uploads older than this"},
    {.name = "traces", .value = "DAYS", .help = "expire: traces older than this"},
    {.name = "dry-run", .help = "expire: only say what would go", .flag_only = true},
    {0},
};

struct admin {
    char data_dir[4096];
    bool is_json;
    struct lac_buffer out;
    struct lac_json json;
};

static int fail(const struct admin *admin, const char *message)
{
    (void)fprintf(stderr, "lacuna admin: %s: %s\n", admin->data_dir, message);
    return 1;
}

/* -- verify -------------------------------------------------------------------------------------*/

static void tell_problem(void *context, const char *file, const char *problem)
{
    struct admin *admin = context;

    if (admin->is_json) {
        lac_json_open(&admin->json, NULL, '{');
        lac_json_text(&admin->json, "file", file);
        lac_json_text(&admin->json, "problem", problem);
        lac_json_close(&admin->json, '}');
    } else {
        (void)printf("%s %s\n", file, problem);
    }
}

static void print_counts(struct admin *admin, const struct lac_verify_counts *counts)
{
    if (!admin->is_json) {
        (void)printf("%u traces, %u originals, ", counts->traces, counts->originals);
        if (counts->objects > 0) {
            (void)printf("%u objects, ", counts->objects);
        }
        (void)printf("%.1f MB read: %s", (double)counts->bytes / 1e6,
                     counts->problems == 0 ? "all intact\n" : "");
        if (counts->problems > 0) {
            (void)printf("%u to repair\n", counts->problems);
        }
        if (counts->unchecked > 0) {
            (void)printf("%u traces have an older format without checksums\n", counts->unchecked);
        }
        return;
    }
    lac_json_close(&admin->json, ']');
    lac_json_uint(&admin->json, "trace_count", counts->traces);
    lac_json_uint(&admin->json, "original_count", counts->originals);
    lac_json_uint(&admin->json, "object_count", counts->objects);
    lac_json_uint(&admin->json, "unchecked_count", counts->unchecked);
    lac_json_uint(&admin->json, "read_bytes", counts->bytes);
    lac_json_close(&admin->json, '}');
    (void)fwrite(admin->out.bytes, 1, admin->out.size_bytes, stdout);
    (void)putchar('\n');
}

static int verify(struct admin *admin)
{
    const struct lac_verify_options options = {.data_dir = admin->data_dir,
                                               .told = tell_problem,
                                               .unpack = lac_original_unpack,
                                               .context = admin};
    struct lac_verify_counts counts;
    struct lac_error error = {0};
    enum lac_status status;

    if (admin->is_json) {
        lac_json_init(&admin->json, &admin->out);
        lac_json_open(&admin->json, NULL, '{');
        lac_json_text(&admin->json, "schema", "lacuna.verify/1");
        lac_json_open(&admin->json, "problems", '[');
    }
    status = lac_store_verify(&options, &counts, &error);
    if (status != LAC_OK) {
        return fail(admin, error.message);
    }
    print_counts(admin, &counts);
    return fflush(stdout) == 0 && counts.problems == 0 ? 0 : 1;
}

/* -- repair -------------------------------------------------------------------------------------*/

static void tell_notice(void *context, const char *line)
{
    unsigned *count = context;

    *count += 1;
    (void)printf("%s\n", line);
}

static void ignore_problem(void *context, const char *file, const char *problem)
{
    (void)context;
    (void)file;
    (void)problem;
}

/** The lock that a server holds. @param ret_is_served set where one runs, and the descriptor is
 *  without the lock then; NULL: that is an error @return a descriptor to close, or -1 */
static int lock_out_servers(const struct admin *admin, bool *ret_is_served)
{
    char path[sizeof(admin->data_dir) + 16];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/serve.lock", admin->data_dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        (void)fail(admin, strerror(errno));
    } else if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        return fd;
    } else if (ret_is_served != NULL && errno == EWOULDBLOCK) {
        *ret_is_served = true;
    } else {
        (void)fail(admin, "a server is running on the data folder: stop it first");
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/** A server that moves files between the folder and object storage does so alone. */
static enum lac_status refuse_objects(struct lac_store *store, struct lac_error *reterr)
{
    struct lac_store_objects objects = {0};
    const enum lac_status status = lac_store_count_objects(store, &objects, reterr);

    return status == LAC_OK && objects.is_on
               ? lac_fail(reterr, LAC_ERR_MISUSE, 0,
                          "a server is running on the data folder, whose traces are in object "
                          "storage: stop it first")
               : status;
}

static int repair(struct admin *admin)
{
    unsigned notice_count = 0;
    struct lac_store_options store_options = {
        .data_dir = admin->data_dir, .notice = tell_notice, .notice_context = &notice_count};
    struct lac_verify_options options = {
        .data_dir = admin->data_dir, .told = ignore_problem, .unpack = lac_original_unpack};
    struct lac_store *store = NULL;
    struct lac_error error = {0};
    uint32_t count = 0;
    enum lac_status status;
    int lock;

    if (access(admin->data_dir, F_OK) != 0) {
        return fail(admin, "there is no data folder");
    }
    lock = lock_out_servers(admin, &options.is_served);
    if (lock < 0) {
        return 1;
    }
    store_options.sweep = !options.is_served;
    status = lac_store_open(&store_options, &store, &error);
    if (status == LAC_OK && options.is_served) {
        status = refuse_objects(store, &error);
    }
    if (status == LAC_OK) {
        status = lac_store_repair(store, &options, &count, &error);
    }
    lac_store_close(store);
    (void)close(lock);
    if (status != LAC_OK) {
        return fail(admin, error.message);
    }
    if (notice_count == 0) {
        (void)printf("nothing to repair\n");
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

/* -- backup -------------------------------------------------------------------------------------*/

static int backup(struct admin *admin, const struct lac_options *options)
{
    const struct lac_store_options store_options = {.data_dir = admin->data_dir};
    struct lac_backup_counts counts = {0};
    struct lac_store *store = NULL;
    struct lac_error error = {0};
    char shown[1024];
    enum lac_status status;

    if (options->operand_count != 2) {
        (void)fprintf(stderr, "lacuna admin: backup needs the folder to make: backup TO\n");
        return 2;
    }
    if (access(admin->data_dir, F_OK) != 0) {
        return fail(admin, "there is no data folder");
    }
    status = lac_store_open(&store_options, &store, &error);
    if (status == LAC_OK) {
        status = lac_backup(store, options->operands[1], &counts, &error);
    }
    lac_store_close(store);
    if (status != LAC_OK) {
        return fail(admin, error.message);
    }
    (void)printf("%s: %u traces, %u files, %.1f MB\n",
                 lac_terminal_string(options->operands[1], shown, sizeof(shown)),
                 (unsigned)counts.traces, (unsigned)counts.files, (double)counts.bytes / 1e6);
    if (counts.objects > 0) {
        (void)printf("%llu objects stay in object storage: the copy needs them there\n",
                     (unsigned long long)counts.objects);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

/* -- move ---------------------------------------------------------------------------------------*/

static enum lac_status move_out(struct lac_store *store, struct lac_error *reterr)
{
    struct lac_store_objects objects = {0};
    uint64_t waiting = UINT64_MAX;
    enum lac_status status = LAC_OK;

    do { /* a thousand of a kind at a time */
        status = lac_store_tend_objects(store, INT64_MAX, reterr);
        if (status == LAC_OK) {
            status = lac_store_count_objects(store, &objects, reterr);
        }
        if (status != LAC_OK || objects.waiting_count >= waiting) {
            break;
        }
        waiting = objects.waiting_count;
    } while (waiting > 0);
    if (status == LAC_OK) {
        (void)printf("%llu objects, %.1f MB, are in %s\n", (unsigned long long)objects.object_count,
                     (double)objects.object_bytes / 1e6, objects.url);
    }
    if (status == LAC_OK && objects.waiting_count > 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0,
                          "%llu traces could not be moved: see `lacuna admin verify`",
                          (unsigned long long)objects.waiting_count);
    }
    return status;
}

static int move_catalog(struct admin *admin, const struct lac_options *options)
{
    const bool is_back = lac_options_on(options, "back", false);
    const char *const catalog = lac_options_text(options, "catalog", NULL);
    const char *const to = lac_options_text(options, "to", is_back ? NULL : catalog);
    const struct lac_move_catalog asked = {.data_dir = admin->data_dir, .address = to};
    struct lac_db_copied copied;
    struct lac_error error = {0};
    enum lac_status status;
    int lock;

    if ((to != NULL) == is_back) {
        (void)fprintf(stderr, "lacuna admin: move-catalog needs --to URL or --back\n");
        return 2;
    }
    lock = access(admin->data_dir, F_OK) == 0 ? lock_out_servers(admin, NULL)
                                              : fail(admin, "there is no data folder") - 2;
    if (lock < 0) {
        return 1;
    }
    status = lac_move_catalog(&asked, &copied, &error);
    (void)close(lock);
    if (status != LAC_OK) {
        return fail(admin, error.message);
    }
    (void)printf(asked.address != NULL
                     ? "the catalog is in PostgreSQL: %llu rows; catalog.db.moved is what it was\n"
                     : "the catalog is in the data folder: %llu rows; what PostgreSQL has can go\n",
                 (unsigned long long)copied.row_count);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int move(struct admin *admin, const struct lac_options *options)
{
    const char *const to = lac_options_text(options, "to", NULL);
    const struct lac_store_options store_options = {
        .data_dir = admin->data_dir, .objects_url = to, .copies_bytes_max = LAC_STORE_NO_COPIES};
    struct lac_store *store = NULL;
    struct lac_error error = {0};
    int lock;
    enum lac_status status;

    if ((to != NULL) == lac_options_on(options, "back", false)) {
        (void)fprintf(stderr, "lacuna admin: move needs --to URL or --back\n");
        return 2;
    }
    lock = access(admin->data_dir, F_OK) == 0 ? lock_out_servers(admin, NULL)
                                              : fail(admin, "there is no data folder") - 2;
    if (lock < 0) {
        return 1;
    }
    status = lac_store_open(&store_options, &store, &error);
    if (status == LAC_OK) {
        status = to != NULL ? move_out(store, &error) : lac_store_leave_objects(store, &error);
    }
    lac_store_close(store);
    (void)close(lock);
    if (status == LAC_OK && to == NULL) {
        (void)printf("all is in the data folder\n");
    }
    return status != LAC_OK ? fail(admin, error.message) : fflush(stdout) == 0 ? 0 : 1;
}

static int user(struct admin *admin, const struct lac_options *options)
{
    const char *verb = options->operand_count > 1 ? options->operands[1] : "";
    const bool is_list = strcmp(verb, "list") == 0;
    const struct lac_admin_user asked = {.data_dir = admin->data_dir,
                                         .catalog = lac_options_text(options, "catalog", NULL),
                                         .verb = verb,
                                         .name = is_list ? NULL : options->operands[2],
                                         .password_file =
                                             lac_options_text(options, "password-file", NULL),
                                         .is_admin = lac_options_on(options, "admin", false)};

    if (options->operand_count != (is_list ? 2 : 3) ||
        (!is_list && strcmp(verb, "add") != 0 && strcmp(verb, "password") != 0 &&
         strcmp(verb, "remove") != 0)) {
        (void)fprintf(stderr, "lacuna admin: user add, password or remove NAME, or user list (see "
                              "lacuna admin --help)\n");
        return 2;
    }
    return lac_options_data_dir(options, admin->data_dir, sizeof(admin->data_dir))
               ? lac_admin_user(&asked)
               : 2;
}

/* -- expire -------------------------------------------------------------------------------------*/

struct expiring {
    struct lac_store *store;
    bool is_dry_run;
};

static void tell_expired(void *context, const char *what, const char *id, const char *name,
                         uint64_t bytes)
{
    const struct expiring *const expiring = context;
    struct lac_error error;
    char shown[1024];
    char object[512];

    if (!expiring->is_dry_run) {
        (void)snprintf(object, sizeof(object), "%s %s: %s", what, id, name);
        (void)!lac_store_audit(expiring->store, "local", "expire", object, &error);
    }
    (void)printf("%s %s %.1f MB %s\n", what, id, (double)bytes / 1e6,
                 lac_terminal_string(name, shown, sizeof(shown)));
}

/** When that many days ago was; 0 without the option. @return false: it is no number of days */
static bool days_ago_ms(const struct lac_options *options, const char *name, int64_t *ret_ms)
{
    const char *text = lac_options_text(options, name, NULL);
    char *end = NULL;
    double days;

    *ret_ms = 0;
    if (text == NULL) {
        return true;
    }
    days = strtod(text, &end);
    if (end == text || *end != '\0' || !(days >= 0.0 && days < 36500.0)) {
        (void)fprintf(stderr, "lacuna admin: --%s takes a number of days\n", name);
        return false;
    }
    /* to the end of this second: 0 days is everything */
    *ret_ms = ((int64_t)time(NULL) + 1) * 1000 - (int64_t)(days * 86400e3);
    return true;
}

static int expire(struct admin *admin, const struct lac_options *options)
{
    const struct lac_store_options store_options = {.data_dir = admin->data_dir};
    struct expiring expiring = {.is_dry_run = lac_options_on(options, "dry-run", false)};
    struct lac_expiry expiry = {
        .is_dry_run = expiring.is_dry_run, .told = tell_expired, .context = &expiring};
    struct lac_expired expired = {0};
    struct lac_store *store = NULL;
    struct lac_error error = {0};
    enum lac_status status;

    if (!days_ago_ms(options, "originals", &expiry.originals_before_ms) ||
        !days_ago_ms(options, "traces", &expiry.traces_before_ms)) {
        return 2;
    }
    if (expiry.originals_before_ms == 0 && expiry.traces_before_ms == 0) {
        (void)fprintf(stderr, "lacuna admin: expire needs --originals DAYS or --traces DAYS\n");
        return 2;
    }
    if (access(admin->data_dir, F_OK) != 0) {
        return fail(admin, "there is no data folder");
    }
    status = lac_store_open(&store_options, &store, &error);
    if (status == LAC_OK) {
        expiring.store = store;
        status = lac_store_expire(store, &expiry, &expired, &error);
    }
    lac_store_close(store);
    (void)printf("%u originals and %u traces, %.1f MB: %s\n", (unsigned)expired.originals,
                 (unsigned)expired.traces, (double)expired.bytes / 1e6,
                 expiry.is_dry_run ? "would go" : "gone");
    return status != LAC_OK ? fail(admin, error.message) : fflush(stdout) == 0 ? 0 : 1;
}

static int webhook(struct admin *admin, const struct lac_options *options)
{
    const struct lac_admin_webhook asked = {
        .data_dir = admin->data_dir,
        .verb = options->operand_count > 1 ? options->operands[1] : "",
        .operand = options->operand_count > 2 ? options->operands[2] : NULL,
        .project = lac_options_text(options, "project", "-"),
        .events = lac_options_text(options, "events", ""),
        .allowed = lac_options_text(options, "webhook-allow", ""),
        .is_slack = lac_options_on(options, "slack", false)};

    if (options->operand_count > 3) {
        (void)fprintf(stderr, "lacuna admin: webhook takes one URL or ID\n");
        return 2;
    }
    return lac_options_data_dir(options, admin->data_dir, sizeof(admin->data_dir))
               ? lac_admin_webhook(&asked)
               : 2;
}

static int quota(struct admin *admin, const struct lac_options *options)
{
    const struct lac_admin_quota asked = {.data_dir = admin->data_dir,
                                          .project = lac_options_text(options, "project", NULL),
                                          .token = lac_options_text(options, "token", NULL),
                                          .bytes = lac_options_text(options, "bytes", NULL)};

    return lac_admin_quota(&asked);
}

int lac_cmd_admin(int argc, char **argv)
{
    struct admin admin = {0};
    struct lac_options options;
    int status = lac_options_parse(&options, options_table, usage, argc, argv);

    if (status < 0) {
        const bool is_user = options.operand_count > 0 && strcmp(options.operands[0], "user") == 0;
        const bool is_backup =
            options.operand_count > 0 && strcmp(options.operands[0], "backup") == 0;
        const char *verb = options.operand_count == 1 ? options.operands[0] : "";
        bool is_verify = strcmp(verb, "verify") == 0;

        admin.is_json = lac_options_on(&options, "json", false);
        const bool is_expire = strcmp(verb, "expire") == 0;
        const bool is_quota = strcmp(verb, "quota") == 0;
        const bool is_move = strcmp(verb, "move") == 0;
        const bool is_move_catalog = strcmp(verb, "move-catalog") == 0;
        if (is_user) {
            status = user(&admin, &options);
        } else if (options.operand_count > 0 && strcmp(options.operands[0], "webhook") == 0) {
            status = webhook(&admin, &options);
        } else if (!is_verify && !is_expire && !is_move && !is_move_catalog && !is_backup &&
                   !is_quota && strcmp(verb, "repair") != 0) {
            (void)fprintf(stderr, "lacuna admin: give verify, repair, backup, move, move-catalog, "
                                  "expire, quota, user "
                                  "or webhook (see lacuna admin --help)\n");
            status = 2;
        } else if (!is_verify && admin.is_json) {
            (void)fprintf(stderr, "lacuna admin: --json goes with verify\n");
            status = 2;
        } else if (!lac_options_data_dir(&options, admin.data_dir, sizeof(admin.data_dir))) {
            status = 2;
        } else {
            status = is_verify         ? verify(&admin)
                     : is_expire       ? expire(&admin, &options)
                     : is_move         ? move(&admin, &options)
                     : is_move_catalog ? move_catalog(&admin, &options)
                     : is_backup       ? backup(&admin, &options)
                     : is_quota        ? quota(&admin, &options)
                                       : repair(&admin);
        }
        lac_buffer_done(&admin.out);
    }
    lac_options_done(&options);
    return status;
}
