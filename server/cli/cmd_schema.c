#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/base/buffer.h"
#include "server/cli/commands.h"
#include "server/cli/options.h"
#include "server/json/json_read.h"
#include "server/json/rows_csv.h"
#include "server/json/schema_json.h"

#include <stdio.h>
#include <string.h>

static const struct lac_option TABLE[] = {{0}};

static const char USAGE[] =
    "lacuna schema [NAME]\n"
    "Prints the JSON Schema (2020-12) of a document that Lacuna writes: of lacuna analyze --json\n"
    "`lacuna schema Analysis`, or by what the document calls itself, lacuna.analysis/1. It stands\n"
    "alone. Documents may get more members; what a schema names stays. Without NAME: the list, as\n"
    "JSON. The service has the same at /api/v1/schemas.";

int lac_cmd_schema(int argc, char **argv)
{
    struct lac_options options;
    struct json_object *description = NULL;
    struct lac_buffer out = {0};
    struct lac_error error = {0};
    size_t size_bytes;
    int exit_status = lac_options_parse(&options, TABLE, USAGE, argc, argv);

    if (exit_status >= 0) {
        lac_options_done(&options);
        return exit_status;
    }
    if (options.operand_count > 1) {
        (void)fputs("lacuna schema: name one document; see lacuna schema --help\n", stderr);
        lac_options_done(&options);
        return 2;
    }
    const char *text = lac_openapi_text(&size_bytes);
    enum lac_status status = lac_description_read(text, size_bytes, &description, &error);

    if (status == LAC_OK) {
        status = options.operand_count == 0
                     ? lac_schema_list(description, &out, &error)
                     : lac_schema_write(description, options.operands[0], &out, &error);
    }
    exit_status = status == LAC_OK ? 0 : status == LAC_ERR_NOT_FOUND ? 2 : 1;
    if (status == LAC_ERR_NOT_FOUND) {
        (void)fprintf(stderr,
                      "lacuna schema: no document has the name '%.64s'; lacuna schema lists them\n",
                      options.operands[0]);
    } else if (status != LAC_OK) {
        (void)fprintf(stderr, "lacuna schema: %s\n", error.message);
    } else if (fwrite(out.bytes, 1, out.size_bytes, stdout) != out.size_bytes ||
               putchar('\n') == EOF || fflush(stdout) != 0) {
        exit_status = 1;
    }
    lac_buffer_done(&out);
    lac_json_read_done(description);
    lac_options_done(&options);
    return exit_status;
}
