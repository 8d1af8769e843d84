/*
 * Runs a fuzz target where there is no libFuzzer: every input of its corpus, then new ones made of
 * them from a fixed seed. `make test` links each target with this and with the objects that the
 * unit tests with sanitizers have, so that nothing is compiled a second time; `make fuzz` and
 * `make soak` run the same targets under libFuzzer, which sees what an input covers.
 *
 *   fuzz_NAME CORPUS SECONDS      SECONDS of CPU time for new inputs
 *
 * An input at which the target aborts, hangs or breaks a sanitizer's rule is kept in build/fuzz.
 */

#include <dirent.h>
#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                                                     unsigned seed);

enum {
    INPUT_BYTES_MIN_MAX =
        4096, /* inputs grow to this or to the longest of the corpus, as libFuzzer's */
    INPUT_SECONDS_MAX = 60, /* on the wall, which a busy machine stretches */
    STEPS_MAX = 5,          /* changes from an input of the corpus to a new one */
    PATH_BYTES = 4096
};

struct input {
    uint8_t *data;
    size_t size;
};

static struct {
    struct input *inputs;
    size_t count;
    size_t longest;
} corpus;

static uint64_t random_state = 0x9e3779b97f4a7c15u;
static char kept_path[PATH_BYTES];
static struct input running;

static size_t random_below(size_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return bound > 0 ? (size_t)((random_state >> 11) % bound) : 0;
}

/** Writes the input that is running to build/fuzz; safe in a signal handler. */
static void keep_input(void)
{
    static const char says[] = "the input is kept in ";
    int fd = open(kept_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, running.data, running.size) != (ssize_t)running.size)
        return;
    close(fd);
    ssize_t told = write(STDERR_FILENO, says, sizeof(says) - 1);
    told += write(STDERR_FILENO, kept_path, strlen(kept_path));
    told += write(STDERR_FILENO, "\n", 1);
    (void)told;
}

static void on_signal(int number)
{
    keep_input();
    signal(number, SIG_DFL);
    raise(number);
}

/* In memory of exactly its size, so that a byte read behind its end is found. */
static void run_input(struct input input)
{
    uint8_t *data = malloc(input.size > 0 ? input.size : 1);
    if (data == NULL)
        abort();
    if (input.size > 0)
        memcpy(data, input.data, input.size);
    running = (struct input){data, input.size};
    alarm(INPUT_SECONDS_MAX);
    LLVMFuzzerTestOneInput(data, input.size);
    alarm(0);
    running = (struct input){0};
    free(data);
}

/* ---- new inputs */

static const int64_t odd_numbers[] = {0,          1,          -1,        127,       128,
                                      255,        256,        32767,     65535,     65536,
                                      2147483647, 2147483648, INT64_MAX, INT64_MIN, 4294967295};

static size_t remove_range(uint8_t *data, size_t size)
{
    size_t from = random_below(size);
    size_t length = 1 + random_below(size - from);
    memmove(data + from, data + from + length, size - from - length);
    return size - length;
}

/** Puts `length` bytes of `piece` into `data`, over what is there or before it. */
static size_t put(uint8_t *data, size_t size, size_t max_size, const uint8_t *piece, size_t length)
{
    size_t at = random_below(size + 1);
    bool is_over = random_below(2) == 0;
    if (length > (is_over ? max_size - at : max_size - size))
        return size;
    if (!is_over)
        memmove(data + at + length, data + at, size - at);
    memmove(data + at, piece, length);
    size_t end = is_over ? at + length : size + length;
    return end > size ? end : size;
}

static size_t put_bytes(uint8_t *data, size_t size, size_t max_size)
{
    uint8_t piece[16];
    size_t length = 1 + random_below(sizeof(piece));
    bool is_same = random_below(2) == 0;
    piece[0] = (uint8_t)random_below(256);
    for (size_t i = 1; i < length; i++)
        piece[i] = is_same ? piece[0] : (uint8_t)random_below(256);
    return put(data, size, max_size, piece, length);
}

static size_t put_number(uint8_t *data, size_t size, size_t max_size)
{
    int64_t number = odd_numbers[random_below(sizeof(odd_numbers) / sizeof(odd_numbers[0]))];
    if (random_below(2) == 0) {
        static const size_t widths[] = {1, 2, 4, 8};
        return put(data, size, max_size, (const uint8_t *)&number, widths[random_below(4)]);
    }
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%lld", (long long)number);
    return put(data, size, max_size, (const uint8_t *)digits, (size_t)length);
}

/** A piece of this input, or of another one of the corpus. */
static size_t put_piece(uint8_t *data, size_t size, size_t max_size)
{
    struct input from = {data, size};
    if (corpus.count > 0 && random_below(2) == 0)
        from = corpus.inputs[random_below(corpus.count)];
    size_t at = random_below(from.size);
    size_t length = random_below(from.size - at < 256 ? from.size - at + 1 : 256);
    uint8_t piece[256];
    memcpy(piece, from.data + at, length);
    return put(data, size, max_size, piece, length);
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    if (size == 0)
        return put_bytes(data, size, max_size);
    switch (random_below(6)) {
    case 0:
        data[random_below(size)] ^= (uint8_t)(1u << random_below(8));
        return size;
    case 1:
        data[random_below(size)] = (uint8_t)random_below(256);
        return size;
    case 2:
        return remove_range(data, size);
    case 3:
        return put_bytes(data, size, max_size);
    case 4:
        return put_number(data, size, max_size);
    default:
        return put_piece(data, size, max_size);
    }
}

static void run_new_inputs(double seconds)
{
    size_t max_size = corpus.longest > INPUT_BYTES_MIN_MAX ? corpus.longest : INPUT_BYTES_MIN_MAX;
    uint8_t *data = calloc(1, max_size);
    if (data == NULL)
        abort();
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    size_t count = 0;
    for (; clock() < end; count++) {
        size_t size = 0;
        if (corpus.count > 0) {
            struct input from = corpus.inputs[random_below(corpus.count)];
            size = from.size;
            if (size > 0)
                memcpy(data, from.data, size);
        }
        for (size_t steps = 1 + random_below(STEPS_MAX); steps > 0; steps--)
            size = LLVMFuzzerCustomMutator != NULL
                       ? LLVMFuzzerCustomMutator(data, size, max_size,
                                                 (unsigned)random_below(UINT32_MAX))
                       : LLVMFuzzerMutate(data, size, max_size);
        run_input((struct input){data, size});
    }
    free(data);
    printf("%zu inputs of the corpus, %zu new ones\n", corpus.count, count);
}

/* ---- the corpus */

static bool read_input(const char *path, struct input *retinput)
{
    struct stat is;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &is) != 0)
        return false;
    size_t size = (size_t)is.st_size;
    uint8_t *data = malloc(size > 0 ? size : 1);
    bool is_read = data != NULL && read(fd, data, size) == is.st_size;
    close(fd);
    *retinput = (struct input){data, size};
    return is_read;
}

static void read_corpus(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) {
        perror(folder);
        exit(1);
    }
    corpus.inputs = calloc((size_t)count, sizeof(*corpus.inputs));
    for (int i = 0; i < count && corpus.inputs != NULL; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            struct input *input = &corpus.inputs[corpus.count++];
            if (!read_input(path, input)) {
                perror(path);
                exit(1);
            }
            corpus.longest = input->size > corpus.longest ? input->size : corpus.longest;
        }
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s CORPUS SECONDS\n", argv[0]);
        return 2;
    }
    const char *name = strrchr(argv[0], '/');
    mkdir("build", 0755);
    mkdir("build/fuzz", 0755);
    snprintf(kept_path, sizeof(kept_path), "build/fuzz/broke-%s",
             name != NULL ? name + 1 : argv[0]);
    __sanitizer_set_death_callback(keep_input);
    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);
    if (LLVMFuzzerInitialize != NULL)
        LLVMFuzzerInitialize(&argc, &argv);
    read_corpus(argv[1]);
    for (size_t i = 0; i < corpus.count; i++)
        run_input(corpus.inputs[i]);
    run_new_inputs(strtod(argv[2], NULL));
    for (size_t i = 0; i < corpus.count; i++)
        free(corpus.inputs[i].data);
    free(corpus.inputs);
    return 0;
}
