#include "collector/base/count_of.h"
#include "collector/base/debug.h"
#include "collector/base/write_signals.h"
#include "collector/inject/capture.h"
#include "collector/inject/recorder.h"
#include "collector/inject/secrets.h"
#include "lacuna/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/*
 * One file per process, made with the first event, so that helper processes leave none. Space is
 * allocated before it is mapped: a store into a hole of a full file system would kill the job.
 */

static struct lac_spool_header *header;
/* of the nearest process above that has a spool: it counts those below that cannot make one */
static struct lac_spool_header *ancestor;
static char path[sizeof(lac_settings.directory) + 128];
static int fd = -1;
static bool dead;
static uint64_t segments_made;
static uint64_t unmapped; /* index + 1 of a segment that has its space and could not be mapped */
/* segments that are mapped now, by index: the lock guards it but for a thread's own entry */
enum { MAPPED_MAX = 1024, NAMES_TRIED = 1000 };
static struct lac_segment_header *mapped[MAPPED_MAX];
static dev_t own_device;
static ino_t own_inode;

struct lac_spool_header *lac_spool_header(void)
{
    return header;
}

/* By the system call: glibc before 2.33 has no symbol fstat. The kernel's struct is glibc's here.
 * Programs that close every descriptor they do not know leave us with somebody else's. */
static bool is_our_file(int file)
{
    struct stat status = {0};

    return syscall(SYS_fstat, file, &status) == 0 && status.st_dev == own_device &&
           status.st_ino == own_inode;
}

void lac_spool_forget(void)
{
    if (header != NULL) {
        if (ancestor != NULL) {
            (void)munmap(ancestor, LAC_SPOOL_HEADER_BYTES);
        }
        ancestor = header;
    }
    header = NULL;
    if (fd >= 0 && is_our_file(fd)) {
        (void)close(fd);
    }
    fd = -1;
    dead = false;
    segments_made = 0;
    unmapped = 0;
    memset(mapped, 0, sizeof(mapped));
}

void lac_spool_count_dropped(uint64_t events, bool disk)
{
    if (header != NULL) {
        __atomic_fetch_add(&header->dropped_count, events, __ATOMIC_RELAXED);
        LAC_DEBUG(SPOOL, 3, "%lu lost%s", (unsigned long)events, disk ? ": no space" : "");
        if (disk) {
            __atomic_fetch_add(&header->dropped_disk_count, events, __ATOMIC_RELAXED);
        }
    }
}

/* Space for the file, before any of it is mapped; 0 or an error number. */
static int allocate(int file, uint64_t offset, uint64_t size_bytes)
{
    struct lac_write_signals held;
    int error;

    lac_write_signals_hold(&held);
    error = posix_fallocate(file, (off_t)offset, (off_t)size_bytes);
    lac_write_signals_release(&held);
    return error;
}

/* Low numbers are the program's: it may have closed its standard streams, or count on the next. */
static int keep_away(int file)
{
    static const int lowest[] = {900, 200, 20, 3};
    int away = -1;

    for (size_t i = 0; file >= 0 && i < LAC_COUNT_OF(lowest) && away < 0; i++) {
        away = fcntl(file, F_DUPFD_CLOEXEC, lowest[i]);
    }
    if (away >= 0 || (file >= 0 && file < 3)) {
        (void)close(file);
        file = away;
    }
    return file;
}

void lac_complain(const char *what, int error)
{
    static volatile int said;
    char line[768];
    int length;

    if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED) != 0) {
        return;
    }
    length = snprintf(line, sizeof(line), "lacuna: %s%s%s (%s); the job goes on, not recorded\n",
                      what, error != 0 ? ": " : "", error != 0 ? strerror(error) : "", path);
    if (length > 0) {
        struct lac_write_signals held;
        ssize_t told;

        lac_write_signals_hold(&held);
        told = write(STDERR_FILENO, line, (size_t)length);
        (void)told; /* there is nowhere else to report it */
        lac_write_signals_release(&held);
    }
}

static size_t read_file(const char *name, char *out, size_t capacity)
{
    const int file = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t length;

    if (file < 0) {
        return 0;
    }
    length = read(file, out, capacity);
    (void)close(file);
    return length > 0 ? (size_t)length : 0;
}

/* Fields 4 and 22 of a process's stat file, 0 where it cannot be read; the name in field 2 may hold
 * anything, so count from its last ')'. */
static uint64_t start_ticks_of(const char *stat_file, int *ret_parent)
{
    char text[1024] = {0};
    char *at;

    *ret_parent = 0;
    if (read_file(stat_file, text, sizeof(text) - 1) == 0) {
        return 0;
    }
    at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at + 1, ' ');
        if (field + 1 == 4 && at != NULL) {
            *ret_parent = (int)strtol(at + 1, NULL, 10);
        }
    }
    return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

static uint64_t own_start_ticks(void)
{
    int parent;

    return start_ticks_of("/proc/self/stat", &parent);
}

static void read_boot_id(uint8_t *boot_id)
{
    char text[64] = {0};
    int digits = 0;

    if (read_file("/proc/sys/kernel/random/boot_id", text, sizeof(text) - 1) == 0) {
        return;
    }
    for (const char *c = text; *c != '\0' && digits < 32; c++) {
        const int value = *c >= '0' && *c <= '9'   ? *c - '0'
                          : *c >= 'a' && *c <= 'f' ? *c - 'a' + 10
                                                   : -1;

        if (value >= 0) {
            boot_id[digits / 2] = (uint8_t)(boot_id[digits / 2] << 4 | value);
            digits++;
        }
    }
}

static void add_text(struct lac_spool_header *to, const char *key, const char *value, size_t length)
{
    const size_t key_length = strlen(key);
    char *out = to->text + to->text_bytes;

    if (key_length + length + 2 > LAC_SPOOL_TEXT_BYTES - to->text_bytes) {
        return;
    }
    memcpy(out, key, key_length);
    out[key_length] = '=';
    memcpy(out + key_length + 1, value, length);
    out[key_length + 1 + length] = '\0';
    to->text_bytes += (uint32_t)(key_length + length + 2);
}

/* "pid:start ticks,..." from the parent upward. A worker belongs to the rank that is its nearest
 * ancestor, which it may have through a fork server that records nothing. */
static void add_ancestors(struct lac_spool_header *to)
{
    char text[LAC_SPOOL_ANCESTORS * 40];
    size_t used = 0;
    int pid = (int)getppid();

    for (int i = 0; i < LAC_SPOOL_ANCESTORS && pid > 1; i++) {
        char file[32];
        int parent;

        (void)snprintf(file, sizeof(file), "/proc/%d/stat", pid);
        const uint64_t start_ticks = start_ticks_of(file, &parent);

        if (start_ticks == 0) {
            break;
        }
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d:%llu", i > 0 ? "," : "",
                                 pid, (unsigned long long)start_ticks);
        pid = parent;
    }
    if (used > 0) {
        add_text(to, "ancestors", text, used);
    }
}

/* Whether the pid means anything to a launcher: it looks when the process has ended. */
static void add_pid_namespace(struct lac_spool_header *to)
{
    char text[32];
    const ssize_t length = readlink("/proc/self/ns/pid", text, sizeof(text));

    if (length > 0) {
        add_text(to, "pid_ns", text, (size_t)length);
    }
}

static void add_command_line(struct lac_spool_header *to)
{
    static char raw[4096];
    char out[4096];
    const size_t length = read_file("/proc/self/cmdline", raw, sizeof(raw) - 1);

    add_text(to, "argv", out, lac_command_line_shown(raw, length, out, sizeof(out)));
}

/* Only what identifies the rank and the job: an allow list, never the whole environment. */
static void add_environment(struct lac_spool_header *to)
{
    static const char *const names[] = {"RANK",
                                        "LOCAL_RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_WORLD_SIZE",
                                        "GROUP_RANK",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "TORCHELASTIC_RUN_ID",
                                        "SLURM_JOB_ID",
                                        "SLURM_PROCID",
                                        "SLURM_LOCALID",
                                        "SLURM_NTASKS",
                                        "SLURM_NODEID",
                                        "SLURM_CPUS_PER_TASK",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MV2_COMM_WORLD_RANK",
                                        "MV2_COMM_WORLD_SIZE",
                                        "HOROVOD_RANK",
                                        "HOROVOD_SIZE",
                                        "CUDA_VISIBLE_DEVICES",
                                        "OMP_NUM_THREADS",
                                        "CUDA_LAUNCH_BLOCKING",
                                        "LACUNA_RUN_ID",
                                        "KUBERNETES_SERVICE_HOST"};

    for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
        const char *const value = getenv(names[i]);
        char key[64];

        if (value != NULL && snprintf(key, sizeof(key), "env.%s", names[i]) > 0) {
            add_text(to, key, value, strnlen(value, 256));
        }
    }
}

static void fill_header(void)
{
    char text[512];
    char shown[sizeof(text) + 3];
    size_t length;

    header->version = LAC_SPOOL_VERSION;
    header->endian_mark = LAC_SPOOL_ENDIAN_MARK;
    header->header_bytes = LAC_SPOOL_HEADER_BYTES;
    header->segment_bytes = lac_settings.segment_bytes;
    header->clock = lac_clock;
    header->pid = (int32_t)getpid();
    header->parent_pid = (int32_t)getppid();
    header->fork_depth = lac_fork_depth();
    header->start_ticks = own_start_ticks();
    read_boot_id(header->boot_id);
    header->first = lac_clock_sync();
    header->size_limit_bytes = lac_settings.size_limit_bytes;
    header->stop = lac_settings.on_demand ? LAC_SPOOL_OFF : lac_capture_first();
    if (gethostname(text, sizeof(text) - 1) == 0) {
        text[sizeof(text) - 1] = '\0';
        add_text(header, "host", text, strlen(text));
    }
    length = read_file("/proc/self/comm", text, sizeof(text));
    add_text(header, "comm", text, length > 0 && text[length - 1] == '\n' ? length - 1 : length);
    length = (size_t)0;
    if (getcwd(text, sizeof(text)) != NULL) {
        length = strlen(text);
    }
    add_text(header, "cwd", shown, lac_text_shown(text, length, shown, sizeof(shown)));
    add_pid_namespace(header);
    add_ancestors(header);
    add_command_line(header);
    add_environment(header);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(header->magic, LAC_SPOOL_MAGIC, sizeof(header->magic));
}

static bool fail(const char *what, int error)
{
    __atomic_store_n(&dead, true, __ATOMIC_RELEASE);
    LAC_DEBUG(SPOOL, 1, "%s: error %d; this process is not recorded", what, error);
    if (ancestor != NULL) {
        (void)__atomic_fetch_add(&ancestor->lost_process_count, 1u, __ATOMIC_RELAXED);
    }
    lac_complain(what, error);
    return false;
}

/* What a program recorded before it executed this one has the same name, and so may the spool of a
 * process in another pid namespace. */
static int make_file(void)
{
    const unsigned long long start = own_start_ticks();
    int file = -1;

    errno = EEXIST;
    for (unsigned i = 0; i < NAMES_TRIED && file < 0 && errno == EEXIST; i++) {
        char again[16] = "";

        if (i > 0) {
            (void)snprintf(again, sizeof(again), ".%u", i);
        }
        (void)snprintf(path, sizeof(path), "%s/%d-%llu-%u%s.spool", lac_settings.directory,
                       (int)getpid(), start, lac_fork_depth(), again);
        file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    return keep_away(file);
}

/* The lock is held. */
static bool open_spool(void)
{
    struct stat status = {0};
    void *memory;
    int error;

    if (header != NULL || dead) {
        return header != NULL;
    }
    fd = make_file();
    if (fd < 0) {
        return fail("cannot make the spool", errno);
    }
    error = allocate(fd, 0, LAC_SPOOL_HEADER_BYTES);
    if (error != 0) {
        return fail("no room for the spool", error);
    }
    /* the header is a page of its own even where pages have 64 KiB: segments start at multiples of
     * that */
    memory = mmap(NULL, LAC_SPOOL_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        return fail("cannot map the spool", errno);
    }
    header = memory;
    if (syscall(SYS_fstat, fd, &status) == 0) {
        own_device = status.st_dev;
        own_inode = status.st_ino;
    }
    fill_header();
    LAC_DEBUG(SPOOL, 1, "%s, segments of %u KiB, at most %lu MB", path,
              lac_settings.segment_bytes / 1024,
              (unsigned long)(lac_settings.size_limit_bytes / 1000000));
    return true;
}

bool lac_spool_open(void)
{
    bool ok;

    if (__atomic_load_n(&dead, __ATOMIC_ACQUIRE)) {
        return false; /* every event of a process that is not recorded comes here */
    }
    lac_lock();
    ok = open_spool();
    lac_unlock();
    return ok;
}

/* Segments begin after the header, on a 64 KiB boundary so that any page size can map them. */
static uint64_t segment_offset(uint64_t index)
{
    return LAC_SPOOL_SEGMENTS_OFFSET + index * lac_settings.segment_bytes;
}

static int spool_fd(void)
{
    if (fd < 0 || !is_our_file(fd)) {
        fd = keep_away(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    }
    return fd;
}

static struct lac_segment_header *map_segment(uint64_t index)
{
    const int file = index < MAPPED_MAX && mapped[index] != NULL ? -1 : spool_fd();
    void *memory;

    if (index < MAPPED_MAX && mapped[index] != NULL) {
        return mapped[index];
    }
    if (file < 0) {
        return NULL;
    }
    memory = mmap(NULL, lac_settings.segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                  (off_t)segment_offset(index));
    if (memory == MAP_FAILED) {
        lac_complain("cannot map more of the spool", errno);
        return NULL;
    }
    (void)madvise(memory, lac_settings.segment_bytes, MADV_DONTFORK);
    if (index < MAPPED_MAX) {
        mapped[index] = memory;
    }
    return memory;
}

void lac_spool_thread_name(char out[16])
{
    const size_t length = read_file("/proc/thread-self/comm", out, 15);

    out[length > 0 && out[length - 1] == '\n' ? length - 1 : length] = '\0';
}

/* A segment that could not be mapped when it was made, for lack of address space. */
static bool take_unmapped(uint64_t *ret_index)
{
    if (unmapped == 0) {
        return false;
    }
    *ret_index = unmapped - 1;
    unmapped = 0;
    return true;
}

/* One that a drainer emptied: its pages are in the page cache already. */
static bool take_emptied(uint64_t *ret_index)
{
    uint64_t head = __atomic_load_n(&header->free_head, __ATOMIC_ACQUIRE);

    if (head == __atomic_load_n(&header->free_tail, __ATOMIC_ACQUIRE)) {
        return false;
    }
    *ret_index = header->free_ring[head % LAC_SPOOL_FREE_RING];
    __atomic_store_n(&header->free_head, head + 1, __ATOMIC_RELEASE);
    LAC_DEBUG(SPOOL, 3, "segment %lu comes back empty", (unsigned long)*ret_index);
    return *ret_index < segments_made;
}

static bool take_new(uint64_t *ret_index)
{
    const uint64_t end = segment_offset(segments_made + 1);
    int error;

    if (lac_settings.size_limit_bytes != 0 && end > lac_settings.size_limit_bytes) {
        LAC_DEBUG(SPOOL, 2, "no segment %lu: the limit is reached", (unsigned long)segments_made);
        return false;
    }
    error = allocate(spool_fd(), segment_offset(segments_made), lac_settings.segment_bytes);
    if (error != 0) {
        LAC_DEBUG(SPOOL, 2, "no segment %lu: error %d", (unsigned long)segments_made, error);
        lac_complain("no room for more of the spool", error);
        return false;
    }
    *ret_index = segments_made++;
    LAC_DEBUG(SPOOL, 2, "segment %lu is new", (unsigned long)*ret_index);
    return true;
}

/* Names take the lock before they come here, threads do not: `kind` tells which. */
struct lac_segment_header *lac_spool_segment(enum lac_segment_kind kind, int32_t tid, uint32_t seq,
                                             uint32_t *ret_index)
{
    struct lac_segment_header *segment = NULL;
    uint64_t index;

    if (kind != LAC_SEGMENT_STRINGS) {
        lac_lock();
    }
    if (open_spool() && (take_unmapped(&index) || take_emptied(&index) || take_new(&index))) {
        segment = map_segment(index);
        unmapped = segment == NULL ? index + 1 : 0;
    }
    if (segment != NULL) {
        __atomic_store_n(&segment->magic, 0u, __ATOMIC_RELEASE); /* first: a drainer may look */
        memset(segment, 0, lac_settings.segment_bytes);
        segment->kind = (uint16_t)kind;
        segment->state = LAC_SEGMENT_OPEN;
        segment->tid = tid;
        segment->seq = seq;
        segment->sync = lac_clock_sync();
        lac_spool_thread_name(segment->thread_name);
        __atomic_store_n(&segment->magic, LAC_SEGMENT_MAGIC, __ATOMIC_RELEASE);
        __atomic_store_n(&header->segment_count, segments_made, __ATOMIC_RELEASE);
        if (ret_index != NULL) {
            *ret_index = (uint32_t)index;
        }
    }
    if (kind != LAC_SEGMENT_STRINGS) {
        lac_unlock();
    }
    return segment;
}

void lac_spool_release(struct lac_segment_header *segment, uint32_t index)
{
    /* with a drainer at work the segment comes back, and its pages had better be there still */
    const bool keep =
        index < MAPPED_MAX && __atomic_load_n(&header->free_tail, __ATOMIC_RELAXED) != 0;

    LAC_DEBUG(SPOOL, 3, "segment %u is full", index);

    if (!keep && index < MAPPED_MAX) {
        mapped[index] = NULL;
    }
    __atomic_store_n(&segment->state, (uint16_t)LAC_SEGMENT_FULL, __ATOMIC_RELEASE);
    if (!keep) {
        (void)munmap(segment, lac_settings.segment_bytes);
    }
}
