#include "collector/launch/window.h"

#include "collector/base/count_of.h"
#include "collector/base/io_full.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char request_name[] = ".lacuna-window";
static const char answer_name[] = ".lacuna-answer";
static const char request_head[] = "lacuna-window 1\n";
static const char answer_head[] = "lacuna-answer 1\n";
static const char last_line[] = "end\n"; /* without it the file is not whole */

enum { TEXT_BYTES = 1024, NAME_BYTES = 64 };

static const struct {
    enum lac_window_state state;
    const char *word;
} states[] = {
    {LAC_WINDOW_RECORDING, "recording"},
    {LAC_WINDOW_DONE, "done"},
    {LAC_WINDOW_REFUSED, "refused"},
};

/* Opened anew each time: on a network that asks the server what is in the folder now. */
static int open_folder(const char *folder)
{
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Whole or not at all, in place of what was there. */
static bool write_file(const char *folder, const char *name, const char *text)
{
    const int folder_fd = open_folder(folder);
    char fresh[NAME_BYTES];
    bool is_written = false;
    int fd = -1;

    (void)snprintf(fresh, sizeof(fresh), "%s.%d", name, (int)getpid());
    if (folder_fd >= 0) {
        fd = openat(folder_fd, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (fd >= 0) {
        is_written = lac_write_full(fd, text, strlen(text));
        is_written = close(fd) == 0 && is_written;
        is_written = is_written && renameat(folder_fd, fresh, folder_fd, name) == 0;
        if (!is_written) {
            const int problem = errno;

            (void)unlinkat(folder_fd, fresh, 0);
            errno = problem;
        }
    }
    if (folder_fd >= 0) {
        const int problem = errno;

        (void)close(folder_fd);
        errno = problem;
    }
    return is_written;
}

/* @return false: there is none, or it is not whole, or somebody else's */
static bool read_file(int folder_fd, const char *name, const char *head, char *text)
{
    const int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int64_t length = -1;

    if (fd >= 0) {
        if (lac_file_is_regular(fd) && lac_file_same_owner(fd, folder_fd)) {
            length = lac_read_full(fd, text, TEXT_BYTES - 1);
        }
        (void)close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    return length >= (int64_t)(strlen(head) + strlen(last_line)) &&
           strlen(text) == (size_t)length && strncmp(text, head, strlen(head)) == 0 &&
           strcmp(text + length - strlen(last_line), last_line) == 0;
}

/* The rest of the line that begins with `key` and a blank; "" when there is none. */
static void value_of(const char *text, const char *key, char *out, size_t capacity)
{
    const size_t key_length = strlen(key);

    out[0] = '\0';
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, key_length) == 0 && line[key_length] == ' ') {
            const char *const value = line + key_length + 1;

            (void)snprintf(out, capacity, "%.*s", (int)strcspn(value, "\n"), value);
            return;
        }
    }
}

static bool number_of(const char *text, const char *key, uint64_t most, uint64_t *ret)
{
    char value[32];
    char *end = NULL;

    value_of(text, key, value, sizeof(value));
    if (value[0] < '0' || value[0] > '9') {
        return false;
    }
    *ret = strtoull(value, &end, 10);
    return *end == '\0' && *ret <= most;
}

static bool is_id(const char *id)
{
    return id[0] != '\0' && strspn(id, "0123456789abcdef") == strlen(id);
}

bool lac_window_ask(const char *folder, const struct lac_window_request *request)
{
    assert(folder != NULL && is_id(request->id));
    char text[TEXT_BYTES];

    (void)snprintf(text, sizeof(text), "%sid %s\nduration_ms %" PRIu64 "\nsteps %" PRIu64 "\n%s",
                   request_head, request->id, request->duration_ms, request->steps, last_line);
    return write_file(folder, request_name, text);
}

static void remove_file(const char *folder, const char *name)
{
    const int folder_fd = open_folder(folder);

    if (folder_fd >= 0) {
        (void)unlinkat(folder_fd, name, 0);
        (void)close(folder_fd);
    }
}

void lac_window_withdraw(const char *folder)
{
    remove_file(folder, request_name);
}

bool lac_window_take(const char *folder, const char *last_id, struct lac_window_request *ret)
{
    assert(folder != NULL && last_id != NULL);
    const int folder_fd = open_folder(folder);
    char text[TEXT_BYTES];
    bool is_one = false;

    if (folder_fd >= 0) {
        is_one = read_file(folder_fd, request_name, request_head, text);
        if (is_one) {
            value_of(text, "id", ret->id, sizeof(ret->id));
            is_one = number_of(text, "duration_ms", LAC_WINDOW_MS_MAX, &ret->duration_ms) &&
                     number_of(text, "steps", LAC_WINDOW_STEPS_MAX, &ret->steps) &&
                     is_id(ret->id) && strcmp(ret->id, last_id) != 0;
            (void)unlinkat(folder_fd, request_name, 0);
        }
        (void)close(folder_fd);
    }
    return is_one;
}

bool lac_window_answer(const char *folder, const char *id, enum lac_window_state state,
                       const char *words)
{
    assert(folder != NULL && words != NULL);
    const char *word = "";
    char text[TEXT_BYTES];

    for (size_t i = 0; i < LAC_COUNT_OF(states); i++) {
        word = states[i].state == state ? states[i].word : word;
    }
    (void)snprintf(text, sizeof(text), "%sid %s\nstate %s\nwords %.*s\n%s", answer_head, id, word,
                   LAC_WINDOW_WORDS_BYTES - 1, words, last_line);
    return write_file(folder, answer_name, text);
}

enum lac_window_state lac_window_read_answer(const char *folder, const char *id, char *words)
{
    assert(folder != NULL && words != NULL);
    const int folder_fd = open_folder(folder);
    enum lac_window_state state = LAC_WINDOW_NONE;
    char text[TEXT_BYTES];
    char value[LAC_WINDOW_ID_BYTES];

    words[0] = '\0';
    if (folder_fd < 0) {
        return state;
    }
    if (read_file(folder_fd, answer_name, answer_head, text)) {
        value_of(text, "id", value, sizeof(value));
        if (strcmp(value, id) == 0) {
            value_of(text, "state", value, sizeof(value));
            for (size_t i = 0; i < LAC_COUNT_OF(states); i++) {
                state = strcmp(states[i].word, value) == 0 ? states[i].state : state;
            }
            value_of(text, "words", words, LAC_WINDOW_WORDS_BYTES);
        }
    }
    (void)close(folder_fd);
    return state;
}

void lac_window_clear(const char *folder)
{
    remove_file(folder, answer_name);
    remove_file(folder, request_name);
}
