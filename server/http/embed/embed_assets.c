/*
 * Build tool: `embed_assets OUT.c DIR` writes the files under DIR as the arrays of
 * server/http/assets.h, each with its MIME type, a strong ETag and, where that is smaller, its gzip
 * form: FILE.gz where one lies next to FILE (who made the file had more time to compress). Runs on
 * the machine that builds; nothing of it is in the program. The output depends on the files' names
 * and bytes only, so builds are reproducible.
 */

#include <errno.h>
#include <ftw.h>
#include <isa-l/igzip_lib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 4096, FILE_BYTES_MAX = 1 << 30 };

static char *found_paths[FILES_MAX];
static size_t found_count;
static size_t root_length;

static _Noreturn void die(const char *what, const char *path)
{
    (void)fprintf(stderr, "embed_assets: %s: %s: %s\n", path, what, strerror(errno));
    exit(1);
}

static int remember_file(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)ftw;
    if (type == FTW_DNR || type == FTW_NS) {
        die("cannot read", path);
    }
    if (type != FTW_F) {
        return 0;
    }
    if (found_count == FILES_MAX) {
        errno = E2BIG;
        die("too many files below this folder", path);
    }
    found_paths[found_count] = strdup(path);
    if (found_paths[found_count] == NULL) {
        die("out of memory", path);
    }
    found_count++;
    return 0;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static unsigned char *read_whole(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    unsigned char *bytes;
    long size;

    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        die("cannot read", path);
    }
    size = ftell(file);
    if (size < 0 || size >= FILE_BYTES_MAX || fseek(file, 0, SEEK_SET) != 0) {
        die("cannot read", path);
    }
    bytes = malloc((size_t)size + 1);
    if (bytes == NULL) {
        die("out of memory", path);
    }
    if (fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        die("cannot read", path);
    }
    (void)fclose(file);
    *ret_size = (size_t)size;
    return bytes;
}

/* 64-bit FNV-1a; two of them with different starts name a file's content well enough
 * for a cache. */
static uint64_t hash_bytes(const unsigned char *bytes, size_t size, uint64_t hash)
{
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static const char *mime_of(const char *path)
{
    static const struct {
        const char *ending;
        const char *mime;
    } table[] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".mjs", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".json", "application/json"},
        {".map", "application/json"},
        {".webmanifest", "application/manifest+json"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".ico", "image/x-icon"},
        {".webp", "image/webp"},
        {".woff2", "font/woff2"},
        {".wasm", "application/wasm"},
        {".txt", "text/plain; charset=utf-8"},
    };
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot != NULL && i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(dot, table[i].ending) == 0) {
            return table[i].mime;
        }
    }
    return "application/octet-stream";
}

static bool is_found(const char *path)
{
    return bsearch(&path, found_paths, found_count, sizeof(found_paths[0]), compare_paths) != NULL;
}

/* Whether it is the gzip form of another file of the folder. */
static bool is_gzip_form(const char *path)
{
    const size_t length = strlen(path);
    char *plain = length > 3 && strcmp(path + length - 3, ".gz") == 0 ? strdup(path) : NULL;
    bool is_form = false;

    if (plain != NULL) {
        plain[length - 3] = '\0';
        is_form = is_found(plain);
    }
    free(plain);
    return is_form;
}

/* The gzip form that lies next to the file, or NULL. */
static unsigned char *gzip_beside(const char *path, size_t *ret_size)
{
    const size_t room = strlen(path) + sizeof(".gz");
    char *beside = malloc(room);
    unsigned char *bytes = NULL;

    if (beside == NULL) {
        die("out of memory", path);
    }
    (void)snprintf(beside, room, "%s.gz", path);
    if (is_found(beside)) {
        bytes = read_whole(beside, ret_size);
    }
    free(beside);
    return bytes;
}

/* The gzip form, or NULL when it saves less than a tenth. The header has no name and no time. */
static unsigned char *gzip_of(unsigned char *bytes, size_t size, size_t *ret_size)
{
    const size_t capacity = size < FILE_BYTES_MAX ? size + size / 8 + 1024 : 0;
    /* read_whole() has limited the size */
    /* NOLINTNEXTLINE(clang-analyzer-optin.taint.TaintedAlloc) */
    unsigned char *out = capacity > 0 ? malloc(capacity) : NULL;
    unsigned char *level_buffer = malloc(ISAL_DEF_LVL3_DEFAULT);
    struct isal_zstream stream;

    if (out == NULL || level_buffer == NULL) {
        die("out of memory", "gzip");
    }
    isal_deflate_init(&stream);
    stream.level = 3;
    stream.level_buf = level_buffer;
    stream.level_buf_size = ISAL_DEF_LVL3_DEFAULT;
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.flush = NO_FLUSH;
    stream.next_in = (uint8_t *)bytes;
    stream.avail_in = (uint32_t)size;
    stream.next_out = out;
    stream.avail_out = (uint32_t)capacity;
    if (isal_deflate(&stream) != COMP_OK || stream.avail_in != 0 ||
        stream.internal_state.state != ZSTATE_END) {
        errno = EIO;
        die("cannot compress", "gzip");
    }
    free(level_buffer);
    *ret_size = stream.total_out;
    if (*ret_size >= size - size / 10) {
        free(out);
        return NULL;
    }
    return out;
}

static void write_array(FILE *out, const char *name, size_t index, const unsigned char *bytes,
                        size_t size)
{
    (void)fprintf(out, "static const unsigned char %s_%zu[] = {", name, index);
    for (size_t i = 0; i < size; i++) {
        (void)fprintf(out, "%s%u,", i % 32 == 0 ? "\n" : "", bytes[i]);
    }
    (void)fprintf(out, "%s\n};\n", size == 0 ? "0" : "");
}

static void check_name(const char *path)
{
    for (const char *c = path; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x21 || (unsigned char)*c > 0x7e || *c == '"' || *c == '\\') {
            errno = EINVAL;
            die("a file of the page needs a plain ASCII name", path);
        }
    }
}

static void write_assets(FILE *out, const char *prefix)
{
    char(*rows)[640] = calloc(found_count + 1, sizeof(*rows));
    size_t row_count = 0;

    if (rows == NULL) {
        die("out of memory", "rows");
    }
    for (size_t i = 0; i < found_count; i++) {
        const char *path = found_paths[i] + root_length + 1;
        size_t size = 0;
        size_t gzip_size = 0;
        unsigned char *bytes;
        unsigned char *gzip;
        char gzip_cells[96] = "((void *)0), 0";
        int length;

        if (is_gzip_form(found_paths[i])) {
            continue;
        }
        check_name(path);
        bytes = read_whole(found_paths[i], &size);
        gzip = gzip_beside(found_paths[i], &gzip_size);
        if (gzip == NULL) {
            gzip = gzip_of(bytes, size, &gzip_size);
        }
        write_array(out, "plain", i, bytes, size);
        if (gzip != NULL) {
            write_array(out, "gzip", i, gzip, gzip_size);
            (void)snprintf(gzip_cells, sizeof(gzip_cells), "gzip_%zu, %zu", i, gzip_size);
        }
        length = snprintf(rows[row_count], sizeof(rows[row_count]),
                          "    {\"%s\", \"%s\", \"\\\"%016llx%016llx\\\"\", plain_%zu, %zu, %s},\n",
                          path, mime_of(path),
                          (unsigned long long)hash_bytes(bytes, size, UINT64_C(0xcbf29ce484222325)),
                          (unsigned long long)hash_bytes(bytes, size, UINT64_C(0x9ae16a3b2f90404f)),
                          i, size, gzip_cells);
        if (length < 0 || (size_t)length >= sizeof(rows[row_count])) {
            errno = ENAMETOOLONG;
            die("name too long", path);
        }
        row_count++;
        free(bytes);
        free(gzip);
    }
    (void)fprintf(out, "\nconst struct lac_asset %s_assets[] = {\n", prefix);
    for (size_t i = 0; i < row_count; i++) {
        (void)fputs(rows[i], out);
    }
    (void)fprintf(out, "};\nconst unsigned %s_asset_count = %zu;\n", prefix, row_count);
    free(rows);
}

int main(int argc, char **argv)
{
    FILE *out;

    if (argc != 3 && argc != 4) {
        (void)fprintf(stderr, "usage: embed_assets OUT.c DIR [PREFIX]\n");
        return 2;
    }
    root_length = strlen(argv[2]);
    while (root_length > 1 && argv[2][root_length - 1] == '/') {
        argv[2][--root_length] = '\0';
    }
    if (nftw(argv[2], remember_file, 16, FTW_PHYS) != 0) {
        die("cannot walk", argv[2]);
    }
    if (found_count == 0) {
        errno = ENOENT;
        die("no files to embed", argv[2]);
    }
    qsort(found_paths, found_count, sizeof(found_paths[0]), compare_paths);
    out = fopen(argv[1], "w");
    if (out == NULL) {
        die("cannot write", argv[1]);
    }
    (void)fprintf(
        out, "/* Written by embed_assets; do not edit. */\n#include \"server/http/assets.h\"\n\n");
    write_assets(out, argc == 4 ? argv[3] : "lac");
    if (ferror(out) != 0 || fclose(out) != 0) {
        die("cannot write", argv[1]);
    }
    for (size_t i = 0; i < found_count; i++) {
        free(found_paths[i]);
    }
    return 0;
}
