#include "server/cli/options.h"

#include "collector/base/byte_size.h"
#include "collector/base/io_full.h"
#include "collector/base/terminal_text.h"
#include "server/export/terminal_width.h"

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_BYTES_MAX = 1 << 20 };

/* A row too many would be no option to anybody, and one given twice would be read from one row only. */
static bool is_whole(const struct lac_option *table)
{
    int count = 0;

    while (table[count].name != NULL) {
        for (int i = 0; i < count; i++) {
            if (strcmp(table[i].name, table[count].name) == 0) {
                return false;
            }
        }
        count++;
    }
    return count <= LAC_OPTIONS_MAX;
}

static int find(const struct lac_option *table, const char *name, size_t length)
{
    for (int i = 0; table[i].name != NULL; i++) {
        if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0) {
            return i;
        }
    }
    return -1;
}

static int find_letter(const struct lac_option *table, char letter)
{
    for (int i = 0; table[i].name != NULL; i++) {
        if (letter != 0 && table[i].letter == letter) {
            return i;
        }
    }
    return -1;
}

static void print_row(const char *left, const char *help)
{
    char label[80];

    (void)snprintf(label, sizeof(label), "  %-28s ", left);
    lac_print_row(label, 31, help);
}

static void print_help(const struct lac_option *table, const char *usage)
{
    char text[4096];

    (void)snprintf(text, sizeof(text), "usage: %s\n", usage);
    lac_print_text(text);
    for (int i = 0; table[i].name != NULL; i++) {
        char left[64];
        int used = 0;

        if (table[i].help == NULL) {
            continue;
        }
        if (table[i].letter != 0) {
            used = snprintf(left, sizeof(left), "-%c, ", table[i].letter);
        }
        (void)snprintf(left + used, sizeof(left) - (size_t)used, "--%s%s%s", table[i].name,
                       table[i].value != NULL ? " " : "",
                       table[i].value != NULL ? table[i].value : "");
        print_row(left, table[i].help);
    }
    print_row("--help", "this text");
}

/** Take one flag at argv[i]. @return arguments used (1 or 2), 0 after a message */
static int take_flag(struct lac_options *options, const char *command, int argc, char **argv, int i)
{
    const char *text = argv[i] + 1;
    const char *equals = NULL;
    const char *value = NULL;
    int row;
    bool off = false;

    if (*text == '-') {
        text++;
        equals = strchr(text, '=');
        row = find(options->table, text, equals != NULL ? (size_t)(equals - text) : strlen(text));
        if (row < 0 && strncmp(text, "no-", 3) == 0 && equals == NULL) {
            row = find(options->table, text + 3, strlen(text + 3));
            off = true;
            if (row >= 0 && options->table[row].value != NULL) {
                row = -1;
            }
        }
    } else {
        row = text[1] == '\0' ? find_letter(options->table, *text) : -1;
    }
    if (row < 0) {
        char wrong[400];

        (void)fprintf(stderr, "lacuna %s: no option %s (see lacuna %s --help)\n", command,
                      lac_terminal_string(argv[i], wrong, sizeof(wrong)), command);
        return 0;
    }
    if (options->table[row].value == NULL) {
        if (equals != NULL) {
            (void)fprintf(stderr, "lacuna %s: --%s takes no value\n", command,
                          options->table[row].name);
            return 0;
        }
        options->value[row] = off ? "0" : "1";
        return 1;
    }
    value = equals != NULL ? equals + 1 : (i + 1 < argc ? argv[i + 1] : NULL);
    if (value == NULL) {
        (void)fprintf(stderr, "lacuna %s: --%s needs a value (%s)\n", command,
                      options->table[row].name, options->table[row].value);
        return 0;
    }
    options->value[row] = value;
    return equals != NULL ? 1 : 2;
}

/** "LACUNA_KEEP_ORIGINALS" of "keep-originals". */
static const char *from_environment(const char *name)
{
    char variable[80];
    size_t length = 0;
    const char *value;

    for (const char *p = "LACUNA_"; *p != '\0'; p++) {
        variable[length++] = *p;
    }
    for (; *name != '\0' && length + 1 < sizeof(variable); name++) {
        char c = *name;

        if (c == '-') {
            c = '_';
        } else if (c >= 'a' && c <= 'z') {
            c = (char)(c - 'a' + 'A');
        }
        variable[length++] = c;
    }
    variable[length] = '\0';
    value = getenv(variable);
    return (value != NULL && *value != '\0') ? value : NULL;
}

static char *read_small_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    char *text = NULL;

    if (fd < 0) {
        return NULL;
    }
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= CONFIG_BYTES_MAX) {
        text = malloc((size_t)status.st_size + 1);
        const int64_t used = text != NULL ? lac_read_full(fd, text, (size_t)status.st_size) : 0;

        if (text != NULL) {
            text[used > 0 ? used : 0] = '\0';
        }
    }
    (void)close(fd);
    return text;
}

static char *read_config(char *path, size_t capacity_bytes)
{
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char *text = NULL;

    if (xdg != NULL && *xdg == '/') {
        (void)snprintf(path, capacity_bytes, "%s/lacuna/config", xdg);
        text = read_small_file(path);
    } else if (home != NULL && *home == '/') {
        (void)snprintf(path, capacity_bytes, "%s/.config/lacuna/config", home);
        text = read_small_file(path);
    }
    if (text == NULL) {
        (void)snprintf(path, capacity_bytes, "/etc/lacuna/config");
        text = read_small_file(path);
    }
    return text;
}

static char *trim(char *text)
{
    size_t length;

    while (*text == ' ' || *text == '\t') {
        text++;
    }
    length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL) {
        text[--length] = '\0';
    }
    return text;
}

/** Keys of other commands are in the same file: a key that is not in the table is not an error. */
static bool apply_config(struct lac_options *options, const char *command)
{
    char path[4096];
    int line_number = 0;
    char *next;

    options->config_text = read_config(path, sizeof(path));
    for (char *line = options->config_text; line != NULL; line = next) {
        char *end = strchr(line, '\n');
        char *equals;
        char *key;
        int row;

        next = end != NULL ? end + 1 : NULL;
        line_number++;
        if (end != NULL) {
            *end = '\0';
        }
        key = trim(line);
        if (*key == '\0' || *key == '#') {
            continue;
        }
        equals = strchr(key, '=');
        if (equals == NULL) {
            (void)fprintf(stderr, "lacuna %s: %s:%d: not of the form key = value\n", command, path,
                          line_number);
            return false;
        }
        *equals = '\0';
        key = trim(key);
        for (char *p = key; *p != '\0'; p++) {
            if (*p == '_') {
                *p = '-';
            }
        }
        row = find(options->table, key, strlen(key));
        if (row >= 0 && !options->table[row].flag_only && options->value[row] == NULL) {
            options->value[row] = trim(equals + 1);
        }
    }
    return true;
}

int lac_options_parse(struct lac_options *options, const struct lac_option *table,
                      const char *usage, int argc, char **argv)
{
    assert(options != NULL && table != NULL && is_whole(table));
    int operand_count = 0;
    bool flags = true;

    *options = (struct lac_options){.table = table, .operands = argv + 1};
    for (int i = 1; i < argc;) {
        int used = 1;

        if (flags && strcmp(argv[i], "--") == 0) {
            flags = false;
        } else if (flags && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            print_help(table, usage);
            return 0;
        } else if (flags && argv[i][0] == '-' && argv[i][1] != '\0') {
            used = take_flag(options, argv[0], argc, argv, i);
            if (used == 0) {
                return 2;
            }
        } else {
            argv[1 + operand_count++] = argv[i]; /* moves left only: nothing unread is lost */
        }
        i += used;
    }
    options->operand_count = operand_count;
    for (int i = 0; table[i].name != NULL; i++) {
        if (options->value[i] == NULL && !table[i].flag_only) {
            options->value[i] = from_environment(table[i].name);
        }
    }
    if (!apply_config(options, argv[0])) {
        lac_options_done(options);
        return 2;
    }
    return -1;
}

void lac_options_done(struct lac_options *options)
{
    free(options->config_text);
    *options = (struct lac_options){0};
}

const char *lac_options_text(const struct lac_options *options, const char *name,
                             const char *fallback)
{
    int row = find(options->table, name, strlen(name));

    return (row >= 0 && options->value[row] != NULL) ? options->value[row] : fallback;
}

bool lac_options_on(const struct lac_options *options, const char *name, bool fallback)
{
    const char *text = lac_options_text(options, name, NULL);

    if (text == NULL) {
        return fallback;
    }
    return strcmp(text, "1") == 0 || strcasecmp(text, "true") == 0 ||
           strcasecmp(text, "yes") == 0 || strcasecmp(text, "on") == 0;
}

bool lac_options_number(const struct lac_options *options, const char *name, uint64_t min,
                        uint64_t max, uint64_t fallback, uint64_t *ret_value)
{
    const char *text = lac_options_text(options, name, NULL);
    uint64_t value = fallback;

    if (text != NULL && (!lac_byte_size_parse(text, &value) || value < min || value > max)) {
        (void)fprintf(stderr, "lacuna: --%s %s: must be a whole number from %llu to %llu\n", name,
                      text, (unsigned long long)min, (unsigned long long)max);
        return false;
    }
    *ret_value = value;
    return true;
}

bool lac_options_data_dir(const struct lac_options *options, char *out, size_t capacity_bytes)
{
    const char *data = lac_options_text(options, "data", NULL);
    const char *xdg = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    int length;

    if (data != NULL && *data != '\0') {
        length = snprintf(out, capacity_bytes, "%s", data);
    } else if (xdg != NULL && *xdg == '/') {
        length = snprintf(out, capacity_bytes, "%s/lacuna", xdg);
    } else if (home != NULL && *home == '/') {
        length = snprintf(out, capacity_bytes, "%s/.local/share/lacuna", home);
    } else {
        (void)fprintf(stderr, "lacuna: no home folder: give the data folder with --data DIR\n");
        return false;
    }
    if (length < 0 || (size_t)length >= capacity_bytes) {
        (void)fprintf(stderr, "lacuna: the path of the data folder is too long\n");
        return false;
    }
    return true;
}
