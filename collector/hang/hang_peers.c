#include "collector/hang/hang_peers.h"

#include "collector/base/io_full.h"
#include "collector/gather/launcher_note.h"
#include "collector/hang/hang_process.h"
#include "collector/hang/hang_said.h"
#include "collector/hang/hang_words.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOOK_MS = 1000,       /* while our processes go on */
    QUIET_LOOK_MS = 500,  /* while they stand still */
    TELL_MS = 1000,       /* the same again, so that it is fresh */
    FRESH_MS = 5000,      /* a launcher that writes no more has gone, or is held up */
    ASKED_MS = 10000,     /* a question that nobody repeats is none */
    NAMES_MAX = 8192,     /* looked at, a round */
    LAUNCHERS_MAX = 4096, /* of a job that are known by their folders */
    NAME_BYTES = 32,
};

static const char folder_name[] = ".lacuna-hang";
static const char asks[] = "ask-";
static const char says[] = "say-";

/* Another launcher, by its number. */
struct peer {
    uint32_t number;
    uint64_t
        seen_ns; /* when what it says changed last; 0: it has not, so it may be of another time */
    uint64_t progress_ns;
    uint64_t life_ns;
    struct lac_hang_said *said; /* NULL: nothing that is any good */
};

struct lac_hang_peers {
    char base[4096];
    char word[8]; /* "task", "rank" */
    uint32_t own;
    double scale;
    char host[LAC_HANG_HOST_BYTES];
    int64_t began_ns; /* by the clock of the file system */
    uint64_t next_look_ns;
    uint64_t looked_ns;
    /* whether somebody asks */
    uint64_t question; /* made of the files of those that do */
    uint64_t asked_ns; /* when these changed last, as far as we saw */
    /* what they say */
    uint32_t count;
    struct peer peers[LAC_HANG_PEERS_MAX];
    struct lac_hang_said *spare;
    /* who they are, by the folders of their recordings: looked up once in a quiet time */
    bool knows_launchers;
    uint32_t launcher_count;
    uint32_t launchers[LAUNCHERS_MAX];
    /* what we say */
    const char *told; /* asks, says; NULL: nothing */
    bool told_all;    /* what the report held when it was told last */
    bool told_verdict;
    uint64_t told_ns;
    uint64_t number;
    char text[LAC_HANG_SAID_BYTES];
};

static uint64_t scaled_ns(const struct lac_hang_peers *peers, unsigned ms)
{
    return (uint64_t)((double)ms * 1e6 * peers->scale);
}

/* "task-3" -> 3. @return false: it is no such name */
static bool number_of(const struct lac_hang_peers *peers, const char *name, uint32_t *ret)
{
    const size_t length = strlen(peers->word);
    const char *digits;
    unsigned long number;

    if (strncmp(name, peers->word, length) != 0 || name[length] != '-') {
        return false;
    }
    digits = name + length + 1;
    if (strlen(digits) > 9 || strspn(digits, "0123456789") != strlen(digits) || digits[0] == '\0' ||
        (digits[0] == '0' && digits[1] != '\0')) {
        return false;
    }
    number = strtoul(digits, NULL, 10);
    *ret = (uint32_t)number;
    return true;
}

static void name_file(const struct lac_hang_peers *peers, const char *kind, uint32_t number,
                      char *out)
{
    (void)snprintf(out, NAME_BYTES, "%.4s%.7s-%u", kind, peers->word, number);
}

/* Opened anew each time: on a network that asks the server what is in the folder now. @return -1 */
static int open_folder(const struct lac_hang_peers *peers, bool may_make)
{
    const int base = open(peers->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int folder = -1;

    if (base < 0) {
        return -1;
    }
    if (may_make) {
        (void)mkdirat(base, folder_name, 0700);
    }
    folder = openat(base, folder_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder >= 0 && !lac_file_same_owner(folder, base)) {
        (void)close(folder);
        folder = -1;
    }
    (void)close(base);
    return folder;
}

struct lac_hang_peers *lac_hang_peers_create(const char *base, const char *name, double scale)
{
    assert(base != NULL && name != NULL && scale > 0);
    struct lac_hang_peers *const peers = calloc(1, sizeof(*peers));
    const size_t word = strcspn(name, "-");
    char path[4096 + NAME_BYTES];

    if (peers == NULL || word == 0 || word >= sizeof(peers->word) ||
        strlen(base) >= sizeof(peers->base)) {
        free(peers);
        return NULL;
    }
    (void)snprintf(peers->base, sizeof(peers->base), "%s", base);
    (void)snprintf(peers->word, sizeof(peers->word), "%.*s", (int)word, name);
    if (!number_of(peers, name, &peers->own)) {
        free(peers);
        return NULL;
    }
    peers->scale = scale;
    (void)gethostname(peers->host, sizeof(peers->host) - 1);
    (void)lac_hang_clean(peers->host);
    (void)snprintf(path, sizeof(path), "%s/%s", base, name);
    peers->began_ns = lac_path_changed_ns(path);
    return peers;
}

static void forget(struct lac_hang_peers *peers)
{
    for (uint32_t i = 0; i < peers->count; i++) {
        free(peers->peers[i].said);
    }
    free(peers->spare);
    peers->spare = NULL;
    peers->count = 0;
    peers->knows_launchers = false;
}

/* ---- what we say */

static void take_back(struct lac_hang_peers *peers)
{
    const int folder = peers->told != NULL ? open_folder(peers, false) : -1;
    char name[NAME_BYTES];
    char path[4096 + NAME_BYTES];

    if (folder >= 0) {
        name_file(peers, asks, peers->own, name);
        (void)unlinkat(folder, name, 0);
        name_file(peers, says, peers->own, name);
        (void)unlinkat(folder, name, 0);
        (void)close(folder);
        (void)snprintf(path, sizeof(path), "%s/%s", peers->base, folder_name);
        (void)rmdir(path); /* by the last one */
    }
    peers->told = NULL;
}

/* Whole or not at all, in place of what was there. */
static bool write_file(const struct lac_hang_peers *peers, int folder, const char *kind,
                       size_t size)
{
    char name[NAME_BYTES];
    char fresh[NAME_BYTES];
    bool is_written = false;
    int fd;

    name_file(peers, kind, peers->own, name);
    name_file(peers, "new-", peers->own, fresh);
    (void)unlinkat(folder, fresh, 0);
    fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        is_written = lac_write_full(fd, peers->text, size);
        is_written = close(fd) == 0 && is_written;
        is_written = is_written && renameat(folder, fresh, folder, name) == 0;
        if (!is_written) {
            (void)unlinkat(folder, fresh, 0);
        }
    }
    return is_written;
}

void lac_hang_peers_tell(struct lac_hang_peers *peers, uint64_t now_ns, bool is_asking,
                         struct lac_hang_report *report, const struct lac_hang_process *processes,
                         uint32_t count)
{
    assert(peers != NULL && report != NULL);
    const char *const kind = is_asking ? asks : says;
    const bool is_the_same = peers->told == kind && peers->told_all == report->has_asked &&
                             peers->told_verdict == report->has_verdict;
    char other[NAME_BYTES];
    size_t size;
    int folder;

    if (is_the_same && now_ns - peers->told_ns < scaled_ns(peers, TELL_MS)) {
        return;
    }
    peers->told_ns = now_ns;
    report->number = ++peers->number;
    (void)snprintf(report->host, sizeof(report->host), "%s", peers->host);
    size = lac_hang_said_write(report, processes, count, peers->text, sizeof(peers->text));
    folder = size > 0 ? open_folder(peers, is_asking) : -1;
    if (folder < 0) {
        return;
    }
    if (write_file(peers, folder, kind, size)) {
        name_file(peers, is_asking ? says : asks, peers->own, other);
        (void)unlinkat(folder, other, 0);
        peers->told = kind;
        peers->told_all = report->has_asked;
        peers->told_verdict = report->has_verdict;
    }
    (void)close(folder);
}

void lac_hang_peers_leave(struct lac_hang_peers *peers)
{
    assert(peers != NULL);
    take_back(peers);
    forget(peers);
}

void lac_hang_peers_destroy(struct lac_hang_peers *peers)
{
    if (peers != NULL) {
        lac_hang_peers_leave(peers);
        free(peers);
    }
}

/* ---- what the others say */

static struct peer *peer_of(struct lac_hang_peers *peers, uint32_t number)
{
    for (uint32_t i = 0; i < peers->count; i++) {
        if (peers->peers[i].number == number) {
            return &peers->peers[i];
        }
    }
    if (peers->count == LAC_HANG_PEERS_MAX) {
        return NULL;
    }
    peers->peers[peers->count] = (struct peer){.number = number};
    return &peers->peers[peers->count++];
}

/* One file; it may be anything. */
static bool read_said(int folder, const char *name, struct lac_hang_said *said)
{
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int64_t length = -1;

    if (fd >= 0) {
        if (lac_file_is_regular(fd) && lac_file_same_owner(fd, folder)) {
            length = lac_read_full(fd, said->text, LAC_HANG_SAID_BYTES);
        }
        (void)close(fd);
    }
    said->text[length > 0 ? length : 0] = '\0';
    return length > 0 && lac_hang_said_parse(said, (size_t)length);
}

/* At the earliest: what is read now was written a look ago. */
static uint64_t ago(const struct lac_hang_peers *peers, uint64_t now_ns, uint64_t ms)
{
    const uint64_t ago_ns = ms * UINT64_C(1000000) + scaled_ns(peers, LOOK_MS);

    return now_ns > ago_ns ? now_ns - ago_ns : 0;
}

static void take(struct lac_hang_peers *peers, int folder, const char *name, uint32_t number,
                 uint64_t now_ns)
{
    struct peer *const peer = peer_of(peers, number);
    struct lac_hang_said *before;

    if (peers->spare == NULL) {
        peers->spare = malloc(sizeof(*peers->spare));
    }
    if (peer == NULL || peers->spare == NULL || !read_said(folder, name, peers->spare)) {
        return;
    }
    before = peer->said;
    if (before != NULL && before->report.number == peers->spare->report.number) {
        return; /* as we know it */
    }
    if (before != NULL) {
        peer->seen_ns = now_ns;
        peer->progress_ns = ago(peers, now_ns, peers->spare->report.quiet_ms);
        peer->life_ns = ago(peers, now_ns, peers->spare->report.alive_ms);
    }
    peer->said = peers->spare;
    peers->spare = before;
    for (uint32_t i = 0; i < peer->said->count; i++) {
        peer->said->processes[i].launcher = number + 1;
    }
}

/* A number that is another one as soon as the question is asked again. */
static uint64_t question_of(int folder, const char *name)
{
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat status = {0};

    if (fd >= 0) {
        (void)lac_file_status(fd, &status);
        (void)close(fd);
    }
    return (uint64_t)status.st_ino * UINT64_C(1000003) +
           (uint64_t)status.st_mtim.tv_sec * UINT64_C(1000000007) +
           (uint64_t)status.st_mtim.tv_nsec;
}

static uint32_t lowest(const struct lac_hang_peers *peers)
{
    uint32_t least = peers->own;

    for (uint32_t i = 0; i < peers->launcher_count; i++) {
        least = peers->launchers[i] < least ? peers->launchers[i] : least;
    }
    return least;
}

static bool is_large(const struct lac_hang_peers *peers)
{
    return peers->launcher_count + 1 > LAC_HANG_PEERS_EACH;
}

/* The folders of the other recordings. */
static void find_launchers(struct lac_hang_peers *peers)
{
    DIR *const folder = opendir(peers->base);
    unsigned looked = 0;
    uint32_t number;

    peers->launcher_count = 0;
    peers->knows_launchers = folder != NULL;
    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL && looked < NAMES_MAX;
         entry = readdir(folder), looked++) {
        if (number_of(peers, entry->d_name, &number) && number != peers->own &&
            peers->launcher_count < LAUNCHERS_MAX) {
            peers->launchers[peers->launcher_count++] = number;
        }
    }
    (void)closedir(folder);
}

/* @param folder what `names` reads */
static void read_names(struct lac_hang_peers *peers, int folder, DIR *names, uint64_t now_ns,
                       bool wants_all)
{
    enum { QUESTIONS_MAX = 8 }; /* more need not be looked at: one that is asked is enough */
    const uint32_t first = lowest(peers);
    const bool reads_all = !is_large(peers) || peers->own == first;
    unsigned questions = 0;
    unsigned looked = 0;
    uint64_t question = 0;

    for (const struct dirent *entry = readdir(names); entry != NULL && looked < NAMES_MAX;
         entry = readdir(names), looked++) {
        const char *const name = entry->d_name;
        const bool is_asking = strncmp(name, asks, strlen(asks)) == 0;
        uint32_t number;

        if ((!is_asking && strncmp(name, says, strlen(says)) != 0) ||
            !number_of(peers, name + strlen(asks), &number) || number == peers->own) {
            continue;
        }
        if (is_asking && questions < QUESTIONS_MAX) {
            questions++;
            question += question_of(folder, name);
        }
        if (wants_all && (reads_all || number == first)) {
            take(peers, folder, name, number, now_ns);
        }
    }
    if (questions == 0) {
        peers->asked_ns = 0;
    } else if (question != peers->question) { /* it counts while it is repeated */
        peers->question = question;
        peers->asked_ns = now_ns;
    }
}

void lac_hang_peers_look(struct lac_hang_peers *peers, uint64_t now_ns, bool is_quiet)
{
    assert(peers != NULL);
    int fd;
    DIR *names;

    if (now_ns < peers->next_look_ns) {
        return;
    }
    peers->looked_ns = now_ns;
    peers->next_look_ns = now_ns + scaled_ns(peers, is_quiet ? QUIET_LOOK_MS : LOOK_MS);
    fd = open_folder(peers, false);
    names = fd >= 0 ? fdopendir(fd) : NULL;
    if (names == NULL) {
        peers->asked_ns = 0;
        if (fd >= 0) {
            (void)close(fd);
        }
        return;
    }
    if (is_quiet && !peers->knows_launchers) {
        find_launchers(peers);
    }
    read_names(peers, fd, names, now_ns, is_quiet);
    (void)closedir(names);
}

bool lac_hang_peers_is_asked(const struct lac_hang_peers *peers)
{
    assert(peers != NULL);
    return peers->asked_ns != 0 &&
           peers->looked_ns < peers->asked_ns + ASKED_MS * UINT64_C(1000000);
}

/* By the time of the last look. */
static bool is_fresh(const struct lac_hang_peers *peers, const struct peer *peer)
{
    return peer->said != NULL && peer->seen_ns != 0 &&
           peers->looked_ns < peer->seen_ns + FRESH_MS * UINT64_C(1000000);
}

const struct lac_hang_said *lac_hang_peers_at(const struct lac_hang_peers *peers, uint32_t i)
{
    assert(peers != NULL);
    for (uint32_t k = 0; k < peers->count; k++) {
        if (is_fresh(peers, &peers->peers[k]) && i-- == 0) {
            return peers->peers[k].said;
        }
    }
    return NULL;
}

uint64_t lac_hang_peers_progress_ns(const struct lac_hang_peers *peers)
{
    assert(peers != NULL);
    const struct lac_hang_said *const judge = lac_hang_peers_judge(peers);
    uint64_t latest_ns = 0;

    for (uint32_t i = 0; i < peers->count; i++) {
        const struct peer *const peer = &peers->peers[i];

        if (is_fresh(peers, peer)) {
            const uint64_t later_ms =
                peer->said == judge && judge->report.verdict_quiet_ms < judge->report.quiet_ms
                    ? judge->report.quiet_ms - judge->report.verdict_quiet_ms
                    : 0;
            const uint64_t progress_ns = peer->progress_ns + later_ms * UINT64_C(1000000);

            latest_ns = progress_ns > latest_ns ? progress_ns : latest_ns;
        }
    }
    return latest_ns;
}

uint64_t lac_hang_peers_life_ns(const struct lac_hang_peers *peers)
{
    assert(peers != NULL);
    uint64_t latest_ns = 0;

    for (uint32_t i = 0; i < peers->count; i++) {
        const struct peer *const peer = &peers->peers[i];

        if (is_fresh(peers, peer) && peer->life_ns > latest_ns) {
            latest_ns = peer->life_ns;
        }
    }
    return latest_ns;
}

bool lac_hang_peers_judges_all(const struct lac_hang_peers *peers)
{
    assert(peers != NULL);
    return peers->knows_launchers && is_large(peers) && peers->own == lowest(peers);
}

const struct lac_hang_said *lac_hang_peers_judge(const struct lac_hang_peers *peers)
{
    assert(peers != NULL);
    if (!peers->knows_launchers || !is_large(peers) || peers->own == lowest(peers)) {
        return NULL;
    }
    for (uint32_t i = 0; i < peers->count; i++) {
        const struct peer *const peer = &peers->peers[i];

        if (peer->number == lowest(peers) && is_fresh(peers, peer) &&
            peer->said->report.has_verdict) {
            return peer->said;
        }
    }
    return NULL;
}

const char *lac_hang_peers_host(const struct lac_hang_peers *peers)
{
    assert(peers != NULL);
    return peers->host;
}

/* ---- of whom nothing is known */

enum silence { HEARD, UNHEARD, ENDED, OF_ANOTHER_RUN };

static enum silence silence_of(const struct lac_hang_peers *peers, uint32_t number)
{
    struct lac_launcher_note note;
    char path[4096 + NAME_BYTES];

    for (uint32_t i = 0; i < peers->count; i++) {
        if (peers->peers[i].number == number && is_fresh(peers, &peers->peers[i])) {
            return HEARD;
        }
    }
    (void)snprintf(path, sizeof(path), "%s/%s-%u", peers->base, peers->word, number);
    if (lac_launcher_note_read(path, &note) != LAC_LAUNCHER_NONE) {
        return UNHEARD;
    }
    /* both by the clock of the file system: a recording that was there before us is an old one */
    return lac_path_changed_ns(path) >= peers->began_ns ? ENDED : OF_ANOTHER_RUN;
}

static void add_silent(const struct lac_hang_peers *peers, enum silence which, const char *before,
                       const char *behind, char *text, size_t capacity)
{
    enum { TOLD_MAX = 3 };
    const char *const first = text[0] != '\0' ? "; " : "";
    uint32_t told = 0;
    uint32_t more = 0;

    for (uint32_t i = 0; i < peers->launcher_count; i++) {
        if (silence_of(peers, peers->launchers[i]) != which) {
            continue;
        }
        if (told == TOLD_MAX) {
            more++;
        } else if (told++ == 0) {
            lac_hang_add(text, capacity, "%s%s%s-%u", first, before, peers->word,
                         peers->launchers[i]);
        } else {
            lac_hang_add(text, capacity, ", %s-%u", peers->word, peers->launchers[i]);
        }
    }
    if (more > 0) {
        lac_hang_add(text, capacity, " and %u more", more);
    }
    if (told > 0) {
        lac_hang_add(text, capacity, "%s", behind);
    }
}

void lac_hang_peers_say_unknown(const struct lac_hang_peers *peers, char *text, size_t capacity)
{
    assert(peers != NULL && text != NULL && capacity > 0);
    text[0] = '\0';
    if (peers->knows_launchers && (!is_large(peers) || peers->own == lowest(peers))) {
        add_silent(peers, UNHEARD, "nothing is heard of ", "", text, capacity);
        add_silent(peers, ENDED, "the launcher of ", " has ended", text, capacity);
    }
}
