/* The words that people read: none is missing, none stands for two things, and each fits its place. */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

START_TEST(every_value_has_a_word_of_its_own)
{
    for (int group = 0; group < LAC_WORDS_COUNT_; group++) {
        const uint32_t count = lac_words_count((enum lac_words)group);
        ck_assert_uint_gt(count, 1);
        for (uint32_t i = 0; i < count; i++) {
            const struct lac_word *word = lac_word((enum lac_words)group, i);
            const char *name = lac_words_name((enum lac_words)group);
            ck_assert_msg(word->id != NULL && word->label != NULL && word->brief != NULL &&
                              word->waits != NULL && word->definition != NULL,
                          "%s: no row for value %u", name, i);
            bool is_nothing = group == LAC_WORDS_LAYOUT && i == LAC_LAYOUT_NONE;
            ck_assert_msg(is_nothing || (word->id[0] && word->label[0]), "%s: row %u", name, i);
            ck_assert_msg(word->definition[0] != '\0', "%s %s: no definition", name, word->id);
            ck_assert_ptr_eq(lac_word_of((enum lac_words)group, word->id), word);
            for (uint32_t other = 0; other < i; other++) {
                ck_assert_str_ne(lac_word((enum lac_words)group, other)->label, word->label);
            }
        }
        ck_assert_ptr_null(lac_word_of((enum lac_words)group, "no such id"));
    }
}
END_TEST

START_TEST(definitions_are_sentences_and_terms_go_on_after_a_dash)
{
    for (int group = 0; group < LAC_WORDS_COUNT_; group++) {
        for (uint32_t i = 0; i < lac_words_count((enum lac_words)group); i++) {
            const char *text = lac_word((enum lac_words)group, i)->definition;
            const char last = text[strlen(text) - 1];
            const bool is_capital = text[0] >= 'A' && text[0] <= 'Z';
            const bool is_term = group == LAC_WORDS_TERM;
            ck_assert_msg((last == '.') == !is_term && is_capital == !is_term, "%s", text);
        }
    }
}
END_TEST

START_TEST(causes_continue_the_gpu_waits_and_have_a_letter_each)
{
    char letters[LAC_CAUSE_COUNT_ + 1] = "";
    for (uint32_t i = 0; i < LAC_CAUSE_COUNT_; i++) {
        const struct lac_word *word = lac_word(LAC_WORDS_CAUSE, i);
        ck_assert_ptr_null(strchr(letters, word->letter));
        letters[i] = word->letter;
        ck_assert_str_ne(word->waits, "");
        ck_assert_str_eq(lac_waits_for((enum lac_cause)i), word->waits);
        ck_assert_str_eq(lac_cause_name((enum lac_cause)i), word->id);
        ck_assert_msg(strlen(word->label) <= 29, "%s: wider than its column", word->label);
    }
    ck_assert_str_eq(letters, "DSLCAMNWHP?");
    ck_assert_str_eq(lac_cause_name(LAC_CAUSE_COUNT_), "unattributed");
    ck_assert_int_eq(lac_cause_letter(LAC_CAUSE_COUNT_), '?');
    for (uint32_t i = 0; i < LAC_PART_COUNT_; i++) {
        ck_assert_uint_le(strlen(lac_word(LAC_WORDS_PART, i)->label), 29);
    }
}
END_TEST

START_TEST(ids_are_the_names_that_documents_use)
{
    for (uint32_t i = 0; i < lac_words_count(LAC_WORDS_SLICE_KIND); i++) {
        ck_assert_str_eq(lac_word(LAC_WORDS_SLICE_KIND, i)->id,
                         lac_slice_kind_name((enum lac_slice_kind)i));
    }
    for (uint32_t i = 0; i < lac_words_count(LAC_WORDS_COPY_KIND); i++) {
        ck_assert_str_eq(lac_word(LAC_WORDS_COPY_KIND, i)->id,
                         lac_copy_kind_name((enum lac_copy_kind)i));
    }
    ck_assert_str_eq(lac_partition_name(LAC_PART_EXPOSED_COMM), "exposed_comm");
    ck_assert_str_eq(lac_phase_name(LAC_PHASE_EPOCH_END), "epoch_end");
    ck_assert_str_eq(lac_step_kind_name(LAC_KIND_TRAIN), "train");
    ck_assert_str_eq(lac_severity_name(LAC_SEVERITY_CRITICAL), "critical");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("vocabulary");
    TCase *tcase = tcase_create("vocabulary");
    tcase_add_test(tcase, every_value_has_a_word_of_its_own);
    tcase_add_test(tcase, definitions_are_sentences_and_terms_go_on_after_a_dash);
    tcase_add_test(tcase, causes_continue_the_gpu_waits_and_have_a_letter_each);
    tcase_add_test(tcase, ids_are_the_names_that_documents_use);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
