#ifndef LAC_ANALYSIS_DIAGNOSE_COMMUNICATION_THRESHOLDS_H
#define LAC_ANALYSIS_DIAGNOSE_COMMUNICATION_THRESHOLDS_H

/*
 * Thresholds of the findings about communication, layers and serving, each with its unit and why.
 * "Percent" is of the mean kept step.
 */

/* -- collectives -- */

/* A message from which on the time is that of its bytes, not of getting started; and what getting
 * started takes. NCCL's tests reach half of the bandwidth around a megabyte. */
#define MESSAGE_LARGE_BYTES 1048576
#define MESSAGE_START_NS    30000.0
/* Below this part of what the link usually does, something else than the size of the group or a
 * shared fabric, which may halve it twice, is wrong. */
#define LINK_SLOW_MAX 0.2
/* Of what it usually does, this part is expected of a link that was mended. */
#define LINK_EXPECTED 0.7
/* Groups that do not fit one machine go over its network cards: GB/s of one, 200 Gbit/s. */
#define MACHINE_RANKS_MAX 8
#define NETWORK_GB_S      20.0
/* Small collectives a step from which on they are many: a model of ten gigabytes has as many buckets
 * of DistributedDataParallel's default size. Without a size, one that takes less is small. */
#define SMALL_COUNT_MIN 50.0
#define SMALL_NS_MAX    1000000
/* Of the collectives this part is small, and this part follows the one before without a matrix
 * product between them: else each belongs to a layer. */
#define SMALL_SHARE_MIN    0.8
#define SMALL_IN_A_ROW_MIN 0.6
/* Sizes that differ from each other from which on they are gradients: a layer's sums are alike. */
#define SMALL_SIZES_MIN 8
/* From the launch of one to that of the next, when they are launched tensor by tensor: less. */
#define SMALL_APART_NS_MAX 1000000
/* Bytes of a bucket, DistributedDataParallel's default, and how many stand for sizes that were not
 * recorded. */
#define BUCKET_BYTES  26214400.0
#define BUCKETS_USUAL 4.0
/* Part of the exposed time that has to be in the stream that computes, and of computing in the
 * backward pass that can hide it. */
#define IN_LINE_MIN   0.7
#define IN_LINE_HIDES 0.8
/* What other findings about communication leave of it is said from here on, in percent. */
#define REST_MIN_PCT 3.0
/* Part of the exposed time that the bytes do not need from which on that is said. */
#define WAITING_SAID_MIN 0.3
/* Exchanges a step from which on they are those of experts: two a layer, in both passes, of three
 * layers. Tables of embeddings that are split over ranks exchange fewer. */
#define EXPERT_EXCHANGES_MIN 12.0

/* -- waits for the device in layers -- */

/* Waits a step from which on they are those of layers, and of one operator: a loop that reads its
 * loss, a norm and a flag has three. Where what repeats may be a layer, one in most of them. */
#define LAYERS_MIN           4.0
#define LAYER_WAITS_MIN      2.0
#define REPETITION_WAITS_MIN 0.8
/* Computing inside a call from which on it waits for a layer: results of a batch that are copied one
 * after another wait for the first alone. */
#define LAYER_COMPUTES_MIN_NS 5000
/* What it gains at least, in percent: steps of one run differ by as much. */
#define LAYER_SYNC_GAIN_PCT 1.0
/* Part of the gain that is expected, and at worst: some of the values are needed at once. */
#define LAYER_SYNC_SHARE_MID   0.9
#define LAYER_SYNC_SHARE_WORST 0.25

/* -- gathers of weights -- */

/* Gathers a step from which on they are those of layers. */
#define GATHERS_MIN 2.0
/* Of a gather, this part has no computing beside it. */
#define GATHER_EXPOSED_MIN 0.7
/* It begins this soon behind a kernel that computes, and the next begins this soon behind it: an
 * event between two streams takes some microseconds. That kernel is one of so many operations next to
 * it on all streams. */
#define GATHER_NEAR_NS   50000
#define GATHER_NEIGHBORS 8
/* Part of the gain that is expected, and at worst: they are long because a rank is late. */
#define GATHER_SHARE_MID   0.95
#define GATHER_SHARE_WORST 0.3

/* -- weights on the host -- */

/* Copies of weights are at least that large; of one size, so many a step are those of layers. */
#define WEIGHTS_LEAST_BYTES 1048576
#define WEIGHTS_LAYERS_MIN  3.0
/* Between this part of them runs only forward or only backward computing: micro-batches have both. */
#define WEIGHTS_PASSES_MIN 0.6

/* -- iterations of a server -- */

/* Operations from graphs from which on an iteration is a decode's: the rest are inputs and sampling. */
#define DECODE_GRAPH_MIN 0.5
/* Launches an iteration from which on it is eager: with graphs there are some for inputs and sampling. */
#define EAGER_LAUNCHES_MIN 50.0
/* Kernels of a graph take as long as by themselves, and what is between them; launching it takes that. */
#define GRAPH_SLOWER    1.05
#define GRAPH_LAUNCH_NS 30000
/* Least gain in percent; its part that is expected, at worst, and at worst where stacks were recorded. */
#define ITERATION_GAIN_PCT     1.0
#define ITERATION_SHARE_MID    0.95
#define ITERATION_WORST        0.5
#define ITERATION_WORST_STACKS 0.3

/* -- stages of a pipeline -- */

/* Part of the bubble that has to be seen as waiting: an interleaved schedule has half of it. */
#define BUBBLE_SEEN_MIN 0.6
/* Part of the gain that is expected, and at worst: smaller micro-batches fill the device less. */
#define BUBBLE_SHARE_MID   0.95
#define BUBBLE_SHARE_WORST 0.4
/* More micro-batches than any schedule has: then something else is sent. */
#define MICRO_BATCHES_MAX 1024

#endif
