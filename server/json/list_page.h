#ifndef LAC_SERVER_JSON_LIST_PAGE_H
#define LAC_SERVER_JSON_LIST_PAGE_H

/* A page of a reply that holds a whole list: `{"LIST":[...],"next":null}`, as our writer made it. */

#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <stdint.h>

/**
 * Keep the elements [after, after + limit) of the list, and say in `next` where the others begin.
 *
 * @param list  name of the member, the first of that name; a reply without it stays as it is
 * @param after elements that are passed over: 0, or the `next` of the page before
 * @return LAC_OK, LAC_ERR_NOMEM (the reply is as it was)
 * Cost: one pass over the bytes
 */
LAC_MUST_USE enum lac_status lac_list_page(struct lac_buffer *reply, const char *list,
                                           uint64_t after, uint64_t limit);

#endif
