/*
 * Any bytes as what another launcher of the job says: it is none, or what is kept of it stays within
 * its limits, can be judged, and is written down again as one that is read.
 */

#include "collector/hang/hang_said.h"
#include "collector/hang/hang_verdict.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_process(const struct lac_hang_process *process)
{
    require(process->thread_count <= 1 && process->thread_room == 1);
    require(memchr(process->native.file, '\0', sizeof(process->native.file)) != NULL);
    for (uint32_t i = 0; i < process->thread_count; i++) {
        require(process->threads[i].frame_count <= LAC_HANG_FRAMES);
    }
}

static bool parse(struct lac_hang_said *said, const void *bytes, size_t size)
{
    memcpy(said->text, bytes, size);
    said->text[size] = '\0';
    return lac_hang_said_parse(said, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct lac_hang_said said;
    static struct lac_hang_said again;
    static struct lac_hang_verdict verdict;
    static char text[LAC_HANG_SAID_BYTES];
    size_t length;

    if (size > LAC_HANG_SAID_BYTES || !parse(&said, data, size)) {
        return 0;
    }
    require(said.count <= LAC_HANG_SAID_PROCESSES && said.report.number > 0);
    require(memchr(said.report.host, '\0', sizeof(said.report.host)) != NULL);
    for (uint32_t i = 0; i < said.count; i++) {
        check_process(&said.processes[i]);
    }
    lac_hang_judge(said.processes, said.count, NULL, &verdict);
    require(memchr(verdict.doing, '\0', sizeof(verdict.doing)) != NULL);
    require(memchr(verdict.others, '\0', sizeof(verdict.others)) != NULL);
    length = lac_hang_said_write(&said.report, said.processes, said.count, text, sizeof(text));
    require(length > 0 && parse(&again, text, length));
    require(again.count <= said.count && again.report.number == said.report.number);
    return 0;
}
