#include "collector/hang/hang_process.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_ = 1 << 24 };

static uint32_t number_of(const char *text)
{
    const long value = strtol(text, NULL, 10);

    return value > 0 && value < LINE_MAX_ ? (uint32_t)value : 0;
}

char *lac_hang_clean(char *text)
{
    assert(text != NULL);
    for (char *c = text; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c;
    }
    return text;
}

/* The next line, cut off; NULL at the end. */
static char *next_line(char **at)
{
    char *const line = *at;
    char *end;

    if (line == NULL || *line == '\0') {
        return NULL;
    }
    end = strchr(line, '\n');
    *at = end != NULL ? end + 1 : NULL;
    if (end != NULL) {
        *end = '\0';
    }
    return line;
}

/* "thread TID ROLE NAME" */
static struct lac_hang_thread *add_thread(struct lac_hang_process *process, char *words)
{
    struct lac_hang_thread *thread;
    char *role = strchr(words, ' ');
    char *name = role != NULL ? strchr(role + 1, ' ') : NULL;

    if (name == NULL || process->thread_count >= process->thread_room) {
        return NULL;
    }
    *role++ = '\0';
    *name++ = '\0';
    thread = &process->threads[process->thread_count++];
    memset(thread, 0, sizeof(*thread));
    thread->tid = (int32_t)strtol(words, NULL, 10);
    thread->is_training = strcmp(role, "training") == 0;
    thread->name = lac_hang_clean(name);
    thread->source = "";
    return thread;
}

/* "frame LINE\tFUNCTION\tPATH". Ours are not told. */
static void add_frame(struct lac_hang_thread *thread, char *words)
{
    char *function = strchr(words, '\t');
    char *path = function != NULL ? strchr(function + 1, '\t') : NULL;

    if (path == NULL || thread->frame_count == LAC_HANG_FRAMES) {
        return;
    }
    *function++ = '\0';
    *path++ = '\0';
    if (strstr(path, "/_lacuna_") == NULL) {
        thread->frames[thread->frame_count++] =
            (struct lac_hang_frame){.function = lac_hang_clean(function),
                                    .path = lac_hang_clean(path),
                                    .line = number_of(words)};
    }
}

/* "collective TOTAL COUNT INSIDE NAME" */
static void set_collective(struct lac_hang_process *process, char *words)
{
    char *end = words;

    process->collective_total = (uint32_t)strtoul(end, &end, 10);
    process->collective_count = (uint32_t)strtoul(end, &end, 10);
    process->is_in_collective = strtoul(end, &end, 10) != 0;
    process->collective = *end == ' ' ? lac_hang_clean(end + 1) : "";
}

static bool begins(const char *line, const char *key)
{
    return strncmp(line, key, strlen(key)) == 0;
}

/* "RANK WORLD", as the framework told. */
static void set_rank(struct lac_hang_process *process, char *words)
{
    char *end = words;
    const long rank = strtol(words, &end, 10);
    const long world = strtol(end, NULL, 10);

    if (rank >= 0 && world > rank && world < LINE_MAX_) {
        process->rank = (int32_t)rank;
        process->world = (int32_t)world;
    }
}

/* One line. @return the thread that it belongs to */
static struct lac_hang_thread *parse_line(struct lac_hang_process *process,
                                          struct lac_hang_thread *thread, char *line)
{
    char *const space = strchr(line, ' ');
    char *const words = space != NULL ? space + 1 : line;

    if (begins(line, "thread ")) {
        return add_thread(process, words);
    }
    if (begins(line, "frame ") && thread != NULL) {
        add_frame(thread, words);
    } else if (begins(line, "source ") && thread != NULL && thread->frame_count > 0) {
        thread->source = lac_hang_clean(words);
        thread->source_frame = thread->frame_count - 1;
    } else if (begins(line, "collective ")) {
        set_collective(process, words);
    } else if (begins(line, "rank ")) {
        set_rank(process, words);
    }
    return thread;
}

void lac_hang_process_parse(struct lac_hang_process *process)
{
    assert(process != NULL && process->text != NULL && process->threads != NULL);
    struct lac_hang_thread *thread = NULL;
    char *at = process->text;
    const char *const first = next_line(&at);

    process->thread_count = 0;
    process->collective = "";
    process->has_answered = first != NULL && strcmp(first, "lacuna-stacks 1") == 0;
    for (char *line = process->has_answered ? next_line(&at) : NULL; line != NULL;
         line = next_line(&at)) {
        thread = parse_line(process, thread, line);
    }
}

const struct lac_hang_thread *lac_hang_process_training(const struct lac_hang_process *process)
{
    assert(process != NULL);
    for (uint32_t i = 0; process->has_answered && i < process->thread_count; i++) {
        if (process->threads[i].is_training && process->threads[i].frame_count > 0) {
            return &process->threads[i];
        }
    }
    return NULL;
}
