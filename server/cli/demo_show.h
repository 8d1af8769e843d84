#ifndef LAC_SERVER_CLI_DEMO_SHOW_H
#define LAC_SERVER_CLI_DEMO_SHOW_H

#include <stdbool.h>
#include <stdint.h>

struct lac_demo_show {
    const char *listen; /**< ADDR:PORT of the page; port 0: any free port */
    uint64_t seed;
    bool opens; /**< show the page in a browser, too */
};

/**
 * `lacuna demo` without a folder: write the simulated series to a temporary folder, print the first
 * trace's report, serve all six and print the page's address. Runs `analyze`, `import` and `serve`
 * as children, until a signal ends it; then the folder is removed.
 *
 * @return the exit status; what failed is on stderr
 */
int lac_demo_show(const struct lac_demo_show *show);

#endif
