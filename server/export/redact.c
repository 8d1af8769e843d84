#include "server/export/redact.h"

#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/model/model.h"
#include "analysis/model/setting_rows.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const struct lac_word lac_redact_words[LAC_REDACT_KIND_COUNT_] = {
    {"hosts", "host names", "hosts", "", "The host's name and IPv4 addresses.", 0},
    {"users", "user names", "users", "", "Names of users, as in /home/kim.", 0},
    {"paths", "paths", "paths", "",
     "Absolute paths and folders of source files, down to the last component.", 0},
    {"argv", "command lines", "commands", "", "Command lines, down to the program.", 0},
    {"names", "names chosen by people", "names", "",
     "Names of the trace, of ranges, marks, Python functions, processes and threads, and rows of a "
     "job's own.",
     0},
};

enum lac_status lac_redactor_init(struct lac_redactor *redactor, const char *list,
                                  const struct lac_model *model, struct lac_error *reterr)
{
    assert(redactor != NULL && model != NULL);
    const enum lac_status status =
        lac_redactor_init_hosts(redactor, list, lac_model_str(model, model->info.host), reterr);
    const uint32_t host = lac_settings_find(&model->settings, UINT32_MAX, "host");
    const uint32_t user =
        host != UINT32_MAX ? lac_settings_find(&model->settings, host, "user") : UINT32_MAX;
    if (user != UINT32_MAX) {
        redactor->user = lac_settings_value(&model->settings, user);
    }
    return status;
}

enum lac_status lac_redactor_init_hosts(struct lac_redactor *redactor, const char *list,
                                        const char *hosts, struct lac_error *reterr)
{
    assert(redactor != NULL && hosts != NULL);
    *redactor = (struct lac_redactor){.hosts = hosts};
    for (const char *at = list; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ",");
        int kind = 0;
        while (kind < LAC_REDACT_KIND_COUNT_ &&
               (strlen(lac_redact_words[kind].id) != length ||
                memcmp(lac_redact_words[kind].id, at, length) != 0)) {
            kind++;
        }
        if (kind == LAC_REDACT_KIND_COUNT_) {
            return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                            "'%.*s' cannot be removed: hosts, users, paths, argv, names",
                            (int)(length < 40 ? length : 40), at);
        }
        redactor->leave_out[kind] = true;
        at += length;
        at += *at == ',';
    }
    return LAC_OK;
}

void lac_redactor_done(struct lac_redactor *redactor)
{
    lac_buffer_done(&redactor->text);
}

static void meet(struct lac_redactor *redactor, enum lac_redact_kind kind, const char *text,
                 size_t length)
{
    unsigned count = redactor->met[kind].item_count;
    char item[LAC_REDACT_ITEM_BYTES];
    (void)snprintf(item, sizeof(item), "%.*s", (int)(length < 4096 ? length : 4096), text);
    redactor->met[kind].count++;
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(redactor->met[kind].item[i], item) == 0) {
            return;
        }
    }
    if (count < LAC_REDACT_SHOWN_MAX) {
        memcpy(redactor->met[kind].item[count], item, sizeof(item));
        redactor->met[kind].item_count++;
    }
}

/* -- finding ------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || (unsigned char)c >= 0x80;
}

/** Length of an IPv4 address at `at`, or 0. */
static size_t address_length(const char *at)
{
    size_t length = 0;
    for (int part = 0; part < 4; part++) {
        size_t digits = strspn(at + length, "0123456789");
        if (digits == 0 || digits > 3 || (part < 3 && at[length + digits] != '.')) {
            return 0;
        }
        length += digits + (part < 3);
    }
    return is_word(at[length]) || at[length] == '.' ? 0 : length;
}

/** Length of an absolute path of two components or more at `at`, or 0. */
static size_t path_length(const char *at)
{
    bool is_drive =
        isalpha((unsigned char)at[0]) && at[1] == ':' && (at[2] == '\\' || at[2] == '/');
    if (at[0] != '/' && !is_drive && !(at[0] == '~' && at[1] == '/')) {
        return 0;
    }
    size_t length = 0;
    unsigned separators = 0;
    for (; at[length] != '\0' && strchr(" \t\n\"'<>|,;()[]{}`", at[length]) == NULL; length++) {
        bool is_separator = at[length] == '/' || (is_drive && at[length] == '\\');
        separators += is_separator && is_word(at[length + 1]);
        if (at[length] == ':' && !(is_drive && length == 1)) {
            break; /* the line number after it is no part */
        }
    }
    return separators >= 2 ? length : 0;
}

/** Length of a source file with its folder at `at`, as findings quote it ("net/train.py" before its
 *  line), or 0. */
static size_t source_length(const char *at)
{
    static const char ending[] = ".py";
    size_t length = strcspn(at, " \t\n\"'<>|,;:()[]{}`");
    size_t end = sizeof(ending) - 1;
    return length > end && memchr(at, '/', length) != NULL &&
                   memcmp(at + length - end, ending, end) == 0
               ? length
               : 0;
}

/** The user's name in a path under /home: its place and length. */
static size_t user_in(const char *path, size_t length, size_t *ret_at)
{
    static const char *const homes[] = {"/home/", "/Users/", "\\Users\\"};
    for (size_t i = 0; i < LAC_COUNT_OF(homes); i++) {
        size_t prefix = strlen(homes[i]);
        const char *found = strstr(path, homes[i]);
        if (found != NULL && (size_t)(found - path) + prefix < length) {
            *ret_at = (size_t)(found - path) + prefix;
            size_t rest = length - *ret_at;
            size_t name = strcspn(path + *ret_at, "/\\");
            return name < rest ? name : rest;
        }
    }
    return 0;
}

static void put_path(struct lac_redactor *redactor, const char *path, size_t length)
{
    size_t user_at = 0;
    size_t user = user_in(path, length, &user_at);
    meet(redactor, LAC_REDACT_PATHS, path, length);
    if (user > 0) {
        meet(redactor, LAC_REDACT_USERS, path + user_at, user);
    }
    if (redactor->leave_out[LAC_REDACT_PATHS]) {
        size_t last = length;
        while (last > 0 && path[last - 1] != '/' && path[last - 1] != '\\') {
            last--;
        }
        bool is_user = user > 0 && last == user_at;
        lac_buffer_add(&redactor->text, is_user ? "user" : path + last,
                       is_user ? 4 : length - last);
    } else if (user > 0 && redactor->leave_out[LAC_REDACT_USERS]) {
        lac_buffer_add(&redactor->text, path, user_at);
        lac_buffer_puts(&redactor->text, "user");
        lac_buffer_add(&redactor->text, path + user_at + user, length - user_at - user);
    } else {
        lac_buffer_add(&redactor->text, path, length);
    }
}

/** Length of the longest of the hosts' names that stands at `at`, or 0. */
static size_t host_length(const struct lac_redactor *redactor, const char *at)
{
    size_t longest = 0;

    for (const char *host = redactor->hosts; *host != '\0';) {
        const size_t length = strcspn(host, "\n");

        if (length > longest && strncmp(at, host, length) == 0 && !is_word(at[length])) {
            longest = length;
        }
        host += length + (host[length] == '\n');
    }
    return longest;
}

/** Length of the name of who ran the job, if it stands at `at`, or 0. A letter is no name. */
static size_t user_length(const struct lac_redactor *redactor, const char *at)
{
    const size_t length = redactor->user != NULL ? strlen(redactor->user) : 0;

    return length > 1 && strncmp(at, redactor->user, length) == 0 && !is_word(at[length]) ? length
                                                                                          : 0;
}

/** What stands at `at`, where a word may begin: redacted and passed. @return bytes passed, or 0 */
static size_t put_special(struct lac_redactor *redactor, const char *at)
{
    size_t length = path_length(at);
    length = length > 0 ? length : source_length(at);
    if (length > 0) {
        put_path(redactor, at, length);
        return length;
    }
    length = user_length(redactor, at);
    if (length > 0) {
        meet(redactor, LAC_REDACT_USERS, at, length);
        lac_buffer_add(&redactor->text, redactor->leave_out[LAC_REDACT_USERS] ? "user" : at,
                       redactor->leave_out[LAC_REDACT_USERS] ? 4 : length);
        return length;
    }
    length = host_length(redactor, at);
    if (length == 0) {
        length = address_length(at);
    }
    if (length > 0) {
        meet(redactor, LAC_REDACT_HOSTS, at, length);
        lac_buffer_add(&redactor->text, redactor->leave_out[LAC_REDACT_HOSTS] ? "host" : at,
                       redactor->leave_out[LAC_REDACT_HOSTS] ? 4 : length);
    }
    return length;
}

static const char *given(struct lac_redactor *redactor)
{
    /* a failed allocation stays in the buffer's status; the text is then empty, never whole */
    return redactor->text.status == LAC_OK && redactor->text.bytes != NULL ? redactor->text.bytes
                                                                           : "";
}

const char *lac_redact(struct lac_redactor *redactor, const char *text)
{
    redactor->text.size_bytes = 0;
    lac_buffer_puts(&redactor->text, "");
    if (redactor->text.bytes != NULL) {
        redactor->text.bytes[0] = '\0';
    }
    bool may_begin = true;
    for (const char *at = text; *at != '\0';) {
        size_t passed = may_begin ? put_special(redactor, at) : 0;
        if (passed > 0) {
            at += passed;
            may_begin = false;
            continue;
        }
        lac_buffer_add(&redactor->text, at, 1);
        may_begin = !is_word(*at) && *at != '.' && *at != '/';
        at++;
    }
    return given(redactor);
}

const char *lac_redact_argv(struct lac_redactor *redactor, const char *text)
{
    assert(redactor != NULL && text != NULL);
    size_t program = strcspn(text, " ");
    if (text[program] == '\0') {
        return lac_redact(redactor, text);
    }
    meet(redactor, LAC_REDACT_ARGV, text, strlen(text));
    if (!redactor->leave_out[LAC_REDACT_ARGV]) {
        return lac_redact(redactor, text);
    }
    size_t first = program;
    while (first > 0 && text[first - 1] != '/') {
        first--;
    }
    redactor->text.size_bytes = 0;
    lac_buffer_add(&redactor->text, text + first, program - first);
    return given(redactor);
}

const char *lac_redact_user(struct lac_redactor *redactor, const char *name)
{
    meet(redactor, LAC_REDACT_USERS, name, strlen(name));
    return redactor->leave_out[LAC_REDACT_USERS] ? "user" : name;
}

bool lac_redact_is_given(uint8_t kind, const char *name)
{
    return (kind == LAC_SLICE_RANGE || kind == LAC_SLICE_GPU_RANGE || kind == LAC_SLICE_INSTANT ||
            kind == LAC_SLICE_PYTHON || kind == LAC_SLICE_OTHER) &&
           lac_names_host_class(name, strlen(name)) == LAC_HOST_OTHER;
}

const char *lac_redact_given(struct lac_redactor *redactor, const char *text, const char *fallback)
{
    if (*text != '\0') {
        meet(redactor, LAC_REDACT_NAMES, text, strlen(text));
    }
    return lac_redact(redactor, redactor->leave_out[LAC_REDACT_NAMES] ? fallback : text);
}

const char *lac_redact_process(struct lac_redactor *redactor, const char *name)
{
    if (redactor->leave_out[LAC_REDACT_NAMES] && *name != '\0') {
        return lac_redact_given(redactor, name, "process");
    }
    return lac_redact_argv(redactor, name);
}

const char *lac_redact_track(struct lac_redactor *redactor, const struct lac_model *model,
                             uint32_t track)
{
    const struct lac_track *of = &model->tracks[track];
    const char *named = lac_model_str(model, of->name);
    const char *name = *named != '\0' ? named : lac_model_str(model, of->id_text);
    static const char stream[] = "stream ";
    bool is_given = false;
    switch (of->kind) {
    case LAC_TRACK_COUNTER:
        is_given = !lac_names_counter_is_measured(name);
        break;
    case LAC_TRACK_ASYNC:
        is_given = true;
        break;
    case LAC_TRACK_STREAM:
        is_given = *named != '\0' && strncasecmp(named, stream, sizeof(stream) - 1) != 0;
        break;
    case LAC_TRACK_GPU_RANGE:
    case LAC_TRACK_STEPS:
    case LAC_TRACK_GAPS:
        break;
    case LAC_TRACK_THREAD: /* and what belongs to one: its number may stay */
    case LAC_TRACK_MARKS:
    case LAC_TRACK_STACKS:
    case LAC_TRACK_PROFILE:
    case LAC_TRACK_BACKWARD:
    case LAC_TRACK_KIND_COUNT_:
    default:
        is_given = *named != '\0';
    }
    char number[32];
    (void)snprintf(number, sizeof(number), "row %" PRIu32, track);
    return is_given ? lac_redact_given(redactor, name, number) : lac_redact(redactor, name);
}
