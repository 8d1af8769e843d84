/* Which cores are beside the GPUs, from a folder that looks like the kernel's. */
#include "collector/sample/gpu_cores.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/lacuna-test-XXXXXX";
static char cores[512];

static void put(const char *device, const char *file, const char *text)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, device);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof(path), "%s/%s/%s", folder, device, file);
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fprintf(out, "%s\n", text), 0);
    ck_assert_int_eq(fclose(out), 0);
}

static void put_device(const char *device, const char *vendor, const char *pci_class,
                       const char *local_cores)
{
    put(device, "vendor", vendor);
    put(device, "class", pci_class);
    put(device, "local_cpulist", local_cores);
}

static void begin(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void end(void)
{
    char command[PATH_MAX + 16];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(gpus_of_one_socket_have_its_cores)
{
    put_device("0000:00:1f.0", "0x8086", "0x030000", "0-127"); /* a display, but no GPU of theirs */
    put_device("0000:17:00.0", "0x10de", "0x030200", "0-31,64-95");
    put_device("0000:18:00.0", "0x10de", "0x030200", "0-31,64-95");
    put_device("0000:19:00.0", "0x10de", "0x068000", "32-63"); /* a switch */
    ck_assert(lac_gpu_local_cores(folder, cores, sizeof(cores)));
    ck_assert_str_eq(cores, "0-31,64-95");
}
END_TEST

START_TEST(gpus_of_two_sockets_say_nothing)
{
    put_device("0000:17:00.0", "0x10de", "0x030200", "0-31");
    put_device("0000:a0:00.0", "0x10de", "0x030000", "32-63");
    ck_assert(!lac_gpu_local_cores(folder, cores, sizeof(cores)));
}
END_TEST

START_TEST(a_host_without_gpus_says_nothing)
{
    put_device("0000:00:1f.0", "0x8086", "0x030000", "0-127");
    ck_assert(!lac_gpu_local_cores(folder, cores, sizeof(cores)));
    ck_assert(!lac_gpu_local_cores("/nowhere", cores, sizeof(cores)));
    ck_assert(!lac_gpu_local_cores(folder, cores, 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpu_cores");
    TCase *tests = tcase_create("cores beside GPUs");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, gpus_of_one_socket_have_its_cores);
    tcase_add_test(tests, gpus_of_two_sockets_say_nothing);
    tcase_add_test(tests, a_host_without_gpus_says_nothing);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
