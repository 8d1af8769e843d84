/* What the service said, in words; and the groups that both forms of an answer are read into. */

#include "collector/hang/hang_ras.h"

#include "collector/hang/hang_ras_private.h"
#include "collector/hang/hang_words.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- taking an answer apart */

void lac_ras_add_pid(struct lac_ras *ras, int32_t pid)
{
    if (pid > 0 && ras->pid_count < LAC_RAS_PIDS) {
        ras->pids[ras->pid_count++] = pid;
    }
}

static void join(struct lac_ras_group *group, const struct lac_ras_rank *rank)
{
    if (group->named_count < LAC_RAS_NAMED) {
        group->named[group->named_count++] = *rank;
    }
    group->count++;
}

/* `rank` joins the group of those with `operations`, which begins anew where it beats the others. */
static void compete(struct lac_ras_group *group, bool is_first, bool beats, uint64_t operations,
                    const struct lac_ras_rank *rank)
{
    if (is_first || beats) {
        memset(group, 0, sizeof(*group));
        group->operations = operations;
    }
    if (group->operations == operations) {
        join(group, rank);
    }
}

void lac_ras_count(struct lac_ras_function *function, const struct lac_ras_rank *rank,
                   uint64_t operations)
{
    const bool is_first = !function->is_told;

    function->is_told = true;
    compete(&function->least, is_first, operations < function->least.operations, operations, rank);
    compete(&function->most, is_first, operations > function->most.operations, operations, rank);
}

void lac_ras_count_group(struct lac_ras_function *function, const struct lac_ras_group *group)
{
    if (group->count == 0) {
        return;
    }
    if (!function->is_told || group->operations < function->least.operations) {
        function->least = *group;
    }
    if (!function->is_told || group->operations > function->most.operations) {
        function->most = *group;
    }
    function->is_told = true;
}

void lac_ras_join(struct lac_ras_group *group, const struct lac_ras_rank *rank)
{
    join(group, rank);
}

/* ---- words */

/* "rank 3", "ranks 3, 5", "12 ranks" */
static void add_group(char *text, size_t capacity, const struct lac_ras_group *group)
{
    if (group->named_count == 0 || group->named_count < group->count) {
        lac_hang_add(text, capacity, "%u ranks", (unsigned)group->count);
        return;
    }
    lac_hang_add(text, capacity, group->count > 1 ? "ranks" : "rank");
    for (uint32_t i = 0; i < group->named_count; i++) {
        lac_hang_add(text, capacity, "%s %d", i > 0 ? "," : "", (int)group->named[i].rank);
    }
}

bool lac_ras_differs(const struct lac_ras_function *function)
{
    assert(function != NULL);
    return function->is_told && function->least.operations != function->most.operations;
}

bool lac_ras_say_difference(const struct lac_ras_function *function, char *text, size_t capacity)
{
    assert(function != NULL && text != NULL && capacity > 0);
    const struct lac_ras_group *const few =
        function->least.count <= function->most.count ? &function->least : &function->most;
    const struct lac_ras_group *const many =
        few == &function->least ? &function->most : &function->least;

    text[0] = '\0';
    if (!lac_ras_differs(function)) {
        return false;
    }
    lac_hang_add(text, capacity,
                 "%s: ", function->name[0] != '\0' ? function->name : "collectives");
    add_group(text, capacity, few);
    lac_hang_add(text, capacity, " %s launched %llu, ", few->count > 1 ? "have" : "has",
                 (unsigned long long)few->operations);
    add_group(text, capacity, many);
    lac_hang_add(text, capacity, " %llu", (unsigned long long)many->operations);
    return true;
}

bool lac_ras_say_missing(const struct lac_ras_communicator *communicator, char *text,
                         size_t capacity)
{
    assert(communicator != NULL && text != NULL && capacity > 0);
    const struct lac_ras_group *const missing = &communicator->missing;

    text[0] = '\0';
    if (missing->count == 0) {
        return false;
    }
    add_group(text, capacity, missing);
    if (missing->count == 1 && missing->named_count == 1 && missing->named[0].pid > 0) {
        lac_hang_add(text, capacity, " (process %d on %s)", (int)missing->named[0].pid,
                     missing->named[0].host);
    }
    lac_hang_add(text, capacity, "%s",
                 communicator->is_dead ? " cannot be reached by NCCL"
                 : missing->count > 1  ? " do not answer NCCL"
                                       : " does not answer NCCL");
    return true;
}

void lac_ras_say_communicator(const struct lac_ras_communicator *communicator, char *text,
                              size_t capacity)
{
    assert(communicator != NULL && text != NULL && capacity > 0);
    const char *before = ": ";
    char part[256];

    text[0] = '\0';
    lac_hang_add(text, capacity, "%s", communicator->hash);
    if (communicator->size > 0) {
        lac_hang_add(text, capacity, ", %u ranks", (unsigned)communicator->size);
    }
    for (uint32_t i = 0; i < communicator->function_count; i++) {
        const struct lac_ras_function *const function = &communicator->functions[i];

        if (lac_ras_say_difference(function, part, sizeof(part))) {
            lac_hang_add(text, capacity, "%s%s", before, part);
        } else if (function->most.operations > 0) {
            lac_hang_add(text, capacity, "%s%s %llu", before, function->name,
                         (unsigned long long)function->most.operations);
        } else {
            continue;
        }
        before = "; ";
    }
    if (lac_ras_say_missing(communicator, part, sizeof(part))) {
        lac_hang_add(text, capacity, "%s%s", before, part);
    }
}
