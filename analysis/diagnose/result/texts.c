/* A linked list of strings, and numbers in words. */

#include "analysis/diagnose/result/texts.h"

#include "analysis/diagnose/result/saturate.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lac_text {
    struct lac_text *next;
    bool is_failure_mark; /**< first of the list: an allocation failed after this one */
    char text[];
};

/** The list when the first allocation of all failed. */
static struct lac_text failure_mark = {.is_failure_mark = true};

const char *lac_texts_add(struct lac_text **pool, const char *fmt, ...)
{
    if (lac_texts_failed(*pool)) {
        return "";
    }
    va_list list;
    va_start(list, fmt);
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, fmt, list);
    va_end(list);
    struct lac_text *entry = length < 0 ? NULL : malloc(sizeof(*entry) + (size_t)length + 1);
    if (entry == NULL) {
        va_end(again);
        if (*pool) { /* what was added is still being read */
            (*pool)->is_failure_mark = true;
        } else {
            *pool = &failure_mark;
        }
        return "";
    }
    entry->is_failure_mark = false;
    (void)vsnprintf(entry->text, (size_t)length + 1, fmt, again);
    va_end(again);
    entry->next = *pool;
    *pool = entry;
    return entry->text;
}

bool lac_texts_failed(const struct lac_text *pool)
{
    return pool != NULL && pool->is_failure_mark;
}

void lac_texts_destroy(struct lac_text *pool)
{
    while (pool != NULL && pool != &failure_mark) {
        struct lac_text *next = pool->next;
        free(pool);
        pool = next;
    }
}

/** "1 500": groups of three, for integers of up to nine digits. */
static int print_grouped(char *out, size_t capacity_bytes, double value)
{
    long long whole = lac_round(value);
    if (whole < 1000) {
        return snprintf(out, capacity_bytes, "%lld", whole);
    }
    if (whole < 1000000) {
        return snprintf(out, capacity_bytes, "%lld %03lld", whole / 1000, whole % 1000);
    }
    return snprintf(out, capacity_bytes, "%lld %03lld %03lld", whole / 1000000, whole / 1000 % 1000,
                    whole % 1000);
}

/** Two or three digits: 0.42, 4.2, 42, 420, 4 200. */
static int print_short(char *out, size_t capacity_bytes, double value)
{
    if (value >= 9.95) {
        return print_grouped(out, capacity_bytes, value);
    }
    if (value >= 0.0 && value < 0.995 && value > 0.0) {
        return snprintf(out, capacity_bytes, "%.2g", value);
    }
    double tenths = nearbyint(value * 10.0) / 10.0;
    if (fabs(tenths - nearbyint(tenths)) < 0.05) {
        return snprintf(out, capacity_bytes, "%.0f", tenths);
    }
    return snprintf(out, capacity_bytes, "%.1f", tenths);
}

/** 9637 is 9640. */
static double three_digits(double value)
{
    double unit = pow(10.0, floor(log10(value)) - 2.0);
    return nearbyint(value / unit) * unit;
}

struct lac_text32 lac_format_ns(int64_t ns)
{
    struct lac_text32 said;
    double value = (double)ns;
    const char *unit = "ns";
    if (value >= 9.995e8) { /* three digits, where milliseconds would take four */
        char seconds[24];
        if (value >= 9.995e11) {
            print_grouped(seconds, sizeof(seconds), three_digits(value / 1e9));
        } else {
            (void)snprintf(seconds, sizeof(seconds), "%.3g", value / 1e9);
        }
        (void)snprintf(said.text, sizeof(said.text), "%s s", seconds);
        return said;
    }
    if (value >= 1e5) {
        value /= 1e6;
        unit = "ms";
    } else if (value >= 1e3) {
        value /= 1e3;
        unit = "us";
    }
    char number[24];
    print_short(number, sizeof(number), value);
    (void)snprintf(said.text, sizeof(said.text), "%s %s", number, unit);
    return said;
}

struct lac_text32 lac_format_pct(double pct)
{
    struct lac_text32 said;
    if (isnan(pct)) {
        (void)snprintf(said.text, sizeof(said.text), "unknown");
    } else if (pct <= 0.0) {
        (void)snprintf(said.text, sizeof(said.text), "0");
    } else if (pct < 0.1) {
        (void)snprintf(said.text, sizeof(said.text), "below 0.1 %%");
    } else if (pct < 0.95) {
        (void)snprintf(said.text, sizeof(said.text), "%.1f %%", pct);
    } else {
        (void)snprintf(said.text, sizeof(said.text), "%.0f %%", pct);
    }
    return said;
}

struct lac_text32 lac_format_rate(double per_s)
{
    struct lac_text32 said;
    if (per_s >= 1000.0 && per_s < 1e15) { /* three digits, as below a thousand */
        per_s = three_digits(per_s);
    }
    print_short(said.text, sizeof(said.text), per_s);
    return said;
}

struct lac_text32 lac_format_bytes(int64_t bytes)
{
    struct lac_text32 said;
    double value = (double)bytes;
    const char *unit = "B";
    if (value >= 1e9) {
        value /= 1e9;
        unit = "GB";
    } else if (value >= 1e6) {
        value /= 1e6;
        unit = "MB";
    } else if (value >= 1e3) {
        value /= 1e3;
        unit = "KB";
    }
    char number[24];
    print_short(number, sizeof(number), value);
    (void)snprintf(said.text, sizeof(said.text), "%s %s", number, unit);
    return said;
}

struct lac_text32 lac_format_band(double low_pct, double high_pct)
{
    struct lac_text32 said;
    int low = (int)lround(fmax(0.0, fmin(low_pct, 1e6))); /* never "-0" */
    int high = (int)lround(fmax(0.0, fmin(high_pct, 1e6)));
    if (low == high) {
        (void)snprintf(said.text, sizeof(said.text), "%d %%", low);
    } else {
        (void)snprintf(said.text, sizeof(said.text), "%d-%d %%", low, high);
    }
    return said;
}

struct lac_text32 lac_format_count(int64_t count, const char *thing)
{
    struct lac_text32 said;
    char number[24];
    print_grouped(number, sizeof(number), (double)count);
    size_t length = strlen(thing);
    bool is_sibilant =
        length > 1 && (thing[length - 1] == 's' || strcmp(thing + length - 2, "ch") == 0);
    bool is_y =
        length > 1 && thing[length - 1] == 'y' && strchr("aeiou", thing[length - 2]) == NULL;
    (void)snprintf(said.text, sizeof(said.text), "%.14s %.*s%s", number,
                   (int)(is_y && count != 1 ? length - 1 : length), thing,
                   count == 1    ? ""
                   : is_sibilant ? "es"
                   : is_y        ? "ies"
                                 : "s");
    return said;
}
