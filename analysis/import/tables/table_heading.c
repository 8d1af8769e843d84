/* Which table a line is the heading of, and what its columns are. */

#include "analysis/import/tables/tables_private.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const struct {
    enum lac_table_role role;
    const char *heading;
} COLUMNS[] = {
#define LAC_TABLE_COLUMN(ROLE, text) {LAC_ROLE_##ROLE, (text)},
#include "analysis/import/tables/table_columns.def"
#undef LAC_TABLE_COLUMN
};

/* Letters in lower case; spaces and underscores are left out. */
static size_t plain_heading(const char *text, size_t size, char out[LAC_TABLE_HEADINGS_BYTES])
{
    size_t used = 0;
    for (size_t i = 0; i < size && used + 1 < LAC_TABLE_HEADINGS_BYTES; i++) {
        char c = text[i];
        if (c == ' ' || c == '_') {
            continue;
        }
        out[used++] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    out[used] = '\0';
    return used;
}

static bool ends_with(const char *text, size_t size, const char *end)
{
    size_t length = strlen(end);
    return size >= length && memcmp(text + size - length, end, length) == 0;
}

static void set_unit(char out[16], const char *text, size_t size)
{
    size = size < 15 ? size : 15;
    memcpy(out, text, size);
    out[size] = '\0';
}

/* The heading without its unit, which goes to `unit`: "Start (ns)", "Time(%)", "Start:ts_ns". */
static struct lac_table_field without_unit(struct lac_table_field heading, char unit[16])
{
    const char *open = memchr(heading.text, '(', heading.size);
    unit[0] = '\0';
    if (open == NULL) {
        open = memchr(heading.text, '[', heading.size);
    }
    if (open != NULL && open != heading.text) {
        const char *last = heading.text + heading.size - 1;
        size_t inside = *last == ')' || *last == ']' ? (size_t)(last - open - 1) : 0;
        set_unit(unit, open + 1, inside);
        return lac_field_trimmed(
            (struct lac_table_field){heading.text, (size_t)(open - heading.text)});
    }
    const char *colon = memchr(heading.text, ':', heading.size);
    const char *bar =
        colon == NULL ? NULL : memchr(colon, '_', (size_t)(heading.text + heading.size - colon));
    if (colon != NULL && bar != NULL) {
        set_unit(unit, bar + 1, (size_t)(heading.text + heading.size - bar - 1));
        return (struct lac_table_field){heading.text, (size_t)(colon - heading.text)};
    }
    return heading;
}

static enum lac_table_role role_of(struct lac_table_field heading, char unit[16])
{
    char text[LAC_TABLE_HEADINGS_BYTES];
    char other[LAC_TABLE_HEADINGS_BYTES];
    size_t size = 0;
    if (heading.size == 0 || heading.size >= LAC_TABLE_HEADINGS_BYTES) {
        return LAC_ROLE_COUNT_;
    }
    heading = without_unit(heading, unit);
    size = plain_heading(heading.text, heading.size, text);
    for (size_t i = 0; i < LAC_COUNT_OF(COLUMNS); i++) {
        if (plain_heading(COLUMNS[i].heading, strlen(COLUMNS[i].heading), other) != size ||
            memcmp(text, other, size) != 0) {
            continue;
        }
        if (unit[0] == '\0' &&
            (ends_with(text, size, "ns") || ends_with(text, size, "timestamp"))) {
            set_unit(unit, "ns", 2);
        }
        return COLUMNS[i].role == LAC_ROLE_TOTAL && strcmp(unit, "%") == 0 ? LAC_ROLE_SHARE
                                                                           : COLUMNS[i].role;
    }
    return LAC_ROLE_COUNT_;
}

static bool has(const struct lac_table_heading *heading, enum lac_table_role role)
{
    return heading->column_of[role] >= 0;
}

/* What the rows are, by which columns there are. */
static enum lac_table_kind kind_of(const struct lac_table_heading *heading)
{
    if (!has(heading, LAC_ROLE_NAME)) {
        return LAC_TABLE_NONE;
    }
    if (has(heading, LAC_ROLE_SELF_HOST) && has(heading, LAC_ROLE_CALLS)) {
        return LAC_TABLE_TORCH;
    }
    if (has(heading, LAC_ROLE_DISPATCH) && has(heading, LAC_ROLE_COUNTER) &&
        has(heading, LAC_ROLE_COUNTER_VALUE)) {
        return LAC_TABLE_COUNTERS;
    }
    if (has(heading, LAC_ROLE_START) &&
        (has(heading, LAC_ROLE_DURATION) || has(heading, LAC_ROLE_END))) {
        bool is_placed = has(heading, LAC_ROLE_STREAM) || has(heading, LAC_ROLE_QUEUE) ||
                         has(heading, LAC_ROLE_CORRELATION) || has(heading, LAC_ROLE_THREAD) ||
                         has(heading, LAC_ROLE_AGENT_FROM);
        return is_placed || heading->column_count == 3 ? LAC_TABLE_TIMED : LAC_TABLE_NONE;
    }
    if (has(heading, LAC_ROLE_TOTAL) && has(heading, LAC_ROLE_CALLS) &&
        (has(heading, LAC_ROLE_SHARE) || has(heading, LAC_ROLE_AVERAGE))) {
        return LAC_TABLE_SUMS;
    }
    if (has(heading, LAC_ROLE_ID) && has(heading, LAC_ROLE_METRIC) &&
        has(heading, LAC_ROLE_METRIC_VALUE)) {
        return LAC_TABLE_METRICS;
    }
    if (has(heading, LAC_ROLE_ID) && has(heading, LAC_ROLE_CONTEXT) &&
        has(heading, LAC_ROLE_STREAM)) {
        return LAC_TABLE_LAUNCHES;
    }
    return LAC_TABLE_NONE;
}

static enum lac_trace_format format_of(const struct lac_table_heading *heading)
{
    switch (heading->kind) {
    case LAC_TABLE_TORCH:
        return LAC_FORMAT_TORCH_TABLE;
    case LAC_TABLE_LAUNCHES:
    case LAC_TABLE_METRICS:
        return LAC_FORMAT_NCU;
    case LAC_TABLE_COUNTERS:
        return LAC_FORMAT_ROCPROF;
    case LAC_TABLE_NONE:
    case LAC_TABLE_TIMED:
    case LAC_TABLE_SUMS:
    case LAC_TABLE_LOG:
    case LAC_TABLE_DMON:
    case LAC_TABLE_NMON:
        break;
    }
    /* nsys and ROCm write the unit into the heading, nvprof below it or beside each value */
    enum lac_table_role time = heading->kind == LAC_TABLE_SUMS ? LAC_ROLE_TOTAL : LAC_ROLE_START;
    bool has_unit = heading->unit_of[time][0] != '\0';
    bool is_rocm = has(heading, LAC_ROLE_QUEUE) || has(heading, LAC_ROLE_AGENT_FROM) ||
                   heading->is_rocm_sum ||
                   (has_unit && has(heading, LAC_ROLE_TYPE) && !has(heading, LAC_ROLE_SHARE));
    return !has_unit ? LAC_FORMAT_NVPROF : is_rocm ? LAC_FORMAT_ROCPROF : LAC_FORMAT_NSYS_STATS;
}

bool lac_table_heading_read(char *line, size_t size, struct lac_table_heading *ret_heading,
                            struct lac_table_field *fields, size_t *ret_count)
{
    struct lac_table_heading *heading = ret_heading;
    *heading = (struct lac_table_heading){.kind = LAC_TABLE_NONE};
    memset(heading->column_of, 0xff, sizeof(heading->column_of));
    if (size > 0 && (line[0] == '{' || line[0] == '[' || line[0] == '=')) {
        return false;
    }
    bool is_csv = size > 0 && memchr(line, ',', size) != NULL;
    heading->split = is_csv ? LAC_TABLE_CSV : LAC_TABLE_SPACED;
    size_t count = lac_table_split(line, size, heading->split, fields, LAC_TABLE_FIELDS_MAX);
    if (count == SIZE_MAX || count < 3) {
        return false;
    }
    heading->column_count = count;
    for (size_t i = 0; i < count; i++) {
        char unit[16] = "";
        enum lac_table_role role = role_of(fields[i], unit);
        if (role == LAC_ROLE_COUNT_ || has(heading, role)) {
            continue;
        }
        heading->column_of[role] = (int)i;
        memcpy(heading->unit_of[role], unit, sizeof(unit));
        heading->has_instances |= lac_field_is(fields[i], "Instances");
        heading->has_calls_of_api |= lac_field_is(fields[i], "Num Calls");
        heading->is_rocm_sum |= lac_field_is(fields[i], "TotalDurationNs");
        heading->is_ranges |= lac_field_is(fields[i], "Range") || role == LAC_ROLE_RANGE_ID;
    }
    heading->kind = kind_of(heading);
    heading->format = format_of(heading);
    *ret_count = count;
    return heading->kind != LAC_TABLE_NONE;
}

bool lac_table_units_read(struct lac_tables *tables)
{
    struct lac_table_heading *heading = &tables->heading;
    int name = heading->column_of[LAC_ROLE_NAME];
    int power = 0;
    bool has_time = false;
    if (tables->field_count > heading->column_count ||
        ((size_t)name < tables->field_count && tables->fields[name].size > 0)) {
        return false; /* a row of values has a name */
    }
    for (int role = 0; role < LAC_ROLE_COUNT_; role++) {
        int column = heading->column_of[role];
        struct lac_table_field unit = {NULL, 0};
        if (column >= 0 && (size_t)column < tables->field_count) {
            unit = tables->fields[column];
        }
        if (unit.size > 0) {
            set_unit(heading->unit_of[role], unit.text, unit.size);
            has_time = has_time || lac_unit_of_time(unit, &power);
        }
    }
    return has_time;
}

struct lac_table_field lac_table_get(const struct lac_tables *tables, enum lac_table_role role)
{
    int column = tables->heading.column_of[role];
    struct lac_table_field field = {"", 0};
    if (column >= 0 && (size_t)column < tables->field_count) {
        field = tables->fields[column];
    }
    return lac_field_is(field, "-") ? (struct lac_table_field){"", 0} : field;
}

static struct lac_table_field unit_of(const struct lac_tables *tables, enum lac_table_role role)
{
    const char *unit = tables->heading.unit_of[role];
    return (struct lac_table_field){unit, strlen(unit)};
}

bool lac_table_ns(const struct lac_tables *tables, enum lac_table_role role, int64_t *ret_ns)
{
    return lac_field_ns(lac_table_get(tables, role), unit_of(tables, role), ret_ns);
}

bool lac_table_number(const struct lac_tables *tables, enum lac_table_role role, int64_t *ret_value)
{
    return lac_field_integer(lac_table_get(tables, role), ret_value);
}
