/* What the kernel says of a process: nothing of it needs the process to run. */

#include "collector/base/count_of.h"
#include "collector/base/io_full.h"
#include "collector/hang/hang_process.h"
#include "collector/sample/proc_files.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum about { ABOUT_NOTHING, ABOUT_FILE, ABOUT_DISK, ABOUT_TIME, ABOUT_CHILD };

/* Those that wait; the first argument of those about a file is its descriptor. */
static const struct {
    long number;
    const char *name;
    enum about about;
} calls[] = {
    {SYS_read, "read", ABOUT_FILE},
    {SYS_pread64, "pread", ABOUT_FILE},
    {SYS_readv, "readv", ABOUT_FILE},
    {SYS_write, "write", ABOUT_FILE},
    {SYS_pwrite64, "pwrite", ABOUT_FILE},
    {SYS_writev, "writev", ABOUT_FILE},
    {SYS_recvfrom, "recvfrom", ABOUT_FILE},
    {SYS_recvmsg, "recvmsg", ABOUT_FILE},
    {SYS_sendto, "sendto", ABOUT_FILE},
    {SYS_sendmsg, "sendmsg", ABOUT_FILE},
    {SYS_accept, "accept", ABOUT_FILE},
    {SYS_accept4, "accept", ABOUT_FILE},
    {SYS_connect, "connect", ABOUT_FILE},
    {SYS_ioctl, "ioctl", ABOUT_FILE},
    {SYS_flock, "flock", ABOUT_FILE},
    {SYS_fcntl, "fcntl", ABOUT_FILE},
    {SYS_openat, "openat", ABOUT_NOTHING},
    {SYS_fallocate, "fallocate", ABOUT_DISK},
    {SYS_ftruncate, "ftruncate", ABOUT_DISK},
    {SYS_fsync, "fsync", ABOUT_DISK},
    {SYS_fdatasync, "fdatasync", ABOUT_DISK},
    {SYS_close, "close", ABOUT_DISK},
    {SYS_sync, "sync", ABOUT_DISK},
    {SYS_futex, "futex", ABOUT_NOTHING},
    {SYS_ppoll, "ppoll", ABOUT_NOTHING},
    {SYS_pselect6, "pselect", ABOUT_NOTHING},
    {SYS_epoll_pwait, "epoll_wait", ABOUT_NOTHING},
#ifdef SYS_open
    {SYS_open, "open", ABOUT_NOTHING},
    {SYS_poll, "poll", ABOUT_NOTHING},
    {SYS_select, "select", ABOUT_NOTHING},
    {SYS_epoll_wait, "epoll_wait", ABOUT_NOTHING},
#endif
    {SYS_nanosleep, "nanosleep", ABOUT_TIME},
    {SYS_clock_nanosleep, "clock_nanosleep", ABOUT_TIME},
    {SYS_wait4, "wait", ABOUT_CHILD},
    {SYS_waitid, "wait", ABOUT_CHILD},
};

/* What a descriptor of the process is, as text of no control characters. */
static void read_file(struct lac_hang_process *process, unsigned long descriptor)
{
    char *const file = process->native.file;
    char path[64];
    ssize_t length;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%lu", (int)process->pid, descriptor);
    length = readlink(path, file, LAC_HANG_PATH_BYTES - 1);
    file[length > 0 ? length : 0] = '\0';
    for (char *c = file; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
    }
}

/* "NUMBER ARGUMENT ...", "running", or nothing where we may not ask. */
static void read_call(struct lac_hang_process *process)
{
    struct lac_hang_native *const native = &process->native;
    char path[64];
    char text[256];
    char *end = NULL;
    long number;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)process->pid,
                   (int)process->tid);
    if (lac_read_text(path, text, sizeof(text)) == 0) {
        return;
    }
    number = strtol(text, &end, 10);
    if (end == text) {
        return;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(calls); i++) {
        if (calls[i].number == number) {
            native->call = calls[i].name;
            native->is_syncing = calls[i].about == ABOUT_DISK;
            native->is_sleeping = calls[i].about == ABOUT_TIME;
            native->is_for_child = calls[i].about == ABOUT_CHILD;
            if (calls[i].about == ABOUT_FILE || calls[i].about == ABOUT_DISK) {
                read_file(process, strtoul(end, NULL, 16));
            }
        }
    }
}

void lac_hang_native_read(struct lac_hang_process *process)
{
    assert(process != NULL);
    struct lac_thread_counters counters;

    process->native = (struct lac_hang_native){.call = ""};
    if (lac_proc_start_ticks(process->pid) != 0 &&
        lac_proc_thread(process->pid, process->tid, &counters)) {
        process->native.state = counters.state;
        read_call(process);
    }
}

uint64_t lac_hang_native_io(int32_t pid)
{
    char path[64];
    char text[1024];

    (void)snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
    if (lac_read_text(path, text, sizeof(text)) == 0) {
        return 0;
    }
    return lac_text_number(text, "wchar", 0) + lac_text_number(text, "read_bytes", 0);
}
