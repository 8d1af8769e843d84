/* Documents of profilers: speedscope's JSON and cProfile's dumps, made by hand and real. */

#include "analysis/flame/flame.h"
#include "analysis/import/importers.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/real_traces.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(char *text, size_t capacity, const char *more)
{
    const size_t used = strlen(text);
    ck_assert_uint_lt(strlen(more), capacity - used);
    (void)snprintf(text + used, capacity - used, "%s", more);
}

/* The flame graph of a model: "a;b 3|" for each frame with weight of its own, as it has them. */
static char folded[1 << 14];

static const char *fold(const struct lac_model *model)
{
    const struct lac_flame_options options = {
        .metric = LAC_FLAME_CPU, .by = LAC_FLAME_BY_PYTHON, .node_count_max = 100000};
    struct lac_flame *flame = NULL;
    size_t used = 0;
    ck_assert(lac_model_is_valid(model));
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    folded[0] = '\0';
    for (uint32_t n = 1; n < flame->node_count; n++) {
        uint32_t path[64];
        uint32_t depth = 0;
        if (flame->nodes[n].self_ns == 0) {
            continue;
        }
        for (uint32_t at = n; at != 0 && depth < 64; at = flame->nodes[at].parent) {
            path[depth++] = at;
        }
        for (; depth > 0; depth--) {
            used += (size_t)snprintf(folded + used, sizeof(folded) - used, "%s%s",
                                     lac_model_str(model, flame->nodes[path[depth - 1]].name),
                                     depth > 1 ? ";" : "");
        }
        used += (size_t)snprintf(folded + used, sizeof(folded) - used, " %lld|",
                                 (long long)flame->nodes[n].self_ns);
        ck_assert_uint_lt(used, sizeof(folded));
    }
    lac_flame_destroy(flame);
    return folded;
}

#define SCHEMA "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
#define FRAMES                                                                                     \
    "\"shared\":{\"frames\":[{\"name\":\"a\"},{\"name\":\"b\",\"file\":\"/x/y.py\",\"line\":7},"   \
    "{\"name\":\"c\",\"file\":\"z.py\"}]}}"

static void expect(const char *text, const char *expected, const char *unit)
{
    struct imported got = import_text(text);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_str_eq(fold(got.models[0]), expected);
    ck_assert_str_eq(lac_model_str(got.models[0], got.models[0]->info.weight_unit), unit);
    ck_assert_int_eq(got.models[0]->info.format, LAC_FORMAT_SPEEDSCOPE);
    ck_assert(got.models[0]->info.has_no_time);
    imported_done(&got);
}

static void refuse(const char *text, const char *why)
{
    struct imported got = import_text(text);
    ck_assert_int_ne(got.status, LAC_OK);
    ck_assert_msg(strstr(got.error.message, why) != NULL, "%s", got.error.message);
    imported_done(&got);
}

START_TEST(sampled_profiles_weigh_their_stacks)
{
    expect(SCHEMA "\"profiles\":[{\"type\":\"sampled\",\"name\":\"one\",\"unit\":\"milliseconds\","
                  "\"startValue\":0,\"endValue\":4,\"samples\":[[0,1],[0],[0,1,2],[0,1]],"
                  "\"weights\":[1,0.5,2,1.5]}]," FRAMES,
           "a 500000|a;b (y.py:7) 2500000|a;b (y.py:7);c (z.py) 2000000|", "");
    expect(SCHEMA "\"profiles\":[{\"type\":\"sampled\",\"name\":\"m\",\"unit\":\"bytes\","
                  "\"samples\":[[0],[1]],\"weights\":[4096,100]}]," FRAMES,
           "a 4096|b (y.py:7) 100|", "bytes");
}
END_TEST

#define EVENTED(unit, events)                                                                      \
    "{\"type\":\"evented\",\"name\":\"one\",\"unit\":\"" unit                                      \
    "\",\"startValue\":0,\"endValue\":10,\"events\":[" events "]}"
#define OPEN(frame, at)  "{\"type\":\"O\",\"frame\":" #frame ",\"at\":" #at "}"
#define CLOSE(frame, at) "{\"type\":\"C\",\"frame\":" #frame ",\"at\":" #at "}"

/* "a 0+10 at 0|": name, start and length in ns, and lane of each slice. */
static const char *lay(const struct lac_model *model)
{
    static char text[4096];
    size_t used = 0;
    ck_assert(lac_model_is_valid(model));
    text[0] = '\0';
    for (uint64_t i = 0; i < model->info.slice_count; i++) {
        used += (size_t)snprintf(
            text + used, sizeof(text) - used, "%s %lld+%lld at %u|",
            lac_model_str(model, model->slices.name[i]), (long long)model->slices.start_ns[i],
            (long long)model->slices.dur_ns[i], (unsigned)model->slices.lane[i]);
        ck_assert_uint_lt(used, sizeof(text));
    }
    return text;
}

START_TEST(evented_profiles_are_a_timeline)
{
    struct imported got = import_text(SCHEMA "\"profiles\":[" EVENTED(
        "microseconds", OPEN(0, 1) "," OPEN(1, 2) "," OPEN(2, 2) "," CLOSE(2, 5) "," CLOSE(
                            1, 5) "," CLOSE(2, 6) "," OPEN(1, 4.5) "," OPEN(2, 8)) "]," FRAMES);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    /* b and c are alike: the one that was opened first contains the other */
    ck_assert_str_eq(lay(got.models[0]), "a 0+9000 at 0|b (y.py:7) 1000+3000 at 1|"
                                         "c (z.py) 1000+3000 at 2|b (y.py:7) 5000+4000 at 1|"
                                         "c (z.py) 7000+2000 at 2|");
    ck_assert(!got.models[0]->info.has_no_time);
    ck_assert_uint_eq(report_count(got.models[0], "event_not_understood"), 1);
    ck_assert_uint_eq(report_count(got.models[0], "time_backward"), 1);
    ck_assert_uint_eq(report_count(got.models[0], "call_not_closed"), 3);
    imported_done(&got);
    /* ns since 1970 stay exact */
    got = import_text(SCHEMA "\"profiles\":[" EVENTED(
        "nanoseconds", OPEN(0, 1700000000000000001) "," CLOSE(0, 1700000000000000004)) "]," FRAMES);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_str_eq(lay(got.models[0]), "a 0+3 at 0|");
    ck_assert_int_eq(got.models[0]->info.t0_ns, 1700000000000000001);
    imported_done(&got);
    got = import_text(
        SCHEMA "\"profiles\":[" EVENTED("seconds", OPEN(0, 1e300) "," CLOSE(0, 2e300)) "]," FRAMES);
    ck_assert_int_eq(got.status, LAC_ERR_CORRUPT);
    imported_done(&got);
}
END_TEST

START_TEST(events_beside_samples_weigh_what_lies_between_them)
{
    expect(SCHEMA "\"profiles\":[" EVENTED(
               "microseconds",
               OPEN(0, 0) "," OPEN(1, 2) "," CLOSE(1, 5) "," CLOSE(2, 6) "," CLOSE(
                   0, 10)) ","
                           "{\"type\":\"sampled\",\"name\":\"two\",\"unit\":\"microseconds\","
                           "\"samples\":[[2]],\"weights\":[4]}]," FRAMES,
           "a 7000|c (z.py) 4000|a;b (y.py:7) 3000|", "");
    expect(SCHEMA "\"profiles\":[" EVENTED("bytes", OPEN(0, 0) "," CLOSE(0, 10)) "]," FRAMES,
           "a 10|", "bytes");
}
END_TEST

/* Three ways to write the same two samples of a;b and one of a: a list a column, tables that threads
 * share, rows with a schema. */
#define FIREFOX_COLUMNS                                                                            \
    "\"stackTable\":{\"frame\":[0,1],\"prefix\":[null,0],\"length\":2},"                           \
    "\"frameTable\":{\"func\":[0,1],\"line\":[null,null],\"length\":2},"                           \
    "\"funcTable\":{\"name\":[0,1],\"fileName\":[null,2],\"lineNumber\":[null,7],\"length\":2},"   \
    "\"stringArray\":[\"a\",\"b\",\"/x/y.js\"]"
#define FIREFOX_META                                                                               \
    "{\"meta\":{\"interval\":1,\"startTime\":1700000000000.5,\"preprocessedProfileVersion\":48}"

static void expect_firefox(const char *text, const char *slices)
{
    struct imported got = import_text(text);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_int_eq(got.models[0]->info.format, LAC_FORMAT_FIREFOX);
    ck_assert_str_eq(lay(got.models[0]), slices);
    ck_assert_int_eq(got.models[0]->info.t0_ns, 1700000000002500000);
    ck_assert_int_eq(got.models[0]->info.weight_scale, 1000000);
    ck_assert(!got.models[0]->info.has_no_time);
    imported_done(&got);
}

START_TEST(firefox_profiles_are_a_timeline_of_samples)
{
    expect_firefox(FIREFOX_META
                   ",\"threads\":[{\"name\":\"main\",\"pid\":\"7\",\"tid\":8,"
                   "\"samples\":{\"stack\":[1,1,null,0],\"time\":[2,3,4,5],"
                   "\"weight\":null,\"weightType\":\"samples\",\"length\":4}," FIREFOX_COLUMNS
                   "}]}",
                   "a 0+2000000 at 0|b (y.js:7) 0+2000000 at 1|a 3000000+1000000 at 0|");
    expect_firefox(FIREFOX_META
                   ",\"shared\":{" FIREFOX_COLUMNS "},\"threads\":["
                   "{\"name\":\"one\",\"pid\":\"7\",\"tid\":8,\"samples\":{\"stack\":[1],"
                   "\"timeDeltas\":[3],\"weight\":[2],\"weightType\":\"samples\"}},"
                   "{\"name\":\"two\",\"pid\":\"7\",\"tid\":9,\"samples\":{\"stack\":[null,0],"
                   "\"timeDeltas\":[3,2]}}]}",
                   "a 0+2000000 at 0|b (y.js:7) 0+2000000 at 1|a 3000000+1000000 at 0|");
    expect_firefox(
        "{\"meta\":{\"version\":30,\"gcpoison\":0,\"interval\":1,\"startTime\":1},\"processes\":["
        "{\"meta\":{\"startTime\":1700000000000.5},\"threads\":[{\"name\":\"main\",\"pid\":7,"
        "\"tid\":8,"
        "\"samples\":{\"schema\":{\"stack\":0,\"time\":1},\"data\":[[1,2],[1,3],[0,5]]},"
        "\"stackTable\":{\"schema\":{\"prefix\":0,\"frame\":1},\"data\":[[null,0],[0,1]]},"
        "\"frameTable\":{\"schema\":{\"location\":0},\"data\":[[0],[1]]},"
        "\"stringTable\":[\"a\",\"b (y.js:7)\"]}]}]}",
        "a 0+2000000 at 0|b (y.js:7) 0+2000000 at 1|a 3000000+1000000 at 0|");
}
END_TEST

START_TEST(firefox_profiles_of_bytes_are_a_flame_graph)
{
    struct imported got = import_text(
        FIREFOX_META ",\"threads\":[{\"name\":\"main\",\"pid\":\"7\",\"tid\":8,\"samples\":{"
                     "\"stack\":[1,0,0],\"time\":[2,3,4],\"weight\":[4096,100,-9],"
                     "\"weightType\":\"bytes\"}," FIREFOX_COLUMNS "}]}");
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_str_eq(fold(got.models[0]), "a 100|a;b (y.js:7) 4096|");
    ck_assert_str_eq(lac_model_str(got.models[0], got.models[0]->info.weight_unit), "bytes");
    ck_assert(got.models[0]->info.has_no_time);
    ck_assert_uint_eq(report_count(got.models[0], "weight_not_understood"), 1);
    imported_done(&got);
}
END_TEST

/* Rows that name each other in a circle, rows that are not there, times and weights out of all
 * bounds: an error or a count, never more than the file is worth. */
START_TEST(hostile_firefox_profiles_are_limited)
{
    refuse(FIREFOX_META ",\"threads\":[]}", "no stack with a weight");
    refuse(FIREFOX_META ",\"threads\":[{\"samples\":{\"stack\":[0],\"time\":[0]}}]}",
           "no stack with a weight");
    struct imported got =
        import_text(FIREFOX_META ",\"threads\":[{\"samples\":{\"stack\":[1,0,9,-1,1,1],"
                                 "\"time\":[0,1,2,3,1e300,7],\"weight\":[1,1,1,1,1,1e9]},"
                                 "\"stackTable\":{\"frame\":[0,5],\"prefix\":[1,1]},"
                                 "\"frameTable\":{\"func\":[99]},\"funcTable\":{\"name\":[99]},"
                                 "\"stringArray\":[]}]}");
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_str_eq(lay(got.models[0]), "? 0+1000000 at 0|");
    ck_assert_uint_gt(report_count(got.models[0], "frame_not_there"), 0);
    imported_done(&got);
    /* what is left out uses nothing up: a stack that comes after it is still found */
    got = import_text(FIREFOX_META ",\"threads\":[{\"samples\":{\"stack\":[1,0],\"time\":[2,3],"
                                   "\"weight\":[1e9,1]}," FIREFOX_COLUMNS "}]}");
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_str_eq(lay(got.models[0]), "a 0+1000000 at 0|");
    ck_assert_uint_eq(report_count(got.models[0], "weight_not_understood"), 1);
    imported_done(&got);
    /* a thread without stacks has none, not those of the thread before it */
    got = import_text(FIREFOX_META
                      ",\"threads\":[{\"samples\":{\"stack\":[0],\"time\":[2]}," FIREFOX_COLUMNS
                      "},{\"samples\":{\"stack\":[1],\"time\":[3]}}]}");
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_str_eq(lay(got.models[0]), "a 0+1000000 at 0|");
    imported_done(&got);
    char deep[4096] = FIREFOX_META ",\"processes\":[";
    for (int i = 0; i < 60; i++) {
        append(deep, sizeof(deep), "{\"processes\":[");
    }
    refuse(deep, "nests more than");
}
END_TEST

/* What tells threads apart is a text of the trace, however few others there are. */
START_TEST(profiles_without_samples_are_threads_as_well)
{
    char text[8192] = SCHEMA "\"profiles\":[";
    for (int i = 0; i < 60; i++) {
        append(text, sizeof(text),
               "{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[0]],\"weights\":[1]},");
    }
    append(text, sizeof(text), "{\"type\":\"sampled\",\"unit\":\"none\"}]," FRAMES);
    struct imported got = import_text(text);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    for (uint32_t i = 0; i < got.models[0]->track_count; i++) {
        char number[16];
        (void)snprintf(number, sizeof(number), "%u", i);
        ck_assert_str_eq(lac_model_str(got.models[0], got.models[0]->tracks[i].id_text), number);
    }
    imported_done(&got);
}
END_TEST

START_TEST(broken_speedscope_files_say_what_is_wrong)
{
    refuse(SCHEMA "\"profiles\":[]," FRAMES, "no stack with a weight");
    refuse(SCHEMA "\"profiles\":[]}", "no frames");
    refuse(SCHEMA "\"profiles\":[", "no JSON");
    refuse(SCHEMA "\"profiles\":[]} x", "something follows");
    /* a frame that is not there costs its sample, and is counted */
    struct imported got = import_text(
        SCHEMA
        "\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[0],[9],[-1],[\"x\"]],"
        "\"weights\":[1,1,1,1]}]," FRAMES);
    ck_assert_int_eq(got.status, LAC_OK);
    ck_assert_str_eq(fold(got.models[0]), "a 1|");
    ck_assert_uint_eq(got.models[0]->info.dropped_count, 3);
    imported_done(&got);
    char deep[4096] = SCHEMA "\"x\":";
    memset(deep + strlen(deep), '[', 3000);
    refuse(deep, "nests more than");
}
END_TEST

START_TEST(real_speedscope_files_open)
{
    static const struct {
        const char *path, *ends;
    } files[] = {{"speedscope/speedscope__0.6.0__two-sampled.speedscope.json",
                  "a;b 10000000000|a;b;c 10000000000|a;b;d 8000000000|"},
                 {"pyspy/yuntongf_profile.speedscope.json", NULL}};
    for (size_t i = 0; i < 2; i++) {
        size_t size = 0;
        const char *path = real_trace(files[i].path);
        unsigned char *text = read_whole(path, &size);
        if (text == NULL) {
            printf("skip: no real trace %s (make traces)\n", path);
            return;
        }
        struct imported got = import_sized(text, size);
        ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
        ck_assert_uint_eq(got.models[0]->info.dropped_count, 0);
        if (files[i].ends != NULL) {
            ck_assert_str_eq(fold(got.models[0]), files[i].ends);
        }
        imported_done(&got);
        free(text);
    }
}
END_TEST

/* -- cProfile ---------------------------------------------------------------------------------- */

static unsigned char dump[4096];
static size_t dump_bytes;

static void put(const void *bytes, size_t size)
{
    memcpy(dump + dump_bytes, bytes, size);
    dump_bytes += size;
}

static void put_key(const char *file, int line, const char *name)
{
    const unsigned char head[] = {')', 3, 'z', (unsigned char)strlen(file)};
    const unsigned char middle[] = {'i', (unsigned char)line,        0, 0, 0,
                                    'Z', (unsigned char)strlen(name)};
    put(head, sizeof(head));
    put(file, strlen(file));
    put(middle, sizeof(middle));
    put(name, strlen(name));
}

/* Two counts of calls and both times, in a tuple of `count` items. */
static void put_calls(int count, int first, int second, double own_s, double total_s)
{
    const unsigned char head[] = {')',
                                  (unsigned char)count,
                                  'i',
                                  (unsigned char)first,
                                  0,
                                  0,
                                  0,
                                  'i',
                                  (unsigned char)second,
                                  0,
                                  0,
                                  0};
    put(head, sizeof(head));
    put("g", 1);
    put(&own_s, 8);
    put("g", 1);
    put(&total_s, 8);
}

static void put_times(int count, double own_s, double total_s)
{
    put_calls(count, 1, 1, own_s, total_s);
}

/* main (1 s of its own) calls f twice as long as g does; f: 3 s, g: 0.5 s of its own. */
static void make_dump(void)
{
    dump_bytes = 0;
    put("{", 1);
    put_key("/a/m.py", 1, "main");
    put_times(5, 1.0, 4.5);
    put("{0", 2);
    put_key("/a/m.py", 20, "g");
    put_times(5, 0.5, 1.5);
    put("{", 1);
    put_key("/a/m.py", 1, "main");
    put_times(4, 0.5, 1.5);
    put("0", 1);
    put_key("~", 0, "<f>");
    put_times(5, 3.0, 3.0);
    put("{", 1);
    put_key("/a/m.py", 1, "main");
    put_times(4, 2.0, 2.0);
    put_key("/a/m.py", 20, "g");
    put_times(4, 1.0, 1.0);
    put("00", 2);
}

START_TEST(a_dump_of_cprofile_becomes_stacks_of_its_callers)
{
    make_dump();
    struct imported got = import_sized(dump, dump_bytes);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_int_eq(got.models[0]->info.format, LAC_FORMAT_CPROFILE);
    ck_assert_str_eq(
        fold(got.models[0]),
        "main (m.py:1) 1000000000|main (m.py:1);<f> 2000000000|"
        "main (m.py:1);g (m.py:20) 500000000|main (m.py:1);g (m.py:20);<f> 1000000000|");
    imported_done(&got);
}
END_TEST

/* exec() is called by nobody in the dump, and by what it runs: as where imports are profiled. */
START_TEST(a_function_that_is_its_own_caller_still_begins_a_stack)
{
    dump_bytes = 0;
    put("{", 1);
    put_key("~", 0, "<exec>");
    put_calls(5, 1, 2, 0.5, 2.0);
    put("{", 1);
    put_key("/a/m.py", 1, "main");
    put_calls(4, 1, 0, 0.25, 0.0);
    put("0", 1);
    put_key("/a/m.py", 1, "main");
    put_calls(5, 1, 1, 1.5, 1.75);
    put("{", 1);
    put_key("~", 0, "<exec>");
    put_calls(4, 1, 1, 1.5, 1.75);
    put("00", 2);
    struct imported got = import_sized(dump, dump_bytes);
    ck_assert_msg(got.status == LAC_OK, "%s", got.error.message);
    ck_assert_str_eq(fold(got.models[0]), "<exec> 250000000|<exec>;main (m.py:1) 1750000000|");
    imported_done(&got);
}
END_TEST

START_TEST(a_dump_that_is_cut_short_or_holds_code_is_refused)
{
    make_dump();
    for (size_t size = 8; size < dump_bytes; size++) {
        struct imported got = import_sized(dump, size);
        ck_assert_int_eq(got.status, LAC_ERR_CORRUPT);
        imported_done(&got);
    }
    dump[dump_bytes - 2] = 'c'; /* a code object */
    struct imported got = import_sized(dump, dump_bytes);
    ck_assert_int_eq(got.status, LAC_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(got.error.message, "something else than numbers"));
    imported_done(&got);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_profilers");
    TCase *tcase = tcase_create("documents");
    tcase_add_test(tcase, sampled_profiles_weigh_their_stacks);
    tcase_add_test(tcase, evented_profiles_are_a_timeline);
    tcase_add_test(tcase, events_beside_samples_weigh_what_lies_between_them);
    tcase_add_test(tcase, firefox_profiles_are_a_timeline_of_samples);
    tcase_add_test(tcase, firefox_profiles_of_bytes_are_a_flame_graph);
    tcase_add_test(tcase, hostile_firefox_profiles_are_limited);
    tcase_add_test(tcase, profiles_without_samples_are_threads_as_well);
    tcase_add_test(tcase, broken_speedscope_files_say_what_is_wrong);
    tcase_add_test(tcase, real_speedscope_files_open);
    tcase_add_test(tcase, a_dump_of_cprofile_becomes_stacks_of_its_callers);
    tcase_add_test(tcase, a_function_that_is_its_own_caller_still_begins_a_stack);
    tcase_add_test(tcase, a_dump_that_is_cut_short_or_holds_code_is_refused);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
