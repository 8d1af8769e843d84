#include "server/store/trace/checked_file.h"

#include "analysis/model/status.h"
#include "server/store/trace/pieces/pieces.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum {
    HEADER_BYTES = 100,     /* of a SQLite file */
    PAGE_SIZE_AT = 16,      /* two bytes, big endian; 1 is 65536 */
    RESERVED_AT = 20,       /* bytes at the end of each page that are not SQLite's */
    PAGE_COUNT_AT = 28,     /* four bytes, big endian */
    PAGE_BYTES_MIN = 512,   /* as SQLite has it */
    PAGE_BYTES_MAX = 65536, /* the same */
    OP_BEGIN = 0x4C414301,  /* of ours for sqlite3_file_control */
    OP_STATE = 0x4C414302,
    OP_PROBLEM = 0x4C414303,
};

static const char magic[16] = "SQLite format 3";

/** What OP_STATE tells. */
struct state {
    bool is_checked;
    bool is_damaged;
    uint64_t bad_offset;
    unsigned page_bytes;
};

struct checked_file {
    sqlite3_file base;
    unsigned page_bytes; /**< 0: not known yet */
    bool is_checked;
    bool is_damaged;
    uint64_t bad_offset;
    uint8_t *scratch;          /**< PAGE_BYTES_MAX, made when first needed */
    struct lac_pieces *pieces; /**< of a file that is not whole; NULL: it is */
    sqlite3_file *real;
};

static sqlite3_vfs checked_vfs;
static sqlite3_vfs *system_vfs;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_ready;

/* -- the hash: XXH64 --------------------------------------------------------------------------- */

static const uint64_t prime[5] = {0x9E3779B185EBCA87U, 0xC2B2AE3D27D4EB4FU, 0x165667B19E3779F9U,
                                  0x85EBCA77C2B2AE63U, 0x27D4EB2F165667C5U};

static uint64_t rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static uint64_t load64(const uint8_t *bytes)
{
    uint64_t value;

    memcpy(&value, bytes, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static void store64(uint8_t *bytes, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t mix(uint64_t sum, uint64_t word)
{
    return rotate(sum + word * prime[1], 31) * prime[0];
}

uint64_t lac_hash64(const void *bytes, size_t size_bytes, uint64_t seed)
{
    const uint8_t *at = bytes;
    size_t left = size_bytes;
    uint64_t hash = seed + prime[4];

    if (left >= 32) {
        uint64_t lane[4] = {seed + prime[0] + prime[1], seed + prime[1], seed, seed - prime[0]};

        for (; left >= 32; left -= 32, at += 32) {
            lane[0] = mix(lane[0], load64(at));
            lane[1] = mix(lane[1], load64(at + 8));
            lane[2] = mix(lane[2], load64(at + 16));
            lane[3] = mix(lane[3], load64(at + 24));
        }
        hash = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
        for (unsigned i = 0; i < 4; i++) {
            hash = (hash ^ mix(0, lane[i])) * prime[0] + prime[3];
        }
    }
    hash += size_bytes;
    for (; left >= 8; left -= 8, at += 8) {
        hash = rotate(hash ^ mix(0, load64(at)), 27) * prime[0] + prime[3];
    }
    for (; left > 0; left--, at++) {
        hash = rotate(hash ^ *at * prime[4], 11) * prime[0];
    }
    hash = (hash ^ hash >> 33) * prime[1];
    hash = (hash ^ hash >> 29) * prime[2];
    return hash ^ hash >> 32;
}

/** `number` from 0: a page in another page's place has another checksum. */
static uint64_t page_sum(const uint8_t *page, unsigned page_bytes, uint64_t number)
{
    return lac_hash64(page, page_bytes - LAC_CHECKSUM_BYTES, number + 1);
}

static bool page_is_whole(const uint8_t *page, unsigned page_bytes, uint64_t number)
{
    return load64(page + page_bytes - LAC_CHECKSUM_BYTES) == page_sum(page, page_bytes, number);
}

/* -- pages --------------------------------------------------------------------------------------*/

/** Page size of a header, 0 when it is none. */
static unsigned header_page_bytes(const uint8_t *header)
{
    unsigned size = (unsigned)header[PAGE_SIZE_AT] << 8 | header[PAGE_SIZE_AT + 1];

    size = size == 1 ? PAGE_BYTES_MAX : size;
    return memcmp(header, magic, sizeof(magic)) == 0 && size >= PAGE_BYTES_MIN &&
                   (size & (size - 1)) == 0
               ? size
               : 0;
}

static uint64_t page_count(const uint8_t *header)
{
    const uint8_t *count = header + PAGE_COUNT_AT;

    return (uint64_t)count[0] << 24 | (uint64_t)count[1] << 16 | (uint64_t)count[2] << 8 | count[3];
}

static void learn(struct checked_file *file, const uint8_t *header)
{
    unsigned size = header_page_bytes(header);

    if (size > 0) {
        file->page_bytes = size;
        file->is_checked = header[RESERVED_AT] == LAC_CHECKSUM_BYTES;
    }
}

static int check(struct checked_file *file, const uint8_t *page, uint64_t offset)
{
    if (page_is_whole(page, file->page_bytes, offset / file->page_bytes)) {
        return SQLITE_OK;
    }
    file->is_damaged = true;
    file->bad_offset = offset;
    return SQLITE_IOERR_DATA;
}

static bool need_scratch(struct checked_file *file)
{
    if (file->scratch == NULL) {
        file->scratch = sqlite3_malloc(PAGE_BYTES_MAX);
    }
    return file->scratch != NULL;
}

/** What the file holds, had first where it is not whole. */
static int real_read(struct checked_file *file, void *out, int amount, sqlite3_int64 offset)
{
    if (file->pieces != NULL &&
        !lac_pieces_need(file->pieces, (uint64_t)offset, (uint64_t)amount)) {
        return SQLITE_IOERR_READ;
    }
    return file->real->pMethods->xRead(file->real, out, amount, offset);
}

/** Any range, page by page: what lies in a damaged page is not handed out. */
static int read_range(struct checked_file *file, uint8_t *out, uint64_t amount, uint64_t offset)
{
    int result = SQLITE_OK;

    if (!need_scratch(file)) {
        return SQLITE_IOERR_NOMEM;
    }
    while (amount > 0 && result == SQLITE_OK) {
        uint64_t start = offset - offset % file->page_bytes;
        uint64_t size = start + file->page_bytes - offset;

        size = size < amount ? size : amount;
        result = real_read(file, file->scratch, (int)file->page_bytes, (sqlite3_int64)start);
        if (result == SQLITE_OK) {
            result = check(file, file->scratch, start);
        }
        if (result == SQLITE_OK) {
            memcpy(out, file->scratch + (offset - start), size);
        } else if (result == SQLITE_IOERR_SHORT_READ) {
            memset(out, 0, amount); /* as SQLite wants it */
        }
        out += size;
        offset += size;
        amount -= size;
    }
    return result;
}

static int checked_read(sqlite3_file *base, void *out, int amount, sqlite3_int64 offset)
{
    struct checked_file *file = (struct checked_file *)base;
    int result;

    if (file->page_bytes == 0) {
        uint8_t header[HEADER_BYTES];

        if (real_read(file, header, sizeof(header), 0) == SQLITE_OK) {
            learn(file, header);
        }
    }
    /* SQLite looks at the header without a lock, then reads the page that it is in with one */
    if (!file->is_checked || file->page_bytes == 0 || offset + amount <= HEADER_BYTES) {
        return real_read(file, out, amount, offset);
    }
    if ((unsigned)amount != file->page_bytes || (uint64_t)offset % file->page_bytes != 0) {
        return read_range(file, out, (uint64_t)amount, (uint64_t)offset);
    }
    result = real_read(file, out, amount, offset);
    return result == SQLITE_OK ? check(file, out, (uint64_t)offset) : result;
}

static int checked_write(sqlite3_file *base, const void *bytes, int amount, sqlite3_int64 offset)
{
    struct checked_file *file = (struct checked_file *)base;
    uint8_t *page;

    if (offset == 0 && amount >= HEADER_BYTES) {
        learn(file, bytes);
    }
    if (!file->is_checked || file->page_bytes == 0) {
        return file->real->pMethods->xWrite(file->real, bytes, amount, offset);
    }
    if ((unsigned)amount != file->page_bytes || (uint64_t)offset % file->page_bytes != 0) {
        return SQLITE_IOERR_WRITE; /* SQLite writes whole pages */
    }
    /* into SQLite's own page, as its checksum VFS does: so the page has it in the journal too, and
     * is whole again when another program rolls the journal back */
    memcpy(&page, &bytes, sizeof(page));
    store64(page + amount - LAC_CHECKSUM_BYTES,
            page_sum(page, file->page_bytes, (uint64_t)offset / file->page_bytes));
    return file->real->pMethods->xWrite(file->real, page, amount, offset);
}

/* -- the rest is passed on ----------------------------------------------------------------------*/

static sqlite3_file *real_of(sqlite3_file *base)
{
    return ((struct checked_file *)base)->real;
}

static int checked_close(sqlite3_file *base)
{
    struct checked_file *file = (struct checked_file *)base;
    int result = file->real->pMethods->xClose(file->real);

    lac_pieces_release(file->pieces);
    file->pieces = NULL;
    sqlite3_free(file->scratch);
    file->scratch = NULL;
    return result;
}

static int checked_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    return real_of(base)->pMethods->xTruncate(real_of(base), size);
}

static int checked_sync(sqlite3_file *base, int flags)
{
    return real_of(base)->pMethods->xSync(real_of(base), flags);
}

static int checked_file_size(sqlite3_file *base, sqlite3_int64 *ret_size)
{
    return real_of(base)->pMethods->xFileSize(real_of(base), ret_size);
}

static int checked_lock(sqlite3_file *base, int level)
{
    return real_of(base)->pMethods->xLock(real_of(base), level);
}

static int checked_unlock(sqlite3_file *base, int level)
{
    return real_of(base)->pMethods->xUnlock(real_of(base), level);
}

static int checked_reserved_lock(sqlite3_file *base, int *ret_is_locked)
{
    return real_of(base)->pMethods->xCheckReservedLock(real_of(base), ret_is_locked);
}

static int checked_control(sqlite3_file *base, int op, void *argument)
{
    struct checked_file *file = (struct checked_file *)base;

    if (op == OP_BEGIN) {
        file->page_bytes = *(const unsigned *)argument;
        file->is_checked = true;
        return SQLITE_OK;
    }
    if (op == OP_STATE) {
        *(struct state *)argument = (struct state){.is_checked = file->is_checked,
                                                   .is_damaged = file->is_damaged,
                                                   .bad_offset = file->bad_offset,
                                                   .page_bytes = file->page_bytes};
        return SQLITE_OK;
    }
    if (op == OP_PROBLEM) {
        if (file->pieces != NULL) {
            lac_pieces_problem(file->pieces, argument, LAC_CHECKED_PROBLEM_BYTES);
        }
        return SQLITE_OK;
    }
    return file->real->pMethods->xFileControl(file->real, op, argument);
}

static int checked_sector_size(sqlite3_file *base)
{
    return real_of(base)->pMethods->xSectorSize(real_of(base));
}

static int checked_characteristics(sqlite3_file *base)
{
    /* no atomic batches: they would go around the journal whose order we know */
    return real_of(base)->pMethods->xDeviceCharacteristics(real_of(base)) &
           ~SQLITE_IOCAP_BATCH_ATOMIC;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1, /* neither shared memory for a write-ahead log nor mapped pages */
    .xClose = checked_close,
    .xRead = checked_read,
    .xWrite = checked_write,
    .xTruncate = checked_truncate,
    .xSync = checked_sync,
    .xFileSize = checked_file_size,
    .xLock = checked_lock,
    .xUnlock = checked_unlock,
    .xCheckReservedLock = checked_reserved_lock,
    .xFileControl = checked_control,
    .xSectorSize = checked_sector_size,
    .xDeviceCharacteristics = checked_characteristics,
};

static int checked_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags,
                        int *ret_flags)
{
    struct checked_file *file = (struct checked_file *)base;
    int result;

    (void)vfs;
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0) { /* journals have checksums of their own */
        return system_vfs->xOpen(system_vfs, name, base, flags, ret_flags);
    }
    memset(file, 0, sizeof(*file));
    file->real = (sqlite3_file *)(file + 1);
    result = system_vfs->xOpen(system_vfs, name, file->real, flags, ret_flags);
    if (file->real->pMethods != NULL) {
        file->base.pMethods = &methods; /* else it is not closed */
        file->pieces = lac_pieces_find(name);
    }
    return result;
}

static int full_pathname(sqlite3_vfs *vfs, const char *name, int capacity_bytes, char *out)
{
    size_t length = strlen(name);

    (void)vfs;
    if (length + 1 > (size_t)capacity_bytes) {
        return SQLITE_CANTOPEN;
    }
    memcpy(out, name, length + 1);
    return SQLITE_OK;
}

static void register_vfs(void)
{
    if (sqlite3_initialize() != SQLITE_OK) {
        return;
    }
    system_vfs = sqlite3_vfs_find("unix");
    if (system_vfs == NULL) {
        return;
    }
    checked_vfs = *system_vfs;
    checked_vfs.zName = LAC_CHECKED_VFS;
    checked_vfs.pNext = NULL;
    checked_vfs.szOsFile = (int)sizeof(struct checked_file) + system_vfs->szOsFile;
    checked_vfs.xOpen = checked_open;
    checked_vfs.xFullPathname = full_pathname;
    is_ready = sqlite3_vfs_register(&checked_vfs, 0) == SQLITE_OK;
}

bool lac_checked_register(void)
{
    (void)pthread_once(&once, register_vfs);
    return is_ready;
}

/* -- for the store ------------------------------------------------------------------------------*/

enum lac_status lac_checked_begin(sqlite3 *db, unsigned page_bytes, struct lac_error *reterr)
{
    int reserved = LAC_CHECKSUM_BYTES;

    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved) != SQLITE_OK ||
        sqlite3_file_control(db, "main", OP_BEGIN, &page_bytes) != SQLITE_OK) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "SQLite does not keep room for checksums");
    }
    return LAC_OK;
}

static struct state state_of(sqlite3 *db)
{
    struct state state = {0};

    if (db != NULL) {
        (void)sqlite3_file_control(db, "main", OP_STATE, &state);
    }
    return state;
}

bool lac_checked_is_on(sqlite3 *db)
{
    return state_of(db).is_checked;
}

bool lac_checked_damage(sqlite3 *db, uint64_t *ret_offset_bytes)
{
    struct state state = state_of(db);

    *ret_offset_bytes = state.bad_offset;
    return state.is_damaged;
}

void lac_checked_problem(sqlite3 *db, char *out)
{
    out[0] = '\0';
    if (db != NULL) {
        (void)sqlite3_file_control(db, "main", OP_PROBLEM, out);
    }
}

bool lac_checked_begins(const void *bytes, size_t size_bytes)
{
    const uint8_t *const page = bytes;
    const unsigned page_bytes = size_bytes >= HEADER_BYTES ? header_page_bytes(page) : 0;

    return page_bytes > 0 && page_bytes <= size_bytes && page[RESERVED_AT] == LAC_CHECKSUM_BYTES &&
           page_is_whole(page, page_bytes, 0);
}

enum lac_status lac_checked_scan(sqlite3 *db, uint64_t *ret_bad_count, uint64_t *ret_bad_offset,
                                 struct lac_error *reterr)
{
    const struct state state = state_of(db);
    sqlite3_file *file = NULL;
    uint8_t *page = NULL;
    uint64_t count = 0;

    *ret_bad_count = 0;
    *ret_bad_offset = 0;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
        file == NULL || file->pMethods == NULL || state.page_bytes == 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "the file cannot be read");
    }
    page = malloc(state.page_bytes);
    if (page == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t number = 0; number == 0 || number < count; number++) {
        const sqlite3_int64 offset = (sqlite3_int64)number * (sqlite3_int64)state.page_bytes;
        int result = file->pMethods->xRead(file, page, (int)state.page_bytes, offset);

        if (result != SQLITE_OK && result != SQLITE_IOERR_DATA &&
            result != SQLITE_IOERR_SHORT_READ) {
            free(page);
            return lac_fail(reterr, LAC_ERR_IO, 0, "the file cannot be read");
        }
        if (result != SQLITE_OK) {
            *ret_bad_offset = *ret_bad_count == 0 ? number * state.page_bytes : *ret_bad_offset;
            *ret_bad_count += 1;
        }
        if (number == 0) { /* a damaged first page still says how many there should be */
            count = page_count(page);
        }
        if (result == SQLITE_IOERR_SHORT_READ || (number == 0 && result != SQLITE_OK)) {
            break;
        }
    }
    free(page);
    return LAC_OK;
}

bool lac_checked_end(int fd, uint64_t *ret_end_bytes)
{
    uint8_t header[HEADER_BYTES];
    struct stat info;

    if (pread(fd, header, sizeof(header), 0) != (ssize_t)sizeof(header) || fstat(fd, &info) != 0) {
        errno = EINVAL;
        return false;
    }
    *ret_end_bytes = page_count(header) * header_page_bytes(header);
    errno = EINVAL;
    return *ret_end_bytes > 0 && *ret_end_bytes <= (uint64_t)info.st_size;
}

static bool stamp_pages(int fd, uint8_t *page)
{
    uint64_t count;
    unsigned size;

    if (pread(fd, page, HEADER_BYTES, 0) != HEADER_BYTES) {
        return false;
    }
    size = header_page_bytes(page);
    if (size == 0 || page[RESERVED_AT] != LAC_CHECKSUM_BYTES) {
        errno = EINVAL;
        return false;
    }
    count = page_count(page);
    for (uint64_t number = 0; number < count; number++) {
        if (pread(fd, page, size, (off_t)(number * size)) != (ssize_t)size) {
            errno = errno != 0 ? errno : EINVAL;
            return false;
        }
        store64(page + size - LAC_CHECKSUM_BYTES, page_sum(page, size, number));
        if (pwrite(fd, page, size, (off_t)(number * size)) != (ssize_t)size) {
            return false;
        }
    }
    return true;
}

enum lac_status lac_checked_stamp(const char *path, struct lac_error *reterr)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    uint8_t *page = malloc(PAGE_BYTES_MAX);
    enum lac_status status = page != NULL ? LAC_OK : LAC_ERR_NOMEM;

    if (status == LAC_OK && (fd < 0 || !stamp_pages(fd, page) || fsync(fd) != 0)) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot write checksums: %s", strerror(errno));
    }
    free(page);
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}
