#ifndef LAC_SERVER_JSON_SCHEMA_JSON_H
#define LAC_SERVER_JSON_SCHEMA_JSON_H

/*
 * JSON Schemas (2020-12) of the documents that leave, cut out of openapi.json: each stands alone,
 * with what it refers to in `$defs`.
 */

#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <stddef.h>

struct json_object;

/**
 * Write `{"schemas":[{"name","document","description"}],"next":null}`: what there is.
 *
 * @param description of lac_description_read(); it is not changed
 */
LAC_MUST_USE enum lac_status lac_schema_list(struct json_object *description,
                                             struct lac_buffer *out, struct lac_error *reterr);

/**
 * Write one schema.
 *
 * @param description of lac_description_read(). Its references are rewritten: it is of no use
 *        after
 * @param name        "Analysis", in any case, or what documents call themselves:
 *                    "lacuna.analysis/1"
 * @return LAC_ERR_NOT_FOUND: there is none
 */
LAC_MUST_USE enum lac_status lac_schema_write(struct json_object *description, const char *name,
                                              struct lac_buffer *out, struct lac_error *reterr);

#endif
