/* A trace cut short anywhere: a clear error or a counted repair, and nothing whole is lost. */

#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/real_traces.h"
#include "tests/support/rounds.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One event of each phase and kind, so that every reader of the importer meets its end of input. */
static const char own_trace[] =
    "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"GPU\"}],\n"
    " \"baseTimeNanoseconds\": 1700000000000000000, \"traceEvents\": [\n"
    "  {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::\\u00e9\\n\", \"pid\": 1, \"tid\": 1,"
    " \"ts\": 10.5, \"dur\": 20, \"args\": {\"External id\": 5, \"Input Dims\": [[1, 2], []]}},\n"
    "  {\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 1,"
    " \"tid\": 1, \"ts\": 12, \"dur\": 1e1, \"args\": {\"correlation\": 9}},\n"
    "  {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": 7, \"ts\": 30,"
    " \"dur\": 5, \"args\": {\"device\": 0, \"stream\": 7, \"correlation\": 9, \"grid\": "
    "[1,1,1]}},\n"
    "  {\"ph\": \"s\", \"id\": 9, \"pid\": 1, \"tid\": 1, \"ts\": 12, \"cat\": \"ac2g\","
    " \"name\": \"ac2g\"},\n"
    "  {\"ph\": \"B\", \"name\": \"b\", \"pid\": 1, \"tid\": 2, \"ts\": 1},"
    "  {\"ph\": \"E\", \"pid\": 1, \"tid\": 2, \"ts\": 2},\n"
    "  {\"ph\": \"C\", \"name\": \"c\", \"pid\": 1, \"ts\": 2, \"args\": {\"v\": 1.5}},\n"
    "  {\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 1, \"args\": {\"name\": \"p\"}}\n"
    " ], \"traceName\": \"t\"}\n";

/* Where each event ends, found with a counter of brackets that knows strings. */
static size_t event_ends(const unsigned char *text, size_t size, size_t *ends, size_t capacity)
{
    const char *array = strstr((const char *)text, "\"traceEvents\"");
    size_t depth = 0, count = 0;
    bool in_string = false;
    ck_assert_ptr_nonnull(array);
    for (size_t i = (size_t)(array - (const char *)text) + 13; i < size; i++) {
        if (in_string) {
            i += text[i] == '\\';
            in_string = text[i] != '"';
        } else if (text[i] == '"') {
            in_string = true;
        } else if (text[i] == '{' || text[i] == '[') {
            depth++;
        } else if (text[i] == '}' || text[i] == ']') {
            if (--depth == 0)
                break;
            if (depth == 1) {
                ck_assert_uint_lt(count, capacity);
                ends[count++] = i + 1;
            }
        }
    }
    return count;
}

static void check_cut(const unsigned char *text, size_t size, size_t cut, size_t whole)
{
    size_t last = size;
    while (last > 0 && text[last - 1] <= ' ')
        last--;
    struct imported imported = import_tuned(text, cut, NULL, 4096, 0, cut & 1);
    if (whole == 0) {
        ck_assert_msg(imported.status == LAC_ERR_CORRUPT && imported.error.message[0],
                      "cut at %zu: %s", cut, lac_status_name(imported.status));
        ck_assert_uint_le(imported.error.offset_bytes, cut);
    } else {
        ck_assert_msg(imported.status == LAC_OK, "cut at %zu: %s", cut, imported.error.message);
        const struct lac_model *model = imported.models[0];
        ck_assert_msg(model->info.event_count == whole, "cut at %zu: %llu events of %zu", cut,
                      (unsigned long long)model->info.event_count, whole);
        ck_assert_uint_eq(report_count(model, "truncated"), cut < last);
        ck_assert_uint_le(model->info.dropped_count, 1);
        ck_assert_uint_eq(model->info.dropped_count, report_count(model, "event_cut_off"));
        ck_assert(lac_model_is_valid(model));
    }
    imported_done(&imported);
}

static void check_every_cut(const unsigned char *text, size_t size, size_t step)
{
    size_t ends[1000];
    size_t count = event_ends(text, size, ends, 1000), whole = 0;
    ck_assert_uint_gt(count, 0);
    for (size_t cut = 0; cut <= size; cut += step) {
        while (whole < count && ends[whole] <= cut)
            whole++;
        check_cut(text, size, cut, whole);
    }
    check_cut(text, size, size, count);
}

START_TEST(our_own_trace_cut_at_every_byte)
{
    check_every_cut((const unsigned char *)own_trace, sizeof(own_trace) - 1, 1);
}
END_TEST

START_TEST(a_real_trace_cut_anywhere)
{
    size_t size = 0, step = 1;
    const char *path = real_trace("kineto/gpu_metrics_input.json");
    unsigned char *text = read_whole(path, &size);
    if (text == NULL) {
        printf("skip: no real trace %s (make traces)\n", path);
        return;
    }
    if (!rounds_are_all()) { /* every byte takes a minute, and with the sanitizers several */
        step = rounds_are_sanitized() ? 37 : 3;
    }
    check_every_cut(text, size, step);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_cut");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 900);
    tcase_add_test(tcase, our_own_trace_cut_at_every_byte);
    tcase_add_test(tcase, a_real_trace_cut_anywhere);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
