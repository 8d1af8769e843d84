/* Traces of Perfetto, written here packet by packet: sequences, interned names, clocks, tracks, GPU
 * packets, compression; damage and bombs. */

#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"

#include <check.h>
#include <isa-l/igzip_lib.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct message {
    uint8_t bytes[8192];
    size_t size;
};

static void varint(struct message *to, uint64_t value)
{
    do {
        to->bytes[to->size++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value != 0);
    ck_assert_uint_lt(to->size, sizeof(to->bytes) - 16);
}

static void number(struct message *to, uint32_t field, uint64_t value)
{
    varint(to, (uint64_t)field << 3);
    varint(to, value);
}

static void bytes(struct message *to, uint32_t field, const void *at, size_t size)
{
    varint(to, (uint64_t)field << 3 | 2);
    varint(to, size);
    memcpy(to->bytes + to->size, at, size);
    to->size += size;
}

static void text(struct message *to, uint32_t field, const char *value)
{
    bytes(to, field, value, strlen(value));
}

static void inside(struct message *to, uint32_t field, const struct message *part)
{
    bytes(to, field, part->bytes, part->size);
}

static void real(struct message *to, uint32_t field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    varint(to, (uint64_t)field << 3 | 1);
    for (int i = 0; i < 8; i++) {
        to->bytes[to->size++] = (uint8_t)(bits >> (8 * i));
    }
}

/* {iid = 1, name = 2} in the packet's list. */
static void interned(struct message *data, uint32_t list, uint64_t iid, const char *name)
{
    struct message entry = {.size = 0};
    number(&entry, 1, iid);
    text(&entry, 2, name);
    inside(data, list, &entry);
}

static struct message packet_at(uint64_t sequence, uint64_t time, uint64_t flags)
{
    struct message packet = {.size = 0};
    number(&packet, 8, time);
    number(&packet, 10, sequence);
    if (flags != 0) {
        number(&packet, 13, flags);
    }
    return packet;
}

static void thread(struct message *trace, uint64_t uuid, uint64_t pid, uint64_t tid,
                   const char *name)
{
    struct message packet = packet_at(1, 0, 0);
    struct message track = {.size = 0};
    struct message of = {.size = 0};
    number(&of, 1, pid);
    number(&of, 2, tid);
    text(&of, 5, name);
    number(&track, 1, uuid);
    inside(&track, 4, &of);
    inside(&packet, 60, &track);
    inside(trace, 1, &packet);
}

static void event(struct message *trace, uint64_t sequence, uint64_t time, uint64_t type,
                  uint64_t track, uint64_t name_iid)
{
    struct message packet = packet_at(sequence, time, 2);
    struct message own = {.size = 0};
    number(&own, 9, type);
    number(&own, 11, track);
    if (name_iid != 0) {
        number(&own, 10, name_iid);
    }
    inside(&packet, 11, &own);
    inside(trace, 1, &packet);
}

/* Boot time 1000 is 5000 of the monotonic clock and a day in 2023. */
static void begin(struct message *trace)
{
    static const uint64_t CLOCKS[][2] = {{6, 1000}, {3, 5000}, {1, UINT64_C(1700000000000001000)}};
    struct message packet = packet_at(1, 0, 1);
    struct message snapshot = {.size = 0};
    struct message data = {.size = 0};
    for (size_t i = 0; i < LAC_COUNT_OF(CLOCKS); i++) {
        struct message clock = {.size = 0};
        number(&clock, 1, CLOCKS[i][0]);
        number(&clock, 2, CLOCKS[i][1]);
        inside(&snapshot, 1, &clock);
    }
    inside(&packet, 6, &snapshot);
    interned(&data, 2, 1, "outer");
    interned(&data, 2, 2, "inner");
    interned(&data, 1, 1, "cpu_op");
    interned(&data, 24, 7, "stream 7");
    interned(&data, 24, 8, "gemm");
    inside(&packet, 12, &data);
    inside(trace, 1, &packet);
    thread(trace, 11, 100, 101, "main");
}

static struct message usual(void)
{
    struct message trace = {.size = 0};
    begin(&trace);
    event(&trace, 1, 2000, 1, 11, 1);
    event(&trace, 1, 3000, 1, 11, 2);
    event(&trace, 1, 4000, 2, 11, 0);
    event(&trace, 1, 9000, 2, 11, 0);
    struct message packet = packet_at(1, 3500, 2);
    struct message stage = {.size = 0};
    struct message extra = {.size = 0};
    number(&stage, 1, 1);
    number(&stage, 2, 2500);
    number(&stage, 11, 1);
    number(&stage, 13, 7);
    number(&stage, 14, 8);
    text(&extra, 1, "grid");
    text(&extra, 2, "[80,1,1]");
    inside(&stage, 6, &extra);
    inside(&packet, 53, &stage);
    inside(&trace, 1, &packet);
    return trace;
}

static const struct lac_model *good(const struct imported *imported)
{
    ck_assert_msg(imported->status == LAC_OK, "%s", imported->error.message);
    ck_assert_uint_eq(imported->count, 1);
    ck_assert(lac_model_is_valid(imported->models[0]));
    ck_assert_int_eq(imported->models[0]->info.format, LAC_FORMAT_PERFETTO);
    return imported->models[0];
}

START_TEST(events_stages_and_names)
{
    struct message trace = usual();
    struct imported imported = import_sized(trace.bytes, trace.size);
    const struct lac_model *model = good(&imported);
    uint64_t outer = find_slice(model, "outer");
    uint64_t inner = find_slice(model, "inner");
    uint64_t kernel = find_slice(model, "gemm");
    ck_assert_uint_eq(model->slices.count, 3);
    ck_assert_int_eq(model->info.t0_ns, INT64_C(1700000000000002000));
    ck_assert_int_eq(model->slices.dur_ns[outer], 7000);
    ck_assert_int_eq(model->slices.start_ns[inner], 1000);
    ck_assert_int_eq(model->slices.dur_ns[inner], 1000);
    ck_assert_int_eq(model->slices.kind[kernel], LAC_SLICE_KERNEL);
    ck_assert_int_eq(model->slices.dur_ns[kernel], 2500);
    ck_assert_uint_eq(model->kernel_configs[model->slices.detail[kernel]].grid[0], 80);
    ck_assert_int_eq(model->devices[0].id, 1);
    ck_assert_uint_ne(find_track(model, LAC_TRACK_THREAD, "101"), LAC_NONE);
    imported_done(&imported);
}
END_TEST

/* What one sequence interned is unknown to another, and to itself once it was cleared. */
START_TEST(state_belongs_to_a_sequence)
{
    struct message trace = usual();
    event(&trace, 2, 10000, 1, 11, 1);
    event(&trace, 2, 10100, 2, 11, 0);
    struct message cleared = packet_at(1, 11000, 1);
    inside(&trace, 1, &cleared);
    event(&trace, 1, 11000, 1, 11, 1);
    event(&trace, 1, 11100, 2, 11, 0);
    struct imported imported = import_sized(trace.bytes, trace.size);
    const struct lac_model *model = good(&imported);
    ck_assert_uint_eq(model->slices.count, 5);
    ck_assert_uint_eq(report_count(model, "state_lost"), 2);
    uint32_t named = 0;
    for (uint64_t i = 0; i < model->slices.count; i++) {
        named += strcmp(lac_model_str(model, model->slices.name[i]), "outer") == 0 ? 1 : 0;
    }
    ck_assert_uint_eq(named, 1);
    imported_done(&imported);
}
END_TEST

START_TEST(clocks_and_counters)
{
    struct message trace = usual();
    struct message packet = {.size = 0};
    struct message track = {.size = 0};
    struct message counter = {.size = 0};
    struct message own = {.size = 0};
    number(&track, 1, 50);
    text(&track, 2, "queue depth");
    inside(&track, 8, &counter);
    number(&packet, 10, 1);
    inside(&packet, 60, &track);
    inside(&trace, 1, &packet);
    packet = packet_at(1, 7000, 0); /* monotonic: 3000 of boot time */
    number(&packet, 58, 3);
    number(&own, 9, 4);
    number(&own, 11, 50);
    real(&own, 44, 2.5);
    inside(&packet, 11, &own);
    inside(&trace, 1, &packet);
    packet = packet_at(1, 7000, 0);
    number(&packet, 58, 9); /* no snapshot has it */
    inside(&packet, 11, &own);
    inside(&trace, 1, &packet);
    struct imported imported = import_sized(trace.bytes, trace.size);
    const struct lac_model *model = good(&imported);
    ck_assert_uint_eq(model->sample_count, 1);
    ck_assert_int_eq(model->sample_ts_ns[0], 1000);
    ck_assert_double_eq_tol(model->sample_value[0], 2.5, 1e-12);
    ck_assert_uint_eq(report_count(model, "clock_unknown"), 1);
    imported_done(&imported);
}
END_TEST

START_TEST(counters_and_memory_of_a_gpu)
{
    struct message trace = usual();
    struct message names = {.size = 0};
    struct message spec = {.size = 0};
    struct message value = {.size = 0};
    struct message own = {.size = 0};
    struct message packet = packet_at(3, 3000, 0);
    number(&spec, 1, 4);
    text(&spec, 2, "SM active (%)");
    inside(&names, 1, &spec);
    inside(&own, 1, &names);
    number(&value, 1, 4);
    real(&value, 3, 87.5);
    inside(&own, 2, &value);
    number(&own, 3, 1);
    inside(&packet, 52, &own);
    inside(&trace, 1, &packet);
    packet = packet_at(3, 4000, 0);
    own.size = 0;
    number(&own, 1, 1);
    number(&own, 3, 2000000000);
    inside(&packet, 71, &own);
    inside(&trace, 1, &packet);
    packet = packet_at(3, 4000, 0);
    own.size = 0;
    number(&own, 1, 1);
    inside(&packet, 1, &own); /* ftrace */
    inside(&trace, 1, &packet);
    struct imported imported = import_sized(trace.bytes, trace.size);
    const struct lac_model *model = good(&imported);
    ck_assert_uint_eq(model->sample_count, 2);
    ck_assert_uint_eq(report_count(model, "ftrace_left_out"), 1);
    imported_done(&imported);
}
END_TEST

static size_t deflate(const void *in, size_t size, uint8_t *out, size_t capacity)
{
    struct isal_zstream *stream = malloc(sizeof(*stream));
    uint8_t *level = malloc(ISAL_DEF_LVL1_DEFAULT);
    ck_assert(stream != NULL && level != NULL);
    isal_deflate_stateless_init(stream);
    stream->gzip_flag = IGZIP_ZLIB;
    stream->level = 1;
    stream->level_buf = level;
    stream->level_buf_size = ISAL_DEF_LVL1_DEFAULT;
    stream->end_of_stream = 1;
    stream->next_in = (uint8_t *)(uintptr_t)in;
    stream->avail_in = (uint32_t)size;
    stream->next_out = out;
    stream->avail_out = (uint32_t)capacity;
    ck_assert_int_eq(isal_deflate_stateless(stream), COMP_OK);
    size_t used = stream->total_out;
    free(level);
    free(stream);
    return used;
}

START_TEST(compressed_packets)
{
    struct message plain = usual();
    struct message trace = {.size = 0};
    struct message packet = {.size = 0};
    uint8_t packed[8192];
    size_t size = deflate(plain.bytes, plain.size, packed, sizeof(packed));
    bytes(&packet, 50, packed, size);
    inside(&trace, 1, &packet);
    struct imported imported = import_sized(trace.bytes, trace.size);
    ck_assert_uint_eq(good(&imported)->slices.count, 3);
    imported_done(&imported);
    trace.bytes[trace.size - size / 2] ^= 0x55; /* no checksum, or no stream, fits any more */
    imported = import_sized(trace.bytes, trace.size);
    ck_assert(imported.status != LAC_OK || lac_model_is_valid(imported.models[0]));
    imported_done(&imported);
}
END_TEST

START_TEST(bombs_meet_a_limit)
{
    const size_t size = (size_t)100 << 20;
    uint8_t *zeros = calloc(1, size);
    uint8_t *packed = malloc((size_t)1 << 20);
    uint8_t *trace = malloc((size_t)1 << 20);
    ck_assert(zeros != NULL && packed != NULL && trace != NULL);
    struct message head = {.size = 0};
    size_t used = deflate(zeros, size, packed, (size_t)1 << 20);
    struct message key = {.size = 0};
    varint(&key, 50 << 3 | 2);
    varint(&key, used);
    varint(&head, 1 << 3 | 2);
    varint(&head, key.size + used);
    memcpy(trace, head.bytes, head.size);
    memcpy(trace + head.size, key.bytes, key.size);
    memcpy(trace + head.size + key.size, packed, used);
    struct imported imported = import_sized(trace, head.size + key.size + used);
    ck_assert_int_eq(imported.status, LAC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(imported.error.message, "expand"));
    imported_done(&imported);
    free(zeros);
    free(packed);
    free(trace);
}
END_TEST

START_TEST(cut_and_changed_at_every_byte)
{
    struct message trace = usual();
    for (size_t size = 16; size < trace.size; size++) {
        struct imported imported = import_sized(trace.bytes, size);
        ck_assert(imported.status != LAC_OK || lac_model_is_valid(imported.models[0]));
        ck_assert(imported.status == LAC_OK || imported.error.message[0] != '\0');
        imported_done(&imported);
    }
    for (size_t at = 0; at < trace.size; at++) {
        struct message changed = trace;
        changed.bytes[at] = (uint8_t)(changed.bytes[at] + 1 + at % 250);
        struct imported imported = import_sized(changed.bytes, changed.size);
        ck_assert(imported.status != LAC_OK || lac_model_is_valid(imported.models[0]));
        imported_done(&imported);
    }
}
END_TEST

START_TEST(nothing_in_it_is_an_error)
{
    struct message trace = {.size = 0};
    struct message packet = packet_at(1, 5, 0);
    struct message own = {.size = 0};
    number(&own, 1, 1);
    inside(&packet, 1, &own);
    inside(&trace, 1, &packet);
    struct imported imported = import_sized(trace.bytes, trace.size);
    ck_assert_int_eq(imported.status, LAC_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(imported.error.message, "ftrace"));
    imported_done(&imported);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_perfetto");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, events_stages_and_names);
    tcase_add_test(all, state_belongs_to_a_sequence);
    tcase_add_test(all, clocks_and_counters);
    tcase_add_test(all, counters_and_memory_of_a_gpu);
    tcase_add_test(all, compressed_packets);
    tcase_add_test(all, bombs_meet_a_limit);
    tcase_add_test(all, cut_and_changed_at_every_byte);
    tcase_add_test(all, nothing_in_it_is_an_error);
    suite_add_tcase(suite, all);
    return check_main(suite);
}
