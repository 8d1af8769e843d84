#ifndef LAC_SERVER_FORMS_FORMS_H
#define LAC_SERVER_FORMS_FORMS_H

/*
 * Answers in another form than the handlers give them: rows as CSV, and the schemas of documents.
 * All goes by openapi.json, the one description of what leaves.
 */

#include "server/base/buffer.h"
#include "server/http/request.h"

/** `?limit=` and `?after=` of a reply that holds a whole list (list_pages.c). */
void lac_forms_page(const struct lac_route *route, const struct lac_request *request,
                    struct lac_response *response);

/** For lac_http_options.finish: pages of lists; with `?format=csv` rows leave as CSV, 400 where there
 *  are none. */
void lac_forms_finish(void *app, const struct lac_route *route, const struct lac_request *request,
                      struct lac_response *response);

#endif
