#include "collector/base/progress_line.h"

#include <stdbool.h>
#include <stdio.h>

static bool is_shown;

void lac_progress_line_begin(void)
{
    (void)fputs("\r\033[K", stderr);
    is_shown = true;
}

void lac_progress_line_clear(void)
{
    if (is_shown) {
        (void)fputs("\r\033[K", stderr);
        is_shown = false;
    }
}
