/*
 * Writes the Kineto JSON file of a job of many ranks, for the groups of bench.py.
 *
 *   build/release/bench/bench_training FILE MILLIONS [RANKS, 16 by default]
 */

#include "tests/support/training_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
    double millions = argc > 2 ? strtod(argv[2], NULL) : 0;
    unsigned long ranks = argc > 3 ? strtoul(argv[3], NULL, 10) : 16;
    uint64_t count = 0;
    struct stat file;

    if (millions <= 0 || millions > 500 || ranks == 0 || ranks > TRAINING_RANKS_MAX) {
        (void)fprintf(stderr, "usage: bench_training FILE MILLIONS [RANKS]\n");
        return 2;
    }
    if (training_text_write(argv[1], (uint32_t)ranks, (uint64_t)(millions * 1e6), &count) !=
            LAC_OK ||
        stat(argv[1], &file) != 0) {
        perror(argv[1]);
        return 1;
    }
    printf("{\"events\": %llu, \"bytes\": %lld}\n", (unsigned long long)count,
           (long long)file.st_size);
    return 0;
}
