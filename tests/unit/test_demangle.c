/* Mangled C++ names: what they stand for, as the compiler's own library says, and hostile ones. */

#include "analysis/demangle/demangle.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lac_demangler *demangler;

static void setup(void)
{
    demangler = lac_demangler_create();
    ck_assert_ptr_nonnull(demangler);
}

static void teardown(void)
{
    lac_demangler_destroy(demangler);
}

/* The name, NUL-terminated; NULL: not understood. Valid until the next call. */
static const char *plain(const char *mangled)
{
    static char text[65537];
    size_t length = 0;
    const char *const name = lac_demangle(demangler, mangled, strlen(mangled), &length);

    if (name == NULL) {
        return NULL;
    }
    ck_assert_uint_lt(length, sizeof(text));
    memcpy(text, name, length);
    text[length] = '\0';
    return text;
}

START_TEST(names_as_a_programmer_wrote_them)
{
    static const struct {
        const char *mangled;
        const char *plain;
    } known[] = {
        {"_Z9transposePKfPfi", "transpose(float const*, float*, int)"},
        {"_Z4gemmPfS_i", "gemm(float*, float*, int)"},
        {"_ZN2at6native4fillIfEEvPT_i", "void at::native::fill<float>(float*, int)"},
        {"_ZN12_GLOBAL__N_16kernelILi4EdEEvPAT__T0_",
         "void (anonymous namespace)::kernel<4, double>(double (*) [4])"},
        {"_Z5applyIZ4mainEUliPfE_JiS0_EEvT_DpT0_",
         "void apply<main::{lambda(int, float*)#1}, int, float*>(main::{lambda(int, float*)#1}, "
         "int, float*)"},
        {"_Z5applyIFvfEJEEvRT_DpOT0_", "void apply<void (float)>(void (&)(float))"},
        {"_ZN3net4ReLUILb1ELm16EEclEPKfPfm",
         "net::ReLU<true, 16ul>::operator()(float const*, float*, unsigned long)"},
        {"_ZNK3net5LayerI6__halfEcvbEv", "net::Layer<__half>::operator bool() const"},
        {"_ZNSt6vectorIiSaIiEED2Ev", "std::vector<int, std::allocator<int> >::~vector()"},
        {"_ZN3net5LayerC1ERKS0_", "net::Layer::Layer(net::Layer const&)"},
        {"_ZZN3net3runERNS_4TaskEENKUlfE0_clEf",
         "net::run(net::Task&)::{lambda(float)#2}::operator()(float) const"},
        {"_ZN3netUt_1xE", "net::{unnamed type#1}::x"},
        {"_Z1fPFivE", "f(int (*)())"},
        {"_Z1fRA3_Ki", "f(int const (&) [3])"},
        {"_Z1fMN3net5LayerEKFivEPVKc", "f(int (net::Layer::*)() const, char const volatile*)"},
        {"_ZTVN3net5LayerE", "vtable for net::Layer"},
        {"_ZTv0_n24_N3net5Layer3runEv", "virtual thunk to net::Layer::run()"},
        {"_ZGVZN3net3runEvE5count", "guard variable for net::run()::count"},
        {"_Z3addIiEDTplfp_fp0_ET_S1_", "decltype ({parm#1}+{parm#2}) add<int>(int, int)"},
        {"_Z3addIJifcEEvDpT_", "void add<int, float, char>(int, float, char)"},
        {"_Z1fIXadL_ZN3net3runEfEEEvv", "void f<&net::run>()"},
        {"_Z1fIXgtLi2ELi1EEEvv", "void f<((2)>(1))>()"},
        {"_Z1fILN3net4KindE3EEvv", "void f<(net::Kind)3>()"},
        {"_Z1fILin5ELj6ELl7ELy8ELb0EEvv", "void f<-5, 6u, 7l, 8ull, false>()"},
        {"_Z1fILDn0EEvv", "void f<(decltype(nullptr))0>()"},
        {"_ZN3netlsERSoRKNS_5LayerE", "net::operator<<(std::ostream&, net::Layer const&)"},
        {"_ZNK3net5Layer4nameB5cxx11Ev", "net::Layer::name[abi:cxx11]() const"},
        {"_Z4partv.isra.0.cold", "part() [clone .isra.0] [clone .cold]"},
        {"_ZN4hold3newIiEEPT_v", "int* hold::new<int>()"},
        {"_Z1fDv4_fDF16_DF16b", "f(float __vector(4), _Float16, std::bfloat16_t)"},
        {"_ZN3net3runEOKS_", "net::run(net const&&)"},
        {"_Z1fIiEvT_OS0_RKS0_", "void f<int>(int, int&&, int const&)"},
        {"_Z1fIRiEvOT_", "void f<int&>(int&)"},
        {"_Z1fPFPFivEfE", "f(int (*(*)(float))())"},
        {"_ZNKR3net5Layer3runEv", "net::Layer::run() const &"},
        {"_ZZN3net3runEvEd_NKUlvE_clEv",
         "net::run()::{default arg#1}::{lambda()#1}::operator()() const"},
        {"_Z1fIJNSt5tupleIJiEEENS0_IJEEEEEvDpOT_",
         "void f<std::tuple<int>, std::tuple<> >(std::tuple<int>&&, std::tuple<>&&)"},
        {"_Z3sumIJEEvDpT_", "void sum<>()"},
        {"_Z1fILf40490fdbEEvv", "void f<(float)[40490fdb]>()"},
        {"_Z1fIiEvNSt9enable_ifIXsr7is_thisIT_EE5valueES1_E4typeE",
         "void f<int>(std::enable_if<is_this<int>::value, int>::type)"},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(known); i++) {
        ck_assert_str_eq(plain(known[i].mangled), known[i].plain);
    }
}
END_TEST

/* Every prefix of a name, and every name with one byte changed: none is read beyond its end. */
START_TEST(what_is_no_name_is_not_understood)
{
    static const char whole[] = "_ZZN3net3runERNS_4TaskEENKUlRKSt6vectorIiSaIiEEDpT_E0_clEf";
    static const char *const bad[] = {"",
                                      "_Z",
                                      "main",
                                      "_Z3",
                                      "_Z9short",
                                      "_Z1fS_",
                                      "_Z1fT_",
                                      "_Z1fIiEvT0_",
                                      "_ZN3netE3",
                                      "_Z99999999999999999999f",
                                      "_Z1fi ",
                                      "_Z3\xc3\xa4xv",
                                      "_Z1fSZZZZZZZZZZZZZZZZZZZZ_"};

    for (size_t i = 0; i < LAC_COUNT_OF(bad); i++) {
        ck_assert_msg(plain(bad[i]) == NULL, "%s", bad[i]);
    }
    for (size_t length = 0; length < strlen(whole); length++) {
        char *const cut = malloc(length + 1);
        size_t plain_length;

        memcpy(cut, whole, length);
        (void)lac_demangle(demangler, cut, length, &plain_length);
        for (size_t i = 2; i < length; i++) {
            cut[i] = (char)(cut[i] ^ (1 << (i % 6)));
            (void)lac_demangle(demangler, cut, length, &plain_length);
            cut[i] = (char)(cut[i] ^ (1 << (i % 6)));
        }
        free(cut);
    }
}
END_TEST

/* Each parameter is a pair of the one before it: 40 of them stand for 2^40 names. */
START_TEST(a_short_name_of_an_endless_text_is_refused)
{
    char bomb[1024] = "_Z1f1A4pairIS_S_E";
    size_t used = strlen(bomb);

    for (int i = 1; i < 36; i++) {
        static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

        used += (size_t)snprintf(bomb + used, sizeof(bomb) - used, "S0_IS%c_S%c_E", digits[i],
                                 digits[i]);
        if (i == 3) {
            ck_assert_ptr_nonnull(plain(bomb));
        }
    }
    ck_assert_ptr_null(plain(bomb));
    char deep[60000] = "_Z1f";
    memset(deep + 4, 'P', sizeof(deep) - 6);
    deep[sizeof(deep) - 2] = 'i';
    ck_assert_ptr_null(plain(deep));
    ck_assert_str_eq(plain("_Z1fi"), "f(int)"); /* the next one is read again */
}
END_TEST

/* A pack of many is used many times: each use looks for its element. */
START_TEST(packs_cost_no_more_than_their_limit)
{
    enum { ELEMENTS = 12000 };
    char *const name = malloc(65536);
    size_t used = (size_t)snprintf(name, 65536, "_Z1fIJ");
    const char *text;

    for (int i = 0; i < ELEMENTS; i++) {
        name[used++] = 'i';
    }
    used += (size_t)snprintf(name + used, 65536 - used, "EEvDpT_");
    name[used] = '\0';
    text = plain(name);
    ck_assert(text == NULL || strncmp(text, "void f<int, int", 15) == 0);
    free(name);
}
END_TEST

/* ---- beside the compiler's */

static const char *standard_library(size_t *ret_bytes)
{
    void *const library = dlopen("libstdc++.so.6", RTLD_NOW);
    struct link_map *map = NULL;
    const char *strings = NULL;

    if (library == NULL || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
        return NULL;
    }
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB) {
            strings = (const char *)entry->d_un.d_ptr; /* glibc has made it an address */
        } else if (entry->d_tag == DT_STRSZ) {
            *ret_bytes = entry->d_un.d_val;
        }
    }
    return strings;
}

/* GNU writes std::string in two ways and has clones of transactions; of the rest all are equal. */
START_TEST(names_of_the_standard_library_are_the_compiler_s)
{
    char *(*theirs)(const char *, char *, size_t *, int *);
    size_t bytes = 0;
    const char *const strings = standard_library(&bytes);
    unsigned equal = 0;
    unsigned other = 0;

    *(void **)&theirs = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    if (strings != NULL && theirs == NULL) {
        *(void **)&theirs = dlsym(dlopen("libstdc++.so.6", RTLD_NOW), "__cxa_demangle");
    }
    if (strings == NULL || theirs == NULL) {
        printf("SKIPPED: no libstdc++.so.6 to compare with\n");
        return;
    }
    for (const char *at = strings; at < strings + bytes; at += strlen(at) + 1) {
        int status = -1;
        char *expected = lac_is_mangled(at, strlen(at)) ? theirs(at, NULL, NULL, &status) : NULL;
        const char *const text = expected != NULL ? plain(at) : NULL;

        if (expected != NULL && strstr(expected, "std::basic_") == NULL &&
            strncmp(expected, "transaction clone", 17) != 0) {
            const bool is_equal = text != NULL && strcmp(text, expected) == 0;

            equal += is_equal;
            other += !is_equal;
            if (!is_equal) {
                printf("%s\n  ours:   %s\n  theirs: %s\n", at, text != NULL ? text : "none",
                       expected);
            }
        }
        free(expected);
    }
    ck_assert_uint_gt(equal, 1000);
    ck_assert_uint_le(other * 200, equal);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("demangle");
    TCase *const tests = tcase_create("names");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, names_as_a_programmer_wrote_them);
    tcase_add_test(tests, what_is_no_name_is_not_understood);
    tcase_add_test(tests, a_short_name_of_an_endless_text_is_refused);
    tcase_add_test(tests, packs_cost_no_more_than_their_limit);
    tcase_add_test(tests, names_of_the_standard_library_are_the_compiler_s);
    return check_main(suite);
}
