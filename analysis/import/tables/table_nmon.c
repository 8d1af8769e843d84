/*
 * nmon: "CPU_ALL,CPU Total host,User%,Sys%" is the heading of a section, "CPU_ALL,T0001,3.1,0.4" a
 * row of it, "ZZZZ,T0001,16:06:06,25-APR-2026" the time of the rows that follow.
 */

#include "analysis/import/tables/table_log_private.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SECTIONS_MAX = 1024 };

struct section {
    uint32_t name;  /* string id */
    uint32_t first; /* of its headings */
    uint32_t count;
};

struct lac_nmon {
    struct section sections[SECTIONS_MAX];
    uint32_t section_count;
    uint32_t *headings; /* string ids */
    uint32_t heading_count;
    uint32_t heading_capacity;
};

enum lac_status lac_nmon_open(struct lac_tables *tables)
{
    tables->log->nmon = calloc(1, sizeof(*tables->log->nmon));
    return tables->log->nmon == NULL ? lac_tables_pass(tables, LAC_ERR_NOMEM) : LAC_OK;
}

void lac_nmon_done(struct lac_nmon *nmon)
{
    if (nmon != NULL) {
        free(nmon->headings);
        free(nmon);
    }
}

static struct section *find_section(struct lac_nmon *nmon, uint32_t name)
{
    for (uint32_t i = 0; i < nmon->section_count; i++) {
        if (nmon->sections[i].name == name) {
            return &nmon->sections[i];
        }
    }
    return NULL;
}

static enum lac_status read_heading(struct lac_tables *tables, uint32_t name)
{
    struct lac_nmon *nmon = tables->log->nmon;
    uint32_t count = (uint32_t)tables->field_count - 2;
    if (nmon->section_count == SECTIONS_MAX) {
        lac_tables_drop(tables, "section_dropped", "Sections beyond the 1024th were dropped.");
        return LAC_OK;
    }
    if (LAC_GROW(nmon->headings, &nmon->heading_capacity, nmon->heading_count + count) != LAC_OK) {
        return lac_tables_pass(tables, LAC_ERR_NOMEM);
    }
    struct section *section = &nmon->sections[nmon->section_count];
    *section = (struct section){.name = name, .first = nmon->heading_count};
    enum lac_status status = LAC_OK;
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        status = lac_tables_intern(tables, tables->fields[i + 2],
                                   &nmon->headings[nmon->heading_count + i]);
    }
    if (status == LAC_OK) {
        section->count = count;
        nmon->heading_count += count;
        nmon->section_count++;
    }
    return status;
}

/* "16:06:06" and "25-APR-2026" */
static bool read_time(struct lac_tables *tables)
{
    static const char MONTHS[] = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
    char date[16];
    char clock[16];
    char text[64];
    int month = 0;
    enum lac_date_zone zone;
    if (tables->field_count < 4 || tables->fields[3].size != 11) {
        return false;
    }
    lac_field_copy(tables->fields[3], date, sizeof(date));
    lac_field_copy(tables->fields[2], clock, sizeof(clock));
    for (int i = 0; i < 12 && strlen(date) == 11; i++) {
        month = strncasecmp(date + 3, MONTHS + (size_t)i * 3, 3) == 0 ? i + 1 : month;
    }
    if (month == 0) {
        return false;
    }
    (void)snprintf(text, sizeof(text), "%.4s-%02d-%.2s %s", date + 7, month, date, clock);
    if (!lac_field_date((struct lac_table_field){text, strlen(text)}, &tables->log->now_ns,
                        &zone)) {
        return false;
    }
    tables->log->has_now = true;
    tables->log->is_local = true;
    return true;
}

static enum lac_status read_values(struct lac_tables *tables, const struct section *section)
{
    enum lac_status status = LAC_OK;
    tables->model->info.event_count++;
    tables->lines.row_count++;
    for (uint32_t i = 0; i < section->count && i + 2 < tables->field_count && status == LAC_OK;
         i++) {
        char name[2 * LAC_LOG_NAME_BYTES];
        double value = 0;
        if (!lac_table_log_value(tables->fields[i + 2], &value)) {
            continue;
        }
        (void)snprintf(
            name, sizeof(name), "%.60s: %.60s", lac_model_str(tables->model, section->name),
            lac_model_str(tables->model, tables->log->nmon->headings[section->first + i]));
        status = lac_table_log_sample(tables, -1, name, value);
    }
    return status;
}

static bool is_snapshot(struct lac_table_field field)
{
    int64_t number = 0;
    return field.size > 1 && field.text[0] == 'T' &&
           lac_field_integer((struct lac_table_field){field.text + 1, field.size - 1}, &number);
}

enum lac_status lac_nmon_line(struct lac_tables *tables, char *line, size_t size)
{
    size_t count = lac_table_split(line, size, LAC_TABLE_CSV, tables->fields, LAC_TABLE_FIELDS_MAX);
    uint32_t name = 0;
    if (count == SIZE_MAX || count < 3) {
        return LAC_OK;
    }
    tables->field_count = count;
    struct lac_table_field section = tables->fields[0];
    if (lac_field_is(section, "ZZZZ")) {
        if (!read_time(tables)) {
            lac_tables_drop(tables, "row_without_times", "Rows without a time were dropped.");
        }
        return LAC_OK;
    }
    /* AAA and BBB describe the host; TOP has a row a process */
    if (lac_field_is(section, "AAA") || lac_field_begins(section, "BBB") ||
        lac_field_is(section, "TOP") || lac_field_is(section, "UARG")) {
        return LAC_OK;
    }
    enum lac_status status = lac_tables_intern(tables, section, &name);
    if (status != LAC_OK) {
        return status;
    }
    struct section *found = find_section(tables->log->nmon, name);
    if (!is_snapshot(tables->fields[1])) {
        return found == NULL ? read_heading(tables, name) : LAC_OK;
    }
    return found != NULL && tables->log->has_now ? read_values(tables, found) : LAC_OK;
}
