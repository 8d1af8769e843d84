/* The event parser with AVX2, chosen at run time. */

#if defined(__x86_64__)
#define LAC_SCAN_AVX2   1
#define LAC_PARSER_NAME lac_chrome_parser_avx2
#include "analysis/import/chrome/chrome_parse_body.h"
#else
typedef int lac_no_avx2_here; /* an empty file is no C */
#endif
