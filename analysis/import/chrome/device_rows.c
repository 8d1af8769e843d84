/*
 * GPU work in files of converters, which know no category of Kineto: rows named "Device 0" and
 * "Stream 7", together or as "Device 0 / Stream 7", rocprof's process "GPU2", and XProf's planes. What such a row
 * holds is GPU work; where none is, the report names the category that may have meant some.
 */

#include "analysis/import/chrome/chrome.h"
#include "analysis/import/chrome/chrome_args.h"
#include "analysis/import/text/json_text.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Past `word` at p, case ignored, and the number behind it. NULL when they are not there. */
static const char *word_and_number(const char *p, const char *word, int64_t *ret_number)
{
    enum { DIGITS_MAX = 8 }; /* no driver counts that far */
    size_t length = strlen(word);
    if (strncasecmp(p, word, length) != 0) {
        return NULL;
    }
    p += length;
    p += strspn(p, " #:");
    size_t digits = strspn(p, "0123456789");
    if (digits == 0 || digits > DIGITS_MAX) {
        return NULL;
    }
    *ret_number = 0;
    for (size_t i = 0; i < digits; i++) {
        *ret_number = *ret_number * 10 + (p[i] - '0');
    }
    return p + digits;
}

static const char *device_number(const char *p, int64_t *ret_device)
{
    const char *rest = word_and_number(p, "device", ret_device);
    return rest != NULL ? rest : word_and_number(p, "gpu", ret_device);
}

/* "Stream 7", "Stream 7(Compute)". */
static bool is_stream(const char *p, int64_t *ret_stream)
{
    const char *rest = word_and_number(p, "stream", ret_stream);
    return rest != NULL && (*rest == 0 || *rest == ' ' || *rest == '(');
}

/* XProf's planes, as JAX and TensorFlow write them: "/device:GPU:0", "/device:TPU:1". */
static bool is_plane(const char *process, bool *ret_is_tpu, int64_t *ret_device)
{
    static const char PREFIX[] = "/device:";
    if (strncasecmp(process, PREFIX, sizeof(PREFIX) - 1) != 0) {
        return false;
    }
    process += sizeof(PREFIX) - 1;
    const char *rest = word_and_number(process, "tpu", ret_device);
    *ret_is_tpu = rest != NULL;
    rest = rest != NULL ? rest : word_and_number(process, "gpu", ret_device);
    return rest != NULL && *rest == 0;
}

/* Work of a plane lies in its streams; of a TPU, which has none, in the row of its operations. */
static bool plane_row_of(const char *process, const char *thread, int64_t *ret_device,
                         int64_t *ret_stream)
{
    bool is_tpu = false;
    if (!is_plane(process, &is_tpu, ret_device)) {
        return false;
    }
    *ret_stream = 0;
    return is_tpu ? strcmp(thread, "XLA Ops") == 0 : is_stream(thread, ret_stream);
}

static bool range_row_of(const char *process, const char *thread, int64_t *ret_device)
{
    static const char *const DERIVED[] = {"Steps",
                                          "XLA Modules",
                                          "XLA Ops",
                                          "Async XLA Ops",
                                          "XLA TraceMe",
                                          "TensorFlow Ops",
                                          "TensorFlow Name Scope",
                                          "Framework Ops",
                                          "Framework Name Scope",
                                          "Launch Stats",
                                          "Source code"};
    bool is_tpu = false;
    if (!is_plane(process, &is_tpu, ret_device)) {
        return false;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(DERIVED); i++) {
        if (strcasecmp(thread, DERIVED[i]) == 0) {
            return !is_tpu || strcmp(thread, "XLA Ops") != 0;
        }
    }
    return false;
}

static bool device_row_of(const char *process, const char *thread, int64_t *ret_device,
                          int64_t *ret_stream)
{
    if (plane_row_of(process, thread, ret_device, ret_stream)) {
        return true;
    }
    const char *rest = device_number(process, ret_device);
    if (rest != NULL && *rest == 0 && is_stream(thread, ret_stream)) {
        return true;
    }
    rest = device_number(thread, ret_device);
    if (rest == NULL || *rest == 0) {
        return false;
    }
    rest += strspn(rest, " /,:-");
    return is_stream(rest, ret_stream);
}

void lac_device_row_find(const struct lac_chrome *chrome, struct lac_chrome_thread *thread)
{
    const struct lac_chrome_process *process = &chrome->processes[thread->process];
    const uint32_t whose = process->is_named ? process->name : process->pid_text;
    const uint32_t own = thread->is_named ? thread->name : thread->tid_text;
    if (thread->row_process == whose && thread->row_name == own) {
        return;
    }
    const char *name = lac_model_str(chrome->model, whose);
    thread->row_process = whose;
    thread->row_name = own;
    thread->is_range_row = false;
    /* by the names, or by what stands where a number does */
    thread->is_stream_row = device_row_of(name, lac_model_str(chrome->model, own),
                                          &thread->row_device, &thread->row_stream) ||
                            device_row_of(lac_model_str(chrome->model, process->pid_text),
                                          lac_model_str(chrome->model, thread->tid_text),
                                          &thread->row_device, &thread->row_stream);
    if (!thread->is_stream_row &&
        range_row_of(name, lac_model_str(chrome->model, own), &thread->row_device)) {
        thread->is_range_row = true;
        thread->row_stream = thread->tid;
    }
}

bool lac_device_rows_of_process(const char *name, int64_t *ret_device)
{
    size_t order = strspn(name, "0123456789"); /* "2 GPU0": rocprof's order of rows, then the GPU */
    if (order > 0 && name[order] == ' ') {
        name += order + 1;
    }
    const char *rest = word_and_number(name, "gpu", ret_device);
    return rest != NULL && *rest == 0;
}

enum lac_event_class lac_device_row_class(const char *name)
{
    if (strcasestr(name, "memcpy") != NULL || strncmp(name, "CopyHost", 8) == 0 ||
        strncmp(name, "CopyDevice", 10) == 0) {
        return LAC_CLASS_COPY;
    }
    return strcasestr(name, "memset") != NULL ? LAC_CLASS_MEMSET : LAC_CLASS_KERNEL;
}

bool lac_is_gpu_operation(struct lac_chrome *chrome, const struct lac_interval *interval)
{
    const struct lac_chrome_thread *thread = &chrome->threads[interval->thread];
    const struct lac_chrome_process *process = &chrome->processes[thread->process];
    if (process->is_device_row) {
        return true;
    }
    if (interval->event_class == LAC_CLASS_GPU_WORD) {
        const struct lac_args_recipe *recipe = lac_args_recipe_of(&chrome->args, interval->args);
        bool has_place = recipe != NULL && (recipe->has & ((uint32_t)1 << LAC_FIELD_STREAM |
                                                           (uint32_t)1 << LAC_FIELD_GRID_X)) != 0;
        return has_place || thread->is_stream_row || process->has_device_rows;
    }
    return interval->event_class == LAC_CLASS_OTHER &&
           (thread->is_stream_row || process->has_device_rows);
}

enum lac_event_class lac_device_category(const struct lac_json_span *category)
{
    static const char *const words[] = {"cuda", "gpu", "hip", "kernel", "device", "stream", "roc"};
    char text[32];
    if (category->size_bytes >= sizeof(text)) {
        return LAC_CLASS_OTHER;
    }
    memcpy(text, category->at, category->size_bytes);
    text[category->size_bytes] = 0;
    if (strcmp(text, "cuda_api") == 0) {
        return LAC_CLASS_API;
    }
    if (strcmp(text, "nvtx") == 0) {
        return LAC_CLASS_RANGE;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(words); i++) {
        if (strcasestr(text, words[i]) != NULL) {
            return LAC_CLASS_GPU_WORD;
        }
    }
    return LAC_CLASS_OTHER;
}

void lac_device_rows_count(struct lac_chrome *chrome)
{
    const struct lac_json_span *category = &chrome->raw.cat;
    struct lac_open_category *at = chrome->open_categories;
    const struct lac_open_category *end = at + LAC_COUNT_OF(chrome->open_categories);
    char name[sizeof(at->name)] = {0};
    uint32_t size = category->size_bytes < sizeof(name) ? category->size_bytes
                                                        : (uint32_t)sizeof(name) - 1; /* escapes */
    for (uint32_t i = 0; i < size; i++) { /* what a report may show */
        uint8_t c = category->at[i];
        name[i] = (char)(c > ' ' && c < 0x7f && c != '"' && c != '\\' ? c : '?');
    }
    while (at < end && at->count > 0 && strcmp(at->name, name) != 0) {
        at++;
    }
    if (at < end) {
        memcpy(at->name, name, sizeof(name));
        at->count++;
    }
}

/* 5398 as "5,398". */
static void put_thousands(char *out, size_t capacity, uint64_t number)
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%" PRIu64, number);
    size_t used = 0;
    for (int i = 0; i < length && used + 2 < capacity; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            out[used++] = ',';
        }
        out[used++] = digits[i];
    }
    out[used] = 0;
}

void lac_device_rows_report(struct lac_chrome *chrome)
{
    const struct lac_open_category *most = NULL;
    for (size_t i = 0; i < LAC_COUNT_OF(chrome->open_categories); i++) {
        const struct lac_open_category *each = &chrome->open_categories[i];
        if (strcmp(each->name, "cuda_profiler_range") == 0) {
            lac_chrome_note(chrome, LAC_REPORT_INFO, "profiler_ranges", each->count,
                            "Ranges of CUPTI's range profiler: counters of kernels that were run "
                            "one by one, no times of the GPU.");
        } else if (each->count > 0 && (most == NULL || each->count > most->count)) {
            most = each;
        }
    }
    if (most == NULL || chrome->has_gpu_operations) {
        return;
    }
    char count[40];
    char text[160];
    put_thousands(count, sizeof(count), most->count);
    (void)snprintf(text, sizeof(text), "no category that is known as GPU work: %s (%s event%s)",
                   most->name, count, most->count == 1 ? "" : "s");
    lac_chrome_note(chrome, LAC_REPORT_INFO, "category_not_known", most->count, text);
}
