/* Files of known tools that only the tool can read: the error says how to export them. */

#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    (void)close(fd);
}

static void check_refused(const char *path, const char *said)
{
    struct imported imported = import_path(path);
    ck_assert_int_eq(imported.status, LAC_ERR_CORRUPT);
    ck_assert_uint_eq(imported.count, 0);
    ck_assert_msg(strstr(imported.error.message, said) != NULL, "%s: %s", path,
                  imported.error.message);
    imported_done(&imported);
}

START_TEST(says_how_to_export)
{
    static const struct {
        const char *name;
        const char *bytes;
        size_t size;
        const char *said;
    } FILES[] = {
        {"a.ncu-rep", "NVR\0\10\1\2\3", 8, "ncu --import a.ncu-rep --csv --page raw"},
        {"my run.ncu-rep", "NVR\0\10\1\2\3", 8, "ncu --import 'my run.ncu-rep' --csv"},
        {"it's.ncu-rep", "NVR\0\10\1\2\3", 8, "ncu --import 'it?s.ncu-rep' --csv"},
        {"report1.nsys-rep", "\1\0\0\0QuadDAnalysis", 17, "--type sqlite report1.nsys-rep"},
        {"report2.qdrep", "\1\0\0\0NVIDIA Nsight Systems", 25, "nsys export --type sqlite"},
        {"e.h5", "\x89HDF\r\n\x1a\n\0\0\0\0", 12, "nsys export --type sqlite"},
        {"p.parquet", "PAR1\x15\4\x15\x10", 8, "nsys export --type sqlite"},
        {"f.arrow", "ARROW1\0\0\xff\xff", 10, "nsys export --type sqlite"},
        {"w.nvvp", "<?xml version=\"1.0\"?>\n<x id=\"com.nvidia.viper\"/>", 48, "nvprof -o w.nvvp"},
        {"h.xplane.pb", "\x0a\x20\x08\x02\x12\x0d/device:GPU:0\x1a\x02\x08\x01", 24,
         "write one from h.xplane.pb"},
        {"trace.json", "\xef\xbb\xbf\n <!DOCTYPE html><title>Sign in</title>", 42,
         "a web page (HTML)"},
        {"report.html", "<HTML>", 6, "download the file itself"},
        {"h2.xplane.pb", "\x0a\xa0\x01\x12\x09/host:CPU\x1a\x02\x08\x01", 18, "trace.json.gz"},
    };
    char folder[] = "/tmp/lac_closed_XXXXXX";
    char path[128];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < LAC_COUNT_OF(FILES); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, FILES[i].name);
        write_file(path, FILES[i].bytes, FILES[i].size);
        check_refused(path, FILES[i].said);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}
END_TEST

START_TEST(folder_names_its_file)
{
    char folder[] = "/tmp/lac_closed_XXXXXX";
    char path[128];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/7_results.db", folder);
    write_file(path, "SQLite format 3\0....", 20);
    check_refused(folder, "/7_results.db");
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/CUPTI.parquet", folder);
    write_file(path, "PAR1................", 20);
    check_refused(folder, "nsys export --type sqlite");
    (void)unlink(path);
    (void)rmdir(folder);
}
END_TEST

/* What begins like one of them and is none stays what it was. */
START_TEST(others_are_not_taken)
{
    static const char *const TEXTS[] = {"NVRTC is no report", "PAR2", "\x0a\x0a plain text",
                                        "<?xml version=\"1.0\"?><svg/>"};
    for (size_t i = 0; i < LAC_COUNT_OF(TEXTS); i++) {
        struct imported imported = import_text(TEXTS[i]);
        ck_assert_int_eq(imported.status, LAC_ERR_CORRUPT);
        ck_assert_ptr_null(strstr(imported.error.message, "--import"));
        ck_assert_ptr_null(strstr(imported.error.message, "an XPlane"));
        imported_done(&imported);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("closed_formats");
    TCase *all = tcase_create("all");
    tcase_add_test(all, says_how_to_export);
    tcase_add_test(all, folder_names_its_file);
    tcase_add_test(all, others_are_not_taken);
    suite_add_tcase(suite, all);
    return check_main(suite);
}
