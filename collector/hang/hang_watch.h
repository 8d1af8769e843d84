#ifndef LAC_COLLECTOR_HANG_HANG_WATCH_H
#define LAC_COLLECTOR_HANG_HANG_WATCH_H

/*
 * Watches whether the job goes on, from the launcher: four looks a second at the processes' counts.
 * Where it does not, the processes are asked for their stacks, and the kernel about those that do not
 * answer; what is found stands in the recording (settings "hang.*") and in one line on stderr. The
 * job gets no signal and is not stopped.
 */

#include "collector/gather/drain.h"
#include "collector/sample/sampler.h"

#include <stdbool.h>

struct lac_hang_watch;

/** @param spool_folder where answers come; borrowed. @return NULL: out of memory */
struct lac_hang_watch *lac_hang_watch_create(const char *spool_folder, bool is_quiet);
/** NULL is allowed. */
void lac_hang_watch_destroy(struct lac_hang_watch *watch);

/** Other launchers of the job record into folders beside ours, BASE/NAME: hangs are judged together with
 * them. Without it a launcher judges alone. */
void lac_hang_watch_meet(struct lac_hang_watch *watch, const char *base, const char *name);

/** Who is told of alarms: `json` is the body of PUT /uploads/{id}/hang; NULL: the job goes on. It must not
 * wait. */
void lac_hang_watch_tell(struct lac_hang_watch *watch,
                         void (*tell)(void *context, const char *json), void *context);

/** Look, if it is time to. NULL is allowed for watch and sampler. */
void lac_hang_watch_round(struct lac_hang_watch *watch, struct lac_drain *drain,
                          struct lac_sampler *sampler);

#endif
