/* What PyTorch's profiler (Kineto) writes, from 2021 to today. */

#include "analysis/import/chrome/chrome.h"
#include "analysis/import/chrome/chrome_args.h"
#include "analysis/import/text/json_text.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <string.h>

/* Categories, compared without regard to case: 2021 wrote "Operator" and "Kernel". */
enum lac_event_class lac_kineto_class(const struct lac_json_span *category)
{
    static const struct {
        const char *name;
        enum lac_event_class event_class;
    } classes[] = {
        {"cpu_op", LAC_CLASS_OP},
        {"operator", LAC_CLASS_OP},
        {"kernel", LAC_CLASS_KERNEL},
        {"gpu_memcpy", LAC_CLASS_COPY},
        {"memcpy", LAC_CLASS_COPY},
        {"gpu_memset", LAC_CLASS_MEMSET},
        {"memset", LAC_CLASS_MEMSET},
        {"cuda_runtime", LAC_CLASS_API},
        {"cuda_driver", LAC_CLASS_API},
        {"runtime", LAC_CLASS_API},
        {"hip_runtime", LAC_CLASS_API},
        {"xpu_runtime", LAC_CLASS_API},
        {"xpu_driver", LAC_CLASS_API},
        {"mtia_runtime", LAC_CLASS_API},
        {"privateuse1_runtime", LAC_CLASS_API},
        {"privateuse1_driver", LAC_CLASS_API},
        {"user_annotation", LAC_CLASS_RANGE},
        {"gpu_user_annotation", LAC_CLASS_GPU_RANGE},
        {"python_function", LAC_CLASS_PYTHON},
        {"cuda_sync", LAC_CLASS_SYNC},
        {"cuda_event", LAC_CLASS_SYNC}, /* when a stream reached an event: it names the stream */
        {"overhead", LAC_CLASS_OVERHEAD},
        {"ac2g", LAC_CLASS_LAUNCH_ARROW},
        {"async", LAC_CLASS_LAUNCH_ARROW},
    };
    char lower[32];
    if (category->size_bytes >= sizeof(lower)) {
        return LAC_CLASS_OTHER;
    }
    for (uint32_t i = 0; i < category->size_bytes; i++) {
        uint8_t c = category->at[i];
        lower[i] = (char)(c >= 'A' && c <= 'Z' ? c + 0x20 : c);
    }
    lower[category->size_bytes] = 0;
    for (size_t i = 0; i < LAC_COUNT_OF(classes); i++) {
        if (strlen(classes[i].name) == category->size_bytes &&
            memcmp(classes[i].name, lower, category->size_bytes) == 0) {
            return classes[i].event_class;
        }
    }
    return LAC_CLASS_OTHER;
}

/* --- copies ------------------------------------------------------------------------------------*/

/* "M2D", "H2D", as Intel's tracer and XProf write it: M is the system's memory, H that of the host,
 * D the device's, S what both share and which lies on the device. */
static uint8_t short_copy_kind(const char *text)
{
    const bool is_kind = strchr("MHDS", text[0]) != NULL && text[0] != '\0' && text[1] == '2' &&
                         strchr("MHDS", text[2]) != NULL && text[2] != '\0';
    if (!is_kind) {
        return LAC_COPY_UNKNOWN;
    }
    const bool from_host = text[0] == 'M' || text[0] == 'H';
    const bool to_host = text[2] == 'M' || text[2] == 'H';
    return from_host ? (to_host ? LAC_COPY_HTOH : LAC_COPY_HTOD)
                     : (to_host ? LAC_COPY_DTOH : LAC_COPY_DTOD);
}

void lac_kineto_copy_name(const char *name, struct lac_copy *copy)
{
    static const struct {
        const char *text;
        uint8_t kind;
    } kinds[] = {{"HtoD", LAC_COPY_HTOD}, {"DtoH", LAC_COPY_DTOH}, {"DtoD", LAC_COPY_DTOD},
                 {"HtoH", LAC_COPY_HTOH}, {"PtoP", LAC_COPY_PTOP}, {"HtoA", LAC_COPY_HTOD},
                 {"AtoH", LAC_COPY_DTOH}, {"AtoA", LAC_COPY_DTOD}, {"AtoD", LAC_COPY_DTOD},
                 {"DtoA", LAC_COPY_DTOD}, {"P2P", LAC_COPY_PTOP}};
    const char *rest = strncmp(name, "Memcpy ", 7) == 0  ? name + 7
                       : strncmp(name, "MEMCPY", 6) == 0 ? name + 6
                       : strncmp(name, "Memcpy", 6) == 0 ? name + 6 /* XProf: "MemcpyH2D" */
                                                         : NULL;
    for (size_t i = 0; rest != NULL && i < LAC_COUNT_OF(kinds); i++) {
        if (strncmp(rest, kinds[i].text, 4) == 0) {
            copy->copy_kind = kinds[i].kind;
        }
    }
    if (rest != NULL && copy->copy_kind == LAC_COPY_UNKNOWN) {
        copy->copy_kind = short_copy_kind(rest);
    }
    const char *open = strchr(name, '(');
    const char *arrow = open != NULL ? strstr(open, " -> ") : NULL;
    const char *close = open != NULL ? strchr(arrow != NULL ? arrow : open, ')') : NULL;
    if (arrow != NULL && close != NULL) {
        copy->src = lac_memory_kind_of(open + 1, (size_t)(arrow - open - 1));
        copy->dst = lac_memory_kind_of(arrow + 4, (size_t)(close - arrow - 4));
    } else if (arrow == NULL && close != NULL && strncmp(name, "Memset", 6) == 0) {
        copy->dst = lac_memory_kind_of(open + 1, (size_t)(close - open - 1));
    }
}

/* --- top-level members ------------------------------------------------------------------------ */

static int64_t integer_of(const struct lac_member *arg, int64_t absent)
{
    int64_t value = absent;
    if (arg->kind == LAC_MEMBER_INTEGER) {
        return arg->integer;
    }
    if ((arg->kind == LAC_MEMBER_STRING || arg->kind == LAC_MEMBER_REAL) &&
        lac_decimal_scaled(arg->text, arg->text_size, 0, &value)) {
        return value;
    }
    return absent;
}

static int32_t int32_of(const struct lac_member *arg, int32_t absent)
{
    int64_t value = integer_of(arg, absent);
    return value < INT32_MIN || value > INT32_MAX ? absent : (int32_t)value;
}

static enum lac_status intern_arg(struct lac_chrome *chrome, const struct lac_member *arg,
                                  uint32_t *ret_id)
{
    struct lac_chrome_name name = {0, 0};
    struct lac_json_span text = {arg->text, (uint32_t)arg->text_size, false};
    enum lac_status status =
        arg->kind == LAC_MEMBER_STRING ? lac_chrome_intern(chrome, &text, &name) : LAC_OK;
    if (status == LAC_OK) {
        *ret_id = name.id;
    }
    return status;
}

static enum lac_status read_device(struct lac_chrome *chrome, const struct lac_member *object)
{
    struct lac_member_cursor cursor = lac_member_begin(object->text, object->text_size);
    struct lac_device device = {.id = -1};
    struct lac_member arg = {0};
    enum lac_status status = LAC_OK;
    while (status == LAC_OK && lac_member_next(&cursor, &arg)) {
        if (lac_member_is(&arg, "id")) {
            device.id = integer_of(&arg, -1);
        } else if (lac_member_is(&arg, "name")) {
            status = intern_arg(chrome, &arg, &device.name);
        } else if (lac_member_is(&arg, "computeMajor") || lac_member_is(&arg, "major")) {
            device.cc_major = int32_of(&arg, 0);
        } else if (lac_member_is(&arg, "computeMinor") || lac_member_is(&arg, "minor")) {
            device.cc_minor = int32_of(&arg, 0);
        } else if (lac_member_is(&arg, "numSms") || lac_member_is(&arg, "multiProcessorCount")) {
            device.sm_count = int32_of(&arg, 0);
        } else if (lac_member_is(&arg, "totalGlobalMem")) {
            device.memory_bytes = integer_of(&arg, 0);
        }
    }
    if (status != LAC_OK || device.id < 0 || device.id > UINT32_MAX ||
        chrome->model->device_count >= LAC_DEVICE_COUNT_MAX) {
        return status; /* names and sizes of what no driver would count */
    }
    struct lac_device *entry = lac_builder_device(chrome->builder, device.id);
    if (entry == NULL) {
        return lac_chrome_no_memory(chrome);
    }
    *entry = device;
    return LAC_OK;
}

static enum lac_status read_devices(struct lac_chrome *chrome, const char *json, size_t size)
{
    struct lac_member_cursor cursor = lac_member_begin(json, size);
    struct lac_member element = {0};
    enum lac_status status = LAC_OK;
    if (size < 2 || json[0] != '[') {
        return LAC_OK;
    }
    while (status == LAC_OK && lac_member_next_element(&cursor, &element)) {
        if (element.text_size && element.text[0] == '{') {
            status = read_device(chrome, &element);
        }
    }
    return status;
}

static enum lac_status read_distributed(struct lac_chrome *chrome, const char *json, size_t size)
{
    struct lac_trace_info *info = &chrome->model->info;
    struct lac_member_cursor cursor = lac_member_begin(json, size);
    struct lac_member arg = {0};
    enum lac_status status = LAC_OK;
    if (size < 2 || json[0] != '{') {
        return LAC_OK;
    }
    while (status == LAC_OK && lac_member_next(&cursor, &arg)) {
        if (lac_member_is(&arg, "rank")) {
            info->rank = int32_of(&arg, -1);
        } else if (lac_member_is(&arg, "world_size")) {
            info->world_size = int32_of(&arg, -1);
        } else if (lac_member_is(&arg, "backend")) {
            status = intern_arg(chrome, &arg, &info->backend);
        }
    }
    return status;
}

static void read_lacuna(struct lac_chrome *chrome, const char *json, size_t size)
{
    struct lac_member_cursor cursor = lac_member_begin(json, size);
    struct lac_member arg = {0};
    if (size < 2 || json[0] != '{') {
        return;
    }
    chrome->has_lacuna_mark = true;
    while (lac_member_next(&cursor, &arg)) {
        if (lac_member_is(&arg, "simulated")) {
            chrome->model->info.is_simulated =
                arg.text_size == 4 && memcmp(arg.text, "true", 4) == 0;
        }
    }
}

static bool key_is(const char *key, size_t key_size, const char *name)
{
    return strlen(name) == key_size && memcmp(key, name, key_size) == 0;
}

enum lac_status lac_kineto_member(struct lac_chrome *chrome, const char *key, size_t key_size,
                                  const char *json, size_t json_size)
{
    if (key_is(key, key_size, "deviceProperties") || key_is(key, key_size, "computeProperties")) {
        chrome->has_kineto_marks = true;
        return read_devices(chrome, json, json_size);
    }
    if (key_is(key, key_size, "schemaVersion")) {
        chrome->has_kineto_marks = true;
    }
    if (key_is(key, key_size, "distributedInfo")) {
        return read_distributed(chrome, json, json_size);
    }
    if (key_is(key, key_size, "lacuna")) {
        read_lacuna(chrome, json, json_size);
    }
    /* one member alone, read as if it were in an object */
    struct lac_member_cursor cursor = {(const uint8_t *)json, (const uint8_t *)json + json_size, 0};
    struct lac_member arg = {0};
    if (!lac_member_next_element(&cursor, &arg)) {
        return LAC_OK;
    }
    if (key_is(key, key_size, "baseTimeNanoseconds")) {
        chrome->base_ns = integer_of(&arg, 0);
    } else if (key_is(key, key_size, "host_name") || key_is(key, key_size, "hostname")) {
        return intern_arg(chrome, &arg, &chrome->model->info.host);
    } else if (key_is(key, key_size, "with_stack")) {
        chrome->has_kineto_marks = true;
    }
    return LAC_OK;
}
