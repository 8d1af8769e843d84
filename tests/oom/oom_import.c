/*
 * The n-th allocation fails, for every n, while every kind of input is imported: the answer is
 * LAC_ERR_NOMEM with a message, and nothing leaks (the sanitizer build sees to that).
 */

#include "analysis/import/import_private.h"
#include "collector/base/count_of.h"
#include "tests/support/oom.h"

#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <string.h>

static enum lac_status drop(void *context, struct lac_model *model, struct lac_error *reterr)
{
    (void)reterr;
    ++*(int *)context;
    lac_model_destroy(model);
    return LAC_OK;
}

struct input {
    const uint8_t *bytes;
    size_t size;
};

static enum lac_status import(void *context)
{
    static const struct lac_import_tuning tuning = {512, 100};
    const struct input *input = context;
    struct lac_import_options options = {0};
    struct lac_error error = {0};
    int count = 0;
    lac_import_limits_default(&options.limits);
    enum lac_status status =
        lac_import_bytes_tuned(input->bytes, input->size, &options, &tuning, drop, &count, &error);
    oom_require(status == LAC_OK ? count > 0 : error.message[0] != 0,
                "neither a trace nor a message");
    return status;
}

/* Every kind of event, many enough that each array and table grows more than once. */
static size_t make_trace(char *text, size_t capacity)
{
    size_t size = (size_t)snprintf(text, capacity,
                                   "{\"deviceProperties\":[{\"id\":0,\"name\":\"G\"}],"
                                   "\"distributedInfo\":{\"backend\":\"nccl\"},"
                                   "\"host_name\":\"h\",\"traceEvents\":[");
    for (int i = 0; i < 300 && size < capacity - 2000; i++) {
        size += (size_t)snprintf(
            text + size, capacity - size,
            "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op%d\\u00e9\",\"pid\":1,\"tid\":%d,\"ts\":"
            "%d,\"dur\":3,"
            "\"args\":{\"External id\":%d,\"shape\":[%d]}},"
            "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":%d,\"ts\":%d,"
            "\"dur\":3,\"args\":"
            "{\"device\":%d,\"stream\":%d,\"correlation\":%d,\"grid\":[%d,1,1]}},"
            "{\"ph\":\"B\",\"name\":\"b\",\"pid\":2,\"tid\":1,\"ts\":%d,\"args\":{\"a\":%d}},"
            "{\"ph\":\"b\",\"cat\":\"c\",\"name\":\"a\",\"id\":%d,\"pid\":2,\"ts\":%d},"
            "{\"ph\":\"C\",\"name\":\"c\",\"pid\":2,\"ts\":%d,\"args\":{\"v%d\":%d}},"
            "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":%d,\"args\":{\"Bytes\":"
            "%d}},",
            i, i % 90, i * 7, i, i, i, i * 9, i % 3, i, i + 1, i, i, i, i, i, i, i, i, i, i);
        size += (size_t)snprintf(
            text + size, capacity - size,
            "{\"ph\":\"E\",\"pid\":2,\"tid\":1,\"ts\":%d,\"args\":{\"b\":2}},{\"ph\":\"X\","
            "\"name\":\"w\",\"pid\":%d,"
            "\"ts\":%d,\"dur\":1},{\"ph\":\"e\",\"cat\":\"c\",\"name\":\"a\",\"id\":%d,\"pid\":2,"
            "\"ts\":%d},"
            "{\"ph\":\"s\",\"cat\":\"f\",\"name\":\"f\",\"id\":%d,\"pid\":1,\"tid\":%d,\"ts\":%d},"
            "{\"ph\":\"X\",\"name\":\"q \"x\" y\",\"pid\":5,\"ts\":1,\"dur\":1},",
            i, 100 + i, i, i, i + 5, i, i % 90, i);
    }
    size += (size_t)snprintf(
        text + size, capacity - size,
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":100,\"args\":{\"name\":\"/gpu:0/"
        "stream:1 C\"}}],\"traceName\":\"t\"}");
    return size;
}

static size_t make_gzip(const char *text, size_t size, uint8_t *out, size_t capacity)
{
    struct isal_zstream stream;
    isal_deflate_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.next_in = (uint8_t *)(uintptr_t)text;
    stream.avail_in = (uint32_t)size;
    stream.next_out = out;
    stream.avail_out = (uint32_t)capacity;
    oom_require(isal_deflate(&stream) == COMP_OK, "gzip");
    return capacity - stream.avail_out;
}

/* A table, a log and a database as SQL text. */
static uint64_t import_table(void)
{
    static const char *const TEXTS[] = {
        "Time (%),Total Time (ns),Instances,Avg (ns),Name\n50.0,3000,9,1,k\n50.0,20,2,1,j\n",
        "timestamp, index, power.draw [W]\n2026/04/25 16:06:06.780, 0, 97 W\n",
        "AAA,progname,nmon\nCPU,x,User%\nZZZZ,T0001,16:06:06,25-APR-2026\nCPU,T0001,3\n",
        "\"ID\",\"Kernel Name\",\"Context\",\"Stream\",\"gpu__time_duration.sum\"\n"
        "\"\",\"\",\"\",\"\",\"ns\"\n\"0\",\"k\",\"1\",\"7\",\"40\"\n",
        "BEGIN TRANSACTION;CREATE TABLE StringTable(_id_ INT, value TEXT);INSERT INTO StringTable "
        "VALUES(1,'k');CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, name INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1,2,1);COMMIT;"};
    uint64_t refused = 0;
    for (size_t i = 0; i < LAC_COUNT_OF(TEXTS); i++) {
        struct input input = {(const uint8_t *)TEXTS[i], strlen(TEXTS[i])};
        refused += oom_each("table", import, &input, 1);
    }
    return refused;
}

int main(void)
{
    static char text[400000];
    static uint8_t packed[400000];
    size_t size = make_trace(text, sizeof(text));
    struct input input = {(const uint8_t *)text, size};
    uint64_t plain = oom_each("plain", import, &input, 1);
    input = (struct input){packed, make_gzip(text, size, packed, sizeof(packed))};
    uint64_t gzip = oom_each("gzip", import, &input, 1);
    uint64_t table = import_table();
    oom_require(plain > 50 && gzip > 50 && table > 50, "too few allocations to be true");
    printf("oom_import: %llu allocations refused\n", (unsigned long long)(plain + gzip + table));
    return 0;
}
