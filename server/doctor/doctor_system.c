#include "server/doctor/doctor.h"

#include <stdio.h>
#include <string.h>
#include <sys/timex.h>

static void check_clock(struct lac_doctor *doctor)
{
    char source[64];
    struct timex state = {0};

    if (!lac_doctor_read(doctor, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                         source, sizeof(source))) {
        lac_doctor_add(doctor, "clock", LAC_DOCTOR_UNSEEN, NULL, "cannot see the clock source");
    } else if (strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0 ||
               strcmp(source, "jiffies") == 0) {
        lac_doctor_add(doctor, "clock", LAC_DOCTOR_AMBER,
                       "the kernel found the fast clock unstable: see dmesg | grep -i clocksource",
                       "clock source %s: reading the time costs a microsecond", source);
    } else {
        lac_doctor_add(doctor, "clock", LAC_DOCTOR_OK, NULL, "clock source %s", source);
    }
    if (adjtimex(&state) == TIME_ERROR || (state.status & STA_UNSYNC) != 0) {
        lac_doctor_add(doctor, "time", LAC_DOCTOR_AMBER,
                       "start chrony or systemd-timesyncd (not needed for a single node)",
                       "the clock is not synchronized: traces of several nodes will not line up");
    } else {
        lac_doctor_add(doctor, "time", LAC_DOCTOR_OK, NULL,
                       "the clock is synchronized, error below %.1f ms",
                       (double)state.maxerror / 1000);
    }
}

static void check_governor(struct lac_doctor *doctor)
{
    char governor[64];
    char driver[64] = "";

    if (!lac_doctor_read(doctor, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor,
                         sizeof(governor))) {
        lac_doctor_add(doctor, "governor", LAC_DOCTOR_UNSEEN, NULL,
                       "cannot see how the CPU clock is governed (usual in virtual machines)");
        return;
    }
    (void)lac_doctor_read(doctor, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", driver,
                          sizeof(driver));
    /* with these drivers "powersave" still follows the load */
    if (strcmp(governor, "powersave") == 0 && strcmp(driver, "intel_pstate") != 0 &&
        strncmp(driver, "amd-pstate", 10) != 0) {
        lac_doctor_add(doctor, "governor", LAC_DOCTOR_AMBER,
                       "cpupower frequency-set -g performance",
                       "the CPU is held at its lowest clock (governor powersave)");
    } else {
        lac_doctor_add(doctor, "governor", LAC_DOCTOR_OK, NULL, "CPU governor %s%s%s", governor,
                       driver[0] != '\0' ? ", driver " : "", driver);
    }
}

static void check_huge_pages(struct lac_doctor *doctor)
{
    char text[128];
    const char *chosen = NULL;

    if (lac_doctor_read(doctor, "/sys/kernel/mm/transparent_hugepage/enabled", text,
                        sizeof(text))) {
        chosen = strchr(text, '[');
    }
    if (chosen == NULL) {
        lac_doctor_add(doctor, "huge pages", LAC_DOCTOR_UNSEEN, NULL, "cannot see huge pages");
        return;
    }
    lac_doctor_add(doctor, "huge pages", LAC_DOCTOR_OK, NULL, "transparent huge pages: %.*s",
                   (int)strcspn(chosen + 1, "]"), chosen + 1);
}

void lac_doctor_system(struct lac_doctor *doctor)
{
    check_clock(doctor);
    check_governor(doctor);
    check_huge_pages(doctor);
}
