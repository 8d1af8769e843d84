#include "tests/support/loader_sheet.h"

#include "tests/support/trace_sheet.h"

#include <math.h>
#include <string.h>

/** When things happen in the loop. */
static struct {
    double t; /* the training process */
    double worker_free[LOOP_WORKERS_MAX];
    double lock_free;
    double gpu_free;
    double taken[LOOP_BATCHES_MAX];
    double ready[LOOP_BATCHES_MAX];
    int worker_process[LOOP_WORKERS_MAX];
    int processes;
    double jitter;
} now;

double loop_jittered(double length)
{
    now.jitter = fmod(now.jitter * 1.618 + 0.37, 1.0);
    return length * (0.97 + 0.06 * now.jitter);
}

static void draw_reads(const struct loop *loop, int process, int batch, int worker, double start)
{
    double each = loop->read / loop->files;
    for (int f = 0; f < loop->files; f++) {
        double at = start + 1.0 + each * f;
        sheet_add("w%d part %.3f %.3f loader.read batch=%d worker=%d cpu=%d\n", process, at,
                  each * 0.3, batch, worker, (int)(loop->read_cpu / loop->files * 0.3));
        sheet_add("w%d part %.3f %.3f loader.read batch=%d worker=%d cpu=%d bytes=%d\n", process,
                  at + each * 0.3, each * 0.69, batch, worker,
                  (int)(loop->read_cpu / loop->files * 0.7), loop->file_bytes);
    }
}

/** Batch `b` of an epoch that began at `begin`; `of_all` counts on over epochs. */
static void fetch_batch(const struct loop *loop, int b, int of_all, double begin)
{
    int worker = b % loop->workers;
    int ahead = 2 * loop->workers;
    double start = b < ahead ? begin + 10.0 * worker : now.taken[of_all - ahead];
    start = fmax(start, now.worker_free[worker]);
    bool is_slow = loop->slow_every > 0 && of_all % loop->slow_every == loop->slow_every - 1;
    double length = loop_jittered(is_slow ? loop->slow : loop->fetch);
    length += b < loop->workers ? loop->start : 0.0;
    double begins = start;
    if (loop->is_locked || loop->shows_turns) {
        begins = fmax(start, now.lock_free);
        now.lock_free = begins + length;
    }
    double end = begins + length;
    double shown = loop->shows_turns ? begins : start;
    int process = now.worker_process[worker];
    if (loop->fetch_cpu >= 0.0) {
        sheet_add("w%d fetch %.3f %.3f batch=%d worker=%d cpu=%d\n", process, shown, end - shown, b,
                  worker, (int)loop->fetch_cpu);
    } else {
        sheet_add("w%d fetch %.3f %.3f batch=%d worker=%d\n", process, shown, end - shown, b,
                  worker);
    }
    if (loop->files > 0 && (loop->parts_until == 0 || b < loop->parts_until)) {
        draw_reads(loop, process, b, worker, shown);
    }
    if (loop->parts_until > 0) { /* recorded always */
        sheet_add("w%d part %.3f %.3f loader.collate batch=%d worker=%d\n", process, end - 100.0,
                  90.0, b, worker);
    }
    now.worker_free[worker] = end;
    now.ready[of_all] = end + loop->hand_over;
}

void loop_begin(void)
{
    sheet_blank();
    memset(&now, 0, sizeof(now));
    now.jitter = 0.5;
}

void loop_ready(int batch, double at)
{
    now.ready[batch] = at;
}

double loop_now(void)
{
    return now.t;
}

/** The training process launches, and then waits for the step before. */
static void step_behind(const struct loop *loop, int of_all, int batch)
{
    double wait = fmax(2.0, now.ready[of_all] - now.t);
    double before = now.gpu_free;
    sheet_add("main wait %.3f %.3f batch=%d\n", now.t, wait, batch);
    now.t += wait;
    now.taken[of_all] = now.t;
    sheet_add("main call %.3f 5 #%d cudaLaunchKernel\n", now.t + 10.0, of_all + 1);
    double start = fmax(now.t + 20.0, now.gpu_free + 1.0);
    sheet_add("gpu0.7 kernel %.3f %.3f #%d a_backward\n", start, loop->step, of_all + 1);
    now.gpu_free = start + loop->step;
    double until = fmax(before, now.t + 30.0) + 5.0;
    sheet_add("main call %.3f %.3f cudaEventSynchronize\n", now.t + 20.0, until - now.t - 20.0);
    sheet_add("main op %.3f 10 Optimizer.step#SGD.step\n", until + 5.0);
    now.t = until + 20.0;
}

void loop_step(const struct loop *loop, int of_all, int batch)
{
    if (loop->last_wait > 0.0) {
        step_behind(loop, of_all, batch);
        return;
    }
    double wait = fmax(2.0, now.ready[of_all] - now.t);
    sheet_add("main range %.3f %.3f ProfilerStep#%d\n", now.t, wait + loop->step, of_all);
    sheet_add("main wait %.3f %.3f batch=%d\n", now.t, wait, batch);
    now.t += wait;
    now.taken[of_all] = now.t;
    if (!loop->has_no_gpu) {
        double at = now.t + 10.0;
        if (loop->copy_bytes > 0.0) {
            sheet_add("main call %.3f 5 #%d cudaMemcpyAsync\n", at - 8.0, of_all * 2 + 2);
            sheet_add("gpu0.7 copy %.3f 40 #%d HtoD pinned %.0f\n", at, of_all * 2 + 2,
                      loop->copy_bytes);
            at += 41.0;
        }
        sheet_add("main call %.3f 5 #%d cudaLaunchKernel\n", at - 2.0, of_all * 2 + 1);
        sheet_add("gpu0.7 kernel %.3f %.3f #%d a_backward\n", at + 4.0, loop->step - 80.0,
                  of_all * 2 + 1);
        sheet_add("main call %.3f %.3f cudaStreamSynchronize\n", at + 8.0,
                  now.t + loop->step - 30.0 - at);
    } else {
        sheet_add("main op %.3f 20 autograd::engine::evaluate_function: AddmmBackward0\n",
                  now.t + 5.0);
    }
    sheet_add("main op %.3f 10 Optimizer.step#SGD.step\n", now.t + loop->step - 20.0);
    now.t += loop->step;
}

void loop_draw(const struct loop *loop)
{
    loop_begin();
    int epoch = loop->epoch > 0 ? loop->epoch : loop->steps;
    for (int first = 0; first < loop->steps; first += epoch) {
        double begin = now.t;
        int count = loop->steps - first < epoch ? loop->steps - first : epoch;
        for (int w = 0; w < loop->workers && (first == 0 || loop->start > 0.0); w++) {
            now.worker_process[w] = now.processes++;
            now.worker_free[w] = 0.0;
        }
        int fetched = 0;
        for (int b = 0; b < count; b++) {
            for (; fetched < count && fetched < b + 2 * loop->workers; fetched++) {
                if (fetched >= 2 * loop->workers && fetched - 2 * loop->workers >= b) {
                    break;
                }
                fetch_batch(loop, fetched, first + fetched, begin);
            }
            loop_step(loop, first + b, b);
        }
        if (loop->last_wait > 0.0) {
            sheet_add("main wait %.3f %.3f batch=%d\n", now.t, loop->last_wait, count);
            now.t += loop->last_wait;
        }
    }
}

void loop_sample_workers(const struct loop *loop, double on_core, double ready, double storage)
{
    for (double at = 100e3; at < now.t; at += 100e3) {
        for (int w = 0; w < loop->workers; w++) {
            double wobble = (double)((int)(at / 100e3) % 2) * 0.01;
            sheet_add("w%d count %.0f %.3f thread: on a core (%%)\n", w, at, on_core + wobble);
            sheet_add("w%d count %.0f %.3f thread: waiting for a core (%%)\n", w, at,
                      ready + wobble);
            sheet_add("w%d count %.0f %.3f read from storage (MB/s)\n", w, at, storage + wobble);
        }
        sheet_add("main count %.0f %.3f thread: on a core (%%)\n", at, 50.0);
    }
}
