#include "server/export/raster/letters.h"

#include "collector/base/count_of.h"

#include <stddef.h>
#include <stdint.h>

enum { FIRST = '!', LAST = '~' };

static const char *const ascii[LAST - FIRST + 1] = {
    ['!' - FIRST] = "1016 1919",
    ['"' - FIRST] = "1013 3033",
    ['#' - FIRST] = "2019 5049 0363 0666",
    ['$' - FIRST] = "514010010314445558491908 303a",
    ['%' - FIRST] = "6009 01102122130201 47566768594847",
    ['&' - FIRST] = "691311203041420608193965",
    ['\'' - FIRST] = "1013",
    ['(' - FIRST] = "3012183a",
    [')' - FIRST] = "1032381a",
    ['*' - FIRST] = "3137 0265 0562",
    ['+' - FIRST] = "3238 0565",
    [',' - FIRST] = "18190b",
    ['-' - FIRST] = "0545",
    ['.' - FIRST] = "1919",
    ['/' - FIRST] = "500a",
    ['0' - FIRST] = "104051584919080110",
    ['1' - FIRST] = "022029 0949",
    ['2' - FIRST] = "01104051530959",
    ['3' - FIRST] = "01104051534424 445558491908",
    ['4' - FIRST] = "49400656",
    ['5' - FIRST] = "500004445558491908",
    ['6' - FIRST] = "5140100108194958554404",
    ['7' - FIRST] = "005029",
    ['8' - FIRST] = "14030110405153441405081949585544",
    ['9' - FIRST] = "0819495851401001041555",
    [':' - FIRST] = "1414 1919",
    [';' - FIRST] = "1414 18190b",
    ['<' - FIRST] = "520558",
    ['=' - FIRST] = "0454 0757",
    ['>' - FIRST] = "025508",
    ['?' - FIRST] = "01104051532526 2929",
    ['@' - FIRST] = "6657372624336366778682602002082a7a",
    ['A' - FIRST] = "093069 1656",
    ['B' - FIRST] = "00095968655404 0040515344",
    ['C' - FIRST] = "6150100108195968",
    ['D' - FIRST] = "00094967624000",
    ['E' - FIRST] = "50000959 0444",
    ['F' - FIRST] = "500009 0444",
    ['G' - FIRST] = "61501001081959686535",
    ['H' - FIRST] = "0009 6069 0464",
    ['I' - FIRST] = "1019",
    ['J' - FIRST] = "4048391908",
    ['K' - FIRST] = "0009 6005 2369",
    ['L' - FIRST] = "000959",
    ['M' - FIRST] = "0900458089",
    ['N' - FIRST] = "09006960",
    ['O' - FIRST] = "105061685919080110",
    ['P' - FIRST] = "09005061645505",
    ['Q' - FIRST] = "105061685919080110 476a",
    ['R' - FIRST] = "09005061645505 3569",
    ['S' - FIRST] = "615010010314556668591908",
    ['T' - FIRST] = "0060 3039",
    ['U' - FIRST] = "000819596860",
    ['V' - FIRST] = "003960",
    ['W' - FIRST] = "0029426980",
    ['X' - FIRST] = "0069 6009",
    ['Y' - FIRST] = "003460 3439",
    ['Z' - FIRST] = "00600969",
    ['[' - FIRST] = "30101a3a",
    ['\\' - FIRST] = "005a",
    [']' - FIRST] = "10303a1a",
    ['^' - FIRST] = "032043",
    ['_' - FIRST] = "0a6a",
    ['`' - FIRST] = "0021",
    ['a' - FIRST] = "13435459 55150608194958",
    ['b' - FIRST] = "0009 0413435458491908",
    ['c' - FIRST] = "5443130408194958",
    ['d' - FIRST] = "5059 5443130408194958",
    ['e' - FIRST] = "06565443130408194958",
    ['f' - FIRST] = "40302129 0343",
    ['g' - FIRST] = "535b4c1c0b 5443130408194958",
    ['h' - FIRST] = "0009 0413435459",
    ['i' - FIRST] = "1319 1111",
    ['j' - FIRST] = "232b1c0c 2121",
    ['k' - FIRST] = "0009 5307 2559",
    ['l' - FIRST] = "101829",
    ['m' - FIRST] = "0309 0413334449 4453738489",
    ['n' - FIRST] = "0309 0413435459",
    ['o' - FIRST] = "134354584919080413",
    ['p' - FIRST] = "030c 0413435458491908",
    ['q' - FIRST] = "535c 5443130408194958",
    ['r' - FIRST] = "0309 052343",
    ['s' - FIRST] = "544313040516465758491908",
    ['t' - FIRST] = "21283949 0343",
    ['u' - FIRST] = "0308194958 5359",
    ['v' - FIRST] = "032953",
    ['w' - FIRST] = "0329446983",
    ['x' - FIRST] = "0359 5309",
    ['y' - FIRST] = "0329 53291c0c",
    ['z' - FIRST] = "03530959",
    ['{' - FIRST] = "3021240526293a",
    ['|' - FIRST] = "101b",
    ['}' - FIRST] = "0011143516190a",
    ['~' - FIRST] = "051424465665",
};

static const struct {
    uint32_t code_point;
    const char *strokes;
} others[] = {
    {0x00b1, "3137 0464 0969"},       /* plus or minus */
    {0x00b5, "030c 0308194958 5359"}, /* micro */
    {0x00b7, "1515"},                 /* middle dot */
    {0x00d7, "0357 5307"},            /* times */
    {0x03bc, "030c 0308194958 5359"}, /* mu */
    {0x2013, "0555"},                 /* en dash */
    {0x2026, "1919 3939 5959"},       /* ellipsis */
    {0x2192, "0565 436547"},          /* arrow to the right */
    {0x2212, "0565"},                 /* minus */
    {0x00a0, ""},
    {0x2009, ""},
    {0x202f, ""}, /* spaces */
};

const char *lac_letter(uint32_t code_point)
{
    if (code_point == ' ') {
        return "";
    }
    if (code_point >= FIRST && code_point <= LAST) {
        return ascii[code_point - FIRST];
    }
    for (size_t i = 0; i < LAC_COUNT_OF(others); i++) {
        if (others[i].code_point == code_point) {
            return others[i].strokes;
        }
    }
    return "0050590900";
}

unsigned lac_letter_width(const char *strokes)
{
    unsigned width = 0;
    for (const char *at = strokes; *at != '\0'; at += *at == ' ' ? 1 : 2) {
        const unsigned x = *at == ' ' ? 0 : (unsigned)(*at - '0');
        width = x > width ? x : width;
    }
    return width;
}
