#include "collector/hang/hang_verdict.h"

#include "collector/base/count_of.h"
#include "collector/hang/hang_process.h"
#include "collector/hang/hang_ras.h"
#include "collector/hang/hang_rule.h"
#include "collector/hang/hang_words.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum doing {
    DOING_ELSE,       /* what its stack says */
    DOING_COLLECTIVE, /* waits for other ranks */
    DOING_BACKWARD,   /* so it may, in gradients that are reduced on the way */
    DOING_WAIT,       /* for its loader's workers */
    DOING_BATCH,      /* makes one */
    DOING_IDLE,       /* a worker without an order */
    DOING_COMPILE,
    DOING_SAVE,
    DOING_CHILD, /* waits for a program that it started */
    DOING_SILENT,
    DOING_STOPPED,
    DOING_ENDED,
};

/* What a frame says of all those around it: a part of its path, its function or any. */
static const struct {
    const char *path;
    const char *function;
    enum doing doing;
} signs[] = {
    {"/torch/distributed/distributed_c10d.py", NULL, DOING_COLLECTIVE},
    {"/torch/nn/parallel/distributed.py", NULL, DOING_COLLECTIVE},
    {"/torch/distributed/fsdp/", NULL, DOING_COLLECTIVE},
    {"/torch/_dynamo/", NULL, DOING_COMPILE},
    {"/torch/_inductor/", NULL, DOING_COMPILE},
    {"/torch/utils/cpp_extension.py", NULL, DOING_COMPILE},
    {"/triton/compiler", NULL, DOING_COMPILE},
    {"/triton/runtime/jit.py", NULL, DOING_COMPILE},
    {"/jax/_src/compiler.py", NULL, DOING_COMPILE},
    {"/torch/serialization.py", NULL, DOING_SAVE},
    {"/torch/distributed/checkpoint/", NULL, DOING_SAVE},
    {"/safetensors/", NULL, DOING_SAVE},
    {"/torch/utils/data/_utils/fetch.py", NULL, DOING_BATCH},
    {"/torch/utils/data/_utils/worker.py", NULL, DOING_IDLE},
    {"/torch/utils/data/dataloader.py", "_try_get_data", DOING_WAIT},
    {"/torch/utils/data/dataloader.py", "_get_data", DOING_WAIT},
    {"/torch/autograd/", "backward", DOING_BACKWARD},
    {"/torch/autograd/", "grad", DOING_BACKWARD},
    {"/subprocess.py", NULL, DOING_CHILD},
};

static enum doing sign_of(const struct lac_hang_frame *frame)
{
    for (size_t i = 0; i < LAC_COUNT_OF(signs); i++) {
        if (strstr(frame->path, signs[i].path) != NULL &&
            (signs[i].function == NULL || strcmp(frame->function, signs[i].function) == 0)) {
            return signs[i].doing;
        }
    }
    return DOING_ELSE;
}

static bool is_library(const char *path)
{
    return strstr(path, "-packages/") != NULL || strstr(path, "/lib/python") != NULL ||
           path[0] == '<';
}

/* Code that is not known to do anything else waits for its GPU, where NCCL has its operation. */
static enum doing doing_else(const struct lac_hang_process *process, enum doing doing)
{
    return process->nccl == LAC_HANG_NCCL_AHEAD ? DOING_COLLECTIVE : doing;
}

/* The innermost sign counts: a dataset that compiles compiles. A call of the script inside of it
 * does not change that: a batch is made by the script's own code. */
static enum doing doing_of(const struct lac_hang_process *process)
{
    const struct lac_hang_thread *const thread = lac_hang_process_training(process);

    if (process->has_ended || process->native.state == 0) {
        return DOING_ENDED;
    }
    if (process->native.state == 'Z' || process->native.state == 'X') {
        return DOING_ENDED;
    }
    if (process->native.state == 'T' || process->native.state == 't') {
        return DOING_STOPPED;
    }
    if (thread == NULL) {
        return doing_else(process, DOING_SILENT);
    }
    for (uint32_t i = 0; i < thread->frame_count; i++) {
        const enum doing doing = sign_of(&thread->frames[i]);

        if (doing != DOING_ELSE) {
            return doing;
        }
    }
    return doing_else(process, DOING_ELSE);
}

static bool waits_for_others(enum doing doing)
{
    return doing == DOING_COLLECTIVE || doing == DOING_BACKWARD;
}

/* ---- words */

/* The innermost frame of the script; else the innermost; NULL without a stack. */
static const struct lac_hang_frame *place_of(const struct lac_hang_process *process)
{
    const struct lac_hang_thread *const thread = lac_hang_process_training(process);

    if (thread == NULL || process->native.state == 0 || process->has_ended) {
        return NULL;
    }
    for (uint32_t i = 0; i < thread->frame_count; i++) {
        if (!is_library(thread->frames[i].path)) {
            return &thread->frames[i];
        }
    }
    return &thread->frames[0];
}

static const char *file_name(const char *path)
{
    const char *const slash = strrchr(path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* The call of a collective that the script made, or a library in its place. */
static const char *collective_of(const struct lac_hang_process *process)
{
    const struct lac_hang_thread *const thread = lac_hang_process_training(process);
    const char *name = "a collective";

    if (process->is_in_collective && process->collective[0] != '\0') {
        return process->collective;
    }
    if (process->nccl == LAC_HANG_NCCL_AHEAD && process->nccl_function[0] != '\0') {
        name = process->nccl_function;
    }
    for (uint32_t i = 0; thread != NULL && i < thread->frame_count; i++) {
        if (sign_of(&thread->frames[i]) == DOING_COLLECTIVE) {
            name = thread->frames[i].function;
        }
    }
    return name;
}

static void add_call(char *text, size_t capacity, const struct lac_hang_process *process)
{
    const struct lac_hang_native *const native = &process->native;
    const struct lac_hang_thread *const thread = lac_hang_process_training(process);
    const bool imports = thread != NULL && strstr(thread->frames[0].path, "importlib") != NULL &&
                         strcmp(thread->frames[0].function, "acquire") == 0;

    if (imports) {
        lac_hang_add(text, capacity, "waits for another thread's import");
    } else if (process->is_busy || native->state == 'R') {
        lac_hang_add(text, capacity, "computes");
    } else if (native->is_sleeping) {
        lac_hang_add(text, capacity, "sleeps");
    } else if (strcmp(native->call, "futex") == 0) {
        lac_hang_add(text, capacity, "waits for a lock or another thread");
    } else if (native->call[0] != '\0') {
        lac_hang_add(text, capacity, "waits in %s%s%s", native->call,
                     native->file[0] != '\0' ? " of " : "", native->file);
    } else if (native->state == 'D') {
        lac_hang_add(text, capacity, "waits for storage");
    } else {
        lac_hang_add(text, capacity, "waits");
    }
}

static void add_doing(char *text, size_t capacity, const struct lac_hang_process *process,
                      enum doing doing)
{
    switch (doing) {
    case DOING_COLLECTIVE:
        lac_hang_add(text, capacity, "waits in %s", collective_of(process));
        break;
    case DOING_BACKWARD:
        lac_hang_add(text, capacity, process->is_busy ? "is in backward" : "waits in backward");
        break;
    case DOING_WAIT:
        lac_hang_add(text, capacity, "waits for a batch of its workers");
        break;
    case DOING_BATCH:
        add_call(text, capacity, process);
        lac_hang_add(text, capacity, " while it makes a batch");
        break;
    case DOING_IDLE:
        lac_hang_add(text, capacity, "waits for an order");
        break;
    case DOING_COMPILE:
        lac_hang_add(text, capacity, "compiles");
        break;
    case DOING_SAVE:
        add_call(text, capacity, process);
        lac_hang_add(text, capacity, " in a checkpoint");
        break;
    case DOING_STOPPED:
        lac_hang_add(text, capacity, "is stopped (by SIGSTOP or a debugger)");
        break;
    case DOING_ENDED:
        lac_hang_add(text, capacity, "has ended");
        break;
    case DOING_SILENT:
        add_call(text, capacity, process);
        lac_hang_add(text, capacity, " and holds Python's lock");
        break;
    case DOING_CHILD:
        lac_hang_add(text, capacity, "waits for a program that it started");
        break;
    case DOING_ELSE:
        add_call(text, capacity, process);
        break;
    }
}

static void add_place(char *text, size_t capacity, const struct lac_hang_process *process)
{
    const struct lac_hang_frame *const place = place_of(process);

    if (place != NULL) {
        lac_hang_add(text, capacity, " at %s:%u (%s)", file_name(place->path), place->line,
                     place->function);
    }
}

static void add_who(char *text, size_t capacity, const struct lac_hang_process *process)
{
    if (process->rank >= 0) {
        lac_hang_add(text, capacity, "rank %d", (int)process->rank);
    } else {
        lac_hang_add(text, capacity, "process %d", (int)process->pid);
    }
}

/* Of the one at fault also where it is: whoever reads that will look there. */
static void add_host(char *text, size_t capacity, const struct lac_hang_process *process)
{
    if (process->host != NULL && process->host[0] != '\0') {
        lac_hang_add(text, capacity, " on %.63s", process->host);
    }
}

/* ---- whom the others wait for */

/* What is asked of each rank again and again: found once, as a job may have a thousand. */
struct seen {
    enum doing doing;
    const char *collective;
    uint32_t like; /* ranks that wait in the same */
};

static bool is_same_wait(const struct seen *a, const struct seen *b)
{
    return a->doing == b->doing &&
           (a->doing == DOING_BACKWARD || strcmp(a->collective, b->collective) == 0);
}

/* @return NULL: no memory */
static struct seen *see_all(const struct lac_hang_process *processes, uint32_t count)
{
    struct seen *const seen = calloc(count > 0 ? count : 1, sizeof(*seen));

    for (uint32_t i = 0; seen != NULL && i < count; i++) {
        seen[i].doing = doing_of(&processes[i]);
        seen[i].collective = waits_for_others(seen[i].doing) ? collective_of(&processes[i]) : "";
    }
    for (uint32_t i = 0; seen != NULL && i < count; i++) {
        for (uint32_t k = 0; waits_for_others(seen[i].doing) && k < count; k++) {
            seen[i].like += processes[k].is_rank && is_same_wait(&seen[i], &seen[k]);
        }
    }
    return seen;
}

/* Of ranks that all wait: the one that has launched fewer operations, as NCCL counts; the one whose call is
 * the rarest among them, then the one that made it least
 * often, then the one with the fewest steps. */
static bool is_odder(const struct lac_hang_process *processes, const struct seen *seen, uint32_t a,
                     uint32_t b)
{
    if ((processes[a].nccl == LAC_HANG_NCCL_BEHIND) !=
        (processes[b].nccl == LAC_HANG_NCCL_BEHIND)) {
        return processes[a].nccl == LAC_HANG_NCCL_BEHIND;
    }
    if (seen[a].like != seen[b].like) {
        return seen[a].like < seen[b].like;
    }
    if (seen[a].doing != seen[b].doing) { /* one has left the loop */
        return seen[b].doing == DOING_BACKWARD;
    }
    if (processes[a].collective_count != processes[b].collective_count) {
        return processes[a].collective_count < processes[b].collective_count;
    }
    return processes[a].steps < processes[b].steps;
}

/* What makes a rank the one that the others wait for; the more the surer. */
static int weight_of(enum doing doing)
{
    switch (doing) {
    case DOING_STOPPED:
        return 5;
    case DOING_ENDED:
        return 4;
    case DOING_SILENT:
    case DOING_ELSE:
    case DOING_WAIT:
    case DOING_BATCH:
    case DOING_CHILD:
    case DOING_COMPILE:
    case DOING_SAVE:
    case DOING_IDLE:
        return 3;
    case DOING_BACKWARD:
    case DOING_COLLECTIVE:
        break;
    }
    return 1;
}

/* Index of the rank that is waited for; `count`: nobody trains. */
static uint32_t find_culprit(const struct lac_hang_process *processes, uint32_t count)
{
    struct seen *const seen = see_all(processes, count);
    uint32_t culprit = count;

    for (uint32_t i = 0; seen != NULL && i < count; i++) {
        int more;

        if (!processes[i].is_rank) {
            continue;
        }
        if (culprit == count) {
            culprit = i;
            continue;
        }
        more = weight_of(seen[i].doing) - weight_of(seen[culprit].doing);
        if (more > 0 || (more == 0 && waits_for_others(seen[i].doing) &&
                         is_odder(processes, seen, i, culprit))) {
            culprit = i;
        }
    }
    free(seen);
    return culprit;
}

/* Of a rank that waits for a batch: the worker that does not give it. */
static const struct lac_hang_process *find_worker(const struct lac_hang_process *processes,
                                                  uint32_t count,
                                                  const struct lac_hang_process *rank)
{
    const struct lac_hang_process *worker = NULL;

    for (uint32_t i = 0; i < count; i++) {
        const enum doing doing = doing_of(&processes[i]);

        if (processes[i].launcher == rank->launcher && processes[i].parent == rank->pid &&
            !processes[i].is_rank && doing != DOING_IDLE &&
            (worker == NULL || doing == DOING_BATCH)) {
            worker = &processes[i];
        }
    }
    return worker;
}

/* How long what this process does may last. */
static enum lac_hang_kind kind_of(const struct lac_hang_process *process, enum doing doing)
{
    const struct lac_hang_native *const native = &process->native;

    if (doing == DOING_COMPILE || doing == DOING_SAVE || native->is_syncing) {
        return LAC_HANG_LONG;
    }
    if (doing == DOING_WAIT || doing == DOING_BATCH) {
        return LAC_HANG_LOADING;
    }
    if (doing == DOING_CHILD || native->is_for_child || native->is_sleeping || process->is_busy ||
        native->state == 'R') {
        return doing == DOING_COLLECTIVE ? LAC_HANG_BLOCKED : LAC_HANG_BUSY;
    }
    return LAC_HANG_BLOCKED;
}

/* The kind of the one that may take longest; a rank that spins in a collective only waits. */
static enum lac_hang_kind kind_of_all(const struct lac_hang_process *processes, uint32_t count)
{
    enum lac_hang_kind kind = LAC_HANG_UNKNOWN;

    for (uint32_t i = 0; i < count; i++) {
        const enum doing doing = doing_of(&processes[i]);

        if (processes[i].is_rank && doing != DOING_ENDED && doing != DOING_STOPPED) {
            const enum lac_hang_kind its = kind_of(&processes[i], doing);

            if (its > kind) {
                kind = its;
            }
        }
    }
    return kind;
}

static void name_others(const struct lac_hang_process *processes, uint32_t count, uint32_t culprit,
                        struct lac_hang_verdict *ret)
{
    enum { TOLD_MAX = 3 };
    uint32_t told = 0;
    uint32_t more = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (!processes[i].is_rank || i == culprit) {
            continue;
        }
        if (told == TOLD_MAX) {
            more++;
            continue;
        }
        lac_hang_add(ret->others, sizeof(ret->others), told++ > 0 ? ", " : "");
        add_who(ret->others, sizeof(ret->others), &processes[i]);
        lac_hang_add(ret->others, sizeof(ret->others), " ");
        add_doing(ret->others, sizeof(ret->others), &processes[i], doing_of(&processes[i]));
        add_place(ret->others, sizeof(ret->others), &processes[i]);
    }
    if (more > 0) {
        lac_hang_add(ret->others, sizeof(ret->others), " and %u more", more);
    }
}

/* ---- what NCCL says */

static uint32_t count_ranks(const struct lac_hang_process *processes, uint32_t count)
{
    uint32_t ranks = 0;

    for (uint32_t i = 0; i < count; i++) {
        ranks += processes[i].is_rank;
    }
    return ranks;
}

/* Numbers of processes mean nothing on another host, ranks of a communicator little in the whole job. */
static bool is_it(const struct lac_hang_process *process, const struct lac_ras_rank *rank)
{
    return process->pid == rank->pid && (process->launcher == 0 || process->rank == rank->rank);
}

static bool is_among(const struct lac_hang_process *processes, uint32_t count,
                     const struct lac_ras_rank *rank)
{
    for (uint32_t i = 0; i < count; i++) {
        if (is_it(&processes[i], rank)) {
            return true;
        }
    }
    return false;
}

static void note_group(struct lac_hang_process *processes, uint32_t count,
                       const struct lac_ras_group *group, enum lac_hang_nccl nccl, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < group->named_count; k++) {
            if (is_it(&processes[i], &group->named[k]) && processes[i].nccl < nccl) {
                processes[i].nccl = nccl;
                (void)snprintf(processes[i].nccl_function, sizeof(processes[i].nccl_function), "%s",
                               name);
            }
        }
    }
}

/* The larger group may not be named, or in part: who is not in the smaller one is in it. */
static void note_rest(struct lac_hang_process *processes, uint32_t count,
                      const struct lac_ras_function *function)
{
    const bool is_least_whole = function->least.named_count == function->least.count;

    for (uint32_t i = 0; is_least_whole && i < count; i++) {
        if (processes[i].is_rank && processes[i].nccl < LAC_HANG_NCCL_AHEAD) {
            processes[i].nccl = LAC_HANG_NCCL_AHEAD;
            (void)snprintf(processes[i].nccl_function, sizeof(processes[i].nccl_function), "%s",
                           function->name);
        }
    }
}

bool lac_hang_note_nccl(struct lac_hang_process *processes, uint32_t count,
                        const struct lac_ras *ras)
{
    assert((processes != NULL || count == 0) && ras != NULL);
    bool is_ours = false;

    for (uint32_t i = 0; i < count; i++) {
        processes[i].nccl = LAC_HANG_NCCL_UNKNOWN;
        for (uint32_t k = 0; k < ras->pid_count && !is_ours; k++) {
            is_ours = processes[i].is_rank && processes[i].launcher == 0 &&
                      ras->pids[k] == processes[i].pid;
        }
    }
    for (uint32_t c = 0; is_ours && c < ras->communicator_count; c++) {
        const struct lac_ras_communicator *const communicator = &ras->communicators[c];

        for (uint32_t f = 0; f < communicator->function_count; f++) {
            const struct lac_ras_function *const function = &communicator->functions[f];
            const bool differs = lac_ras_differs(function);

            note_group(processes, count, &function->least,
                       differs ? LAC_HANG_NCCL_BEHIND : LAC_HANG_NCCL_EVEN, function->name);
            note_group(processes, count, &function->most,
                       differs ? LAC_HANG_NCCL_AHEAD : LAC_HANG_NCCL_EVEN, function->name);
            if (differs && communicator->size == count_ranks(processes, count)) {
                note_rest(processes, count, function);
            }
        }
    }
    return is_ours;
}

/* What all communicators say, as far as it is odd. */
static void say_nccl(const struct lac_ras *ras, struct lac_hang_verdict *ret)
{
    char part[256];

    for (uint32_t c = 0; c < ras->communicator_count; c++) {
        const struct lac_ras_communicator *const communicator = &ras->communicators[c];

        for (uint32_t f = 0; f < communicator->function_count; f++) {
            if (lac_ras_say_difference(&communicator->functions[f], part, sizeof(part))) {
                lac_hang_add(ret->nccl, sizeof(ret->nccl), "%s%s", ret->nccl[0] != '\0' ? "; " : "",
                             part);
            }
        }
        if (lac_ras_say_missing(communicator, part, sizeof(part))) {
            lac_hang_add(ret->nccl, sizeof(ret->nccl), "%s%s", ret->nccl[0] != '\0' ? "; " : "",
                         part);
        }
    }
    if (ras->error_count > 0) {
        lac_hang_add(ret->nccl, sizeof(ret->nccl), "%srank %d reports an error of NCCL",
                     ret->nccl[0] != '\0' ? "; " : "", (int)ras->failed.rank);
    }
}

/* A rank of another node: all of ours wait, and NCCL says that it has launched less, or that it does not
 * answer. @return NULL: none */
static const struct lac_ras_rank *find_elsewhere(const struct lac_hang_process *processes,
                                                 uint32_t count, const struct lac_ras *ras)
{
    for (uint32_t c = 0; c < ras->communicator_count; c++) {
        const struct lac_ras_communicator *const communicator = &ras->communicators[c];

        if (communicator->missing.named_count > 0 &&
            !is_among(processes, count, &communicator->missing.named[0])) {
            return &communicator->missing.named[0];
        }
        for (uint32_t f = 0; f < communicator->function_count; f++) {
            const struct lac_ras_group *const least = &communicator->functions[f].least;

            if (lac_ras_differs(&communicator->functions[f]) && least->named_count > 0 &&
                !is_among(processes, count, &least->named[0])) {
                return &least->named[0];
            }
        }
    }
    return NULL;
}

static void name_elsewhere(const struct lac_hang_process *processes, uint32_t count,
                           const struct lac_ras_rank *rank, struct lac_hang_verdict *ret)
{
    ret->kind = kind_of_all(processes, count);
    ret->rank = rank->rank;
    lac_hang_add(ret->doing, sizeof(ret->doing),
                 "rank %d on another node (process %d on %s) does not follow", (int)rank->rank,
                 (int)rank->pid, rank->host);
    name_others(processes, count, count, ret);
}

void lac_hang_judge(const struct lac_hang_process *processes, uint32_t count,
                    const struct lac_ras *ras, struct lac_hang_verdict *ret)
{
    assert((processes != NULL || count == 0) && ret != NULL);
    const uint32_t culprit = find_culprit(processes, count);
    const struct lac_ras_rank *elsewhere = NULL;
    const struct lac_hang_process *at;
    const struct lac_hang_frame *place;

    memset(ret, 0, sizeof(*ret));
    ret->rank = -1;
    if (culprit == count) {
        return;
    }
    at = &processes[culprit];
    if (ras != NULL) {
        say_nccl(ras, ret);
    }
    if (ras != NULL && waits_for_others(doing_of(at)) && at->nccl != LAC_HANG_NCCL_BEHIND) {
        elsewhere = find_elsewhere(processes, count, ras);
    }
    if (elsewhere != NULL) {
        name_elsewhere(processes, count, elsewhere, ret);
        return;
    }
    ret->kind = kind_of_all(processes, count);
    ret->rank = at->rank;
    add_who(ret->doing, sizeof(ret->doing), at);
    add_host(ret->doing, sizeof(ret->doing), at);
    lac_hang_add(ret->doing, sizeof(ret->doing), " ");
    add_doing(ret->doing, sizeof(ret->doing), at, doing_of(at));
    if (doing_of(at) == DOING_WAIT) {
        const struct lac_hang_process *const worker = find_worker(processes, count, at);

        if (worker != NULL) {
            at = worker;
            lac_hang_add(ret->doing, sizeof(ret->doing), ", of which process %d ", (int)at->pid);
            add_doing(ret->doing, sizeof(ret->doing), at, doing_of(at));
        }
    }
    ret->pid = at->pid;
    add_place(ret->doing, sizeof(ret->doing), at);
    place = place_of(at);
    if (place != NULL) {
        const struct lac_hang_thread *const thread = lac_hang_process_training(at);

        lac_hang_add(ret->where, sizeof(ret->where), "%s:%u", place->path, place->line);
        if (place == &thread->frames[thread->source_frame]) {
            lac_hang_add(ret->source, sizeof(ret->source), "%s", thread->source);
        }
    }
    name_others(processes, count, culprit, ret);
}
