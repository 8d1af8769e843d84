/* Figures of a trace for runs over time, of what its import kept. */

#include "analysis/compare/compare.h"
#include "analysis/compare/settings_flat.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/setting_rows.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/monotonic.h"
#include "server/api/kept_facts.h"
#include "server/base/buffer.h"
#include "server/journal/project_runs.h"
#include "server/json/json_out.h"
#include "server/store/trace/trace_file.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 96, VALUE_BYTES = 160, TEXT_BYTES = 512 };

/** What is taken for a time of day: 2005 to a day from now. */
#define EARLIEST_MS INT64_C(1104537600000)
#define DAY_MS      INT64_C(86400000)

struct setting_room {
    char key[KEY_BYTES];
    char value[VALUE_BYTES];
};

/** Everything about one trace on its way into the catalog. */
struct making {
    const struct lac_model *head;
    const struct lac_analysis *analysis;
    const struct lac_compare_facts *compare;
    struct lac_figures figures;
    struct setting_room settings[LAC_FIGURE_SETTINGS_MAX];
    uint32_t setting_count;
};

/* ---- settings ---- */

static void add_setting(void *context, const char *key, const char *value)
{
    struct making *making = context;

    for (uint32_t i = 0; i < making->setting_count; i++) {
        if (strcmp(making->settings[i].key, key) == 0) {
            return;
        }
    }
    if (making->setting_count < LAC_FIGURE_SETTINGS_MAX) {
        struct setting_room *room = &making->settings[making->setting_count++];

        (void)snprintf(room->key, sizeof(room->key), "%s", key);
        (void)snprintf(room->value, sizeof(room->value), "%s", value);
    }
}

static void add_number(struct making *making, const char *key, int64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%lld", (long long)number);
    add_setting(making, key, text);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct setting_room *)a)->key, ((const struct setting_room *)b)->key);
}

/** FNV-1a, ends included. */
static uint64_t mix(uint64_t hash, const char *text)
{
    do {
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    } while (*text++ != '\0');
    return hash;
}

static void take_settings(struct making *making)
{
    const struct lac_analysis *analysis = making->analysis;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    lac_settings_each(&making->head->settings, add_setting, making);
    if (analysis->batch_size != LAC_UNKNOWN_NS) {
        add_number(making, "batch_size", analysis->batch_size);
    }
    if (analysis->loader.num_workers >= 0 && !analysis->loader.are_workers_inferred) {
        add_number(making, "num_workers", analysis->loader.num_workers);
    }
    if (making->head->info.world_size >= 0) {
        add_number(making, "world_size", making->head->info.world_size);
        add_number(making, "gpus", making->head->info.world_size);
    } else if (analysis->device_count > 0) {
        add_number(making, "gpus", analysis->device_count);
    }
    if (making->setting_count > 1) {
        qsort(making->settings, making->setting_count, sizeof(making->settings[0]), by_key);
    }
    for (uint32_t i = 0; i < making->setting_count; i++) {
        hash = mix(mix(hash, making->settings[i].key), making->settings[i].value);
    }
    making->figures.fingerprint = hash;
}

/* ---- who, what, when ---- */

/** A fact of the host or of the launcher, NULL not recorded. */
static const char *host_fact(const struct lac_model *head, const char *name)
{
    const uint32_t root = lac_settings_find(&head->settings, UINT32_MAX, "host");
    const uint32_t row =
        root != UINT32_MAX ? lac_settings_find(&head->settings, root, name) : UINT32_MAX;

    return row != UINT32_MAX && lac_settings_value(&head->settings, row)[0] != '\0'
               ? lac_settings_value(&head->settings, row)
               : NULL;
}

/** The command line of the first process that has one: our recorder keeps it as its label. */
static const char *command_of(const struct lac_model *head)
{
    for (uint32_t p = 0; p < head->process_count; p++) {
        if (!head->processes[p].is_gpu && head->processes[p].labels != 0 &&
            head->info.format == LAC_FORMAT_LACUNA && !head->info.is_simulated) {
            return lac_model_str(head, head->processes[p].labels);
        }
    }
    return NULL;
}

/** "train.py" of "python -u /home/me/train.py --epochs 3"; of no script the program. */
static void job_of(const char *command, char *out, size_t capacity_bytes)
{
    const char *best = command;
    size_t best_length = strcspn(command, " ");

    for (const char *at = command; *at != '\0';) {
        const size_t length = strcspn(at, " ");

        if (length > 3 && (strncmp(at + length - 3, ".py", 3) == 0)) {
            best = at;
            best_length = length;
            break;
        }
        if (length == 2 && strncmp(at, "-m", 2) == 0 && at[length] == ' ') {
            best = at + 3;
            best_length = strcspn(best, " ");
            break;
        }
        at += length + strspn(at + length, " ");
    }
    for (size_t i = best_length; i > 0; i--) {
        if (best[i - 1] == '/') {
            best += i;
            best_length -= i;
            break;
        }
    }
    (void)snprintf(out, capacity_bytes, "%.*s", (int)best_length, best);
}

static void take_job(struct making *making)
{
    const char *command = command_of(making->head);
    struct lac_figures *figures = &making->figures;
    const char *person = host_fact(making->head, "user");

    (void)snprintf(figures->person, sizeof(figures->person), "%s", person != NULL ? person : "");
    if (command != NULL) {
        job_of(command, figures->job, sizeof(figures->job));
    }
    for (uint32_t i = 0; i < making->setting_count && figures->job[0] == '\0'; i++) {
        if (strcmp(making->settings[i].key, "model") == 0) {
            (void)snprintf(figures->job, sizeof(figures->job), "%.120s", making->settings[i].value);
        }
    }
}

static int64_t recorded_ms(const struct lac_model *head, int64_t arrived_ms)
{
    const int64_t told_ms = head->info.t0_ns / 1000000;

    return !head->info.is_simulated && told_ms >= EARLIEST_MS && told_ms < arrived_ms + DAY_MS
               ? told_ms
               : arrived_ms;
}

/* ---- numbers ---- */

static void take_times(struct making *making)
{
    const struct lac_analysis *analysis = making->analysis;
    struct lac_figures *figures = &making->figures;

    for (uint32_t d = 0; d < analysis->device_count; d++) {
        const struct lac_device_facts *device = &analysis->devices[d];

        figures->gpu_ns += device->span_ns;
        for (int part = 0; part < LAC_PART_IDLE; part++) {
            figures->part_ns[part] += device->partition_ns[part];
        }
        for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
            figures->part_ns[LAC_PART_IDLE + cause] += device->idle_by_cause_ns[cause];
        }
    }
}

static enum lac_status take_pace(struct making *making)
{
    const struct lac_analysis *analysis = making->analysis;
    int64_t *step_ns = malloc(((size_t)analysis->step_count + 1) * sizeof(*step_ns));
    const int32_t workers = analysis->loader.num_workers;
    uint32_t count = 0;
    enum lac_status status;

    if (step_ns == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (analysis->steps[s].left_out == LAC_STEP_KEPT) {
            step_ns[count++] = analysis->steps[s].dur_ns;
        }
    }
    status =
        lac_run_pace_of(step_ns, count, workers > 1 ? (uint32_t)workers : 1, &making->figures.pace);
    free(step_ns);
    return status;
}

/** What counters of the GPUs' energy rose by, together. */
static void take_energy(struct making *making, struct lac_trace_file *file)
{
    making->figures.energy_j = (double)NAN;
    for (uint32_t t = 0; t < making->head->track_count; t++) {
        const struct lac_track *track = &making->head->tracks[t];
        struct lac_counter_points points = {0};
        struct lac_error ignored = {0};

        if (track->kind != LAC_TRACK_COUNTER ||
            strstr(lac_model_str(making->head, track->name), "energy (J)") == NULL ||
            lac_trace_file_counter(file, t, 0, making->head->info.duration_ns + 1, 1, &points,
                                   &ignored) != LAC_OK) {
            continue;
        }
        if (points.count > 0 && isfinite(points.max[0] - points.min[0])) {
            const double used_j = points.max[0] - points.min[0];

            making->figures.energy_j =
                isfinite(making->figures.energy_j) ? making->figures.energy_j + used_j : used_j;
        }
        lac_counter_points_done(&points);
    }
}

/* ---- the document ---- */

/** "1.83 1.79 200": last, best, how many values, as `lacuna run --metric` notes it. */
static void write_noted(struct lac_json *json, const char *name, const char *text)
{
    char *end = NULL;
    const double last = strtod(text, &end);
    const double best = strtod(end, &end);
    const unsigned long long count = strtoull(end, NULL, 10);

    if (count == 0) {
        return;
    }
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "name", name);
    lac_json_real(json, "last", last);
    lac_json_real(json, "best", best);
    lac_json_uint(json, "count", count);
    lac_json_close(json, '}');
}

/** Whether the job noted this result itself. */
static bool is_noted(const struct making *making, const char *name)
{
    char key[64];

    (void)snprintf(key, sizeof(key), "metric.%s", name);
    return host_fact(making->head, key) != NULL;
}

static void write_metrics(struct lac_json *json, const struct making *making)
{
    static const char prefix[] = "metric.";
    const struct lac_setting_rows *rows = &making->head->settings;
    const uint32_t root = lac_settings_find(rows, UINT32_MAX, "host");

    lac_json_open(json, "metrics", '[');
    for (uint32_t row = root + 1; root != UINT32_MAX && row < rows->at[root].end;
         row = rows->at[row].end) {
        const char *name = lac_settings_name(rows, row);

        if (strncmp(name, prefix, sizeof(prefix) - 1) == 0) {
            write_noted(json, name + sizeof(prefix) - 1, lac_settings_value(rows, row));
        }
    }
    for (int i = 0; i < LAC_COMPARE_METRIC_COUNT; i++) {
        const struct lac_compare_end *end = &making->compare->ends[i];

        if (end->count > 0 && !is_noted(making, lac_compare_metric_name(i))) {
            lac_json_open(json, NULL, '{');
            lac_json_text(json, "name", lac_compare_metric_name(i));
            lac_json_real(json, "last", end->mean);
            lac_json_real(json, "best", (double)NAN);
            lac_json_uint(json, "count", end->count);
            lac_json_close(json, '}');
        }
    }
    lac_json_close(json, ']');
}

static void write_document(const struct making *making, struct lac_buffer *out)
{
    static const char *const facts[] = {"commit", "machine", "cpu_model", "cores_online", "kernel"};
    struct lac_json json;
    char command[TEXT_BYTES];
    const char *told = host_fact(making->head, "command");

    told = told != NULL ? told : command_of(making->head);
    (void)snprintf(command, sizeof(command), "%s", told != NULL ? told : "");
    lac_json_init_form(&json, out, LAC_JSON_REPLY);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "command", told != NULL ? command : NULL);
    lac_json_open(&json, "host_facts", '{');
    for (size_t i = 1; i < LAC_COUNT_OF(facts); i++) {
        const char *fact = host_fact(making->head, facts[i]);

        if (fact != NULL) {
            lac_json_text(&json, facts[i], fact);
        }
    }
    lac_json_close(&json, '}');
    lac_json_text(&json, "commit", host_fact(making->head, facts[0]));
    write_metrics(&json, making);
    lac_json_real(&json, "uncertain_pct", making->analysis->step_uncertain_pct);
    lac_json_ns(&json, "step_p95_ns", making->analysis->step_p95_ns);
    lac_json_ns(&json, "step_median_ns", making->analysis->step_median_ns);
    lac_json_uint(&json, "step_count", making->analysis->step_kept_count);
    lac_json_open(&json, "settings", '{');
    for (uint32_t i = 0; i < making->setting_count; i++) {
        lac_json_text(&json, making->settings[i].key, making->settings[i].value);
    }
    lac_json_close(&json, '}');
    lac_json_close(&json, '}');
}

static enum lac_status keep(struct lac_app *app, const struct making *making, const char *document,
                            struct lac_error *reterr)
{
    struct lac_setting_text texts[LAC_FIGURE_SETTINGS_MAX];

    for (uint32_t i = 0; i < making->setting_count; i++) {
        texts[i] = (struct lac_setting_text){making->settings[i].key, making->settings[i].value};
    }
    return lac_store_put_figures(app->store, &making->figures, document, texts,
                                 making->setting_count, reterr);
}

static enum lac_status measure(struct lac_app *app, struct making *making,
                               struct lac_trace_file *file, int64_t arrived_ms,
                               struct lac_error *reterr)
{
    struct lac_buffer document = {0};
    enum lac_status status;

    making->figures.generation = lac_trace_file_generation(file);
    making->figures.recorded_unix_ms = recorded_ms(making->head, arrived_ms);
    take_settings(making);
    take_job(making);
    take_times(making);
    take_energy(making, file);
    making->figures.mfu_pct = making->analysis->efficiency.mfu_pct;
    status = take_pace(making);
    if (status == LAC_OK) {
        write_document(making, &document);
        status = document.status;
    }
    if (status == LAC_OK) {
        status = keep(app, making, document.bytes, reterr);
    }
    lac_buffer_done(&document);
    return status;
}

/** One whose file cannot be read has figures, too: unknown ones, so that it is not tried again. */
static enum lac_status keep_unknown(struct lac_app *app, struct making *making, int64_t arrived_ms,
                                    uint32_t generation, struct lac_error *reterr)
{
    making->figures.generation = generation;
    making->figures.recorded_unix_ms = arrived_ms;
    making->figures.pace.log_step = (double)NAN;
    making->figures.energy_j = (double)NAN;
    making->figures.mfu_pct = (double)NAN;
    return keep(app, making, "{}", reterr);
}

static enum lac_status make_one(struct lac_app *app, const char *id, struct making *making,
                                struct lac_error *reterr)
{
    struct lac_trace_row row = {0};
    struct lac_trace_file *file = NULL;
    struct lac_kept_facts facts = {0};
    struct lac_response unsent = {.http_status = 200};
    struct lac_error reason = {0};
    enum lac_status status = lac_store_get_trace(app->store, id, &row, reterr);

    if (status != LAC_OK) {
        return status == LAC_ERR_NOT_FOUND ? LAC_OK : status; /* deleted meanwhile */
    }
    memset(making, 0, sizeof(*making));
    (void)snprintf(making->figures.trace, sizeof(making->figures.trace), "%s", id);
    status = lac_store_open_trace(app->store, id, &file, &reason);
    if (status == LAC_OK && lac_kept_facts_open(file, &unsent, &facts)) {
        making->head = lac_trace_file_head(file);
        making->analysis = facts.analysis;
        making->compare = facts.compare;
        status = measure(app, making, file, row.created_unix_ms, reterr);
        lac_kept_facts_close(file, &facts);
    } else if (status != LAC_ERR_NOMEM && unsent.http_status != 503) {
        status = keep_unknown(app, making, row.created_unix_ms, row.generation, reterr);
    }
    lac_store_release_trace(app->store, file);
    lac_buffer_done(&unsent.body);
    lac_trace_row_done(&row);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_journal_make_figures(struct lac_app *app, const char *project, uint32_t limit,
                                         struct lac_error *reterr)
{
    char ids[LAC_JOURNAL_FIGURES][LAC_ID_SIZE];
    struct making *making = NULL;
    uint32_t count = 0;
    enum lac_status status = lac_store_unfigured(
        app->store, project, limit < LAC_JOURNAL_FIGURES ? limit : LAC_JOURNAL_FIGURES, ids, &count,
        reterr);

    if (status != LAC_OK || count == 0) {
        return status;
    }
    making = malloc(sizeof(*making));
    if (making == NULL) {
        return LAC_ERR_NOMEM;
    }
    const uint64_t end_ns = lac_monotonic_ns() + LAC_JOURNAL_WORK_MS * UINT64_C(1000000);

    for (uint32_t i = 0; i < count && status == LAC_OK && (i == 0 || lac_monotonic_ns() < end_ns);
         i++) {
        status = make_one(app, ids[i], making, reterr);
    }
    free(making);
    return status;
}
