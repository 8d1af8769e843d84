/* Frames of Python: whose code they are, and which of them only wait. */

#include "analysis/diagnose/names/python_frame.h"

#include "collector/base/count_of.h"

#include <stdint.h>
#include <string.h>

static bool text_is(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

static bool ends_with(const char *text, size_t length, const char *word)
{
    size_t word_length = strlen(word);
    return length >= word_length && memcmp(text + length - word_length, word, word_length) == 0;
}

/** Past the folder of imports, where the path has one. */
static void skip_import_folder(const char **path, size_t *length)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
    for (size_t i = 0; i < LAC_COUNT_OF(folders); i++) {
        size_t folder_length = strlen(folders[i]);
        const char *at = memmem(*path, *length, folders[i], folder_length);
        if (at != NULL) {
            *length -= (size_t)(at - *path) + folder_length;
            *path = at + folder_length;
            return;
        }
    }
    /* ".../lib/python3.11/threading.py": the standard library */
    static const char standard[] = "/lib/python";
    const char *at = memmem(*path, *length, standard, sizeof(standard) - 1);
    const char *slash = at != NULL ? memchr(at + sizeof(standard) - 1, '/',
                                            *length - (size_t)(at - *path) - (sizeof(standard) - 1))
                                   : NULL;
    if (slash != NULL) {
        *length -= (size_t)(slash - *path) + 1;
        *path = slash + 1;
    }
}

bool lac_frame_parse(const char *text, size_t length, struct lac_frame *ret_frame)
{
    static const char mark[] = ".py(";
    const char *open = memmem(text, length, mark, sizeof(mark) - 1);
    if (open == NULL || text[0] == '<') {
        return false;
    }
    const char *end = text + length;
    const char *at = open + sizeof(mark) - 1;
    int64_t line = 0;
    const char *digits = at;
    while (at < end && *at >= '0' && *at <= '9' && at - digits < 9) {
        line = line * 10 + (*at++ - '0');
    }
    if (at == digits || end - at < 3 || memcmp(at, "): ", 3) != 0) {
        return false;
    }
    *ret_frame = (struct lac_frame){.path = text,
                                    .path_length = (size_t)(open - text) + 3,
                                    .line = line,
                                    .function = at + 3,
                                    .function_length = (size_t)(end - at) - 3};
    skip_import_folder(&ret_frame->path, &ret_frame->path_length);
    return true;
}

void lac_frame_package(const struct lac_frame *frame, const char **ret_name, size_t *ret_length)
{
    const char *slash = memchr(frame->path, '/', frame->path_length);
    *ret_name = frame->path;
    *ret_length = slash != NULL ? (size_t)(slash - frame->path) : 0;
}

enum lac_frame_owner lac_frame_owner_of(const struct lac_frame *frame)
{
    static const char *const runtime[] = {
        "torch",     "asyncio",   "collections", "concurrent", "ctypes",          "encodings",
        "functorch", "importlib", "json",        "logging",    "multiprocessing", "re",
        "tqdm",      "triton",    "unittest",    "debugpy",    "pydevd",          "_pydevd_bundle"};
    static const char *const modules[] = {"_collections_abc.py",
                                          "_weakrefset.py",
                                          "abc.py",
                                          "bdb.py",
                                          "codecs.py",
                                          "contextlib.py",
                                          "copy.py",
                                          "copyreg.py",
                                          "dataclasses.py",
                                          "enum.py",
                                          "functools.py",
                                          "gc.py",
                                          "inspect.py",
                                          "os.py",
                                          "pathlib.py",
                                          "pickle.py",
                                          "queue.py",
                                          "random.py",
                                          "runpy.py",
                                          "selectors.py",
                                          "signal.py",
                                          "socket.py",
                                          "ssl.py",
                                          "subprocess.py",
                                          "tempfile.py",
                                          "threading.py",
                                          "traceback.py",
                                          "types.py",
                                          "typing.py",
                                          "typing_extensions.py",
                                          "warnings.py",
                                          "weakref.py"};
    static const char *const frameworks[] = {
        "accelerate",       "deepspeed",         "fabric",  "ignite", "lightning",
        "lightning_fabric", "pytorch_lightning", "torchtnt"};
    static const char *const trainers[] = {
        "transformers/trainer.py", "transformers/pipelines/base.py",
        "transformers/pipelines/pt_utils.py", "trl/trainer/sft_trainer.py"};
    const char *package = NULL;
    size_t length = 0;
    lac_frame_package(frame, &package, &length);
    for (size_t i = 0; i < LAC_COUNT_OF(runtime); i++) {
        if (text_is(package, length, runtime[i])) {
            return LAC_FRAME_RUNTIME;
        }
    }
    for (size_t i = 0; i < LAC_COUNT_OF(modules) && length == 0; i++) {
        if (text_is(frame->path, frame->path_length, modules[i])) {
            return LAC_FRAME_RUNTIME;
        }
    }
    for (size_t i = 0; i < LAC_COUNT_OF(frameworks); i++) {
        if (text_is(package, length, frameworks[i])) {
            return LAC_FRAME_FRAMEWORK;
        }
    }
    for (size_t i = 0; i < LAC_COUNT_OF(trainers); i++) {
        if (ends_with(frame->path, frame->path_length, trainers[i])) {
            return LAC_FRAME_FRAMEWORK;
        }
    }
    return LAC_FRAME_USER;
}

bool lac_frame_does_work(const struct lac_frame *frame)
{
    static const char collate[] = "torch/utils/data/_utils/collate.py";
    return lac_frame_owner_of(frame) != LAC_FRAME_RUNTIME ||
           text_is(frame->path, frame->path_length, collate);
}

bool lac_frame_is_waiting(const char *text, size_t length)
{
    static const char *const built_in[] = {
        "acquire", "allreduce",   "barrier", "join",         "poll",
        "recv",    "recv_into",   "result",  "run_backward", "select",
        "sleep",   "synchronize", "wait",    "_wait",        "wait_for_tstate_lock"};
    static const char prefix[] = "<built-in ";
    struct lac_frame frame;
    const char *name = NULL;
    size_t name_length = 0;
    if (length > sizeof(prefix) && memcmp(text, prefix, sizeof(prefix) - 1) == 0) {
        const char *first = memchr(text + sizeof(prefix) - 1, ' ', length - sizeof(prefix) + 1);
        name = first != NULL ? first + 1 : text; /* "method poll of ...", "function sleep>" */
        name_length = (size_t)(text + length - name);
        for (size_t i = 0; i < name_length; i++) {
            if (name[i] == ' ' || name[i] == '>') {
                name_length = i;
            }
        }
    } else if (lac_frame_parse(text, length, &frame) &&
               lac_frame_owner_of(&frame) == LAC_FRAME_RUNTIME) {
        name = frame.function;
        name_length = frame.function_length;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(built_in) && name != NULL; i++) {
        if (text_is(name, name_length, built_in[i])) {
            return true;
        }
    }
    return false;
}
