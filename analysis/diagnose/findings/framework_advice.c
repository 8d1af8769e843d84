/* What a finding proposes, in the words of the framework that trains: nobody who uses a trainer writes
 * its loop. Entries are formats with at most one %s for the value; names as of the frameworks'
 * documentation (documents/ has the links). */

#include "analysis/diagnose/findings/findings.h"
#include "collector/base/count_of.h"

#include <stddef.h>
#include <string.h>

static const char trainer_reads[] =
    "# the filter looks at each loss; it only matters to what is logged\n"
    "TrainingArguments(..., logging_nan_inf_filter=False, logging_steps=50)";
static const char lightning_reads[] =
    "self.log('loss', loss.detach())        # the tensor, no .item()\n"
    "Trainer(..., log_every_n_steps=50)     # which reads it then";

static const struct {
    const char *framework; /* as the hook tells it */
    const char *of[LAC_SWITCH_COUNT_];
} table[] = {
    {"HF Trainer",
     {
         [LAC_SWITCH_NUM_WORKERS] = "TrainingArguments(..., dataloader_num_workers=%s)",
         [LAC_SWITCH_PREFETCH_FACTOR] = "TrainingArguments(..., dataloader_prefetch_factor=%s)",
         [LAC_SWITCH_PERSISTENT_WORKERS] =
             "TrainingArguments(..., dataloader_persistent_workers=%s)",
         [LAC_SWITCH_PIN_MEMORY] =
             "TrainingArguments(..., dataloader_pin_memory=%s)   # the default: what turns it off?",
         [LAC_SWITCH_BFLOAT16] = "TrainingArguments(..., bf16=True)",
         [LAC_SWITCH_FLOAT16] = "TrainingArguments(..., fp16=True)",
         [LAC_SWITCH_TF32] = "TrainingArguments(..., tf32=True)",
         [LAC_SWITCH_READ_LESS] = trainer_reads,
     }},
    {"Lightning",
     {
         [LAC_SWITCH_NUM_WORKERS] = "DataLoader(..., num_workers=%s)   # in train_dataloader()",
         [LAC_SWITCH_PIN_MEMORY] =
             "DataLoader(..., pin_memory=%s)   # the Trainer then copies without blocking",
         [LAC_SWITCH_BFLOAT16] = "Trainer(..., precision='bf16-mixed')",
         [LAC_SWITCH_FLOAT16] = "Trainer(..., precision='16-mixed')",
         [LAC_SWITCH_READ_LESS] = lightning_reads,
     }},
    {"Accelerate",
     {
         [LAC_SWITCH_BFLOAT16] = "Accelerator(mixed_precision='bf16')",
         [LAC_SWITCH_FLOAT16] = "Accelerator(mixed_precision='fp16')",
     }},
    {"DeepSpeed",
     {
         [LAC_SWITCH_BFLOAT16] = "\"bf16\": {\"enabled\": true}   # in the DeepSpeed configuration",
         [LAC_SWITCH_FLOAT16] = "\"fp16\": {\"enabled\": true}   # in the DeepSpeed configuration",
     }},
    {"Megatron",
     {
         [LAC_SWITCH_NUM_WORKERS] = "--num-workers %s",
         [LAC_SWITCH_BFLOAT16] = "--bf16",
         [LAC_SWITCH_FLOAT16] = "--fp16",
         [LAC_SWITCH_READ_LESS] = "--log-interval 50",
     }},
    {"Keras",
     {
         [LAC_SWITCH_NUM_WORKERS] =
             "dataset = dataset.map(decode, num_parallel_calls=%s).prefetch(tf.data.AUTOTUNE)",
         [LAC_SWITCH_PIN_MEMORY] =
             "dataset = dataset.apply(tf.data.experimental.prefetch_to_device('/gpu:0'))",
         [LAC_SWITCH_BFLOAT16] = "keras.mixed_precision.set_global_policy('mixed_bfloat16')",
         [LAC_SWITCH_FLOAT16] = "keras.mixed_precision.set_global_policy('mixed_float16')",
     }},
};

const char *lac_framework_advice(const struct lac_facts *facts, enum lac_switch which,
                                 const char *value)
{
    for (size_t i = 0; i < LAC_COUNT_OF(table); i++) {
        const char *const text = table[i].of[which];
        if (text == NULL || !lac_setting_is(facts, "settings", "framework", table[i].framework)) {
            continue;
        }
        const char *const at = strstr(text, "%s");
        return at == NULL ? text
                          : lac_texts_add(&facts->analysis->texts, "%.*s%s%s", (int)(at - text),
                                          text, value, at + 2);
    }
    return NULL;
}
