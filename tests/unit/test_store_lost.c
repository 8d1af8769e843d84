/* A catalog that is lost, damaged, older or another folder's; crashes between a file and its row; a
 * full disk. What was ready is listed again, what was deleted stays deleted, and no file goes. */

#include "collector/base/count_of.h"
#include "server/store/catalog.h"
#include "server/store/publish.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_writer.h"
#include "server/store/trace_facts.h"
#include "tests/support/catalog_place.h"
#include "tests/support/check_main.h"
#include "tests/support/pick.h"
#include "tests/support/rich_model.h"
#include "tests/support/rounds.h"

#include <check.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IDS_MAX = 8, CUT_TRACES = 60 };

static char folder[64];
static char notices[8192];
/** A shell command in the test's folder; $T is where the tests are. */
static void run(const char *words)
{
    char command[1024];

    (void)snprintf(command, sizeof(command), "T=\"$PWD\"; cd '%s' && { %s; }", folder, words);
    ck_assert_msg(system(command) == 0, "%s", command);
}

static void setup(void)
{
    char data[80];

    (void)snprintf(folder, sizeof(folder), "%s/lacuna-test-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(data, sizeof(data), "%s/d", folder);
    place_catalog(data);
}

static void teardown(void)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static void note(void *context, const char *line)
{
    size_t used = strlen(notices);

    (void)context;
    (void)snprintf(notices + used, sizeof(notices) - used, "%s\n", line);
}

static enum lac_status try_open(struct lac_store **ret_store, struct lac_error *error)
{
    char path[128];
    const struct lac_store_options options = {.data_dir = path, .sweep = true, .notice = note};

    notices[0] = '\0';
    (void)snprintf(path, sizeof(path), "%s/d", folder);
    return lac_store_open(&options, ret_store, error);
}

static struct lac_store *open_store(void)
{
    struct lac_store *store = NULL;
    struct lac_error error = {0};

    ck_assert_msg(try_open(&store, &error) == LAC_OK, "%s", error.message);
    return store;
}

static int count_files(const char *name)
{
    char path[160];
    int count = 0;
    DIR *dir;
    const struct dirent *entry;

    (void)snprintf(path, sizeof(path), "%s/d/%s", folder, name);
    dir = opendir(path);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

static void write_staged(const struct lac_staging *staging, const char *name)
{
    char path[4200];
    FILE *stream;

    (void)snprintf(path, sizeof(path), "%s/%s", staging->path, name);
    stream = fopen(path, "wb");
    ck_assert_ptr_nonnull(stream);
    (void)fputs("bytes\n", stream);
    (void)fclose(stream);
}

static void stage(struct lac_store *store, struct lac_staging *staging, uint32_t count)
{
    char id[LAC_ID_SIZE];
    struct lac_error error = {0};

    ck_assert_int_eq(lac_store_new_id(id, &error), LAC_OK);
    ck_assert_int_eq(lac_staging_create(store, id, staging, &error), LAC_OK);
    for (uint32_t i = 0; i < count; i++) {
        char path[4200];
        struct lac_model *model = NULL;
        const struct lac_trace_write_options options = {.path = path, .generation = 1};

        (void)snprintf(path, sizeof(path), "%s/" LAC_STAGED_TRACE_FORMAT, staging->path, i);
        ck_assert_int_eq(rich_model_create(i, 50, &model), LAC_OK);
        ck_assert_int_eq(lac_trace_write(model, &options, &error), LAC_OK);
        lac_model_destroy(model);
    }
    write_staged(staging, LAC_STAGED_ORIGINAL);
}

static void publish(struct lac_store *store, const char *name, uint32_t count,
                    char (*ids)[LAC_ID_SIZE])
{
    struct lac_staging staging;
    const uint8_t sha256[LAC_SHA256_SIZE] = {1, 2, (uint8_t)count};
    const struct lac_publication publication = {.staging = &staging,
                                                .trace_count = count,
                                                .name = name,
                                                .project = "vision % \t \xC3\xA9",
                                                .sha256 = sha256,
                                                .size_bytes = 77,
                                                .has_original = true};
    struct lac_error error = {0};

    stage(store, &staging, count);
    ck_assert_msg(lac_store_publish(store, &publication, ids, &error) == LAC_OK, "%s",
                  error.message);
    lac_staging_remove(&staging);
}

/** All that the catalog says of a trace. */
static char *told(struct lac_store *store, const char *id)
{
    struct lac_trace_facts facts = {0};
    struct lac_error error = {0};
    char *text = NULL;
    size_t size = 0;

    if (lac_catalog_facts(store->catalog, id, &facts, &error) == LAC_OK &&
        facts.row.state == LAC_TRACE_READY) {
        ck_assert_int_eq(lac_trace_facts_encode(&facts, false, &text, &size, &error), LAC_OK);
    }
    lac_trace_facts_done(&facts);
    return text;
}

static int state_of(struct lac_store *store, const char *id)
{
    struct lac_trace_row row;
    struct lac_error error;
    int state = -1;

    if (lac_store_get_trace(store, id, &row, &error) == LAC_OK) {
        state = (int)row.state;
        lac_trace_row_done(&row);
    }
    return state;
}

/** A folder with a trace, a run of three, an upload that failed and one that waits. */
struct world {
    char ids[IDS_MAX][LAC_ID_SIZE]; /**< ready */
    int count;
    char *told[IDS_MAX];
    char waiting[LAC_ID_SIZE];
};

static void make_world(struct world *world)
{
    struct lac_store *store = open_store();
    struct lac_staging staging;
    struct lac_error error = {0};
    const uint8_t sha256[LAC_SHA256_SIZE] = {9};

    *world = (struct world){.count = 4};
    publish(store, "one", 1, world->ids);
    publish(store, "a run of ranks", 3, world->ids + 1);
    stage(store, &staging, 0);
    write_staged(&staging, "upload");
    memcpy(world->waiting, staging.id, LAC_ID_SIZE);
    ck_assert_int_eq(lac_store_begin_receiving(store, staging.id, "waits", "other", &error),
                     LAC_OK);
    ck_assert_int_eq(lac_store_acknowledge(store, staging.id, sha256, 6, &error), LAC_OK);
    lac_staging_close(&staging);
    for (int i = 0; i < world->count; i++) {
        world->told[i] = told(store, world->ids[i]);
        ck_assert_ptr_nonnull(world->told[i]);
    }
    lac_store_close(store);
}

static void free_world(struct world *world)
{
    for (int i = 0; i < world->count; i++) {
        free(world->told[i]);
    }
}

/** Everything is listed as it was, and no file is gone. */
static void check_world(const struct world *world, const char *what)
{
    struct lac_store *store = open_store();
    struct lac_trace_query query = {.limit = 100};
    struct lac_trace_list list;
    struct lac_run_query run_query = {.limit = 100};
    struct lac_run_list runs;
    struct lac_error error = {0};

    for (int i = 0; i < world->count; i++) {
        char *now = told(store, world->ids[i]);
        struct lac_trace_file *file = NULL;

        ck_assert_msg(now != NULL && strcmp(now, world->told[i]) == 0,
                      "%s: trace %d was\n%s\nis\n%s", what, i, world->told[i],
                      now != NULL ? now : "gone");
        ck_assert_int_eq(lac_store_open_trace(store, world->ids[i], &file, &error), LAC_OK);
        lac_store_release_trace(store, file);
        free(now);
    }
    ck_assert_msg(state_of(store, world->waiting) == LAC_TRACE_IMPORTING,
                  "%s: an acknowledged upload is lost", what);
    ck_assert_int_eq(lac_store_list_traces(store, &query, &list, &error), LAC_OK);
    ck_assert_uint_eq(list.count, 5);
    lac_trace_list_done(&list);
    ck_assert_int_eq(lac_store_list_runs(store, &run_query, &runs, &error), LAC_OK);
    ck_assert_uint_eq(runs.count, 1);
    ck_assert_str_eq(runs.rows[0].name, "a run of ranks");
    ck_assert_uint_eq(runs.rows[0].trace_count, 3);
    lac_run_list_done(&runs);
    ck_assert_int_eq(count_files("traces"), 4);
    ck_assert_int_eq(count_files("originals"), 2);
    lac_store_close(store);
}

START_TEST(a_lost_or_empty_catalog_is_made_again)
{
    struct world world;

    make_world(&world);
    check_world(&world, "untouched");
    ck_assert_msg(notices[0] == '\0', "%s", notices);
    run("rm -f d/catalog.db*");
    check_world(&world, "removed");
    ck_assert_ptr_nonnull(strstr(notices, "4 traces are listed again"));
    ck_assert_ptr_nonnull(strstr(notices, "1 runs now"));
    run(": > d/catalog.db; rm -f d/catalog.db-*");
    check_world(&world, "emptied");
    run("head -c 5000 /dev/urandom > d/catalog.db");
    check_world(&world, "no database at all");
    ck_assert_ptr_nonnull(strstr(notices, "kept as lost/catalog-"));
    run("truncate -s 20000 d/catalog.db");
    check_world(&world, "cut");
    check_world(&world, "and then");
    ck_assert_msg(notices[0] == '\0', "%s", notices);
    free_world(&world);
}
END_TEST

/** What the older of two starts knew, put back. */
START_TEST(an_older_catalog_shows_what_came_and_what_went_since)
{
    struct lac_store *store = open_store();
    char older[1][LAC_ID_SIZE];
    char deleted[1][LAC_ID_SIZE];
    char newer[3][LAC_ID_SIZE];
    struct lac_trace_row row = {0};
    struct lac_error error = {0};

    publish(store, "older", 1, older);
    publish(store, "deleted since", 1, deleted);
    lac_store_close(store);
    run("cp d/catalog.db old.db");
    store = open_store();
    publish(store, "newer", 3, newer);
    ck_assert_int_eq(lac_store_delete_trace(store, deleted[0], &error), LAC_OK);
    lac_store_close(store);
    run("cp old.db d/catalog.db");
    store = open_store();
    ck_assert_int_eq(state_of(store, older[0]), LAC_TRACE_READY);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(state_of(store, newer[i]), LAC_TRACE_READY);
    }
    ck_assert_int_eq(lac_store_get_trace(store, deleted[0], &row, &error), LAC_OK);
    ck_assert_int_eq(row.state, LAC_TRACE_FAILED);
    ck_assert_str_eq(row.error_code, "lost");
    lac_trace_row_done(&row);
    ck_assert_int_eq(lac_store_delete_trace(store, deleted[0], &error), LAC_OK);
    ck_assert_int_eq(count_files("traces"), 4);
    lac_store_close(store);
}
END_TEST

START_TEST(the_catalog_of_another_folder_is_not_believed)
{
    struct world world;
    struct lac_store *store;
    char foreign[1][LAC_ID_SIZE];
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};

    make_world(&world);
    run("mv d mine");
    store = open_store();
    publish(store, "theirs", 1, foreign);
    lac_store_close(store);
    run("cp d/catalog.db 'mine/catalog.db'");
    run("rm -rf d; mv mine d");
    store = open_store();
    for (int i = 0; i < world.count; i++) {
        ck_assert_int_eq(state_of(store, world.ids[i]), LAC_TRACE_READY);
    }
    ck_assert_int_eq(state_of(store, foreign[0]), LAC_TRACE_FAILED);
    ck_assert_int_eq(lac_store_open_trace(store, foreign[0], &file, &error), LAC_ERR_MISUSE);
    ck_assert_int_eq(state_of(store, world.waiting), LAC_TRACE_IMPORTING);
    ck_assert_int_eq(count_files("traces"), 4);
    ck_assert_int_eq(count_files("originals"), 2);
    lac_store_close(store);
    free_world(&world);
}
END_TEST

/** One to five flipped bits anywhere in the catalog. */
START_TEST(flipped_bits_in_the_catalog_lose_and_alter_nothing)
{
    int rounds = rounds_are_all() ? 600 : rounds_of(24);
    struct world world;
    char path[128];
    struct stat info;

    make_world(&world);
    (void)snprintf(path, sizeof(path), "%s/d/catalog.db", folder);
    for (int i = 0; i < rounds; i++) {
        FILE *stream = fopen(path, "r+b");
        uint32_t flips = 1 + pick(5);
        char what[32];

        ck_assert_int_eq(stat(path, &info), 0);
        for (uint32_t f = 0; f < flips; f++) {
            long at = (long)pick((uint32_t)info.st_size);
            int byte;

            (void)fseek(stream, at, SEEK_SET);
            byte = fgetc(stream);
            (void)fseek(stream, at, SEEK_SET);
            (void)fputc(byte ^ 1 << pick(8), stream);
        }
        (void)fclose(stream);
        (void)snprintf(what, sizeof(what), "round %d", i);
        check_world(&world, what);
        ck_assert_msg(strstr(notices, "catalog.db is damaged") != NULL, "%s: %s", what, notices);
    }
    ck_assert_int_ge(count_files("lost"), rounds); /* kept, each of them */
    free_world(&world);
}
END_TEST

/** Change the catalog behind the program's back. */
static void tell_lie(const char *sql)
{
    char path[128];
    const struct lac_store_options options = {.data_dir = path};
    struct lac_store *store = NULL;
    struct lac_error error = {0};
    sqlite3 *db = NULL;

    if (!catalog_is_file()) {
        (void)snprintf(path, sizeof(path), "%s/d", folder);
        ck_assert_msg(lac_store_open(&options, &store, &error) == LAC_OK, "%s", error.message);
        ck_assert_msg(lac_db_run(store->catalog, sql, &error) == LAC_OK, "%s", error.message);
        lac_store_close(store);
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/d/catalog.db", folder);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
    ck_assert_int_eq(lac_checked_stamp(path, &error), LAC_OK);
}

/** Rows that say something else under right checksums: another state, name, run. */
START_TEST(rows_that_contradict_their_files_are_corrected)
{
    static const char *const lies[] = {
        "UPDATE traces SET state = 3 WHERE state = 2",
        "UPDATE traces SET state = 0 WHERE state = 2",
        "UPDATE traces SET name = 'x', created_ms = 5 WHERE state = 2",
        "UPDATE traces SET run = NULL WHERE state = 2",
        "UPDATE runs SET name = 'y'",
        "DELETE FROM findings; DELETE FROM report_lines",
        "UPDATE traces SET project = NULL WHERE state = 2",
        "UPDATE traces SET original = NULL, sha256 = NULL WHERE state = 2",
        "DELETE FROM traces",
    };
    struct world world;

    make_world(&world);
    for (size_t i = 0; i < LAC_COUNT_OF(lies); i++) {
        tell_lie(lies[i]);
        check_world(&world, lies[i]);
        ck_assert_ptr_nonnull(strstr(notices, "did not say what the trace files say"));
    }
    free_world(&world);
}
END_TEST

/** Between the renames of a publication and its commit. */
START_TEST(a_publication_that_was_cut_off_is_finished)
{
    struct lac_store *store = open_store();
    struct lac_staging staging;
    struct lac_publication publication = {.staging = &staging, .trace_count = 3, .name = "cut"};
    char ids[3][LAC_ID_SIZE];
    struct lac_error error = {0};

    publication.has_original = true;
    stage(store, &staging, 3);
    ck_assert_int_eq(lac_store_publish(store, &publication, ids, &error), LAC_OK);
    /* as it was before the commit, with one file moved */
    run("id=$(ls d/staging); for t in d/traces/*; do n=$(strings -a \"$t\" | sed -n 's/^ordinal "
        "//p');"
        " case $n in 0) ;; *) mv \"$t\" d/staging/$id/trace-$n.db;; esac; done;"
        " mv d/originals/$id.zst d/staging/$id/original.zst");
    ck_assert_int_eq(count_files("traces"), 1);
    ck_assert_int_eq(lac_db_run(store->catalog,
                                "DELETE FROM findings; DELETE FROM report_lines;"
                                "DELETE FROM traces; DELETE FROM runs",
                                &error),
                     LAC_OK);
    lac_staging_close(&staging);
    lac_store_close(store);
    store = open_store();
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(state_of(store, ids[i]), LAC_TRACE_READY);
    }
    ck_assert_int_eq(count_files("staging"), 0);
    ck_assert_int_eq(count_files("originals"), 1);
    ck_assert_int_eq(count_files("lost"), 0);
    lac_store_close(store);
}
END_TEST

/** Between the rename into trash/, the commit and the unlink. */
START_TEST(a_deletion_that_was_cut_off_is_finished)
{
    struct lac_store *store = open_store();
    char ids[2][1][LAC_ID_SIZE];

    publish(store, "row is there", 1, ids[0]);
    publish(store, "row is gone", 1, ids[1]);
    lac_store_close(store);
    run("mkdir d/trash && mv d/traces/*.db d/trash/");
    run("rm -f d/catalog.db");
    store = open_store();
    ck_assert_int_eq(state_of(store, ids[0][0]), -1);
    ck_assert_int_eq(state_of(store, ids[1][0]), -1);
    ck_assert_int_eq(count_files("trash"), 0);
    lac_store_close(store);
}
END_TEST

START_TEST(an_upload_deleted_while_it_waits_stays_deleted)
{
    struct world world;
    struct lac_store *store;
    struct lac_error error = {0};

    make_world(&world);
    store = open_store();
    ck_assert_int_eq(lac_store_delete_trace(store, world.waiting, &error), LAC_OK);
    lac_store_close(store); /* its staging folder was not removed */
    run("rm -f d/catalog.db");
    store = open_store();
    ck_assert_int_eq(state_of(store, world.waiting), -1);
    ck_assert_int_eq(count_files("staging"), 0);
    ck_assert_int_eq(count_files("trash"), 0);
    lac_store_close(store);
    free_world(&world);
}
END_TEST

START_TEST(what_cannot_be_placed_is_moved_to_lost)
{
    struct world world;

    make_world(&world);
    run("echo no trace > d/traces/aaaaaaaaaaaaaaaaaaaaaaaaaa.db; echo hello > d/traces/notes");
    run("echo o > d/originals/aaaaaaaaaaaaaaaaaaaaaaaaaa.zst");
    check_world(&world, "strange files");
    ck_assert_int_eq(count_files("lost"), 3);
    ck_assert_ptr_nonnull(strstr(notices, "moved to lost/notes"));
    free_world(&world);
}
END_TEST

/** A file of version 1 says little of itself; with no row it is listed by that. */
START_TEST(a_file_of_version_1_without_a_row_is_listed)
{
    struct lac_store *store = open_store();
    struct lac_trace_row row = {0};
    struct lac_trace_file *file = NULL;
    const char *id = "aaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct lac_error error = {0};

    lac_store_close(store);
    run("cp \"$T/tests/unit/data/trace_v1.db\" d/traces/aaaaaaaaaaaaaaaaaaaaaaaaaa.db");
    store = open_store();
    ck_assert_int_eq(lac_store_get_trace(store, id, &row, &error), LAC_OK);
    ck_assert_int_eq(row.state, LAC_TRACE_READY);
    ck_assert_str_eq(row.name, "small");
    ck_assert_uint_eq(row.event_count, 161);
    lac_trace_row_done(&row);
    ck_assert_int_eq(lac_store_open_trace(store, id, &file, &error), LAC_OK);
    lac_store_release_trace(store, file);
    lac_store_close(store);
    store = open_store();
    ck_assert_msg(notices[0] == '\0', "%s", notices);
    lac_store_close(store);
}
END_TEST

/** A data folder on a disk of 24 MiB. @return false, and says so, where none may be mounted */
static bool mount_small_disk(void)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/d", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    if (mount("tmpfs", path, "tmpfs", 0, "size=24m") != 0) {
        printf("skip: a full disk needs the right to mount a small one\n");
        return false;
    }
    return true;
}

static void unmount_small_disk(void)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/d", folder);
    (void)umount(path);
}

/** To the last byte. */
static void fill_disk(void)
{
    run("for size in 65536 4096 512; do"
        " dd if=/dev/zero bs=$size of=d/filler oflag=append conv=notrunc 2>/dev/null; done;"
        " test -s d/filler");
}

START_TEST(a_full_disk_stops_neither_a_start_nor_a_deletion)
{
    struct world world;
    struct lac_store *store = NULL;
    struct lac_error error = {0};

    if (!mount_small_disk()) {
        return;
    }
    make_world(&world);
    fill_disk();
    ck_assert_msg(try_open(&store, &error) == LAC_OK, "%s", error.message);
    for (int i = 0; i < world.count; i++) {
        ck_assert_msg(lac_store_delete_trace(store, world.ids[i], &error) == LAC_OK, "trace %d: %s",
                      i, error.message);
        fill_disk();
    }
    ck_assert_msg(lac_store_fail(store, world.waiting, "io", "no room", &error) == LAC_OK, "%s",
                  error.message);
    ck_assert_int_eq(state_of(store, world.waiting), LAC_TRACE_FAILED);
    /* a new one has no room: it says so, in the words that become 507 */
    if (lac_store_begin_receiving(store, "bbbbbbbbbbbbbbbbbbbbbbbbbb", "n", "p", &error) !=
        LAC_OK) {
        ck_assert(lac_sql_is_full(&error));
    }
    lac_store_close(store);
    unmount_small_disk();
    free_world(&world);
}
END_TEST

/** An upload whose publication was killed between the renames and the commit. */
static void cut_publication(struct lac_staging *staging)
{
    struct lac_store *store = open_store();
    struct lac_publication publication = {.staging = staging,
                                          .trace_count = CUT_TRACES,
                                          .has_row = true,
                                          .has_original = true,
                                          .name = "cut"};
    const uint8_t sha256[LAC_SHA256_SIZE] = {9};
    char ids[CUT_TRACES][LAC_ID_SIZE];
    struct lac_error error = {0};

    stage(store, staging, CUT_TRACES);
    write_staged(staging, LAC_STAGED_UPLOAD);
    ck_assert_int_eq(lac_store_begin_receiving(store, staging->id, "cut", "other", &error), LAC_OK);
    ck_assert_int_eq(lac_store_acknowledge(store, staging->id, sha256, 6, &error), LAC_OK);
    run("cp d/catalog.db before.db");
    ck_assert_msg(lac_store_publish(store, &publication, ids, &error) == LAC_OK, "%s",
                  error.message);
    lac_staging_close(staging);
    lac_store_close(store);
    run("cp before.db d/catalog.db");
    ck_assert_int_eq(count_files("traces"), CUT_TRACES);
}

START_TEST(a_publication_cut_off_on_a_full_disk_can_be_deleted)
{
    struct lac_store *store;
    struct lac_staging staging;
    struct lac_error error = {0};

    if (!mount_small_disk()) {
        return;
    }
    cut_publication(&staging);
    fill_disk();
    store = open_store();
    ck_assert_msg(strstr(notices, "the disk is full: 60 traces") != NULL, "%s", notices);
    ck_assert_int_eq(state_of(store, staging.id), LAC_TRACE_IMPORTING);
    ck_assert_int_eq(lac_store_fail(store, staging.id, "io", "no room", &error), LAC_OK);
    ck_assert_msg(lac_store_delete_trace(store, staging.id, &error) == LAC_OK, "%s", error.message);
    lac_store_close(store);
    run("rm d/filler");
    store = open_store();
    ck_assert_int_eq(state_of(store, staging.id), -1);
    ck_assert_int_eq(count_files("traces"), 0);
    ck_assert_int_eq(count_files("originals"), 0);
    ck_assert_int_eq(count_files("staging"), 0);
    lac_store_close(store);
    unmount_small_disk();
}
END_TEST

START_TEST(what_a_full_disk_kept_from_being_listed_is_listed_when_there_is_room)
{
    struct world world;
    struct lac_store *store;
    struct lac_error error = {0};

    if (!mount_small_disk()) {
        return;
    }
    lac_store_close(open_store());
    run("cp d/catalog.db before.db");
    make_world(&world);
    run("cp before.db d/catalog.db");
    fill_disk();
    store = open_store();
    ck_assert_msg(strstr(notices, "the disk is full: 4 traces") != NULL, "%s", notices);
    ck_assert_int_eq(state_of(store, world.ids[0]), -1);
    ck_assert_int_eq(count_files("staging"), 1); /* acknowledged, though no row says so */
    run("rm d/filler");
    ck_assert_int_eq(
        lac_store_begin_receiving(store, "bbbbbbbbbbbbbbbbbbbbbbbbbb", "n", "p", &error), LAC_OK);
    ck_assert_int_eq(lac_store_drop(store, "bbbbbbbbbbbbbbbbbbbbbbbbbb", &error), LAC_OK);
    ck_assert_int_eq(state_of(store, world.ids[0]), LAC_TRACE_READY);
    lac_store_close(store);
    run("rm -f d/filler");
    check_world(&world, "after a full disk");
    unmount_small_disk();
    free_world(&world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_lost");
    TCase *tcase = tcase_create("lost catalogs");

    tcase_set_timeout(tcase, 1200);
    tcase_add_checked_fixture(tcase, setup, teardown);
    if (catalog_is_file()) {
        tcase_add_test(tcase, a_lost_or_empty_catalog_is_made_again);
        tcase_add_test(tcase, an_older_catalog_shows_what_came_and_what_went_since);
        tcase_add_test(tcase, the_catalog_of_another_folder_is_not_believed);
        tcase_add_test(tcase, flipped_bits_in_the_catalog_lose_and_alter_nothing);
    }
    tcase_add_test(tcase, rows_that_contradict_their_files_are_corrected);
    tcase_add_test(tcase, a_publication_that_was_cut_off_is_finished);
    tcase_add_test(tcase, a_deletion_that_was_cut_off_is_finished);
    tcase_add_test(tcase, an_upload_deleted_while_it_waits_stays_deleted);
    tcase_add_test(tcase, what_cannot_be_placed_is_moved_to_lost);
    tcase_add_test(tcase, a_file_of_version_1_without_a_row_is_listed);
    if (catalog_is_file()) {
        tcase_add_test(tcase, a_full_disk_stops_neither_a_start_nor_a_deletion);
        tcase_add_test(tcase, a_publication_cut_off_on_a_full_disk_can_be_deleted);
        tcase_add_test(tcase, what_a_full_disk_kept_from_being_listed_is_listed_when_there_is_room);
    }
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
