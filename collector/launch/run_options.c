#include "collector/launch/run_options.h"

#include "collector/base/byte_size.h"
#include "collector/base/count_of.h"
#include "collector/launch/output_name.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANGE_BYTES = 256 };

/* In two parts: C knows no longer strings than 4095 bytes. */
static const char help[] =
    "usage: lacuna run [OPTION]... -- CMD [ARG]...\n"
    "\n"
    "Runs CMD unchanged and records its whole process tree: NVTX ranges, the GPU, and in Python\n"
    "the DataLoader with its workers. The exit status is CMD's.\n"
    "\n"
    "  -o DIR          folder for the recording (default: ./CMD-TIME.lacuna); an existing one\n"
    "                  moves to DIR.old (the newest 8 or 16g of such are kept: LACUNA_OLD_MAX,\n"
    "                  LACUNA_OLD_BYTES); several tasks or ranks each get a folder inside.\n"
    "                  In DIR: %h host, %p process, %j job, %t rank or task, %q{VARIABLE}, %%\n"
    "  --quiet         print nothing unless something is wrong\n"
    "  --strict        if nothing can be recorded, exit with 1 and do not run CMD (default: CMD\n"
    "                  runs unrecorded, and one line says why)\n"
    "  --delay S       start recording after S seconds\n"
    "  --duration S    record for S seconds\n"
    "  --steps A:B     record training steps A to B, counted from 1 (of optimizers, frameworks or\n"
    "                  --step)\n"
    "  --step NAME     what a training step is, in a job whose steps are not seen: every call of\n"
    "                  the Python function NAME (function of the job's own code, Class.method,\n"
    "                  module:function or module:Class.method), or every range of this name "
    "(NVTX,\n"
    "                  record_function, lacuna.annotate); nothing else counts then (or "
    "LACUNA_STEP)\n"
    "  --all           record everything\n"
    "  --range NAME    record only inside of NVTX ranges of this name\n"
    "  --profiler-api  record only from cudaProfilerStart to cudaProfilerStop\n"
    "  --on-demand     record only when asked: lacuna window DIR\n"
    "  --python-stacks=MODE  what every Python thread of a training process is in, 50 times a\n"
    "                  second while a window records (or LACUNA_PYTHON_STACKS): auto (default),\n"
    "                  not beside a tool that has stacks (py-spy, torch.profiler with_stack,\n"
    "                  sys.setprofile), nor with --all; on: always; all: in loader workers too;\n"
    "                  off\n"
    "  --cost          measure the cost of recording early: after 20 steps, alternate ten steps\n"
    "                  with and ten without recording\n"
    "  --no-hang       do not watch whether the job goes on (or LACUNA_HANG=0)\n"
    "  --limit BYTES   largest size of the recording, such as 500m or 4g (default: 4g)\n"
    "  --metric REGEX  result of the training, such as its loss, in what the job prints from "
    "Python:\n"
    "                  the first group of REGEX, (?P<NAME>...) or the number behind REGEX; may be\n"
    "                  repeated (or LACUNA_METRIC, one a line)\n"
    "  --metrics-file F  write figures of the job to F every 10 s, for the textfile collector of\n"
    "                  Prometheus' node_exporter (or LACUNA_METRICS_FILE; patterns as in -o)\n"
    "  --server URL    send the recording there while the job runs (or LACUNA_SERVER)\n"
    "  --token-file F  file with the server's token (or LACUNA_TOKEN_FILE, LACUNA_TOKEN)\n"
    "  --project P     project on the server (or LACUNA_PROJECT)\n"
    "\n";

static const char help_on_plans[] =
    "With --range or --profiler-api (with both: inside of either) every such range is recorded,\n"
    "as far as --delay, --duration and --steps allow. Loader workers record meanwhile.\n"
    "\n"
    "`lacuna window DIR` opens a window now in a job that runs, until its recording has ended.\n"
    "\n"
    "Without --duration, --steps and --all: records everything until 60 steps and one minute\n"
    "have passed, then alternates ten steps with and ten without until the cost of recording\n"
    "is known, then records 20 steps every 10 minutes. A job whose steps are not seen is\n"
    "recorded in full. Threads, processes and GPUs are sampled all the time.\n"
    "\n"
    "A job that makes no progress for longer than its own pace explains (8 seconds at least) is\n"
    "reported on stderr and in the recording: which rank, what it does and in which line, and\n"
    "where the others wait. The job gets no signal and continues.\n"
    "\n"
    "Ctrl-C once ends the recording and shows the verdict, and the job continues; twice ends the\n"
    "job. A job that reads the terminal gets it, and Ctrl-C with it. Ctrl-Z stops both. Signals\n"
    "sent to this program go to CMD; if it is killed with SIGKILL, so is CMD.\n"
    "LACUNA_DISABLE=1 runs CMD and records nothing; LACUNA_GPM=0 leaves the GPU's own counters\n"
    "to another profiler.\n"
    "LACUNA_DEBUG=1, 2 or 3 prints on stderr what the collector does, in the job and in the\n"
    "launcher: 1 what is attached or missing, 2 also segments, buffers and forks, 3 every event.\n"
    "LACUNA_DEBUG=spool:3,cupti:1 selects areas: process nvtx spool names hook cupti (in the\n"
    "job's processes), launch gather sample push (in the launcher).\n";

static int usage(const char *problem, const char *what)
{
    (void)fprintf(stderr, "lacuna run: %s%s (lacuna run --help)\n", problem, what);
    return 2;
}

/* Seconds, with a fraction if need be. */
static bool parse_seconds(const char *text, uint64_t *ret_ms)
{
    char *end = NULL;
    const double seconds = strtod(text, &end);

    *ret_ms = (uint64_t)(seconds * 1e3);
    return end != text && *end == '\0' && seconds >= 0 && seconds < 1e9;
}

static bool parse_steps(const char *text, uint64_t *ret_first, uint64_t *ret_last)
{
    char *end = NULL;

    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    *ret_first = strtoull(text, &end, 10);
    if (*end != ':' || end[1] < '0' || end[1] > '9') {
        return false;
    }
    *ret_last = strtoull(end + 1, &end, 10);
    return *end == '\0' && *ret_first >= 1 && *ret_last >= *ret_first;
}

static bool parse_limit(const char *text, uint64_t *ret_bytes)
{
    return lac_byte_size_parse(text, ret_bytes) && *ret_bytes > 0;
}

static bool is_stacks_mode(const char *text)
{
    static const char *const modes[] = {"auto", "on", "off", "all"};

    for (size_t i = 0; i < LAC_COUNT_OF(modes); i++) {
        if (strcmp(text, modes[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool add_metric(struct lac_run_options *options, const char *value)
{
    const size_t used = strlen(options->metric);

    return value[0] != '\0' && strchr(value, '\n') == NULL &&
           (size_t)snprintf(options->metric + used, sizeof(options->metric) - used, "%s%s",
                            used > 0 ? "\n" : "", value) < sizeof(options->metric) - used;
}

/* One option that takes a value; false: its value makes no sense. */
static bool take_value(struct lac_run_options *options, const char *name, const char *value,
                       bool *ret_known)
{
    *ret_known = true;
    if (strcmp(name, "-o") == 0) {
        options->output = value;
        return value[0] != '\0';
    }
    if (strcmp(name, "--duration") == 0) {
        return parse_seconds(value, &options->duration_ms) && options->duration_ms > 0;
    }
    if (strcmp(name, "--delay") == 0) {
        return parse_seconds(value, &options->delay_ms);
    }
    if (strcmp(name, "--steps") == 0) {
        return parse_steps(value, &options->step_first, &options->step_last);
    }
    if (strcmp(name, "--python-stacks") == 0) {
        options->python_stacks = value;
        return is_stacks_mode(value);
    }
    if (strcmp(name, "--metrics-file") == 0) {
        options->metrics = value;
        return value[0] != '\0';
    }
    if (strcmp(name, "--metric") == 0) {
        return add_metric(options, value);
    }
    if (strcmp(name, "--range") == 0) {
        options->range = value;
        return value[0] != '\0' && strlen(value) < RANGE_BYTES;
    }
    if (strcmp(name, "--step") == 0) {
        options->step = value;
        return value[0] != '\0' && strlen(value) < RANGE_BYTES;
    }
    if (strcmp(name, "--limit") == 0) {
        return parse_limit(value, &options->limit_bytes);
    }
    if (strcmp(name, "--server") == 0) {
        options->server = value;
        return true;
    }
    if (strcmp(name, "--token-file") == 0) {
        options->token_file = value;
        return true;
    }
    if (strcmp(name, "--project") == 0) {
        options->project = value;
        return true;
    }
    *ret_known = false;
    return true;
}

/* In windows by default; where everything is recorded there are none. */
static void settle_stacks(struct lac_run_options *options)
{
    const char *const variable = getenv("LACUNA_PYTHON_STACKS");
    const bool has_windows =
        !options->all || options->range != NULL || options->profiler_api || options->step_first > 0;

    if (options->python_stacks == NULL && variable != NULL && variable[0] != '\0') {
        if (is_stacks_mode(variable)) {
            options->python_stacks = variable;
        } else {
            (void)fprintf(stderr, "lacuna: LACUNA_PYTHON_STACKS is auto, on, off or all, not %s\n",
                          variable);
        }
    }
    if (options->python_stacks == NULL) {
        options->python_stacks = has_windows ? "auto" : "off";
    }
}

static void settle_step(struct lac_run_options *options)
{
    const char *const variable = getenv("LACUNA_STEP");

    if (options->step != NULL || variable == NULL || variable[0] == '\0') {
        return;
    }
    if (strlen(variable) < RANGE_BYTES) {
        options->step = variable;
    } else {
        (void)fprintf(stderr, "lacuna: LACUNA_STEP is longer than %d bytes\n", RANGE_BYTES - 1);
    }
}

/* What goes with what. @return false: something does not, which was said */
static bool settle(struct lac_run_options *options)
{
    char problem[300];
    const char *const metrics = getenv("LACUNA_METRICS_FILE");

    if (options->metrics != NULL &&
        !lac_output_name_check(options->metrics, problem, sizeof(problem))) {
        (void)usage(problem, "");
        return false;
    }
    if (options->metrics == NULL && metrics != NULL) { /* it stands in the way of no job */
        if (lac_output_name_check(metrics, problem, sizeof(problem))) {
            options->metrics = metrics;
        } else {
            (void)fprintf(stderr, "lacuna: LACUNA_METRICS_FILE: %s\n", problem);
        }
    }
    if (options->output != NULL &&
        !lac_output_name_check(options->output, problem, sizeof(problem))) {
        (void)usage(problem, "");
        return false;
    }
    if (options->range != NULL || options->profiler_api) {
        if (options->cost || options->on_demand) {
            (void)usage("--range and --profiler-api do not go with --cost or --on-demand", "");
            return false;
        }
        options->all = true; /* of what is inside */
    }
    settle_stacks(options);
    settle_step(options);
    if (options->on_demand && (options->all || options->cost || options->delay_ms > 0 ||
                               options->duration_ms > 0 || options->step_first > 0)) {
        (void)usage("--on-demand does not go with another plan", "");
        return false;
    }
    return true;
}

int lac_run_options_parse(int argc, char **argv, struct lac_run_options *ret)
{
    static const char stacks_option[] = "--python-stacks=";
    const char *const limit = getenv("LACUNA_LIMIT");
    const char *const hang = getenv("LACUNA_HANG");

    *ret = (struct lac_run_options){.limit_bytes = (uint64_t)4 << 30,
                                    .no_hang = hang != NULL && strcmp(hang, "0") == 0};
    if (limit != NULL && !parse_limit(limit, &ret->limit_bytes)) {
        return usage("LACUNA_LIMIT is not a size: ", limit);
    }
    for (int i = 1; i < argc && ret->command == NULL; i++) {
        bool known = false;

        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            (void)fputs(help, stdout);
            (void)fputs(help_on_plans, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--") == 0) {
            ret->command = &argv[i + 1];
        } else if (strcmp(argv[i], "--quiet") == 0) {
            ret->quiet = true;
        } else if (strcmp(argv[i], "--strict") == 0) {
            ret->strict = true;
        } else if (strcmp(argv[i], "--all") == 0) {
            ret->all = true;
        } else if (strcmp(argv[i], "--profiler-api") == 0) {
            ret->profiler_api = true;
        } else if (strcmp(argv[i], "--on-demand") == 0) {
            ret->on_demand = true;
        } else if (strcmp(argv[i], "--cost") == 0) {
            ret->cost = true;
        } else if (strcmp(argv[i], "--no-hang") == 0) {
            ret->no_hang = true;
        } else if (strncmp(argv[i], stacks_option, strlen(stacks_option)) == 0) {
            ret->python_stacks = argv[i] + strlen(stacks_option);
            if (!is_stacks_mode(ret->python_stacks)) {
                return usage("not a valid value: ", ret->python_stacks);
            }
        } else if (argv[i][0] != '-') {
            ret->command = &argv[i];
        } else if (i + 1 >= argc || strcmp(argv[i + 1], "--") == 0) {
            return usage("unknown option, or one without its value: ", argv[i]);
        } else if (!take_value(ret, argv[i], argv[i + 1], &known)) {
            return usage("not a valid value: ", argv[i + 1]);
        } else if (!known) {
            return usage("unknown option ", argv[i]);
        } else {
            i++;
        }
    }
    if (!settle(ret)) {
        return 2;
    }
    return ret->command == NULL || ret->command[0] == NULL ? usage("no command to run after --", "")
                                                           : -1;
}
