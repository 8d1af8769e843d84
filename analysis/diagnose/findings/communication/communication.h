#ifndef LAC_ANALYSIS_DIAGNOSE_COMMUNICATION_H
#define LAC_ANALYSIS_DIAGNOSE_COMMUNICATION_H

/* Private: what the findings about communication share. */

#include "analysis/diagnose/facts/collectives.h" // IWYU pragma: export
#include "analysis/diagnose/findings/communication/communication_thresholds.h" // IWYU pragma: export
#include "analysis/diagnose/findings/findings.h" // IWYU pragma: export

/** What to write to hide or shorten communication of a kind. */
struct lac_communication_advice {
    const char *brief, *change, *costs;
};
struct lac_communication_advice lac_communication_advice(enum lac_collective_kind kind);
/** For the exchanges of embeddings that are left where TorchRec's pipeline is in use. */
struct lac_communication_advice lac_embedding_exchange_advice(void);

/** The kind of which most is exposed. */
enum lac_collective_kind lac_most_exposed_kind(const struct lac_collectives *collectives);

/** GB/s that a rank's link usually does in such a group, by what the device is. */
double lac_usual_link_gb_s(const struct lac_facts *facts, int32_t ranks);

/** The most GB/s of a large message of that kind in this trace, of any for the count of kinds; 0 when
 *  there is none. */
double lac_best_link_gb_s(const struct lac_collectives *collectives, enum lac_collective_kind kind);

/** Time of the collective over a link of that rate; its own where it is shorter, or unknown. */
double lac_time_at_rate(const struct lac_message *collective, double gb_s);

/** Whether what repeats is a step, and not perhaps a layer of one. */
bool lac_is_step(const struct lac_analysis *analysis);

/** Name of the range around a host slice: the innermost whose name holds `wanted`, else the innermost at all
 *  but the step, an operator or a collective's own; "" where there is none. */
const char *lac_range_around(const struct lac_facts *facts, uint64_t slice, const char *wanted);
/** A name without the signs that TorchRec puts around those of its ranges: "## forward ##". */
const char *lac_bare_range(const struct lac_facts *facts, const char *name);

/** Lines that read a value one batch later, with whose code reads it where that range is TorchRec's exchange. */
const char *lac_read_later_change(const struct lac_facts *facts, const char *range);

/** Time a step that findings about communication before this one account for. */
double lac_communication_said_ns(const struct lac_facts *facts);

#endif
