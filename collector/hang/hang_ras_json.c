/* The service's JSON, read once from front to back; nothing is kept that is not asked for. */

#include "collector/hang/hang_ras.h"
#include "collector/hang/hang_ras_private.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16, TEXT_BYTES = 48, NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };

struct json {
    const char *at;
    const char *end;
    bool is_bad;
    unsigned depth;
};

struct state {
    struct lac_ras *ras;
    struct lac_ras_communicator *communicator; /* NULL: there is no room for it */
    struct lac_ras_rank rank;
    uint64_t counts[LAC_RAS_FUNCTIONS];
    char names[LAC_RAS_FUNCTIONS][TEXT_BYTES];
    uint32_t count;
    bool has_failed;
    bool is_dead;
    bool has_communicators;
};

typedef void on_member(struct json *json, const char *key, struct state *state);

static void skip_space(struct json *json)
{
    while (json->at < json->end && strchr(" \t\r\n", *json->at) != NULL && *json->at != '\0') {
        json->at++;
    }
}

/* Whether the next character is `c`, which is taken then. */
static bool take(struct json *json, char c)
{
    skip_space(json);
    if (json->at < json->end && *json->at == c) {
        json->at++;
        return true;
    }
    return false;
}

static void expect(struct json *json, char c)
{
    if (!take(json, c)) {
        json->is_bad = true;
    }
}

/* What does not fit is cut; escapes stay as they are: NCCL writes none. */
static void read_text(struct json *json, char *text, size_t capacity)
{
    size_t used = 0;

    expect(json, '"');
    while (!json->is_bad && json->at < json->end && *json->at != '"') {
        if (*json->at == '\\') {
            json->at++;
        }
        if (json->at < json->end) {
            if (used + 1 < capacity) {
                text[used++] = (unsigned char)*json->at < ' ' ? ' ' : *json->at;
            }
            json->at++;
        }
    }
    text[used] = '\0';
    if (!json->is_bad) {
        expect(json, '"');
    }
}

/* A number, or a word: true is 1, all else 0. */
static int64_t read_number(struct json *json)
{
    char text[TEXT_BYTES];
    size_t used = 0;

    skip_space(json);
    while (json->at < json->end && strchr(",]} \t\r\n", *json->at) == NULL) {
        if (used + 1 < sizeof(text)) {
            text[used++] = *json->at;
        }
        json->at++;
    }
    text[used] = '\0';
    json->is_bad = json->is_bad || used == 0;
    return strcmp(text, "true") == 0 ? 1 : strtoll(text, NULL, 10);
}

static void read_object(struct json *json, on_member *member, struct state *state)
{
    char key[TEXT_BYTES];

    expect(json, '{');
    if (json->is_bad || take(json, '}')) {
        return;
    }
    json->is_bad = ++json->depth > DEPTH_MAX;
    do {
        if (json->is_bad) {
            return;
        }
        read_text(json, key, sizeof(key));
        expect(json, ':');
        if (!json->is_bad) {
            member(json, key, state);
        }
    } while (!json->is_bad && take(json, ','));
    expect(json, '}');
    json->depth--;
}

static void read_array(struct json *json, void (*element)(struct json *, struct state *),
                       struct state *state)
{
    expect(json, '[');
    if (json->is_bad || take(json, ']')) {
        return;
    }
    json->is_bad = ++json->depth > DEPTH_MAX;
    do {
        if (json->is_bad) {
            return;
        }
        element(json, state);
    } while (!json->is_bad && take(json, ','));
    expect(json, ']');
    json->depth--;
}

static void skip_value(struct json *json);

static void skip_member(struct json *json, const char *key, struct state *state)
{
    (void)key;
    (void)state;
    skip_value(json);
}

static void skip_element(struct json *json, struct state *state)
{
    (void)state;
    skip_value(json);
}

static void skip_value(struct json *json)
{
    char text[TEXT_BYTES];

    skip_space(json);
    if (json->at == json->end) {
        json->is_bad = true;
    } else if (*json->at == '{') {
        read_object(json, skip_member, NULL);
    } else if (*json->at == '[') {
        read_array(json, skip_element, NULL);
    } else if (*json->at == '"') {
        read_text(json, text, sizeof(text));
    } else {
        (void)read_number(json);
    }
}

/* ---- a rank */

static int32_t as_id(int64_t number)
{
    return number >= 0 && number <= INT32_MAX ? (int32_t)number : -1;
}

static void read_status(struct json *json, const char *key, struct state *state)
{
    if (strcmp(key, "async_error") == 0 || strcmp(key, "init_state") == 0) {
        const int64_t error = read_number(json);

        state->has_failed =
            state->has_failed || (error != NCCL_SUCCESS && error != NCCL_IN_PROGRESS);
    } else if (strcmp(key, "considered_dead") == 0) {
        state->is_dead = read_number(json) == 1;
    } else {
        skip_value(json);
    }
}

static void read_count(struct json *json, const char *key, struct state *state)
{
    const int64_t count = read_number(json);

    if (state->count < LAC_RAS_FUNCTIONS) {
        (void)snprintf(state->names[state->count], TEXT_BYTES, "%s", key);
        state->counts[state->count++] = count > 0 ? (uint64_t)count : 0;
    }
}

static void read_rank_member(struct json *json, const char *key, struct state *state)
{
    if (strcmp(key, "rank") == 0) {
        state->rank.rank = as_id(read_number(json));
    } else if (strcmp(key, "pid") == 0) {
        state->rank.pid = as_id(read_number(json));
    } else if (strcmp(key, "host") == 0) {
        read_text(json, state->rank.host, sizeof(state->rank.host));
    } else if (strcmp(key, "status") == 0) {
        read_object(json, read_status, state);
    } else if (strcmp(key, "collective_counts") == 0) {
        read_object(json, read_count, state);
    } else {
        skip_value(json);
    }
}

static void begin_rank(struct state *state)
{
    state->rank = (struct lac_ras_rank){.rank = -1, .pid = -1};
    state->count = 0;
    state->has_failed = state->is_dead = false;
}

static struct lac_ras_function *function_of(struct lac_ras_communicator *communicator,
                                            const char *name)
{
    for (uint32_t i = 0; i < communicator->function_count; i++) {
        if (strncmp(communicator->functions[i].name, name,
                    sizeof(communicator->functions[i].name) - 1) == 0) {
            return &communicator->functions[i];
        }
    }
    if (communicator->function_count == LAC_RAS_FUNCTIONS) {
        return NULL;
    }
    (void)snprintf(communicator->functions[communicator->function_count].name,
                   sizeof(communicator->functions[0].name), "%.23s", name);
    return &communicator->functions[communicator->function_count++];
}

static void read_rank(struct json *json, struct state *state)
{
    begin_rank(state);
    read_object(json, read_rank_member, state);
    if (json->is_bad || state->rank.rank < 0) {
        return;
    }
    lac_ras_add_pid(state->ras, state->rank.pid);
    if (state->has_failed && state->ras->error_count++ == 0) {
        state->ras->failed = state->rank;
    }
    for (uint32_t i = 0; state->communicator != NULL && i < state->count; i++) {
        struct lac_ras_function *const function = function_of(state->communicator, state->names[i]);

        if (function != NULL) {
            lac_ras_count(function, &state->rank, state->counts[i]);
        }
    }
}

static void read_missing(struct json *json, struct state *state)
{
    begin_rank(state);
    read_object(json, read_rank_member, state);
    if (!json->is_bad && state->rank.rank >= 0 && state->communicator != NULL) {
        lac_ras_join(&state->communicator->missing, &state->rank);
        state->communicator->is_dead = state->communicator->is_dead || state->is_dead;
    }
}

/* ---- a communicator, and all of them */

static void read_communicator_member(struct json *json, const char *key, struct state *state)
{
    struct lac_ras_communicator *const communicator = state->communicator;

    if (strcmp(key, "hash") == 0 && communicator != NULL) {
        read_text(json, communicator->hash, sizeof(communicator->hash));
    } else if (strcmp(key, "size") == 0 && communicator != NULL) {
        const int32_t size = as_id(read_number(json));

        communicator->size = size > 0 ? (uint32_t)size : 0;
    } else if (strcmp(key, "ranks") == 0) {
        read_array(json, read_rank, state);
    } else if (strcmp(key, "missing_ranks") == 0) {
        read_array(json, read_missing, state);
    } else {
        skip_value(json);
    }
}

static void read_communicator(struct json *json, struct state *state)
{
    struct lac_ras *const ras = state->ras;

    state->communicator = ras->communicator_count < LAC_RAS_COMMUNICATORS
                              ? &ras->communicators[ras->communicator_count++]
                              : NULL;
    read_object(json, read_communicator_member, state);
}

static void read_member(struct json *json, const char *key, struct state *state)
{
    if (strcmp(key, "nccl_version") == 0) {
        read_text(json, state->ras->version, sizeof(state->ras->version));
    } else if (strcmp(key, "communicators") == 0) {
        state->has_communicators = true;
        read_array(json, read_communicator, state);
    } else {
        skip_value(json);
    }
}

bool lac_ras_parse_json(const char *text, size_t size, struct lac_ras *ret)
{
    assert((text != NULL || size == 0) && ret != NULL);
    struct json json = {.at = text, .end = text + size};
    struct state state = {.ras = ret};

    memset(ret, 0, sizeof(*ret));
    read_object(&json, read_member, &state);
    return !json.is_bad && state.has_communicators;
}
