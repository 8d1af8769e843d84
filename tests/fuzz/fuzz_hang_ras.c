/*
 * Any bytes as an answer of NCCL's RAS service, as JSON and as text: it is none, or what is kept of
 * it stays within its limits and every sentence about it within its buffer.
 */

#include "collector/hang/hang_ras.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rank(const struct lac_ras_rank *rank)
{
    require(memchr(rank->host, '\0', sizeof(rank->host)) != NULL);
}

static void check_group(const struct lac_ras_group *group)
{
    require(group->named_count <= LAC_RAS_NAMED && group->named_count <= group->count);
    for (uint32_t i = 0; i < group->named_count; i++) {
        check_rank(&group->named[i]);
    }
}

static void check_communicator(const struct lac_ras_communicator *communicator)
{
    char *const text = malloc(200);

    require(text != NULL);
    require(memchr(communicator->hash, '\0', sizeof(communicator->hash)) != NULL);
    require(communicator->function_count <= LAC_RAS_FUNCTIONS);
    for (uint32_t i = 0; i < communicator->function_count; i++) {
        const struct lac_ras_function *function = &communicator->functions[i];

        require(memchr(function->name, '\0', sizeof(function->name)) != NULL);
        check_group(&function->least);
        check_group(&function->most);
        require(function->least.operations <= function->most.operations);
        require(lac_ras_say_difference(function, text, 200) == lac_ras_differs(function));
    }
    check_group(&communicator->missing);
    require(lac_ras_say_missing(communicator, text, 200) == (communicator->missing.count > 0));
    lac_ras_say_communicator(communicator, text, 200);
    require(strlen(text) < 200);
    lac_ras_say_communicator(communicator, text, 8);
    require(strlen(text) < 8);
    free(text);
}

static void check(const struct lac_ras *ras)
{
    require(memchr(ras->version, '\0', sizeof(ras->version)) != NULL);
    require(ras->communicator_count <= LAC_RAS_COMMUNICATORS && ras->pid_count <= LAC_RAS_PIDS);
    check_rank(&ras->failed);
    for (uint32_t i = 0; i < ras->communicator_count; i++) {
        check_communicator(&ras->communicators[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct lac_ras ras;
    char *const bytes = malloc(size > 0 ? size : 1); /* none too many, for the sanitizer */

    require(bytes != NULL);
    memcpy(bytes, data, size);
    if (lac_ras_parse_json(bytes, size, &ras)) {
        check(&ras);
    }
    if (lac_ras_parse_text(bytes, size, &ras)) {
        check(&ras);
    }
    free(bytes);
    return 0;
}
