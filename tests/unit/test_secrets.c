/* What of a command line stands in a recording. */
#include "collector/base/count_of.h"
#include "collector/inject/secrets.c"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char shown[4096];

/* Words are apart by '|'. */
static const char *show(const char *line, size_t capacity)
{
    char text[1024];
    const size_t length = strlen(line) + 1;
    size_t used;

    ck_assert_uint_le(length, sizeof(text));
    memcpy(text, line, length);
    for (size_t i = 0; i < length; i++) {
        text[i] = text[i] == '|' ? '\0' : text[i];
    }
    used = lac_command_line_shown(text, length, shown, capacity);
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
    SHOWN("curl|-H|Authorization: Bearer x1", "curl -H Authorization:***");
    SHOWN("curl|--header=X-API-Key: x1", "curl --header=X-API-Key:***");
    SHOWN("curl|-H|Accept: text/plain|a basic test", "curl -H Accept: text/plain a basic test");
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

/* ---- what training jobs say all the time */

static const char *const ordinary[] = {
    "python|train.py|--tokenizer|gpt2|--max-tokens|512|--pin-memory|--key-frames|12",
    "python|train.py|--num-keys|4|--author|me|--pass-through|--num-passes|3|--compass|3",
    "python|-m|torch.distributed.run|--nproc-per-node=8|--rdzv-backend=c10d|--rdzv-endpoint=node1:"
    "29500|train.py|--lr=1e-4",
    "torchrun|--standalone|--nnodes=1|--nproc_per_node=gpu|train.py|--batch-size|64|--epochs|90",
    "python|train.py|--data=/mnt/datasets/imagenet-1k/2012/train/"
    "n01440764|--id=550e8400-e29b-41d4-a716-446655440000",
    "accelerate|launch|--mixed_precision|bf16|--num_processes|8|run_clm.py|--model_name_or_path|"
    "meta-llama/Llama-2-7b-hf",
    "deepspeed|--num_gpus|8|train.py|--deepspeed|ds_config.json|--zero_stage|3",
    "python|train.py|--pad-token-id|0|--eos-token-id|2|--bos-token-id|1",
    "python|train.py|--pad_token|<pad>|--eos_token|</s>|--mask-token|[MASK]",
    "python|train.py|--image-token-index|32000|--num-image-tokens|576",
    "python|train.py|--image-key|jpg|--label-key|cls|--text_key|caption",
    "python|train.py|--sort-key|length|--primary_keys|id,name",
    "python|train.py|model.tokenizer=gpt2|model.max_tokens=2048|trainer.devices=8",
    "python|train.py|+trainer.precision=bf16-mixed|++data.key_padding=true|hydra.run.dir=outputs/"
    "2024-05-01/12-00-00",
    "python|train.py|--keep-tokens|--token-dropout|0.1|--tokens-per-step|500000",
    "python|train.py|--key-dim|64|--num-key-value-heads|8|--query-key-norm",
    "python|train.py|--bypass-cache|--overpass|--passes|2|--forward-pass|only|--two_pass",
    "python|train.py|--passage-length|100|--password-less-login",
    "python|train.py|--patience|10|--path|/data|--pattern|*.tar|--patch-size|16",
    "python|train.py|--spin-up|3|--pinned|--pin_memory=True|--pinhole-camera",
    "python|train.py|--authors|list.txt|--authority-weight|0.5|--auth-free",
    "python|train.py|--sigma|0.1|--sig-digits|3|--sigmoid|--signal-rate|16000",
    "python|train.py|--salt-and-pepper|0.1|--desalt",
    "python|train.py|--licensed-only|--license-plates",
    "python|train.py|--seed|42|--name=ask-me|--run-name|risk-averse-policy-gradient-1",
    "python|train.py|--tags|sk-learn-pipeline,hf-transformers|--group|sk-experiments",
    "python|train.py|--notes|a|basic|test|of|the|basic|model",
    "python|train.py|--revision|v2.1|--commit|5f91d94|--checkpoint|step_00100000.pt",
    "python|train.py|--run-id|3xk2p9qz|--resume-from|runs/2024-05-01_12-00-00/ckpt.pt",
    "python|train.py|--s3|s3://bucket/dataset/train-{000000..001023}.tar|--region|us-east-1",
    "python|train.py|--gcs|gs://bucket/tfrecords/train-00000-of-01024",
    "python|train.py|--url|https://host/data/train.tar|--proxy|http://proxy:3128",
    "python|train.py|--master-addr|10.0.0.1|--master-port|29500|--world-size|16|--rank|3",
    "python|-u|train.py|--workers|8|--prefetch-factor|4",
    "python|-u|-m|pkg.train|--config|configs/base.yaml",
    "python|-X|faulthandler|-W|ignore|train.py",
    "python|-c|import|torch;|print(torch.__version__)",
    "mpirun|-np|8|-H|node1:4,node2:4|python|train.py",
    "srun|-p|gpu|-N|2|--gres=gpu:8|--cpus-per-task|16|python|train.py",
    "sbatch|-p|a100|-t|24:00:00|job.sh",
    "docker|run|-u|1000:1000|--gpus|all|image:latest|python|train.py",
    "docker|run|-p|8080:80|-v|/data:/data|image:latest",
    "ssh|-p|2222|node1|hostname",
    "kubectl|exec|-it|pod-0|-n|train|--|python|train.py",
    "python|server.py|-p|8000|--host|0.0.0.0",
    "mkdir|-p|/data/out",
    "nsys|profile|-t|cuda,nvtx|-o|report|--force-overwrite|true|python|train.py",
    "ncu|--set|full|-o|kernels|python|train.py",
    "rsync|-avz|me@host:/data/|/data/",
    "git|clone|git@github.com:org/repo.git",
    "pip|install|-e|.[dev]|--no-cache-dir",
    "python|train.py|--optimizer|adamw|--betas|0.9|0.999|--weight-decay|0.01",
    "python|train.py|--arch|resnet50|--pretrained|--channels-last|--amp",
    "python|train.py|--dataset|wikitext|--dataset-config|wikitext-103-raw-v1|--block-size|1024",
    "python|train.py|--lr-scheduler|cosine|--warmup-steps|2000|--min-lr|1e-6",
    "python|train.py|--gradient-accumulation-steps|8|--gradient-checkpointing",
    "python|train.py|--lora-r|16|--lora-alpha|32|--target-modules|q_proj,k_proj,v_proj,o_proj",
    "python|train.py|--quantization|nf4|--double-quant|--compute-dtype|bfloat16",
    "python|train.py|--max-new-tokens|256|--temperature|0.7|--top-p|0.95|--top-k|50",
    "python|train.py|--prompt-template|chatml|--system-prompt|You|are|helpful",
    "python|train.py|--eval-steps|500|--save-steps|1000|--logging-steps|10|--save-total-limit|3",
    "python|train.py|--wandb-project|llm|--wandb-entity|team|--wandb-mode|offline",
    "python|train.py|--mlflow-uri|http://mlflow:5000|--experiment|exp1",
    "python|train.py|--tensorboard-dir|runs|--profile|--profile-steps|10:20",
    "python|train.py|--bf16|true|--tf32|true|--torch-compile|--compile-mode|max-autotune",
    "python|train.py|--fsdp|full_shard|auto_wrap|--fsdp-config|fsdp.json",
    "python|train.py|--tensor-model-parallel-size|4|--pipeline-model-parallel-size|2",
    "python|pretrain_gpt.py|--vocab-file|vocab.json|--merge-file|merges.txt|--seq-length|2048",
    "python|pretrain_gpt.py|--data-path|0.5|/data/a|0.5|/data/b|--split|949,50,1",
    "python|train.py|--num-attention-heads|32|--hidden-size|4096|--ffn-hidden-size|11008",
    "python|train.py|--position-embedding-type|rope|--rotary-base|10000",
    "python|train.py|--tokenizer-type|GPTSentencePieceTokenizer|--tokenizer-model|/m/"
    "tokenizer.model",
    "python|train.py|--make-vocab-size-divisible-by|128|--vocab-size|32000",
    "python|train.py|--hotkeys|--monkey|--turkey-dataset|--keyboard|--keypoints|17",
    "python|train.py|--keypoint-loss|0.1|--keys|1,2|--key_points|--keystone",
    "python|train.py|--cookiecutter-free|--cooking",
    "python|train.py|--section-size|10",
    "python|train.py|--drop-last|--shuffle|--persistent-workers|--multiprocessing-context|spawn",
    "python|train.py|--image-size|224|--crop-pct|0.875|--interpolation|bicubic",
    "python|train.py|--mean|0.485|0.456|0.406|--std|0.229|0.224|0.225",
    "python|train.py|--mixup|0.8|--cutmix|1.0|--smoothing|0.1|--drop-path|0.1",
    "python|train.py|--opt|lamb|--opt-eps|1e-6|--clip-grad|1.0",
    "python|train.py|--sched|step|--decay-epochs|30|--decay-rate|0.1",
    "python|train.py|--model|vit_base_patch16_224.augreg_in21k_ft_in1k|--num-classes|1000",
    "python|train.py|--teacher|resnet152|--student|resnet18|--distill-alpha|0.5",
    "python|train.py|--gpu|0,1,2,3|--device|cuda:0|--backend|nccl",
    "python|train.py|--init-method|tcp://10.0.0.1:23456|--dist-url|env://",
    "python|train.py|--log-level|INFO|--log-file|/logs/2024/05/01/train.log",
    "python|train.py|--cache-dir|/mnt/nvme/cache|--tmp-dir|/tmp/abc123",
    "python|train.py|--num-workers=8|--pin-memory=false|--timeout=600",
    "python|train.py|--speaker-id|p225|--sample-rate|22050|--hop-length|256",
    "python|train.py|--mel-fmin|0|--mel-fmax|8000|--n-fft|1024",
    "python|train.py|--env|CartPole-v1|--gamma|0.99|--total-timesteps|1000000",
    "python|train.py|--ppo-epochs|4|--clip-range|0.2|--ent-coef|0.01",
    "python|train.py|--reward-model|OpenAssistant/reward-model-deberta-v3-large-v2",
    "python|train.py|--graph|ogbn-products|--fanouts|15,10,5|--num-layers|3",
    "python|train.py|--atoms|20|--cutoff|5.0|--rbf|50",
    "python|train.py|--unet-channels|320,640,1280|--noise-schedule|cosine|--timesteps|1000",
    "python|train.py|--vae|stabilityai/sd-vae-ft-mse|--resolution|512|--center-crop",
    "python|train.py|--validation-prompt|a|photo|of|sks|dog|--instance-prompt|sks",
    "python|train.py|--placeholder_token|<cat-toy>|--initializer_token|toy",
    "python|train.py|--class-token|--reg-tokens|4|--pool|token",
    "python|train.py|--per-token-loss|--token-merging|8|--token_type_ids",
    "python|train.py|--blank-token|0|--sos-token|1|--next-token-prediction",
    "python|train.py|--cls-token|[CLS]|--sep-token|[SEP]|--unk-token|[UNK]",
    "python|train.py|--video-token|<vid>|--audio-token|<aud>|--special-token|<x>",
    "python|train.py|--data-key|images|--target_key|labels|--feature-key|x",
    "python|train.py|--group-key|user|--metric-key|eval/loss|--hash-key|content",
    "python|train.py|--cache-key|v1|--prompt-key|q|--answer_key|a",
    "python|train.py|--label-smoothing|0.1|--label-names|labels",
    "python|train.py|--public-key-only|--foreign-key",
    "python|train.py|--single-pass|--multi-pass|2|--num-pass|3|--first_pass",
    "python|train.py|--json-config|{\"lr\":0.1,\"tokens\":512,\"layers\":[1,2]}",
    "python|train.py|--config|{\"tokenizer\":\"gpt2\",\"max_tokens\":512}",
    "python|train.py|--overrides|{batch:8,epochs:3,device:cuda}",
    "python|train.py|--schedule|0:1e-3,1000:1e-4,5000:1e-5",
    "python|train.py|--host|127.0.0.1:8080|--endpoint|/v1/models",
    "python|train.py|--time|12:30:00|--date|2024-05-01T12:30:00Z",
    "python|train.py|--version|1.2.3+cu121|--build|a1b2c3d",
    "python|train.py|--uuid|123e4567-e89b-12d3-a456-426614174000",
    "python|train.py|--model-name|Qwen2.5-72B-Instruct-GPTQ-Int4",
    "python|train.py|--hf-model|mistralai/Mixtral-8x7B-Instruct-v0.1",
    "python|train.py|--adapter|/ckpt/adapters/2024-05-01/checkpoint-12000/"
    "adapter_model.safetensors",
    "python|train.py|--layers|0-31|--skip-layers|4,8|--exits|12",
    "python|train.py|--auto-find-batch-size|--authenticate-never",
    "python|eval.py|--tasks|hellaswag,arc_challenge|--num-fewshot|5",
    "python|eval.py|--limit|100|--bootstrap-iters|1000",
    "python|infer.py|--input|in.jsonl|--output|out.jsonl",
    "python|infer.py|--max-model-len|8192|--gpu-memory-utilization|0.9|--swap-space|4",
    "python|infer.py|--tensor-parallel-size|2|--dtype|auto|--kv-cache-dtype|fp8",
    "vllm|serve|meta-llama/Llama-3-8B|--port|8000|--served-model-name|llama",
    "tritonserver|--model-repository|/models|--http-port|8000",
    "python|-m|pytest|-x|-q|tests/test_train.py",
    "python|-m|cProfile|-o|prof.out|train.py",
    "python|-m|http.server|8000",
    "jupyter|lab|--ip|0.0.0.0|--port|8888|--no-browser",
    "ray|start|--head|--port|6379|--num-gpus|8",
    "horovodrun|-np|4|-H|localhost:4|python|train.py",
    "bash|-c|cd|/work|&&|python|train.py|--epochs|3",
    "env|CUDA_VISIBLE_DEVICES=0,1|OMP_NUM_THREADS=8|python|train.py",
    "env|NCCL_DEBUG=INFO|NCCL_IB_HCA=mlx5_0:1|python|train.py",
    "env|PYTHONPATH=/opt/lib:/work|HF_HOME=/cache/hf|TOKENIZERS_PARALLELISM=false|python|train.py",
    "env|TORCH_LOGS=recompiles|PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True|python|train.py",
    "taskset|-c|0-15|numactl|--cpunodebind=0|--membind=0|python|train.py",
    "nice|-n|10|ionice|-c|2|python|preprocess.py|--shards|1024",
    "./train|--lr|0.1|--steps|1000",
    "./bench_kernel|--m|4096|--n|4096|--k|4096|--iters|100",
    "./nccl-tests/all_reduce_perf|-b|8|-e|8G|-f|2|-g|8",
    "lacuna|run|-o|out|--|python|train.py",
    "python|train.py|@args.txt",
    "python|train.py|--at-least-one|--first-token-latency|0.1",
    "python|train.py|--emails|me@example.org",
    "python|train.py|--regex|^[a-z]+$|--glob|**/*.py",
    "python|train.py|--ratio|16:9|--crop|0:0:224:224",
    "python|train.py|--lang|en:de|--pairs|cat:dog,red:blue",
    "python|train.py|--kv|k1=v1,k2=v2|--set|a.b.c=1",
    "python|train.py|--lr=0.1|--momentum=0.9|--nesterov=true",
    "python|train.py|--hash-table-size|2048|--rehash|--bucket-size|4",
    "python|train.py|--summary-length|100|--sum-tokens",
};

START_TEST(what_training_jobs_say_all_the_time_is_shown)
{
    char expected[1024];

    ck_assert_uint_ge(LAC_COUNT_OF(ordinary), 150);
    for (size_t i = 0; i < LAC_COUNT_OF(ordinary); i++) {
        (void)snprintf(expected, sizeof(expected), "%s", ordinary[i]);
        for (char *at = expected; *at != '\0'; at++) {
            *at = *at == '|' ? ' ' : *at;
        }
        SHOWN(ordinary[i], expected);
    }
}
END_TEST

/* What is hidden although it is no secret: known and accepted. */
START_TEST(some_that_are_no_secrets_are_hidden_all_the_same)
{
    SHOWN("a|--revision=5f91d94bd9cd7190a9f3216ff93cd1dd95f2c7be", "a --revision=***");
    SHOWN("a|-c|sorted(x, key=len)", "a -c sorted(x, key=***");
    SHOWN("a|https://host/search?q=cats", "a https://host/search?***");
    SHOWN("a|--secretary-problem-size|10", "a --secretary-problem-size ***");
    SHOWN("a|--password-file|/run/secrets/db", "a --password-file ***");
}
END_TEST

/* ---- secrets in all the forms */

static const char *const forms[] = {
    "train|--token={}",
    "train|--token|{}",
    "env|API_TOKEN={}|train",
    "train|--password|{}",
    "train|--db-pass|{}|--lr|0.1",
    "sshpass|-p|{}|ssh|host",
    "train|-p|{}",
    "train|--api_key|{}",
    "train|--apiKey={}",
    "curl|-H|Authorization: Bearer {}",
    "curl|-H|Authorization: Basic {}",
    "curl|--header|X-Auth-Token: {}",
    "curl|--header=PRIVATE-TOKEN: {}",
    "curl|-H|Cookie: session={}",
    "curl|-u|user:{}",
    "curl|-uuser:{}",
    "curl|Bearer|{}",
    "get|https://user:{}@host/path",
    "train|--db|postgresql+psycopg2://me:{}@db:5432/x",
    "get|https://host/blob?key={}",
    "get|https://host/blob?se=2&sig={}&x=1",
    "get|https://s3/b/o?X-Amz-Date=1&X-Amz-Signature={}",
    "train|--config|{\"lr\": 1, \"api_key\": \"{}\"}",
    "train|--conn|Server=x;Uid=me;Password={};",
    "train|--blob|AccountName=x;AccountKey={}",
    "train|--pat|{}",
    "train|--pin|{}",
    "train|--license|{}",
    "train|--passphrase|{}",
    "train|logger.wandb.api_key={}",
    "train|+client_secret={}",
    "post|https://hooks.slack.com/services/{}",
    "post|https://discord.com/api/webhooks/{}",
    "post|https://api.telegram.org/bot{}/send",
    "train|--otp={}",
    "train|--dsn|{}",
    "train|--set|auth.creds: {}",
    "train|-----BEGIN PRIVATE KEY-----\n{}",
};

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* Of 8 to 40 letters, digits and marks; some begin with a dash. One digit at least: a plain word is
 * none that -p could be told from a partition by. */
static void draw_secret(char secret[64])
{
    static const char *const alphabets[] = {
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        "0123456789abcdef",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=",
        "abcdefghijklmnopqrstuvwxyz0123456789-_",
        "abcXYZ0123456789!#$%^&*(),.;<>?~",
    };
    const char *const alphabet = alphabets[draw(LAC_COUNT_OF(alphabets))];
    const size_t length = 8 + draw(33);

    for (size_t i = 0; i < length; i++) {
        secret[i] = alphabet[draw((uint32_t)strlen(alphabet))];
    }
    secret[0] = draw(6) == 0 ? '-' : 'k';
    secret[1] = 'q';
    secret[2] = (char)('0' + draw(10));
    secret[length] = '\0';
}

/* No five bytes of it in a row are shown. */
static bool is_hidden(const char *form, const char *secret)
{
    const char *const place = strstr(form, "{}");
    char line[512];
    char part[6] = "";

    (void)snprintf(line, sizeof(line), "%.*s%s%s", (int)(place - form), form, secret, place + 2);
    (void)show(line, sizeof(shown) - 1);
    for (size_t i = 0; i + 5 <= strlen(secret); i++) {
        memcpy(part, secret + i, 5);
        if (strstr(shown, part) != NULL) {
            return false;
        }
    }
    return true;
}

START_TEST(secrets_are_hidden_in_all_forms)
{
    random_state = 1;
    for (unsigned i = 0; i < 200; i++) {
        char secret[64];

        draw_secret(secret);
        for (size_t f = 0; f < LAC_COUNT_OF(forms); f++) {
            ck_assert_msg(is_hidden(forms[f], secret), "%s in %s: %s", secret, forms[f], shown);
        }
    }
}
END_TEST

/* By their shape, with nothing that names them. */
START_TEST(keys_of_known_services_are_hidden_without_a_name)
{
    static const char *const begin[] = {"ghp_",  "github_pat_", "glpat-", "hf_",   "sk-proj-",
                                        "AKIA",  "xoxb-",       "ya29.",  "eyJ",   "npm_",
                                        "AIza",  "nvapi-",      "gsk_",   "SG.",   "r8_",
                                        "pypi-", "sk_live_",    "xapp-",  "whsec_"};
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    random_state = 2;
    for (unsigned i = 0; i < 200; i++) {
        char tail[33] = "";
        char token[64];

        for (size_t k = 0; k < 20 + i % 13; k++) {
            tail[k] = letters[draw(sizeof(letters) - 1)];
        }
        (void)snprintf(token, sizeof(token), "%s%s", begin[i % (LAC_COUNT_OF(begin))], tail);
        ck_assert_msg(is_hidden("train|{}|--lr|0.1", token), "%s: %s", token, shown);
        ck_assert_msg(is_hidden("train|--x={}", token), "%s: %s", token, shown);
        ck_assert_msg(is_hidden("train|/data/{}/x", token), "%s: %s", token, shown);
    }
}
END_TEST

START_TEST(options_behind_a_flag_are_shown)
{
    SHOWN("a|--password|-starts-with-a-dash|--lr|1", "a --password *** --lr 1");
    SHOWN("a|--use-auth-token|--lr|0.1", "a --use-auth-token --lr 0.1");
    SHOWN("a|--token|-h", "a --token -h");
    SHOWN("a|--token|--password|x1|b", "a --token --password *** b");
    SHOWN("mysql|-p|secret|-h|db", "mysql -p *** -h db");
}
END_TEST

START_TEST(a_path_is_shown_without_its_secrets)
{
    char out[64];
    size_t used = lac_text_shown("/data/run", 9, out, sizeof(out));

    ck_assert(used == 9 && memcmp(out, "/data/run", 9) == 0);
    used = lac_text_shown("/data/token=x1/y", 16, out, sizeof(out));
    ck_assert(used == 15 && memcmp(out, "/data/token=***", 15) == 0);
    ck_assert_uint_eq(lac_text_shown("/data/run", 9, out, 11), 0);
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

    tcase_add_test(tcase, what_names_a_secret_is_hidden);
    tcase_add_test(tcase, users_and_questions_in_addresses_are_hidden);
    tcase_add_test(tcase, headers_with_credentials_are_hidden);
    tcase_add_test(tcase, what_looks_like_a_token_is_hidden_wherever_it_stands);
    tcase_add_test(tcase, what_training_jobs_say_all_the_time_is_shown);
    tcase_add_test(tcase, some_that_are_no_secrets_are_hidden_all_the_same);
    tcase_add_test(tcase, secrets_are_hidden_in_all_forms);
    tcase_add_test(tcase, keys_of_known_services_are_hidden_without_a_name);
    tcase_add_test(tcase, options_behind_a_flag_are_shown);
    tcase_add_test(tcase, a_path_is_shown_without_its_secrets);
    tcase_add_test(tcase, what_does_not_fit_is_left_out);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
