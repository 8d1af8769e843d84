#include "server/cli/conditions.h"

#include "analysis/model/status.h"
#include "server/cli/complain.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

bool lac_conditions_read(const char *command, const struct lac_options *options,
                         struct lac_conditions *ret_conditions)
{
    const char *text = lac_options_text(options, "fail-if", NULL);
    struct lac_error error = {0};
    ret_conditions->count = 0;
    if (text != NULL &&
        lac_compare_conditions_parse(text, ret_conditions->at, &ret_conditions->count, &error)) {
        lac_complain(command, NULL, "%s", error.message);
        return false;
    }
    return true;
}

int lac_conditions_decide(const char *command, struct lac_conditions *conditions,
                          const struct lac_comparison *comparison, const struct lac_compare_side *b,
                          bool is_compared)
{
    int status = EXIT_SUCCESS;
    for (uint32_t i = 0; i < conditions->count; i++) {
        const struct lac_compare_condition *condition = &conditions->at[i];
        enum lac_compare_holds holds = lac_compare_condition_holds(condition, comparison, b);
        conditions->results[i] = (struct lac_compare_result){condition, holds};
        if (holds == LAC_COMPARE_HOLDS) {
            (void)fprintf(stderr, "%s: %s holds\n", command, condition->text);
            status = status == EXIT_FAILURE ? status : LAC_EXIT_HOLDS;
        } else if (holds == LAC_COMPARE_HOLDS_IN_NOISE) {
            (void)fprintf(stderr, "%s: %s is within the noise of these steps\n", command,
                          condition->text);
        } else if (holds == LAC_COMPARE_HOLDS_UNKNOWN) {
            (void)fprintf(stderr, "%s: %s is unknown: not measured in %s\n", command,
                          condition->text, is_compared ? "both traces" : "this trace");
            status = EXIT_FAILURE;
        }
    }
    return status;
}
