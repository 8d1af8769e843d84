#include "server/doctor/doctor.h"
#include "server/ingest/sandbox.h"

#include <stddef.h>

void lac_doctor_sandbox(struct lac_doctor *doctor)
{
    const struct lac_sandbox sandbox = lac_sandbox_probe();
    char text[64];

    lac_sandbox_describe(&sandbox, text, sizeof(text));
    if (sandbox.landlock_version > 0 && sandbox.has_seccomp) {
        lac_doctor_add(doctor, "sandbox", LAC_DOCTOR_OK, NULL, "the server imports under %s", text);
    } else if (sandbox.has_seccomp) {
        lac_doctor_add(doctor, "sandbox", LAC_DOCTOR_AMBER,
                       "Linux 5.13 or newer with landlock among the kernel's lsm=...; or let root "
                       "start the server, which then imports as nobody",
                       "imports run under %s, but without Landlock: they can read what the server "
                       "can",
                       text);
    } else {
        lac_doctor_add(doctor, "sandbox", LAC_DOCTOR_AMBER,
                       "allow prctl(PR_SET_SECCOMP) and landlock in the container's profile",
                       "imports run without a seccomp filter%s%s",
                       text[0] != '\0' ? ", under " : " or Landlock", text);
    }
}
