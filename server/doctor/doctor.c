#include "server/doctor/doctor.h"

#include "collector/base/io_full.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lac_doctor_add(struct lac_doctor *doctor, const char *id, enum lac_doctor_state state,
                    const char *fix, const char *fmt, ...)
{
    struct lac_doctor_line *line;
    va_list args;

    if (doctor->line_count == LAC_DOCTOR_LINES_MAX) {
        return; /* more GPUs than lines: the count is in the first of them */
    }
    line = &doctor->line[doctor->line_count++];
    line->id = id;
    line->state = state;
    va_start(args, fmt);
    (void)vsnprintf(line->text, sizeof(line->text), fmt, args);
    va_end(args);
    (void)snprintf(line->fix, sizeof(line->fix), "%s", fix != NULL ? fix : "");
}

bool lac_doctor_read_all(const struct lac_doctor *doctor, const char *path, char *out,
                         size_t capacity_bytes)
{
    char full[4096];

    return (size_t)snprintf(full, sizeof(full), "%s%s", doctor->root, path) < sizeof(full) &&
           lac_read_text(full, out, capacity_bytes) > 0;
}

bool lac_doctor_read(const struct lac_doctor *doctor, const char *path, char *out,
                     size_t capacity_bytes)
{
    if (!lac_doctor_read_all(doctor, path, out, capacity_bytes)) {
        return false;
    }
    out[strcspn(out, "\n")] = '\0';
    return true;
}

const char *lac_doctor_bytes(uint64_t bytes)
{
    static char ring[4][24];
    static unsigned next;
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    char *text = ring[next++ % 4];
    double value = (double)bytes;
    unsigned unit = 0;

    while (value >= 1024 && unit < 5) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(text, sizeof(ring[0]), unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value,
                   units[unit]);
    return text;
}

void lac_doctor_run(struct lac_doctor *doctor)
{
    lac_doctor_gpus(doctor); /* first: others divide by the number of GPUs */
    lac_doctor_cores(doctor);
    lac_doctor_memory(doctor);
    lac_doctor_disk(doctor);
    lac_doctor_environment(doctor);
    lac_doctor_system(doctor);
    lac_doctor_sandbox(doctor);
    lac_doctor_reach(doctor);
}
