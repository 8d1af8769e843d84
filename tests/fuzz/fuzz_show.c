/*
 * Any damage to a spool (tests/support/patched_spool.h), shown: lines of text in which nothing
 * steers a terminal.
 */

#include "collector/gather/gather.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/support/patched_spool.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static void check_text(const unsigned char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        require((text[i] >= 0x20 || text[i] == '\n') && text[i] != 0x7f);
        require(text[i] < 0x80 || i == 0 || text[i - 1] != 0xc2 || text[i] >= 0xa0); /* C1 */
        require(i < 2 || text[i - 2] != 0xe2 || text[i - 1] != 0x80 || text[i] < 0xa8 ||
                text[i] > 0xae); /* lines and directions */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[LAC_PATCHED_BYTES];
    const size_t size_bytes = lac_patched_spool(data, size, 0, bytes);
    const int fd = memfd_create("spool", MFD_CLOEXEC);
    char *text = NULL;
    size_t length = 0;
    FILE *const out = open_memstream(&text, &length);

    require(fd >= 0 && out != NULL);
    require(write(fd, bytes, size_bytes) == (ssize_t)size_bytes);
    (void)lac_show_spool(out, fd, "\x1b[2J\xc2\x9b.spool");
    require(fclose(out) == 0);
    check_text((const unsigned char *)text, length);
    free(text);
    require(close(fd) == 0);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    const size_t mutated = lac_patches_mutate(data, size, max_size, seed);

    return mutated > 0 ? mutated : LLVMFuzzerMutate(data, size, max_size);
}
