/* Metadata events (names and order of rows) and counters: what reads single arguments. */

#include "analysis/import/chrome/chrome.h"
#include "analysis/import/chrome/chrome_args.h"
#include "analysis/import/text/json_text.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Id of a string argument, decoded. Other values keep their JSON text. */
static enum lac_status intern_value(struct lac_chrome *chrome, const struct lac_member *arg,
                                    uint32_t *ret_id)
{
    struct lac_json_span text = {arg->text, (uint32_t)arg->text_size, false};
    char number[24];
    if (arg->kind == LAC_MEMBER_INTEGER && arg->varies) {
        int length = snprintf(number, sizeof(number), "%lld",
                              (long long)chrome->scratch.numbers[arg->first_number]);
        text = (struct lac_json_span){(const uint8_t *)number, (uint32_t)length, true};
    }
    struct lac_chrome_name name;
    enum lac_status status = lac_chrome_intern(chrome, &text, &name);
    *ret_id = name.id;
    return status;
}

static bool find_arg(struct lac_chrome *chrome, const char *key, struct lac_member *arg)
{
    struct lac_member_cursor cursor = lac_member_begin(chrome->scratch.text, chrome->raw.args_size);
    bool found = false;
    struct lac_member each = {0};
    while (lac_member_next(&cursor, &each)) {
        if (lac_member_is(&each, key)) {
            *arg = each;
            found = true;
        }
    }
    return found;
}

static int32_t sort_index_of(struct lac_chrome *chrome)
{
    struct lac_member arg = {0};
    if (!find_arg(chrome, "sort_index", &arg)) {
        return 0;
    }
    int64_t value = 0;
    if (arg.kind == LAC_MEMBER_INTEGER) {
        value = arg.varies ? chrome->scratch.numbers[arg.first_number] : arg.integer;
    } else if (arg.kind != LAC_MEMBER_STRING ||
               !lac_decimal_integer(arg.text, arg.text_size, &value)) {
        return 0;
    }
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

static bool text_is(const struct lac_json_span *text, const char *value)
{
    return text->at != NULL && text->size_bytes == strlen(value) &&
           memcmp(text->at, value, text->size_bytes) == 0;
}

static enum lac_status on_process(struct lac_chrome *chrome, uint32_t process)
{
    const struct lac_json_span *what = &chrome->raw.name;
    struct lac_chrome_process *entry = &chrome->processes[process];
    struct lac_member arg = {0};
    if (text_is(what, "process_sort_index")) {
        entry->sort_index = sort_index_of(chrome);
        return LAC_OK;
    }
    if (text_is(what, "process_labels")) {
        return find_arg(chrome, "labels", &arg) ? intern_value(chrome, &arg, &entry->labels)
                                                : LAC_OK;
    }
    if (!find_arg(chrome, "name", &arg)) {
        return LAC_OK;
    }
    enum lac_status status = intern_value(chrome, &arg, &entry->name);
    if (status != LAC_OK) {
        return status;
    }
    entry->is_named = true;
    lac_tensorflow_process_name(chrome, process);
    return LAC_OK;
}

enum lac_status lac_chrome_meta(struct lac_chrome *chrome)
{
    const struct lac_json_span *what = &chrome->raw.name;
    bool is_process = text_is(what, "process_name") || text_is(what, "process_labels") ||
                      text_is(what, "process_sort_index");
    bool is_thread = text_is(what, "thread_name") || text_is(what, "thread_sort_index");
    if (!is_process && !is_thread) {
        lac_chrome_note(chrome, LAC_REPORT_INFO, "metadata_not_understood", 1,
                        "Metadata events of names that are only counted.");
        return LAC_OK;
    }
    uint32_t thread = 0;
    enum lac_status status = lac_chrome_thread(chrome, &chrome->raw.pid, &chrome->raw.tid, &thread);
    if (status != LAC_OK) {
        return status;
    }
    struct lac_chrome_thread *entry = &chrome->threads[thread];
    if (is_process) {
        return on_process(chrome, entry->process);
    }
    struct lac_member arg = {0};
    if (text_is(what, "thread_sort_index")) {
        entry->sort_index = sort_index_of(chrome);
        return LAC_OK;
    }
    if (!find_arg(chrome, "name", &arg)) {
        return LAC_OK;
    }
    entry->is_named = true;
    return intern_value(chrome, &arg, &entry->name);
}

/* --- counters ----------------------------------------------------------------------------------*/

static bool arg_number(const struct lac_member *arg, const int64_t *numbers, double *ret_value)
{
    if (arg->kind == LAC_MEMBER_INTEGER) {
        *ret_value = (double)(arg->varies ? numbers[arg->first_number] : arg->integer);
        return true;
    }
    if (arg->kind == LAC_MEMBER_REAL) {
        *ret_value = arg->real;
        if (arg->varies) {
            memcpy(ret_value, &numbers[arg->first_number], sizeof(*ret_value));
        }
        return true;
    }
    if (arg->kind != LAC_MEMBER_STRING || arg->text_size == 0 || arg->text_size > 40) {
        return false;
    }
    char text[48], *end = NULL;
    memcpy(text, arg->text, arg->text_size);
    text[arg->text_size] = 0;
    *ret_value = strtod(text, &end);
    return end == text + arg->text_size && *ret_value - *ret_value == 0; /* NOLINT: finite */
}

/* Track of one series: "name", "name series", "name [id] series". */
static enum lac_status series_track(struct lac_chrome *chrome, uint32_t process, uint32_t name,
                                    uint32_t id, const struct lac_member *arg, uint32_t *ret_track)
{
    const struct lac_strings *strings = &chrome->model->strings;
    size_t name_size = lac_strings_length(strings, name), id_size = lac_strings_length(strings, id);
    size_t size = name_size + id_size + arg->key_size * 3 + 16;
    char *text = malloc(size);
    if (text == NULL) {
        return lac_chrome_no_memory(chrome);
    }
    size_t used = name_size;
    memcpy(text, lac_strings_get(strings, name), name_size);
    if (id_size) {
        used += (size_t)snprintf(text + used, size - used, " [%s]", lac_strings_get(strings, id));
    }
    if (!(arg->key_size == 5 && memcmp(arg->key, "value", 5) == 0)) {
        text[used++] = ' ';
        used += lac_json_string_decode(arg->key, arg->key_size, (uint8_t *)text + used,
                                       &chrome->raw.repairs);
    }
    uint32_t id_text = 0;
    enum lac_status status = lac_strings_intern(&chrome->model->strings, text, used, &id_text);
    free(text);
    if (status == LAC_OK) {
        status =
            lac_builder_track(chrome->builder, LAC_TRACK_COUNTER, process, id_text, -1, ret_track);
    }
    if (status != LAC_OK) {
        return lac_chrome_pass(chrome, status);
    }
    struct lac_track *track = lac_builder_track_at(chrome->builder, *ret_track);
    track->name = id_text;
    track->device = -1;
    return LAC_OK;
}

enum lac_status lac_chrome_counter(struct lac_chrome *chrome, uint32_t thread,
                                   struct lac_chrome_name name)
{
    const struct lac_raw_event *raw = &chrome->raw;
    struct lac_chrome_name id = {0, 0};
    uint32_t process = 0;
    enum lac_status status = lac_chrome_intern(chrome, &raw->id, &id);
    if (status == LAC_OK) {
        status = lac_chrome_model_process(chrome, chrome->threads[thread].process, &process);
    }
    struct lac_member_cursor cursor = lac_member_begin(chrome->scratch.text, raw->args_size);
    struct lac_member arg = {0};
    uint64_t taken = 0;
    while (status == LAC_OK && lac_member_next(&cursor, &arg)) {
        double value = 0;
        if (!arg_number(&arg, chrome->scratch.numbers, &value)) {
            continue;
        }
        uint32_t track = 0;
        status = series_track(chrome, process, name.id, id.id, &arg, &track);
        if (status == LAC_OK) {
            status = lac_chrome_pass(chrome,
                                     lac_builder_sample(chrome->builder, track, raw->ts_ns, value));
        }
        taken++;
    }
    if (status == LAC_OK && taken == 0) {
        lac_chrome_note(chrome, LAC_REPORT_DROPPED, "counter_without_number", 1,
                        "Counter events without a number were dropped.");
    }
    return status;
}
