/*
 * Every function of NVTX that names or marks something, narrow and wide, from a program that uses
 * its own headers.
 */
#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "collector/inject/nvtx_abi.h"
#include "tests/support/check_main.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#if __has_include(<nvtx3/nvToolsExtPayload.h>) && __has_include(<nvtx3/nvToolsExtCudaRt.h>)
#include "tests/support/nvtx_job.h"

#include <dlfcn.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(NVTX_CORE_NAME_THREAD_W, NVTX_CBID_CORE_NameOsThreadW);
SAME(NVTX_CORE_POP, NVTX_CBID_CORE_RangePop);
SAME(NVTX_CORE2_INITIALIZE, NVTX_CBID_CORE2_Initialize);
SAME(NVTX_CORE2_REGISTER_STRING_W, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME(NVTX_CUDA_NAME_STREAM_A, NVTX_CBID_CUDA_NameCuStreamA);
SAME(NVTX_CUDA_NAME_DEVICE_W, NVTX_CBID_CUDA_NameCuDeviceW);
SAME(NVTX_CUDART_NAME_STREAM_W, NVTX_CBID_CUDART_NameCudaStreamW);
SAME(NVTX_MODULE_CUDA, NVTX_CB_MODULE_CUDA);
SAME(NVTX_MODULE_CUDART, NVTX_CB_MODULE_CUDART);
SAME(NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
_Static_assert(sizeof(struct nvtx_attributes) == sizeof(nvtxEventAttributes_t), "attributes");
_Static_assert(offsetof(struct nvtx_attributes, payload) ==
                   offsetof(nvtxEventAttributes_t, payload),
               "payload");

/* ---- narrow and wide */

static nvtxEventAttributes_t look(uint32_t category)
{
    return (nvtxEventAttributes_t){.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .category = category,
                                   .colorType = NVTX_COLOR_ARGB,
                                   .color = 0xff0a0b0c,
                                   .payloadType = NVTX_PAYLOAD_TYPE_FLOAT,
                                   .payload = {.fValue = 0.5F}};
}

static void *end_elsewhere(void *id)
{
    nvtxRangeEnd(*(nvtxRangeId_t *)id);
    return NULL;
}

static void job_texts(void)
{
    const nvtxDomainHandle_t narrow = begin();
    const nvtxDomainHandle_t wide = nvtxDomainCreateW(L"gr\u00fcn");
    nvtxEventAttributes_t attributes = look(3);
    nvtxRangeId_t id;
    pthread_t thread;

    nvtxInitialize(NULL);
    nvtxNameCategoryA(3, "narrow category");
    nvtxDomainNameCategoryW(wide, 4, L"wide \u00e4");
    nvtxMarkA("mark a");
    nvtxMarkW(L"mark \U0001f600");
    ck_assert_int_eq(nvtxRangePushA("push a"), 0);
    ck_assert_int_eq(nvtxRangePushW(L"push \u20ac"), 1);
    ck_assert_int_eq(nvtxRangePop(), 1);
    ck_assert_int_eq(nvtxRangePop(), 0);
    id = nvtxRangeStartW(L"start \u00fc");
    (void)pthread_create(&thread, NULL, end_elsewhere, &id);
    (void)pthread_join(thread, NULL);
    attributes.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    attributes.message.unicode = L"ex \u00f6";
    (void)nvtxRangePushEx(&attributes);
    (void)nvtxRangePop();
    attributes = look(4);
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = nvtxDomainRegisterStringW(wide, L"registered \u00df");
    ck_assert_ptr_eq(attributes.message.registered,
                     nvtxDomainRegisterStringW(wide, L"registered \u00df"));
    nvtxDomainMarkEx(wide, &attributes);
    attributes.message.registered = nvtxDomainRegisterStringA(narrow, "one that ends");
    nvtxDomainRangeEnd(narrow, nvtxDomainRangeStartEx(narrow, &attributes));
    nvtxDomainDestroy(narrow);
    (void)nvtxDomainRangePushEx(narrow, &attributes); /* too late, and no harm */
    (void)nvtxDomainRangePop(narrow);
    nvtxNameOsThreadW((uint32_t)syscall(SYS_gettid), L"m\u00e4in");
}

static uint64_t count_named(const char *name)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < imported->slices.count; i++) {
        count += strcmp(lac_model_str(imported, imported->slices.name[i]), name) == 0;
    }
    return count;
}

START_TEST(narrow_and_wide_texts_arrive_by_every_way)
{
    ck_assert_int_eq(lac_job_run(job_texts), 0);
    import_ok();
    check_args("mark a", "");
    check_args("mark \xf0\x9f\x98\x80", "");
    check_args("push a", "");
    check_args("push \xe2\x82\xac", "");
    check_args("start \xc3\xbc", "");
    check_args("ex \xc3\xb6",
               "{\"category\":\"narrow category\",\"color\":\"#0a0b0c\",\"payload\":0.5}");
    check_args("registered \xc3\x9f",
               "{\"domain\":\"gr\xc3\xbcn\",\"category\":\"wide \xc3\xa4\",\"color\":\"#0a0b0c\","
               "\"payload\":0.5}");
    ck_assert_uint_eq(count_named("one that ends"), 2);
    ck_assert_str_eq(lac_model_str(imported, imported->tracks[0].name), "m\xc3\xa4in");
    ck_assert_uint_eq(report_count("open_ranges"), 0);
}
END_TEST

/* ---- devices and streams */

static void job_gpu_names(void)
{
    char stand_in[4096];
    int (*initialize)(void);
    void (*deliver)(int launches, uint32_t thread, int drop);

    (void)snprintf(stand_in, sizeof(stand_in), "%s", lac_job_file("stand_in/libcupti_stand_in.so"));
    (void)setenv("LACUNA_CUPTI", stand_in, 1);
    (void)begin();
    nvtxNameCudaDeviceA(0, "the first");
    nvtxNameCudaStreamA((cudaStream_t)(uintptr_t)0xe000, "before CUDA began");
    *(void **)&initialize =
        dlsym(dlopen(lac_job_file("liblacuna.so"), RTLD_LAZY), "InitializeInjection");
    ck_assert_int_eq(initialize(), 1);
    *(void **)&deliver = dlsym(dlopen(stand_in, RTLD_LAZY), "stand_in_deliver");
    nvtxNameCudaStreamA((cudaStream_t)(uintptr_t)0x7000, "compute");
    nvtxNameCuStreamW((CUstream)(uintptr_t)0xe000, L"c\u00f6pies");
    nvtxNameCuStreamA((CUstream)(uintptr_t)0x63000, "never used");
    nvtxNameCuDeviceW(5, L"not there");
    deliver(5, (uint32_t)syscall(SYS_gettid), 0);
}

START_TEST(devices_and_streams_have_the_names_that_the_program_gave)
{
    unsigned streams = 0;

    ck_assert_int_eq(lac_job_run(job_gpu_names), 0);
    import_ok();
    for (uint32_t i = 0; i < imported->track_count; i++) {
        const struct lac_track *const track = &imported->tracks[i];

        if (track->kind == LAC_TRACK_STREAM) {
            ck_assert_str_eq(lac_model_str(imported, track->name),
                             track->tid == 7 ? "compute" : "c\xc3\xb6pies");
            ck_assert_str_eq(lac_model_str(imported, imported->processes[track->process].name),
                             "GPU 0: the first");
            streams++;
        }
    }
    ck_assert_uint_eq(streams, 2);
    ck_assert_uint_eq(imported->device_count, 1);
}
END_TEST
#endif

int main(void)
{
    Suite *const suite = suite_create("nvtx_names");
    TCase *const tcase = tcase_create("names");

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, lac_job_setup, lac_job_teardown);
#if __has_include(<nvtx3/nvToolsExtPayload.h>) && __has_include(<nvtx3/nvToolsExtCudaRt.h>)
    tcase_add_test(tcase, narrow_and_wide_texts_arrive_by_every_way);
    tcase_add_test(tcase, devices_and_streams_have_the_names_that_the_program_gave);
#else
    (void)printf("skip: no NVTX headers on this machine\n");
#endif
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
