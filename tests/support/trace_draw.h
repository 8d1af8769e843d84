#ifndef LAC_TESTS_SUPPORT_TRACE_DRAW_H
#define LAC_TESTS_SUPPORT_TRACE_DRAW_H

/*
 * A model from a drawing: one slice a line, times in us.
 *
 *     TRACK KIND START DUR [#CORR] NAME...
 *
 * Any name may end in " args={...}", JSON without spaces between its members.
 * A kernel's name may end in " grid=12" (its blocks), an operator's in " dims=[[8,64],[64,512]]"
 * or " seq=7" (its number in autograd's graph), a call's in " ret=2" (what it returned); a name
 * "4096 8192" of the kind alloc is bytes, negative when released, and what is allocated after it.
 *
 *     main    range   0    100      ProfilerStep#1
 *     main    call   10      2  #1  cudaLaunchKernel
 *     gpu0.7  kernel 20     30  #1  volta_sgemm_128x64_nn
 *     gpu0.7  copy   60      5  #2  HtoD pageable 1000000
 *     w3      fetch   0    500      batch=2 worker=3 cpu=400
 *     main    wait    0     30      batch=2
 *     w3      part    0    100      loader.read batch=2 worker=3 cpu=40 bytes=90000
 *     w3      count 100     35.5    thread: on a core (%)
 *     host    count 100     80      cgroup throttled (%)
 *
 * The kind stack is a stretch of samples of the thread's stack, "data.py(7): busy".
 *
 * Tracks: `gpuD.S` is stream S of device D; `wN` the thread of a process of its own; anything else
 * a thread of the training process. Kinds: range op python other overhead call kernel copy memset,
 * wait and fetch for loader.wait and loader.fetch with their arguments, part for any other loader
 * range, and count for a sample: a time, a value and a series as the launcher names it, of the
 * track's process, or of its thread with "thread: " before it. `host` is no thread but the host.
 * '#' alone or at the start of a line begins a comment.
 */

#include "analysis/diagnose/diagnose.h"
#include "analysis/model/model.h"

/** The model; aborts with the line when the drawing is wrong. The caller destroys it. */
struct lac_model *trace_draw(const char *drawing);

/** The same with metadata ("{\"lacuna\":{...}}") and the compute capability of device 0. */
struct lac_model *trace_draw_with(const char *drawing, const char *metadata, int cc_major);

/** Diagnose; aborts when that fails or the analysis breaks its invariants. */
struct lac_analysis *trace_diagnose(const struct lac_model *model);

/** The finding of that id, or NULL. */
const struct lac_finding *trace_finding(const struct lac_analysis *analysis, const char *id);

#endif
