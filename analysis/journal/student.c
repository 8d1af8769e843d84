/* Student's t, for whole degrees of freedom. */

#include "analysis/journal/student.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>

/* Abramowitz and Stegun 26.7.3 and 26.7.4 */
double lac_student(double t, uint32_t freedom)
{
    assert(freedom > 0);
    const double angle = atan(fabs(t) / sqrt((double)freedom));
    const double c = cos(angle);
    const double s = sin(angle);
    double term = freedom % 2 != 0 ? c : 1.0;
    double sum = freedom == 1 ? 0.0 : term;

    for (uint32_t k = freedom % 2 != 0 ? 3 : 2; k + 2 <= freedom; k += 2) {
        term *= c * c * (double)(k - 1) / (double)k;
        sum += term;
    }
    return freedom % 2 != 0 ? 2.0 / 3.14159265358979323846 * (angle + s * sum) : s * sum;
}
