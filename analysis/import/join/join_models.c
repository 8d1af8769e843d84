#include "analysis/import/join/join_models.h"

#include "analysis/import/join/join_private.h"
#include "analysis/import/text/training_result.h"
#include "analysis/model/model.h"
#include "analysis/model/setting_rows.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The one that the others are joined to. */
static enum lac_status choose(const struct lac_join_member *members, uint32_t count,
                              uint32_t *ret_chosen, struct lac_error *reterr)
{
    uint32_t with_gpu = LAC_NONE;
    uint32_t with_slices = LAC_NONE;
    uint32_t with_times = LAC_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const struct lac_model *model = members[i].model;
        if (lac_join_has_gpu_work(model) && !model->info.has_no_time) {
            if (with_gpu != LAC_NONE) {
                return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                                "%.100s and %.100s both hold work of a GPU: join one trace with "
                                "logs and profiles; traces of several ranks make a run",
                                members[with_gpu].name, members[i].name);
            }
            with_gpu = i;
        }
        if (with_slices == LAC_NONE && lac_join_has_slices(model) && !model->info.has_no_time) {
            with_slices = i;
        }
        if (with_times == LAC_NONE && !model->info.has_no_time) {
            with_times = i;
        }
    }
    *ret_chosen = with_gpu != LAC_NONE      ? with_gpu
                  : with_slices != LAC_NONE ? with_slices
                  : with_times != LAC_NONE  ? with_times
                                            : 0;
    return LAC_OK;
}

/* What the import report says of a file, under that file's trace. */
static void take_report(struct lac_model *into, const struct lac_model *other)
{
    for (uint32_t i = 0; i < other->report_count; i++) {
        const struct lac_report_line *line = &other->report[i];
        lac_model_report(into, line->severity, line->code, line->count, line->first_offset_bytes,
                         line->text);
    }
}

static void tell(struct lac_model *into, const struct lac_join_member *member,
                 const struct lac_join_clock *clock, uint64_t cut_count)
{
    char text[160];
    char code[40];
    static const char *const KINDS[] = {"a profile without times, beside the timeline", "counters",
                                        "rows", "modules of kernels of CUDA graphs"};
    const struct lac_model *other = member->model;
    const char *kind = other->info.format == LAC_FORMAT_GRAPH_NOTES ? KINDS[3]
                       : other->info.has_no_time                    ? KINDS[0]
                       : other->slices.count == 0                   ? KINDS[1]
                                                                    : KINDS[2];
    (void)snprintf(code, sizeof(code), "joined_%s_%u", other->info.has_no_time ? "profile" : "file",
                   into->report_count);
    (void)snprintf(text, sizeof(text), "Joined %.60s (%s): %s%s", member->name,
                   lac_trace_format_name(other->info.format), kind,
                   cut_count > 0 ? ", cut to the time of the trace." : ".");
    lac_model_report(into, LAC_REPORT_INFO, code, 1, 0, text);
    if (clock->guessed_zone_ns != 0) {
        (void)snprintf(text, sizeof(text),
                       "%.50s names no time zone: it was moved by %.4g h, the one zone in which it "
                       "meets the trace.",
                       member->name, (double)clock->guessed_zone_ns / 3.6e12);
        lac_model_report(into, LAC_REPORT_INFO, "joined_zone", 1, 0, text);
    }
}

/* Results of the training that a log of them tells; those that the recorder noted stay. */
static enum lac_status take_results(struct lac_model *into, const struct lac_model *other)
{
    static const char prefix[] = "metric.";
    struct lac_setting_rows *const rows = &into->settings;
    const uint32_t from = lac_settings_find(&other->settings, UINT32_MAX, "host");
    uint32_t host = lac_settings_find(rows, UINT32_MAX, "host");
    enum lac_status status = LAC_OK;

    for (uint32_t row = from + 1;
         from != UINT32_MAX && row < other->settings.at[from].end && status == LAC_OK;
         row = other->settings.at[row].end) {
        const char *const name = lac_settings_name(&other->settings, row);
        if (strncmp(name, prefix, sizeof(prefix) - 1) != 0) {
            continue;
        }
        if (host == UINT32_MAX) {
            host = (uint32_t)rows->count;
            status = lac_settings_add(rows, UINT32_MAX, LAC_SETTING_OBJECT, "host", NULL);
        }
        const char *const value = lac_settings_value(&other->settings, row);
        const uint32_t ours = lac_settings_find(rows, host, name);
        char both[LAC_RESULT_TEXT_BYTES];
        if (status == LAC_OK && ours == UINT32_MAX) {
            status = lac_settings_add(rows, host, LAC_SETTING_TEXT, name, value);
        } else if (status == LAC_OK &&
                   lac_result_join(name + sizeof(prefix) - 1, lac_settings_value(rows, ours), value,
                                   both)) {
            status = lac_settings_change(rows, ours, both);
        }
        /* where it cannot be added it is a counter still */
        status = status == LAC_ERR_NOMEM ? status : LAC_OK;
    }
    return status;
}

/* Facts that only one of the files knows are kept, whichever it is; of two hosts ours stays. */
static enum lac_status take_facts(struct lac_model *into, const struct lac_model *other)
{
    enum lac_status status = LAC_OK;
    uint32_t host = 0;
    into->info.event_count += other->info.event_count;
    into->info.slice_count += other->info.slice_count;
    into->info.expanded_bytes += other->info.expanded_bytes;
    for (uint32_t i = 0; i < 128; i++) {
        into->info.phase_count[i] += other->info.phase_count[i];
    }
    status = take_results(into, other);
    if (status == LAC_OK && other->info.host != 0) {
        status = lac_strings_intern(&into->strings, lac_model_str(other, other->info.host),
                                    lac_strings_length(&other->strings, other->info.host), &host);
    }
    if (status == LAC_OK && host != 0 && into->info.host != 0 && host != into->info.host) {
        lac_model_report(into, LAC_REPORT_INFO, "joined_hosts", 1, 0,
                         "Joined files name different hosts: the trace's is shown.");
    }
    into->info.host = into->info.host != 0 ? into->info.host : host;
    if (status == LAC_OK && other->info.has_no_time) {
        uint32_t unit = 0;
        status =
            lac_strings_intern(&into->strings, lac_model_str(other, other->info.weight_unit),
                               lac_strings_length(&other->strings, other->info.weight_unit), &unit);
        if (status == LAC_OK && into->info.profile_count > 0 && unit != into->info.profile_unit) {
            lac_model_report(into, LAC_REPORT_INFO, "joined_units", 1, 0,
                             "Joined profiles count in different units: they are shown as times.");
            unit = 0;
        }
        into->info.profile_unit = unit;
        into->info.profile_scale = unit != 0 ? other->info.weight_scale : 1;
        into->info.profile_count++;
    }
    return status;
}

static enum lac_status failed(enum lac_status status, struct lac_error *reterr)
{
    return status == LAC_ERR_LIMIT
               ? lac_fail(reterr, status, 0, "the joined files have more than a trace may have")
           : status == LAC_ERR_NOMEM ? lac_fail(reterr, status, 0, "out of memory")
                                     : status;
}

static enum lac_status join(struct lac_model *into, const char *name,
                            struct lac_join_member *member, struct lac_error *reterr)
{
    struct lac_model *other = member->model;
    struct lac_join_clock clock = {.shift_ns = 0};
    uint64_t cut_count = 0;
    if (other->info.format == LAC_FORMAT_GRAPH_NOTES) {
        tell(into, member, &clock, 0);
        take_report(into, other);
        return failed(lac_join_graph_notes(into, name, other, member->name, reterr), reterr);
    }
    enum lac_status status = lac_join_clock_of(into, name, member, &clock, reterr);
    if (status != LAC_OK) {
        return status;
    }
    const bool is_log = other->slices.count == 0 && into->slices.count > 0;
    if (is_log) {
        cut_count =
            lac_join_cut_counters(other, -clock.shift_ns, into->info.duration_ns - clock.shift_ns);
    } else if (clock.shift_ns < 0) {
        lac_join_move_start(into, -clock.shift_ns);
        clock.shift_ns = 0;
    }
    tell(into, member, &clock, cut_count);
    take_report(into, other);
    const uint64_t first = into->slices.count;
    status = lac_join_append(into, other, clock.shift_ns);
    if (status == LAC_OK && other->info.format == LAC_FORMAT_NCU) {
        status = lac_join_measures(into, first);
    }
    if (status == LAC_OK) {
        status = take_facts(into, other);
    }
    if (status == LAC_OK && !other->info.has_no_time && !is_log) {
        const int64_t end_ns = other->info.duration_ns + clock.shift_ns;
        into->info.duration_ns = end_ns > into->info.duration_ns ? end_ns : into->info.duration_ns;
    }
    return failed(status, reterr);
}

enum lac_status lac_join_models(struct lac_join_member *members, uint32_t count,
                                struct lac_model **ret_model, struct lac_error *reterr)
{
    assert(members != NULL && count > 0 && ret_model != NULL);
    uint32_t chosen = 0;
    enum lac_status status = choose(members, count, &chosen, reterr);
    if (status != LAC_OK) {
        return status;
    }
    struct lac_model *into = members[chosen].model;
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        if (i != chosen) {
            struct lac_join_member member = members[i];
            if (chosen > i && member.has_offset == false && members[chosen].has_offset) {
                member.has_offset = true; /* said of the other file, so the other way round */
                member.offset_ns = -members[chosen].offset_ns;
            }
            status = join(into, members[chosen].name, &member, reterr);
            lac_model_destroy(status == LAC_OK ? members[i].model : NULL);
            members[i].model = status == LAC_OK ? NULL : members[i].model;
        }
    }
    if (status == LAC_OK) {
        members[chosen].model = NULL;
        *ret_model = into;
    }
    return status;
}
