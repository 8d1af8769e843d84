/* What a repetition is called: findings are written of steps; of inference and of programs that do not
 * train the same is said of batches and iterations. Code and commands stay as they are. */

#include "analysis/diagnose/steps/steps.h"
#include "analysis/diagnose/wording/wording.h"
#include "collector/base/count_of.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct unit {
    const char *one, *many;
    const char
        *trains; /**< what the process that trains is called where nothing does; NULL as it is */
};

/** What a repetition is; NULL where it is a step. */
static const struct unit *unit_of(const struct lac_facts *facts)
{
    static const struct unit batch = {"batch", "batches", "main process"};
    static const struct unit iteration = {"iteration", "iterations", "main process"};
    static const struct unit repetition = {"repetition", "repetitions", NULL};
    const struct lac_analysis *analysis = facts->analysis;
    if (analysis->workload == LAC_WORKLOAD_INFERENCE) {
        return strcmp(lac_step_unit(analysis), batch.one) == 0 ? &batch : &iteration;
    }
    if (analysis->workload == LAC_WORKLOAD_NO_STEPS) {
        return facts->has_operators ? &repetition : &iteration;
    }
    return NULL;
}

enum { TEXT_MAX_BYTES = 8192, LENGTH_MAX_BYTES = 16 };

struct writer {
    char text[TEXT_MAX_BYTES];
    size_t length;
    bool is_changed, is_full;
};

static void put(struct writer *writer, const char *text, size_t length)
{
    if (length >= TEXT_MAX_BYTES - writer->length) {
        writer->is_full = true;
        return;
    }
    memcpy(writer->text + writer->length, text, length);
    writer->length += length;
    writer->text[writer->length] = '\0';
}

static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '#' || c == '(' || c == ':';
}

/** Bytes of "step" or "steps" where a word of its own begins at `at`, else 0. A sentence may end behind it. */
static size_t word_at(const char *text, size_t at)
{
    size_t length = strncmp(text + at, "steps", 5) == 0 ? 5 : 4;
    if (strncmp(text + at, "step", 4) != 0 || (at > 0 && is_of_word(text[at - 1]))) {
        return 0;
    }
    char next = text[at + length];
    bool is_end = next == '.' || next == ':';
    return is_of_word(next) && !(is_end && !is_of_word(text[at + length + 1])) ? 0 : length;
}

/** "of every 242 ms step" at `at`: the bytes of the time in it, else 0. Of one there is no "every". */
static size_t time_of_each(const char *text, size_t at, const char *of_every)
{
    size_t from = at + strlen(of_every);
    if (strncmp(text + at, of_every, strlen(of_every)) != 0 ||
        !isdigit((unsigned char)text[from])) {
        return 0;
    }
    const char *end = strstr(text + from, " step");
    size_t length = end != NULL ? (size_t)(end - text) - from : 0;
    return length <= LENGTH_MAX_BYTES && length > 0 && word_at(text, from + length + 1) == 4
               ? length
               : 0;
}

/** The text said of that unit. */
static const char *say_of(struct lac_text **texts, const struct unit *unit, bool is_one,
                          const char *text)
{
    static const char of_every[] = "of every ";
    static const char trains[] = "training process";
    struct writer writer = {.length = 0};
    size_t length = strlen(text);
    for (size_t at = 0; at < length;) {
        size_t time = is_one ? time_of_each(text, at, of_every) : 0;
        size_t word = time > 0 ? 0 : word_at(text, at);
        if (time > 0) {
            put(&writer, "of the ", 7);
            put(&writer, text + at + sizeof(of_every) - 1, time);
            put(&writer, " ", 1);
            put(&writer, unit->one, strlen(unit->one));
            at += sizeof(of_every) - 1 + time + sizeof(" step") - 1;
        } else if (word > 0) {
            const char *name = word == 5 ? unit->many : unit->one;
            put(&writer, name, strlen(name));
            at += word;
        } else if (unit->trains != NULL && strncmp(text + at, trains, sizeof(trains) - 1) == 0) {
            put(&writer, unit->trains, strlen(unit->trains));
            at += sizeof(trains) - 1;
            word = sizeof(trains);
        } else {
            put(&writer, text + at, 1);
            at++;
        }
        writer.is_changed = writer.is_changed || time > 0 || word > 0;
    }
    return writer.is_changed && !writer.is_full ? lac_texts_add(texts, "%s", writer.text) : text;
}

void lac_unit_words_apply(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct unit *unit = unit_of(facts);
    bool is_one = analysis->step_kept_count == 1;
    for (uint32_t i = 0; i < analysis->finding_count && unit != NULL; i++) {
        struct lac_finding *finding = &analysis->findings[i];
        const char **parts[] = {&finding->title,  &finding->why,   &finding->brief,
                                &finding->expect, &finding->costs, &finding->wrong_if,
                                &finding->check};
        for (size_t p = 0; p < LAC_COUNT_OF(parts); p++) {
            *parts[p] = say_of(&analysis->texts, unit, is_one, *parts[p]);
        }
        if (finding->change_kind == LAC_CHANGE_TEXT) {
            finding->change = say_of(&analysis->texts, unit, is_one, finding->change);
        }
        for (uint32_t e = 0; e < finding->evidence_count; e++) {
            finding->evidence[e].text =
                say_of(&analysis->texts, unit, is_one, finding->evidence[e].text);
        }
    }
    for (uint32_t i = 0; i < analysis->plan_count && unit != NULL; i++) {
        analysis->plan[i].brief = say_of(&analysis->texts, unit, is_one, analysis->plan[i].brief);
    }
}
