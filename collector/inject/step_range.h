#ifndef LAC_COLLECTOR_INJECT_STEP_RANGE_H
#define LAC_COLLECTOR_INJECT_STEP_RANGE_H

/*
 * LACUNA_STEP=NAME (`run --step`): a range of this name is one step of the training, whoever opens it:
 * NVTX, lacuna.annotate, or the hook around a function of that name. It counts when it ends, also
 * while recording pauses; one inside another is the same step. Other steps do not count then: those
 * of optimizers and frameworks.
 */

#include "collector/inject/recorder.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAC_STEP_NAME_BYTES = 256 };

/** Of LACUNA_STEP; 0: there is none. */
extern uint32_t lac_step_name_length;

/** The variable, once at load. */
void lac_step_read(void);

/* For callers inside of the recorder, where there is such a name; `name` is an id of this process. */
void lac_step_pushed(struct lac_thread *self, uint16_t domain, uint32_t name);
void lac_step_popped(struct lac_thread *self, uint16_t domain);
/** A range that may end on any thread; `id` 0: its end will not be known. */
void lac_step_started(struct lac_thread *self, uint32_t name, uint64_t id);
void lac_step_ended(struct lac_thread *self, uint64_t id);

/** A step of the thread has ended. */
void lac_step_count(const struct lac_thread *self);

#endif
