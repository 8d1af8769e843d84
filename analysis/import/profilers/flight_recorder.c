/*
 * Dumps of PyTorch's flight recorder for NCCL (TORCH_NCCL_TRACE_BUFFER_SIZE, TORCH_NCCL_DUMP_ON_TIMEOUT):
 * the last collectives of one rank. Each process group becomes a row, each collective a range from
 * when it was called, or found started, to when it was found completed; what has not completed lasts
 * to the end of the dump, and the import report names the first of it for each group.
 *
 * Source: torch/csrc/distributed/c10d/FlightRecorder.hpp, versions 1 to 2 of the dump
 */

#include "analysis/import/profilers/pickled.h"
#include "analysis/import/profilers/profile_document.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_MAX = 256, NAME_BYTES = 256, SIZES_MAX = 8 };

struct group {
    uint32_t name; /**< string id */
    uint32_t track;
    int64_t last;             /**< number of the last collective that was called, -1: none */
    char pending[NAME_BYTES]; /**< the first that has not completed */
    int64_t pending_number;
};

struct reader {
    struct lac_profile_file *document;
    struct lac_builder *builder;
    uint32_t process;
    struct group groups[GROUPS_MAX];
    uint32_t group_count;
    int64_t first_ns, last_ns;
    bool has_times;
};

bool lac_flight_is_pickled(const struct lac_plain *root)
{
    const struct lac_plain *const entries = lac_plain_get(root, "entries");
    return lac_plain_is(entries, LAC_PLAIN_LIST) &&
           (lac_plain_is(lac_plain_get(root, "version"), LAC_PLAIN_TEXT) ||
            lac_plain_get(root, "pg_config") != NULL ||
            lac_plain_get(root, "nccl_version") != NULL);
}

static void copy_text(const struct lac_plain *text, char *out, size_t capacity)
{
    const bool is_text = lac_plain_is(text, LAC_PLAIN_TEXT);
    const size_t bytes = !is_text ? 0 : text->count < capacity - 1 ? text->count : capacity - 1;
    if (bytes > 0) {
        memcpy(out, text->text, bytes);
    }
    out[bytes] = '\0';
}

static bool time_of(const struct lac_plain *entry, const char *key, int64_t *ret_ns)
{
    return lac_plain_integer(lac_plain_get(entry, key), ret_ns) && *ret_ns > 0;
}

/* -- an entry ---------------------------------------------------------------------------------- */

/** One collective. */
struct call {
    char name[NAME_BYTES]; /**< "nccl:all_reduce [4096, 1024] Float" */
    char group[NAME_BYTES];
    char state[16];
    int64_t number;
    int64_t start_ns, end_ns; /**< the latter -1: not completed */
};

/* "[4096, 1024] Float" of the first input */
static void say_sizes(const struct lac_plain *entry, char *text, size_t capacity)
{
    const struct lac_plain *const sizes = lac_plain_at(lac_plain_get(entry, "input_sizes"), 0);
    const struct lac_plain *types = lac_plain_get(entry, "input_dtypes");
    char type[32];
    size_t used = strlen(text);
    if (!lac_plain_is(sizes, LAC_PLAIN_LIST)) {
        return;
    }
    types = lac_plain_is(types, LAC_PLAIN_LIST) ? lac_plain_at(types, 0) : types;
    copy_text(types, type, sizeof(type));
    for (uint32_t i = 0; i < sizes->count && i < SIZES_MAX && used + 32 < capacity; i++) {
        int64_t size = 0;
        (void)lac_plain_integer(sizes->items[i], &size);
        used += (size_t)snprintf(text + used, capacity - used, "%s%" PRId64, i == 0 ? " [" : ", ",
                                 size);
    }
    (void)snprintf(text + used, capacity - used, "%s%s%s", sizes->count == 0 ? " [" : "",
                   type[0] != '\0' ? "] " : "]", type);
}

/* What it is called, and the group's description where there is one: ("0", "default_pg"). */
static void say_group(const struct lac_plain *entry, char *text, size_t capacity)
{
    const struct lac_plain *const group = lac_plain_get(entry, "process_group");
    int64_t id = 0;
    if (lac_plain_is(group, LAC_PLAIN_LIST)) {
        const struct lac_plain *const name = lac_plain_at(group, 1);
        const bool is_told = lac_plain_is(name, LAC_PLAIN_TEXT) && name->count > 0 &&
                             !lac_plain_equals(name, "undefined");
        copy_text(is_told ? name : lac_plain_at(group, 0), text, capacity);
    } else {
        (void)lac_plain_integer(lac_plain_get(entry, "pg_id"), &id);
        (void)snprintf(text, capacity, "%" PRId64, id);
    }
}

static bool read_call(const struct lac_plain *entry, struct call *call)
{
    char sizes[NAME_BYTES / 2] = "";
    double duration_ms = 0.0;
    int64_t number = 0;
    *call = (struct call){.number = -1, .end_ns = -1};
    copy_text(lac_plain_get(entry, "profiling_name"), call->name, NAME_BYTES / 2);
    copy_text(lac_plain_get(entry, "state"), call->state, sizeof(call->state));
    if (!time_of(entry, "time_created_ns", &call->start_ns) || call->name[0] == '\0') {
        return false;
    }
    say_sizes(entry, sizes, sizeof(sizes));
    say_group(entry, call->group, sizeof(call->group));
    const size_t used = strlen(call->name);
    (void)snprintf(call->name + used, NAME_BYTES - used, "%.100s", sizes);
    if ((lac_plain_integer(lac_plain_get(entry, "collective_seq_id"), &number) && number > 0) ||
        lac_plain_integer(lac_plain_get(entry, "seq_id"), &number)) {
        call->number = number;
    }
    int64_t started_ns = 0;
    if (time_of(entry, "time_discovered_started_ns", &started_ns) && started_ns > call->start_ns) {
        call->start_ns = started_ns;
    }
    if (strcmp(call->state, "completed") == 0) {
        if (lac_plain_number(lac_plain_get(entry, "duration_ms"), &duration_ms) &&
            duration_ms >= 0.0 && duration_ms < 1e9) {
            call->end_ns = call->start_ns + (int64_t)llround(duration_ms * 1e6);
        } else if (!time_of(entry, "time_discovered_completed_ns", &call->end_ns) ||
                   call->end_ns < call->start_ns) {
            call->end_ns = call->start_ns;
        }
    }
    return call->start_ns < INT64_MAX / 4 && call->end_ns < INT64_MAX / 4;
}

/* -- groups ------------------------------------------------------------------------------------ */

static enum lac_status group_of(struct reader *reader, const char *text, struct group **ret_group)
{
    char name[NAME_BYTES + 32];
    uint32_t id = 0;
    const int length = snprintf(name, sizeof(name), "process group %s", text);
    enum lac_status status =
        lac_stacks_name(reader->document->profile.stacks, name, (size_t)length, &id);
    uint32_t at = 0;
    while (at < reader->group_count && reader->groups[at].name != id) {
        at++;
    }
    *ret_group = &reader->groups[at < GROUPS_MAX ? at : GROUPS_MAX - 1];
    if (status == LAC_OK && at == reader->group_count && at < GROUPS_MAX) {
        struct group *const group = &reader->groups[at];
        *group = (struct group){.name = id, .last = -1, .pending_number = -1};
        status = lac_builder_track(reader->builder, LAC_TRACK_THREAD, reader->process, id,
                                   (int64_t)at, &group->track);
        if (status == LAC_OK) {
            lac_builder_track_at(reader->builder, group->track)->name = id;
            reader->group_count++;
        }
    }
    return status;
}

static enum lac_status take_call(struct reader *reader, const struct lac_plain *entry)
{
    struct call call;
    struct group *group = NULL;
    char name[NAME_BYTES + 64];
    struct lac_slice_in slice = {.detail = LAC_NONE, .kind = LAC_SLICE_RANGE};
    if (!read_call(entry, &call)) {
        lac_document_drop(reader->document, "entry_not_understood",
                          "entries without a name or the time of the call");
        return LAC_OK;
    }
    const bool is_pending = call.end_ns < 0;
    enum lac_status status = group_of(reader, call.group, &group);
    (void)snprintf(name, sizeof(name), "%s%s%s%s", call.name, is_pending ? " (" : "",
                   is_pending ? call.state : "", is_pending ? ", not completed)" : "");
    if (status == LAC_OK) {
        status = lac_stacks_name(reader->document->profile.stacks, name, strlen(name), &slice.name);
    }
    if (status != LAC_OK) {
        return status;
    }
    group->last = call.number > group->last ? call.number : group->last;
    if (is_pending && group->pending[0] == '\0') {
        (void)snprintf(group->pending, sizeof(group->pending), "%.150s, %.15s", call.name,
                       call.state[0] != '\0' ? call.state : "state unknown");
        group->pending_number = call.number;
    }
    slice.track = group->track;
    slice.start_ns = call.start_ns;
    slice.dur_ns = (is_pending ? reader->last_ns : call.end_ns) - call.start_ns;
    reader->document->profile.model->info.slice_count++;
    return lac_builder_slice(reader->builder, &slice);
}

/* -- the whole --------------------------------------------------------------------------------- */

static void find_times(struct reader *reader, const struct lac_plain *entries)
{
    for (uint32_t i = 0; i < entries->count; i++) {
        struct call call;
        if (read_call(entries->items[i], &call)) {
            const int64_t end_ns = call.end_ns > call.start_ns ? call.end_ns : call.start_ns;
            reader->last_ns = end_ns > reader->last_ns ? end_ns : reader->last_ns;
        }
    }
}

static void tell(const struct reader *reader)
{
    struct lac_model *const model = reader->document->profile.model;
    char text[256];
    char code[40];
    bool hangs = false;
    for (uint32_t i = 0; i < reader->group_count; i++) {
        const struct group *const group = &reader->groups[i];
        if (group->pending[0] == '\0') {
            continue;
        }
        hangs = true;
        (void)snprintf(code, sizeof(code), "not_completed_%" PRIu32, i);
        (void)snprintf(text, sizeof(text),
                       "%.40s: number %" PRId64 " has not completed: %.80s. Last called: %" PRId64,
                       lac_model_str(model, group->name), group->pending_number, group->pending,
                       group->last);
        lac_model_report(model, LAC_REPORT_INFO, code, 1, 0, text);
    }
    if (!hangs) {
        lac_model_report(model, LAC_REPORT_INFO, "all_completed", 1, 0,
                         "All collectives in this dump completed: this rank waits for none.");
    }
}

/* Files are called nccl_trace_rank_3, and nothing in them says the rank. */
static void find_rank(struct lac_profile_file *document)
{
    const char *at = strstr(document->name, "rank");
    int32_t rank = 0;
    if (at == NULL) {
        return;
    }
    at += 4 + (at[4] == '_' || at[4] == '-');
    const char *const digits = at;
    for (; *at >= '0' && *at <= '9' && rank < 1000000; at++) {
        rank = rank * 10 + (*at - '0');
    }
    document->profile.model->info.rank = at > digits ? rank : -1;
}

static enum lac_status read_all(struct reader *reader)
{
    struct lac_profile_file *const document = reader->document;
    const struct lac_plain *const entries = lac_plain_get(document->root, "entries");
    if (!lac_document_visit(document, 2 * (uint64_t)entries->count)) {
        return LAC_ERR_LIMIT;
    }
    find_times(reader, entries);
    find_rank(document);
    enum lac_status status = lac_profile_process(&document->profile, "NCCL", &reader->process);
    for (uint32_t i = 0; i < entries->count && status == LAC_OK; i++) {
        document->profile.model->info.event_count++;
        status = take_call(reader, entries->items[i]);
    }
    if (status == LAC_OK && document->profile.model->info.slice_count == 0) {
        return lac_fail(document->reterr, LAC_ERR_CORRUPT, 0,
                        "no collective in this dump of the flight recorder: set "
                        "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 before the job starts");
    }
    tell(reader);
    return lac_profile_failed(&document->profile, status);
}

enum lac_status lac_flight_read_pickled(struct lac_profile_file *document,
                                        struct lac_model **ret_model)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        return lac_fail(document->reterr, LAC_ERR_NOMEM, 0, "no memory for the dump");
    }
    reader->document = document;
    enum lac_status status = lac_document_begin(document, LAC_FORMAT_FLIGHT_RECORDER);
    reader->builder = document->profile.builder;
    status = status == LAC_OK ? read_all(reader) : status;
    free(reader);
    return lac_document_end_timed(document, status, ret_model);
}
