/* See many_runs.h. */

#include "tests/support/many_runs.h"

#include "server/store/journal_rows.h"

#include <stdio.h>

/** The id of a number: 26 digits. */
#define ID_OF(number) "'0000000000000000' || substr('' || (10000000000 + " number "), 2)"
#define EACH          "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %u)"

enum lac_status lac_many_runs_write(struct lac_db *catalog, unsigned count,
                                    struct lac_error *reterr)
{
    static const char form[] =
        "BEGIN;"
        "INSERT INTO projects(id, name, created_ms) VALUES(77, 'many', 0);" EACH
        " INSERT INTO traces(id, project, name, state, created_ms, generation, step_mean_ns,"
        " throughput_per_s, throughput_unit, host, device_names, not_computing_pct, cause)"
        " SELECT " ID_OF(
            "i") ", 77, 'run ' || i, 2, i, 1, 200000000 + i, 1280.0, 'samples',"
                 " 'node' || (i %% 16), 'NVIDIA H100', 31.5, 'data_wait' FROM n;"
                 "INSERT INTO labels(trace, notes, tags) SELECT id, 'notes of ' || name, 'a\nb'"
                 " FROM traces WHERE created_ms %% 5 = 0;"
                 "INSERT INTO figures SELECT id, %d, 1, (1000000 - created_ms) * 3600000, 'person "
                 "' ||"
                 " (created_ms %% 12), 'train.py', 19.1 + 1e-9 * created_ms, 1e-6, 50, 7, "
                 "3600000000000,"
                 " '2160000000000,360000000000,0,0,1080000000000,0,0,0,0,0,0,0,0,0,0', 1.0,"
                 " '{\"command_line\":\"python train.py ' || '%0400d' || '\"}', 40.0"
                 " FROM traces;"
                 "INSERT INTO figure_settings SELECT id, 'batch_size', '256' FROM traces;"
                 "INSERT INTO figure_settings SELECT id, 'num_workers', created_ms %% 3 FROM "
                 "traces;"
                 "INSERT INTO neighbors SELECT id, " ID_OF(
                     "created_ms + 1") ", %d, 10.0, 9.0,"
                                       " '{\"trace\":\"' || " ID_OF(
                                           "created_ms + 1") " || '\",\"changed\":\"' ||"
                                                             " '%0800d' || '\"}' FROM traces WHERE "
                                                             "created_ms < %u;"
                                                             "INSERT INTO baselines "
                                                             "VALUES('many', " ID_OF("%u") ");"
                                                                                           "COMMIT";
    char sql[sizeof(form) + 1400];

    (void)snprintf(sql, sizeof(sql), form, count - 1, LAC_FIGURES_VERSION, 0, LAC_FIGURES_VERSION,
                   0, count - 1, count - 1);
    return lac_db_run(catalog, sql, reterr);
}
