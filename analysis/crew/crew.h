#ifndef LAC_ANALYSIS_CREW_H
#define LAC_ANALYSIS_CREW_H

/*
 * Threads that help with work which can be divided. What comes out never depends on how many there
 * are: parts do not know of each other, and whoever divides the work puts their results together in
 * the order of the parts.
 *
 *   lac_crew_run(crew, 7, part, work)      part(work, 0) ... part(work, 6), each once, on any thread
 *   lac_crew_begin(crew, &job, ...)        the same while the caller does something else,
 *   lac_crew_end(crew, &job)               until it helps with what is left, and waits
 *
 * Without a crew (NULL), or where no thread could be started, the caller does all of it.
 * A part is worth handing over from some 50 us on.
 */

#include <stdbool.h>
#include <stdint.h>

enum { LAC_CREW_HELPERS_MAX = 7 };

struct lac_crew;

/** A part of the work, from 0 on. Parts run at the same time. */
typedef void (*lac_crew_part)(void *context, uint32_t part);

/** What each helper does first; one for which it says false takes no work. May be NULL. */
typedef bool (*lac_crew_enter)(void *context);

/** Work under way. Belongs to the caller, who must not touch it between begin and end. */
struct lac_crew_job {
    lac_crew_part part;
    void *context;
    uint32_t count; /**< parts */
    uint32_t taken, done;
    struct lac_crew_job *later;
};

/** Helpers that the cores of this process allow: one less than there are, at most `most`. */
unsigned lac_crew_helpers(unsigned most);

/**
 * Start helpers; fewer than asked for where the system refuses.
 *
 * @param enter_context passed to `enter`
 * @return true, also without any helper; false: out of memory
 */
__attribute__((warn_unused_result)) bool lac_crew_create(unsigned helper_count,
                                                         lac_crew_enter enter, void *enter_context,
                                                         struct lac_crew **ret_crew);

/** Ends and joins the helpers; no job may be under way. NULL is ignored. */
void lac_crew_destroy(struct lac_crew *crew);

/** Threads that were started. */
unsigned lac_crew_size(const struct lac_crew *crew);

/** All parts, before it returns. A part may run jobs of its own. */
void lac_crew_run(struct lac_crew *crew, uint32_t count, lac_crew_part part, void *context);

/** Hand over work. Every job that was begun is ended, by the same thread. */
void lac_crew_begin(struct lac_crew *crew, struct lac_crew_job *job, uint32_t count,
                    lac_crew_part part, void *context);
void lac_crew_end(struct lac_crew *crew, struct lac_crew_job *job);

#endif
