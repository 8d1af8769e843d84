/* Domain, category, color and payload of NVTX ranges and marks, as arguments of their slices; what could not be read. */
#include "analysis/import/spool/spool_events.h"
#include "analysis/import/spool/spool_members.h"
#include "analysis/import/spool/spool_schema.h"
#include "analysis/model/args.h"
#include "analysis/model/builder.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CATEGORIES_MAX = 4096, TEMPLATE_BYTES = 2048, QUOTED_BYTES = 900 };

enum { CATEGORY_SLOTS = CATEGORIES_MAX * 2 };

struct category {
    uint32_t domain;
    uint32_t category;
    uint32_t name; /* string id, 0: a free slot */
};

/* By domain and category, open addressing. */
struct lac_spool_categories {
    uint64_t seed;
    uint32_t count;
    struct category slots[CATEGORY_SLOTS];
};

static struct lac_strings *strings_of(const struct lac_spool_process *process)
{
    return &lac_builder_model(process->builder)->strings;
}

/* Its slot, or the free one where it would go. */
static struct category *category_slot(struct lac_spool_categories *known, uint32_t domain,
                                      uint32_t category)
{
    const uint64_t key = (uint64_t)domain << 32 | category;
    size_t at = (size_t)lac_hash_bytes(&key, sizeof(key), known->seed) % CATEGORY_SLOTS;

    while (known->slots[at].name != 0 &&
           (known->slots[at].category != category || known->slots[at].domain != domain)) {
        at = (at + 1) % CATEGORY_SLOTS;
    }
    return &known->slots[at];
}

/* String id of its name, 0 when it has none. */
static uint32_t find_category(const struct lac_spool_process *process, uint32_t domain,
                              uint32_t category)
{
    return process->categories != NULL ? category_slot(process->categories, domain, category)->name
                                       : 0;
}

static enum lac_status add_category(struct lac_spool_process *process,
                                    const struct lac_event *event, uint32_t name)
{
    struct category *slot;

    if (process->categories == NULL) {
        process->categories = calloc(1, sizeof(*process->categories));
        if (process->categories == NULL) {
            return LAC_ERR_NOMEM;
        }
        process->categories->seed = lac_hash_seed();
    }
    slot = category_slot(process->categories, event->domain, (uint32_t)event->ts);
    if (slot->name == 0 && process->categories->count < CATEGORIES_MAX) {
        *slot = (struct category){
            .domain = event->domain, .category = (uint32_t)event->ts, .name = name};
        process->categories->count++;
    }
    return LAC_OK;
}

enum lac_status lac_spool_names_collect(struct lac_spool_process *process,
                                        const struct lac_event *events, size_t count)
{
    enum lac_status status = lac_spool_schemas_collect(process, events, count);

    for (size_t i = 0; i < count && events[i].type != 0 && status == LAC_OK; i++) {
        uint32_t name;

        if (events[i].type != LAC_EVENT_DOMAIN_NAME && events[i].type != LAC_EVENT_CATEGORY_NAME) {
            continue;
        }
        name = events[i].name < process->string_count ? process->string_of_id[events[i].name] : 0;
        if (name == 0) {
            continue;
        }
        if (events[i].type == LAC_EVENT_CATEGORY_NAME) {
            status = add_category(process, &events[i], name);
        } else if (events[i].domain < 256) {
            process->domain_names[events[i].domain] = name;
        }
    }
    return status;
}

/* A JSON string of at most QUOTED_BYTES; interned text is UTF-8 already. Long names are cut. */
static void quote(const char *text, char *out)
{
    size_t used = 0;

    out[used++] = '"';
    for (const char *c = text; *c != '\0' && (used + 8 < QUOTED_BYTES || (*c & 0xc0) == 0x80) &&
                               used + 8 < QUOTED_BYTES + 4;
         c++) {
        if (*c == '"' || *c == '\\') {
            out[used++] = '\\';
            out[used++] = *c;
        } else if ((unsigned char)*c < 0x20) {
            used += (size_t)snprintf(out + used, 7, "\\u%04x", (unsigned char)*c);
        } else {
            out[used++] = *c;
        }
    }
    out[used++] = '"';
    out[used] = '\0';
}

/* Such a number is written as text, which keeps every digit. */
static bool is_beyond_integers(const struct lac_spool_extras *extras)
{
    return extras->payload_type == LAC_PAYLOAD_UINT64 && extras->payload > INT64_MAX;
}

/* `{"domain":...,` and so on, a comma at its end if there is anything. */
static size_t write_template(struct lac_spool_process *process,
                             const struct lac_spool_extras *extras, char text[TEMPLATE_BYTES])
{
    const uint32_t category = find_category(process, extras->domain, extras->category);
    const uint32_t domain_name = extras->domain < 256 ? process->domain_names[extras->domain] : 0;
    char quoted[QUOTED_BYTES + 8];
    size_t used = 0;

    text[used++] = '{';
    if (domain_name != 0) {
        quote(lac_strings_get(strings_of(process), domain_name), quoted);
        used += (size_t)snprintf(text + used, TEMPLATE_BYTES - used, "\"domain\":%s,", quoted);
    } else if (extras->domain != 0) {
        used += (size_t)snprintf(text + used, TEMPLATE_BYTES - used, "\"domain\":%u,",
                                 (unsigned)extras->domain);
    }
    if (category != 0 && extras->category != 0) {
        quote(lac_strings_get(strings_of(process), category), quoted);
        used += (size_t)snprintf(text + used, TEMPLATE_BYTES - used, "\"category\":%s,", quoted);
    } else if (extras->category != 0) {
        used += (size_t)snprintf(text + used, TEMPLATE_BYTES - used, "\"category\":%" PRIu32 ",",
                                 extras->category);
    }
    if (extras->color != 0) {
        used += (size_t)snprintf(text + used, TEMPLATE_BYTES - used,
                                 "\"color\":\"#%06" PRIx32 "\",", extras->color & 0xffffff);
    }
    if (is_beyond_integers(extras)) {
        used += (size_t)snprintf(text + used, TEMPLATE_BYTES - used, "\"payload\":\"%" PRIu64 "\",",
                                 extras->payload);
    } else if (extras->payload_type != 0) {
        const bool is_real =
            extras->payload_type == LAC_PAYLOAD_DOUBLE || extras->payload_type == LAC_PAYLOAD_FLOAT;

        used += (size_t)snprintf(text + used, TEMPLATE_BYTES - used, "\"payload\":%c,",
                                 is_real ? LAC_ARG_REAL : LAC_ARG_INTEGER);
    }
    return used;
}

static enum lac_status make_template(struct lac_spool_process *process,
                                     const struct lac_spool_extras *extras, uint32_t *ret_args)
{
    char text[TEMPLATE_BYTES];
    const size_t used = write_template(process, extras, text);

    text[used - 1] = used > 1 ? '}' : '{';
    return lac_strings_intern(strings_of(process), text, used, ret_args);
}

/* With members of payloads: hardly two ranges alike in all, so there is nothing to look up. */
static enum lac_status store_members(struct lac_spool_process *process,
                                     const struct lac_spool_extras *extras,
                                     struct lac_slice_in *slice)
{
    const struct lac_spool_members *const members = extras->members;
    char *const text = malloc(TEMPLATE_BYTES + members->length + 2);
    enum lac_status status;
    size_t used;

    if (text == NULL) {
        return LAC_ERR_NOMEM;
    }
    used = write_template(process, extras, text);
    memcpy(text + used, members->text, members->length);
    used += members->length;
    used -= text[used - 1] == ',' ? 1 : 0;
    text[used++] = '}';
    status = lac_strings_intern(strings_of(process), text, used, &slice->args);
    free(text);
    if (status == LAC_OK && members->number_count > 0) {
        status = lac_builder_arg_numbers(process->builder, members->numbers, members->number_count,
                                         &slice->arg_num);
    }
    return status;
}

/* The payload as the number that the template's placeholder stands for. */
static int64_t number_of(const struct lac_spool_extras *extras)
{
    double real;
    float single;
    int64_t bits;

    switch (extras->payload_type) {
    case LAC_PAYLOAD_UINT32:
        return (int64_t)(uint32_t)extras->payload;
    case LAC_PAYLOAD_INT32:
        return (int32_t)(uint32_t)extras->payload;
    case LAC_PAYLOAD_FLOAT:
        memcpy(&single, &extras->payload, sizeof(single));
        real = (double)single;
        memcpy(&bits, &real, sizeof(bits));
        return bits;
    default: /* integers that int64_t holds, and the bits of a double */
        return (int64_t)extras->payload;
    }
}

enum lac_status lac_spool_extras_store(struct lac_spool_process *process,
                                       const struct lac_spool_extras *extras,
                                       struct lac_slice_in *slice)
{
    const uint32_t at =
        (extras->domain * 31u + extras->category * 7u + extras->color + extras->payload_type) %
        (LAC_COUNT_OF(process->templates));
    enum lac_status status = LAC_OK;
    const int64_t number = number_of(extras);

    if (extras->members != NULL) {
        return store_members(process, extras, slice);
    }
    if (is_beyond_integers(extras)) { /* each has a template of its own */
        return make_template(process, extras, &slice->args);
    }
    if (process->templates[at].args == 0 || process->templates[at].domain != extras->domain ||
        process->templates[at].category != extras->category ||
        process->templates[at].color != extras->color ||
        process->templates[at].payload_type != extras->payload_type) {
        uint32_t args = 0;

        status = make_template(process, extras, &args);
        process->templates[at].domain = extras->domain;
        process->templates[at].category = extras->category;
        process->templates[at].color = extras->color;
        process->templates[at].payload_type = extras->payload_type;
        process->templates[at].args = args;
    }
    slice->args = process->templates[at].args;
    if (status == LAC_OK && extras->payload_type != 0) {
        status = lac_builder_arg_numbers(process->builder, &number, 1, &slice->arg_num);
    }
    return status;
}

void lac_spool_report_counts(const struct lac_spool_process *process)
{
    const struct {
        uint64_t count;
        const char *code;
        const char *text;
        enum lac_report_severity severity;
    } rows[] = {
        {process->open_ranges, "open_ranges",
         "ranges that were open when the process ended: closed at its last record",
         LAC_REPORT_REPAIRED},
        {process->unmatched_pops, "range_ends_alone", "ends of ranges that had no beginning",
         LAC_REPORT_DROPPED},
        {process->unknown_events, "events_not_understood",
         "events of a kind that this version does not know", LAC_REPORT_INFO},
        {process->untimed, "gpu_records_without_times",
         "GPU operations that were still in progress when the recording ended, or whose times the "
         "driver did not keep",
         LAC_REPORT_DROPPED},
        {process->outside, "times_outside",
         "GPU operations and samples from before the process began or after its recording ended, "
         "by their times: left out",
         LAC_REPORT_DROPPED},
        {process->moved, "times_moved",
         "events from before the process began or after its recording ended, by their times: put "
         "at the nearer end",
         LAC_REPORT_REPAIRED},
        {process->whole_graphs, "graphs_as_a_whole",
         "launches of CUDA graphs that were recorded as a whole, to limit the cost of recording: "
         "their kernels are unknown (LACUNA_GRAPHS=nodes records them)",
         LAC_REPORT_INFO},
        {process->payload_members_left_out, "payload_members_left_out",
         "members of NVTX payloads that are not shown: cut off, of an unknown type, or not "
         "described",
         LAC_REPORT_INFO},
        {process->missing_names, "names_missing",
         "events whose name could not be kept by the recorder", LAC_REPORT_REPAIRED},
    };

    for (size_t i = 0; i < LAC_COUNT_OF(rows); i++) {
        if (rows[i].count > 0) {
            lac_model_report(lac_builder_model(process->builder), rows[i].severity, rows[i].code,
                             rows[i].count, 0, rows[i].text);
        }
    }
}
