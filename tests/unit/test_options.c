#include "server/cli/options.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct lac_option table[] = {
    {.name = "data", .letter = 'd', .value = "DIR", .help = "where"},
    {.name = "keep-originals", .help = "keep"},
    {.name = "upload-max", .value = "BYTES", .help = "largest"},
    {.name = "name", .value = "NAME", .help = "name", .flag_only = true},
    {0},
};

static char home[64];

static void setup(void)
{
    (void)snprintf(home, sizeof(home), "/tmp/lacuna-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(home));
    ck_assert_int_eq(setenv("HOME", home, 1), 0);
    (void)unsetenv("XDG_CONFIG_HOME");
    (void)unsetenv("XDG_DATA_HOME");
    (void)unsetenv("LACUNA_DATA");
    (void)unsetenv("LACUNA_KEEP_ORIGINALS");
    (void)unsetenv("LACUNA_UPLOAD_MAX");
    (void)unsetenv("LACUNA_NAME");
}

static void teardown(void)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", home);
    ck_assert_int_eq(system(command), 0);
}

static void write_config(const char *text)
{
    char path[256];
    FILE *stream;

    (void)snprintf(path, sizeof(path), "%s/.config", home);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof(path), "%s/.config/lacuna", home);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof(path), "%s/.config/lacuna/config", home);
    stream = fopen(path, "w");
    ck_assert_ptr_nonnull(stream);
    (void)fputs(text, stream);
    (void)fclose(stream);
}

/** Parse a command line; the words live as long as the test. */
static int parse(struct lac_options *options, const char *line)
{
    static char words[512];
    static char *argv[32];
    int argc = 0;
    char *rest = words;
    char *word;

    (void)snprintf(words, sizeof(words), "import %s", line);
    while ((word = strsep(&rest, " ")) != NULL && argc < 31) {
        if (*word != '\0') {
            argv[argc++] = word;
        }
    }
    argv[argc] = NULL;
    return lac_options_parse(options, table, "lacuna import", argc, argv);
}

START_TEST(flag_then_variable_then_file_decide)
{
    struct lac_options options;

    ck_assert_int_eq(parse(&options, ""), -1);
    ck_assert_str_eq(lac_options_text(&options, "data", "fallback"), "fallback");
    lac_options_done(&options);
    write_config(
        "# a comment\n\ndata = from file \nunknown-key = 1\nkeep_originals=off\nname = n\n");
    ck_assert_int_eq(parse(&options, ""), -1);
    ck_assert_str_eq(lac_options_text(&options, "data", NULL), "from file");
    ck_assert(!lac_options_on(&options, "keep-originals", true));
    ck_assert_ptr_null(lac_options_text(&options, "name", NULL)); /* flags only */
    lac_options_done(&options);
    ck_assert_int_eq(setenv("LACUNA_DATA", "from variable", 1), 0);
    ck_assert_int_eq(setenv("LACUNA_KEEP_ORIGINALS", "yes", 1), 0);
    ck_assert_int_eq(parse(&options, ""), -1);
    ck_assert_str_eq(lac_options_text(&options, "data", NULL), "from variable");
    ck_assert(lac_options_on(&options, "keep-originals", false));
    lac_options_done(&options);
    ck_assert_int_eq(parse(&options, "--data from_flag --no-keep-originals"), -1);
    ck_assert_str_eq(lac_options_text(&options, "data", NULL), "from_flag");
    ck_assert(!lac_options_on(&options, "keep-originals", true));
    lac_options_done(&options);
}
END_TEST

START_TEST(every_form_of_a_flag_is_understood)
{
    static const char *const lines[] = {"a --data X b", "a --data=X b", "-d X a b", "a b --data X",
                                        "--data Y --data X a b"};
    struct lac_options options;

    ck_assert_int_eq(parse(&options, lines[_i]), -1);
    ck_assert_str_eq(lac_options_text(&options, "data", NULL), "X");
    ck_assert_int_eq(options.operand_count, 2);
    ck_assert_str_eq(options.operands[0], "a");
    ck_assert_str_eq(options.operands[1], "b");
    lac_options_done(&options);
}
END_TEST

START_TEST(after_two_dashes_all_are_operands)
{
    struct lac_options options;

    ck_assert_int_eq(parse(&options, "x -- --data -d -"), -1);
    ck_assert_int_eq(options.operand_count, 4);
    ck_assert_str_eq(options.operands[1], "--data");
    ck_assert_str_eq(options.operands[3], "-");
    lac_options_done(&options);
}
END_TEST

START_TEST(wrong_usage_is_status_2)
{
    static const char *const lines[] = {"--no-such",          "--data",    "-x",
                                        "--keep-originals=1", "--no-data", "-dX"};
    struct lac_options options;

    ck_assert_int_eq(parse(&options, lines[_i]), 2);
}
END_TEST

START_TEST(a_config_line_without_equals_is_wrong_usage)
{
    struct lac_options options;

    write_config("data\n");
    ck_assert_int_eq(parse(&options, ""), 2);
}
END_TEST

START_TEST(help_is_status_0)
{
    struct lac_options options;

    ck_assert_int_eq(parse(&options, "a --help"), 0);
    ck_assert_int_eq(parse(&options, "-h"), 0);
}
END_TEST

START_TEST(numbers_have_units_and_bounds)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
    } cases[] = {{"5", true, 5},
                 {"2k", true, 2048},
                 {"3M", true, 3145728},
                 {"1GiB", true, 1073741824},
                 {"1T", true, UINT64_C(1099511627776)},
                 {"-1", false, 0},
                 {"x", false, 0},
                 {"5x", false, 0},
                 {"99999999999999999999", false, 0},
                 {"99999999T", false, 0},
                 {"1", false, 0}};
    struct lac_options options;
    char line[80];
    uint64_t value = 77;

    (void)snprintf(line, sizeof(line), "--upload-max %s", cases[_i].text);
    ck_assert_int_eq(parse(&options, line), -1);
    ck_assert_int_eq(lac_options_number(&options, "upload-max", 2, UINT64_MAX, 9, &value),
                     cases[_i].good);
    ck_assert_uint_eq(value, cases[_i].good ? cases[_i].value : 77);
    lac_options_done(&options);
}
END_TEST

START_TEST(the_data_folder_is_found)
{
    struct lac_options options;
    char path[256];
    char expected[256];

    ck_assert_int_eq(parse(&options, ""), -1);
    ck_assert(lac_options_data_dir(&options, path, sizeof(path)));
    (void)snprintf(expected, sizeof(expected), "%s/.local/share/lacuna", home);
    ck_assert_str_eq(path, expected);
    ck_assert_int_eq(setenv("XDG_DATA_HOME", "/xdg", 1), 0);
    ck_assert(lac_options_data_dir(&options, path, sizeof(path)));
    ck_assert_str_eq(path, "/xdg/lacuna");
    ck_assert(!lac_options_data_dir(&options, path, 5));
    lac_options_done(&options);
    ck_assert_int_eq(parse(&options, "--data /here"), -1);
    ck_assert(lac_options_data_dir(&options, path, sizeof(path)));
    ck_assert_str_eq(path, "/here");
    lac_options_done(&options);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("options");
    TCase *tcase = tcase_create("options");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, flag_then_variable_then_file_decide);
    tcase_add_loop_test(tcase, every_form_of_a_flag_is_understood, 0, 5);
    tcase_add_test(tcase, after_two_dashes_all_are_operands);
    tcase_add_loop_test(tcase, wrong_usage_is_status_2, 0, 6);
    tcase_add_test(tcase, a_config_line_without_equals_is_wrong_usage);
    tcase_add_test(tcase, help_is_status_0);
    tcase_add_loop_test(tcase, numbers_have_units_and_bounds, 0, 11);
    tcase_add_test(tcase, the_data_folder_is_found);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
