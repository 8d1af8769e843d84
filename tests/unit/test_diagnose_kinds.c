/* Kinds of steps and phases of a recording: each kind with and without names, and what looks like
 * one and is none. */

#include "analysis/diagnose/result/analysis.h"
#include "tests/support/check_main.h"
#include "tests/support/trace_sheet.h"

#include <check.h>
#include <stdint.h>
#include <string.h>

/* -- a loop, step by step ---------------------------------------------------------------------- */

static double now_us;      /* of the host */
static int steps_drawn;    /* ranges named ProfilerStep so far */
static bool has_operators; /* autograd's nodes are recorded */

static void begin(bool with_operators)
{
    sheet_blank();
    now_us = 0.0;
    steps_drawn = 0;
    has_operators = with_operators;
}

/** `count` launches and kernels of `each_us`, the host as long as the device. */
static void launch(int count, double each_us, const char *name)
{
    for (int i = 0; i < count; i++) {
        sheet_corr++;
        sheet_add("main call %.1f 2 #%u cudaLaunchKernel\n", now_us, sheet_corr);
        sheet_add("gpu0.7 kernel %.1f %.1f #%u %s\n", now_us + 2.0, each_us - 2.0, sheet_corr,
                  name);
        now_us += each_us;
    }
}

static void wait_for(int batch, double wait_us)
{
    if (batch >= 0) {
        sheet_add("main wait %.1f %.1f batch=%d\n", now_us, wait_us, batch);
    } else {
        sheet_add(
            "main op %.1f %.1f enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__\n",
            now_us, wait_us);
    }
    now_us += wait_us;
}

static void forward(double each_us)
{
    double from_us = now_us;
    launch(8, each_us, "fprop_kernel");
    if (has_operators) {
        sheet_add("main op %.1f %.1f aten::linear\n", from_us, now_us - from_us);
    }
}

static void backward(double each_us)
{
    double from_us = now_us;
    launch(14, each_us, "dgrad_kernel");
    if (has_operators) {
        sheet_add("main op %.1f %.1f autograd::engine::evaluate_function: AddmmBackward0\n",
                  from_us, now_us - from_us);
    }
}

static void update(void)
{
    launch(2, 40.0, "multi_tensor_apply_kernel");
}

static double step_us;

static void open_step(void)
{
    step_us = now_us;
}

static void close_step(void)
{
    now_us += 10.0;
    sheet_add("main range %.1f %.1f ProfilerStep#%d\n", step_us, now_us - step_us, steps_drawn++);
}

static void train(int batch)
{
    open_step();
    wait_for(batch, 10.0);
    forward(40.0);
    backward(40.0);
    update();
    close_step();
}

static void validate(int batch)
{
    open_step();
    wait_for(batch, 10.0);
    forward(40.0);
    close_step();
}

static void diagnose(const char *metadata)
{
    sheet_diagnose(metadata, 7);
}

/* -- what came of it --------------------------------------------------------------------------- */

static const struct lac_step_kind_facts *facts_of(enum lac_step_kind kind)
{
    for (uint32_t k = 0; k < analysis->step_kind_count; k++) {
        if (analysis->step_kinds[k].kind == kind) {
            return &analysis->step_kinds[k];
        }
    }
    return NULL;
}

static uint32_t count_of(enum lac_step_kind kind)
{
    const struct lac_step_kind_facts *facts = facts_of(kind);
    return facts != NULL ? facts->count : 0;
}

static int64_t phase_ns(enum lac_phase_kind kind)
{
    int64_t sum_ns = 0;
    for (uint32_t p = 0; p < analysis->phase_count; p++) {
        sum_ns += analysis->phases[p].kind == kind ? analysis->phases[p].dur_ns : 0;
    }
    return sum_ns;
}

/** Nothing but training, but for the first steps. */
static void check_all_train(void)
{
    for (uint32_t k = 0; k < analysis->step_kind_count; k++) {
        ck_assert_msg(analysis->step_kinds[k].kind == LAC_KIND_TRAIN ||
                          analysis->step_kinds[k].kind == LAC_KIND_WARM_UP,
                      "%s: %s", lac_step_kind_name(analysis->step_kinds[k].kind),
                      analysis->step_kinds[k].why);
    }
}

/** An ordinary step's work on batch `i`. */
static void train_on(int i)
{
    wait_for(i, 10.0);
    forward(40.0);
    backward(40.0);
    update();
}

/* -- checkpoints ------------------------------------------------------------------------------- */

START_TEST(a_checkpoint_by_name_has_its_period_and_its_cost)
{
    begin(true);
    for (int i = 0; i < 40; i++) {
        open_step();
        train_on(i);
        if (i % 10 == 9) {
            sheet_add("main range %.1f 5000 save model\n", now_us);
            now_us += 5000.0;
        }
        close_step();
    }
    diagnose(NULL);
    const struct lac_step_kind_facts *facts = facts_of(LAC_KIND_CHECKPOINT);
    ck_assert_ptr_nonnull(facts);
    ck_assert_uint_eq(facts->count, 4);
    ck_assert_uint_eq(facts->every, 10);
    ck_assert_int_eq(facts->own_ns, INT64_C(4) * 5000000);
    ck_assert_ptr_nonnull(strstr(facts->why, "save model"));
    ck_assert_ptr_nonnull(strstr(facts->text, "every 10th step writes a checkpoint: 5 ms each, 3"));
    ck_assert_int_eq(phase_ns(LAC_PHASE_CHECKPOINT), INT64_C(4) * 5000000);
    ck_assert_uint_eq(analysis->step_kept_count, 36);
    ck_assert_ptr_null(sheet_finding("step-outliers"));
    ck_assert_ptr_nonnull(strstr(sheet_finding("phase-overhead")->change, "async_save"));
}
END_TEST

START_TEST(a_checkpoint_without_a_name_copies_and_then_launches_nothing)
{
    begin(true);
    for (int i = 0; i < 30; i++) {
        open_step();
        train_on(i);
        if (i % 10 == 9) {
            sheet_corr++;
            sheet_add("main call %.1f 900 #%u cudaMemcpyAsync\n", now_us, sheet_corr);
            sheet_add("gpu0.7 copy %.1f 880 #%u DtoH pageable 90000000\n", now_us + 5, sheet_corr);
            now_us += 4000.0;
        }
        close_step();
    }
    diagnose(NULL);
    const struct lac_step_kind_facts *facts = facts_of(LAC_KIND_CHECKPOINT);
    ck_assert_ptr_nonnull(facts);
    ck_assert_uint_eq(facts->count, 3);
    ck_assert_ptr_nonnull(strstr(facts->why, "90 MB to the host"));
    ck_assert_int_eq(analysis->steps[19].left_out, LAC_STEP_OTHER_KIND);
    ck_assert_int_ge(phase_ns(LAC_PHASE_CHECKPOINT), INT64_C(3) * 3900000);
}
END_TEST

START_TEST(a_checkpoint_is_seen_in_the_functions_that_write_it)
{
    begin(true);
    for (int i = 0; i < 20; i++) {
        open_step();
        train_on(i);
        if (i == 12) {
            sheet_add("main python %.1f 3000 torch/serialization.py(627): save\n", now_us);
            now_us += 3000.0;
        }
        close_step();
    }
    diagnose(NULL);
    ck_assert_uint_eq(count_of(LAC_KIND_CHECKPOINT), 1);
    ck_assert_int_eq(analysis->steps[12].kind, LAC_KIND_CHECKPOINT);
    ck_assert_int_eq(phase_ns(LAC_PHASE_CHECKPOINT), 3000000);
}
END_TEST

START_TEST(what_another_thread_saves_meanwhile_is_no_kind)
{
    begin(true);
    for (int i = 0; i < 20; i++) {
        if (i == 10) {
            sheet_add("saver range %.1f 2500 save_checkpoint\n", now_us + 5.0);
        }
        train(i);
    }
    diagnose(NULL);
    check_all_train();
    ck_assert_int_eq(phase_ns(LAC_PHASE_CHECKPOINT), 0);
    ck_assert_ptr_null(sheet_finding("phase-overhead"));
}
END_TEST

/* -- validations ------------------------------------------------------------------------------- */

START_TEST(steps_inside_a_named_validation_are_validation)
{
    begin(true);
    for (int i = 0; i < 16; i++) {
        train(i);
    }
    double from_us = now_us;
    for (int i = 0; i < 5; i++) {
        validate(i);
    }
    sheet_add("main range %.1f %.1f evaluate\n", from_us - 5.0, now_us - from_us + 10.0);
    for (int i = 0; i < 16; i++) {
        train(16 + i);
    }
    diagnose(NULL);
    ck_assert_uint_eq(count_of(LAC_KIND_VALIDATION), 5);
    ck_assert_uint_eq(count_of(LAC_KIND_EPOCH_END), 0);
    ck_assert_int_eq(analysis->steps[18].left_out, LAC_STEP_OTHER_KIND);
}
END_TEST

/** Three rounds of twelve training steps and four of validation. */
static void draw_rounds(bool with_operators, bool counts_on)
{
    begin(with_operators);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 12; i++) {
            train(counts_on ? 12 * round + i : i);
        }
        for (int i = 0; i < 4; i++) {
            validate(i);
        }
    }
}

START_TEST(validation_lacks_what_other_steps_have)
{
    draw_rounds(true, true);
    diagnose(NULL);
    const struct lac_step_kind_facts *facts = facts_of(LAC_KIND_VALIDATION);
    ck_assert_ptr_nonnull(facts);
    ck_assert_uint_ge(facts->count, 11); /* the last one may be cut off */
    ck_assert_uint_eq(facts->every, 16);
    ck_assert_ptr_nonnull(strstr(facts->why, "without a backward pass"));
    ck_assert_ptr_nonnull(strstr(facts->text, "every 16 steps a run of 4 steps validates"));
    ck_assert_int_eq(analysis->step_mean_ns, 980000);
    ck_assert_uint_eq(count_of(LAC_KIND_EPOCH_END), 0); /* a validation loader begins no epoch */
}
END_TEST

START_TEST(validation_shows_in_the_kernels_alone)
{
    draw_rounds(false, true);
    diagnose(NULL);
    ck_assert_uint_ge(count_of(LAC_KIND_VALIDATION), 11);
    ck_assert_uint_eq(count_of(LAC_KIND_EPOCH_END), 0);
}
END_TEST

START_TEST(one_step_that_skips_its_update_is_no_validation)
{
    begin(true);
    for (int i = 0; i < 20; i++) {
        if (i == 9) {
            validate(i); /* the batch in order: it was left out for what was in it */
        } else {
            train(i);
        }
    }
    diagnose(NULL);
    ck_assert_uint_eq(count_of(LAC_KIND_VALIDATION), 0);
    begin(true);
    for (int i = 0; i < 20; i++) {
        train(i);
        if (i == 9) {
            validate(0);
        }
    }
    diagnose(NULL);
    ck_assert_uint_eq(count_of(LAC_KIND_VALIDATION), 1);
    ck_assert_uint_eq(count_of(LAC_KIND_EPOCH_END), 0);
}
END_TEST

START_TEST(a_validation_between_two_updates_is_found_by_its_batches)
{
    begin(true);
    for (int i = 0; i < 24; i++) {
        open_step();
        if (i % 8 == 7) {
            for (int batch = 0; batch < 6; batch++) {
                wait_for(batch, 10.0);
                forward(40.0);
            }
        }
        train_on(i);
        close_step();
    }
    diagnose(NULL);
    const struct lac_step_kind_facts *facts = facts_of(LAC_KIND_VALIDATION);
    ck_assert_ptr_nonnull(facts);
    ck_assert_uint_eq(facts->count, 3);
    ck_assert_uint_eq(facts->every, 8);
    ck_assert_ptr_nonnull(strstr(facts->why, "7 batches per backward pass"));
    ck_assert_int_eq(phase_ns(LAC_PHASE_VALIDATION), INT64_C(3) * 6 * 330 * 1000);
    ck_assert_uint_eq(count_of(LAC_KIND_EPOCH_END), 0);
}
END_TEST

START_TEST(a_validation_and_a_checkpoint_in_one_step_keep_their_time)
{
    begin(true);
    for (int i = 0; i < 24; i++) {
        open_step();
        train_on(i);
        if (i % 8 == 7) {
            for (int batch = 0; batch < 6; batch++) {
                wait_for(batch, 10.0);
                forward(40.0);
            }
            sheet_corr++;
            sheet_add("main call %.1f 900 #%u cudaMemcpyAsync\n", now_us, sheet_corr);
            sheet_add("gpu0.7 copy %.1f 880 #%u DtoH pageable 90000000\n", now_us + 5, sheet_corr);
            now_us += 3990.0;
        }
        close_step();
    }
    diagnose(NULL);
    ck_assert_uint_eq(count_of(LAC_KIND_CHECKPOINT), 3); /* it takes longer */
    ck_assert_int_eq(phase_ns(LAC_PHASE_VALIDATION), INT64_C(3) * 6 * 330 * 1000);
    ck_assert_int_eq(phase_ns(LAC_PHASE_CHECKPOINT), INT64_C(3) * 4000 * 1000);
}
END_TEST

START_TEST(predictions_that_are_copied_are_no_checkpoint)
{
    begin(true);
    for (int i = 0; i < 24; i++) {
        train(i);
        for (int batch = 0; batch < 3 && i % 8 == 7; batch++) {
            open_step();
            wait_for(batch, 10.0);
            forward(40.0);
            sheet_corr++;
            sheet_add("main call %.1f 900 #%u cudaMemcpyAsync\n", now_us, sheet_corr);
            sheet_add("gpu0.7 copy %.1f 880 #%u DtoH pageable 90000000\n", now_us + 5, sheet_corr);
            now_us += 3990.0; /* a metric of them, on the host */
            close_step();
        }
    }
    diagnose(NULL);
    ck_assert_uint_eq(count_of(LAC_KIND_CHECKPOINT), 0);
    ck_assert_uint_ge(count_of(LAC_KIND_VALIDATION), 8);
}
END_TEST

START_TEST(a_job_that_only_evaluates_is_no_validation)
{
    begin(true);
    for (int i = 0; i < 12; i++) {
        validate(i);
    }
    sheet_add("main range 0 %.1f evaluate\n", now_us);
    diagnose(NULL);
    ck_assert_int_eq(analysis->workload, LAC_WORKLOAD_INFERENCE);
    ck_assert_uint_eq(analysis->step_kind_count, 0);
    ck_assert_int_eq(phase_ns(LAC_PHASE_TRAINING), 0);
    ck_assert_int_gt(phase_ns(LAC_PHASE_STEPS), 0);
}
END_TEST

/* -- epochs ------------------------------------------------------------------------------------ */

/** Epochs of ten batches; the first batch of each but the first is waited for `first_us`. */
static void draw_epochs(double first_us, bool has_numbers)
{
    begin(true);
    for (int i = 0; i < 40; i++) {
        open_step();
        if (!has_numbers && i % 10 == 0 && i > 0) {
            wait_for(-1, 5.0); /* that the epoch is over */
        }
        wait_for(has_numbers ? i % 10 : -1, i % 10 == 0 && i > 0 ? first_us : 10.0);
        forward(40.0);
        backward(40.0);
        update();
        close_step();
    }
}

START_TEST(an_epoch_ends_where_its_loader_counts_from_zero)
{
    draw_epochs(4000.0, true);
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":2}}}");
    const struct lac_step_kind_facts *facts = facts_of(LAC_KIND_EPOCH_END);
    ck_assert_ptr_nonnull(facts);
    ck_assert_uint_eq(facts->count, 3);
    ck_assert_uint_eq(facts->every, 10);
    ck_assert_int_eq(facts->own_ns, INT64_C(3) * 4000000);
    ck_assert_ptr_nonnull(strstr(facts->text, "every 10th step waits for a new epoch: 4 ms each"));
    ck_assert_ptr_null(sheet_finding("step-outliers"));
    /* it returns: the wait counts in the mean step and in what is starved */
    ck_assert_uint_eq(analysis->step_kept_count, 40);
    ck_assert_int_eq(analysis->step_mean_ns, 980000 + INT64_C(3) * 3990000 / 40);
    ck_assert_int_gt(analysis->loader.starved_ns, INT64_C(3) * 3900000);
}
END_TEST

START_TEST(an_epoch_ends_where_a_batch_does_not_come)
{
    draw_epochs(4000.0, false);
    diagnose(NULL);
    ck_assert_uint_eq(count_of(LAC_KIND_EPOCH_END), 3);
    ck_assert_int_eq(analysis->steps[20].kind, LAC_KIND_EPOCH_END);
    ck_assert_int_eq(phase_ns(LAC_PHASE_EPOCH_END), INT64_C(3) * 4000000);
}
END_TEST

START_TEST(an_epoch_ends_behind_its_validation)
{
    draw_rounds(true, false);
    diagnose(NULL);
    ck_assert_uint_eq(count_of(LAC_KIND_EPOCH_END), 2);
    ck_assert_int_eq(analysis->steps[16].kind, LAC_KIND_EPOCH_END);
    ck_assert_int_eq(analysis->steps[32].kind, LAC_KIND_EPOCH_END);
}
END_TEST

/** A training on the host, as an old profiler writes it: what a slice is, no category says. */
static void draw_on_host(int batches, bool is_training)
{
    for (int i = 0; i <= batches; i++) { /* the last one does not come */
        wait_for(-1, 300.0);
        for (int k = 0; k < 20 && i < batches; k++) {
            sheet_add("main other %.1f 20 aten::addmm\n", now_us);
            now_us += 21.0;
            if (is_training) {
                sheet_add(
                    "main other %.1f 20 autograd::engine::evaluate_function: AddmmBackward0\n",
                    now_us);
                now_us += 21.0;
            }
        }
        now_us += 50.0;
    }
}

START_TEST(on_the_host_operators_tell_kinds)
{
    begin(true);
    for (int epoch = 0; epoch < 4; epoch++) {
        draw_on_host(10, true);
        draw_on_host(4, false);
    }
    draw_on_host(2, true);
    diagnose(NULL);
    ck_assert_int_eq(analysis->workload, LAC_WORKLOAD_HOST_TRAINING);
    ck_assert_uint_eq(count_of(LAC_KIND_VALIDATION), 20); /* each with a batch in vain */
    ck_assert_uint_eq(count_of(LAC_KIND_EPOCH_END), 4);
    ck_assert_int_eq(analysis->steps[10].kind, LAC_KIND_EPOCH_END);
    const struct lac_step_kind_facts *facts = facts_of(LAC_KIND_VALIDATION);
    ck_assert_ptr_nonnull(facts);
    ck_assert_uint_eq(facts->every, 16);
    ck_assert_int_eq(analysis->steps[12].left_out, LAC_STEP_OTHER_KIND);
}
END_TEST

START_TEST(a_second_batch_that_nobody_waited_for_ends_no_epoch)
{
    begin(true);
    for (int i = 0; i < 20; i++) {
        open_step();
        if (i == 8) {
            wait_for(-1, 10.0); /* of two batches one was thrown away */
        }
        wait_for(-1, 10.0);
        forward(40.0);
        backward(40.0);
        update();
        close_step();
    }
    diagnose(NULL);
    check_all_train();
}
END_TEST

START_TEST(the_ends_of_epochs_are_a_share_of_the_job)
{
    draw_epochs(4000.0, false);
    sheet_add("w0 fetch 0 900 batch=0 worker=0\n");
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":2}}}");
    const struct lac_finding *finding = sheet_finding("phase-overhead");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->title, "ends of epochs"));
    ck_assert_ptr_nonnull(strstr(finding->change, "persistent_workers=True"));
    diagnose("{\"lacuna\":{\"settings\":{\"num_workers\":2,\"persistent_workers\":true}}}");
    finding = sheet_finding("phase-overhead");
    ck_assert_ptr_nonnull(finding);
    ck_assert_str_eq(finding->change, "");
}
END_TEST

/* -- code that is compiled --------------------------------------------------------------------- */

static void draw_loads(int first, int second)
{
    begin(true);
    for (int i = 0; i < 30; i++) {
        open_step();
        wait_for(i, 10.0);
        forward(40.0);
        if (i == first || i == second) {
            sheet_add("main call %.1f 1500 cuModuleLoadData\n", now_us);
            now_us += 1500.0;
        }
        sheet_add("main range %.1f 5 TorchDynamo Cache Lookup\n", now_us);
        now_us += 5.0;
        backward(40.0);
        update();
        close_step();
    }
}

START_TEST(code_loaded_late_is_a_recompilation)
{
    draw_loads(12, 21);
    diagnose(NULL);
    const struct lac_step_kind_facts *facts = facts_of(LAC_KIND_RECOMPILE);
    ck_assert_ptr_nonnull(facts);
    ck_assert_uint_eq(facts->count, 2);
    ck_assert_int_eq(facts->own_ns, INT64_C(2) * 1500000);
    ck_assert_int_eq(analysis->steps[12].left_out, LAC_STEP_KEPT);
    ck_assert(!analysis->steps[12].is_outlier);
    ck_assert_ptr_null(sheet_finding("step-outliers"));
    ck_assert_int_eq(phase_ns(LAC_PHASE_RECOMPILATION), INT64_C(2) * 1500000);
}
END_TEST

START_TEST(code_loaded_beside_other_work_keeps_its_time)
{
    begin(true);
    for (int i = 0; i < 30; i++) {
        open_step();
        wait_for(i, 10.0);
        forward(40.0);
        if (i == 9) {
            sheet_add("main range %.1f 500 _compile.compile_inner (dynamo_timed)\n", now_us);
            now_us += 500.0;
        }
        backward(40.0);
        update();
        if (i % 10 == 9) {
            sheet_add("main range %.1f 9000 save_checkpoint\n", now_us);
            now_us += 9000.0;
        }
        close_step();
    }
    diagnose(NULL);
    ck_assert_int_eq(analysis->steps[9].kind, LAC_KIND_CHECKPOINT);
    ck_assert_int_eq(phase_ns(LAC_PHASE_RECOMPILATION), 500000);
    ck_assert_int_eq(phase_ns(LAC_PHASE_CHECKPOINT), INT64_C(3) * 9000000);
}
END_TEST

START_TEST(code_loaded_first_is_warm_up)
{
    draw_loads(0, 1);
    diagnose(NULL);
    ck_assert_uint_eq(count_of(LAC_KIND_RECOMPILE), 0);
    ck_assert_uint_eq(count_of(LAC_KIND_WARM_UP), 2);
    ck_assert_int_gt(phase_ns(LAC_PHASE_WARM_UP), 3000000);
}
END_TEST

/* -- what is none ------------------------------------------------------------------------------ */

START_TEST(longer_sequences_are_training)
{
    begin(true);
    for (int i = 0; i < 30; i++) {
        double each_us = i % 7 == 6 ? 110.0 : 40.0;
        open_step();
        wait_for(i, 10.0);
        forward(each_us);
        backward(each_us);
        update();
        close_step();
    }
    diagnose(NULL);
    check_all_train();
}
END_TEST

START_TEST(an_update_after_micro_steps_is_training)
{
    begin(true);
    for (int i = 0; i < 32; i++) {
        open_step();
        wait_for(i, 10.0);
        forward(40.0);
        backward(40.0);
        if (i % 4 == 3) {
            for (int part = 0; part < 5; part++) {
                update();
            }
        }
        close_step();
    }
    diagnose(NULL);
    ck_assert(analysis->is_step_micro);
    check_all_train();
}
END_TEST

START_TEST(logging_is_training)
{
    begin(true);
    for (int i = 0; i < 30; i++) {
        open_step();
        train_on(i);
        if (i % 10 == 9) {
            sheet_corr++;
            sheet_add("main call %.1f 20 #%u cudaMemcpyAsync\n", now_us, sheet_corr);
            sheet_add("gpu0.7 copy %.1f 2 #%u DtoH pageable 4\n", now_us + 15, sheet_corr);
            now_us += 300.0;
        }
        close_step();
    }
    diagnose(NULL);
    check_all_train();
}
END_TEST

START_TEST(steps_of_many_lengths_are_training)
{
    begin(true);
    for (int i = 0; i < 30; i++) {
        open_step();
        wait_for(i, 10.0);
        forward(40.0);
        launch(i * 7 % 11, 40.0, "fprop_kernel");
        backward(40.0);
        update();
        close_step();
    }
    diagnose(NULL);
    check_all_train();
}
END_TEST

START_TEST(other_work_without_a_name_is_said_as_such)
{
    begin(true);
    for (int i = 0; i < 40; i++) {
        open_step();
        wait_for(i, 10.0);
        forward(40.0);
        backward(40.0);
        if (i % 10 == 4) {
            launch(12, 40.0, "unknown_kernel");
        }
        update();
        close_step();
    }
    diagnose(NULL);
    const struct lac_step_kind_facts *facts = facts_of(LAC_KIND_OTHER);
    ck_assert_ptr_nonnull(facts);
    ck_assert_uint_eq(facts->count, 4);
    ck_assert_uint_eq(facts->every, 10);
    ck_assert_ptr_nonnull(strstr(facts->why, "36 operations, other steps 24"));
    ck_assert_ptr_nonnull(strstr(facts->text, "every 10th step does other work"));
    ck_assert_uint_eq(analysis->step_kept_count, 40);
}
END_TEST

/* -- phases ------------------------------------------------------------------------------------ */

START_TEST(phases_are_the_whole_recording)
{
    begin(true);
    now_us = 5000.0;
    sheet_add("main range 0 100 imports\n");
    for (int i = 0; i < 20; i++) {
        train(i);
        now_us += i == 11 ? 3000.0 : 20.0;
    }
    double end_us = now_us;
    sheet_add("main range %.1f 2000 save_checkpoint\n", end_us + 100.0);
    sheet_add("main range %.1f 10 bye\n", end_us + 9000.0);
    diagnose(NULL);
    static const uint8_t expected[] = {LAC_PHASE_START_UP, LAC_PHASE_TRAINING, LAC_PHASE_IDLE,
                                       LAC_PHASE_TRAINING, LAC_PHASE_END,      LAC_PHASE_CHECKPOINT,
                                       LAC_PHASE_END};
    ck_assert_uint_eq(analysis->phase_count, sizeof(expected));
    for (size_t i = 0; i < sizeof(expected); i++) {
        ck_assert_uint_eq(analysis->phases[i].kind, expected[i]);
    }
    ck_assert_int_eq(analysis->phases[0].dur_ns, 5000000);
    ck_assert_uint_eq(analysis->phases[1].step_count, 12);
    ck_assert_int_eq(analysis->phases[2].dur_ns, 3000000);
    ck_assert_uint_eq(analysis->phases[3].step_count, 8);
    const struct lac_phase *last = &analysis->phases[6];
    ck_assert_int_eq(last->start_ns + last->dur_ns, analysis->duration_ns);
    ck_assert_int_eq(analysis->duration_ns, model->info.duration_ns);
    analysis->phases[2].dur_ns++;
    ck_assert(!lac_analysis_is_valid(analysis));
    analysis->phases[2].dur_ns--;
    analysis->phases[3].step_count++;
    ck_assert(!lac_analysis_is_valid(analysis));
}
END_TEST

START_TEST(a_trace_without_steps_has_one_phase)
{
    sheet_draw("main range 0 100 one\nmain range 200 300 two\n");
    ck_assert_uint_eq(analysis->phase_count, 1);
    ck_assert_int_eq(analysis->phases[0].dur_ns, 500000);
    ck_assert_uint_eq(analysis->step_kind_count, 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_checkpoint_by_name_has_its_period_and_its_cost);
    tcase_add_test(tcase, a_checkpoint_without_a_name_copies_and_then_launches_nothing);
    tcase_add_test(tcase, a_checkpoint_is_seen_in_the_functions_that_write_it);
    tcase_add_test(tcase, what_another_thread_saves_meanwhile_is_no_kind);
    tcase_add_test(tcase, steps_inside_a_named_validation_are_validation);
    tcase_add_test(tcase, validation_lacks_what_other_steps_have);
    tcase_add_test(tcase, validation_shows_in_the_kernels_alone);
    tcase_add_test(tcase, one_step_that_skips_its_update_is_no_validation);
    tcase_add_test(tcase, a_validation_between_two_updates_is_found_by_its_batches);
    tcase_add_test(tcase, a_validation_and_a_checkpoint_in_one_step_keep_their_time);
    tcase_add_test(tcase, predictions_that_are_copied_are_no_checkpoint);
    tcase_add_test(tcase, a_job_that_only_evaluates_is_no_validation);
    tcase_add_test(tcase, an_epoch_ends_where_its_loader_counts_from_zero);
    tcase_add_test(tcase, an_epoch_ends_where_a_batch_does_not_come);
    tcase_add_test(tcase, an_epoch_ends_behind_its_validation);
    tcase_add_test(tcase, on_the_host_operators_tell_kinds);
    tcase_add_test(tcase, a_second_batch_that_nobody_waited_for_ends_no_epoch);
    tcase_add_test(tcase, the_ends_of_epochs_are_a_share_of_the_job);
    tcase_add_test(tcase, code_loaded_late_is_a_recompilation);
    tcase_add_test(tcase, code_loaded_beside_other_work_keeps_its_time);
    tcase_add_test(tcase, code_loaded_first_is_warm_up);
    tcase_add_test(tcase, longer_sequences_are_training);
    tcase_add_test(tcase, an_update_after_micro_steps_is_training);
    tcase_add_test(tcase, logging_is_training);
    tcase_add_test(tcase, steps_of_many_lengths_are_training);
    tcase_add_test(tcase, other_work_without_a_name_is_said_as_such);
    tcase_add_test(tcase, phases_are_the_whole_recording);
    tcase_add_test(tcase, a_trace_without_steps_has_one_phase);
}

int main(void)
{
    Suite *suite = suite_create("diagnose_kinds");
    TCase *tcase = tcase_create("kinds");
    tcase_add_checked_fixture(tcase, NULL, sheet_wipe);
    tcase_set_timeout(tcase, 60);
    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
