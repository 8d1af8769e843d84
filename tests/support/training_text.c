/* The training of training_model.c as a Kineto JSON file: 20 million events take 3 GB and some seconds. */

#include "tests/support/training_model.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ROOM_BYTES = 1 << 20, EVENT_BYTES = 1024 };

struct text {
    FILE *file;
    bool has_failed;
    bool has_heads; /**< names of processes and threads are written */
    uint64_t count;
    size_t used;
    char room[ROOM_BYTES];
};

static void put_bytes(struct text *text, const char *bytes, size_t count)
{
    memcpy(text->room + text->used, bytes, count);
    text->used += count;
}

static void put_text(struct text *text, const char *string)
{
    put_bytes(text, string, strlen(string));
}

static void put_string(struct text *text, const struct lac_model *words, uint32_t id)
{
    put_bytes(text, lac_strings_get(&words->strings, id), lac_strings_length(&words->strings, id));
}

static void put_number(struct text *text, int64_t value)
{
    char digits[24];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    put_bytes(text, digits + at, sizeof(digits) - at);
}

/** Microseconds with three places. */
static void put_us(struct text *text, int64_t ns)
{
    const char places[4] = {'.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
                            (char)('0' + ns % 10)};

    put_number(text, ns / 1000);
    put_bytes(text, places, sizeof(places));
}

static void flush(struct text *text)
{
    text->has_failed =
        fwrite(text->room, 1, text->used, text->file) != text->used || text->has_failed;
    text->used = 0;
}

static const char *category(uint8_t kind)
{
    switch (kind) {
    case LAC_SLICE_KERNEL:
        return "kernel";
    case LAC_SLICE_COPY:
        return "gpu_memcpy";
    case LAC_SLICE_API:
        return "cuda_runtime";
    case LAC_SLICE_RANGE:
        return "user_annotation";
    default:
        return "cpu_op";
    }
}

static void put_member(struct text *text, const char *key, int64_t value)
{
    put_text(text, key);
    put_number(text, value);
}

static void put_args(struct text *text, const struct lac_model *words,
                     const struct lac_slice_in *slice, const int64_t numbers[2])
{
    const struct lac_track *track = &words->tracks[slice->track];

    put_member(text, ",\"args\":{\"External id\":", numbers[0]);
    if (slice->corr != 0) {
        put_member(text, ",\"correlation\":", numbers[1]);
    }
    if (slice->kind == LAC_SLICE_OP) {
        put_text(text, ",\"Input Dims\":[[64,256,56,56]]");
    }
    if (track->kind == LAC_TRACK_STREAM) {
        put_member(text, ",\"device\":", track->device);
        put_member(text, ",\"stream\":", track->tid);
    }
    if (slice->kind == LAC_SLICE_COPY) {
        put_member(text, ",\"bytes\":", (int64_t)words->copies[slice->detail].bytes);
    }
    if (slice->kind == LAC_SLICE_KERNEL && slice->detail != LAC_NONE) {
        const struct lac_kernel_config *config = &words->kernel_configs[slice->detail];

        put_member(text, ",\"grid\":[", config->grid[0]);
        put_member(text, ",1,1],\"block\":[", config->block[0]);
        put_text(text, ",1,1]");
    }
    put_text(text, "}");
}

static void put_place(struct text *text, const struct lac_model *words, uint32_t track)
{
    put_member(text, ",\"pid\":", words->processes[words->tracks[track].process].pid);
    put_member(text, ",\"tid\":", words->tracks[track].tid);
}

static void put_heads(struct text *text, const struct lac_model *words)
{
    for (uint32_t t = 0; t < words->track_count; t++) {
        put_text(text, "{\"ph\":\"M\",\"name\":\"process_name\"");
        put_place(text, words, t);
        put_text(text, ",\"args\":{\"name\":\"");
        put_string(text, words, words->processes[words->tracks[t].process].name);
        put_text(text, "\"}},\n{\"ph\":\"M\",\"name\":\"thread_name\"");
        put_place(text, words, t);
        put_text(text, ",\"args\":{\"name\":\"");
        put_string(text, words, words->tracks[t].name);
        put_text(text, "\"}},\n");
        flush(text);
    }
    text->has_heads = true;
}

static void take(void *context, const struct lac_model *words, const struct lac_slice_in *slice,
                 const int64_t numbers[2])
{
    struct text *text = context;

    if (!text->has_heads) {
        put_heads(text, words);
    }
    put_text(text, text->count > 0 ? ",\n{\"ph\":\"X\",\"cat\":\"" : "{\"ph\":\"X\",\"cat\":\"");
    put_text(text, category((uint8_t)slice->kind));
    put_text(text, "\",\"name\":\"");
    put_string(text, words, slice->name);
    put_text(text, "\"");
    put_place(text, words, slice->track);
    put_text(text, ",\"ts\":");
    put_us(text, slice->start_ns);
    put_text(text, ",\"dur\":");
    put_us(text, slice->dur_ns);
    if (slice->args != 0) {
        put_args(text, words, slice, numbers);
    }
    put_text(text, "}");
    text->count++;
    if (text->used > sizeof(text->room) - EVENT_BYTES) {
        flush(text);
    }
}

enum lac_status training_text_write(const char *path, uint32_t rank_count, uint64_t slice_count,
                                    uint64_t *ret_count)
{
    static struct text text;
    enum lac_status status;

    text = (struct text){.file = fopen(path, "w")};
    if (text.file == NULL) {
        return LAC_ERR_IO;
    }
    put_text(&text, "{\"schemaVersion\":1,\"deviceProperties\":[");
    for (uint32_t i = 0; i < rank_count; i++) {
        put_text(&text, i > 0 ? ",{\"id\":" : "{\"id\":");
        put_number(&text, i);
        put_text(&text, ",\"name\":\"NVIDIA A100-SXM4-80GB\",\"computeMajor\":8,\"computeMinor\":0,"
                        "\"numSms\":108}");
    }
    put_text(&text, "],\n\"traceEvents\":[\n");
    status = training_model_tell(rank_count, slice_count, take, &text);
    put_text(&text, "\n]}\n");
    flush(&text);
    if (fclose(text.file) != 0 || text.has_failed) {
        return LAC_ERR_IO;
    }
    *ret_count = text.count;
    return status;
}
