/*
 * The service's text, of NCCL 2.24 to 2.27, line by line. It names a few ranks of the smaller groups
 * only:
 *
 *   #0-0 (27a079b828ff1a75) MISMATCH
 *     Communicator ranks have different AllReduce operation counts
 *     7 ranks have launched up to operation 61
 *     Rank 3 has launched up to operation 60 -- GPU 3 managed by process 483075 on node 10.0.0.2
 *
 * Groups of several are followed by a line for each rank: "Rank 3 -- GPU 3 managed by ...".
 */

#include "collector/hang/hang_ras.h"
#include "collector/hang/hang_ras_private.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 512 };

enum about { ABOUT_NOTHING, ABOUT_COUNTS, ABOUT_MISSING, ABOUT_ERROR };

struct state {
    struct lac_ras *ras;
    struct lac_ras_communicator *communicator;
    struct lac_ras_function *function; /* with ABOUT_COUNTS */
    struct lac_ras_group group;        /* with ABOUT_COUNTS: whose ranks the lines name */
    enum about about;
    bool is_ours; /* the greeting was there */
};

/* The number after the first `key` of the line; -1: there is none. */
static int64_t number_after(const char *line, const char *key)
{
    const char *const found = strstr(line, key);
    char *end = NULL;
    int64_t value;

    if (found == NULL) {
        return -1;
    }
    value = strtoll(found + strlen(key), &end, 10);
    return end != found + strlen(key) && value >= 0 ? value : -1;
}

static bool begins(const char *line, const char *key)
{
    return strncmp(line, key, strlen(key)) == 0;
}

static struct lac_ras_rank rank_of(const char *line)
{
    const char *const node = strstr(line, " on node ");
    const int64_t rank = number_after(line, "Rank ");
    const int64_t pid = number_after(line, "managed by process ");
    struct lac_ras_rank ret = {.rank = rank >= 0 && rank <= INT32_MAX ? (int32_t)rank : -1,
                               .pid = pid > 0 && pid <= INT32_MAX ? (int32_t)pid : -1};

    if (node != NULL) {
        (void)snprintf(ret.host, sizeof(ret.host), "%.47s", node + strlen(" on node "));
    }
    return ret;
}

static void end_group(struct state *state)
{
    if (state->function != NULL) {
        lac_ras_count_group(state->function, &state->group);
    }
    memset(&state->group, 0, sizeof(state->group));
}

/* "#0-0 (HASH) MISMATCH", or INCOMPLETE, or ERROR */
static void begin_communicator(struct state *state, const char *line)
{
    struct lac_ras *const ras = state->ras;
    const char *const open = strchr(line, '(');
    const char *const close = open != NULL ? strchr(open, ')') : NULL;
    char hash[24];

    state->communicator = NULL;
    state->about = ABOUT_NOTHING;
    if (close == NULL) {
        return;
    }
    (void)snprintf(hash, sizeof(hash), "%.*s", (int)(close - open - 1), open + 1);
    for (uint32_t i = 0; i < ras->communicator_count; i++) {
        if (strcmp(ras->communicators[i].hash, hash) == 0) {
            state->communicator = &ras->communicators[i];
        }
    }
    if (state->communicator == NULL && ras->communicator_count < LAC_RAS_COMMUNICATORS) {
        state->communicator = &ras->communicators[ras->communicator_count++];
        memcpy(state->communicator->hash, hash, sizeof(hash));
    }
    state->about = strstr(close, "INCOMPLETE") != NULL ? ABOUT_MISSING
                   : strstr(close, "ERROR") != NULL    ? ABOUT_ERROR
                                                       : ABOUT_NOTHING;
}

/* "Communicator ranks have different AllReduce operation counts"; before 2.26 "collective operation" */
static void begin_function(struct state *state, const char *line)
{
    static const char before[] = "have different ";
    static const char after[] = " operation counts";
    const char *const name = strstr(line, before);
    const char *const end = name != NULL ? strstr(name, after) : NULL;
    struct lac_ras_communicator *const communicator = state->communicator;

    end_group(state);
    state->function = NULL;
    state->about = ABOUT_NOTHING;
    if (end == NULL || communicator == NULL || communicator->function_count == LAC_RAS_FUNCTIONS) {
        return;
    }
    state->about = ABOUT_COUNTS;
    state->function = &communicator->functions[communicator->function_count++];
    if (!begins(name + sizeof(before) - 1, "collective")) {
        (void)snprintf(state->function->name, sizeof(state->function->name), "%.*s",
                       (int)(end - name) - (int)(sizeof(before) - 1), name + sizeof(before) - 1);
    }
}

static void add_rank(struct state *state, const char *line)
{
    const struct lac_ras_rank rank = rank_of(line);
    const bool is_alone = strstr(line, " has launched up to") != NULL ||
                          strstr(line, " has not launched any") != NULL;
    const int64_t operations = number_after(line, "up to operation ");

    lac_ras_add_pid(state->ras, rank.pid);
    if (rank.rank < 0) {
        return;
    }
    if (state->about == ABOUT_MISSING && state->communicator != NULL) {
        lac_ras_join(&state->communicator->missing, &rank);
    } else if (state->about == ABOUT_ERROR && state->ras->error_count++ == 0) {
        state->ras->failed = rank;
    } else if (state->about == ABOUT_COUNTS && is_alone) {
        end_group(state);
        state->group.operations = operations > 0 ? (uint64_t)operations : 0;
        lac_ras_join(&state->group, &rank);
    } else if (state->about == ABOUT_COUNTS && state->group.named_count < LAC_RAS_NAMED &&
               state->group.named_count < state->group.count) {
        state->group.named[state->group.named_count++] = rank;
    }
}

/* "7 ranks have launched up to operation 61", "7 ranks have not launched any operations" */
static void begin_group(struct state *state, const char *line)
{
    const long count = strtol(line, NULL, 10);
    const int64_t operations = number_after(line, "up to operation ");

    end_group(state);
    if (count > 0 && count < 1 << 24) {
        state->group.count = (uint32_t)count;
        state->group.operations = operations > 0 ? (uint64_t)operations : 0;
    }
}

static void read_line(struct state *state, const char *line)
{
    while (*line == ' ') {
        line++;
    }
    if (begins(line, "NCCL version ")) {
        state->is_ours = true;
        (void)snprintf(state->ras->version, sizeof(state->ras->version), "%.*s",
                       (int)strcspn(line + 13, " "), line + 13);
    } else if (line[0] == '#' && line[1] >= '0' && line[1] <= '9') {
        end_group(state);
        state->function = NULL;
        begin_communicator(state, line);
    } else if (begins(line, "Communicator ranks have different ")) {
        begin_function(state, line);
    } else if (begins(line, "Rank ")) {
        add_rank(state, line);
    } else if (line[0] >= '0' && line[0] <= '9' && strstr(line, " ranks have ") != NULL &&
               strstr(line, "launched") != NULL) {
        begin_group(state, line);
    } else if (begins(line, "Process ")) { /* one that does not answer, or is dead: no rank of it */
        lac_ras_add_pid(state->ras, (int32_t)number_after(line, "Process "));
    }
}

bool lac_ras_parse_text(const char *text, size_t size, struct lac_ras *ret)
{
    assert((text != NULL || size == 0) && ret != NULL);
    struct state state = {.ras = ret};
    const char *const end = text + size;

    memset(ret, 0, sizeof(*ret));
    for (const char *at = text; at < end;) {
        const char *const newline = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((newline != NULL ? newline : end) - at);
        char line[LINE_BYTES];
        const size_t kept = length < sizeof(line) - 1 ? length : sizeof(line) - 1;

        for (size_t i = 0; i < kept; i++) {
            line[i] = (unsigned char)at[i] < ' ' || at[i] == 0x7f ? ' ' : at[i];
        }
        line[kept] = '\0';
        read_line(&state, line);
        at += length + 1;
    }
    end_group(&state);
    return state.is_ours;
}
