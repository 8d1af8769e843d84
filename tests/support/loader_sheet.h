#ifndef LAC_TESTS_SUPPORT_LOADER_SHEET_H
#define LAC_TESTS_SUPPORT_LOADER_SHEET_H

/*
 * A training loop with DataLoader workers, played event by event and drawn on the sheet of
 * trace_sheet.h: who fetches what when, when the batch can be taken, and the step that takes it.
 * Times are in us.
 */

#include <stdbool.h>

enum { LOOP_BATCHES_MAX = 2048, LOOP_WORKERS_MAX = 16 };

struct loop {
    int steps;
    int workers;
    double step;      /**< of the training process, with a kernel for most of it */
    double fetch;     /**< of a batch by a worker */
    double fetch_cpu; /**< of it computing; negative: not recorded */
    double slow;      /**< every `slow_every`-th batch takes as long */
    int slow_every;
    double hand_over; /**< from the end of a fetch until it can be taken */
    int epoch;        /**< steps; 0: one epoch */
    double start;     /**< a new worker needs as much longer for its first batch */
    bool is_locked;   /**< one worker at a time; the waiting is part of the fetch */
    bool shows_turns; /**< the waiting for the lock is not part of the fetch */
    double read;      /**< reading inside a fetch, in `files` files */
    double read_cpu;  /**< of it computing */
    int files;
    int file_bytes;
    int parts_until;   /**< parts of later batches are not recorded; 0: of all are */
    double copy_bytes; /**< to the device, a batch */
    bool has_no_gpu;
    double
        last_wait; /**< > 0: steps have no marks, the device is a step behind the training process,
                           and each epoch ends with a request that gets no batch and takes as long */
};

/** The whole loop on a blank sheet. */
void loop_draw(const struct loop *loop);

/** A blank sheet and a loop at time 0, for those who draw what workers do themselves. */
void loop_begin(void);

/** From when on a batch can be taken, for the next loop_step. */
void loop_ready(int batch, double at);

/** Wait for the batch, train on it. `of_all` counts on over epochs. */
void loop_step(const struct loop *loop, int of_all, int batch);

/** Where the training process is. */
double loop_now(void);

/** A little different each time, the same in every run. */
double loop_jittered(double length);

/** What the launcher would have sampled, ten times a second, of every worker's thread: percent of
 * the time on a core and waiting for one, MB/s. */
void loop_sample_workers(const struct loop *loop, double on_core, double ready, double storage);

#endif
