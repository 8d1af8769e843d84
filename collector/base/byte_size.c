#include "collector/base/byte_size.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool lac_byte_size_parse(const char *text, uint64_t *ret_value)
{
    assert(text != NULL && ret_value != NULL);
    static const char units[] = "kKmMgGtT";
    const int saved_errno = errno;
    const char *unit = NULL;
    char *end = NULL;
    unsigned shift = 0;
    bool is_in_range;
    uint64_t value;

    if (text[0] < '0' || text[0] > '9') { /* strtoull() takes blanks and signs */
        return false;
    }
    errno = 0;
    value = strtoull(text, &end, 10);
    is_in_range = errno == 0;
    errno = saved_errno;
    unit = *end != '\0' ? strchr(units, *end) : NULL;
    if (unit != NULL) {
        shift = 10 * (unsigned)((unit - units) / 2 + 1);
        end++;
        end += *end == 'i';
        end += *end == 'B';
    }
    if (!is_in_range || *end != '\0' || value > UINT64_MAX >> shift) {
        return false;
    }
    *ret_value = value << shift;
    return true;
}
