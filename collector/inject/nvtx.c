/*
 * NVTX, version 3: every library of the process that carries NVTX asks for this once and then calls
 * the functions below. One table per library, so the entry point is called many times; the
 * functions and all their state are shared.
 */
#include "collector/base/count_of.h"
#include "collector/base/debug.h"
#include "collector/base/utf8.h"
#include "collector/inject/capture.h"
#include "collector/inject/gpu.h"
#include "collector/inject/nvtx_abi.h"
#include "collector/inject/nvtx_private.h"
#include "collector/inject/recorder.h"
#include "collector/inject/step_range.h"
#include "lacuna/spool.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <wchar.h>

#define LAC_EXPORT __attribute__((visibility("default")))

enum { RANGE_ID_BLOCK = 1 << 16, STRING_CHAINS = 4096, ARENA_BYTES = 1 << 18, ARENAS_MAX = 256 };

static struct lac_registered_string *strings[STRING_CHAINS]; /* under lac_lock() */

static struct lac_domain domains[LAC_DOMAINS_MAX];
static struct {
    char name[256];
    size_t length;
} domain_names[LAC_DOMAINS_MAX];
static uint32_t domain_count = 1; /* 0 is the default domain */
static uint64_t next_range_block = 1;

static size_t utf8_from_wide(const wchar_t *wide, char *out, size_t capacity)
{
    return lac_utf8_from_units(wide, sizeof(*wide), SIZE_MAX, out, capacity);
}

static uint32_t name_of_ascii(struct lac_thread *self, const char *text)
{
    return LAC_LIKELY(text != NULL) ? lac_recorder_name_z(self, text) : 0;
}

static uint32_t name_of_wide(struct lac_thread *self, const wchar_t *text)
{
    char utf8[LAC_NAME_BYTES_MAX];

    return text != NULL ? lac_recorder_name(self, utf8, utf8_from_wide(text, utf8, sizeof(utf8)))
                        : 0;
}

static bool reaches(const struct nvtx_attributes *attributes, size_t end)
{
    return attributes->size >= end;
}

static uint32_t name_of_attributes(struct lac_thread *self,
                                   const struct nvtx_attributes *attributes)
{
    const struct lac_registered_string *string;

    if (attributes == NULL || !reaches(attributes, sizeof(*attributes)) ||
        attributes->message == NULL) {
        return 0;
    }
    switch (attributes->message_type) {
    case NVTX_MESSAGE_ASCII:
        return name_of_ascii(self, attributes->message);
    case NVTX_MESSAGE_WIDE:
        return name_of_wide(self, attributes->message);
    case NVTX_MESSAGE_REGISTERED:
        string = attributes->message;
        return lac_recorder_name(self, string->text, string->length);
    default:
        return 0;
    }
}

/* The extra events that attributes ask for: payload, and color with category. */
static void put_attributes(struct lac_thread *self, const struct nvtx_attributes *attributes,
                           uint16_t domain, enum lac_event_type owner)
{
    if (attributes == NULL ||
        !reaches(attributes, offsetof(struct nvtx_attributes, message_type))) {
        return;
    }
    if (attributes->payload_type >= LAC_PAYLOAD_UINT64 &&
        attributes->payload_type <= LAC_PAYLOAD_FLOAT) {
        lac_recorder_put(self, attributes->payload, 0, 0, (uint8_t)attributes->payload_type,
                         LAC_EVENT_PAYLOAD);
    }
    if (attributes->color_type != 0 || attributes->category != 0) {
        lac_recorder_put(self, (uint64_t)attributes->color << 32 | attributes->category, 0, 0, 0,
                         LAC_EVENT_STYLE);
    }
    if (LAC_UNLIKELY(attributes->payload_type == NVTX_PAYLOAD_TYPE_SCHEMA) &&
        attributes->reserved > 0) {
        const struct nvtx_data *data;

        memcpy(&data, &attributes->payload, sizeof(attributes->payload)); /* it is a pointer then */
        lac_payload_put(self, domain, owner, data, (size_t)attributes->reserved);
    }
}

static void keep_sync(struct lac_thread *self, uint64_t now)
{
    if (LAC_UNLIKELY(now > self->next_sync_ticks)) {
        lac_recorder_sync(self);
    }
}

/* ---- push, pop, mark */

/* Inlined: without attributes little of it is left. */
__attribute__((always_inline)) static inline int push(struct lac_thread *self,
                                                      const struct lac_domain *domain,
                                                      uint32_t name,
                                                      const struct nvtx_attributes *attributes)
{
    const uint16_t index = lac_domain_index(domain);
    int depth = LAC_NVTX_NO_DEPTH;

    lac_capture_push(self, index, name);
    if (lac_recorder_opens(self, &self->depth[index], 3)) {
        const uint64_t now = lac_clock_now();

        lac_recorder_put(self, now, name, index, 0, LAC_EVENT_PUSH);
        put_attributes(self, attributes, index, LAC_EVENT_PUSH);
        keep_sync(self, now);
        depth = self->depth[index].open - 1;
    }
    lac_recorder_leave(self);
    return depth;
}

static int pop(const struct lac_domain *domain)
{
    struct lac_thread *const self = lac_recorder_enter();
    const uint16_t index = lac_domain_index(domain);
    int depth = LAC_NVTX_NO_DEPTH;

    if (LAC_UNLIKELY(self == NULL)) {
        return LAC_NVTX_NO_DEPTH;
    }
    if (LAC_LIKELY(lac_recorder_closes(self, &self->depth[index]))) {
        lac_recorder_put(self, lac_clock_now(), 0, index, 0, LAC_EVENT_POP);
        depth = self->depth[index].open;
    }
    lac_capture_pop(self, index);
    lac_recorder_leave(self);
    return depth;
}

static void mark(struct lac_thread *self, const struct lac_domain *domain, uint32_t name,
                 const struct nvtx_attributes *attributes)
{
    if (lac_recorder_room(self, 3)) {
        lac_recorder_put(self, lac_clock_now(), name, lac_domain_index(domain), 0, LAC_EVENT_MARK);
        put_attributes(self, attributes, lac_domain_index(domain), LAC_EVENT_MARK);
    }
    lac_recorder_leave(self);
}

static int push_a(const char *text)
{
    struct lac_thread *const self = lac_recorder_enter();

    return LAC_UNLIKELY(self == NULL) ? LAC_NVTX_NO_DEPTH
                                      : push(self, NULL, name_of_ascii(self, text), NULL);
}

static int push_w(const wchar_t *text)
{
    struct lac_thread *const self = lac_recorder_enter();

    return self == NULL ? LAC_NVTX_NO_DEPTH : push(self, NULL, name_of_wide(self, text), NULL);
}

static int domain_push_ex(const struct lac_domain *domain, const struct nvtx_attributes *attributes)
{
    struct lac_thread *const self = lac_recorder_enter();

    return self == NULL ? LAC_NVTX_NO_DEPTH
                        : push(self, domain, name_of_attributes(self, attributes), attributes);
}

static int push_ex(const struct nvtx_attributes *attributes)
{
    return domain_push_ex(NULL, attributes);
}

static int pop_default(void)
{
    return pop(NULL);
}

static void domain_mark_ex(const struct lac_domain *domain,
                           const struct nvtx_attributes *attributes)
{
    struct lac_thread *const self = lac_recorder_enter();

    if (self != NULL) {
        mark(self, domain, name_of_attributes(self, attributes), attributes);
    }
}

static void mark_ex(const struct nvtx_attributes *attributes)
{
    domain_mark_ex(NULL, attributes);
}

static void mark_a(const char *text)
{
    struct lac_thread *const self = lac_recorder_enter();

    if (self != NULL) {
        mark(self, NULL, name_of_ascii(self, text), NULL);
    }
}

static void mark_w(const wchar_t *text)
{
    struct lac_thread *const self = lac_recorder_enter();

    if (self != NULL) {
        mark(self, NULL, name_of_wide(self, text), NULL);
    }
}

/* ---- start, end: may be on different threads */

uint64_t lac_nvtx_range_id(struct lac_thread *self)
{
    if (self->next_range_id == self->end_range_id) {
        self->next_range_id =
            __atomic_fetch_add(&next_range_block, RANGE_ID_BLOCK, __ATOMIC_RELAXED);
        self->end_range_id = self->next_range_id + RANGE_ID_BLOCK;
    }
    return self->next_range_id++;
}

static uint64_t start(struct lac_thread *self, const struct lac_domain *domain, uint32_t name,
                      const struct nvtx_attributes *attributes)
{
    const bool is_captured = lac_capture_starts(self, name);
    uint64_t id = 0;

    if (lac_recorder_room(self, 4)) {
        id = lac_nvtx_range_id(self);
        lac_recorder_put(self, lac_clock_now(), name, lac_domain_index(domain), 0, LAC_EVENT_START);
        lac_recorder_put(self, id, 0, 0, 0, LAC_EVENT_ID);
        put_attributes(self, attributes, lac_domain_index(domain), LAC_EVENT_START);
    }
    if (LAC_UNLIKELY(is_captured)) {
        lac_capture_started(id);
    }
    if (LAC_UNLIKELY(lac_capture.looks_at_names)) {
        lac_step_started(self, name, id);
    }
    lac_recorder_leave(self);
    return id;
}

static uint64_t domain_start_ex(const struct lac_domain *domain,
                                const struct nvtx_attributes *attributes)
{
    struct lac_thread *const self = lac_recorder_enter();

    return self == NULL ? 0 : start(self, domain, name_of_attributes(self, attributes), attributes);
}

static uint64_t start_ex(const struct nvtx_attributes *attributes)
{
    return domain_start_ex(NULL, attributes);
}

static uint64_t start_a(const char *text)
{
    struct lac_thread *const self = lac_recorder_enter();

    return self == NULL ? 0 : start(self, NULL, name_of_ascii(self, text), NULL);
}

static uint64_t start_w(const wchar_t *text)
{
    struct lac_thread *const self = lac_recorder_enter();

    return self == NULL ? 0 : start(self, NULL, name_of_wide(self, text), NULL);
}

static void domain_end(const struct lac_domain *domain, uint64_t id)
{
    struct lac_thread *const self = id != 0 ? lac_recorder_enter() : NULL;

    if (self == NULL) {
        return;
    }
    if (lac_recorder_room_always(self, 2)) {
        lac_recorder_put(self, lac_clock_now(), 0, lac_domain_index(domain), 0, LAC_EVENT_END);
        lac_recorder_put(self, id, 0, 0, 0, LAC_EVENT_ID);
    }
    if (LAC_UNLIKELY(lac_capture.looks_at_names)) {
        lac_capture_ended(self, id);
    }
    lac_recorder_leave(self);
}

static void end_default(uint64_t id)
{
    domain_end(NULL, id);
}

/* ---- names */

static void put_name(const struct lac_domain *domain, uint64_t what, const char *text,
                     size_t length, uint8_t type)
{
    struct lac_thread *const self = lac_recorder_enter();

    if (self == NULL) {
        return;
    }
    if (lac_recorder_room_always(self, 1)) {
        lac_recorder_put_name(self, what, lac_recorder_name(self, text, length),
                              lac_domain_index(domain), type);
    }
    lac_recorder_leave(self);
}

static void put_name_w(const struct lac_domain *domain, uint64_t what, const wchar_t *text,
                       uint8_t type)
{
    char utf8[LAC_NAME_BYTES_MAX];

    if (text != NULL) {
        put_name(domain, what, utf8, utf8_from_wide(text, utf8, sizeof(utf8)), type);
    }
}

static void name_category(const struct lac_domain *domain, uint32_t category, const char *text,
                          size_t length)
{
    lac_categories_remember(lac_domain_index(domain), category, text, length);
    put_name(domain, category, text, length, LAC_EVENT_CATEGORY_NAME);
}

static void domain_name_category_a(const struct lac_domain *domain, uint32_t category,
                                   const char *text)
{
    if (text != NULL) {
        name_category(domain, category, text, strlen(text));
    }
}

static void domain_name_category_w(const struct lac_domain *domain, uint32_t category,
                                   const wchar_t *text)
{
    char utf8[LAC_NAME_BYTES_MAX];

    if (text != NULL) {
        name_category(domain, category, utf8, utf8_from_wide(text, utf8, sizeof(utf8)));
    }
}

static void name_category_a(uint32_t category, const char *text)
{
    domain_name_category_a(NULL, category, text);
}

static void name_category_w(uint32_t category, const wchar_t *text)
{
    domain_name_category_w(NULL, category, text);
}

static void name_thread_a(uint32_t tid, const char *text)
{
    if (text != NULL) {
        put_name(NULL, tid, text, strlen(text), LAC_EVENT_THREAD_NAME);
    }
}

/* ---- names of devices and streams */

static void name_device_a(int device, const char *text)
{
    if (text != NULL) {
        put_name(NULL, (uint32_t)device, text, strlen(text), LAC_EVENT_DEVICE_NAME);
    }
}

static void name_device_w(int device, const wchar_t *text)
{
    put_name_w(NULL, (uint32_t)device, text, LAC_EVENT_DEVICE_NAME);
}

/* A stream is a pointer here and a number in CUPTI's records; without CUPTI it has no row. */
static void name_stream(const void *stream, const char *text, size_t length)
{
    uint32_t device;
    uint32_t number;
    char setting[64];
    char value[257];

    if (lac_gpu_stream_number(stream, &device, &number)) {
        put_name(NULL, (uint64_t)device << 32 | number, text, length, LAC_EVENT_STREAM_NAME);
        return;
    }
    length = length < sizeof(value) ? length : sizeof(value) - 1;
    memcpy(value, text, length);
    value[length] = '\0';
    (void)snprintf(setting, sizeof(setting), "stream_name.%llu",
                   (unsigned long long)(uintptr_t)stream);
    lac_setting(setting, value);
}

static void name_stream_a(const void *stream, const char *text)
{
    if (text != NULL) {
        name_stream(stream, text, strlen(text));
    }
}

static void name_stream_w(const void *stream, const wchar_t *text)
{
    char utf8[LAC_NAME_BYTES_MAX];

    if (text != NULL) {
        name_stream(stream, utf8, utf8_from_wide(text, utf8, sizeof(utf8)));
    }
}

static void name_thread_w(uint32_t tid, const wchar_t *text)
{
    put_name_w(NULL, tid, text, LAC_EVENT_THREAD_NAME);
}

/* ---- domains and registered strings */

/* Small things that live forever, from mapped memory; the lock is held. */
void *lac_nvtx_allocate(size_t size_bytes)
{
    static char *arena;
    static size_t left;
    static unsigned count;
    void *memory;

    size_bytes = (size_bytes + 15) & ~(size_t)15;
    if (size_bytes > ARENA_BYTES || (left < size_bytes && count == ARENAS_MAX)) {
        return NULL;
    }
    if (left < size_bytes) {
        memory =
            mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return NULL;
        }
        arena = memory;
        left = ARENA_BYTES;
        count++;
    }
    memory = arena;
    arena += size_bytes;
    left -= size_bytes;
    return memory;
}

/* Registering the same text again returns the same handle. */
static struct lac_registered_string *find_string(uint32_t hash, const char *text, size_t length)
{
    struct lac_registered_string *string = strings[hash % STRING_CHAINS];

    while (string != NULL &&
           (string->length != length || memcmp(string->text, text, length) != 0)) {
        string = string->next;
    }
    return string;
}

static const void *register_string(const char *text, size_t length)
{
    struct lac_registered_string *string;
    uint32_t hash;

    length = length > LAC_NAME_BYTES_MAX ? LAC_NAME_BYTES_MAX : length;
    if (lac_lock_is_mine()) {
        return NULL; /* from a signal handler that interrupted us */
    }
    hash = lac_names_hash(text, length);
    lac_lock();
    string = find_string(hash, text, length);
    if (string == NULL) {
        string = lac_nvtx_allocate(sizeof(*string) + length + 1);
        if (string != NULL) {
            char *const copy = (char *)(string + 1);

            memcpy(copy, text, length);
            copy[length] = '\0';
            *string = (struct lac_registered_string){
                .text = copy, .length = length, .next = strings[hash % STRING_CHAINS]};
            strings[hash % STRING_CHAINS] = string;
        }
    }
    lac_unlock();
    return string;
}

static const void *domain_register_string_a(const struct lac_domain *domain, const char *text)
{
    (void)domain;
    return text != NULL ? register_string(text, strlen(text)) : NULL;
}

static const void *domain_register_string_w(const struct lac_domain *domain, const wchar_t *text)
{
    char utf8[LAC_NAME_BYTES_MAX];

    (void)domain;
    return text != NULL ? register_string(utf8, utf8_from_wide(text, utf8, sizeof(utf8))) : NULL;
}

static const struct lac_domain *domain_create(const char *name, size_t length)
{
    uint32_t index;

    length = length >= sizeof(domain_names[0].name) ? sizeof(domain_names[0].name) - 1 : length;
    if (lac_lock_is_mine()) {
        return NULL; /* from a signal handler that interrupted us: the default domain */
    }
    lac_lock();
    for (index = 1; index < domain_count; index++) {
        if (domain_names[index].length == length &&
            memcmp(domain_names[index].name, name, length) == 0) {
            break;
        }
    }
    if (index == domain_count) {
        if (domain_count == LAC_DOMAINS_MAX) {
            index = 0; /* too many: further ones share the default domain */
        } else {
            memcpy(domain_names[index].name, name, length);
            domain_names[index].length = length;
            domains[index].index = (uint16_t)index;
            domain_count++;
        }
    }
    lac_unlock();
    if (index != 0) {
        put_name(&domains[index], index, name, length, LAC_EVENT_DOMAIN_NAME);
    } else {
        lac_setting("nvtx_domains", "more than 255: ranges of the others stand without theirs");
    }
    return &domains[index];
}

void lac_domains_define(struct lac_thread *self)
{
    const uint32_t count = __atomic_load_n(&domain_count, __ATOMIC_ACQUIRE);

    for (uint32_t i = 1; i < count && lac_recorder_room_always(self, 1); i++) {
        lac_recorder_put_name(self, i,
                              lac_recorder_name(self, domain_names[i].name, domain_names[i].length),
                              (uint16_t)i, LAC_EVENT_DOMAIN_NAME);
    }
}

static const struct lac_domain *domain_create_a(const char *name)
{
    return domain_create(name != NULL ? name : "", name != NULL ? strlen(name) : 0);
}

static const struct lac_domain *domain_create_w(const wchar_t *name)
{
    char utf8[LAC_NAME_BYTES_MAX];

    return name != NULL ? domain_create(utf8, utf8_from_wide(name, utf8, sizeof(utf8)))
                        : domain_create("", 0);
}

static void domain_destroy(const struct lac_domain *domain)
{
    (void)domain; /* handles stay valid */
}

static void initialize(const void *reserved)
{
    (void)reserved;
}

/* ---- the tables */

struct hook {
    unsigned number;
    nvtx_function function;
};

#define HOOK(number, function)                                                                     \
    {                                                                                              \
        number, (nvtx_function)(function)                                                          \
    }
static const struct hook core_hooks[] = {
    HOOK(NVTX_CORE_MARK_EX, mark_ex),
    HOOK(NVTX_CORE_MARK_A, mark_a),
    HOOK(NVTX_CORE_MARK_W, mark_w),
    HOOK(NVTX_CORE_START_EX, start_ex),
    HOOK(NVTX_CORE_START_A, start_a),
    HOOK(NVTX_CORE_START_W, start_w),
    HOOK(NVTX_CORE_END, end_default),
    HOOK(NVTX_CORE_PUSH_EX, push_ex),
    HOOK(NVTX_CORE_PUSH_A, push_a),
    HOOK(NVTX_CORE_PUSH_W, push_w),
    HOOK(NVTX_CORE_POP, pop_default),
    HOOK(NVTX_CORE_NAME_CATEGORY_A, name_category_a),
    HOOK(NVTX_CORE_NAME_CATEGORY_W, name_category_w),
    HOOK(NVTX_CORE_NAME_THREAD_A, name_thread_a),
    HOOK(NVTX_CORE_NAME_THREAD_W, name_thread_w),
};
static const struct hook cuda_hooks[] = {
    HOOK(NVTX_CUDA_NAME_DEVICE_A, name_device_a),
    HOOK(NVTX_CUDA_NAME_DEVICE_W, name_device_w),
    HOOK(NVTX_CUDA_NAME_STREAM_A, name_stream_a),
    HOOK(NVTX_CUDA_NAME_STREAM_W, name_stream_w),
};
static const struct hook cudart_hooks[] = {
    HOOK(NVTX_CUDART_NAME_DEVICE_A, name_device_a),
    HOOK(NVTX_CUDART_NAME_DEVICE_W, name_device_w),
    HOOK(NVTX_CUDART_NAME_STREAM_A, name_stream_a),
    HOOK(NVTX_CUDART_NAME_STREAM_W, name_stream_w),
};
static const struct hook core2_hooks[] = {
    HOOK(NVTX_CORE2_MARK_EX, domain_mark_ex),
    HOOK(NVTX_CORE2_START_EX, domain_start_ex),
    HOOK(NVTX_CORE2_END, domain_end),
    HOOK(NVTX_CORE2_PUSH_EX, domain_push_ex),
    HOOK(NVTX_CORE2_POP, pop),
    HOOK(NVTX_CORE2_NAME_CATEGORY_A, domain_name_category_a),
    HOOK(NVTX_CORE2_NAME_CATEGORY_W, domain_name_category_w),
    HOOK(NVTX_CORE2_REGISTER_STRING_A, domain_register_string_a),
    HOOK(NVTX_CORE2_REGISTER_STRING_W, domain_register_string_w),
    HOOK(NVTX_CORE2_DOMAIN_CREATE_A, domain_create_a),
    HOOK(NVTX_CORE2_DOMAIN_CREATE_W, domain_create_w),
    HOOK(NVTX_CORE2_DOMAIN_DESTROY, domain_destroy),
    HOOK(NVTX_CORE2_INITIALIZE, initialize),
};

static void install(const struct nvtx_callbacks *callbacks, int module, const struct hook *hooks,
                    size_t hook_count)
{
    nvtx_function **table = NULL;
    unsigned count = 0;

    if (callbacks->get_module_table(module, &table, &count) == 0 || table == NULL) {
        LAC_DEBUG(NVTX, 1, "module %d: not in this program's NVTX", module);
        return;
    }
    LAC_DEBUG(NVTX, 1, "module %d: attached, a table of %u functions", module, count);
    for (size_t i = 0; i < hook_count; i++) {
        if (hooks[i].number < count) { /* older headers have shorter tables */
            lac_nvtx_take_slot(table[hooks[i].number], hooks[i].function);
        }
    }
}

LAC_EXPORT int InitializeInjectionNvtx2(nvtx_get_export_table get_export_table);

/** Called by NVTX, once per library that carries it. 0: we are not interested; it unloads us. */
int InitializeInjectionNvtx2(nvtx_get_export_table get_export_table)
{
    const struct nvtx_callbacks *callbacks;

    if (!lac_settings.enabled || get_export_table == NULL || lac_nvtx_has_let_go()) {
        return 0;
    }
    callbacks = get_export_table(NVTX_EXPORT_CALLBACKS);
    if (callbacks == NULL || callbacks->size_bytes < sizeof(*callbacks) ||
        callbacks->get_module_table == NULL) {
        LAC_DEBUG(NVTX, 1, "not attached: unknown version of NVTX in this program");
        return 0;
    }
    install(callbacks, NVTX_MODULE_CORE, core_hooks, LAC_COUNT_OF(core_hooks));
    install(callbacks, NVTX_MODULE_CORE2, core2_hooks, LAC_COUNT_OF(core2_hooks));
    install(callbacks, NVTX_MODULE_CUDA, cuda_hooks, LAC_COUNT_OF(cuda_hooks));
    install(callbacks, NVTX_MODULE_CUDART, cudart_hooks, LAC_COUNT_OF(cudart_hooks));
    return 1;
}

LAC_EXPORT int InitializeInjectionNvtxExtension(const struct nvtx_extension *extension);

/**
 * Called by NVTX once per library and extension. Payloads with a schema are recorded; of the others
 * (counters, memory) no slot is set, which turns their functions into no-ops. 1: stay loaded.
 */
int InitializeInjectionNvtxExtension(const struct nvtx_extension *extension)
{
    if (lac_settings.enabled && extension != NULL && !lac_nvtx_has_let_go() &&
        extension->module_id == NVTX_EXTENSION_PAYLOAD) {
        LAC_DEBUG(NVTX, 1, "payload extension: attached");
        lac_payload_install(extension);
    }
    return 1;
}
