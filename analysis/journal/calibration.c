/* What predictions came to, and whether another change is worth a try. */

#include "analysis/journal/journal.h"
#include "analysis/journal/journal_thresholds.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

static double within(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/** Tries with a prediction of a gain, and a result. */
static bool counts(const struct lac_try *one)
{
    return isfinite(one->predicted_pct) && isfinite(one->achieved_pct) && one->predicted_pct > 0.0;
}

void lac_calibrate(const struct lac_try *tries, uint32_t count,
                   struct lac_calibration *ret_calibration)
{
    assert(ret_calibration != NULL && (count == 0 || tries != NULL));
    struct lac_calibration it = {.ratio = (double)NAN, .factor = 1.0};
    double predicted = 0.0;
    double achieved = 0.0;
    double squares = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        if (counts(&tries[i])) {
            predicted += tries[i].predicted_pct;
            achieved += tries[i].achieved_pct;
            it.count++;
        }
    }
    if (it.count > 0) {
        /* all together: a small prediction that failed says less than a large one */
        double came = within(achieved / predicted, CALIBRATION_FACTOR_MIN, CALIBRATION_FACTOR_MAX);
        double weight = it.count / (it.count + CALIBRATION_TRIES);
        it.ratio = achieved > 0.0 ? predicted / achieved : (double)NAN;
        it.factor = exp(weight * log(came));
        for (uint32_t i = 0; i < count; i++) {
            if (counts(&tries[i])) {
                double off = (tries[i].achieved_pct - came * tries[i].predicted_pct);
                squares += off * off;
            }
        }
        it.widening = within(weight * sqrt(squares / it.count) / (predicted / it.count), 0.0, 1.0);
    }
    *ret_calibration = it;
}

struct lac_gain_band lac_calibrated(const struct lac_gain_band *band,
                                    const struct lac_calibration *calibration)
{
    assert(band != NULL && calibration != NULL);
    const double factor = calibration->factor;
    const double wide = calibration->widening;
    struct lac_gain_band out = {band->low_pct, band->mid_pct, band->high_pct};
    if (isfinite(band->mid_pct)) {
        const double room = factor * wide * band->mid_pct;
        out.mid_pct = within(factor * band->mid_pct, 0.0, 100.0);
        out.low_pct = within(factor * band->low_pct - room, 0.0, 100.0);
        out.high_pct = within(factor * band->high_pct + room, 0.0, 100.0);
    }
    return out;
}

enum lac_stop lac_stop_when(const struct lac_gain_band *best, double noise_pct)
{
    assert(best != NULL);
    if (!(best->mid_pct > 0.0)) {
        return LAC_STOP_NOTHING_LEFT;
    }
    if (isfinite(noise_pct) && best->high_pct < noise_pct) {
        return LAC_STOP_BELOW_NOISE;
    }
    return best->mid_pct < STOP_PCT ? LAC_STOP_TOO_SMALL : LAC_STOP_GO_ON;
}

const char *lac_stop_name(enum lac_stop stop)
{
    static const char *const names[] = {"go_on", "nothing_left", "too_small", "below_noise"};
    return names[stop];
}
