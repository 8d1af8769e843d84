/* Dates and times of logs. */

#include "analysis/import/tables/table_text.h"
#include "analysis/import/text/json_text.h"

#include <stdint.h>
#include <string.h>

enum { LAST_YEAR = 2200 }; /* nanoseconds since 1970 fit 63 bits until 2262 */

/* A date being read: what is left of the field. */
struct cursor {
    const char *at;
    const char *end;
};

static bool digits(struct cursor *cursor, int least, int most, int64_t *ret_value)
{
    int count = 0;
    int64_t value = 0;
    while (cursor->at < cursor->end && count < most && *cursor->at >= '0' && *cursor->at <= '9') {
        value = value * 10 + (*cursor->at++ - '0');
        count++;
    }
    *ret_value = value;
    return count >= least;
}

static bool one_of(struct cursor *cursor, const char *characters)
{
    if (cursor->at < cursor->end && *cursor->at != '\0' &&
        strchr(characters, *cursor->at) != NULL) {
        cursor->at++;
        return true;
    }
    return false;
}

/* Days from 1970-01-01 to a date of the Gregorian calendar. */
static int64_t days_to(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2 ? 1 : 0;
    const int64_t era = year / 400;
    const int64_t year_of_era = year - era * 400;
    const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

static bool clock_of(struct cursor *cursor, int64_t *ret_ns)
{
    int64_t hour = 0;
    int64_t minute = 0;
    int64_t second = 0;
    int64_t fraction_ns = 0;
    if (!digits(cursor, 1, 2, &hour) || !one_of(cursor, ":") || !digits(cursor, 2, 2, &minute) ||
        !one_of(cursor, ":") || !digits(cursor, 2, 2, &second) || hour > 23 || minute > 59 ||
        second > 60) {
        return false;
    }
    if (one_of(cursor, ".,")) {
        int64_t scale_ns = 100000000;
        int64_t digit = 0;
        while (digits(cursor, 1, 1, &digit)) {
            fraction_ns += digit * scale_ns;
            scale_ns /= 10;
        }
    }
    *ret_ns = ((hour * 60 + minute) * 60 + second) * INT64_C(1000000000) + fraction_ns;
    return true;
}

/* "Z", "UTC", "+08:00", "+0800" or nothing. */
static bool zone_of(struct cursor *cursor, int64_t *ret_offset_ns, enum lac_date_zone *ret_zone)
{
    int64_t hour = 0;
    int64_t minute = 0;
    *ret_offset_ns = 0;
    *ret_zone = LAC_DATE_LOCAL;
    (void)one_of(cursor, " ");
    if (one_of(cursor, "Z")) {
        *ret_zone = LAC_DATE_UTC;
    } else if (cursor->end - cursor->at == 3 && memcmp(cursor->at, "UTC", 3) == 0) {
        cursor->at += 3;
        *ret_zone = LAC_DATE_UTC;
    } else if (cursor->at < cursor->end && (*cursor->at == '+' || *cursor->at == '-')) {
        const int64_t sign = *cursor->at++ == '-' ? -1 : 1;
        if (!digits(cursor, 2, 2, &hour)) {
            return false;
        }
        (void)one_of(cursor, ":");
        if (!digits(cursor, 0, 2, &minute) || hour > 15 || minute > 59) {
            return false;
        }
        *ret_offset_ns = sign * (hour * 60 + minute) * INT64_C(60000000000);
        *ret_zone = LAC_DATE_UTC;
    }
    return cursor->at == cursor->end;
}

/* "Mon Sep 08 17:26:50 2025": the day's name, the month's name, and the year last. */
static bool named_date(struct cursor *cursor, int64_t *ret_day, int64_t *ret_clock_ns)
{
    static const char MONTHS[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t day = 0;
    int64_t year = 0;
    if (cursor->end - cursor->at < 20 || cursor->at[3] != ' ') {
        return false;
    }
    cursor->at += 4;
    int64_t month = 0;
    for (int64_t i = 0; i < 12 && month == 0; i++) {
        month = memcmp(cursor->at, MONTHS + i * 3, 3) == 0 ? i + 1 : 0;
    }
    cursor->at += 3;
    (void)one_of(cursor, " ");
    (void)one_of(cursor, " ");
    if (month == 0 || !digits(cursor, 1, 2, &day) || !one_of(cursor, " ") ||
        !clock_of(cursor, ret_clock_ns) || !one_of(cursor, " ") || !digits(cursor, 4, 4, &year) ||
        day < 1 || day > 31 || year < 1970 || year > LAST_YEAR) {
        return false;
    }
    *ret_day = days_to(year, month, day);
    return true;
}

static bool numeric_date(struct cursor *cursor, int64_t *ret_day, int64_t *ret_clock_ns)
{
    int64_t year = 0;
    int64_t month = 0;
    int64_t day = 0;
    if (!digits(cursor, 4, 4, &year)) {
        return false;
    }
    const bool is_parted = one_of(cursor, "-/");
    if (!digits(cursor, is_parted ? 1 : 2, 2, &month) || (is_parted && !one_of(cursor, "-/")) ||
        !digits(cursor, is_parted ? 1 : 2, 2, &day) || !one_of(cursor, "T ,")) {
        return false;
    }
    (void)one_of(cursor, " ");
    if (year < 1970 || year > LAST_YEAR || month < 1 || month > 12 || day < 1 || day > 31) {
        return false;
    }
    *ret_day = days_to(year, month, day);
    return clock_of(cursor, ret_clock_ns);
}

bool lac_field_date(struct lac_table_field field, int64_t *ret_ns, enum lac_date_zone *ret_zone)
{
    field = lac_field_trimmed(field);
    int64_t day = 0;
    int64_t clock_ns = 0;
    int64_t offset_ns = 0;
    struct lac_table_field number;
    struct lac_table_field unit;
    *ret_zone = LAC_DATE_UTC;
    if (lac_field_number(field, &number, &unit) && unit.size == 0 && number.size >= 9 &&
        lac_decimal_scaled((const uint8_t *)number.text, number.size, 9, ret_ns)) {
        return *ret_ns > INT64_C(100000000000000000) && *ret_ns < INT64_C(1) << 61;
    }
    struct cursor named = {field.text, field.text + field.size};
    struct cursor cursor = named;
    if (named_date(&named, &day, &clock_ns)) {
        cursor = named;
    } else if (!numeric_date(&cursor, &day, &clock_ns)) {
        return false;
    }
    if (!zone_of(&cursor, &offset_ns, ret_zone)) {
        return false;
    }
    *ret_ns = day * INT64_C(86400000000000) + clock_ns - offset_ns;
    return true;
}
