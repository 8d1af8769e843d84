/* Uploads and imports in children; this program is the child too, see main(). */

#include "collector/base/count_of.h"
#include "server/ingest/import_worker.h"
#include "server/ingest/ingest.h"
#include "server/store/publish.h"
#include "tests/support/catalog_place.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char small_trace[] =
    "{\"traceEvents\":["
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":100,\"dur\":50,"
    "\"args\":{\"device\":0,\"stream\":7,\"correlation\":1}},"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,"
    "\"ts\":90,\"dur\":5,\"args\":{\"correlation\":1}}]}";

static char folder[64];
static struct lac_store *store;
static struct lac_ingest *ingest;
static uint32_t worker_count = 2, queue_max, wall_seconds_max;

static void open_folder(const char *program)
{
    const struct lac_store_options options = {.data_dir = folder, .sweep = true};
    struct lac_ingest_options ingest_options = {.program = program,
                                                .worker_count = worker_count,
                                                .queue_max = queue_max,
                                                .import_wall_seconds_max = wall_seconds_max,
                                                .keep_originals = true};
    struct lac_error error = {0};

    ck_assert_msg(lac_store_open(&options, &store, &error) == LAC_OK, "%s", error.message);
    ingest_options.store = store;
    ck_assert_msg(lac_ingest_create(&ingest_options, &ingest, &error) == LAC_OK, "%s",
                  error.message);
}

static void close_folder(void)
{
    lac_ingest_destroy(ingest);
    lac_store_close(store);
    ingest = NULL;
    store = NULL;
}

static void setup(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    place_catalog(folder);
    open_folder(NULL);
}

static void teardown(void)
{
    char command[128];

    close_folder();
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static struct lac_upload *begin(const char *name, uint64_t total_bytes, bool reuse)
{
    const struct lac_upload_options options = {
        .name = name, .total_bytes = total_bytes, .reuse_existing = reuse};
    struct lac_upload *upload = NULL;
    struct lac_error error = {0};

    ck_assert_msg(lac_ingest_begin(ingest, &options, &upload, &error) == LAC_OK, "%s",
                  error.message);
    return upload;
}

static void send(const char *name, const char *body, char *ret_id)
{
    struct lac_upload *upload = begin(name, strlen(body), false);
    struct lac_error error = {0};

    for (size_t at = 0; at < strlen(body); at += 100) {
        size_t left = strlen(body) - at;

        ck_assert_int_eq(lac_upload_write(upload, body + at, left < 100 ? left : 100, &error),
                         LAC_OK);
    }
    ck_assert_msg(lac_upload_commit(upload, ret_id, NULL, &error) == LAC_OK, "%s", error.message);
}

/** Wait for the end of an import; the row is the caller's. */
static struct lac_trace_row wait_for(const char *id)
{
    struct lac_trace_row row = {0};
    struct lac_error error;

    for (int i = 0; i < 3000; i++) {
        ck_assert_int_eq(lac_store_get_trace(store, id, &row, &error), LAC_OK);
        if (row.state == LAC_TRACE_READY || row.state == LAC_TRACE_FAILED) {
            return row;
        }
        lac_trace_row_done(&row);
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ck_abort_msg("the import does not end");
    return row;
}

static int count_files(const char *name)
{
    char path[128];
    int count = 0;
    DIR *dir;
    const struct dirent *entry;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(dir);
    return count;
}

/** The staging folder goes a moment after the row changes. */
static void wait_for_staging(int count)
{
    for (int i = 0; i < 500 && count_files("staging") != count; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ck_assert_int_eq(count_files("staging"), count);
}

START_TEST(an_upload_becomes_a_trace)
{
    char id[LAC_ID_SIZE];
    struct lac_trace_row row;
    struct lac_ingest_stats stats;

    send("a/b c.json", small_trace, id);
    row = wait_for(id);
    ck_assert_int_eq(row.state, LAC_TRACE_READY);
    ck_assert_str_eq(row.name, "a/b c.json");
    ck_assert_uint_eq(row.event_count, 2);
    ck_assert_uint_eq(row.size_bytes, strlen(small_trace));
    lac_trace_row_done(&row);
    wait_for_staging(0);
    ck_assert_int_eq(count_files("originals"), 1);
    lac_ingest_stats(ingest, &stats);
    ck_assert_uint_eq(stats.imports_done, 1);
    ck_assert_uint_eq(stats.memory_reserved_bytes, 0);
}
END_TEST

START_TEST(what_is_no_trace_fails_with_a_code)
{
    char id[LAC_ID_SIZE];
    struct lac_trace_row row;

    send("x", "hello, I am no trace at all", id);
    row = wait_for(id);
    ck_assert_int_eq(row.state, LAC_TRACE_FAILED);
    ck_assert_str_eq(row.error_code, "corrupt");
    ck_assert(row.error_message[0] != '\0');
    lac_trace_row_done(&row);
    wait_for_staging(0);
    ck_assert_int_eq(count_files("traces"), 0);
    ck_assert_int_eq(count_files("originals"), 0);
}
END_TEST

START_TEST(an_upload_whose_row_was_lost_is_to_be_sent_again)
{
    struct lac_upload *upload = begin("x", 5, false);
    char id[LAC_ID_SIZE];
    struct lac_error error = {0};

    ck_assert_int_eq(lac_upload_write(upload, "12345", 5, &error), LAC_OK);
    ck_assert_int_eq(lac_store_drop(store, lac_upload_id(upload), &error), LAC_OK);
    ck_assert_int_eq(lac_upload_commit(upload, id, NULL, &error), LAC_ERR_BUSY);
    ck_assert_msg(strstr(error.message, "try again") != NULL, "%s", error.message);
    ck_assert_int_eq(count_files("staging"), 0);
}
END_TEST

START_TEST(uploads_of_a_wrong_length_leave_nothing)
{
    struct lac_upload *upload = begin("x", 10, false);
    char id[LAC_ID_SIZE];
    struct lac_error error = {0};

    ck_assert_int_eq(lac_upload_write(upload, "12345678901", 11, &error), LAC_ERR_LIMIT);
    ck_assert_int_eq(lac_upload_write(upload, "12345", 5, &error), LAC_OK);
    ck_assert_int_eq(lac_upload_commit(upload, id, NULL, &error), LAC_ERR_MISUSE);
    upload = begin("x", 0, false);
    ck_assert_int_eq(lac_upload_commit(upload, id, NULL, &error), LAC_ERR_MISUSE);
    upload = begin("x", 0, false);
    ck_assert_int_eq(lac_upload_write(upload, "12345", 5, &error), LAC_OK);
    lac_upload_abort(upload);
    ck_assert_int_eq(count_files("staging"), 0);
    {
        struct lac_trace_query query = {.limit = 10};
        struct lac_trace_list list;

        ck_assert_int_eq(lac_store_list_traces(store, &query, &list, &error), LAC_OK);
        ck_assert_uint_eq(list.count, 0);
        lac_trace_list_done(&list);
    }
}
END_TEST

START_TEST(what_is_larger_than_allowed_is_refused_at_once)
{
    const struct lac_upload_options options = {.total_bytes = (uint64_t)17 << 30};
    struct lac_upload *upload = NULL;
    struct lac_error error = {0};

    ck_assert_int_eq(lac_ingest_begin(ingest, &options, &upload, &error), LAC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(error.message, "16384 MiB"));
}
END_TEST

START_TEST(the_same_content_is_recognised_when_asked)
{
    char first[LAC_ID_SIZE];
    char second[LAC_ID_SIZE];
    struct lac_trace_row row;
    struct lac_upload *upload;
    bool existed = false;
    struct lac_error error;

    send("same", small_trace, first);
    row = wait_for(first);
    lac_trace_row_done(&row);
    upload = begin("same", 0, true);
    ck_assert_int_eq(lac_upload_write(upload, small_trace, strlen(small_trace), &error), LAC_OK);
    ck_assert_int_eq(lac_upload_commit(upload, second, &existed, &error), LAC_OK);
    ck_assert(existed);
    ck_assert_str_eq(first, second);
    send("same", small_trace, second);
    ck_assert_str_ne(first, second);
    row = wait_for(second);
    lac_trace_row_done(&row);
}
END_TEST

START_TEST(progress_is_told_while_receiving)
{
    struct lac_upload *upload = begin("x", 100, false);
    struct lac_ingest_progress progress;
    struct lac_error error;

    ck_assert_int_eq(lac_upload_write(upload, "1234567890", 10, &error), LAC_OK);
    ck_assert(lac_ingest_progress(ingest, lac_upload_id(upload), &progress));
    ck_assert_int_eq(progress.state, LAC_TRACE_RECEIVING);
    ck_assert_uint_eq(progress.done_bytes, 10);
    ck_assert_uint_eq(progress.total_bytes, 100);
    ck_assert_int_eq(lac_ingest_delete(ingest, lac_upload_id(upload), &error), LAC_ERR_MISUSE);
    lac_upload_abort(upload);
    ck_assert(!lac_ingest_progress(ingest, "aaaaaaaaaaaaaaaaaaaaaaaaaa", &progress));
}
END_TEST

START_TEST(a_second_server_on_the_folder_is_refused)
{
    const struct lac_ingest_options options = {.store = store};
    struct lac_ingest *second = NULL;
    struct lac_error error = {0};

    ck_assert_int_eq(lac_ingest_create(&options, &second, &error), LAC_ERR_MISUSE);
    ck_assert_ptr_nonnull(strstr(error.message, "another server"));
}
END_TEST

/** What was uploaded is there, and nothing that the attempt made. */
static void expect_kept(const char *id)
{
    static const char *const made[] = {"work", "trace-0.db", "trace-1.db", "original.zst"};
    char path[160];

    ck_assert(lac_store_upload_is_kept(store, id));
    for (size_t k = 0; k < LAC_COUNT_OF(made); k++) {
        (void)snprintf(path, sizeof(path), "%s/staging/%s/%s", folder, id, made[k]);
        for (int i = 0; i < 500 && access(path, F_OK) == 0; i++) {
            (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        }
        ck_assert_msg(access(path, F_OK) != 0, "%s is left", made[k]);
    }
}

static void retry(const char *id, enum lac_status expected)
{
    struct lac_error error = {0};

    ck_assert_msg(lac_ingest_retry(ingest, id, &error) == expected, "%s", error.message);
}

/** Programs that end as children do when things go wrong. */
START_TEST(a_child_that_dies_is_a_failed_import_only)
{
    static const char *const programs[] = {"/bin/false", "/bin/true", "/no/such/program"};
    char id[LAC_ID_SIZE];
    struct lac_trace_row row;

    close_folder();
    open_folder(programs[_i]);
    send("x", small_trace, id);
    row = wait_for(id);
    ck_assert_int_eq(row.state, LAC_TRACE_FAILED);
    ck_assert_str_eq(row.error_code, _i == 2 ? "io" : "crashed");
    lac_trace_row_done(&row);
    close_folder();
    open_folder(NULL);
    expect_kept(id); /* by the sweep of a start, too */
    retry(id, LAC_OK);
    row = wait_for(id);
    ck_assert_int_eq(row.state, LAC_TRACE_READY);
    ck_assert_ptr_null(row.error_code);
    lac_trace_row_done(&row);
    wait_for_staging(0);
    retry(id, LAC_ERR_MISUSE);
}
END_TEST

/** The name of the trace tells this program's own child how to misbehave. */
START_TEST(a_child_that_crashes_or_lies_is_a_failed_import_only)
{
    static const struct {
        const char *name;
        const char *code;
    } cases[] = {{"crash", "crashed"},   {"lie", "io"},        {"link", "io"},
                 {"garbage", "crashed"}, {"flood", "crashed"}, {"memory", "out_of_memory"}};
    char id[LAC_ID_SIZE];
    struct lac_trace_row row;
    struct lac_error error;

    send(cases[_i].name, small_trace, id);
    row = wait_for(id);
    ck_assert_int_eq(row.state, LAC_TRACE_FAILED);
    ck_assert_str_eq(row.error_code, cases[_i].code);
    lac_trace_row_done(&row);
    expect_kept(id);
    ck_assert_int_eq(count_files("traces"), 0);
    ck_assert_int_eq(count_files("originals"), 0);
    ck_assert_int_eq(lac_ingest_delete(ingest, id, &error), LAC_OK);
    ck_assert_int_eq(count_files("staging"), 0);
    retry(id, LAC_ERR_NOT_FOUND);
}
END_TEST

static int attempts_of(const char *id)
{
    char path[128];
    struct stat info;

    (void)snprintf(path, sizeof(path), "%s/staging/%s/attempts", folder, id);
    ck_assert_int_eq(stat(path, &info), 0);
    return (int)info.st_size;
}

/** As a server leaves it that ends in the middle of an import. */
static void begin_again_in_catalog(const char *id)
{
    const struct lac_store_options options = {.data_dir = folder};
    struct lac_error error = {0};

    ck_assert_int_eq(lac_store_open(&options, &store, &error), LAC_OK);
    ck_assert_int_eq(lac_store_retry(store, id, &error), LAC_OK);
    lac_store_close(store);
}

static bool is_running(void)
{
    struct lac_ingest_stats stats;

    lac_ingest_stats(ingest, &stats);
    return stats.imports_running == 1 && stats.imports_queued == 0;
}

START_TEST(what_is_no_trace_cannot_be_tried_again)
{
    char id[LAC_ID_SIZE];
    struct lac_trace_row row;

    send("x", "hello, I am no trace at all", id);
    row = wait_for(id);
    lac_trace_row_done(&row);
    wait_for_staging(0);
    retry(id, LAC_ERR_MISUSE);
}
END_TEST

START_TEST(an_import_that_was_killed_begins_again_once_at_the_next_start)
{
    char ids[2][LAC_ID_SIZE];
    struct lac_trace_row row;

    send("killed once", small_trace, ids[0]);
    send("killed", small_trace, ids[1]);
    for (int i = 0; i < 2; i++) {
        row = wait_for(ids[i]);
        ck_assert_int_eq(row.state, LAC_TRACE_FAILED);
        ck_assert_str_eq(row.error_code, "killed");
        lac_trace_row_done(&row);
    }
    for (int start = 0; start < 2; start++) { /* the second changes nothing */
        close_folder();
        open_folder(NULL);
        row = wait_for(ids[0]);
        ck_assert_int_eq(row.state, LAC_TRACE_READY);
        lac_trace_row_done(&row);
        row = wait_for(ids[1]);
        ck_assert_int_eq(row.state, LAC_TRACE_FAILED);
        lac_trace_row_done(&row);
        ck_assert_int_eq(attempts_of(ids[1]), 2);
    }
}
END_TEST

START_TEST(an_import_that_ends_the_server_each_time_is_given_up_but_kept)
{
    char id[LAC_ID_SIZE];
    char path[160];
    struct lac_trace_row row;

    close_folder();
    open_folder("/no/such/program");
    send("x", small_trace, id);
    row = wait_for(id);
    lac_trace_row_done(&row);
    expect_kept(id);
    close_folder();
    (void)snprintf(path, sizeof(path), "%s/staging/%s/attempts", folder, id);
    ck_assert_int_eq(truncate(path, 8), 0);
    begin_again_in_catalog(id);
    open_folder(NULL);
    row = wait_for(id);
    ck_assert_int_eq(row.state, LAC_TRACE_FAILED);
    ck_assert_str_eq(row.error_code, "killed");
    lac_trace_row_done(&row);
    retry(id, LAC_OK);
    row = wait_for(id);
    ck_assert_int_eq(row.state, LAC_TRACE_READY);
    lac_trace_row_done(&row);
}
END_TEST

/** Stops the child of an import from outside. */
START_TEST(an_import_that_stands_still_is_ended_after_its_time)
{
    char ids[2][LAC_ID_SIZE];
    struct lac_trace_row row;

    close_folder();
    wall_seconds_max = 1;
    worker_count = 1;
    open_folder(NULL);
    wall_seconds_max = 0;
    worker_count = 2;
    send(_i == 0 ? "stands still" : "closes and stands still", small_trace, ids[0]);
    row = wait_for(ids[0]);
    ck_assert_str_eq(row.error_code, "resource_limit");
    ck_assert_ptr_nonnull(strstr(row.error_message, "--import-time"));
    lac_trace_row_done(&row);
    expect_kept(ids[0]);
    send("killed", small_trace,
         ids[1]); /* the queue goes on; a busy machine ends this one by its time, too */
    row = wait_for(ids[1]);
    ck_assert_int_eq(row.state, LAC_TRACE_FAILED);
    if (strcmp(row.error_code, "resource_limit") != 0) {
        ck_assert_str_eq(row.error_code, "killed");
    }
    lac_trace_row_done(&row);
}
END_TEST

/** Files of this process cannot grow any more, as on a full disk; or can again. */
static void fill_disk(bool is_full)
{
    struct rlimit limit;

    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = is_full ? 1 : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static uint32_t count_rows(void)
{
    struct lac_trace_query query = {.limit = 10};
    struct lac_trace_list list;
    struct lac_error error;
    uint32_t count;

    ck_assert_int_eq(lac_store_list_traces(store, &query, &list, &error), LAC_OK);
    count = list.count;
    lac_trace_list_done(&list);
    return count;
}

START_TEST(what_a_full_disk_keeps_from_being_settled_is_settled_later)
{
    struct lac_upload *upload = begin("x", 0, false);
    char id[LAC_ID_SIZE];
    char go[160];
    struct lac_error error;
    struct lac_trace_row row;

    ck_assert_int_eq(lac_upload_write(upload, "12345", 5, &error), LAC_OK);
    fill_disk(true);
    ck_assert_int_ne(lac_upload_commit(upload, id, NULL, &error), LAC_OK);
    ck_assert_uint_eq(count_rows(), 1); /* which cannot go now */
    fill_disk(false);
    for (int i = 0; i < 3000 && count_rows() > 0; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ck_assert_uint_eq(count_rows(), 0);

    send("waits to crash", small_trace, id);
    /* a start needs room as well: the disk is full only once the child is there */
    (void)snprintf(go, sizeof(go), "%s/staging/%s/here", folder, id);
    for (int i = 0; i < 3000 && access(go, F_OK) != 0; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    (void)snprintf(go, sizeof(go), "%s/staging/%s/go", folder, id);
    fill_disk(true);
    ck_assert_int_ge(open(go, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 0);
    for (int i = 0; i < 3000 && is_running(); i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ck_assert_int_eq(lac_store_get_trace(store, id, &row, &error), LAC_OK);
    ck_assert_int_eq(row.state, LAC_TRACE_IMPORTING); /* nothing could be said of it */
    lac_trace_row_done(&row);
    fill_disk(false);
    row = wait_for(id);
    ck_assert_str_eq(row.error_code, "crashed");
    lac_trace_row_done(&row);
    ck_assert(lac_store_upload_is_kept(store, id));
}
END_TEST

/** How many descriptors this process has. */
static int count_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

START_TEST(what_waits_holds_no_descriptor_and_is_bounded)
{
    const struct lac_upload_options options = {.name = "x"};
    struct lac_upload *upload = NULL;
    struct lac_error error = {0};
    char id[LAC_ID_SIZE];
    int before;

    close_folder();
    worker_count = 1;
    queue_max = 20;
    open_folder(NULL);
    worker_count = 2;
    queue_max = 0;
    send("sleep", small_trace, id);
    for (int i = 0; i < 1000 && !is_running(); i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ck_assert(is_running());
    before = count_descriptors();
    for (int i = 0; i < 20; i++) {
        send("waits", small_trace, id);
    }
    ck_assert_int_le(count_descriptors(), before + 2);
    ck_assert_int_eq(lac_ingest_begin(ingest, &options, &upload, &error), LAC_ERR_BUSY);
    ck_assert_ptr_nonnull(strstr(error.message, "20 imports wait"));
}
END_TEST

START_TEST(deleting_stops_an_import)
{
    char id[LAC_ID_SIZE];
    struct lac_trace_row row;
    struct lac_error error;

    send("sleep", small_trace, id);
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    ck_assert_int_eq(lac_ingest_delete(ingest, id, &error), LAC_OK);
    ck_assert_int_eq(lac_store_get_trace(store, id, &row, &error), LAC_ERR_NOT_FOUND);
    wait_for_staging(0);
    send("after", small_trace, id);
    row = wait_for(id);
    ck_assert_int_eq(row.state, LAC_TRACE_READY);
    lac_trace_row_done(&row);
}
END_TEST

START_TEST(what_was_acknowledged_is_imported_by_the_next_server)
{
    char ids[4][LAC_ID_SIZE];

    for (int i = 0; i < 4; i++) {
        send(i < 2 ? "sleep" : "waits", small_trace, ids[i]); /* two run, two wait */
    }
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    close_folder(); /* kills the two that run */
    ck_assert_int_eq(count_files("staging"), 4);
    open_folder(NULL);
    for (int i = 2; i < 4; i++) { /* the first two sleep again, and are there */
        struct lac_trace_row row;

        ck_assert_int_eq(lac_store_get_trace(store, ids[i - 2], &row, &(struct lac_error){0}),
                         LAC_OK);
        ck_assert_int_eq(row.state, LAC_TRACE_IMPORTING);
        lac_trace_row_done(&row);
        ck_assert_int_eq(lac_ingest_delete(ingest, ids[i - 2], &(struct lac_error){0}), LAC_OK);
    }
    for (int i = 2; i < 4; i++) {
        struct lac_trace_row row = wait_for(ids[i]);

        ck_assert_int_eq(row.state, LAC_TRACE_READY);
        lac_trace_row_done(&row);
    }
}
END_TEST

/** What the child does instead of importing, by the name of the trace (argv[6]). */
static int misbehave(const char *name)
{
    FILE *report = fdopen(5, "w");

    if (strcmp(name, "killed") == 0 ||
        (strcmp(name, "killed once") == 0 && openat(4, "../tried", O_CREAT | O_EXCL, 0600) >= 0)) {
        (void)raise(SIGKILL);
    } else if (strcmp(name, "killed once") == 0) {
        return -1;
    } else if (strcmp(name, "waits to crash") == 0) {
        (void)openat(4, "../here", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        while (faccessat(4, "../go", F_OK, 0) != 0) {
            (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        }
        (void)signal(SIGSEGV, SIG_DFL);
        (void)raise(SIGSEGV);
    } else if (strcmp(name, "stands still") == 0) {
        (void)raise(SIGSTOP);
    } else if (strcmp(name, "closes and stands still") == 0) {
        (void)fputs("r 1 1 1\n", report);
        (void)fclose(report);
        (void)raise(SIGSTOP);
        return 0;
    } else if (strcmp(name, "sleep") == 0) {
        (void)sleep(30);
    } else if (strcmp(name, "crash") == 0) {
        (void)signal(SIGSEGV, SIG_DFL); /* not the sanitizer's */
        (void)raise(SIGSEGV);
    } else if (strcmp(name, "lie") == 0) { /* says three files, leaves none */
        (void)fputs("p 5 x y z\nr 3 1 1\n", report);
    } else if (strcmp(name, "link") == 0) {
        if (fchdir(4) != 0 || symlink("/etc/passwd", "trace-0.db") != 0) {
            return 1;
        }
        (void)fputs("r 1 1 1\n", report);
    } else if (strcmp(name, "garbage") == 0) {
        FILE *trace;
        FILE *original;

        if (fchdir(4) != 0) {
            return 1;
        }
        trace = fopen("trace-0.db", "w");
        original = fopen("original.zst", "w");
        (void)fputs("not a database at all, whatever I say", trace);
        (void)fclose(trace);
        (void)fclose(original);
        (void)fputs("r 1 1 1\n", report);
    } else if (strcmp(name, "flood") == 0) {
        for (int i = 0; i < 100000; i++) {
            (void)fputs("a line that never ends and says nothing ", report);
        }
        (void)fputs("\nr 99999999999 1 1\n", report);
    } else if (strcmp(name, "memory") == 0) {
        (void)fputs("e 1 0 out of memory\n", report);
        (void)fclose(report);
        return 1;
    } else {
        return -1;
    }
    (void)fclose(report);
    return 0;
}

int main(int argc, char **argv)
{
    Suite *suite;
    TCase *tcase;

    if (argc > 1 && strcmp(argv[1], "import-worker") == 0) {
        char name[64] = ""; /* on standard input, for the real one to read again */
        int result = argc == 6 && read(0, name, sizeof(name) - 1) > 0 ? misbehave(name) : -1;

        (void)lseek(0, 0, SEEK_SET);

        return result >= 0 ? result : lac_cmd_import_worker(argc - 1, argv + 1);
    }
    suite = suite_create("ingest");
    tcase = tcase_create("uploads and imports");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, an_upload_becomes_a_trace);
    tcase_add_test(tcase, what_is_no_trace_fails_with_a_code);
    tcase_add_test(tcase, an_upload_whose_row_was_lost_is_to_be_sent_again);
    tcase_add_test(tcase, uploads_of_a_wrong_length_leave_nothing);
    tcase_add_test(tcase, what_is_larger_than_allowed_is_refused_at_once);
    tcase_add_test(tcase, the_same_content_is_recognised_when_asked);
    tcase_add_test(tcase, progress_is_told_while_receiving);
    tcase_add_test(tcase, a_second_server_on_the_folder_is_refused);
    tcase_add_loop_test(tcase, a_child_that_dies_is_a_failed_import_only, 0, 3);
    tcase_add_loop_test(tcase, a_child_that_crashes_or_lies_is_a_failed_import_only, 0, 6);
    tcase_add_test(tcase, what_is_no_trace_cannot_be_tried_again);
    tcase_add_test(tcase, an_import_that_was_killed_begins_again_once_at_the_next_start);
    tcase_add_test(tcase, an_import_that_ends_the_server_each_time_is_given_up_but_kept);
    tcase_add_loop_test(tcase, an_import_that_stands_still_is_ended_after_its_time, 0, 2);
    if (catalog_is_file()) {
        tcase_add_test(tcase, what_a_full_disk_keeps_from_being_settled_is_settled_later);
    }
    tcase_add_test(tcase, what_waits_holds_no_descriptor_and_is_bounded);
    tcase_add_test(tcase, deleting_stops_an_import);
    tcase_add_test(tcase, what_was_acknowledged_is_imported_by_the_next_server);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
