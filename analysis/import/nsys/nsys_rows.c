/* Processes, threads and streams of an Nsight Systems export, found by the file's global ids.
 *
 * A global thread id holds, from the top, 16 bits that name the machine, 24 of process id and 24 of
 * thread id; a global process id is the same with thread id 0.
 */

#include "analysis/import/nsys/nsys_db.h"
#include "analysis/import/nsys/nsys_private.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

static uint64_t pid_bits(int64_t global_id)
{
    return (uint64_t)global_id >> 24;
}

static uint32_t pid_of(int64_t global_id)
{
    return (uint32_t)(pid_bits(global_id) & 0xffffff);
}

static uint32_t tid_of(int64_t global_id)
{
    return (uint32_t)global_id & 0xffffff;
}

enum lac_status lac_nsys_process(struct lac_nsys *nsys, int64_t global_id, uint32_t *ret_process)
{
    uint32_t *entry = lac_nsys_map_at(&nsys->process_of, pid_bits(global_id));
    if (entry == NULL) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    if (*entry == LAC_NONE) {
        /* the same process id on another machine is another process */
        uint32_t id_text = 0;
        uint64_t machine = pid_bits(global_id) >> 24;
        enum lac_status status = lac_nsys_intern_own(nsys, &id_text, "%u", pid_of(global_id));
        uint32_t *seen = lac_nsys_map_at(&nsys->pid_seen, pid_of(global_id));
        if (seen == NULL) {
            return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
        }
        if (status == LAC_OK && *seen != LAC_NONE) {
            status =
                lac_nsys_intern_own(nsys, &id_text, "%u on %" PRIu64, pid_of(global_id), machine);
        }
        *seen = 1;
        if (status == LAC_OK) {
            status = lac_nsys_pass(
                nsys, lac_builder_process(nsys->builder, id_text, pid_of(global_id), entry));
        }
        if (status != LAC_OK) {
            return status;
        }
    }
    *ret_process = *entry;
    return LAC_OK;
}

enum lac_status lac_nsys_thread(struct lac_nsys *nsys, enum lac_track_kind kind, int64_t global_tid,
                                uint32_t *ret_track)
{
    struct lac_nsys_last *last = &nsys->last_thread;
    if (last->is_set && last->kind == (uint32_t)kind && last->global_id == global_tid) {
        *ret_track = last->track;
        return LAC_OK;
    }
    uint32_t process = 0;
    enum lac_status status = lac_nsys_process(nsys, global_tid, &process);
    if (status != LAC_OK) {
        return status;
    }
    uint32_t *entry =
        lac_nsys_map_at(&nsys->track_of, lac_nsys_thread_key(process, global_tid, kind));
    if (entry == NULL) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    if (*entry == LAC_NONE) {
        uint32_t id_text = 0;
        status = lac_nsys_intern_own(nsys, &id_text, "%u", tid_of(global_tid));
        if (status == LAC_OK) {
            status = lac_nsys_pass(nsys, lac_builder_track(nsys->builder, kind, process, id_text,
                                                           tid_of(global_tid), entry));
        }
        if (status != LAC_OK) {
            return status;
        }
        lac_builder_track_at(nsys->builder, *entry)->device = -1;
    }
    *last = (struct lac_nsys_last){
        .is_set = true, .kind = (uint32_t)kind, .global_id = global_tid, .track = *entry};
    *ret_track = *entry;
    return LAC_OK;
}

enum lac_status lac_nsys_async(struct lac_nsys *nsys, int64_t global_id, const char *group,
                               uint32_t *ret_track)
{
    uint32_t process = 0;
    uint32_t id_text = 0;
    enum lac_status status = lac_nsys_process(nsys, global_id, &process);
    if (status == LAC_OK) {
        status = lac_nsys_intern_own(nsys, &id_text, "%s", group);
    }
    if (status == LAC_OK) {
        status = lac_nsys_pass(nsys, lac_builder_track(nsys->builder, LAC_TRACK_ASYNC, process,
                                                       id_text, -1, ret_track));
    }
    if (status == LAC_OK) {
        lac_builder_track_at(nsys->builder, *ret_track)->device = -1;
        lac_builder_track_at(nsys->builder, *ret_track)->name = id_text;
    }
    return status;
}

/* The row group of a device: one for all processes that use it. */
static enum lac_status device_process(struct lac_nsys *nsys, int64_t device, uint32_t *ret_process)
{
    uint32_t id_text = 0;
    enum lac_status status = lac_nsys_intern_own(nsys, &id_text, "GPU %" PRId64, device);
    if (status == LAC_OK) {
        status = lac_nsys_pass(nsys, lac_builder_process(nsys->builder, id_text, -1, ret_process));
    }
    if (status == LAC_OK) {
        struct lac_process *process = lac_builder_process_at(nsys->builder, *ret_process);
        process->is_gpu = true;
        process->labels = id_text;
    }
    return status;
}

enum lac_status lac_nsys_stream(struct lac_nsys *nsys, enum lac_nsys_row row, int64_t device,
                                int64_t global_pid, int64_t stream, uint32_t *ret_track)
{
    static const char *const SUFFIX[] = {"", " sync"};
    enum lac_track_kind kind = row == LAC_NSYS_ROW_STREAM ? LAC_TRACK_STREAM : LAC_TRACK_GPU_RANGE;
    struct lac_nsys_last *last = &nsys->last_stream;
    if (last->is_set && last->kind == (uint32_t)row && last->global_id == global_pid &&
        last->device == device && last->stream == stream) {
        *ret_track = last->track;
        return LAC_OK;
    }
    uint32_t owner = 0;
    enum lac_status status = lac_nsys_process(nsys, global_pid, &owner);
    if (status != LAC_OK) {
        return status;
    }
    /* 32 bits of stream, 8 of device, 20 of process, 2 of row: no two tracks share a key */
    uint64_t key =
        (uint64_t)stream << 32 | (uint64_t)device << 24 | (uint64_t)owner << 2 | (uint64_t)row;
    uint32_t *entry = lac_nsys_map_at(&nsys->stream_of, key);
    if (entry == NULL) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    if (*entry == LAC_NONE) {
        uint32_t process = 0;
        uint32_t id_text = 0;
        uint32_t name = 0;
        status = device_process(nsys, device, &process);
        /* stream numbers restart in every process */
        if (status == LAC_OK && nsys->gpu_pid_count > 1) {
            status = lac_nsys_intern_own(nsys, &id_text, "%" PRId64 "%s of process %u", stream,
                                         SUFFIX[row], pid_of(global_pid));
        } else if (status == LAC_OK) {
            status = lac_nsys_intern_own(nsys, &id_text, "%" PRId64 "%s", stream, SUFFIX[row]);
        }
        if (status == LAC_OK) {
            status = lac_nsys_intern_own(nsys, &name, "stream %" PRId64 "%s", stream, SUFFIX[row]);
        }
        if (status == LAC_OK) {
            status = lac_nsys_pass(
                nsys, lac_builder_track(nsys->builder, kind, process, id_text, stream, entry));
        }
        if (status == LAC_OK && row == LAC_NSYS_ROW_STREAM &&
            lac_builder_device(nsys->builder, device) == NULL) {
            status = lac_nsys_pass(nsys, LAC_ERR_NOMEM);
        }
        if (status != LAC_OK) {
            return status;
        }
        lac_builder_track_at(nsys->builder, *entry)->device = device;
        lac_builder_track_at(nsys->builder, *entry)->name = name;
    }
    *last = (struct lac_nsys_last){.is_set = true,
                                   .kind = (uint32_t)row,
                                   .global_id = global_pid,
                                   .device = device,
                                   .stream = stream,
                                   .track = *entry};
    *ret_track = *entry;
    return LAC_OK;
}

enum lac_status lac_nsys_interval(struct lac_nsys *nsys, const struct lac_nsys_rows *rows,
                                  struct lac_slice_in *slice, bool *ret_is_good)
{
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    *ret_is_good = lac_nsys_rows_integer(rows, 0, &start_ns) &&
                   lac_nsys_rows_integer(rows, 1, &end_ns) && lac_nsys_is_time(start_ns) &&
                   lac_nsys_is_time(end_ns);
    if (!*ret_is_good) {
        lac_model_report(nsys->model, LAC_REPORT_DROPPED, "row_without_times", 1, 0,
                         "Rows whose start or end is missing or not a time were dropped.");
        return LAC_OK;
    }
    if (end_ns < start_ns) {
        lac_model_report(nsys->model, LAC_REPORT_REPAIRED, "negative_duration", 1, 0,
                         "Intervals that end before they start were given no duration.");
        end_ns = start_ns;
    }
    slice->start_ns = start_ns;
    slice->dur_ns = end_ns - start_ns;
    return LAC_OK;
}

enum lac_status lac_nsys_add(struct lac_nsys *nsys, const struct lac_slice_in *slice)
{
    if (nsys->slice_count >= nsys->limits->slice_count_max) {
        return lac_fail(nsys->reterr, LAC_ERR_LIMIT, 0,
                        "more than %" PRIu64 " slices (limit slice_count_max)",
                        nsys->limits->slice_count_max);
    }
    if (nsys->model->track_count > nsys->limits->track_count_max) {
        return lac_fail(nsys->reterr, LAC_ERR_LIMIT, 0,
                        "more than %u tracks (limit track_count_max)",
                        nsys->limits->track_count_max);
    }
    int64_t end_ns = slice->start_ns + slice->dur_ns;
    nsys->last_ns = end_ns > nsys->last_ns ? end_ns : nsys->last_ns;
    nsys->slice_count++;
    return lac_nsys_pass(nsys, lac_builder_slice(nsys->builder, slice));
}

enum lac_status lac_nsys_gpu_process(struct lac_nsys *nsys, int64_t global_pid)
{
    uint32_t *entry = lac_nsys_map_at(&nsys->gpu_pid_of, pid_bits(global_pid));
    if (entry == NULL) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    if (*entry == LAC_NONE) {
        *entry = nsys->gpu_pid_count++;
    }
    return LAC_OK;
}

uint32_t lac_nsys_correlation(const struct lac_nsys *nsys, int64_t global_id, uint32_t recorded)
{
    if (nsys->gpu_pid_count <= 1) {
        return recorded; /* the first of them keeps its ids */
    }
    uint32_t ordinal = lac_nsys_map_get(&nsys->gpu_pid_of, pid_bits(global_id));
    if (recorded == 0 || ordinal == LAC_NONE || ordinal == 0) {
        return recorded;
    }
    uint64_t id = recorded + ordinal * nsys->corr_step;
    return id < UINT32_MAX ? (uint32_t)id : recorded;
}

enum lac_status
lac_nsys_each(struct lac_nsys *nsys, const char *table, const char *const *columns, bool is_event,
              enum lac_status (*on_row)(struct lac_nsys *nsys, const struct lac_nsys_rows *rows))
{
    struct lac_nsys_rows rows;
    bool found = false;
    enum lac_status status = lac_nsys_rows_open(&rows, &nsys->db, table, columns, NULL, is_event);
    while (status == LAC_OK) {
        status = lac_nsys_rows_next(&rows, &found);
        if (status != LAC_OK || !found) {
            break;
        }
        status = on_row(nsys, &rows);
    }
    lac_nsys_rows_close(&rows);
    return status;
}
