#ifndef LAC_TESTS_SUPPORT_RECORDED_JOB_H
#define LAC_TESTS_SUPPORT_RECORDED_JOB_H

/* A process that plays a recorded job with the real liblacuna.so in it, and the trace that it
 * leaves. */

#include "analysis/model/model.h"

/** Make a fresh spool folder. */
void lac_job_setup(void);
/**
 * The same, in a network of this process's own where that is allowed: which launcher samples the
 * host is settled by a name in it, so no launcher of anybody else is met.
 */
void lac_job_setup_alone(void);
/** Remove it and the imported model. */
void lac_job_teardown(void);

/** Run `body` in a process of its own with the recorder's variables set; its wait status. */
int lac_job_run(void (*body)(void));

/** A file of the build folder that this test program is in, as "liblacuna.so". Static storage. */
const char *lac_job_file(const char *name);
/** The spool folder. */
const char *lac_job_folder(void);
/** How many spools it holds. */
int lac_job_spool_count(void);

/** Import the spools; NULL when that fails, which `reterr` explains. Freed by teardown or the next
 * import. */
struct lac_model *lac_job_import(struct lac_error *reterr);

#endif
