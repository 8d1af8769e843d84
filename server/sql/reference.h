#ifndef LAC_SERVER_SQL_REFERENCE_H
#define LAC_SERVER_SQL_REFERENCE_H

/* The reference of all tables and columns, made from the tables themselves. */

#include "server/base/buffer.h"

#include <stdbool.h>

/** As text for people. @param name a table, NULL: all. @return false: there is no such table */
bool lac_sql_reference_text(const char *name, struct lac_buffer *out);

/** As JSON: {"tables":[{"name","doc","columns":[{"name","type","doc","is_argument"}]}],
 *  "questions":[{"id","question","sql"}]}. */
void lac_sql_reference_json(struct lac_buffer *out);

/** A question that people ask often, with the query that answers it (cookbook.def). */
struct lac_sql_question {
    const char *id;
    const char *question;
    const char *sql;
};
extern const struct lac_sql_question lac_sql_questions[];
extern const unsigned lac_sql_question_count;

/** The question with that id, or NULL. */
const struct lac_sql_question *lac_sql_question_of(const char *id);

/** Reports in the columns of `nsys stats` (reports.def): the name, what it tells, the query. */
extern const struct lac_sql_question lac_sql_reports[];
extern const unsigned lac_sql_report_count;

/** The report with that name, or NULL. */
const struct lac_sql_question *lac_sql_report_of(const char *name);

/** All questions with their queries, as text for people. */
void lac_sql_questions_text(struct lac_buffer *out);

#endif
