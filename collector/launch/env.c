#include "collector/base/count_of.h"
#include "collector/base/io_full.h"
#include "collector/gather/gather.h"
#include "collector/gather/spool_folder.h"
#include "collector/launch/install.h"
#include "collector/launch/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "usage: lacuna env [OPTION]... [--docker|--apptainer|--mpirun|--slurm|--k8s [--image IMAGE]]\n"
    "       lacuna env [OPTION]... --exec -- CMD [ARG]...\n"
    "       lacuna env --install DIR\n"
    "\n"
    "Prints the variables that load the recorder into a job that `lacuna run` cannot start:\n"
    "\n"
    "  eval \"$(lacuna env)\"      for a shell and everything started from it\n"
    "  --docker                  options for docker run (and podman), for instance\n"
    "                            eval \"docker run $(lacuna env --docker) IMAGE CMD\"\n"
    "  --apptainer               options for apptainer exec (and singularity)\n"
    "  --mpirun                  options for mpirun (Open MPI)\n"
    "  --slurm                   options for srun, directly in front of CMD; they end with this\n"
    "                            program and --exec where a variable is set already, which srun\n"
    "                            would keep. `srun lacuna run -- CMD` needs none\n"
    "  --k8s                     part of a pod specification: `lacuna run` in front of the\n"
    "                            command, brought by an init container whose image has the\n"
    "                            lacuna program (--image, default: lacuna)\n"
    "\n"
    "  --exec                    sets the variables and becomes CMD: in front of the command of a\n"
    "                            container whose image has a PYTHONPATH of its own\n"
    "  --install DIR             copies the recorder and this program into DIR, for containers\n"
    "  --spool DIR               folder that the job records to; it must exist on the job's host\n"
    "                            (default: a new folder in $TMPDIR or /tmp)\n"
    "  --step NAME               what a training step is (lacuna run --help)\n"
    "  --on-demand               record only when asked: lacuna window DIR, on the job's host;\n"
    "                            Python's stacks too (LACUNA_PYTHON_STACKS=off: without)\n"
    "\n"
    "Afterwards: lacuna gather DIR\n";

enum {
    VARIABLES = 5,
    VARIABLES_MAX = 9,
    PATH_BYTES = 4096,
    STEP_BYTES = 256,
    COPY_BYTES = 1 << 16
};

struct variable {
    const char *name;
    char value[8300];
};

struct command {
    const char *form; /* NULL: for a shell */
    const char *image;
    const char *folder; /* to install into */
    char **exec;
    const char *step;
    bool on_demand;
    char spool[PATH_BYTES];
};

static int variable_count = VARIABLES;

/* Variables of the program that the job is started with reach it; those of an image do not. */
static void fill(struct variable *variables, const struct lac_install *install, const char *spool,
                 bool is_shell, bool is_inherited, const struct command *command)
{
    const char *const tool = lac_install_cuda_tool(install);
    const char *const python = is_inherited && !is_shell ? getenv("PYTHONPATH") : NULL;
    const char *const stacks = getenv("LACUNA_PYTHON_STACKS");

    variables[0].name = "NVTX_INJECTION64_PATH";
    variables[1].name = "CUDA_INJECTION64_PATH";
    variables[2].name = "LACUNA_LIBRARY";
    variables[3].name = "LACUNA_SPOOL";
    variables[4].name = "PYTHONPATH";
    for (int i = 0; i < 3; i++) {
        (void)snprintf(variables[i].value, sizeof(variables[i].value), "%s", install->library);
    }
    (void)snprintf(variables[3].value, sizeof(variables[3].value), "%s", spool);
    (void)snprintf(variables[4].value, sizeof(variables[4].value), "%s%s%.4000s", install->python,
                   python != NULL && python[0] != '\0' ? ":" : "", python != NULL ? python : "");
    if (is_inherited && tool[0] != '\0') {
        variables[variable_count].name = "LACUNA_CUDA_INJECTION";
        (void)snprintf(variables[variable_count].value, sizeof(variables[0].value), "%s", tool);
        variable_count++;
    }
    if (command->step != NULL) {
        variables[variable_count].name = "LACUNA_STEP";
        (void)snprintf(variables[variable_count].value, sizeof(variables[0].value), "%s",
                       command->step);
        variable_count++;
    }
    if (command->on_demand) {
        variables[variable_count].name = "LACUNA_ON_DEMAND";
        (void)snprintf(variables[variable_count].value, sizeof(variables[0].value), "1");
        variable_count++;
        variables[variable_count].name = "LACUNA_PYTHON_STACKS";
        (void)snprintf(variables[variable_count].value, sizeof(variables[0].value), "%.8s",
                       stacks != NULL && stacks[0] != '\0' ? stacks : "auto");
        variable_count++;
    }
}

/* In single quotes for a shell. */
static void print_quoted(const char *text)
{
    (void)putchar('\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            (void)fputs("'\\''", stdout);
        } else {
            (void)putchar(*text);
        }
    }
    (void)putchar('\'');
}

/* The same, but what needs no quotes without: that also survives without eval. */
static void print_word(const char *text)
{
    const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";

    if (text[0] != '\0' && strspn(text, plain) == strlen(text)) {
        (void)fputs(text, stdout);
    } else {
        print_quoted(text);
    }
}

/* What a shell has in PYTHONPATH when it evaluates this stays behind ours. */
static void print_shell(const struct variable *variables)
{
    for (int i = 0; i < variable_count; i++) {
        (void)printf("export %s=", variables[i].name);
        print_quoted(variables[i].value);
        (void)puts(strcmp(variables[i].name, "PYTHONPATH") == 0 ? "${PYTHONPATH:+:$PYTHONPATH}"
                                                                : "");
    }
}

/* Before each variable `before`, between name and value "=". */
static void print_options(const struct variable *variables, const char *before)
{
    for (int i = 0; i < variable_count; i++) {
        (void)printf("%s%s=", before, variables[i].name);
        print_word(variables[i].value);
        (void)putchar(' ');
    }
}

/* "OPTION FROM:TO" */
static void print_mount(const char *option, const char *folder, const char *end)
{
    char both[2 * PATH_BYTES + 8];

    (void)snprintf(both, sizeof(both), "%s:%s%s", folder, folder, end);
    (void)printf("%s ", option);
    print_word(both);
}

/* In double quotes, as YAML and JSON have them. */
static void print_json(const char *text)
{
    (void)putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            (void)printf("\\%c", *text);
        } else if ((unsigned char)*text < ' ' || *text == 0x7f) {
            (void)printf("\\u%04x", (unsigned)(unsigned char)*text);
        } else {
            (void)putchar(*text);
        }
    }
    (void)putchar('"');
}

/* Nothing that the restricted Pod Security Standard forbids: no path of the node, no privilege. */
static void print_k8s(const char *image, const char *step)
{
    (void)fputs("# for the pod's spec\n"
                "initContainers:\n"
                "- name: lacuna\n"
                "  image: ",
                stdout);
    print_json(image);
    (void)fputs("\n"
                "  command: [\"lacuna\", \"env\", \"--install\", \"/lacuna\"]\n"
                "  env:\n"
                "  - {name: TMPDIR, value: \"/lacuna\"}\n"
                "  volumeMounts:\n"
                "  - {name: lacuna, mountPath: \"/lacuna\"}\n"
                "  securityContext:\n"
                "    allowPrivilegeEscalation: false\n"
                "    readOnlyRootFilesystem: true\n"
                "    runAsNonRoot: true\n"
                "    runAsUser: 65534\n"
                "    capabilities: {drop: [\"ALL\"]}\n"
                "    seccompProfile: {type: RuntimeDefault}\n"
                "containers:\n"
                "# for the container that trains: in front of its command\n"
                "- command: [\"/lacuna/lacuna-node\", \"run\", \"-o\", \"/lacuna-out/%h\", ",
                stdout);
    if (step != NULL) {
        (void)fputs("\"--step\", ", stdout);
        print_json(step);
        (void)fputs(", ", stdout);
    }
    (void)fputs("\"--\"]\n"
                "  env:\n"
                "  - {name: LACUNA_SPOOL_DIR, value: \"/lacuna-out\"}\n"
                "  volumeMounts:\n"
                "  - {name: lacuna, mountPath: \"/lacuna\", readOnly: true}\n"
                "  - {name: lacuna-out, mountPath: \"/lacuna-out\"}\n"
                "volumes:\n"
                "- {name: lacuna, emptyDir: {}}\n"
                "# goes with the pod: send the recording with run --server, or put a volume that "
                "stays here\n"
                "- {name: lacuna-out, emptyDir: {}}\n",
                stdout);
}

/* srun passes all of its environment last, so what is set there wins over --export. */
static bool is_kept_by_srun(const struct variable *variable)
{
    const char *const here = getenv(variable->name);

    return here != NULL && strcmp(here, variable->value) != 0;
}

/* srun and apptainer separate variables by commas, and have no quotes for them. */
static bool can_pass(const char *what, const char *name, const char *value, const char *forbidden)
{
    if (strpbrk(value, forbidden) == NULL) {
        return true;
    }
    (void)fprintf(stderr,
                  "lacuna env: %s cannot pass the value of %s, which has a comma, a blank or a "
                  "quote in it: eval \"$(lacuna env)\" before\n",
                  what + 2, name);
    return false;
}

/* What cannot be set by an option is set on the node, by this program in front of CMD. */
static bool print_slurm(const struct variable *variables, const struct command *command)
{
    char program[PATH_BYTES] = "";
    const char *step = NULL; /* to be set there */
    bool is_on_demand = false;
    bool is_set_there = false;

    for (int i = 0; i < variable_count; i++) {
        if (is_kept_by_srun(&variables[i])) {
            is_set_there = true;
            if (strcmp(variables[i].name, "LACUNA_STEP") == 0) {
                step = command->step;
            }
            is_on_demand = is_on_demand || strcmp(variables[i].name, "LACUNA_ON_DEMAND") == 0;
        } else if (!can_pass("--slurm", variables[i].name, variables[i].value, ", \t\n'\"")) {
            return false;
        }
    }
    if (is_set_there && (readlink("/proc/self/exe", program, sizeof(program) - 1) <= 0 ||
                         !can_pass("--slurm", "the program's path", program, " \t\n'\"") ||
                         !can_pass("--slurm", variables[3].name, variables[3].value, " \t\n'\"") ||
                         (step != NULL && !can_pass("--slurm", "LACUNA_STEP", step, " \t\n'\"")))) {
        return false;
    }
    (void)fputs("--export=ALL", stdout);
    for (int i = is_set_there ? VARIABLES : 0; i < variable_count; i++) {
        if (!is_kept_by_srun(&variables[i])) {
            (void)printf(",%s=%s", variables[i].name, variables[i].value);
        }
    }
    if (is_set_there) {
        (void)printf(" %s env --spool %s%s%s%s --exec --", program, variables[3].value,
                     step != NULL ? " --step " : "", step != NULL ? step : "",
                     is_on_demand ? " --on-demand" : "");
    }
    (void)putchar('\n');
    return true;
}

/* @return false: a value cannot be passed that way, which was said */
static bool print_for(const struct command *command, const struct variable *variables,
                      const char *folder)
{
    const char *const what = command->form;
    const char *const spool = variables[3].value;

    if (strcmp(what, "--docker") == 0) {
        print_options(variables, "-e ");
        print_mount("-v", folder, ":ro");
        (void)putchar(' ');
        print_mount("-v", spool, "");
    } else if (strcmp(what, "--mpirun") == 0) {
        print_options(variables, "-x ");
    } else if (strcmp(what, "--apptainer") == 0) {
        for (int i = 0; i < variable_count; i++) {
            if (!can_pass(what, variables[i].name, variables[i].value, ", \t\n'\"")) {
                return false;
            }
        }
        print_options(variables, "--env ");
        print_mount("--bind", folder, ":ro");
        (void)putchar(' ');
        print_mount("--bind", spool, "");
    } else {
        return print_slurm(variables, command);
    }
    (void)putchar('\n');
    return true;
}

/* ---- --install */

static bool copy_file(const char *from, const char *to, mode_t mode)
{
    static char bytes[COPY_BYTES];
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    char fresh[PATH_BYTES + 8];
    bool is_good = false;
    int64_t got = 0;
    int out = -1;

    (void)snprintf(fresh, sizeof(fresh), "%s.new", to);
    if (in >= 0) {
        out = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    }
    if (out >= 0) {
        is_good = true;
        while (is_good && (got = lac_read_full(in, bytes, sizeof(bytes))) > 0) {
            is_good = lac_write_full(out, bytes, (size_t)got);
        }
        is_good = is_good && got == 0 && fchmod(out, mode) == 0;
        is_good = close(out) == 0 && is_good && rename(fresh, to) == 0;
    }
    if (in >= 0) {
        (void)close(in);
    }
    return is_good;
}

static bool copy_python(const char *from, const char *to)
{
    DIR *const folder = opendir(from);
    bool is_good = folder != NULL && (mkdir(to, 0755) == 0 || errno == EEXIST);

    for (const struct dirent *entry = is_good ? readdir(folder) : NULL; entry != NULL && is_good;
         entry = readdir(folder)) {
        char source[PATH_BYTES];
        char target[PATH_BYTES];

        if (entry->d_name[0] == '.' ||
            (strstr(entry->d_name, ".py") == NULL && strstr(entry->d_name, ".so") == NULL)) {
            continue;
        }
        is_good =
            (size_t)snprintf(source, sizeof(source), "%s/%s", from, entry->d_name) <
                sizeof(source) &&
            (size_t)snprintf(target, sizeof(target), "%s/%s", to, entry->d_name) < sizeof(target) &&
            copy_file(source, target, 0644);
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return is_good;
}

static int install_into(const struct lac_install *install, const char *folder)
{
    char path[PATH_BYTES];
    bool is_good = mkdir(folder, 0755) == 0 || errno == EEXIST;

    is_good = is_good &&
              (size_t)snprintf(path, sizeof(path), "%s/liblacuna.so", folder) < sizeof(path) &&
              copy_file(install->library, path, 0755);
    is_good = is_good && (size_t)snprintf(path, sizeof(path), "%s/python", folder) < sizeof(path) &&
              (install->python[0] == '\0' || copy_python(install->python, path));
    is_good = is_good &&
              (size_t)snprintf(path, sizeof(path), "%s/lacuna-node", folder) < sizeof(path) &&
              copy_file("/proc/self/exe", path, 0755);
    if (!is_good) {
        (void)fprintf(stderr, "lacuna env: cannot install into %s: %s\n", folder, strerror(errno));
        return 1;
    }
    (void)printf("%s/lacuna-node\n", folder);
    return 0;
}

/* ---- */

static int usage(const char *problem)
{
    (void)fprintf(stderr, "lacuna env: %s (lacuna env --help)\n", problem);
    return 2;
}

static bool is_form(const char *text)
{
    static const char *const forms[] = {"--docker", "--apptainer", "--k8s", "--mpirun", "--slurm"};
    bool is_one = false;

    for (size_t i = 0; i < LAC_COUNT_OF(forms); i++) {
        is_one = is_one || strcmp(text, forms[i]) == 0;
    }
    return is_one;
}

/* @return -1: go on; else the exit status */
static int parse(int argc, char **argv, struct command *ret)
{
    bool wants_exec = false;

    *ret = (struct command){.image = NULL};
    for (int i = 1; i < argc && ret->exec == NULL; i++) {
        const char *const value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            (void)fputs(help, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--spool") == 0 && value[0] == '/') {
            (void)snprintf(ret->spool, sizeof(ret->spool), "%s", argv[++i]);
        } else if (strcmp(argv[i], "--step") == 0) {
            if (value[0] == '\0' || strlen(value) >= STEP_BYTES) {
                return usage("--step wants a NAME of 1 to 255 bytes");
            }
            ret->step = argv[++i];
        } else if (strcmp(argv[i], "--image") == 0 && value[0] != '\0') {
            ret->image = argv[++i];
        } else if (strcmp(argv[i], "--install") == 0 && value[0] != '\0') {
            ret->folder = argv[++i];
        } else if (strcmp(argv[i], "--on-demand") == 0) {
            ret->on_demand = true;
        } else if (strcmp(argv[i], "--exec") == 0) {
            wants_exec = true;
        } else if (strcmp(argv[i], "--") == 0 && wants_exec && i + 1 < argc) {
            ret->exec = &argv[i + 1];
        } else if (is_form(argv[i]) && ret->form == NULL) {
            ret->form = argv[i];
        } else {
            return usage("unknown option, more than one form, or a --spool path that does not "
                         "begin with /");
        }
    }
    if (wants_exec && (ret->exec == NULL || ret->form != NULL)) {
        return usage("--exec wants -- CMD, and no other form");
    }
    return ret->image != NULL && (ret->form == NULL || strcmp(ret->form, "--k8s") != 0)
               ? usage("--image goes with --k8s")
               : -1;
}

static int become(const struct lac_install *install, const struct command *command)
{
    static struct lac_displaced displaced;

    lac_install_environment(install, command->spool, &displaced);
    if (command->on_demand) {
        (void)setenv("LACUNA_ON_DEMAND", "1", 1);
        (void)setenv("LACUNA_PYTHON_STACKS", "auto", 0);
    }
    if (command->step != NULL) {
        (void)setenv("LACUNA_STEP", command->step, 1);
    }
    return lac_job_become(command->exec);
}

int lac_env_command(int argc, char **argv)
{
    static struct variable variables[VARIABLES_MAX];
    static struct lac_install install;
    static struct command command;
    const int status = parse(argc, argv, &command);
    const char *const spool = getenv("LACUNA_SPOOL");
    char reason[1024];
    char folder[PATH_BYTES];

    if (status >= 0) {
        return status;
    }
    if (command.form != NULL && strcmp(command.form, "--k8s") == 0) {
        print_k8s(command.image != NULL ? command.image : "lacuna", command.step);
        return 0;
    }
    if (!lac_install_find(&install)) {
        (void)fprintf(stderr, "lacuna env: liblacuna.so is not next to this program\n");
        return 1;
    }
    if (command.folder != NULL) {
        return install_into(&install, command.folder);
    }
    if (command.exec != NULL && command.spool[0] == '\0' && spool != NULL && spool[0] == '/') {
        (void)snprintf(command.spool, sizeof(command.spool), "%s", spool);
    }
    if (command.spool[0] == '\0' &&
        !lac_spool_folder_make(command.spool, sizeof(command.spool), reason, sizeof(reason))) {
        (void)fprintf(stderr, "lacuna env: no folder to record to: %s; give one with --spool\n",
                      reason);
        return 1;
    }
    if (command.exec != NULL) {
        return become(&install, &command);
    }
    fill(variables, &install, command.spool, command.form == NULL,
         command.form == NULL || strcmp(command.form, "--docker") != 0, &command);
    (void)snprintf(folder, sizeof(folder), "%s", install.library);
    *strrchr(folder, '/') = '\0';
    if (command.form == NULL) {
        print_shell(variables);
    } else if (!print_for(&command, variables, folder)) {
        return 1;
    }
    (void)fprintf(stderr, "lacuna: afterwards: lacuna gather %s\n", command.spool);
    return 0;
}
