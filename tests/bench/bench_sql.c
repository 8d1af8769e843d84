/*
 * Range queries by the virtual table `slices`, against the same sums in C over the same chunks. Each
 * answer is checked against the other. Prints one line of JSON: CPU time in ms of both and how many
 * times as much SQL takes, medians of rounds that alternate; `first` opens the trace anew for each,
 * so that both decode; `again` has its chunks decoded already.
 *
 * usage: bench_sql TRACE.db [ROUNDS]
 */

#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "server/sql/sql_query.h"
#include "server/sql/sql_trace.h"
#include "server/store/trace/trace_columns.h"
#include "server/store/trace/trace_file.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS_MAX = 101, CACHE_BYTES = 1 << 30 };

/* What is asked: LAC_NONE, no such condition. */
struct question {
    const char *key;
    uint32_t track;
    uint32_t name;
    int64_t t0_ns, t1_ns;
    char sql[512];
};

struct answer {
    int64_t count;
    int64_t total_ns;
};

static void must(enum lac_status status, const char *what, const struct lac_error *error)
{
    if (status != LAC_OK) {
        (void)fprintf(stderr, "bench_sql: %s: %s %s\n", what, lac_status_name(status),
                      error->message);
        exit(1);
    }
}

static double cpu_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* -- in C -------------------------------------------------------------------------------------- */

static bool may_match(const struct lac_chunk_entry *chunk, const struct question *question)
{
    return (question->track == LAC_NONE || chunk->track == question->track) &&
           chunk->start_first <= question->t1_ns && chunk->start_last >= question->t0_ns;
}

static void add_chunk(const struct lac_slices *at, const struct question *question,
                      struct answer *answer)
{
    for (uint64_t i = 0; i < at->count && at->start_ns[i] <= question->t1_ns; i++) {
        if (at->start_ns[i] >= question->t0_ns &&
            (question->name == LAC_NONE || at->name[i] == question->name)) {
            answer->count++;
            answer->total_ns += at->dur_ns[i];
        }
    }
}

static struct answer in_c(struct lac_trace_file *file, const struct question *question)
{
    struct answer answer = {0, 0};
    uint32_t count = 0;
    const struct lac_chunk_entry *const chunks = lac_trace_file_chunks(file, &count);
    const unsigned wanted = 1U << LAC_COLUMN_START | 1U << LAC_COLUMN_DUR |
                            (question->name != LAC_NONE ? 1U << LAC_COLUMN_NAME : 0);
    for (uint32_t c = 0; c < count; c++) {
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;
        struct lac_error error = {0};
        if (may_match(&chunks[c], question)) {
            must(lac_trace_chunk(file, c, wanted, &columns, &pin, &error), "a chunk", &error);
            add_chunk(&columns->at, question, &answer);
            lac_trace_unpin(file, pin);
        }
    }
    return answer;
}

/* -- in SQL ------------------------------------------------------------------------------------ */

static bool take_columns(void *context, const char *const *names, unsigned count)
{
    (void)context;
    (void)names;
    return count == 2;
}

static bool take_row(void *context, const struct lac_sql_cell *cells, unsigned count)
{
    struct answer *const answer = context;
    (void)count;
    *answer = (struct answer){cells[0].integer, cells[1].integer};
    return true;
}

static struct answer in_sql(struct lac_trace_file *file, const struct question *question)
{
    struct answer answer = {-1, -1};
    const struct lac_sql_sink sink = {take_columns, take_row, &answer};
    const struct lac_sql_limits limits = {0};
    struct lac_sql_trace trace;
    struct lac_error error = {0};
    lac_sql_trace_init(&trace, file);
    must(lac_sql_query(&trace, question->sql, &limits, &sink, &error), question->sql, &error);
    lac_sql_trace_done(&trace);
    return answer;
}

/* -- both -------------------------------------------------------------------------------------- */

typedef struct answer ask_fn(struct lac_trace_file *file, const struct question *question);

static struct answer timed(const char *path, bool is_first, ask_fn *ask,
                           const struct question *question, double *ret_ms)
{
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};
    must(lac_trace_file_open(path, CACHE_BYTES, &file, &error), path, &error);
    if (!is_first) {
        (void)ask(file, question);
    }
    const double before_ms = cpu_ms();
    const struct answer answer = ask(file, question);
    *ret_ms = cpu_ms() - before_ms;
    lac_trace_file_close(file);
    return answer;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), by_size);
    return values[count / 2];
}

static void compare(const char *path, const struct question *question, int rounds)
{
    static const char *const WHEN[] = {"first", "again"};
    for (int when = 0; when < 2; when++) {
        double c_ms[ROUNDS_MAX];
        double sql_ms[ROUNDS_MAX];
        for (int i = 0; i < rounds; i++) {
            const struct answer c = timed(path, when == 0, in_c, question, &c_ms[i]);
            const struct answer sql = timed(path, when == 0, in_sql, question, &sql_ms[i]);
            if (c.count == 0 || c.count != sql.count || c.total_ns != sql.total_ns) {
                (void)fprintf(stderr, "bench_sql: %s: C has %" PRId64 ", SQL %" PRId64 "\n",
                              question->sql, c.count, sql.count);
                exit(1);
            }
        }
        const double c = median(c_ms, rounds);
        const double sql = median(sql_ms, rounds);
        printf("\"sql_%s_%s_ms\": %.3f, \"c_%s_%s_ms\": %.3f, \"sql_%s_%s_vs_c\": %.2f, ",
               question->key, WHEN[when], sql, question->key, WHEN[when], c, question->key,
               WHEN[when], sql / c);
    }
}

/* The busiest stream, and the name of a slice in its middle. */
static void choose(struct lac_trace_file *file, uint32_t *ret_track, uint32_t *ret_name)
{
    const struct lac_model *const head = lac_trace_file_head(file);
    const struct lac_chunk_columns *columns = NULL;
    struct lac_cache_entry *pin = NULL;
    struct lac_error error = {0};
    const struct lac_track *busiest = NULL;
    for (uint32_t t = 0; t < head->recorded_track_count; t++) {
        const struct lac_track *const track = &head->tracks[t];
        if (track->kind == LAC_TRACK_STREAM && track->count > 0 &&
            (busiest == NULL || track->count > busiest->count)) {
            busiest = track;
        }
    }
    if (busiest == NULL) {
        (void)fprintf(stderr, "bench_sql: a trace without a stream\n");
        exit(1);
    }
    const uint32_t chunk = lac_trace_chunk_of(file, busiest->first + busiest->count / 2);
    must(lac_trace_chunk(file, chunk, 1U << LAC_COLUMN_NAME, &columns, &pin, &error), "a chunk",
         &error);
    *ret_track = (uint32_t)(busiest - head->tracks);
    *ret_name = columns->at.name[0];
    lac_trace_unpin(file, pin);
}

static void write_sql(struct question *question, const struct lac_model *head)
{
    int used = snprintf(question->sql, sizeof(question->sql),
                        "SELECT count(*), sum(dur_ns) FROM slices WHERE start_ns BETWEEN %" PRId64
                        " AND %" PRId64,
                        question->t0_ns, question->t1_ns);
    if (question->track != LAC_NONE) {
        used += snprintf(question->sql + used, sizeof(question->sql) - (size_t)used,
                         " AND track = %u", question->track);
    }
    if (question->name != LAC_NONE) {
        (void)snprintf(question->sql + used, sizeof(question->sql) - (size_t)used,
                       " AND name = '%s'", lac_model_str(head, question->name));
    }
}

int main(int argc, char **argv)
{
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};
    const int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 5;
    uint32_t track;
    uint32_t name;
    if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "usage: bench_sql TRACE.db [ROUNDS]\n");
        return 2;
    }
    must(lac_trace_file_open(argv[1], 0, &file, &error), argv[1], &error);
    const struct lac_model *const head = lac_trace_file_head(file);
    const int64_t middle_ns = head->info.duration_ns / 2;
    const int64_t hundredth_ns = middle_ns + head->info.duration_ns / 100;
    const int64_t tenth_ns = middle_ns + head->info.duration_ns / 10;
    choose(file, &track, &name);
    struct question questions[] = {
        {"track_time", track, LAC_NONE, middle_ns, hundredth_ns,
         ""}, /* the range of a row that a page shows */
        {"track_time_tenth", track, LAC_NONE, middle_ns, tenth_ns, ""},
        {"time", LAC_NONE, LAC_NONE, middle_ns, hundredth_ns, ""},
        {"time_tenth", LAC_NONE, LAC_NONE, middle_ns, tenth_ns, ""},
        {"name_time_tenth", LAC_NONE, name, middle_ns, tenth_ns, ""},
        {"track_name_time_tenth", track, name, middle_ns, tenth_ns, ""},
    };
    printf("{");
    for (size_t i = 0; i < LAC_COUNT_OF(questions); i++) {
        write_sql(&questions[i], head);
        compare(argv[1], &questions[i], rounds);
    }
    printf("\"rounds\": %d}\n", rounds);
    lac_trace_file_close(file);
    return 0;
}
