#include "collector/base/debug.h"

#include "collector/base/count_of.h"
#include "collector/base/write_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 600 };

uint8_t lac_debug_levels[LAC_DEBUG_AREA_COUNT_];

static const char *const area_names[LAC_DEBUG_AREA_COUNT_] = {
    [LAC_DEBUG_PROCESS] = "process", [LAC_DEBUG_NVTX] = "nvtx",     [LAC_DEBUG_SPOOL] = "spool",
    [LAC_DEBUG_NAMES] = "names",     [LAC_DEBUG_HOOK] = "hook",     [LAC_DEBUG_CUPTI] = "cupti",
    [LAC_DEBUG_LAUNCH] = "launch",   [LAC_DEBUG_GATHER] = "gather", [LAC_DEBUG_SAMPLE] = "sample",
    [LAC_DEBUG_PUSH] = "push",
};

/* The stderr that the process began with. */
static int debug_fd = -1;
static dev_t debug_device;
static ino_t debug_inode;

/* ---- a line, without stdio, which may lock and allocate */

struct line {
    char text[LINE_BYTES];
    size_t used; /* at most all but the newline */
};

static void put_char(struct line *line, char c)
{
    if (line->used < sizeof(line->text) - 1) {
        line->text[line->used++] = c;
    }
}

static void put_string(struct line *line, const char *text)
{
    for (; *text != '\0'; text++) {
        put_char(line, *text);
    }
}

static void put_number(struct line *line, uint64_t value, unsigned base, unsigned digits_min)
{
    char digits[20]; /* of the largest number, last digit first */
    unsigned count = 0;

    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value > 0);
    for (; digits_min > count; digits_min--) {
        put_char(line, '0');
    }
    while (count > 0) {
        put_char(line, digits[--count]);
    }
}

/* Text from outside: nothing in it may steer a terminal or begin another line. */
static void put_text(struct line *line, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];

        if (c >= 0x20 && c < 0x7f) {
            put_char(line, text[i]);
        } else {
            put_string(line, "\\x");
            put_number(line, c, 16, 2);
        }
    }
}

/* What debug.h names of printf(); the rest is for the compiler to find. */
static void put_format(struct line *line, const char *format, va_list values)
{
    for (; *format != '\0'; format++) {
        size_t length = SIZE_MAX;
        unsigned longs = 0;

        if (*format != '%') {
            put_char(line, *format);
            continue;
        }
        format++;
        if (format[0] == '.' && format[1] == '*') {
            const int most = va_arg(values, int);

            length = most > 0 ? (size_t)most : 0;
            format += 2;
        }
        for (; *format == 'l' || *format == 'z'; format++) {
            longs++;
        }
        if (*format == '%') {
            put_char(line, '%');
        } else if (*format == 's') {
            const char *const text = va_arg(values, const char *);
            const char *const shown = text != NULL ? text : "(none)";

            put_text(line, shown, strnlen(shown, length));
        } else if (*format == 'd') {
            const long long value = longs > 1   ? va_arg(values, long long)
                                    : longs > 0 ? va_arg(values, long)
                                                : va_arg(values, int);

            put_string(line, value < 0 ? "-" : "");
            put_number(line, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10, 0);
        } else {
            const unsigned long long value = longs > 1   ? va_arg(values, unsigned long long)
                                             : longs > 0 ? va_arg(values, unsigned long)
                                                         : va_arg(values, unsigned);

            put_number(line, value, *format == 'x' ? 16 : 10, 0);
        }
    }
}

static void write_line(int fd, struct line *line)
{
    struct lac_write_signals held;
    ssize_t told;

    line->text[line->used] = '\n';
    lac_write_signals_hold(&held);
    told = write(fd, line->text, line->used + 1);
    (void)told; /* nobody else to tell */
    lac_write_signals_release(&held);
}

/* By the system call: glibc before 2.33 has no symbol fstat. */
static bool identify(int fd, struct stat *ret)
{
    memset(ret, 0, sizeof(*ret));
    return syscall(SYS_fstat, fd, ret) == 0;
}

/* Programs that close every descriptor they do not know leave us with somebody else's. */
static bool is_still_stderr(void)
{
    struct stat status;

    return debug_fd >= 0 && identify(debug_fd, &status) && status.st_dev == debug_device &&
           status.st_ino == debug_inode;
}

void lac_debug_say(enum lac_debug_area area, const char *format, ...)
{
    const int error = errno;
    struct line line = {.used = 0};
    struct timespec now = {0};
    uint64_t second;
    va_list values;

    if (is_still_stderr()) {
        (void)clock_gettime(CLOCK_REALTIME, &now);
        second = (uint64_t)now.tv_sec % 86400;
        put_string(&line, "lacuna: ");
        put_number(&line, second / 3600, 10, 2);
        put_char(&line, ':');
        put_number(&line, second / 60 % 60, 10, 2);
        put_char(&line, ':');
        put_number(&line, second % 60, 10, 2);
        put_char(&line, '.');
        put_number(&line, (uint64_t)now.tv_nsec / 1000, 10, 6);
        put_string(&line, " [");
        put_number(&line, (uint64_t)getpid(), 10, 0);
        put_string(&line, "] ");
        put_string(&line, area_names[area]);
        put_string(&line, ": ");
        va_start(values, format);
        put_format(&line, format, values);
        va_end(values);
        write_line(debug_fd, &line);
    }
    errno = error;
}

bool lac_debug_is_any(void)
{
    return debug_fd >= 0;
}

/* ---- what is wished for */

/* "0" to "3" at `text`, of `length`. */
static bool parse_level(const char *text, size_t length, uint8_t *ret_level)
{
    *ret_level = length == 1 ? (uint8_t)(text[0] - '0') : UINT8_MAX;
    return *ret_level <= LAC_DEBUG_LEVEL_MAX;
}

/* "spool:3" */
static bool parse_area(const char *text, size_t length, uint8_t *levels)
{
    for (size_t i = 0; i < LAC_DEBUG_AREA_COUNT_; i++) {
        const size_t name_length = strlen(area_names[i]);

        if (length > name_length && text[name_length] == ':' &&
            memcmp(text, area_names[i], name_length) == 0) {
            return parse_level(text + name_length + 1, length - name_length - 1, &levels[i]);
        }
    }
    return false;
}

/* @return what cannot be understood, of *ret_length bytes; NULL: all can */
static const char *parse(const char *wish, uint8_t *levels, size_t *ret_length)
{
    uint8_t all;

    memset(levels, 0, LAC_DEBUG_AREA_COUNT_);
    *ret_length = strlen(wish);
    if (*ret_length == 0) {
        return NULL;
    }
    if (parse_level(wish, *ret_length, &all)) {
        memset(levels, all, LAC_DEBUG_AREA_COUNT_);
        return NULL;
    }
    for (const char *at = wish;; at += *ret_length + 1) {
        *ret_length = strcspn(at, ",");
        if (!parse_area(at, *ret_length, levels)) {
            return at;
        }
        if (at[*ret_length] == '\0') {
            return NULL;
        }
    }
}

static void complain(const char *what, size_t length)
{
    struct line line = {.used = 0};

    put_string(&line, "lacuna: LACUNA_DEBUG: \"");
    put_text(&line, what, length < 100 ? length : 100);
    put_string(&line,
               "\" is neither a level from 0 to 3 nor AREA:LEVEL[,AREA:LEVEL...], with areas");
    for (size_t i = 0; i < LAC_DEBUG_AREA_COUNT_; i++) {
        put_char(&line, ' ');
        put_string(&line, area_names[i]);
    }
    put_string(&line, "; nothing is shown");
    write_line(STDERR_FILENO, &line);
}

/* Low numbers are the program's. */
static bool keep_stderr(void)
{
    static const int lowest[] = {900, 200, 20, 3};
    struct stat status;

    for (size_t i = 0; i < LAC_COUNT_OF(lowest) && debug_fd < 0; i++) {
        debug_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, lowest[i]);
    }
    if (debug_fd < 0 || !identify(debug_fd, &status)) {
        return false;
    }
    debug_device = status.st_dev;
    debug_inode = status.st_ino;
    return true;
}

bool lac_debug_begin(const char *wish)
{
    const int error = errno;
    uint8_t levels[LAC_DEBUG_AREA_COUNT_];
    size_t length = 0;
    const char *const wrong = parse(wish != NULL ? wish : "", levels, &length);
    bool is_any = false;

    for (size_t i = 0; i < LAC_DEBUG_AREA_COUNT_; i++) {
        is_any = is_any || levels[i] > 0;
    }
    if (wrong != NULL) {
        complain(wrong, length);
    } else if (is_any && keep_stderr()) {
        memcpy(lac_debug_levels, levels, sizeof(lac_debug_levels));
    }
    errno = error;
    return wrong == NULL;
}
