/*
 * The n-th allocation fails, for every n: what is written and read as JSON is whole, or it is
 * LAC_ERR_NOMEM and nothing of it is left.
 */

#include "analysis/diagnose/diagnose.h"
#include "server/json/analysis_json.h"
#include "server/json/json_read.h"
#include "tests/support/oom.h"
#include "tests/support/rich_model.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lac_model *model;
static struct lac_analysis *analysis;
static char *whole[2];

static enum lac_status write_analysis(void *context)
{
    const bool is_pretty = context != NULL;
    char *text = NULL;
    size_t length = 0;
    const struct lac_analyzed_trace analyzed = {model, analysis};
    enum lac_status status = lac_analysis_json(&analyzed, is_pretty, &text, &length);
    oom_require((text != NULL) == (status == LAC_OK), "a failed document was given");
    if (text != NULL && whole[is_pretty] != NULL) {
        oom_require(strcmp(text, whole[is_pretty]) == 0, "a document lost a part");
    }
    free(text);
    return status;
}

static enum lac_status read_object(void *context)
{
    static const char text[] =
        "{\"key\":\"a text that is longer than what fits into an object of json-c itself, which "
        "keeps short ones inside\",\"numbers\":[1,2.50,18446744073709551615,true,null],"
        "\"more\":{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,"
        "\"j\":10,\"k\":11,\"l\":12,\"m\":13,\"n\":14,\"o\":15,\"p\":16,\"q\":17,\"r\":18}}";
    static const struct lac_json_limits limits = {.size_bytes_max = 4096, .depth_max = 8};
    struct json_object *object = NULL;
    struct lac_error error = {0};
    char key[200];
    (void)context;
    enum lac_status status = lac_json_read(text, sizeof(text) - 1, &limits, &object, &error);
    oom_require((object != NULL) == (status == LAC_OK), "a failed object was given");
    oom_require(status == LAC_OK || error.message[0] != '\0', "it failed without a word");
    if (status == LAC_OK) {
        status = lac_json_read_text(object, "key", key, sizeof(key), &error);
        oom_require(status == LAC_OK && strlen(key) == 99, "a text lost a part");
    }
    lac_json_read_done(object);
    return status;
}

static uint64_t torture(const char *what, oom_part part, void *context)
{
    uint64_t tried = oom_each(what, part, context, 1);
    printf("ok: %s, out of memory in %llu places\n", what, (unsigned long long)tried);
    return tried;
}

int main(void)
{
    oom_require(rich_model_create(7, 300, &model) == LAC_OK, "no model");
    oom_require(lac_diagnose(model, NULL, &analysis, NULL) == LAC_OK, "no analysis");
    for (int is_pretty = 0; is_pretty < 2; is_pretty++) {
        const struct lac_analyzed_trace analyzed = {model, analysis};
        oom_require(lac_analysis_json(&analyzed, is_pretty, &whole[is_pretty], NULL) == LAC_OK,
                    "no document");
    }
    uint64_t passed = torture("read", read_object, NULL);
    passed += torture("analysis", write_analysis, NULL);
    passed += torture("analysis for people", write_analysis, &whole);
    free(whole[0]);
    free(whole[1]);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
    printf("%llu passed, 0 failed\n", (unsigned long long)passed);
    return 0;
}
