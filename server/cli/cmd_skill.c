/* lacuna skill: teach a coding agent the loop. */

#include "analysis/model/status.h"
#include "collector/base/io_full.h"
#include "collector/base/terminal_text.h"
#include "server/base/output_file.h"
#include "server/cli/commands.h"
#include "server/cli/complain.h"
#include "server/cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "lacuna skill [install [DIR]]\n"
    "\n"
    "A skill for coding agents (SKILL.md of agentskills.io): record, analyze, explain, change one\n"
    "thing, compare. Without install: prints it. DIR is where the agent looks for skills;\n"
    "default: .agents/skills in this folder. Give another folder where yours looks elsewhere.\n";

static const struct lac_option options_table[] = {{0}};

/* SKILL.md of this folder, as it is. */
__asm__(".pushsection .rodata\n"
        "lac_skill_begin: .incbin \"server/cli/SKILL.md\"\n"
        "lac_skill_end: .popsection\n");
extern const char lac_skill_begin[], lac_skill_end[];

static size_t skill_bytes(void)
{
    return (size_t)(lac_skill_end - lac_skill_begin);
}

/** Make a folder with those above it. */
static bool make_folders(char *path)
{
    for (char *at = path + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            const bool is_made = mkdir(path, 0777) == 0 || errno == EEXIST;
            *at = '/';
            if (!is_made) {
                return false;
            }
        }
    }
    return true;
}

/** A file of that name that somebody else wrote stays. */
static bool is_ours(const char *path)
{
    static const char head[] = "---\nname: lacuna\n";
    char found[sizeof(head)];
    const size_t size = lac_read_text(path, found, sizeof(found));
    return access(path, F_OK) != 0 || (size == sizeof(head) - 1 && strcmp(found, head) == 0);
}

static bool write_skill(struct lac_output_file *output, struct lac_error *reterr)
{
    const int fd = lac_output_file_open(output, reterr);
    bool is_written = fd >= 0 && lac_write_full(fd, lac_skill_begin, skill_bytes());
    if (fd >= 0 && (close(fd) != 0 || !is_written)) {
        (void)lac_fail(reterr, LAC_ERR_IO, 0, "cannot be written: %s", strerror(errno));
        is_written = false;
        lac_output_file_remove(output);
    }
    return is_written && lac_output_file_publish(output, reterr) == LAC_OK;
}

static int install(const char *folder)
{
    char path[PATH_MAX];
    struct lac_output_file output;
    struct lac_error error = {0};
    if (snprintf(path, sizeof(path), "%s/lacuna/SKILL.md", folder) >= (int)sizeof(path)) {
        lac_complain("lacuna skill", folder, "the path is too long");
        return EXIT_FAILURE;
    }
    if (!make_folders(path)) {
        lac_complain("lacuna skill", path, "%s", strerror(errno));
        return EXIT_FAILURE;
    }
    if (!is_ours(path)) {
        lac_complain("lacuna skill", path, "not written by lacuna: move it away first");
        return EXIT_FAILURE;
    }
    if (lac_output_file_find(&output, path, &error) || !write_skill(&output, &error)) {
        lac_complain("lacuna skill", path, "%s", error.message);
        return EXIT_FAILURE;
    }
    char shown[4 * PATH_MAX + 1];
    (void)printf("%s\n", lac_terminal_string(path, shown, sizeof(shown)));
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int lac_cmd_skill(int argc, char **argv)
{
    struct lac_options options;
    int status = lac_options_parse(&options, options_table, usage, argc, argv);
    if (status >= 0) {
        lac_options_done(&options);
        return status;
    }
    const bool is_install =
        options.operand_count >= 1 && strcmp(options.operands[0], "install") == 0;
    if (options.operand_count == 0) {
        const bool is_written = fwrite(lac_skill_begin, 1, skill_bytes(), stdout) == skill_bytes();
        status = fflush(stdout) == 0 && is_written ? EXIT_SUCCESS : EXIT_FAILURE;
    } else if (is_install && options.operand_count <= 2) {
        status = install(options.operand_count == 2 ? options.operands[1] : ".agents/skills");
    } else {
        (void)fputs("lacuna skill: give nothing, or: lacuna skill install [DIR]\n", stderr);
        status = 2;
    }
    lac_options_done(&options);
    return status;
}
