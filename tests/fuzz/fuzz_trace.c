/*
 * A trace file in which any values were replaced: refused, or every question about it ends.
 *
 * Input: patches, each u8 column of all columns of all tables, u8 row, u8 what becomes of the value
 * (enum patch_kind), u8 length, the bytes.
 */

#include "analysis/diagnose/diagnose.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_writer.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/support/ask_trace.h"
#include "tests/support/rich_model.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum patch_kind { PATCH_NUMBER, PATCH_BLOB, PATCH_PACKED, PATCH_TEXT, PATCH_NULL, PATCH_KINDS };

enum { COLUMNS_MAX = 256, PATCHES_MAX = 16, LAUNCHES = 120 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64];
static char path[96];
static uint8_t *pristine;
static size_t pristine_bytes;
static char *updates[COLUMNS_MAX]; /* SQL: ?1 the value, ?2 which row */
static unsigned update_count;
static uint32_t questions;

/* The questions walk on: with the same input they are the same. */
static uint32_t pick(uint32_t below)
{
    questions = questions * 1664525U + 1013904223U;
    return (questions >> 8) % below;
}

static void clean_up(void)
{
    (void)unlink(path);
    (void)rmdir(folder);
}

static void write_pristine(void)
{
    struct lac_model *model = NULL;
    struct lac_analysis *analysis = NULL;
    struct lac_trace_write_options options = {
        .path = path, .generation = 1, .documents = {[LAC_DOCUMENT_ANALYSIS] = {"{}", 2}}};
    struct lac_error error = {0};
    FILE *stream;

    require(rich_model_create(7, LAUNCHES, &model) == LAC_OK);
    require(lac_diagnose(model, NULL, &analysis, &error) == LAC_OK);
    require(lac_diagnose_add_tracks(analysis, model) == LAC_OK);
    options.analysis = analysis;
    require(lac_trace_write(model, &options, &error) == LAC_OK);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
    stream = fopen(path, "rb");
    require(stream != NULL && fseek(stream, 0, SEEK_END) == 0);
    pristine_bytes = (size_t)ftell(stream);
    rewind(stream);
    pristine = malloc(pristine_bytes);
    require(fread(pristine, 1, pristine_bytes, stream) == pristine_bytes);
    (void)fclose(stream);
}

static void list_columns(void)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *columns = NULL;

    require(sqlite3_open(path, &db) == SQLITE_OK);
    require(
        sqlite3_prepare_v2(db,
                           "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c"
                           " WHERE t.type = 'table' ORDER BY t.name, c.cid",
                           -1, &columns, NULL) == SQLITE_OK);
    while (sqlite3_step(columns) == SQLITE_ROW && update_count < COLUMNS_MAX) {
        const char *table = (const char *)sqlite3_column_text(columns, 0);
        const char *column = (const char *)sqlite3_column_text(columns, 1);

        updates[update_count] = sqlite3_mprintf(
            "UPDATE OR IGNORE \"%w\" SET \"%w\" = ?1 WHERE rowid = (SELECT rowid FROM \"%w\""
            " LIMIT 1 OFFSET ?2 %% (SELECT max(1, count(*)) FROM \"%w\"))",
            table, column, table, table);
        require(updates[update_count] != NULL);
        update_count++;
    }
    (void)sqlite3_finalize(columns);
    (void)sqlite3_close(db);
    require(update_count > 50);
}

static void set_up(void)
{
    const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    (void)snprintf(folder, sizeof(folder), "%s/lacuna-fuzz-XXXXXX", memory);
    require(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof(path), "%s/trace.db", folder);
    (void)atexit(clean_up);
    write_pristine();
    list_columns();
}

static void bind(sqlite3_stmt *update, unsigned kind, const uint8_t *bytes, int length)
{
    uint8_t packed[ZSTD_COMPRESSBOUND(UINT8_MAX)];
    int64_t number = 0;
    size_t packed_bytes;

    switch (kind) {
    case PATCH_NUMBER:
        memcpy(&number, bytes, (size_t)(length < 8 ? length : 8));
        (void)sqlite3_bind_int64(update, 1, number);
        break;
    case PATCH_BLOB:
        (void)sqlite3_bind_blob(update, 1, bytes, length, SQLITE_STATIC);
        break;
    case PATCH_PACKED:
        packed_bytes = ZSTD_compress(packed, sizeof(packed), bytes, (size_t)length, 1);
        (void)sqlite3_bind_blob(update, 1, packed, (int)packed_bytes, SQLITE_TRANSIENT);
        break;
    case PATCH_TEXT:
        (void)sqlite3_bind_text(update, 1, (const char *)bytes, length, SQLITE_STATIC);
        break;
    default:
        (void)sqlite3_bind_null(update, 1);
        break;
    }
}

static void patch(sqlite3 *db, const uint8_t *data, size_t size)
{
    (void)sqlite3_exec(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN", NULL, NULL,
                       NULL);
    for (int i = 0; i < PATCHES_MAX && size >= 4; i++) {
        size_t length = data[3] < size - 4 ? data[3] : size - 4;
        sqlite3_stmt *update = NULL;

        if (sqlite3_prepare_v2(db, updates[data[0] % update_count], -1, &update, NULL) ==
            SQLITE_OK) {
            bind(update, data[2] % PATCH_KINDS, data + 4, (int)length);
            (void)sqlite3_bind_int(update, 2, data[1]);
            (void)sqlite3_step(update); /* a constraint may refuse it */
        }
        (void)sqlite3_finalize(update);
        data += 4 + length;
        size -= 4 + length;
    }
    (void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};
    sqlite3 *db = NULL;
    FILE *stream;

    if (pristine == NULL) {
        set_up();
    }
    stream = fopen(path, "wb");
    require(stream != NULL && fwrite(pristine, 1, pristine_bytes, stream) == pristine_bytes);
    (void)fclose(stream);
    if (sqlite3_open(path, &db) == SQLITE_OK) {
        patch(db, data, size);
    }
    (void)sqlite3_close(db);
    /* lies, not rot: behind right checksums. A file whose header the patch broke stays as it is. */
    (void)!lac_checked_stamp(path, &error);
    error = (struct lac_error){0};
    questions = (uint32_t)size;
    if (lac_trace_file_open(path, 8 << 20, &file, &error) == LAC_OK) {
        ask_everything(file, pick);
        lac_trace_file_close(file);
    } else {
        require(error.message[0] != '\0' && size > 0);
    }
    return 0;
}
