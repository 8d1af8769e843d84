#ifndef LAC_SERVER_CLI_OWN_NAMES_H
#define LAC_SERVER_CLI_OWN_NAMES_H

/*
 * Names of kernels that a site adds without a release: option "names" (LACUNA_NAMES), else
 * $XDG_CONFIG_HOME/lacuna/names or ~/.config/lacuna/names where there is one. The form is that of
 * analysis/diagnose/names/name_table.def.
 */

#include "analysis/diagnose/names/names.h"
#include "analysis/model/status.h"
#include "server/cli/options.h"

/** The row of the option for a command's table. */
#define LAC_OPTION_NAMES                                                                           \
    {                                                                                              \
        .name = "names", .value = "FILE", .help = "more names of kernels"                          \
    }

struct lac_own_names {
    struct lac_names *names; /**< NULL: none */
    char *text;              /**< the file, NULL: none */
};

/**
 * Read and check the file.
 *
 * @param command "lacuna analyze": begins the line on stderr that says what is wrong
 * @return LAC_OK (also without a file), or a failure that stderr was told
 */
LAC_MUST_USE enum lac_status lac_own_names_read(const char *command,
                                                const struct lac_options *options,
                                                struct lac_own_names *ret_own);
/** A zeroed struct is allowed. */
void lac_own_names_done(struct lac_own_names *own);

#endif
