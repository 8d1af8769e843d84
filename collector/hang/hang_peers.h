#ifndef LAC_COLLECTOR_HANG_HANG_PEERS_H
#define LAC_COLLECTOR_HANG_HANG_PEERS_H

/*
 * The other launchers of a job: `srun lacuna run -- CMD` has one for each task, and each sees only its
 * own processes. In a quiet time they tell each other what these do, through small files in the folder
 * that holds the folders of all ranks:
 *
 *   BASE/task-0, BASE/task-1, ...            recordings
 *   BASE/.lacuna-hang/ask-task-1, say-task-0 what task 1 has to say, and asks for; what task 0 answers
 *
 * Who asks makes the folder; the last one that has nothing to say removes it. While the job goes on, a
 * launcher looks once a second whether that folder is there. No clock of another host counts: a file is
 * fresh when the number in it has changed lately.
 *
 * More than LAC_HANG_PEERS_EACH launchers do not all read each other: the one with the lowest number
 * reads all, judges, and tells the others.
 */

#include "collector/hang/hang_process.h"
#include "collector/hang/hang_said.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAC_HANG_PEERS_EACH = 64,
    LAC_HANG_PEERS_MAX = 1024, /**< that one launcher reads */
};

struct lac_hang_peers;

/** @param base  folder of all ranks
 * @param name  of this rank's folder in it, as "task-3"
 * @param scale of all times: 1 except in tests
 * @return NULL: no memory, or no such name */
struct lac_hang_peers *lac_hang_peers_create(const char *base, const char *name, double scale);

/** Takes back what was said. NULL is allowed. */
void lac_hang_peers_destroy(struct lac_hang_peers *peers);

/** Look what the others say, where it is time for that. A few system calls a second.
 *
 * @param is_quiet our processes stand still: what the others say is read */
void lac_hang_peers_look(struct lac_hang_peers *peers, uint64_t now_ns, bool is_quiet);

/** Whether another launcher asks. */
bool lac_hang_peers_is_asked(const struct lac_hang_peers *peers);

/** Say what our processes do; not oftener than once a second, unless something else is to be said.
 *
 * @param is_asking whether the others are to say the same
 * @param report    its number and host are set here */
void lac_hang_peers_tell(struct lac_hang_peers *peers, uint64_t now_ns, bool is_asking,
                         struct lac_hang_report *report, const struct lac_hang_process *processes,
                         uint32_t count);

/** We go on: nothing is said, and what the others said is forgotten. */
void lac_hang_peers_leave(struct lac_hang_peers *peers);

/** What another one says that is fresh: `i` counts from 0. @return NULL: there are no more */
const struct lac_hang_said *lac_hang_peers_at(const struct lac_hang_peers *peers, uint32_t i);

/** When the last progress in processes of the others was, at the earliest; 0: not known. */
uint64_t lac_hang_peers_progress_ns(const struct lac_hang_peers *peers);

/** The same of their last sign of life, which may be no progress. */
uint64_t lac_hang_peers_life_ns(const struct lac_hang_peers *peers);

/** What the one that judges says of the whole job; NULL: that is up to us. */
const struct lac_hang_said *lac_hang_peers_judge(const struct lac_hang_peers *peers);

/** Whether we judge for a job that is too large for each to read all. */
bool lac_hang_peers_judges_all(const struct lac_hang_peers *peers);

/** The name of our host. */
const char *lac_hang_peers_host(const struct lac_hang_peers *peers);

/** Those of which nothing is known: "nothing is heard of task-2 and 3 more; task-4 has ended"; ""
 * where all are. */
void lac_hang_peers_say_unknown(const struct lac_hang_peers *peers, char *text, size_t capacity);

#endif
