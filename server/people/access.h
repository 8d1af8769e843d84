#ifndef LAC_SERVER_PEOPLE_ACCESS_H
#define LAC_SERVER_PEOPLE_ACCESS_H

/*
 * Whether who asks may do what it asks for; the answer that says no is written here, the same
 * everywhere: 404 for what one may not see, 403 for what one may see but not change.
 */

#include "server/http/request.h"
#include "server/people/people.h"
#include "server/store/people_rows.h"

#include <stdbool.h>

/** Reading from the disk is not needed. @param what "trace": for the sentence. @return false: the
 *  response says why */
bool lac_access_may(struct lac_people *people, const struct lac_principal *who, const char *project,
                    unsigned right, const char *what, struct lac_response *response);

/** The same for what belongs to a project: looks its project up, 20 us. One that does not exist is
 *  a 404, as one that may not be seen. An administrator of the service is not looked up for. */
bool lac_access_may_object(struct lac_people *people, struct lac_store *store,
                           const struct lac_principal *who, enum lac_owned_kind kind,
                           const char *id, unsigned right, struct lac_response *response);

/** Whether `who` may read the trace of this id, where no answer is to be written. */
bool lac_access_reads_trace(struct lac_people *people, struct lac_store *store,
                            const struct lac_principal *who, const char *id);

/**
 * The projects that `who` may read, as a JSON array of names, for the queries of lists.
 *
 * @param ret_names NULL: all, and what belongs to none; else owned by the caller
 * @return false: the response says why
 */
bool lac_access_readable(struct lac_people *people, struct lac_store *store,
                         const struct lac_principal *who, char **ret_names,
                         struct lac_response *response);

#endif
