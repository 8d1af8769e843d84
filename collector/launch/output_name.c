#include "collector/launch/output_name.h"

#include "collector/base/count_of.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { JOB_BYTES = 160, HOST_BYTES = 256, VARIABLE_BYTES = 256, RANK_BYTES = 32 };

static const char *variable(const char *name)
{
    const char *const value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* One part of a path: nothing in it leads elsewhere or steers a terminal. */
static void make_plain(char *text)
{
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == '/' || (unsigned char)*at < ' ' || *at == 0x7f ? '-' : *at;
    }
    if (strcmp(text, "..") == 0 || strcmp(text, ".") == 0) {
        text[0] = '-';
    }
}

/* "nid001", without its domain. */
static void find_host(char *out, size_t capacity)
{
    out[0] = '\0';
    (void)gethostname(out, capacity - 1);
    out[capacity - 1] = '\0';
    out[strcspn(out, ".")] = '\0';
    make_plain(out);
}

/* ---- which job */

/* "77", of an array "70_3"; false: no batch system. */
static bool find_job(char *out, size_t capacity, const char **ret_system)
{
    const char *const slurm = variable("SLURM_JOB_ID");
    const char *const array = variable("SLURM_ARRAY_JOB_ID");
    const char *const task = variable("SLURM_ARRAY_TASK_ID");
    const char *const lsf_index = variable("LSB_JOBINDEX");
    static const struct {
        const char *name, *system;
    } others[] = {{"PBS_JOBID", "pbs"},
                  {"LSB_JOBID", "lsf"},
                  {"FLUX_JOB_ID", "flux"},
                  {"COBALT_JOBID", "cobalt"},
                  {"SGE_JOB_ID", "sge"}};

    out[0] = '\0';
    if (array != NULL && task != NULL) {
        (void)snprintf(out, capacity, "%.40s_%.20s", array, task);
        *ret_system = "slurm";
    } else if (slurm != NULL) {
        (void)snprintf(out, capacity, "%.40s", slurm);
        *ret_system = "slurm";
    }
    for (size_t i = 0; i < LAC_COUNT_OF(others) && out[0] == '\0'; i++) {
        if (variable(others[i].name) != NULL) {
            (void)snprintf(out, capacity, "%.60s", variable(others[i].name));
            *ret_system = others[i].system;
        }
    }
    if (out[0] != '\0' && strcmp(*ret_system, "lsf") == 0 && lsf_index != NULL &&
        strcmp(lsf_index, "0") != 0) {
        const size_t length = strlen(out);

        (void)snprintf(out + length, capacity - length, "_%.20s", lsf_index);
    }
    make_plain(out);
    return out[0] != '\0';
}

bool lac_output_name_job(char *out, size_t capacity)
{
    assert(out != NULL && capacity > 0);
    const char *const step = variable("SLURM_STEP_ID");
    const char *const restart = variable("SLURM_RESTART_COUNT");
    const char *const elastic = variable("TORCHELASTIC_RUN_ID");
    const char *system = "";
    char job[JOB_BYTES];

    if (find_job(job, sizeof(job), &system)) {
        const bool is_slurm = strcmp(system, "slurm") == 0;
        const bool is_again = is_slurm && restart != NULL && strtol(restart, NULL, 10) > 0;
        const bool has_step = is_slurm && step != NULL;

        (void)snprintf(out, capacity, "%s-%s%s%.20s%s%.20s", system, job,
                       is_again ? "-restart" : "", is_again ? restart : "", has_step ? "." : "",
                       has_step ? step : "");
    } else if (elastic != NULL && strcmp(elastic, "none") != 0) {
        (void)snprintf(out, capacity, "torchrun-%.60s", elastic);
    } else {
        out[0] = '\0';
        return false;
    }
    make_plain(out);
    return true;
}

/* ---- which rank */

void lac_output_name_rank(char *out, size_t capacity)
{
    static const struct {
        const char *number, *count, *word;
    } kinds[] = {
        {"RANK", "WORLD_SIZE", "rank"},
        {"SLURM_PROCID", "SLURM_NTASKS", "task"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "rank"},
        {"PMI_RANK", "PMI_SIZE", "rank"},
    };

    assert(out != NULL && capacity > 0);
    out[0] = '\0';
    for (size_t i = 0; i < LAC_COUNT_OF(kinds) && out[0] == '\0'; i++) {
        const char *const number = variable(kinds[i].number);
        const char *const count = variable(kinds[i].count);

        if (number != NULL && count != NULL && strtol(count, NULL, 10) > 1 &&
            strspn(number, "0123456789") == strlen(number)) {
            (void)snprintf(out, capacity, "%s-%.10s", kinds[i].word, number);
        }
    }
}

bool lac_output_name_is_first(void)
{
    static const char *const names[] = {"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MPI_LOCALRANKID"};

    for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
        if (variable(names[i]) != NULL) {
            return strcmp(variable(names[i]), "0") == 0;
        }
    }
    return true;
}

/* ---- patterns */

/* At a percent sign: the name in %q{NAME} into `name`. @return characters of the pattern, 0: it is
 * none */
static size_t pattern_at(const char *at, char *name)
{
    size_t length;

    name[0] = '\0';
    if (at[1] != '\0' && strchr("hpjt%", at[1]) != NULL) {
        return 2;
    }
    if (at[1] != 'q' || at[2] != '{') {
        return 0;
    }
    length = strcspn(at + 3, "}");
    if (length == 0 || at[3 + length] != '}' || length >= VARIABLE_BYTES) {
        return 0;
    }
    (void)snprintf(name, VARIABLE_BYTES, "%.*s", (int)length, at + 3);
    return length + 4;
}

bool lac_output_name_check(const char *asked, char *problem, size_t capacity)
{
    assert(asked != NULL && problem != NULL);
    char name[VARIABLE_BYTES];

    for (const char *at = strchr(asked, '%'); at != NULL; at = strchr(at, '%')) {
        const size_t length = pattern_at(at, name);

        if (length == 0) {
            (void)snprintf(problem, capacity,
                           "unknown pattern %.*s; there are %%h (host), %%p (process), %%j "
                           "(job), %%t (rank or task), %%q{VARIABLE} and %%%%",
                           at[1] == 'q' ? (int)strnlen(at, 40) : 2, at);
            return false;
        }
        at += length;
    }
    return true;
}

/* @return false: it is too long */
static bool find_value(char pattern, const char *name, char *out, size_t capacity)
{
    const char *system = "";
    char rank[RANK_BYTES];

    out[0] = '\0';
    switch (pattern) {
    case 'h':
        find_host(out, capacity);
        break;
    case 'p':
        (void)snprintf(out, capacity, "%d", (int)getpid());
        break;
    case 'j':
        (void)find_job(out, capacity, &system);
        break;
    case 't':
        lac_output_name_rank(rank, sizeof(rank));
        (void)snprintf(out, capacity, "%s", rank[0] != '\0' ? strchr(rank, '-') + 1 : "0");
        break;
    case '%':
        (void)snprintf(out, capacity, "%%");
        break;
    default: /* a path of the user's own: it may lead anywhere */
        return snprintf(out, capacity, "%s", variable(name) != NULL ? variable(name) : "") <
               (int)capacity;
    }
    return true;
}

bool lac_output_name_fill(const char *asked, char *out, size_t capacity,
                          bool *ret_tells_ranks_apart)
{
    assert(asked != NULL && out != NULL && capacity > 0);
    static char value[4096];
    size_t used = 0;

    *ret_tells_ranks_apart = false;
    for (const char *at = asked; *at != '\0';) {
        char name[VARIABLE_BYTES];
        const size_t length = *at == '%' ? pattern_at(at, name) : 0;

        if (length == 0) {
            value[0] = *at;
            value[1] = '\0';
        } else {
            if (!find_value(at[1], name, value, sizeof(value))) {
                return false;
            }
            *ret_tells_ranks_apart = *ret_tells_ranks_apart || at[1] == 't' || at[1] == 'p';
        }
        if (value[0] == '\0') {
            (void)snprintf(value, sizeof(value), "none");
            (void)fprintf(stderr, "lacuna: %.*s has no value here and becomes \"none\"\n",
                          (int)length, at);
        }
        if (strlen(value) >= capacity - used) {
            return false;
        }
        memcpy(out + used, value, strlen(value) + 1);
        used += strlen(value);
        at += length > 0 ? length : 1;
    }
    return true;
}

/* ---- without -o */

/* Launchers of several hosts may meet in one folder, and none knows what the others are called. */
static bool may_meet_other_hosts(void)
{
    return variable("MASTER_ADDR") != NULL || variable("GROUP_RANK") != NULL ||
           variable("NODE_RANK") != NULL;
}

void lac_output_name_default(const char *command, char *out, size_t capacity)
{
    const char *const slash = strrchr(command, '/');
    const char *const name = slash != NULL ? slash + 1 : command;
    const time_t now = time(NULL);
    struct tm parts;
    char rank[RANK_BYTES];
    char stamp[JOB_BYTES];
    char host[HOST_BYTES] = "";

    /* the ranks of a job find one name, whenever each of them starts */
    if (!lac_output_name_job(stamp, sizeof(stamp))) {
        if (localtime_r(&now, &parts) == NULL ||
            strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &parts) == 0) {
            stamp[0] = '\0';
        }
    }
    lac_output_name_rank(rank, sizeof(rank));
    if (rank[0] == '\0' && may_meet_other_hosts()) {
        find_host(host, sizeof(host));
    }
    (void)snprintf(out, capacity, "%.64s-%s%s%.64s.lacuna", name, stamp, host[0] != '\0' ? "-" : "",
                   host);
}

bool lac_output_name_is_rank(const char *name)
{
    return strncmp(name, "rank-", 5) == 0 || strncmp(name, "task-", 5) == 0;
}
