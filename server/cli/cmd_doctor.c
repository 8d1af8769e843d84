#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/cli/commands.h"
#include "server/cli/options.h"
#include "server/doctor/doctor.h"
#include "server/json/json_out.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "lacuna doctor [--json]\n"
    "Checks this host for what slows training or prevents recording, in under two seconds.\n"
    "Each line is ok, amber (with a fix), or not visible from here.";

static const struct lac_option option_table[] = {
    {.name = "json", .help = "print JSON"},
    {.name = "data", .value = "DIR", .help = "the data folder to check"},
    {.name = "server", .value = "URL", .help = "the server to reach: http://127.0.0.1:7070"},
    {.name = "root", .value = "DIR", .flag_only = true}, /* tests lay out /proc and /sys there */
    {0},
};

static const char *const state_names[] = {"ok", "amber", "unseen"};

static void print_text(const struct lac_doctor *doctor)
{
    static const char *const words[] = {"ok", "amber", "cannot see"};
    static const char *const colors[] = {"\033[32m", "\033[33m", "\033[2m"};
    const bool is_terminal = isatty(STDOUT_FILENO) != 0;
    unsigned amber = 0;

    for (unsigned i = 0; i < doctor->line_count; i++) {
        const struct lac_doctor_line *line = &doctor->line[i];

        (void)printf("%s%-10s%s  %-11s  %s\n", is_terminal ? colors[line->state] : "",
                     words[line->state], is_terminal ? "\033[0m" : "", line->id, line->text);
        if (line->fix[0] != '\0') {
            (void)printf("%25s%s\n", "", line->fix);
        }
        amber += line->state == LAC_DOCTOR_AMBER ? 1 : 0;
    }
    (void)printf("\n"
                 "%u to check. Not covered: the versions of Python, torch and cuDNN, NVLink (ask "
                 "the training environment).\n",
                 amber);
}

static bool print_json(const struct lac_doctor *doctor)
{
    struct lac_buffer out = {0};
    struct lac_json json;
    bool written;

    lac_json_init(&json, &out);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "schema", "lacuna.doctor/1");
    lac_json_open(&json, "checks", '[');
    for (unsigned i = 0; i < doctor->line_count; i++) {
        const struct lac_doctor_line *line = &doctor->line[i];

        lac_json_open(&json, NULL, '{');
        lac_json_text(&json, "id", line->id);
        lac_json_text(&json, "state", state_names[line->state]);
        lac_json_text(&json, "text", line->text);
        lac_json_text(&json, "fix", line->fix[0] != '\0' ? line->fix : NULL);
        lac_json_close(&json, '}');
    }
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
    lac_buffer_puts(&out, "\n");
    written =
        out.status == LAC_OK && fwrite(out.bytes, 1, out.size_bytes, stdout) == out.size_bytes;
    lac_buffer_done(&out);
    return written;
}

int lac_cmd_doctor(int argc, char **argv)
{
    static struct lac_doctor doctor;
    struct lac_options options = {0};
    char data_dir[PATH_MAX];
    int status = lac_options_parse(&options, option_table, usage, argc, argv);

    if (status >= 0) {
        lac_options_done(&options);
        return status;
    }
    if (options.operand_count > 0) {
        (void)fprintf(stderr, "lacuna doctor: takes no operands (see lacuna doctor --help)\n");
        lac_options_done(&options);
        return 2;
    }
    doctor.root = lac_options_text(&options, "root", "");
    doctor.server = lac_options_text(&options, "server", "http://127.0.0.1:7070");
    doctor.data_dir = lac_options_data_dir(&options, data_dir, sizeof(data_dir)) ? data_dir : NULL;
    lac_doctor_run(&doctor);
    if (lac_options_on(&options, "json", false)) {
        status = print_json(&doctor) ? 0 : 1;
    } else {
        print_text(&doctor);
        status = 0;
    }
    if (fflush(stdout) != 0) {
        status = 1;
    }
    lac_options_done(&options);
    return status;
}
