/* `push`, and the line that does the same without libcurl. */

#include "collector/base/count_of.h"
#include "collector/push/http_client.h"
#include "collector/push/push.h"
#include "collector/push/push_source.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: lacuna push PATH... --server URL [OPTION]...\n"
    "\n"
    "Sends recordings (folders made by lacuna run; a folder with those of several ranks is a run)\n"
    "and trace files of other programs to a server, and prints the address of each. An upload "
    "that\n"
    "breaks off is resumed, here or by a later call.\n"
    "\n"
    "  --server URL      https://HOST[:PORT] or http (or LACUNA_SERVER); LACUNA_CA_FILE: who "
    "vouches\n"
    "                    for its certificate, where the host's own certificates do not\n"
    "  --token-file F    file with the token (or LACUNA_TOKEN_FILE, or the token in LACUNA_TOKEN)\n"
    "  --project P       project to put them into (or LACUNA_PROJECT)\n"
    "  --run R           name of the run to put them into (or LACUNA_RUN)\n"
    "  --name N          name of the trace, with one PATH\n"
    "  --quiet           no progress\n"
    "\n"
    "The progress of each upload is kept in $XDG_STATE_HOME/lacuna (~/.local/state/lacuna) until "
    "it\n"
    "is complete; if that folder cannot be written, a later call starts over.\n";

struct arguments {
    const char *server;
    const char *token_file;
    const char *name;
    char **paths; /* into argv, moved to its front */
    int path_count;
};

static int usage(const char *problem, const char *what)
{
    (void)fprintf(stderr, "lacuna push: %s%s (lacuna push --help)\n", problem, what);
    return 2;
}

static const char *variable(const char *name)
{
    const char *const value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct arguments *arguments, struct lac_push_target *target)
{
    const struct {
        const char *name;
        const char **place;
    } options[] = {{"--server", &arguments->server},
                   {"--token-file", &arguments->token_file},
                   {"--project", &target->project},
                   {"--run", &target->run},
                   {"--name", &arguments->name}};
    bool has_options = true;

    arguments->paths = argv;
    for (int i = 1; i < argc; i++) {
        size_t k = 0;

        if (!has_options || argv[i][0] != '-' || argv[i][1] == '\0') {
            arguments->paths[arguments->path_count++] = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            (void)fputs(help, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--") == 0) {
            has_options = false;
            continue;
        }
        if (strcmp(argv[i], "--quiet") == 0) {
            target->is_quiet = true;
            continue;
        }
        while (k < LAC_COUNT_OF(options) && strcmp(argv[i], options[k].name) != 0) {
            k++;
        }
        if (k == LAC_COUNT_OF(options) || i + 1 == argc) {
            return usage("unknown option, or one without its value: ", argv[i]);
        }
        *options[k].place = argv[++i];
    }
    if (arguments->path_count == 0) {
        return usage("give a recording or a trace file to send", "");
    }
    return arguments->name != NULL && arguments->path_count > 1
               ? usage("--name is for one path", "")
               : -1;
}

/* -- without libcurl ----------------------------------------------------------------------------*/

/* As one word of a shell. */
static void print_word(const char *text)
{
    (void)fputc('\'', stderr);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\'') {
            (void)fputs("'\\''", stderr);
        } else {
            (void)fputc(*c, stderr);
        }
    }
    (void)fputc('\'', stderr);
}

static void print_parameter(const char *key, const char *value, char *separator)
{
    if (value == NULL || value[0] == '\0') {
        return;
    }
    (void)fprintf(stderr, "%c%s=", *separator, key);
    *separator = '&';
    for (const char *c = value; *c != '\0'; c++) {
        const bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                              (*c >= '0' && *c <= '9') || *c == '-' || *c == '_' || *c == '.';

        (void)fprintf(stderr, is_plain ? "%c" : "%%%02X", (unsigned)(unsigned char)*c);
    }
}

/* The header line with the token, through a pipe: in arguments everybody on the host
 * could read it. */
static void print_header_pipe(const struct lac_push_target *target)
{
    (void)fputs("printf 'Authorization: Bearer %s\\n' \"$", stderr);
    if (target->token_file != NULL) {
        (void)fputs("(cat ", stderr);
        print_word(target->token_file);
        (void)fputs(")\" | ", stderr);
    } else {
        (void)fputs("LACUNA_TOKEN\" | ", stderr);
    }
}

void lac_push_explain(const struct lac_push_target *target, const char *path)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *const slash = strrchr(path, '/');
    const char *const base = slash != NULL && slash[1] != '\0' ? slash + 1 : path;
    char separator = '?';

    (void)fputs("lacuna: to send it with curl: ", stderr);
    print_header_pipe(target);
    if (folder >= 0) {
        (void)close(folder);
        (void)fputs("{ tar -C ", stderr);
        print_word(path);
        (void)fputs(" -cf - . | curl -X POST -T - -H @/dev/fd/3 ", stderr);
    } else {
        (void)fputs("curl -X POST -T ", stderr);
        print_word(path);
        (void)fputs(" -H @- ", stderr);
    }
    (void)fprintf(stderr, "'%s/api/v1/traces", target->server);
    print_parameter("name", base, &separator);
    print_parameter("project", target->project, &separator);
    (void)fputs(folder >= 0 ? "'; } 3<&0\n" : "'\n", stderr);
}

/* -- the command --------------------------------------------------------------------------------*/

static bool push_one(struct lac_http *http, const struct lac_push_target *target, const char *path,
                     const char *name)
{
    char url[640];

    if (!lac_push_path(http, target, path, name, NULL, url, sizeof(url))) {
        return false;
    }
    (void)printf("%s\n", url);
    (void)fflush(stdout);
    return true;
}

static int is_rank(const struct dirent *entry)
{
    return strncmp(entry->d_name, "rank-", 5) == 0 || strncmp(entry->d_name, "task-", 5) == 0;
}

/* "DIR/train.lacuna/" -> "train" */
static void run_name(const char *path, char *out, size_t capacity)
{
    size_t length;
    const char *const name = lac_push_last_part(path, &length);

    if (length > 7 && memcmp(name + length - 7, ".lacuna", 7) == 0) {
        length -= 7;
    }
    (void)snprintf(out, capacity, "%.*s", (int)(length < 200 ? length : 200), name);
}

/* A path, or the recordings of the ranks in it, which are traces of one run. */
static bool push_path(struct lac_http *http, const struct lac_push_target *target, const char *path,
                      const char *name)
{
    struct lac_push_target of_run = *target;
    struct dirent **ranks = NULL;
    const int count = scandir(path, &ranks, is_rank, versionsort);
    char run[201];
    bool is_whole = true;

    if (count <= 0) {
        free(ranks);
        return push_one(http, target, path, name);
    }
    run_name(path, run, sizeof(run));
    of_run.run = target->run != NULL ? target->run : run;
    for (int i = 0; i < count; i++) {
        char rank[4096];

        (void)snprintf(rank, sizeof(rank), "%s/%s", path, ranks[i]->d_name);
        is_whole = push_one(http, &of_run, rank, NULL) && is_whole;
        free(ranks[i]);
    }
    free(ranks);
    return is_whole;
}

static bool push_all(struct lac_http *http, const struct lac_push_target *target,
                     const struct arguments *arguments)
{
    bool is_whole = true;

    for (int i = 0; i < arguments->path_count; i++) {
        is_whole = push_path(http, target, arguments->paths[i], arguments->name) && is_whole;
    }
    return is_whole;
}

int lac_push_command(int argc, char **argv)
{
    static struct lac_push_target target;
    struct arguments arguments = {0};
    struct lac_http *http;
    char problem[700];
    const int status = parse(argc, argv, &arguments, &target);
    bool is_whole;

    if (status >= 0) {
        return status;
    }
    target.project = target.project != NULL ? target.project : variable("LACUNA_PROJECT");
    target.run = target.run != NULL ? target.run : variable("LACUNA_RUN");
    if (!lac_push_target_make(&target, arguments.server, arguments.token_file, problem,
                              sizeof(problem))) {
        (void)fprintf(stderr, "lacuna push: %s\n", problem);
        return 2;
    }
    http = lac_http_open(problem, sizeof(problem));
    if (http == NULL) {
        (void)fprintf(stderr, "lacuna push: %s, nothing was sent\n", problem);
        for (int i = 0; i < arguments.path_count; i++) {
            lac_push_explain(&target, arguments.paths[i]);
        }
        return 1;
    }
    is_whole = push_all(http, &target, &arguments);
    lac_http_close(http);
    return is_whole ? 0 : 1;
}
