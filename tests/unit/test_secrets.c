/* What of a command line stands in a recording. */
#include "collector/inject/secrets.c"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char shown[4096];

/* Words are apart by '|'. */
static const char *show(const char *line, size_t capacity)
{
    char words[1024];
    const size_t length = strlen(line) + 1;
    size_t used;

    ck_assert_uint_le(length, sizeof(words));
    memcpy(words, line, length);
    for (size_t i = 0; i < length; i++) {
        words[i] = words[i] == '|' ? '\0' : words[i];
    }
    used = lac_command_line_shown(words, length, shown, capacity);
    ck_assert_uint_le(used, capacity);
    shown[used] = '\0';
    return shown;
}

#define SHOWN(line, expected) ck_assert_str_eq(show(line, sizeof(shown) - 1), expected)

START_TEST(what_names_a_secret_is_hidden)
{
    SHOWN("train|--password=x1|TOKEN=x2", "train --password=*** TOKEN=***");
    SHOWN("train|--api-key|x1|--lr|0.1", "train --api-key *** --lr 0.1");
    SHOWN("train|--wandb-key|x1|--auth=x2|--pw=x3|--apikey=x4",
          "train --wandb-key *** --auth=*** --pw=*** --apikey=***");
    SHOWN("env|AWS_SECRET_ACCESS_KEY=x1|MYSQL_PWD=x2",
          "env AWS_SECRET_ACCESS_KEY=*** MYSQL_PWD=***");
    SHOWN("train|--use-auth-token|--lr|0.1", "train --use-auth-token --lr 0.1");
}
END_TEST

START_TEST(users_and_questions_in_addresses_are_hidden)
{
    SHOWN("get|https://user:x1@host/data", "get https://***");
    SHOWN("get|mysql://root:x1@db:3306/x|user:x2@host", "get mysql://*** ***");
    SHOWN("get|https://host/blob?sig=x1&se=2", "get https://host/blob?***");
    SHOWN("ssh|me@host|scp|https://host/data", "ssh me@host scp https://host/data");
}
END_TEST

START_TEST(headers_with_credentials_are_hidden)
{
    SHOWN("curl|-H|Authorization: Bearer x1", "curl -H Authorization: Bearer ***");
    SHOWN("curl|--header=X-API-Key: x1", "curl --header=X-API-Key:***");
}
END_TEST

START_TEST(what_looks_like_a_token_is_hidden_wherever_it_stands)
{
    SHOWN("a|hf_abcdefghijklmnopqrst|b", "a *** b");
    SHOWN("a|AKIAIOSFODNN7EXAMPLE|s3://AKIAIOSFODNN7EXAMPLE/x", "a *** s3://***");
    SHOWN("a|ghp_abcdefghijklmnopqrstuvwxyz0123456789|sk-proj-abcdefghijk12345", "a *** ***");
    SHOWN("a|--id=0123456789abcdef0123456789abcdef01234567", "a --id=***");
}
END_TEST

START_TEST(what_training_jobs_say_all_the_time_is_shown)
{
    static const char *const lines[] = {
        "python|train.py|--tokenizer=gpt2|--max-tokens=4096|--keyframes|12|--compass=3",
        "python|-m|torch.distributed.run|--nproc-per-node=8|train.py|--lr=1e-4|--name=ask-me",
        "python|train.py|--data=/mnt/datasets/imagenet-1k/2012/train/"
        "n01440764|--id=550e8400-e29b-41d4-a716-446655440000",
    };
    char expected[1024];

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        (void)snprintf(expected, sizeof(expected), "%s", lines[i]);
        for (char *at = expected; *at != '\0'; at++) {
            *at = *at == '|' ? ' ' : *at;
        }
        SHOWN(lines[i], expected);
    }
}
END_TEST

START_TEST(what_does_not_fit_is_left_out)
{
    for (size_t capacity = 0; capacity < 60; capacity++) {
        (void)show("train|--password=x1|one|--api-key|x2|https://u:p@host|two", capacity);
        ck_assert_ptr_null(strstr(shown, "x1"));
    }
    ck_assert_uint_eq(lac_command_line_shown("", 0, shown, sizeof(shown)), 0);
    ck_assert_uint_eq(lac_command_line_shown("a", 1, shown, sizeof(shown)), 1); /* no final 0 */
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("secrets");
    TCase *const tcase = tcase_create("command lines");
    SRunner *const runner = srunner_create(suite);
    int failed;

    tcase_add_test(tcase, what_names_a_secret_is_hidden);
    tcase_add_test(tcase, users_and_questions_in_addresses_are_hidden);
    tcase_add_test(tcase, headers_with_credentials_are_hidden);
    tcase_add_test(tcase, what_looks_like_a_token_is_hidden_wherever_it_stands);
    tcase_add_test(tcase, what_training_jobs_say_all_the_time_is_shown);
    tcase_add_test(tcase, what_does_not_fit_is_left_out);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
