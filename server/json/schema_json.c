#include "server/json/schema_json.h"

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/json/json_out.h"

#include <json-c/json_object.h>
#include <json-c/json_object_iterator.h>
#include <json-c/json_types.h>
#include <json-c/linkhash.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { DEPTH_MAX = 64, NAME_BYTES = 128 };

static const char definitions[] = "#/$defs/";

static struct json_object *member_of(struct json_object *object, const char *key)
{
    struct json_object *member = NULL;

    return json_object_is_type(object, json_type_object) &&
                   json_object_object_get_ex(object, key, &member)
               ? member
               : NULL;
}

static struct json_object *schemas_of(struct json_object *description)
{
    return member_of(member_of(description, "components"), "schemas");
}

/** What a document of this schema calls itself in its member `schema`; NULL: nothing. */
static const char *document_of(struct json_object *schema)
{
    return json_object_get_string(
        member_of(member_of(member_of(schema, "properties"), "schema"), "const"));
}

enum lac_status lac_schema_list(struct json_object *description, struct lac_buffer *out,
                                struct lac_error *reterr)
{
    struct json_object *schemas = schemas_of(description);
    struct lac_json json;

    if (schemas == NULL) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the description has no schemas");
    }
    lac_json_init(&json, out);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "schemas", '[');
    json_object_object_foreach(schemas, name, schema)
    {
        lac_json_open(&json, NULL, '{');
        lac_json_text(&json, "name", name);
        lac_json_text(&json, "document", document_of(schema));
        lac_json_text(&json, "description",
                      json_object_get_string(member_of(schema, "description")));
        lac_json_close(&json, '}');
    }
    lac_json_close(&json, ']');
    lac_json_null(&json, "next");
    lac_json_close(&json, '}');
    return out->status == LAC_OK ? LAC_OK : lac_fail(reterr, out->status, 0, "no memory");
}

/** Let references point to `$defs`, and add the schemas that they name there, theirs too. */
static bool collect(struct json_object *value, struct json_object *schemas,
                    struct json_object *needed, int depth)
{
    if (depth > DEPTH_MAX) {
        return false;
    }
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++) {
            if (!collect(json_object_array_get_idx(value, i), schemas, needed, depth + 1)) {
                return false;
            }
        }
        return true;
    }
    if (!json_object_is_type(value, json_type_object)) {
        return true;
    }
    struct json_object *reference = member_of(value, "$ref");
    const char *slash = reference != NULL ? strrchr(json_object_get_string(reference), '/') : NULL;

    if (slash != NULL) {
        char name[NAME_BYTES];
        char pointer[NAME_BYTES + sizeof(definitions)];

        (void)snprintf(name, sizeof(name), "%s", slash + 1); /* the reference goes below */
        (void)snprintf(pointer, sizeof(pointer), "%s%s", definitions, name);
        struct json_object *schema = member_of(schemas, name);
        struct json_object *now = json_object_new_string(pointer);

        if (schema == NULL || now == NULL || json_object_object_add(value, "$ref", now) != 0) {
            json_object_put(now);
            return false;
        }
        if (member_of(needed, name) != NULL) {
            return true;
        }
        if (json_object_object_add(needed, name, json_object_get(schema)) != 0) {
            json_object_put(schema);
            return false;
        }
        return collect(schema, schemas, needed, depth + 1);
    }
    json_object_object_foreach(value, key, member)
    {
        (void)key;
        if (!collect(member, schemas, needed, depth + 1)) {
            return false;
        }
    }
    return true;
}

static void put_value(struct lac_json *json, const char *key, struct json_object *value)
{
    size_t size_bytes = 0;
    const char *text = json_object_to_json_string_length(
        value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &size_bytes);

    if (text == NULL) {
        json->out->status = LAC_ERR_NOMEM;
        return;
    }
    lac_json_raw(json, key, text, size_bytes);
}

static void put_schema(struct lac_buffer *out, const char *name, struct json_object *schema,
                       struct json_object *needed)
{
    struct lac_json json;

    lac_json_init(&json, out);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    lac_json_text(&json, "title", name);
    json_object_object_foreach(schema, key, member)
    {
        put_value(&json, key, member);
    }
    if (json_object_object_length(needed) > 0) {
        put_value(&json, "$defs", needed);
    }
    lac_json_close(&json, '}');
}

enum lac_status lac_schema_write(struct json_object *description, const char *name,
                                 struct lac_buffer *out, struct lac_error *reterr)
{
    struct json_object *schemas = schemas_of(description);
    struct json_object *found = NULL;
    const char *title = NULL;

    if (schemas == NULL) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the description has no schemas");
    }
    json_object_object_foreach(schemas, key, schema)
    {
        const char *document = document_of(schema);

        if (found == NULL &&
            (strcasecmp(key, name) == 0 || (document != NULL && strcmp(document, name) == 0))) {
            found = schema;
            title = key;
        }
    }
    if (found == NULL) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no document has this name");
    }
    struct json_object *needed = json_object_new_object();

    if (needed == NULL || !collect(found, schemas, needed, 0)) {
        json_object_put(needed);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for a schema");
    }
    put_schema(out, title, found, needed);
    json_object_put(needed);
    return out->status == LAC_OK ? LAC_OK : lac_fail(reterr, out->status, 0, "no memory");
}
