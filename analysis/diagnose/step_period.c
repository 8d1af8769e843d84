/*
 * Steps without a name: a kernel that comes once a step comes at even distances, with the same
 * number of operations between. Of the kernels for which that holds the rarest one is taken: more
 * frequent ones belong to layers, not to steps.
 */

#include "analysis/diagnose/operations.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { OPERATIONS_MAX = 2000000, PERIODS_MAX = 10000, CANDIDATES_MAX = 48 };

/** The kernels of the main device in order; row of the kernel and start. */
struct sequence {
    uint32_t *row;
    int64_t *start_ns;
    uint64_t count;
};

static enum lac_status read_sequence(struct lac_diagnosis *diagnosis, struct sequence *sequence)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    const struct lac_slices *slices = &diagnosis->model->slices;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    uint64_t capacity = device->op_count < OPERATIONS_MAX ? device->op_count : OPERATIONS_MAX;
    sequence->row = malloc(capacity * sizeof *sequence->row);
    sequence->start_ns = malloc(capacity * sizeof *sequence->start_ns);
    if (!sequence->row || !sequence->start_ns) {
        return LAC_ERR_NOMEM;
    }
    struct lac_operations operations;
    enum lac_status status = lac_operations_init(&operations, diagnosis, device->id);
    uint64_t slice = 0;
    while (!status && sequence->count < capacity && lac_operations_next(&operations, &slice)) {
        if (slices->kind[slice] != LAC_SLICE_KERNEL) {
            continue;
        }
        sequence->row[sequence->count] = diagnosis->kernel_row[slices->name[slice]];
        sequence->start_ns[sequence->count++] = slices->start_ns[slice];
    }
    lac_operations_done(&operations);
    return status;
}

/** Whether the kernel of `row` comes once a period. */
static bool is_periodic(const struct sequence *sequence, uint32_t row, uint64_t count)
{
    double sum = 0.0;
    double sum_of_squares = 0.0;
    uint64_t seen = 0;
    uint64_t last = 0;
    uint64_t regular = 0;
    double usual = 0.0;
    for (uint64_t i = 0; i < sequence->count; i++) {
        if (sequence->row[i] != row) {
            continue;
        }
        if (seen > 0) {
            double distance = (double)(sequence->start_ns[i] - sequence->start_ns[last]);
            sum += distance;
            sum_of_squares += distance * distance;
            double kernels = (double)(i - last);
            usual = seen == 1 ? kernels : usual;
            regular += fabs(kernels - usual) <= 0.05 * usual;
        }
        last = i;
        seen++;
    }
    if (seen != count || seen < STEPS_MIN + 1) {
        return false;
    }
    double periods = (double)(seen - 1);
    double mean = sum / periods;
    double variance = sum_of_squares / periods - mean * mean;
    return mean > 0.0 && variance < 0.04 * mean * mean && (double)regular >= 0.8 * periods;
}

static enum lac_status add_periods(struct lac_diagnosis *diagnosis, const struct sequence *sequence,
                                   uint32_t row)
{
    int64_t before_ns = -1;
    for (uint64_t i = 0; i < sequence->count; i++) {
        if (sequence->row[i] != row) {
            continue;
        }
        if (before_ns >= 0) {
            enum lac_status status =
                lac_steps_add(diagnosis, before_ns, sequence->start_ns[i] - before_ns, 0, LAC_NONE);
            if (status) {
                return status;
            }
        }
        before_ns = sequence->start_ns[i];
    }
    return LAC_OK;
}

enum lac_status lac_steps_by_period(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    if (analysis->main_device == LAC_NONE || analysis->kernel_name_count == 0) {
        return LAC_OK;
    }
    struct sequence sequence = {0};
    enum lac_status status = read_sequence(diagnosis, &sequence);
    uint64_t tried = STEPS_MIN; /* counts up to this one were looked at */
    uint32_t found = LAC_NONE;
    for (int i = 0; i < CANDIDATES_MAX && !status && found == LAC_NONE; i++) {
        uint32_t row = LAC_NONE;
        for (uint32_t k = 0; k < analysis->kernel_name_count; k++) {
            uint64_t count = analysis->kernels[k].count;
            if (count <= tried || count > PERIODS_MAX) {
                continue;
            }
            if (row == LAC_NONE || count < analysis->kernels[row].count) {
                row = k;
            }
        }
        if (row == LAC_NONE) {
            break;
        }
        tried = analysis->kernels[row].count;
        if (is_periodic(&sequence, row, tried)) {
            found = row;
        }
    }
    if (!status && found != LAC_NONE) {
        status = add_periods(diagnosis, &sequence, found);
    }
    free(sequence.row);
    free(sequence.start_ns);
    return status;
}
