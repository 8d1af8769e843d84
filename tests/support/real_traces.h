#ifndef LAC_TESTS_SUPPORT_REAL_TRACES_H
#define LAC_TESTS_SUPPORT_REAL_TRACES_H

/*
 * Where the real traces are: $LACUNA_TRACES, else ../shared/traces beside the repository, else
 * build/traces (`make traces`). Tests run in the repository's root.
 */

/** The folder; one that is not there when there is none. Static storage. */
const char *real_traces(void);

/** Path of `name` in it, as "kineto/x.json". Static storage, until the next call. */
const char *real_trace(const char *name);

#endif
