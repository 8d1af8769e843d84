#ifndef LAC_SERVER_STORE_SCHEMA_REPORTS_H
#define LAC_SERVER_STORE_SCHEMA_REPORTS_H

/* Tables of reports and of links that share them; a step of the catalog's migrations. */

#define LAC_SCHEMA_REPORTS                                                                         \
    "ALTER TABLE reports ADD COLUMN version INTEGER NOT NULL DEFAULT 1;"                           \
    "ALTER TABLE reports ADD COLUMN author TEXT NOT NULL DEFAULT '';"                              \
    "ALTER TABLE reports ADD COLUMN editor TEXT NOT NULL DEFAULT '';"                              \
    "CREATE INDEX reports_by_time ON reports(updated_ms, id);"                                     \
    "CREATE TABLE report_versions(report TEXT NOT NULL, version INTEGER NOT NULL, title TEXT NOT"  \
    " NULL, body TEXT NOT NULL, author TEXT NOT NULL, at_ms INTEGER NOT NULL,"                     \
    " PRIMARY KEY(report, version)) WITHOUT ROWID;"                                                \
    "CREATE TABLE report_parts(report TEXT NOT NULL, part TEXT NOT NULL, at_ms INTEGER NOT NULL,"  \
    " snapshot TEXT NOT NULL, PRIMARY KEY(report, part)) WITHOUT ROWID;"                           \
    "CREATE TABLE report_comments(id TEXT PRIMARY KEY, report TEXT NOT NULL, thread TEXT NOT "     \
    "NULL,"                                                                                        \
    " part TEXT NOT NULL, body TEXT NOT NULL, author TEXT NOT NULL, mentions TEXT NOT NULL,"       \
    " at_ms INTEGER NOT NULL, edited_ms INTEGER, resolved_by TEXT, resolved_ms INTEGER)"           \
    " WITHOUT ROWID;"                                                                              \
    "CREATE INDEX report_comments_by_report ON report_comments(report, at_ms);"                    \
    "CREATE TABLE report_findings(report TEXT NOT NULL, part TEXT NOT NULL, state TEXT NOT NULL,"  \
    " note TEXT NOT NULL, author TEXT NOT NULL, at_ms INTEGER NOT NULL,"                           \
    " PRIMARY KEY(report, part)) WITHOUT ROWID;"                                                   \
    "CREATE TABLE shares(id TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, kind TEXT NOT NULL,"      \
    " target TEXT NOT NULL, redact TEXT NOT NULL, snapshot TEXT, author TEXT NOT NULL,"            \
    " created_ms INTEGER NOT NULL, expires_ms INTEGER, used_ms INTEGER, used_count INTEGER NOT"    \
    " NULL DEFAULT 0) WITHOUT ROWID;"                                                              \
    "CREATE INDEX shares_by_target ON shares(target);"

#endif
