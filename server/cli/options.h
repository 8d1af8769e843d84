#ifndef LAC_SERVER_CLI_OPTIONS_H
#define LAC_SERVER_CLI_OPTIONS_H

/*
 * Options of the commands: the flag decides, then the LACUNA_* variable, then the configuration
 * file ($XDG_CONFIG_HOME/lacuna/config, ~/.config/lacuna/config, then /etc/lacuna/config), then
 * the default.
 *
 * A command describes its options in a table; from "--keep-originals" follow the variable
 * LACUNA_KEEP_ORIGINALS and the configuration key keep-originals (keep_originals is the same).
 *
 *     static const struct lac_option table[] = {
 *         {.name = "data", .value = "DIR", .help = "the data folder"},
 *         {.name = "json", .help = "print JSON"},
 *         {0},
 *     };
 *     struct lac_options options;
 *     int status = lac_options_parse(&options, table, usage, argc, argv);
 *     if (status >= 0) { lac_options_done(&options); return status; }
 *
 * Accepted forms: --name VALUE, --name=VALUE, --switch, --no-switch, "--" (the rest are operands).
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One option. The table ends with a row whose name is NULL. */
struct lac_option {
    const char *name;  /**< without the dashes */
    char letter;       /**< short form, 0 none */
    const char *value; /**< what --help calls its value; NULL: a switch (on/off) */
    const char *help;  /**< one line; NULL: not shown */
    bool flag_only;    /**< neither variable nor configuration file */
};

enum { LAC_OPTIONS_MAX = 64 };

/** What was given. All strings are owned here or point into argv. */
struct lac_options {
    const struct lac_option *table;
    const char *value[LAC_OPTIONS_MAX]; /**< as text, NULL when not given; switches "1" or "0" */
    char **operands;                    /**< into argv */
    int operand_count;
    char *config_text; /**< owned: values from the file point into it */
};

/**
 * Parse. Handles --help (prints usage and the table to stdout) and wrong usage (one line on
 * stderr).
 *
 * @param usage  "lacuna import PATH... [--data DIR]" and, after a newline, what it does
 * @return -1 to go on; otherwise the exit status to return (0 after --help, 2 wrong usage)
 */
LAC_MUST_USE int lac_options_parse(struct lac_options *options, const struct lac_option *table,
                                   const char *usage, int argc, char **argv);

/** Free what parse allocated; a zeroed struct is allowed. */
void lac_options_done(struct lac_options *options);

/** The text of option `name`, or `fallback` when it was not given anywhere. */
const char *lac_options_text(const struct lac_options *options, const char *name,
                             const char *fallback);

/** Whether a switch is on ("1", "true", "yes", "on"). */
bool lac_options_on(const struct lac_options *options, const char *name, bool fallback);

/**
 * A whole number, with K M G T (powers of 1024) allowed behind it ("512M").
 * @return false, with one line on stderr, when it is no number or outside [min, max]
 */
LAC_MUST_USE bool lac_options_number(const struct lac_options *options, const char *name,
                                     uint64_t min, uint64_t max, uint64_t fallback,
                                     uint64_t *ret_value);

/**
 * The data folder: option "data" (LACUNA_DATA), else $XDG_DATA_HOME/lacuna, else
 * ~/.local/share/lacuna. @return false, with one line on stderr, when there is no home.
 */
LAC_MUST_USE bool lac_options_data_dir(const struct lac_options *options, char *out,
                                       size_t capacity_bytes);

#endif
