#include "analysis/import/closed_formats.h"

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/io_full.h"
#include "lacuna/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { FILE_NAME_BYTES = 96, FOLDER_FILES_MAX = 4096 };

struct closed_format {
    bool (*is_it)(const uint8_t *head, size_t size_bytes);
    const char *ending; /**< what its files are called */
    const char *text;   /**< each %s is the file's name */
};

static bool begins(const uint8_t *head, size_t size_bytes, const char *with, size_t length)
{
    return size_bytes >= length && memcmp(head, with, length) == 0;
}

static bool has(const uint8_t *head, size_t size_bytes, const char *text)
{
    return memmem(head, size_bytes, text, strlen(text)) != NULL;
}

static bool is_binary(const uint8_t *head, size_t size_bytes)
{
    return memchr(head, '\0', size_bytes) != NULL;
}

static bool is_ncu_report(const uint8_t *head, size_t size_bytes)
{
    return begins(head, size_bytes, "NVR", 4);
}

/* Its beginning is not documented, but what it says of the tool that wrote it is near. */
static bool is_nsys_report(const uint8_t *head, size_t size_bytes)
{
    return is_binary(head, size_bytes) &&
           (has(head, size_bytes, "QuadD") || has(head, size_bytes, "Nsight Systems"));
}

static bool is_hdf5(const uint8_t *head, size_t size_bytes)
{
    return begins(head, size_bytes, "\x89HDF\r\n\x1a\n", 8);
}

static bool is_parquet(const uint8_t *head, size_t size_bytes)
{
    return begins(head, size_bytes, "PAR1", 4);
}

static bool is_arrow(const uint8_t *head, size_t size_bytes)
{
    return begins(head, size_bytes, "ARROW1", 6);
}

static bool is_workspace(const uint8_t *head, size_t size_bytes)
{
    return begins(head, size_bytes, "<?xml", 5) &&
           (has(head, size_bytes, "viper") || has(head, size_bytes, "nvvp") ||
            has(head, size_bytes, "nvprof"));
}

static bool is_web_page(const uint8_t *head, size_t size_bytes)
{
    static const char *const BEGINS[] = {"<!doctype html", "<html"};
    size_t at = begins(head, size_bytes, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (at < size_bytes && strchr(" \t\r\n", head[at]) != NULL && head[at] != '\0') {
        at++;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(BEGINS); i++) {
        size_t length = strlen(BEGINS[i]);
        if (size_bytes - at >= length &&
            strncasecmp((const char *)head + at, BEGINS[i], length) == 0) {
            return true;
        }
    }
    return false;
}

/* A varint below 2^35. @return bytes it takes, 0: none */
static size_t varint(const uint8_t *at, size_t size_bytes, uint64_t *ret_value)
{
    *ret_value = 0;
    for (size_t i = 0; i < size_bytes && i < 5; i++) {
        *ret_value |= (uint64_t)(at[i] & 0x7f) << (7 * i);
        if ((at[i] & 0x80) == 0) {
            return i + 1;
        }
    }
    return 0;
}

/* XSpace: planes (field 1), each with its id (1) and name (2). */
static bool is_xplane(const uint8_t *head, size_t size_bytes)
{
    static const char *const NAMES[] = {"/host:", "/device:", "Task Environment", "#Chip"};
    uint64_t value = 0;
    size_t at = 1;
    size_t got = size_bytes > 1 && head[0] == 0x0a ? varint(head + at, size_bytes - at, &value) : 0;
    at += got;
    if (got > 0 && at < size_bytes && head[at] == 0x08) { /* id */
        got = varint(head + at + 1, size_bytes - at - 1, &value);
        at += 1 + got;
    }
    if (got == 0 || at + 2 >= size_bytes || head[at] != 0x12) {
        return false;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(NAMES); i++) {
        size_t length = strlen(NAMES[i]);
        if (at + 2 + length <= size_bytes && memcmp(head + at + 2, NAMES[i], length) == 0) {
            return true;
        }
    }
    return false;
}

static const struct closed_format FORMATS[] = {
    {is_ncu_report, ".ncu-rep",
     "a report of Nsight Compute: ncu --import %s --csv --page raw > kernels.csv writes what is "
     "read"},
    {is_hdf5, ".h5",
     "HDF5, as nsys export --type hdf writes it: nsys export --type sqlite makes of the report "
     "what is read"},
    {is_parquet, ".parquet",
     "a Parquet table of an export: nsys export --type sqlite makes of the report what is read"},
    {is_arrow, ".arrow",
     "an Arrow table of an export: nsys export --type sqlite makes of the report what is read"},
    {is_workspace, ".nvvp",
     "a workspace of the Visual Profiler in XML, which holds no times: give the database that "
     "nvprof -o %s -- PROGRAM writes"},
    {is_xplane, ".xplane.pb",
     "an XPlane of XProf: give the trace.json.gz beside it; where there is none, tensorboard "
     "--logdir and its trace viewer write one from %s"},
    {is_web_page, ".html",
     "a web page (HTML), as a sign-in or an error page that was saved under the name of a trace: "
     "download the file itself"},
    {is_nsys_report, ".nsys-rep",
     "a report of Nsight Systems: nsys export --type sqlite %s writes what is read"},
};

bool lac_closed_is_its_own(const uint8_t *head, size_t size_bytes)
{
    for (size_t i = 0; i < LAC_COUNT_OF(FORMATS); i++) {
        if (FORMATS[i].is_it(head, size_bytes)) {
            return true;
        }
    }
    return false;
}

/* The file's name as a shell takes it; with the ending where it was left off. */
static void shell_name(const char *name, const char *ending, char *out, size_t capacity)
{
    char whole[FILE_NAME_BYTES];
    size_t length = strlen(name);
    size_t tail = strlen(ending);
    bool has_ending = length >= tail && strcasecmp(name + length - tail, ending) == 0;
    bool is_plain = true;
    (void)snprintf(whole, sizeof(whole), "%.64s%s", length > 0 ? name : "FILE",
                   has_ending ? "" : ending);
    for (char *c = whole; *c != '\0'; c++) {
        bool is_word = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                       (*c >= '0' && *c <= '9') || strchr("._-+", *c) != NULL;
        is_plain = is_plain && is_word;
        *c = *c == '\'' ? '?' : *c; /* which the shell matches with any character */
    }
    (void)snprintf(out, capacity, is_plain ? "%s" : "'%s'", whole);
}

enum lac_status lac_closed_refuse(struct lac_source *source,
                                  const struct lac_import_options *options, size_t window_bytes,
                                  const char *name, struct lac_model **ret_model,
                                  struct lac_error *reterr)
{
    const uint8_t *head = NULL;
    size_t size = 0;
    char file[FILE_NAME_BYTES + 2];
    (void)options;
    (void)window_bytes;
    *ret_model = NULL;
    enum lac_status status = lac_source_peek(source, LAC_SOURCE_PEEK_MAX, &head, &size, reterr);
    for (size_t i = 0; i < LAC_COUNT_OF(FORMATS) && status == LAC_OK; i++) {
        if (FORMATS[i].is_it(head, size)) {
            shell_name(name, FORMATS[i].ending, file, sizeof(file));
            const char *at = strstr(FORMATS[i].text, "%s");
            int before =
                (int)(at != NULL ? (size_t)(at - FORMATS[i].text) : strlen(FORMATS[i].text));
            return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "%.*s%s%s", before, FORMATS[i].text,
                            at != NULL ? file : "", at != NULL ? at + 2 : "");
        }
    }
    return status == LAC_OK ? lac_fail(reterr, LAC_ERR_CORRUPT, 0, "not a trace") : status;
}

/* ---- folders ---- */

struct folder_look {
    bool has_recording;
    char file[128]; /**< a database in it */
    const char *text;
};

static void look_at(int folder, const char *name, struct folder_look *look)
{
    uint8_t head[16] = {0};
    int fd = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    struct stat st;
    if (fd < 0) {
        return;
    }
    bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    int64_t got = is_file ? lac_read_full_at(fd, head, sizeof(head), 0) : 0;
    (void)close(fd);
    if (got < (int64_t)sizeof(head)) {
        return;
    }
    look->has_recording = look->has_recording || memcmp(head, LAC_SPOOL_MAGIC, 8) == 0;
    if (memcmp(head, "SQLite format 3", sizeof(head)) == 0) {
        (void)snprintf(look->file, sizeof(look->file), "%.100s", name);
    } else if (is_parquet(head, sizeof(head)) || is_arrow(head, sizeof(head))) {
        look->text = "a folder of Parquet or Arrow tables: nsys export --type sqlite makes of the "
                     "report what is read";
    }
}

static struct folder_look look_into(const char *path)
{
    struct folder_look look = {.has_recording = false};
    DIR *folder = opendir(path);
    uint32_t count = 0;
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL;
         entry != NULL && count < FOLDER_FILES_MAX; entry = readdir(folder), count++) {
        if (entry->d_name[0] != '.') {
            look_at(dirfd(folder), entry->d_name, &look);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return look;
}

bool lac_closed_is_folder(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return false;
    }
    struct folder_look look = look_into(path);
    return !look.has_recording && (look.file[0] != '\0' || look.text != NULL);
}

enum lac_status lac_closed_refuse_folder(const char *path, const struct lac_import_options *options,
                                         lac_import_sink sink, void *context,
                                         struct lac_error *reterr)
{
    struct folder_look look = look_into(path);
    (void)options;
    (void)sink;
    (void)context;
    return look.file[0] != '\0'
               ? lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                          "a folder with databases: give the file, lacuna import %.100s/%s", path,
                          look.file)
               : lac_fail(reterr, LAC_ERR_CORRUPT, 0, "%s",
                          look.text != NULL ? look.text : "the folder holds no trace");
}
