#ifndef LAC_SERVER_STORE_DATABASE_DIALECT_H
#define LAC_SERVER_STORE_DATABASE_DIALECT_H

/*
 * The catalog's SQL, as SQLite reads it, in PostgreSQL's words. This is no translator of SQL: the
 * statements are ours, written in what both share, and what is left is a list:
 *
 *   ? and ?N                          $1 and $N
 *   user                              "user", a reserved word there
 *   INTEGER, REAL, BLOB               BIGINT, DOUBLE PRECISION, BYTEA
 *   TEXT of a column                  TEXT COLLATE "C": ordered by bytes, as SQLite does
 *   INTEGER PRIMARY KEY AUTOINCREMENT an identity
 *   WITHOUT ROWID                     nothing
 *   CAST(column AS BLOB)              convert_to(column, 'UTF8')
 *
 *   ?N IS NULL                        CAST($N AS TEXT) IS NULL: a type for the parameter
 *   lower()                           ascii_lower(): of ASCII only, as SQLite does
 *
 * The functions instr(), json_each() and ascii_lower() are made with the catalog's tables
 * (postgres_catalog.c).
 */

/** @param ret_parameter_count how many parameters it has; may be NULL
 *  @return NULL: out of memory; else the caller frees it */
char *lac_dialect_postgres(const char *sql, int *ret_parameter_count);

#endif
