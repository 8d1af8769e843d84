#ifndef LAC_ANALYSIS_JOURNAL_STUDENT_H
#define LAC_ANALYSIS_JOURNAL_STUDENT_H

#include <stdint.h>

/** Chance that Student's t is within |t| of 0. @param freedom degrees, 1 or more. Cost: O(freedom) */
double lac_student(double t, uint32_t freedom);

#endif
