#include "collector/base/io_full.h"
#include "collector/base/terminal_text.h"
#include "collector/gather/gather.h"
#include "collector/gather/spool_bounds.h"
#include "collector/sample/sample_spool.h"
#include "lacuna/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static const char help[] =
    "usage: lacuna show DIR\n"
    "\n"
    "Prints everything that the recording in DIR holds: each field of each process, each string,\n"
    "and how many records there are of each kind.\n";

enum { TYPES = 32 };

static const char *const event_names[TYPES] = {
    [LAC_EVENT_PUSH] = "ranges opened",
    [LAC_EVENT_POP] = "ranges closed",
    [LAC_EVENT_MARK] = "marks",
    [LAC_EVENT_START] = "ranges started",
    [LAC_EVENT_END] = "ranges ended",
    [LAC_EVENT_ID] = "numbers of started and ended ranges",
    [LAC_EVENT_PAYLOAD] = "payloads (one number each)",
    [LAC_EVENT_STYLE] = "colors and categories",
    [LAC_EVENT_SYNC] = "clock readings",
    [LAC_EVENT_SYNC_NS] = "clock readings, second half",
    [LAC_EVENT_DROPPED] = "counts of lost events",
    [LAC_EVENT_THREAD_NAME] = "names of threads",
    [LAC_EVENT_CATEGORY_NAME] = "names of categories",
    [LAC_EVENT_DOMAIN_NAME] = "names of domains",
    [LAC_EVENT_LOADER] = "batch and worker numbers",
    [LAC_EVENT_CPU] = "CPU times of ranges",
    [LAC_EVENT_SETTING] = "settings (their text is among the strings)",
};
static const char *const gpu_names[TYPES] = {
    [LAC_GPU_KERNEL] = "kernels",
    [LAC_GPU_COPY] = "copies",
    [LAC_GPU_MEMSET] = "memsets",
    [LAC_GPU_RUNTIME_CALL] = "runtime calls",
    [LAC_GPU_DRIVER_CALL] = "driver calls",
    [LAC_GPU_SYNC] = "synchronizations",
    [LAC_GPU_OVERHEAD] = "CUPTI's overhead",
    [LAC_GPU_MEMORY] = "allocations (address and size)",
    [LAC_GPU_GRAPH] = "graph launches",
};

struct counts {
    uint64_t events[256];
    uint64_t gpu[256];
    uint64_t samples;
    uint64_t strings;
};

/* A recording may hold anything. The fields of a series are apart by a control character. */
static void print_text(FILE *out, const char *text, size_t length)
{
    const char *separator;

    while ((separator = memchr(text, LAC_SERIES_SEPARATOR, length)) != NULL) {
        lac_terminal_print(out, text, (size_t)(separator - text));
        (void)fputc('|', out);
        length -= (size_t)(separator - text) + 1;
        text = separator + 1;
    }
    lac_terminal_print(out, text, length);
    (void)fputc('\n', out);
}

static void show_header(FILE *out, const char *name, const struct lac_spool_header *header)
{
    lac_terminal_print(out, name, strlen(name));
    (void)fprintf(out, "\n  version %u, clock %s, pid %d, parent %d, ", header->version,
                  header->clock == LAC_SPOOL_CLOCK_TSC ? "TSC" : "monotonic", header->pid,
                  header->parent_pid);
    if (header->fork_depth == LAC_SAMPLE_SPOOL_DEPTH) {
        (void)fprintf(out, "samples of the launcher\n  boot id ");
    } else {
        (void)fprintf(out, "forked %u times, started at tick %" PRIu64 "\n  boot id ",
                      header->fork_depth, header->start_ticks);
    }
    for (size_t i = 0; i < sizeof(header->boot_id); i++) {
        (void)fprintf(out, "%02x", header->boot_id[i]);
    }
    (void)fprintf(out,
                  "\n  begun at %" PRIu64 " ns since 1970; %" PRIu64 " steps; %" PRIu64
                  " events lost, %" PRIu64 " names lost\n",
                  header->first.realtime_ns, header->step_count, header->dropped_count,
                  header->dropped_string_count);
    if (header->rank != 0) {
        (void)fprintf(out, "  rank %" PRIu64 " of %" PRIu64 ", group %016" PRIx64 "\n",
                      header->rank & UINT32_MAX, header->rank >> 32, header->rank_group);
    }
    for (uint32_t at = 0; at < header->text_bytes;) {
        const size_t length = strnlen(header->text + at, header->text_bytes - at);

        (void)fprintf(out, "  ");
        print_text(out, header->text + at, length);
        at += (uint32_t)length + 1;
    }
}

static void show_strings(FILE *out, const uint8_t *segment, uint32_t size_bytes,
                         struct counts *counts)
{
    uint32_t at = LAC_SEGMENT_HEADER_BYTES;

    while (at + sizeof(struct lac_string_record) <= size_bytes) {
        struct lac_string_record record;

        memcpy(&record, segment + at, sizeof(record));
        at += (uint32_t)sizeof(record);
        if (record.length == 0 || record.length > size_bytes - at) {
            return;
        }
        (void)fprintf(out, "    ");
        print_text(out, (const char *)segment + at, record.length);
        at += (record.length + 7u) & ~7u;
        counts->strings++;
    }
}

static void count_events(const uint8_t *segment, uint32_t size_bytes, struct counts *counts)
{
    for (uint32_t at = LAC_SEGMENT_HEADER_BYTES; at + sizeof(struct lac_event) <= size_bytes;
         at += (uint32_t)sizeof(struct lac_event)) {
        const uint8_t type = segment[at + offsetof(struct lac_event, type)];

        if (type == 0) {
            return;
        }
        counts->events[type]++;
    }
}

static void count_gpu(const uint8_t *segment, uint32_t size_bytes, struct counts *counts)
{
    uint32_t at = LAC_SEGMENT_HEADER_BYTES;

    while (at + sizeof(struct lac_gpu_record) <= size_bytes) {
        const uint8_t type = segment[at + offsetof(struct lac_gpu_record, type)];
        const uint8_t units = segment[at + offsetof(struct lac_gpu_record, units)];

        if (type == 0 || units < 2) {
            return;
        }
        counts->gpu[type]++;
        at += units * 16u;
    }
}

static void count_samples(const uint8_t *segment, uint32_t size_bytes, struct counts *counts)
{
    for (uint32_t at = LAC_SEGMENT_HEADER_BYTES; at + sizeof(struct lac_sample) <= size_bytes;
         at += (uint32_t)sizeof(struct lac_sample)) {
        if (segment[at + offsetof(struct lac_sample, type)] == 0) {
            return;
        }
        counts->samples++;
    }
}

static void show_counts(FILE *out, const struct counts *counts)
{
    for (size_t i = 1; i < 256; i++) {
        const char *const event = i < TYPES ? event_names[i] : NULL;
        const char *const gpu = i < TYPES ? gpu_names[i] : NULL;

        if (counts->events[i] > 0) {
            (void)fprintf(out, "  %" PRIu64 " %s\n", counts->events[i],
                          event != NULL ? event : "events of an unknown kind");
        }
        if (counts->gpu[i] > 0) {
            (void)fprintf(out, "  %" PRIu64 " %s\n", counts->gpu[i],
                          gpu != NULL ? gpu : "GPU records of an unknown kind");
        }
    }
    if (counts->samples > 0) {
        (void)fprintf(out, "  %" PRIu64 " samples\n", counts->samples);
    }
}

static void show_segment(FILE *out, const uint8_t *segment, uint32_t size_bytes,
                         struct counts *counts)
{
    struct lac_segment_header head;

    memcpy(&head, segment, sizeof(head));
    switch (head.kind) {
    case LAC_SEGMENT_STRINGS:
        show_strings(out, segment, size_bytes, counts);
        break;
    case LAC_SEGMENT_GPU:
        count_gpu(segment, size_bytes, counts);
        break;
    case LAC_SEGMENT_SAMPLES:
        count_samples(segment, size_bytes, counts);
        break;
    default:
        count_events(segment, size_bytes, counts);
    }
}

static bool show_segments(FILE *out, int fd, const struct lac_spool_header *header)
{
    static struct counts counts;
    const off_t size = lseek(fd, 0, SEEK_END);
    const uint64_t count =
        lac_spool_segments_in(UINT64_MAX, size > 0 ? (uint64_t)size : 0, header->segment_bytes);
    uint8_t *const segment = malloc(header->segment_bytes);

    if (segment == NULL) {
        return false;
    }
    memset(&counts, 0, sizeof(counts));
    (void)fprintf(out, "  strings:\n");
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t offset = LAC_SPOOL_SEGMENTS_OFFSET + i * header->segment_bytes;
        struct lac_segment_header head;

        /* a look first: a file may be much longer than what is in it */
        if (lac_file_read_at(fd, &head, sizeof(head), offset) && head.magic == LAC_SEGMENT_MAGIC &&
            lac_file_read_at(fd, segment, header->segment_bytes, offset)) {
            show_segment(out, segment, header->segment_bytes, &counts);
        }
    }
    free(segment);
    show_counts(out, &counts);
    return true;
}

bool lac_show_spool(FILE *out, int fd, const char *name)
{
    static struct lac_spool_header header;

    if (!lac_file_is_regular(fd) || !lac_file_read_at(fd, &header, sizeof(header), 0) ||
        !lac_spool_header_check(&header)) {
        return false;
    }
    show_header(out, name, &header);
    return show_segments(out, fd, &header);
}

static bool show_file(const char *folder, const char *name)
{
    char path[4096];
    char shown[4096];
    bool ok;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ok = fd >= 0 && lac_show_spool(stdout, fd, name);
    if (!ok) {
        (void)fprintf(stderr, "lacuna show: %s is not a spool that this version reads\n",
                      lac_terminal_string(path, shown, sizeof(shown)));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return ok;
}

int lac_show_command(int argc, char **argv)
{
    char shown[4096];
    DIR *folder;
    uint64_t files = 0;
    uint64_t bad = 0;

    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        (void)fputs(help, stdout);
        return 0;
    }
    if (argc != 2 || argv[1][0] == '-') {
        (void)fprintf(stderr, "lacuna show: give the folder of a recording (lacuna show --help)\n");
        return 2;
    }
    folder = opendir(argv[1]);
    if (folder == NULL) {
        (void)fprintf(stderr, "lacuna show: %s is not a readable folder\n",
                      lac_terminal_string(argv[1], shown, sizeof(shown)));
        return 1;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (lac_spool_is_name(entry->d_name)) {
            files++;
            bad += !show_file(argv[1], entry->d_name);
        }
    }
    (void)closedir(folder);
    if (files == 0) {
        (void)fprintf(stderr, "lacuna show: no spool in %s\n",
                      lac_terminal_string(argv[1], shown, sizeof(shown)));
        return 1;
    }
    (void)printf("This is everything. It exists only in these files: nothing is sent unless you "
                 "name a server.\n");
    return bad > 0 ? 1 : 0;
}
