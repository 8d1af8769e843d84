/* GET /projects/{name}/trends: what runs took and wasted, by week, person, job and cause. */

#include "analysis/diagnose/result/analysis.h"
#include "server/journal/project_runs.h"
#include "server/json/json_out.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WEEKS_MAX = 104, NAMES_MAX = 20, WEEK_S = 7 * 86400 };

/** Sums of runs. */
struct sums {
    const char *name; /**< of a person or job; NULL the rest of them */
    uint32_t run_count;
    int64_t gpu_ns, wasted_ns;
    struct lac_mfu_sum mfu;
};

/** The largest of them by name, the rest together. */
struct names {
    struct sums at[NAMES_MAX + 1];
    uint32_t count;
};

struct week {
    int64_t start_s; /**< Monday, 00:00 UTC */
    struct sums all;
    int64_t part_ns[LAC_TIME_PART_COUNT];
    double energy_j;
    struct names people, jobs;
};

/** The Monday before; day 0 of the epoch was a Thursday. */
static int64_t week_of(int64_t unix_ms)
{
    const int64_t days = unix_ms / 86400000;

    return (days - (days + 3) % 7) * 86400;
}

static void add(struct sums *sums, const struct lac_timed_run *run)
{
    sums->run_count++;
    sums->gpu_ns += run->gpu_ns;
    sums->wasted_ns += lac_timed_run_wasted_ns(run);
    lac_mfu_add(&sums->mfu, run->mfu);
}

/** Of more than NAMES_MAX names in a week those that come later are the rest. */
static void add_named(struct names *names, const char *name, const struct lac_timed_run *run)
{
    uint32_t at = 0;

    while (at < names->count && names->at[at].name != NULL &&
           strcmp(names->at[at].name, name) != 0) {
        at++;
    }
    if (at == names->count) {
        names->at[names->count++] = (struct sums){.name = at < NAMES_MAX ? name : NULL};
    }
    add(&names->at[at], run);
}

static void add_run(struct week *week, const struct lac_timed_run *run)
{
    add(&week->all, run);
    for (uint32_t i = 0; i < LAC_TIME_PART_COUNT; i++) {
        week->part_ns[i] += run->part_ns[i];
    }
    if (isfinite(run->energy_j)) {
        week->energy_j = (isfinite(week->energy_j) ? week->energy_j : 0.0) + run->energy_j;
    }
    add_named(&week->people, run->lead->figures.person, run);
    add_named(&week->jobs, run->lead->figures.job, run);
}

/** The newest weeks that have runs, oldest first. @return how many */
static uint32_t sum_weeks(const struct lac_timeline *timeline, uint32_t most, struct week *weeks)
{
    uint32_t count = 0;

    for (uint32_t i = timeline->count; i-- > 0;) { /* newest first */
        const struct lac_timed_run *run = &timeline->runs[i];
        const int64_t start_s = week_of(run->lead->figures.recorded_unix_ms);

        if (count == 0 || weeks[count - 1].start_s != start_s) {
            if (count == most) {
                break;
            }
            weeks[count++] = (struct week){.start_s = start_s, .energy_j = (double)NAN};
        }
        add_run(&weeks[count - 1], run);
    }
    return count;
}

static double hours(int64_t ns)
{
    return (double)ns / 3.6e12;
}

static void write_sums(struct lac_json *json, const struct sums *sums)
{
    lac_json_uint(json, "run_count", sums->run_count);
    lac_json_real(json, "gpu_hours", hours(sums->gpu_ns));
    lac_json_real(json, "gpu_hours_wasted", hours(sums->wasted_ns));
    lac_json_decimals(json, "mfu_pct", lac_mfu_mean_pct(sums->mfu));
    lac_json_real(json, "mfu_gpu_hours", hours(sums->mfu.gpu_ns));
}

static int by_waste(const void *a, const void *b)
{
    const int64_t x = ((const struct sums *)a)->wasted_ns;
    const int64_t y = ((const struct sums *)b)->wasted_ns;

    return x < y ? 1 : x > y ? -1 : 0;
}

/** Largest waste first; "" is a name that was not recorded, null all that found no room. */
static void write_names(struct lac_json *json, const char *key, struct names *names)
{
    lac_json_open(json, key, '[');
    if (names->count > 1) {
        qsort(names->at, names->count, sizeof(names->at[0]), by_waste);
    }
    for (uint32_t i = 0; i < names->count; i++) {
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "name", names->at[i].name);
        write_sums(json, &names->at[i]);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

static void write_week(struct lac_json *json, struct week *week)
{
    const time_t start_s = (time_t)week->start_s;
    struct tm day = {0};
    char text[16] = "";

    (void)gmtime_r(&start_s, &day);
    (void)strftime(text, sizeof(text), "%Y-%m-%d", &day);
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "week", text);
    write_sums(json, &week->all);
    lac_json_real(json, "energy_j", week->energy_j);
    lac_json_open(json, "parts_gpu_hours", '{');
    for (uint32_t i = 0; i < LAC_TIME_PART_COUNT; i++) {
        lac_json_real(json, lac_time_part_name(i), hours(week->part_ns[i]));
    }
    lac_json_close(json, '}');
    write_names(json, "people", &week->people);
    write_names(json, "jobs", &week->jobs);
    lac_json_close(json, '}');
}

void lac_api_trends(void *app_context, const struct lac_request *request,
                    struct lac_response *response)
{
    struct lac_timeline timeline = {0};
    struct week *weeks = NULL;
    uint32_t count;
    int64_t most;

    if (!lac_api_int(request, response, "weeks", 1, WEEKS_MAX, 26, &most) ||
        !lac_timeline_open(app_context, request->param[0], response, &timeline)) {
        lac_timeline_close(&timeline);
        return;
    }
    weeks = calloc((size_t)most, sizeof(*weeks));
    if (weeks == NULL) {
        lac_response_error(response, 503, "out_of_memory", "no memory for these weeks");
    } else {
        struct lac_json json;

        count = sum_weeks(&timeline, (uint32_t)most, weeks);
        lac_json_init(&json, &response->body);
        lac_json_open(&json, NULL, '{');
        lac_json_text(&json, "project", request->param[0]);
        lac_json_uint(&json, "pending", timeline.points.missing);
        lac_json_open(&json, "weeks", '[');
        while (count-- > 0) {
            write_week(&json, &weeks[count]);
        }
        lac_json_close(&json, ']');
        lac_json_close(&json, '}');
    }
    free(weeks);
    lac_timeline_close(&timeline);
}
