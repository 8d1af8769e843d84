/* The age of PyTorch: its version, the day of the recording, the Python in its stacks. */

#include "analysis/diagnose/facts/recorded/torch_version.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Releases in order of enum lac_torch_release. The day is that of the release on GitHub, in seconds since
 * 1970; the Python is 3.N, the least that its packages were built for. */
static const struct {
    int major, minor;
    int64_t day_s;
    int python_minor;
    const char *text;
} releases[LAC_TORCH_RELEASE_COUNT_] = {
    {1, 12, 1656374400, 7, "  # from PyTorch 1.12"},
    {2, 0, 1678838400, 8, "  # from PyTorch 2.0"},
    {2, 3, 1713916800, 8, "  # from PyTorch 2.3"},
};

/* Before this, 2016, there was no PyTorch: such a time counts from the machine's start. */
#define FIRST_DAY_S INT64_C(1451606400)
#define NS_PER_S    INT64_C(1000000000)

/** The N of Python 3.N in a path of the standard folders, "lib/python3.7/site-packages"; 0 unknown. */
static int python_minor(const struct lac_model *model)
{
    static const char word[] = "/python3.";
    for (uint32_t id = 1; id < model->strings.count; id++) {
        const char *at = strstr(lac_model_str(model, id), word);
        char *end = NULL;
        long minor = at != NULL ? strtol(at + sizeof(word) - 1, &end, 10) : 0;
        if (minor > 0 && minor < 100 && *end == '/') {
            return (int)minor;
        }
    }
    return 0;
}

bool lac_torch_is_before(const struct lac_facts *facts, enum lac_torch_release release)
{
    const char *version =
        lac_setting_text(facts, "settings", "torch_version",
                         "0123456789.+abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    char *end = NULL;
    long major = strtol(version, &end, 10);
    if (end != version && *end == '.') {
        long minor = strtol(end + 1, NULL, 10);
        return major < releases[release].major ||
               (major == releases[release].major && minor < releases[release].minor);
    }
    int64_t day_s = facts->model->info.t0_ns / NS_PER_S;
    if (day_s >= FIRST_DAY_S && day_s < releases[release].day_s) {
        return true;
    }
    int python = python_minor(facts->model);
    return python > 0 && python < releases[release].python_minor;
}

const char *lac_torch_from(const struct lac_facts *facts, enum lac_torch_release release)
{
    return lac_torch_is_before(facts, release) ? releases[release].text : "";
}
