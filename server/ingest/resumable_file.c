/* The files of resumable uploads: what is on disk is what counts. */

#include "analysis/model/status.h"
#include "collector/base/io_full.h"
#include "collector/base/sha.h"
#include "server/ingest/resumable_private.h"
#include "server/store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INFO_BYTES_MAX = 16 * 1024, HASH_BLOCK_BYTES = 1 << 20 };

static const char first_line[] = "lacuna upload 1\n";

void lac_entry_path(const struct lac_resumable *set, const struct lac_entry *entry,
                    const char *ending, char *out)
{
    (void)snprintf(out, LAC_UPLOAD_PATH_BYTES, "%.4000s/%s%s", set->folder, entry->id, ending);
}

enum lac_status lac_entry_save(const struct lac_resumable *set, const struct lac_entry *entry,
                               struct lac_error *reterr)
{
    char path[LAC_UPLOAD_PATH_BYTES];
    char fresh[LAC_UPLOAD_PATH_BYTES];
    char text[INFO_BYTES_MAX];
    enum lac_status status = LAC_OK;
    const int length = snprintf(
        text, sizeof(text),
        "%slength %" PRIu64 "\noffset %" PRIu64 "\nexpires %" PRId64
        "\ntrace %s\nmetadata %s\nowner %s %s\nend\n",
        first_line, entry->length_bytes, entry->offset_bytes, lac_entry_expires_unix_s(entry),
        entry->trace[0] != '\0' ? entry->trace : "-", entry->metadata,
        entry->owner.token[0] != '\0' ? entry->owner.token : "-", entry->owner.name);
    int fd;

    lac_entry_path(set, entry, ".info", path);
    lac_entry_path(set, entry, ".fresh", fresh);
    fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (length < 0 || (size_t)length >= sizeof(text) || fd < 0 ||
        !lac_write_full(fd, text, (size_t)length) || fsync(fd) != 0 || rename(fresh, path) != 0 ||
        fsync(set->folder_fd) != 0) {
        const int error = errno;

        status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot store the upload: %s", strerror(error));
        if (reterr != NULL) {
            reterr->sys_errno = error;
        }
        (void)unlink(fresh);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

void lac_entry_unlink(const struct lac_resumable *set, const struct lac_entry *entry)
{
    char path[LAC_UPLOAD_PATH_BYTES];

    /* .info first: a .part alone is swept, an .info alone would be an empty upload */
    lac_entry_path(set, entry, ".info", path);
    (void)unlink(path);
    lac_entry_path(set, entry, ".part", path);
    (void)unlink(path);
    (void)fsync(set->folder_fd);
}

/* The text behind "key " at *at, up to the line's end; *at moves behind it. NULL when absent. */
static char *take_line(char **at, const char *key)
{
    const size_t length = strlen(key);
    char *const value = *at + length + 1;
    char *end;

    if (strncmp(*at, key, length) != 0 || (*at)[length] != ' ') {
        return NULL;
    }
    end = strchr(value, '\n');
    if (end == NULL) {
        return NULL;
    }
    *end = '\0';
    *at = end + 1;
    return value;
}

static bool take_number(char **at, const char *key, uint64_t *ret_value)
{
    const char *const text = take_line(at, key);
    const size_t length = text != NULL ? strlen(text) : 0;

    if (length == 0 || length > 18 || strspn(text, "0123456789") != length) {
        return false;
    }
    *ret_value = strtoull(text, NULL, 10);
    return true;
}

/* "owner TOKEN NAME", where a server wrote it that knew. */
static void take_owner(char **at, struct lac_upload_owner *owner)
{
    char *const value = take_line(at, "owner");
    char *const name = value != NULL ? strchr(value, ' ') : NULL;

    if (name == NULL) {
        return;
    }
    *name = '\0';
    if (lac_store_id_is_valid(value)) {
        memcpy(owner->token, value, LAC_ID_SIZE);
    }
    (void)snprintf(owner->name, sizeof(owner->name), "%s", name + 1);
}

static bool parse_info(const struct lac_resumable *set, char *text, struct lac_entry *entry)
{
    char *at = text + sizeof(first_line) - 1;
    const char *expires;
    const char *trace;
    const char *metadata;

    if (strncmp(text, first_line, sizeof(first_line) - 1) != 0 ||
        !take_number(&at, "length", &entry->length_bytes) ||
        !take_number(&at, "offset", &entry->offset_bytes)) {
        return false;
    }
    expires = take_line(&at, "expires"); /* negative where the clock said so */
    if (expires == NULL) {
        return false;
    }
    entry->ends_s = lac_resumable_ends_s(set, strtoll(expires, NULL, 10));
    trace = take_line(&at, "trace");
    metadata = trace != NULL ? take_line(&at, "metadata") : NULL;
    take_owner(&at, &entry->owner);
    if (metadata == NULL || strcmp(at, "end\n") != 0 ||
        (entry->length_bytes > 0 && entry->offset_bytes > entry->length_bytes)) {
        return false;
    }
    if (lac_store_id_is_valid(trace)) {
        memcpy(entry->trace, trace, LAC_ID_SIZE);
    }
    entry->metadata = strdup(metadata);
    return entry->metadata != NULL;
}

/* A trace was chosen: it counts when its row outlived the crash (rows of uploads that were not
 * acknowledged are swept before we come here). */
static void settle_trace(const struct lac_resumable *set, struct lac_entry *entry)
{
    struct lac_trace_row row = {0};
    struct lac_error error;

    if (entry->trace[0] == '\0') {
        return;
    }
    if (lac_store_get_trace(set->options.store, entry->trace, &row, &error) == LAC_OK) {
        entry->is_done = true;
        lac_trace_row_done(&row);
    }
}

/* @return LAC_ERR_CORRUPT when it is damaged beyond use, LAC_ERR_IO when it cannot be read now */
static enum lac_status load_entry(const struct lac_resumable *set, struct lac_entry *entry,
                                  struct lac_error *reterr)
{
    char path[LAC_UPLOAD_PATH_BYTES];
    char text[INFO_BYTES_MAX];
    struct stat file = {0};
    ssize_t length;
    int fd;

    lac_entry_path(set, entry, ".info", path);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (length < 0) {
        (void)lac_fail(reterr, LAC_ERR_IO, 0, "cannot read %.150s: %s", path, strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (length < 0) {
        return LAC_ERR_IO;
    }
    text[length] = '\0';
    if (length < (ssize_t)sizeof(first_line) || !parse_info(set, text, entry)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "%.150s is damaged", path);
    }
    entry->is_stored = true;
    settle_trace(set, entry);
    lac_entry_path(set, entry, ".part", path);
    if (entry->is_done) {
        (void)unlink(path);
    } else if (stat(path, &file) != 0) {
        /* it became a trace, which was deleted since; or it never got a byte */
        entry->is_done = entry->trace[0] != '\0';
        entry->offset_bytes = entry->is_done ? entry->offset_bytes : 0;
    } else if ((uint64_t)file.st_size < entry->offset_bytes) {
        entry->offset_bytes = (uint64_t)file.st_size;
    }
    return LAC_OK;
}

/* Only names of ours are touched. */
static enum lac_status load_name(struct lac_resumable *set, const char *name,
                                 struct lac_error *reterr)
{
    struct lac_entry *entry;
    char id[LAC_ID_SIZE];
    enum lac_status status;

    if (strlen(name) < LAC_ID_LENGTH) {
        return LAC_OK;
    }
    memcpy(id, name, LAC_ID_LENGTH);
    id[LAC_ID_LENGTH] = '\0';
    if (!lac_store_id_is_valid(id) || strcmp(name + LAC_ID_LENGTH, ".info") != 0) {
        return LAC_OK;
    }
    entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    memcpy(entry->id, id, sizeof(id));
    status = load_entry(set, entry, reterr);
    if (status != LAC_OK) {
        if (status == LAC_ERR_CORRUPT) {
            lac_entry_unlink(set, entry); /* never promised to anybody, or damaged beyond use */
            status = LAC_OK;
        }
        free(entry->metadata);
        free(entry);
        return status;
    }
    if (!entry->is_done) { /* it goes on, whatever the quotas say */
        (void)!lac_entry_claim(set, entry,
                               entry->length_bytes > 0 ? entry->length_bytes : entry->offset_bytes,
                               true, reterr);
    }
    entry->next = set->entries;
    set->entries = entry;
    return LAC_OK;
}

/* Bytes without an .info: of a server that died between the two. */
static void sweep_name(struct lac_resumable *set, const char *name)
{
    char info[LAC_ID_LENGTH + 8];
    const size_t length = strlen(name);

    if (length > LAC_ID_LENGTH && length < LAC_ID_LENGTH + 8 &&
        (strcmp(name + LAC_ID_LENGTH, ".part") == 0 ||
         strcmp(name + LAC_ID_LENGTH, ".fresh") == 0)) {
        (void)snprintf(info, sizeof(info), "%.*s.info", LAC_ID_LENGTH, name);
        if (name[LAC_ID_LENGTH + 1] == 'f' || faccessat(set->folder_fd, info, F_OK, 0) != 0) {
            (void)unlinkat(set->folder_fd, name, 0);
        }
    }
}

enum lac_status lac_resumable_load(struct lac_resumable *set, struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;
    const struct dirent *name;
    DIR *folder;

    (void)snprintf(set->folder, sizeof(set->folder), "%.4000s/uploads",
                   lac_store_data_dir(set->options.store));
    if (mkdir(set->folder, 0700) != 0 && errno != EEXIST) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot make %.300s: %s", set->folder,
                        strerror(errno));
    }
    set->folder_fd = open(set->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    folder = set->folder_fd >= 0 ? opendir(set->folder) : NULL;
    if (folder == NULL) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot open %.300s: %s", set->folder,
                        strerror(errno));
    }
    while (status == LAC_OK && (name = readdir(folder)) != NULL) {
        status = load_name(set, name->d_name, reterr);
    }
    rewinddir(folder);
    while (status == LAC_OK && (name = readdir(folder)) != NULL) {
        sweep_name(set, name->d_name);
    }
    (void)closedir(folder);
    return status;
}

enum lac_status lac_entry_rehash(const struct lac_resumable *set, struct lac_entry *entry,
                                 struct lac_error *reterr)
{
    char path[LAC_UPLOAD_PATH_BYTES];
    uint8_t *const block = malloc(HASH_BLOCK_BYTES);
    uint64_t left = entry->offset_bytes;
    struct lac_sha hash;
    int fd;

    if (block == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    lac_entry_path(set, entry, ".part", path);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    lac_sha256_init(&hash);
    while (fd >= 0 && left > 0) {
        const int64_t got =
            lac_read_full(fd, block, left < HASH_BLOCK_BYTES ? left : HASH_BLOCK_BYTES);

        if (got <= 0) {
            break;
        }
        lac_sha_add(&hash, block, (size_t)got);
        left -= (uint64_t)got;
    }
    free(block);
    if (fd >= 0) {
        (void)close(fd);
    }
    if (left > 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot read the upload back: %s", strerror(errno));
    }
    entry->hash = hash;
    entry->has_hash = true;
    return LAC_OK;
}
