#include "collector/base/count_of.h"
#include "server/store/catalog.h"
#include "server/store/people_rows.h"
#include "server/store/publish.h"
#include "server/store/store.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_writer.h"
#include "server/store/verify.h"
#include "tests/support/catalog_place.h"
#include "tests/support/check_main.h"
#include "tests/support/rich_model.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static void setup(void)
{
    char data[80];

    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(data, sizeof(data), "%s/a/b", folder);
    place_catalog(data);
}

static void teardown(void)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static struct lac_store *open_store(bool sweep)
{
    char path[128];
    const struct lac_store_options options = {.data_dir = path, .sweep = sweep};
    struct lac_store *store = NULL;
    struct lac_error error = {0};

    (void)snprintf(path, sizeof(path), "%s/a/b", folder);
    ck_assert_msg(lac_store_open(&options, &store, &error) == LAC_OK, "%s", error.message);
    return store;
}

static int count_files(const char *name)
{
    char path[128];
    int count = 0;
    DIR *dir;
    const struct dirent *entry;

    (void)snprintf(path, sizeof(path), "%s/a/b/%s", folder, name);
    dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(dir);
    return count;
}

/** Stage `count` traces. */
static void stage(struct lac_store *store, struct lac_staging *staging, uint32_t count)
{
    char id[LAC_ID_SIZE];
    struct lac_error error = {0};

    ck_assert_int_eq(lac_store_new_id(id, &error), LAC_OK);
    ck_assert(lac_store_id_is_valid(id));
    ck_assert_msg(lac_staging_create(store, id, staging, &error) == LAC_OK, "%s", error.message);
    for (uint32_t i = 0; i < count; i++) {
        char path[4200];
        struct lac_model *model = NULL;
        const struct lac_trace_write_options options = {.path = path, .generation = 1};

        (void)snprintf(path, sizeof(path), "%s/" LAC_STAGED_TRACE_FORMAT, staging->path, i);
        ck_assert_int_eq(rich_model_create(i, 50, &model), LAC_OK);
        ck_assert_int_eq(lac_trace_write(model, &options, &error), LAC_OK);
        lac_model_destroy(model);
    }
}

static void publish(struct lac_store *store, const char *name, const uint8_t *sha256,
                    uint32_t count, char (*ids)[LAC_ID_SIZE])
{
    struct lac_staging staging;
    struct lac_publication publication = {.staging = &staging,
                                          .trace_count = count,
                                          .name = name,
                                          .project = "vision",
                                          .sha256 = sha256,
                                          .size_bytes = 77};
    struct lac_error error = {0};

    stage(store, &staging, count);
    ck_assert_msg(lac_store_publish(store, &publication, ids, &error) == LAC_OK, "%s",
                  error.message);
    lac_staging_remove(&staging);
}

START_TEST(a_published_trace_is_listed_and_opens)
{
    struct lac_store *store = open_store(true);
    char ids[1][LAC_ID_SIZE];
    const uint8_t sha256[LAC_SHA256_SIZE] = {1, 2, 3};
    struct lac_trace_row row = {0};
    struct lac_trace_file *file = NULL;
    struct lac_trace_file *same = NULL;
    struct lac_error error = {0};
    char found[LAC_ID_SIZE];

    publish(store, "<img src=x onerror=1>/name.json", sha256, 1, ids);
    ck_assert_int_eq(lac_store_get_trace(store, ids[0], &row, &error), LAC_OK);
    ck_assert_int_eq(row.state, LAC_TRACE_READY);
    ck_assert_str_eq(row.name, "<img src=x onerror=1>/name.json");
    ck_assert_str_eq(row.project, "vision");
    ck_assert_str_eq(row.run, "");
    ck_assert_str_eq(row.format, "kineto");
    ck_assert_str_eq(row.host, "node-17");
    ck_assert_str_eq(row.device_names, "A100 \xC3\xA9");
    ck_assert_uint_eq(row.size_bytes, 77);
    ck_assert_int_eq(row.rank, 3);
    ck_assert(row.has_sha256 && memcmp(row.sha256, sha256, sizeof(sha256)) == 0);
    ck_assert_uint_eq(row.report_count, 1);
    ck_assert_str_eq(row.report[0].code, "unclosed_array");
    ck_assert_uint_gt(row.file_bytes, 1000);
    lac_trace_row_done(&row);
    ck_assert_int_eq(lac_store_open_trace(store, ids[0], &file, &error), LAC_OK);
    ck_assert_int_eq(lac_store_open_trace(store, ids[0], &same, &error), LAC_OK);
    ck_assert_ptr_eq(file, same);
    lac_store_release_trace(store, same);
    lac_store_release_trace(store, file);
    ck_assert_int_eq(lac_store_find_content(store, "vision", "<img src=x onerror=1>/name.json",
                                            sha256, found, &error),
                     LAC_OK);
    ck_assert_str_eq(found, ids[0]);
    ck_assert_int_eq(lac_store_find_content(store, "vision", "other", sha256, found, &error),
                     LAC_ERR_NOT_FOUND);
    ck_assert_int_eq(lac_store_find_content(store, "", NULL, sha256, found, &error),
                     LAC_ERR_NOT_FOUND);
    ck_assert_int_eq(count_files("staging"), 0);
    lac_store_close(store);
}
END_TEST

START_TEST(a_run_of_ranks_appears_at_once_and_shares_its_run)
{
    struct lac_store *store = open_store(true);
    char ids[3][LAC_ID_SIZE];
    struct lac_trace_row rows[3];
    struct lac_error error;

    publish(store, "job", NULL, 3, ids);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(lac_store_get_trace(store, ids[i], &rows[i], &error), LAC_OK);
        ck_assert_str_eq(rows[i].name, "rich");
        ck_assert_str_eq(rows[i].run, rows[0].run);
    }
    ck_assert(lac_store_id_is_valid(rows[0].run));
    for (int i = 0; i < 3; i++) {
        lac_trace_row_done(&rows[i]);
        ck_assert_int_eq(lac_store_delete_trace(store, ids[i], &error), LAC_OK);
    }
    ck_assert_int_eq(count_files("traces"), 0);
    lac_store_close(store);
}
END_TEST

START_TEST(lists_page_from_the_newest_and_search_names)
{
    struct lac_store *store = open_store(true);
    char ids[7][1][LAC_ID_SIZE];
    char names[7][20];
    struct lac_trace_query query = {.limit = 3};
    struct lac_trace_list list;
    char cursor[64];
    int seen = 6;
    struct lac_error error;

    for (int i = 0; i < 7; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "Trace-%d", i);
        publish(store, names[i], NULL, 1, ids[i]);
    }
    do {
        ck_assert_int_eq(lac_store_list_traces(store, &query, &list, &error), LAC_OK);
        for (uint32_t r = 0; r < list.count; r++) {
            ck_assert_str_eq(list.rows[r].name, names[seen--]);
        }
        memcpy(cursor, list.next, sizeof(cursor));
        query.after = list.has_more ? cursor : NULL;
        lac_trace_list_done(&list);
    } while (query.after != NULL);
    ck_assert_int_eq(seen, -1);
    query = (struct lac_trace_query){.limit = 10, .text = "tRACE-4"};
    ck_assert_int_eq(lac_store_list_traces(store, &query, &list, &error), LAC_OK);
    ck_assert_uint_eq(list.count, 1);
    lac_trace_list_done(&list);
    query.after = "s1x";
    ck_assert_int_eq(lac_store_list_traces(store, &query, &list, &error), LAC_ERR_MISUSE);
    lac_store_close(store);
}
END_TEST

START_TEST(a_deleted_trace_is_gone_but_stays_readable_for_who_has_it_open)
{
    struct lac_store *store = open_store(true);
    char ids[1][LAC_ID_SIZE];
    struct lac_trace_file *file = NULL;
    struct lac_trace_file *again = NULL;
    struct lac_slice_full slice;
    struct lac_error error;

    publish(store, "x", NULL, 1, ids);
    ck_assert_int_eq(lac_store_open_trace(store, ids[0], &file, &error), LAC_OK);
    ck_assert_int_eq(lac_store_delete_trace(store, ids[0], &error), LAC_OK);
    ck_assert_int_eq(count_files("traces"), 0);
    ck_assert_int_eq(lac_trace_file_slice(file, 3, &slice, &error), LAC_OK);
    lac_slice_full_done(&slice);
    ck_assert_int_eq(lac_store_open_trace(store, ids[0], &again, &error), LAC_ERR_NOT_FOUND);
    ck_assert_int_eq(lac_store_delete_trace(store, ids[0], &error), LAC_ERR_NOT_FOUND);
    lac_store_release_trace(store, file);
    lac_store_close(store);
}
END_TEST

START_TEST(ids_that_are_none_are_not_found)
{
    static const char *const ids[] = {"", "../../etc/passwd", "aaaaaaaaaaaaaaaaaaaaaaaaa1",
                                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "AAAAAAAAAAAAAAAAAAAAAAAAAA"};
    struct lac_store *store = open_store(true);
    struct lac_trace_file *file = NULL;
    struct lac_error error;

    for (size_t i = 0; i < LAC_COUNT_OF(ids); i++) {
        ck_assert(!lac_store_id_is_valid(ids[i]));
        ck_assert_int_eq(lac_store_open_trace(store, ids[i], &file, &error), LAC_ERR_NOT_FOUND);
        ck_assert_int_eq(lac_store_delete_trace(store, ids[i], &error), LAC_ERR_NOT_FOUND);
    }
    lac_store_close(store);
}
END_TEST

START_TEST(an_upload_goes_through_its_states)
{
    struct lac_store *store = open_store(true);
    char id[LAC_ID_SIZE];
    const uint8_t sha256[LAC_SHA256_SIZE] = {9};
    struct lac_trace_row row;
    struct lac_trace_file *file;
    struct lac_error error;
    char(*ids)[LAC_ID_SIZE] = NULL;
    uint32_t count = 0;

    ck_assert_int_eq(lac_store_new_id(id, &error), LAC_OK);
    ck_assert_int_eq(lac_store_begin_receiving(store, id, "up", "p", &error), LAC_OK);
    ck_assert_int_eq(lac_store_get_trace(store, id, &row, &error), LAC_OK);
    ck_assert_int_eq(row.state, LAC_TRACE_RECEIVING);
    lac_trace_row_done(&row);
    ck_assert_int_eq(lac_store_acknowledge(store, id, sha256, 1234, &error), LAC_OK);
    ck_assert_int_eq(lac_store_acknowledge(store, id, sha256, 1234, &error), LAC_ERR_NOT_FOUND);
    ck_assert_int_eq(lac_store_open_trace(store, id, &file, &error), LAC_ERR_MISUSE);
    ck_assert_int_eq(lac_store_list_state(store, LAC_TRACE_IMPORTING, &ids, &count, &error),
                     LAC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(ids[0], id);
    free(ids);
    ck_assert_int_eq(lac_store_fail(store, id, "corrupt", "it is no trace", &error), LAC_OK);
    ck_assert_int_eq(lac_store_get_trace(store, id, &row, &error), LAC_OK);
    ck_assert_int_eq(row.state, LAC_TRACE_FAILED);
    ck_assert_str_eq(row.error_code, "corrupt");
    ck_assert_str_eq(row.error_message, "it is no trace");
    ck_assert_str_eq(row.project, "p");
    lac_trace_row_done(&row);
    lac_store_close(store);
}
END_TEST

START_TEST(a_staged_file_that_is_none_is_not_published)
{
    struct lac_store *store = open_store(true);
    struct lac_staging staging;
    struct lac_publication publication = {.staging = &staging, .trace_count = 2};
    char path[4200];
    char ids[2][LAC_ID_SIZE];
    struct lac_trace_query query = {.limit = 10};
    struct lac_trace_list list;
    struct lac_error error = {0};
    FILE *stream;

    stage(store, &staging, 2);
    (void)snprintf(path, sizeof(path), "%s/" LAC_STAGED_TRACE_FORMAT, staging.path, 1);
    stream = fopen(path, "r+b");
    (void)fseek(stream, 1500, SEEK_SET);
    (void)fwrite("garbage garbage garbage garbage garbage", 1, 39, stream);
    (void)fclose(stream);
    ck_assert_int_ne(lac_store_publish(store, &publication, ids, &error), LAC_OK);
    ck_assert_int_eq(count_files("traces"), 0);
    ck_assert_int_eq(lac_store_list_traces(store, &query, &list, &error), LAC_OK);
    ck_assert_uint_eq(list.count, 0);
    lac_trace_list_done(&list);
    lac_staging_remove(&staging);
    lac_store_close(store);
}
END_TEST

/** What a process that dies in the middle leaves, and what the next one makes of it. */
START_TEST(what_a_crash_leaves_is_swept)
{
    struct lac_store *store;
    char path[256];
    char kept[1][LAC_ID_SIZE];
    char receiving[LAC_ID_SIZE];
    char lost[LAC_ID_SIZE];
    char acknowledged[LAC_ID_SIZE];
    int wait_status = 0;
    pid_t child;
    struct lac_trace_row row;
    struct lac_error error = {0};
    const uint8_t sha256[LAC_SHA256_SIZE] = {5};

    store = open_store(true);
    publish(store, "kept", NULL, 1, kept);
    ck_assert_int_eq(lac_store_new_id(receiving, &error), LAC_OK);
    ck_assert_int_eq(lac_store_new_id(lost, &error), LAC_OK);
    ck_assert_int_eq(lac_store_new_id(acknowledged, &error), LAC_OK);
    lac_store_close(store);
    child = fork();
    if (child == 0) {
        struct lac_staging staging[3];
        FILE *stream;

        store = open_store(true);
        (void)!lac_staging_create(store, receiving, &staging[0], &error);
        (void)!lac_store_begin_receiving(store, receiving, "r", NULL, &error);
        (void)!lac_staging_create(store, acknowledged, &staging[1], &error);
        (void)!lac_store_begin_receiving(store, acknowledged, "a", NULL, &error);
        (void)!lac_store_acknowledge(store, acknowledged, sha256, 5, &error);
        (void)!lac_store_begin_receiving(store, lost, "l", NULL, &error);
        (void)!lac_store_acknowledge(store, lost, sha256, 5, &error);
        stage(store, &staging[2], 2); /* an import that was not published */
        (void)snprintf(path, sizeof(path), "%s/a/b/traces/%s.db", folder, receiving);
        stream = fopen(path, "wb"); /* moved, but not committed */
        (void)fclose(stream);
        (void)snprintf(path, sizeof(path), "%s/a/b/originals/%s.zst", folder, receiving);
        stream = fopen(path, "wb");
        (void)fclose(stream);
        _exit(7); /* locks go, nothing is tidied up */
    }
    ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
    ck_assert(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 7);
    ck_assert_int_eq(count_files("traces"), 2);

    store = open_store(true);
    ck_assert_int_eq(count_files("traces"), 1);
    ck_assert_int_eq(count_files("originals"), 0);
    ck_assert_int_eq(count_files("staging"), 1); /* the acknowledged one */
    ck_assert_int_eq(lac_store_get_trace(store, receiving, &row, &error), LAC_ERR_NOT_FOUND);
    ck_assert_int_eq(lac_store_get_trace(store, acknowledged, &row, &error), LAC_OK);
    ck_assert_int_eq(row.state, LAC_TRACE_IMPORTING);
    lac_trace_row_done(&row);
    ck_assert_int_eq(lac_store_get_trace(store, lost, &row, &error), LAC_OK);
    ck_assert_int_eq(row.state, LAC_TRACE_FAILED);
    ck_assert_str_eq(row.error_code, "lost");
    lac_trace_row_done(&row);
    ck_assert_int_eq(lac_store_get_trace(store, kept[0], &row, &error), LAC_OK);
    ck_assert_int_eq(row.state, LAC_TRACE_READY);
    lac_trace_row_done(&row);
    lac_store_close(store);
}
END_TEST

START_TEST(what_is_under_way_is_not_swept)
{
    struct lac_store *store = open_store(true);
    struct lac_store *other;
    struct lac_staging staging;
    struct lac_staging stolen;
    struct lac_error error;

    stage(store, &staging, 1);
    ck_assert_int_eq(lac_store_begin_receiving(store, staging.id, "r", NULL, &error), LAC_OK);
    other = open_store(true);
    ck_assert_int_eq(count_files("staging"), 1);
    ck_assert_int_eq(lac_staging_adopt(other, staging.id, &stolen, &error), LAC_ERR_MISUSE);
    ck_assert_int_eq(lac_store_drop(store, staging.id, &error), LAC_OK);
    lac_store_close(other);
    lac_staging_remove(&staging);
    ck_assert_int_eq(count_files("staging"), 0);
    lac_store_close(store);
}
END_TEST

static void catalog_sql(const char *sql)
{
    char path[128];
    sqlite3 *db = NULL;
    struct lac_error error = {0};

    (void)snprintf(path, sizeof(path), "%s/a/b/catalog.db", folder);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
    ck_assert_msg(lac_checked_stamp(path, &error) == LAC_OK, "%s", error.message);
}

START_TEST(an_empty_catalog_is_migrated_and_a_newer_one_refused)
{
    char path[128];
    const struct lac_store_options options = {.data_dir = path};
    struct lac_store *store = open_store(false);
    struct lac_error error = {0};
    char ids[1][LAC_ID_SIZE];
    char newer[40];

    (void)snprintf(path, sizeof(path), "%s/a/b", folder);
    lac_store_close(store);
    /* version 0: a catalog before the first migration */
    catalog_sql("DROP TABLE findings; DROP TABLE report_lines; DROP TABLE traces; DROP TABLE runs;"
                "DROP TABLE tokens; DROP TABLE reports; DROP TABLE users; DROP TABLE projects;"
                "DROP TABLE audit; DROP TABLE labels; DROP TABLE figures;"
                "DROP TABLE figure_settings; DROP TABLE neighbors; DROP TABLE baselines;"
                "DROP TABLE pins; DROP TABLE report_versions; DROP TABLE report_parts;"
                "DROP TABLE report_comments; DROP TABLE report_findings; DROP TABLE shares;"
                "DROP TABLE sessions; DROP TABLE members; DROP TABLE project_settings;"
                "DROP TABLE webhooks; DROP TABLE webhook_deliveries; DROP TABLE objects;"
                "DROP TABLE object_store; DROP TABLE quotas; DROP TABLE uploaders;"
                "DROP TABLE bookmarks; DROP TABLE trained_models;"
                "PRAGMA user_version = 0");
    store = open_store(true);
    publish(store, "after the migration", NULL, 1, ids);
    ck_assert_int_eq(lac_store_audit(store, "me", "import", ids[0], &error), LAC_OK);
    lac_store_close(store);
    (void)snprintf(newer, sizeof(newer), "PRAGMA user_version = %d", LAC_CATALOG_VERSION + 1);
    catalog_sql(newer);
    ck_assert_int_eq(lac_store_open(&options, &store, &error), LAC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(error.message, "newer"));
}
END_TEST

/** What is told of the only trace. */
static void take_problem(void *context, const char *file, const char *problem)
{
    (void)file;
    (void)snprintf(context, 200, "%s", problem);
}

static enum lac_status verify_catalog(char *problem)
{
    char path[128];
    const struct lac_verify_options options = {
        .data_dir = path, .told = take_problem, .context = problem};
    struct lac_verify_counts counts;
    struct lac_error error = {0};

    (void)snprintf(path, sizeof(path), "%s/a/b", folder);
    problem[0] = '\0';
    return lac_store_verify(&options, &counts, &error);
}

/** A catalog that the next start migrates can be compared with its files already. */
START_TEST(an_older_catalog_is_verified_as_it_is)
{
    struct lac_store *store = open_store(false);
    char ids[1][LAC_ID_SIZE];
    char problem[200];

    publish(store, "a trace", NULL, 1, ids);
    lac_store_close(store);
    catalog_sql("DROP TABLE trained_models; PRAGMA user_version = 12");
    ck_assert_int_eq(verify_catalog(problem), LAC_OK);
    ck_assert_str_eq(problem, "");
    catalog_sql("DELETE FROM traces");
    ck_assert_int_eq(verify_catalog(problem), LAC_OK);
    ck_assert_ptr_nonnull(strstr(problem, "is not listed"));
}
END_TEST

static void require_run(struct lac_store *store, const char *id, const char *run)
{
    struct lac_trace_row row = {0};
    struct lac_error error = {0};

    ck_assert_int_eq(lac_store_get_trace(store, id, &row, &error), LAC_OK);
    ck_assert_str_eq(row.run, run);
    lac_trace_row_done(&row);
}

/** How many traces the run has: as it says, and as the list has them. */
static uint32_t count_members(struct lac_store *store, const char *run)
{
    const struct lac_trace_query query = {.run = run, .limit = 100};
    struct lac_trace_list list = {0};
    struct lac_run_row row = {0};
    struct lac_error error = {0};
    const bool is_there = lac_store_get_run(store, run, &row, &error) == LAC_OK;
    uint32_t count;

    ck_assert_int_eq(lac_store_list_traces(store, &query, &list, &error), LAC_OK);
    count = list.count;
    ck_assert_uint_eq(is_there ? row.trace_count : 0, count);
    lac_trace_list_done(&list);
    lac_run_row_done(&row);
    return count;
}

START_TEST(people_put_traces_into_runs_and_out_again)
{
    struct lac_store *store = open_store(false);
    char ranks[3][LAC_ID_SIZE];
    char single[1][LAC_ID_SIZE];
    char archive[LAC_ID_SIZE];
    char made[LAC_ID_SIZE];
    char project[LAC_PROJECT_BYTES];
    const char *const both[] = {ranks[0], single[0]};
    struct lac_trace_row row = {0};
    struct lac_error error = {0};

    publish(store, "three ranks", NULL, 3, ranks);
    publish(store, "one", NULL, 1, single);
    ck_assert_int_eq(lac_store_get_trace(store, ranks[0], &row, &error), LAC_OK);
    (void)snprintf(archive, sizeof(archive), "%s", row.run);
    lac_trace_row_done(&row);
    ck_assert_uint_eq(count_members(store, archive), 3);
    ck_assert_msg(lac_store_make_run(store, "both", "vision", both, 2, made, &error) == LAC_OK,
                  "%s", error.message);
    ck_assert_uint_eq(count_members(store, made), 2);
    ck_assert_uint_eq(count_members(store, archive), 2);
    require_run(store, ranks[0], made);
    require_run(store, ranks[1], archive);
    ck_assert_int_eq(lac_store_project_of(store, LAC_OWNED_RUN, made, project, &error), LAC_OK);
    ck_assert_str_eq(project, "vision");
    /* a start takes nothing of it back: no file speaks of it */
    lac_store_close(store);
    store = open_store(true);
    ck_assert_uint_eq(count_members(store, made), 2);
    ck_assert_int_eq(lac_store_delete_trace(store, single[0], &error), LAC_OK);
    ck_assert_uint_eq(count_members(store, made), 1);
    ck_assert_int_eq(lac_store_dissolve_run(store, made, &error), LAC_OK);
    ck_assert_uint_eq(count_members(store, made), 0);
    require_run(store, ranks[0], "");
    ck_assert_int_eq(lac_store_dissolve_run(store, archive, &error), LAC_OK);
    ck_assert_uint_eq(count_members(store, archive), 0);
    require_run(store, ranks[1], "");
    require_run(store, ranks[0], "");
    lac_store_close(store);
}
END_TEST

START_TEST(a_folder_that_cannot_be_is_an_error)
{
    struct lac_store_options options = {.data_dir = "/proc/no/such"};
    struct lac_store *store = NULL;
    struct lac_error error = {0};
    char path[128];
    FILE *stream;

    ck_assert_int_eq(lac_store_open(&options, &store, &error), LAC_ERR_IO);
    ck_assert(error.message[0] != '\0');
    (void)snprintf(path, sizeof(path), "%s/catalog.db", folder);
    stream = fopen(path, "wb");
    for (int i = 0; i < 100; i++) {
        (void)fputs("this is no database, and long enough to see", stream);
    }
    (void)fclose(stream);
    options.data_dir = folder;
    ck_assert_int_eq(lac_store_open(&options, &store, &error), LAC_ERR_CORRUPT);
}
END_TEST

/** Two processes publish into one folder at the same time. */
START_TEST(processes_share_a_folder)
{
    pid_t children[3];
    struct lac_store *store;
    struct lac_trace_query query = {.limit = 100};
    struct lac_trace_list list;
    struct lac_error error;

    for (int c = 0; c < 3; c++) {
        children[c] = fork();
        if (children[c] == 0) {
            char ids[1][LAC_ID_SIZE];

            store = open_store(true);
            for (int i = 0; i < 8; i++) {
                publish(store, "x", NULL, 1, ids);
            }
            lac_store_close(store);
            _exit(0);
        }
    }
    for (int c = 0; c < 3; c++) {
        int wait_status = 0;

        ck_assert_int_eq(waitpid(children[c], &wait_status, 0), children[c]);
        ck_assert(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0);
    }
    store = open_store(true);
    ck_assert_int_eq(lac_store_list_traces(store, &query, &list, &error), LAC_OK);
    ck_assert_uint_eq(list.count, 24);
    ck_assert_int_eq(count_files("traces"), 24);
    lac_trace_list_done(&list);
    lac_store_close(store);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_catalog");
    TCase *tcase = tcase_create("data folder");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_published_trace_is_listed_and_opens);
    tcase_add_test(tcase, a_run_of_ranks_appears_at_once_and_shares_its_run);
    tcase_add_test(tcase, lists_page_from_the_newest_and_search_names);
    tcase_add_test(tcase, a_deleted_trace_is_gone_but_stays_readable_for_who_has_it_open);
    tcase_add_test(tcase, ids_that_are_none_are_not_found);
    tcase_add_test(tcase, an_upload_goes_through_its_states);
    tcase_add_test(tcase, a_staged_file_that_is_none_is_not_published);
    tcase_add_test(tcase, what_a_crash_leaves_is_swept);
    tcase_add_test(tcase, what_is_under_way_is_not_swept);
    if (catalog_is_file()) {
        tcase_add_test(tcase, an_empty_catalog_is_migrated_and_a_newer_one_refused);
        tcase_add_test(tcase, an_older_catalog_is_verified_as_it_is);
    }
    tcase_add_test(tcase, people_put_traces_into_runs_and_out_again);
    tcase_add_test(tcase, a_folder_that_cannot_be_is_an_error);
    tcase_add_test(tcase, processes_share_a_folder);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
