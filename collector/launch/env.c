#include "collector/base/count_of.h"
#include "collector/gather/gather.h"
#include "collector/gather/spool_folder.h"
#include "collector/launch/install.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: lacuna env [--spool DIR] [--docker|--apptainer|--k8s|--mpirun|--slurm]\n"
    "\n"
    "Prints the variables that load the recorder into a job that `lacuna run` cannot start:\n"
    "\n"
    "  eval \"$(lacuna env)\"      for a shell and everything started from it\n"
    "  --docker                  options for docker run (and podman)\n"
    "  --apptainer               options for apptainer exec (and singularity)\n"
    "  --k8s                     part of a pod specification\n"
    "  --mpirun                  options for mpirun (Open MPI)\n"
    "  --slurm                   options for srun\n"
    "\n"
    "  --spool DIR               folder that the job records to; it must exist on the job's host\n"
    "                            (default: a new folder in $TMPDIR or /tmp)\n"
    "\n"
    "Afterwards: lacuna gather DIR\n";

enum { VARIABLES_MAX = 6 };

struct variable {
    const char *name;
    char value[8300];
};

static int variable_count = VARIABLES_MAX - 1;

static void fill(struct variable *variables, const struct lac_install *install, const char *spool)
{
    const char *const tool = lac_install_cuda_tool(install);
    const char *const python = getenv("PYTHONPATH");

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
    if (tool[0] != '\0') {
        variables[variable_count].name = "LACUNA_CUDA_INJECTION";
        (void)snprintf(variables[variable_count].value, sizeof(variables[0].value), "%s", tool);
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

static void print_shell(const struct variable *variables)
{
    for (int i = 0; i < variable_count; i++) {
        (void)printf("export %s=", variables[i].name);
        print_quoted(variables[i].value);
        (void)putchar('\n');
    }
}

/* Before each variable `before`, between name and value "=". */
static void print_options(const struct variable *variables, const char *before)
{
    for (int i = 0; i < variable_count; i++) {
        (void)printf("%s%s=", before, variables[i].name);
        print_quoted(variables[i].value);
        (void)putchar(' ');
    }
}

static void print_k8s(const struct variable *variables, const char *folder, const char *spool)
{
    (void)printf("env:\n");
    for (int i = 0; i < variable_count; i++) {
        (void)printf("- {name: %s, value: \"%s\"}\n", variables[i].name, variables[i].value);
    }
    (void)printf("volumeMounts:\n"
                 "- {name: lacuna, mountPath: \"%s\", readOnly: true}\n"
                 "- {name: lacuna-spool, mountPath: \"%s\"}\n"
                 "# and beside containers:, where the node has Lacuna at this path\n"
                 "volumes:\n"
                 "- {name: lacuna, hostPath: {path: \"%s\"}}\n"
                 "- {name: lacuna-spool, hostPath: {path: \"%s\", type: DirectoryOrCreate}}\n",
                 folder, spool, folder, spool);
}

static void print_for(const char *what, const struct variable *variables, const char *folder)
{
    const char *const spool = variables[3].value;

    if (strcmp(what, "--docker") == 0) {
        print_options(variables, "-e ");
        (void)printf("-v %s:%s:ro -v %s:%s\n", folder, folder, spool, spool);
    } else if (strcmp(what, "--apptainer") == 0) {
        print_options(variables, "--env ");
        (void)printf("--bind %s:%s:ro --bind %s:%s\n", folder, folder, spool, spool);
    } else if (strcmp(what, "--k8s") == 0) {
        print_k8s(variables, folder, spool);
    } else if (strcmp(what, "--mpirun") == 0) {
        print_options(variables, "-x ");
        (void)putchar('\n');
    } else { /* --slurm: variables with commas or spaces must come from the environment */
        (void)printf("--export=ALL");
        for (int i = 0; i < variable_count; i++) {
            (void)printf(",%s=%s", variables[i].name, variables[i].value);
        }
        (void)putchar('\n');
    }
}

static int usage(const char *problem)
{
    (void)fprintf(stderr, "lacuna env: %s (lacuna env --help)\n", problem);
    return 2;
}

int lac_env_command(int argc, char **argv)
{
    static struct variable variables[VARIABLES_MAX];
    static struct lac_install install;
    static const char *const forms[] = {"--docker", "--apptainer", "--k8s", "--mpirun", "--slurm"};
    const char *form = NULL;
    char spool[4096] = "";
    char reason[1024];
    char folder[4096];

    for (int i = 1; i < argc; i++) {
        bool known = false;

        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            (void)fputs(help, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--spool") == 0 && i + 1 < argc && argv[i + 1][0] == '/') {
            (void)snprintf(spool, sizeof(spool), "%s", argv[++i]);
            continue;
        }
        for (size_t k = 0; k < LAC_COUNT_OF(forms) && !known; k++) {
            known = strcmp(argv[i], forms[k]) == 0;
        }
        if (!known || form != NULL) {
            return usage(
                "unknown option, more than one form, or a --spool path that does not begin with /");
        }
        form = argv[i];
    }
    if (!lac_install_find(&install)) {
        (void)fprintf(stderr, "lacuna env: liblacuna.so is not next to this program\n");
        return 1;
    }
    if (spool[0] == '\0' && !lac_spool_folder_make(spool, sizeof(spool), reason, sizeof(reason))) {
        (void)fprintf(stderr, "lacuna env: no folder to record to: %s; give one with --spool\n",
                      reason);
        return 1;
    }
    fill(variables, &install, spool);
    (void)snprintf(folder, sizeof(folder), "%s", install.library);
    *strrchr(folder, '/') = '\0';
    if (form == NULL) {
        print_shell(variables);
    } else {
        print_for(form, variables, folder);
    }
    (void)fprintf(stderr, "lacuna: afterwards: lacuna gather %s\n", spool);
    return 0;
}
