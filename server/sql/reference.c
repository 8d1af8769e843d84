#include "server/sql/reference.h"

#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/json/json_out.h"
#include "server/sql/tables.h"

#include <stddef.h>
#include <string.h>

const struct lac_sql_question lac_sql_questions[] = {
#define LAC_SQL_QUESTION(id, question, sql) {id, question, sql},
#include "server/sql/cookbook.def"
};
const unsigned lac_sql_question_count = LAC_COUNT_OF(lac_sql_questions);

const struct lac_sql_question lac_sql_reports[] = {
#define LAC_SQL_REPORT(name, doc, sql) {name, doc, sql},
#include "server/sql/reports.def"
};
const unsigned lac_sql_report_count = LAC_COUNT_OF(lac_sql_reports);

static const struct lac_sql_question *find(const struct lac_sql_question *rows, unsigned count,
                                           const char *id)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(rows[i].id, id) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

const struct lac_sql_question *lac_sql_question_of(const char *id)
{
    return find(lac_sql_questions, lac_sql_question_count, id);
}

const struct lac_sql_question *lac_sql_report_of(const char *name)
{
    return find(lac_sql_reports, lac_sql_report_count, name);
}

void lac_sql_questions_text(struct lac_buffer *out)
{
    for (unsigned i = 0; i < lac_sql_question_count; i++) {
        const struct lac_sql_question *it = &lac_sql_questions[i];
        lac_buffer_printf(out, "%s%s: %s\n", i > 0 ? "\n" : "", it->id, it->question);
        for (const char *line = it->sql; *line != '\0';) {
            size_t length = strcspn(line, "\n");
            lac_buffer_printf(out, "    %.*s\n", (int)length, line);
            line += length + (line[length] == '\n');
        }
    }
}

static void add_table(struct lac_buffer *out, const struct lac_sql_table *table)
{
    lac_buffer_printf(out, "%s: %s\n", table->name, table->doc);
    for (unsigned c = 0; c < table->column_count; c++) {
        const struct lac_sql_column *column = lac_sql_table_column(table, c);
        bool is_argument = c >= table->column_count - table->argument_count;
        lac_buffer_printf(out, "    %-22s %-8s %s%s\n", column->name, column->type,
                          is_argument ? "argument: " : "", column->doc);
    }
}

bool lac_sql_reference_text(const char *name, struct lac_buffer *out)
{
    bool is_found = false;
    for (const struct lac_sql_table *const *table = lac_sql_tables(); *table != NULL; table++) {
        if (name == NULL || strcmp((*table)->name, name) == 0) {
            lac_buffer_puts(out, is_found ? "\n" : "");
            add_table(out, *table);
            is_found = true;
        }
    }
    if (name == NULL) {
        lac_buffer_puts(out, "\nBeside SQLite's own: median(x), percentile(x, p), stddev(x). Times "
                             "are nanoseconds since the start of the trace.\n");
    }
    return is_found;
}

static void add_json_table(struct lac_json *json, const struct lac_sql_table *table)
{
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "name", table->name);
    lac_json_text(json, "doc", table->doc);
    lac_json_open(json, "columns", '[');
    for (unsigned c = 0; c < table->column_count; c++) {
        const struct lac_sql_column *column = lac_sql_table_column(table, c);
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "name", column->name);
        lac_json_text(json, "type", column->type);
        lac_json_text(json, "doc", column->doc);
        lac_json_bool(json, "is_argument", c >= table->column_count - table->argument_count);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
    lac_json_close(json, '}');
}

void lac_sql_reference_json(struct lac_buffer *out)
{
    struct lac_json json;
    lac_json_init(&json, out);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "tables", '[');
    for (const struct lac_sql_table *const *table = lac_sql_tables(); *table != NULL; table++) {
        add_json_table(&json, *table);
    }
    lac_json_close(&json, ']');
    lac_json_open(&json, "questions", '[');
    for (unsigned i = 0; i < lac_sql_question_count; i++) {
        lac_json_open(&json, NULL, '{');
        lac_json_text(&json, "id", lac_sql_questions[i].id);
        lac_json_text(&json, "question", lac_sql_questions[i].question);
        lac_json_text(&json, "sql", lac_sql_questions[i].sql);
        lac_json_close(&json, '}');
    }
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
}
