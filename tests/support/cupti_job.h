#ifndef LAC_TESTS_SUPPORT_CUPTI_JOB_H
#define LAC_TESTS_SUPPORT_CUPTI_JOB_H

/* A recorded job that uses the stand-in for libcupti (tests/stand_in): recorded_job.h runs it. */

#include "analysis/model/model.h"
#include "collector/inject/api.h"
#include "lacuna/spool.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- in the job */

/** What libcuda does in cuInit: load the library that CUDA_INJECTION64_PATH names, and call it. */
void lac_cupti_initialize(void);
/** The stand-in returns so many launches; after lac_cupti_initialize(). */
extern void (*lac_cupti_deliver)(int launches, uint32_t thread, int drop);
/** A function of the stand-in; ends the process where there is none. */
void *lac_cupti_stand_in(const char *name);
/** What the recorder offers to the hook. */
const struct lacuna_api *lac_cupti_api(void);
/** The header of the process's own spool, as a launcher sees it. */
struct lac_spool_header *lac_cupti_own_header(void);

/* ---- afterwards */

/** Of lac_cupti_import(). */
extern struct lac_model *lac_cupti_model;
/** Import what the job left; the test fails when that fails. */
void lac_cupti_import(void);
uint64_t lac_cupti_count(enum lac_slice_kind kind);
bool lac_cupti_says(const char *text); /**< in the settings, as JSON */

#endif
