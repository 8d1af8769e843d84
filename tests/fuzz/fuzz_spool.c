/*
 * Any bytes as the segments of a spool (tests/support/made_spool.h): an error or a valid model, the
 * report adds up, and every argument is whole.
 */

#include "analysis/import/import.h"
#include "analysis/import/spool_import.h"
#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "tests/support/made_spool.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static enum lac_status keep(void *context, struct lac_model *model, struct lac_error *reterr)
{
    (void)reterr;
    *(struct lac_model **)context = model;
    return LAC_OK;
}

static void check_arguments(const struct lac_model *model)
{
    static char args[65536];

    for (uint64_t i = 0; i < model->slices.count; i++) {
        const size_t length = lac_args_format(model, i, args, sizeof(args));

        require(length < sizeof(args));
        require(length == 0 || (args[0] == '{' && args[length - 1] == '}'));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fd = lac_made_spool(data, size);
    const struct lac_import_options options = {.name = "fuzz"};
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (lac_spool_import(path, &options, keep, &model, &error) == LAC_OK) {
        uint64_t dropped = 0;
        uint64_t repaired = 0;

        require(model != NULL && lac_model_is_valid(model));
        for (uint32_t i = 0; i < model->report_count; i++) {
            const struct lac_report_line *const line = &model->report[i];

            dropped += line->severity == LAC_REPORT_DROPPED ? line->count : 0;
            repaired += line->severity == LAC_REPORT_REPAIRED ? line->count : 0;
        }
        require(dropped == model->info.dropped_count && repaired == model->info.repaired_count);
        check_arguments(model);
        lac_model_destroy(model);
    } else {
        require(model == NULL && error.message[0] != '\0');
    }
    (void)close(fd);
    return 0;
}
