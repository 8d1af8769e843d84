#include "server/store/database/postgres_catalog.h"

#include "analysis/model/status.h"
#include "server/store/database/database.h"
#include "server/store/database/holder.h"
#include "server/store/database/postgres_database.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** What the catalog's SQL calls and only SQLite has. */
static const char functions[] =
    "CREATE FUNCTION instr(text, text) RETURNS integer LANGUAGE sql IMMUTABLE AS"
    " 'SELECT strpos($1, $2)';"
    "CREATE FUNCTION ascii_lower(text) RETURNS text LANGUAGE sql IMMUTABLE AS"
    " 'SELECT translate($1, ''ABCDEFGHIJKLMNOPQRSTUVWXYZ'', ''abcdefghijklmnopqrstuvwxyz'')';"
    "CREATE FUNCTION json_each(list text) RETURNS TABLE(key bigint, value text) LANGUAGE sql"
    " IMMUTABLE AS 'SELECT n - 1, v FROM json_array_elements_text(list::json) WITH ORDINALITY"
    " AS e(v, n)'";

/** SQLite numbers a new row behind the largest number that there is, also one that a row was given
 * later; an identity only counts. */
static const char numbering[] =
    "CREATE FUNCTION number_behind() RETURNS trigger LANGUAGE plpgsql AS 'DECLARE"
    " numbers text := pg_get_serial_sequence(''traces'', ''seq'');"
    " BEGIN PERFORM setval(numbers, greatest(NEW.seq, nextval(numbers))); RETURN NULL; END';"
    "CREATE TRIGGER number_behind AFTER UPDATE OF seq ON traces FOR EACH ROW"
    " WHEN (NEW.seq <> OLD.seq) EXECUTE FUNCTION number_behind()";

/** DIR/catalog.url: the address, and the id that the catalog knows the folder by. */
struct place {
    char address[LAC_CATALOG_ADDRESS_BYTES];
    char owner[LAC_OWNER_BYTES]; /**< "" not yet */
};

enum { PATH_BYTES = 4096 };

static void path_of(const char *data_dir, const char *name, char *out)
{
    (void)snprintf(out, PATH_BYTES, "%.4000s/%s", data_dir, name);
}

static bool is_owner(const char *text)
{
    return strlen(text) < LAC_OWNER_BYTES &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(text);
}

static void cut_line(char *line)
{
    line[strcspn(line, "\r\n")] = '\0';
}

static enum lac_status read_place(const char *data_dir, const char *name, struct place *ret_place,
                                  struct lac_error *reterr)
{
    char path[PATH_BYTES];
    char line[LAC_OWNER_BYTES + 8] = "";
    FILE *file;

    *ret_place = (struct place){0};
    path_of(data_dir, name, path);
    file = fopen(path, "re");
    if (file == NULL) {
        return errno == ENOENT ? LAC_ERR_NOT_FOUND
                               : lac_fail(reterr, LAC_ERR_IO, 0, "cannot read catalog.url: %s",
                                          strerror(errno));
    }
    if (fgets(ret_place->address, sizeof(ret_place->address), file) == NULL) {
        ret_place->address[0] = '\0';
    } else if (fgets(line, sizeof(line), file) == NULL) {
        line[0] = '\0';
    }
    (void)fclose(file);
    cut_line(ret_place->address);
    cut_line(line);
    (void)snprintf(ret_place->owner, sizeof(ret_place->owner), "%.*s", LAC_OWNER_BYTES - 1, line);
    if (!lac_db_is_postgres(ret_place->address) || !is_owner(line)) {
        return lac_fail(reterr, LAC_ERR_IO, 0,
                        "catalog.url in the data folder is damaged: its first line is the "
                        "catalog's address; write it again, or give --catalog");
    }
    return LAC_OK;
}

static enum lac_status sync_folder(const char *data_dir, struct lac_error *reterr)
{
    const int fd = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool written = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    return written ? LAC_OK
                   : lac_fail(reterr, LAC_ERR_IO, 0,
                              "cannot write catalog.url in the data folder: %s", strerror(errno));
}

/** As a whole or not at all, for its owner's eyes: a password may be in it. */
static enum lac_status write_place(const char *data_dir, const char *name,
                                   const struct place *place, struct lac_error *reterr)
{
    char fresh[PATH_BYTES];
    char path[PATH_BYTES];
    char text[LAC_CATALOG_ADDRESS_BYTES + LAC_OWNER_BYTES + 2];
    const int length = snprintf(text, sizeof(text), "%s\n%s\n", place->address, place->owner);
    bool written;
    int fd;

    path_of(data_dir, name, path);
    path_of(data_dir, "catalog.url.new", fresh);
    (void)unlink(fresh);
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    written = fd >= 0 && write(fd, text, (size_t)length) == length && fsync(fd) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (!written || rename(fresh, path) != 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot write catalog.url in the data folder: %s",
                        strerror(errno));
    }
    return sync_folder(data_dir, reterr);
}

bool lac_db_is_elsewhere(const char *data_dir, const char *address)
{
    char path[PATH_BYTES];

    path_of(data_dir, "catalog.url", path);
    return address != NULL || access(path, F_OK) == 0;
}

static enum lac_status read_state(struct lac_db *db, int *ret_version, char *owner,
                                  struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status =
        lac_db_prepare(db, "SELECT version, owner FROM catalog_version", &get, reterr);

    if (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_ERR_NOT_FOUND) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                          "the catalog is damaged: its table catalog_version is empty");
    }
    if (status == LAC_OK) {
        *ret_version = lac_db_int(get, 0);
        (void)snprintf(owner, LAC_OWNER_BYTES, "%s", lac_db_text(get, 1));
    }
    lac_db_finalize(get);
    return status;
}

/** Within a transaction: nobody else changes the catalog meanwhile. */
static enum lac_status migrate(struct lac_db *db, const struct lac_postgres_catalog *catalog,
                               struct lac_holder *holder, struct lac_error *reterr)
{
    char owner[LAC_OWNER_BYTES] = "";
    int version = 0;
    enum lac_status status = read_state(db, &version, owner, reterr);

    if (status == LAC_OK && (version < 0 || version > catalog->version)) {
        status = lac_fail(reterr, LAC_ERR_LIMIT, 0,
                          "the catalog has version %d, this program knows up to %d: use a newer "
                          "lacuna",
                          version, catalog->version);
    }
    if (status == LAC_OK) {
        status = lac_holder_take(db, owner, holder, reterr);
    }
    if (status == LAC_OK && version == 0) {
        status = lac_db_run_postgres(db, functions, reterr);
    }
    for (int i = version; i < catalog->version && status == LAC_OK; i++) {
        status = lac_db_run(db, catalog->migrations[i], reterr);
    }
    if (status == LAC_OK && version == 0) {
        status = lac_db_run_postgres(db, numbering, reterr);
    }
    if (status == LAC_OK && (version < catalog->version || owner[0] == '\0')) {
        struct lac_statement *put = NULL;

        status =
            lac_db_prepare(db, "UPDATE catalog_version SET version = ?1, owner = ?2", &put, reterr);
        if (status == LAC_OK) {
            lac_db_bind_i64(put, 1, catalog->version);
            lac_db_bind_text(put, 2, holder->owner);
            status = lac_db_step_done(put, "catalog", reterr);
        }
        lac_db_finalize(put);
    }
    return status;
}

/** Nothing but to look whether what is there can be read by this version. */
static enum lac_status may_read(struct lac_db *db, const struct lac_postgres_catalog *catalog,
                                struct lac_error *reterr)
{
    struct lac_holder_seen seen;
    char owner[LAC_OWNER_BYTES] = "";
    int version = 0;
    enum lac_status status = read_state(db, &version, owner, reterr);

    if (status == LAC_OK && version > catalog->version) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0,
                        "the catalog has version %d, this program knows up to %d: use a newer "
                        "lacuna",
                        version, catalog->version);
    }
    if (status != LAC_OK || version < catalog->version ||
        lac_holder_look(db, &seen, reterr) != LAC_OK) {
        return lac_fail(reterr, LAC_ERR_BUSY, 0,
                        "the server that holds the catalog is of an older version: this one only "
                        "waits");
    }
    return LAC_OK;
}

enum lac_status lac_db_open_elsewhere(const struct lac_postgres_catalog *catalog,
                                      struct lac_db **ret_db, struct lac_error *reterr)
{
    assert(catalog != NULL && catalog->data_dir != NULL && ret_db != NULL);
    const char *const data_dir = catalog->data_dir;
    const char *const address = catalog->address;
    char path[PATH_BYTES];
    struct place place;
    struct lac_holder holder = {.node = catalog->node};
    struct lac_db *db = NULL;
    struct stat info;
    bool is_new = false;
    const char *const name = catalog->is_arriving ? "catalog.url.part" : "catalog.url";
    enum lac_status status = read_place(data_dir, name, &place, reterr);

    if (status != LAC_OK && status != LAC_ERR_NOT_FOUND && address == NULL) {
        return status;
    }
    path_of(data_dir, "catalog.db", path);
    if (!catalog->is_arriving && stat(path, &info) == 0 && info.st_size > 0) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "the data folder %s has its catalog in catalog.db: `lacuna admin "
                        "move-catalog` carries it into PostgreSQL",
                        data_dir);
    }
    if (address != NULL && strlen(address) >= sizeof(place.address)) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "the catalog's address is longer than %d bytes",
                        LAC_CATALOG_ADDRESS_BYTES - 1);
    }
    if (address != NULL && (strchr(address, '\n') != NULL || !lac_db_is_postgres(address))) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "the catalog's address is postgresql://[USER[:PASSWORD]@]HOST[:PORT]/"
                        "DATABASE, or words of libpq such as 'host=/run/postgresql dbname=lacuna'");
    }
    if (address != NULL && strcmp(address, place.address) != 0) {
        (void)snprintf(place.address, sizeof(place.address), "%s", address);
        is_new = true;
    }
    status = lac_db_connect(place.address, &db, reterr);
    if (status != LAC_OK) {
        return status;
    }
    if (place.owner[0] == '\0') {
        (void)snprintf(place.owner, sizeof(place.owner), "%s", catalog->fresh_owner);
        status = write_place(data_dir, name, &place, reterr); /* before the catalog knows it */
        is_new = false;
    }
    if (status == LAC_OK && catalog->only_reads) {
        lac_db_only_read(db);
        status = may_read(db, catalog, reterr);
    } else if (status == LAC_OK) {
        holder.owner = place.owner;
        status = lac_db_begin(db, true, reterr);
        if (status == LAC_OK) {
            status = lac_db_end(db, migrate(db, catalog, &holder, reterr), reterr);
        }
    }
    if (status == LAC_OK && !catalog->only_reads) {
        lac_db_fence(db, place.owner);
    }
    if (status == LAC_OK && is_new) { /* only now it is known to be the same catalog */
        status = write_place(data_dir, name, &place, reterr);
    }
    if (status != LAC_OK) {
        lac_db_close(db);
        return status;
    }
    if (catalog->ret_is_arriving != NULL) {
        *catalog->ret_is_arriving = holder.is_arriving;
    }
    *ret_db = db;
    return LAC_OK;
}

enum lac_status lac_db_hold_elsewhere(const char *data_dir, void (*is_lost)(void *context),
                                      void *context, struct lac_hold **ret_hold,
                                      struct lac_error *reterr)
{
    struct place place;
    const enum lac_status status = read_place(data_dir, "catalog.url", &place, reterr);

    return status == LAC_OK
               ? lac_hold_start(place.address, place.owner, is_lost, context, ret_hold, reterr)
               : status;
}

enum lac_status lac_db_watch_elsewhere(const char *data_dir, const struct lac_watch_ears *ears,
                                       struct lac_watch **ret_watch, struct lac_error *reterr)
{
    struct place place;
    const enum lac_status status = read_place(data_dir, "catalog.url", &place, reterr);

    return status == LAC_OK ? lac_watch_start(place.address, ears, ret_watch, reterr) : status;
}

enum lac_status lac_db_settle_elsewhere(const char *data_dir, struct lac_error *reterr)
{
    char part[PATH_BYTES];
    char path[PATH_BYTES];

    path_of(data_dir, "catalog.url.part", part);
    path_of(data_dir, "catalog.url", path);
    return rename(part, path) == 0
               ? sync_folder(data_dir, reterr)
               : lac_fail(reterr, LAC_ERR_IO, 0, "cannot write catalog.url in the data folder: %s",
                          strerror(errno));
}
