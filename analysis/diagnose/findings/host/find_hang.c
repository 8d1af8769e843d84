/*
 * The job stood still: what the launcher saw while it did, told again. It asked the processes and the
 * kernel then (collector/hang/); nothing is guessed from the times.
 */

#include "analysis/diagnose/findings/findings.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* What to do, by what the rank does that the others wait for. The first that fits. */
static const struct {
    const char *word; /**< in the launcher's sentence */
    bool of_ranks;    /**< only where others wait */
    const char *brief;
    const char *change;
    enum lac_change_kind kind;
} advice[] = {
    {"is stopped", false, "let it go on", "kill -CONT PID   # of the process that is stopped",
     LAC_CHANGE_COMMAND},
    {"has ended", false, "read that rank's last output",
     "# read the output of the rank that has ended; where the others shall not wait for it "
     "forever:\n"
     "dist.init_process_group(..., timeout=timedelta(minutes=5))",
     LAC_CHANGE_CODE},
    {"batch", false, "an error instead of a wait",
     "DataLoader(..., timeout=60)   # a batch that takes longer is an error that names its worker",
     LAC_CHANGE_CODE},
    {"import", false, "import before the threads start",
     "# import modules at the top of the script, before threads that import, too, are started",
     LAC_CHANGE_CODE},
    {"waits in", true, "the same collectives on every rank",
     "# every rank calls the same collectives in the same order: none inside `if rank == ...`, "
     "none\n"
     "# left out by an exception that one rank swallows\n"
     "with Join([model]):   # torch.distributed.algorithms.join, where ranks have different "
     "numbers of "
     "batches",
     LAC_CHANGE_CODE},
    {"lock", false, "one order of locks",
     "# every thread takes the locks in the same order, and none while it waits for another thread",
     LAC_CHANGE_CODE},
    {"waits in", false, "a limit for that call",
     "# give the call a timeout, or check that what it reads is written by somebody",
     LAC_CHANGE_CODE},
    {"", false, "look at that line", "# look at the line that is named: it does not return",
     LAC_CHANGE_CODE},
};

static const char *line_of(const struct lac_facts *facts, const char *key)
{
    return lac_setting_line(facts, "settings", key);
}

/* "train.py:31" of a path with a line. */
static const char *file_of(const struct lac_facts *facts, const char *place)
{
    const char *slash = strrchr(place, '/');
    return lac_texts_add(&facts->analysis->texts, "%s", slash != NULL ? slash + 1 : place);
}

/* A sentence with what the launcher told; "" where it told nothing. */
static const char *told(const struct lac_facts *facts, const char *sentence, const char *key)
{
    const char *text = line_of(facts, key);
    const char *place = strstr(sentence, "%s");
    if (text[0] == '\0') {
        return "";
    }
    return lac_texts_add(&facts->analysis->texts, "%.*s%s%s", (int)(place - sentence), sentence,
                         text, place + 2);
}

static void propose(const char *doing, bool has_others, struct lac_finding *finding)
{
    for (size_t i = 0; i < LAC_COUNT_OF(advice); i++) {
        if (strstr(doing, advice[i].word) != NULL && (has_others || !advice[i].of_ranks)) {
            finding->brief = advice[i].brief;
            finding->change = advice[i].change;
            finding->change_kind = advice[i].kind;
            return;
        }
    }
}

bool lac_find_hang(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_text **texts = &facts->analysis->texts;
    const char *doing = line_of(facts, "hang.doing");
    const char *others = line_of(facts, "hang.others");
    const char *where = line_of(facts, "hang.where");
    double after_s = lac_setting_real(facts, "settings", "hang.after_s");
    int64_t steps = lac_setting_count(facts, "settings", "hang.steps", INT64_MAX / 16);
    bool has_resumed = lac_setting_truth(facts, "settings", "hang.resumed") == 1;
    bool is_shm_full = lac_setting_is(facts, "settings", "hang.shm", "full");
    if (doing[0] == '\0' || isnan(after_s)) {
        return false;
    }
    lac_finding_open_fact(finding);
    finding->severity = has_resumed ? LAC_SEVERITY_WARNING : LAC_SEVERITY_CRITICAL;
    finding->confidence = 0.9;
    finding->title = lac_texts_add(
        texts, "%s: %s", has_resumed ? "The job stood still and went on again" : "The job hangs",
        doing);
    finding->why = lac_texts_add(
        texts, "No rank made progress for %.0f s%s%s%s%s.%s%s%s%s", after_s,
        steps > 0 ? lac_texts_add(texts, " after %s", lac_format_count(steps, "step").text) : "",
        others[0] != '\0' ? "; " : "", others, is_shm_full ? "; /dev/shm is full" : "",
        told(facts, " NCCL counts: %s.", "hang.nccl"),
        told(facts, " Flight recorder: %s.", "hang.flight"), told(facts, " GPUs: %s.", "hang.gpus"),
        told(facts, " That line: %s", "hang.source"));
    propose(doing, others[0] != '\0', finding);
    if (is_shm_full) {
        finding->brief = "a larger /dev/shm";
        finding->change = "docker run --shm-size=16g ...   # or an emptyDir of medium Memory";
        finding->change_kind = LAC_CHANGE_COMMAND;
    }
    finding->where = file_of(facts, where);
    finding->wrong_if = "that rank was busy with something that only takes long; it went on later.";
    finding->check = "the settings hang.stack.* hold the stacks of all threads at that moment";
    return true;
}
