/* Tables that profilers print and logs of counters: what each becomes, what is refused. The inputs
 * are written by hand from the tools' public descriptions, but for the logs of real GPUs. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/import/tables/table_text.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/real_traces.h"
#include "tests/support/rounds.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char SUMMARY[] =
    "==42== NVPROF is profiling process 42, command: ./matvec\n"
    "hello, world\n"
    "==42== Profiling application: ./matvec\n"
    "==42== Profiling result:\n"
    "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
    " GPU activities:   60.00%  6.0000us         3  2.0000us  1.0000us  3.0000us  gemm<int>(long, "
    "double*)\n"
    "                   40.00%  4.0000us         2  2.0000us  1.9000us  2.1000us  [CUDA memcpy "
    "HtoD]\n"
    "      API calls:  100.00%  1.5000ms         1  1.5000ms  1.5000ms  1.5000ms  cudaMalloc\n";

static const char GPU_TRACE_CSV[] =
    "==7== Profiling result:\n"
    "\"Start\",\"Duration\",\"Grid X\",\"Grid Y\",\"Grid Z\",\"Block X\",\"Block Y\",\"Block Z\","
    "\"Registers Per Thread\",\"Static SMem\",\"Dynamic SMem\",\"Size\",\"Throughput\","
    "\"SrcMemType\",\"DstMemType\",\"Device\",\"Context\",\"Stream\",\"Name\",\"Correlation_ID\"\n"
    "ms,us,,,,,,,,KB,B,MB,GB/s,,,,,,,\n"
    "1.500000,2.500000,,,,,,,,,,4.000000,1.6,\"Pageable\",\"Device\",\"Tesla K40m (1)\",\"1\","
    "\"7\",\"[CUDA memcpy HtoD]\",116\n"
    "2.000000,10.000,32,4,1,256,1,1,40,2.0,16,,,,,\"Tesla K40m (1)\",\"1\",\"7\","
    "\"void add<float, \"\"x\"\">(int)\",117\n";

static const char GPU_TRACE_TEXT[] =
    "==7== NVPROF is profiling process 7, command: ./a\n"
    "==7== Profiling result:\n"
    "   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      "
    "Size  Throughput  SrcMemType  DstMemType           Device   Context    Stream  Name\n"
    "308.42ms  1.1840us                    -               -         -         -         -      "
    "112B  90.205MB/s    Pageable      Device  Tesla K40m (0)         1         7  [CUDA memcpy "
    "HtoD]\n"
    "308.50ms  2.0000us            (10 2 1)       (128 1 1)        32  1.0000KB       64B         "
    "-           -           -           -  Tesla K40m (0)         1         7  mul(float*, int) "
    "[117]\n"
    "\n"
    "Regs: Number of registers used per CUDA thread.\n";

static const char NSYS_TRACE[] =
    "Processing [a.sqlite] with [cuda_gpu_trace.py]...\n"
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem "
    "(MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n"
    "100,30,11,2,1,1,64,1,1,24,0.000,0.016,,,,,NVIDIA A100 (0),1,,7,\"k(int, int)\"\n"
    "170,5,13,,,,,,,,,,0.004096,1,Pinned,Device,NVIDIA A100 (0),1,,8,[CUDA memcpy "
    "Host-to-Device]\n"
    "180,4,14,,,,,,,,,,0.001,,Device,,NVIDIA A100 (0),1,,7,[CUDA memset]\n";

static const char NSYS_SUMS[] =
    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
    "75.0,3000,2,1500.0,1500.0,1000,2000,0.0,\"gemm(int, int)\"\n"
    "25.0,1000,1,1000.0,1000.0,1000,1000,0.0,relu\n"
    "\n"
    "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
    "100.0,500,5,100.0,100.0,100,100,0.0,cudaLaunchKernel\n"
    "\n"
    "Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation\n"
    "100.0,700,1,700.0,700.0,700,700,0.0,[CUDA memcpy Host-to-Device]\n";

static const char NCU_RAW[] =
    "==PROF== Connected to process 1 (python)\n"
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\","
    "\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"dram__bytes_read.sum\","
    "\"dram__bytes_write.sum\",\"gpu__time_duration.sum\","
    "\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\"\n"
    "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"Mbyte\",\"byte\",\"usecond\","
    "\"inst\"\n"
    "\"0\",\"1\",\"python\",\"h\",\"w13\",\"1\",\"7\",\"(256, 1, 1)\",\"(5, 20, 1)\",\"0\","
    "\"7.0\",\"10.24\",\"2,048\",\"40.0\",\"1,000,000\"\n"
    "\"1\",\"1\",\"python\",\"h\",\"w2\",\"1\",\"7\",\"(128, 1, 1)\",\"(8, 1, 1)\",\"0\","
    "\"7.0\",\"5.12\",\"0\",\"20.0\",\"0\"\n";

static const char NCU_DETAILS[] =
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\","
    "\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"Section Name\",\"Metric Name\","
    "\"Metric Unit\",\"Metric Value\"\n"
    "\"0\",\"1\",\"p\",\"h\",\"gemm\",\"1\",\"7\",\"(32,32,1)\",\"(64,64,1)\",\"0\",\"8.0\",\"GPU "
    "Speed Of Light Throughput\",\"Memory Throughput\",\"%\",\"40\"\n"
    "\"0\",\"1\",\"p\",\"h\",\"gemm\",\"1\",\"7\",\"(32,32,1)\",\"(64,64,1)\",\"0\",\"8.0\",\"GPU "
    "Speed Of Light Throughput\",\"Duration\",\"us\",\"12.5\"\n"
    "\"0\",\"1\",\"p\",\"h\",\"gemm\",\"1\",\"7\",\"(32,32,1)\",\"(64,64,1)\",\"0\",\"8.0\","
    "\"Memory Workload Analysis\",\"Memory Throughput\",\"Gbyte/second\",\"1,200.5\"\n"
    "\"1\",\"1\",\"p\",\"h\",\"relu\",\"1\",\"7\",\"(32,1,1)\",\"(64,1,1)\",\"0\",\"8.0\",\"GPU "
    "Speed Of Light Throughput\",\"Duration\",\"usecond\",\"2\"\n";

static const char ROCM_TRACE[] =
    "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\","
    "\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"LDS_Block_Size\","
    "\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Workgroup_Size_X\","
    "\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n"
    "\"KERNEL_DISPATCH\",\"Agent 2\",1,0,70,1,33,\"fill(int, int)\",12,172352210005122,"
    "172352210008687,512,0,12,4,48,256,1,1,1024,1,1\n";

static const char ROCM_COUNTERS[] =
    "\"Correlation_Id\",\"Dispatch_Id\",\"Agent_Id\",\"Queue_Id\",\"Process_Id\",\"Thread_Id\","
    "\"Grid_Size\",\"Kernel_Id\",\"Kernel_Name\",\"Workgroup_Size\",\"LDS_Block_Size\","
    "\"Scratch_Size\",\"VGPR_Count\",\"SGPR_Count\",\"Counter_Name\",\"Counter_Value\","
    "\"Start_Timestamp\",\"End_Timestamp\"\n"
    "1,1,\"Agent 4\",1,7,7,1024,33,\"fill(int, "
    "int)\",64,512,0,12,16,\"SQ_WAVES\",16.000000,1000,3000\n"
    "1,1,\"Agent 4\",1,7,7,1024,33,\"fill(int, int)\",64,512,0,12,16,\"VALUBusy\",12.5,1000,3000\n"
    "1,1,\"Agent 4\",1,7,7,1024,33,\"fill(int, int)\",64,512,0,12,16,\"SQ_WAVES\",4,1000,3000\n"
    "2,2,\"Agent 4\",1,7,7,100,33,\"fill(int, int)\",64,512,0,12,16,\"SQ_WAVES\",2,5000,6000\n"
    "2,2,\"Agent 4\",1,7,7,100,33,\"fill(int, int)\",64,512,0,12,16,\"VALUBusy\",broken,5000,6000\n"
    "3,3,\"Agent 5\",1,7,7,64,34,\"memcpy_like\",64,0,0,12,16,\"SQ\"\"X\",3,7000,7500\n";

static const char ROCM_STATS[] =
    "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\","
    "\"StdDev\"\n"
    "\"NormKernel1(int, double)\",4,4000,1000.0,80.0,400,1600,2.0\n"
    "\"hipLaunchKernel\",2,1000,500.0,20.0,400,600,2.0\n";

static const char TORCH[] =
    "-------------  ------------  ------------  ------------  ------------  ------------  "
    "------------  ------------  ------------\n"
    "         Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg     Self "
    "CUDA   Self CUDA %    # of Calls\n"
    "-------------  ------------  ------------  ------------  ------------  ------------  "
    "------------  ------------  ------------\n"
    "  aten::conv2d        10.00%     100.000us        20.00%     200.000us     100.000us       "
    "0.000us         0.00%             2\n"
    "         sgemm         0.00%       0.000us         0.00%       0.000us       0.000us       "
    "3.500ms       100.00%             5\n"
    "-------------  ------------  ------------  ------------  ------------  ------------  "
    "------------  ------------  ------------\n"
    "Self CPU time total: 1.000ms\n";

static const char SMI[] =
    "timestamp, index, utilization.gpu [%], memory.used [MiB], clocks_throttle_reasons.active, "
    "power.draw [W]\n"
    "2026/04/25 16:06:06.780, 0, 97 %, 1000 MiB, 0x0000000000000004, 301.50 W\n"
    "2026/04/25 16:06:06.781, 1, 3 %, 2 MiB, 0x0000000000000000, [N/A]\n"
    "2026/04/25 16:06:07.780, 0, 95 %, 1000 MiB, 0x0000000000000000, 300.00 W\n";

static const char DMON[] =
    "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk\n"
    "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %    MHz    MHz\n"
    " 20260425   16:06:06      0     51     35      -     10      2   9501   1980\n"
    " 20260425   16:06:07      0     52     35      -     20      2   9501   1980\n";

static const char DCGM[] = "#Entity   GPUTL   POWER   TENSO\n"
                           "ID                W             \n"
                           "GPU 0     98      310.2   0.514\n"
                           "GPU 1     97      305.9   0.500\n"
                           "GPU 0     96      311.0   0.520\n";

static const char NMON[] = "AAA,progname,nmon\n"
                           "AAA,date,25-APR-2026\n"
                           "CPU_ALL,CPU Total host,User%,Sys%,Wait%\n"
                           "BBBP,001,/etc/release\n"
                           "ZZZZ,T0001,16:06:06,25-APR-2026\n"
                           "CPU_ALL,T0001,3.1,0.4,12.5\n"
                           "ZZZZ,T0002,16:06:08,25-APR-2026\n"
                           "CPU_ALL,T0002,4.1,0.4,11.5\n";

static const char *const ALL[] = {SUMMARY, GPU_TRACE_CSV, GPU_TRACE_TEXT, NSYS_TRACE, NSYS_SUMS,
                                  NCU_RAW, NCU_DETAILS,   ROCM_TRACE,     ROCM_STATS, ROCM_COUNTERS,
                                  TORCH,   SMI,           DMON,           DCGM,       NMON};
enum { ALL_COUNT = LAC_COUNT_OF(ALL) };

static struct lac_model *only(struct imported *imported)
{
    ck_assert_msg(imported->status == LAC_OK, "%s", imported->error.message);
    ck_assert_uint_eq(imported->count, 1);
    ck_assert(lac_model_is_valid(imported->models[0]));
    return imported->models[0];
}

/* Slices of that name, and their durations in all. */
static uint64_t count_of(const struct lac_model *model, const char *name, int64_t *ret_total_ns)
{
    uint64_t count = 0;
    *ret_total_ns = 0;
    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (strcmp(lac_model_str(model, model->slices.name[i]), name) == 0) {
            count++;
            *ret_total_ns += model->slices.dur_ns[i];
        }
    }
    return count;
}

static const struct lac_track *counter(const struct lac_model *model, const char *name)
{
    for (uint32_t t = 0; t < model->track_count; t++) {
        if (model->tracks[t].kind == LAC_TRACK_COUNTER &&
            strcmp(lac_model_str(model, model->tracks[t].name), name) == 0) {
            return &model->tracks[t];
        }
    }
    ck_abort_msg("no counter %s", name);
}

static double sample(const struct lac_model *model, const char *name, uint64_t at)
{
    const struct lac_track *track = counter(model, name);
    ck_assert_uint_lt(at, track->count);
    return model->sample_value[track->first + at];
}

START_TEST(a_summary_keeps_calls_totals_and_extremes_and_has_no_time)
{
    struct imported imported = import_text(SUMMARY);
    struct lac_model *model = only(&imported);
    int64_t total_ns = 0;
    ck_assert_int_eq(model->info.format, LAC_FORMAT_NVPROF);
    ck_assert(model->info.has_no_time);
    ck_assert_uint_eq(count_of(model, "gemm<int>(long, double*)", &total_ns), 3);
    ck_assert_int_eq(total_ns, 6000);
    uint64_t gemm = find_slice(model, "gemm<int>(long, double*)");
    ck_assert_int_eq(model->slices.kind[gemm], LAC_SLICE_KERNEL);
    ck_assert_int_eq(model->slices.dur_ns[gemm], 3000);
    ck_assert_int_eq(model->slices.dur_ns[gemm + 1], 1000);
    ck_assert_int_eq(model->slices.dur_ns[gemm + 2], 2000);
    ck_assert_uint_eq(count_of(model, "Memcpy HtoD", &total_ns), 2);
    ck_assert_int_eq(total_ns, 4000);
    ck_assert_int_eq(model->slices.kind[find_slice(model, "cudaMalloc")], LAC_SLICE_API);
    ck_assert_uint_eq(model->info.event_count, 3);
    imported_done(&imported);
}
END_TEST

START_TEST(without_times_nothing_is_said_of_gaps_or_steps)
{
    struct imported imported = import_text(SUMMARY);
    struct lac_model *model = only(&imported);
    struct lac_analysis *analysis = NULL;
    struct lac_error error = {0};
    ck_assert_int_eq(lac_diagnose(model, NULL, &analysis, &error), LAC_OK);
    ck_assert_uint_eq(analysis->copy_count, 1);
    ck_assert_int_eq(analysis->copies[0].kind, LAC_COPY_HTOD);
    ck_assert_uint_eq(analysis->copies[0].count, 2);
    ck_assert_int_eq(analysis->copies[0].total_ns, 4000);
    ck_assert_int_eq(analysis->copies[0].exposed_ns, LAC_UNKNOWN_NS);
    ck_assert_uint_eq(analysis->device_count, 0);
    ck_assert_uint_eq(analysis->finding_count, 0);
    ck_assert_uint_eq(analysis->gap_count, 0);
    ck_assert_uint_eq(analysis->kernel_count, 3);
    ck_assert_int_eq(analysis->kernel_total_ns, 6000);
    ck_assert_str_eq(analysis->verdict.text, "a profile without times: 3 kernels took 6 us, most "
                                             "of it gemm<int>(long, double*) (100 %)");
    ck_assert_uint_eq(analysis->not_recorded_count, 1);
    ck_assert_str_eq(analysis->not_recorded[0],
                     "times: the file holds counts and totals, not when things ran");
    lac_analysis_destroy(analysis);
    imported_done(&imported);
}
END_TEST

START_TEST(a_gpu_trace_in_csv_has_times_launches_and_copies)
{
    struct imported imported = import_text(GPU_TRACE_CSV);
    struct lac_model *model = only(&imported);
    uint64_t add = find_slice(model, "void add<float, \"x\">(int)");
    uint64_t copy = find_slice(model, "Memcpy HtoD (Pageable -> Device)");
    const struct lac_kernel_config *config = &model->kernel_configs[model->slices.detail[add]];
    ck_assert(!model->info.has_no_time);
    ck_assert_int_eq(model->slices.start_ns[copy], 0);
    ck_assert_int_eq(model->slices.dur_ns[copy], 2500);
    ck_assert_int_eq(model->slices.start_ns[add], 500000);
    ck_assert_int_eq(model->slices.dur_ns[add], 10000);
    ck_assert_uint_eq(model->slices.corr[add], 117);
    ck_assert_uint_eq(config->grid[1], 4);
    ck_assert_uint_eq(config->block[0], 256);
    ck_assert_uint_eq(config->registers_per_thread, 40);
    ck_assert_uint_eq(config->shared_memory_bytes, 2048 + 16);
    ck_assert_int_eq(model->copies[model->slices.detail[copy]].bytes,
                     4 << 20); /* as nvprof counts */
    ck_assert_int_eq(model->copies[model->slices.detail[copy]].src, LAC_MEMORY_PAGEABLE);
    ck_assert_int_eq(model->devices[0].id, 1);
    ck_assert_str_eq(lac_model_str(model, model->devices[0].name), "Tesla K40m");
    ck_assert_uint_ne(find_track(model, LAC_TRACK_STREAM, "7"), LAC_NONE);
    imported_done(&imported);
}
END_TEST

START_TEST(a_gpu_trace_in_text_reads_the_same)
{
    struct imported imported = import_text(GPU_TRACE_TEXT);
    struct lac_model *model = only(&imported);
    uint64_t mul = find_slice(model, "mul(float*, int)");
    uint64_t copy = find_slice(model, "Memcpy HtoD (Pageable -> Device)");
    ck_assert_int_eq(model->slices.start_ns[mul], 80000);
    ck_assert_int_eq(model->slices.dur_ns[mul], 2000);
    ck_assert_uint_eq(model->slices.corr[mul], 117);
    ck_assert_uint_eq(model->kernel_configs[model->slices.detail[mul]].grid[1], 2);
    ck_assert_uint_eq(model->kernel_configs[model->slices.detail[mul]].shared_memory_bytes,
                      1024 + 64);
    ck_assert_int_eq(model->copies[model->slices.detail[copy]].bytes, 112);
    ck_assert_uint_eq(model->info.dropped_count, 0);
    imported_done(&imported);
}
END_TEST

START_TEST(tables_of_nsys_stats_open)
{
    struct imported imported = import_text(NSYS_TRACE);
    struct lac_model *model = only(&imported);
    int64_t total_ns = 0;
    uint64_t kernel = find_slice(model, "k(int, int)");
    uint64_t copy = find_slice(model, "Memcpy HtoD (Pinned -> Device)");
    ck_assert_int_eq(model->info.format, LAC_FORMAT_NSYS_STATS);
    ck_assert_int_eq(model->slices.dur_ns[kernel], 30);
    ck_assert_int_eq(model->slices.start_ns[copy], 70);
    ck_assert_int_eq(model->copies[model->slices.detail[copy]].bytes, 4096);
    ck_assert_int_eq(model->slices.kind[find_slice(model, "Memset (Device)")], LAC_SLICE_MEMSET);
    imported_done(&imported);
    imported = import_text(NSYS_SUMS);
    model = only(&imported);
    ck_assert(model->info.has_no_time);
    ck_assert_int_eq(model->info.format, LAC_FORMAT_NSYS_STATS);
    ck_assert_uint_eq(count_of(model, "gemm(int, int)", &total_ns), 2);
    ck_assert_int_eq(total_ns, 3000);
    ck_assert_uint_eq(count_of(model, "cudaLaunchKernel", &total_ns), 5);
    ck_assert_int_eq(model->slices.kind[find_slice(model, "cudaLaunchKernel")], LAC_SLICE_API);
    ck_assert_int_eq(model->slices.kind[find_slice(model, "relu")], LAC_SLICE_KERNEL);
    ck_assert_int_eq(model->slices.kind[find_slice(model, "Memcpy HtoD")], LAC_SLICE_COPY);
    imported_done(&imported);
}
END_TEST

START_TEST(launches_of_nsight_compute_have_rates)
{
    struct imported imported = import_text(NCU_RAW);
    struct lac_model *model = only(&imported);
    uint64_t w13 = find_slice(model, "w13");
    ck_assert_int_eq(model->info.format, LAC_FORMAT_NCU);
    ck_assert_uint_eq(model->info.slice_count, 2);
    ck_assert_int_eq(model->slices.dur_ns[w13], 40000);
    ck_assert_uint_eq(model->kernel_configs[model->slices.detail[w13]].grid[1], 20);
    /* 2 x 10^6 operations and 10,242,048 bytes in 40 us */
    ck_assert_ptr_nonnull(strstr(args_of(model, w13), "\"FLOP per second\":50000000000"));
    ck_assert_ptr_nonnull(strstr(args_of(model, w13), "\"memory bytes per second\":256051200000"));
    imported_done(&imported);
    imported = import_text(NCU_DETAILS);
    model = only(&imported);
    uint64_t gemm = find_slice(model, "gemm");
    ck_assert_uint_eq(model->info.slice_count, 2);
    ck_assert_int_eq(model->slices.dur_ns[gemm], 12500);
    ck_assert_ptr_nonnull(
        strstr(args_of(model, gemm), "\"memory bytes per second\":1200500000000"));
    ck_assert_int_eq(model->slices.dur_ns[find_slice(model, "relu")], 2000);
    imported_done(&imported);
}
END_TEST

/* The other files of `rocprofv3 --sys-trace --output-format csv`: none of them holds kernels. */
START_TEST(tables_of_rocm_beside_the_kernels_open)
{
    static const struct {
        const char *text, *name;
        enum lac_slice_kind kind;
    } files[] = {
        {"\"Kind\",\"Operation\",\"Agent_Id\",\"Queue_Id\",\"Thread_Id\",\"Alloc_Flags\","
         "\"Start_Timestamp\",\"End_Timestamp\"\n"
         "\"SCRATCH_MEMORY\",\"SCRATCH_MEMORY_ALLOC\",\"Agent 4\",1,77,\"USE_ONCE\",1000,3000\n",
         "SCRATCH_MEMORY_ALLOC", LAC_SLICE_API},
        {"\"Kind\",\"Operation\",\"Agent_Id\",\"Allocation_Size\",\"Address\","
         "\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n"
         "\"MEMORY_ALLOCATION\",\"MEMORY_ALLOCATION_ALLOCATE\",\"Agent 4\",1024,\"0x7f00\",5,"
         "1000,3000\n",
         "MEMORY_ALLOCATION_ALLOCATE", LAC_SLICE_API},
        {"\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\","
         "\"Start_Timestamp\",\"End_Timestamp\"\n"
         "\"MARKER_CORE_API\",\"step 1\",7,77,5,1000,3000\n",
         "step 1", LAC_SLICE_RANGE},
        {"\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\","
         "\"Start_Timestamp\",\"End_Timestamp\"\n"
         "\"HIP_RUNTIME_API\",\"hipLaunchKernel\",7,77,5,1000,3000\n",
         "hipLaunchKernel", LAC_SLICE_API},
        {"\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\","
         "\"Start_Timestamp\",\"End_Timestamp\"\n"
         "\"RCCL_API\",\"ncclAllReduce\",7,77,5,1000,3000\n",
         "ncclAllReduce", LAC_SLICE_API},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(files); i++) {
        struct imported imported = import_text(files[i].text);
        struct lac_model *model = only(&imported);
        const uint64_t slice = find_slice(model, files[i].name);
        ck_assert_int_eq(model->info.format, LAC_FORMAT_ROCPROF);
        ck_assert_uint_eq(slice, 0);
        ck_assert_int_eq(model->slices.kind[slice], files[i].kind);
        ck_assert_int_eq(model->slices.dur_ns[slice], 2000);
        imported_done(&imported);
    }
}
END_TEST

/* A kernel a dispatch, not a row; its counters are its arguments. */
START_TEST(counters_of_rocm_are_arguments_of_kernels)
{
    struct imported imported = import_text(ROCM_COUNTERS);
    struct lac_model *model = only(&imported);
    static const char *const ARGS[] = {"\"SQ_WAVES\":20,\"VALUBusy\":12.5", "\"SQ_WAVES\":2",
                                       "\"SQ_X\":3"};
    static const uint32_t GROUPS[] = {16, 2, 1};
    static const int64_t DURATIONS_NS[] = {2000, 1000, 500};
    ck_assert_int_eq(model->info.format, LAC_FORMAT_ROCPROF);
    ck_assert_uint_eq(model->info.slice_count, 3);
    ck_assert_uint_eq(model->info.dropped_count, 1); /* the counter without a number */
    ck_assert(!model->info.has_no_time);
    ck_assert_int_eq(model->devices[0].id, 4);
    ck_assert_int_eq(model->devices[1].id, 5);
    for (uint64_t i = 0; i < LAC_COUNT_OF(ARGS); i++) {
        const struct lac_kernel_config *config = &model->kernel_configs[model->slices.detail[i]];
        ck_assert_int_eq(model->slices.kind[i], LAC_SLICE_KERNEL);
        ck_assert_int_eq(model->slices.dur_ns[i], DURATIONS_NS[i]);
        ck_assert_msg(strstr(args_of(model, i), ARGS[i]) != NULL, "%s", args_of(model, i));
        ck_assert_uint_eq(config->grid[0], GROUPS[i]);
        ck_assert_uint_eq(config->block[0], 64);
        ck_assert_uint_eq(config->block[2], 1);
    }
    imported_done(&imported);
}
END_TEST

/* Of dispatches that took turns in the file each is one kernel with all its counters. */
START_TEST(counters_of_dispatches_side_by_side_stay_together)
{
    enum { BLOCKS = 5, SIDE_BY_SIDE = 40, COUNTERS = 3 };
    const char *const first = strchr(ROCM_COUNTERS, '\n') + 1;
    const size_t head = (size_t)(first - ROCM_COUNTERS);
    const size_t room = head + (size_t)BLOCKS * SIDE_BY_SIDE * COUNTERS * 128;
    char *const text = malloc(room);
    ck_assert_ptr_nonnull(text);
    memcpy(text, ROCM_COUNTERS, head);
    char *to = text + head;
    for (unsigned block = 0; block < BLOCKS; block++) {
        for (unsigned row = 0; row < SIDE_BY_SIDE * COUNTERS; row++) {
            const unsigned id = block * SIDE_BY_SIDE + row % SIDE_BY_SIDE;
            to += snprintf(to, room - (size_t)(to - text),
                           "1,%u,%u,1,7,7,64,1,k,64,0,0,1,1,C%u,%u,%u,%u\n", id, id % 4,
                           row / SIDE_BY_SIDE, id, 1000 + id, 9000 + id);
        }
    }
    struct imported imported = import_text(text);
    free(text);
    struct lac_model *model = only(&imported);
    ck_assert_uint_eq(model->slices.count, BLOCKS * SIDE_BY_SIDE);
    for (uint64_t i = 0; i < model->slices.count; i++) {
        char expected[96];
        const unsigned id = (unsigned)(model->slices.start_ns[i] + model->info.t0_ns - 1000);
        (void)snprintf(expected, sizeof(expected), "{\"C0\":%u,\"C1\":%u,\"C2\":%u", id, id, id);
        ck_assert_msg(strstr(args_of(model, i), expected) != NULL, "%s", args_of(model, i));
    }
    imported_done(&imported);
}
END_TEST

START_TEST(whole_numbers_are_whole)
{
    static const struct {
        const char *text;
        int64_t value;
    } WHOLE[] = {{"12", 12},      {" 1,024 ", 1024}, {"-7", -7},        {"16.000000", 16},
                 {"12.5e1", 125}, {"0.0", 0},        {"1.250e+2", 125}, {"3.", 3}};
    static const char *const OTHER[] = {"12.5", "0.001", "1.25e1", "125e-1", "12 KB", "", "x"};
    int64_t value = 0;
    for (size_t i = 0; i < LAC_COUNT_OF(WHOLE); i++) {
        ck_assert(lac_field_integer((struct lac_table_field){WHOLE[i].text, strlen(WHOLE[i].text)},
                                    &value));
        ck_assert_int_eq(value, WHOLE[i].value);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(OTHER); i++) {
        ck_assert_msg(
            !lac_field_integer((struct lac_table_field){OTHER[i], strlen(OTHER[i])}, &value), "%s",
            OTHER[i]);
    }
}
END_TEST

/* Beyond the limits counters are left out and counted, and kernels stay; without times none can. */
START_TEST(counters_of_rocm_have_limits)
{
    enum { COUNTERS = 300 };
    const char *const first = strchr(ROCM_COUNTERS, '\n') + 1;
    const size_t head = (size_t)(first - ROCM_COUNTERS);
    const size_t room = head + (COUNTERS + 1) * 220;
    char *const text = malloc(room);
    ck_assert_ptr_nonnull(text);
    memcpy(text, ROCM_COUNTERS, head);
    char *to = text + head;
    for (unsigned i = 0; i < COUNTERS; i++) {
        to += snprintf(to, room - (size_t)(to - text),
                       "1,1,4,1,7,7,64,1,k,64,0,0,1,1,C%u,%u,1000,2000\n", i, i);
    }
    to += snprintf(to, room - (size_t)(to - text),
                   "1,1,4,1,7,7,64,1,k,64,0,0,1,1,%0100d,1,1000,2000\n", 0);
    struct imported imported = import_text(text);
    struct lac_model *model = only(&imported);
    ck_assert_uint_eq(model->info.slice_count, 1);
    ck_assert_uint_eq(model->info.dropped_count, COUNTERS - 256 + 1);
    imported_done(&imported);
    free(text);
    imported = import_text("Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,k,SQ_WAVES,1\n");
    ck_assert_int_eq(imported.status, LAC_ERR_CORRUPT);
    ck_assert_msg(strstr(imported.error.message, "ROCm 6.3") != NULL, "%s", imported.error.message);
    imported_done(&imported);
}
END_TEST

START_TEST(tables_of_rocm_open)
{
    struct imported imported = import_text(ROCM_TRACE);
    struct lac_model *model = only(&imported);
    uint64_t fill = find_slice(model, "fill(int, int)");
    int64_t total_ns = 0;
    ck_assert_int_eq(model->info.format, LAC_FORMAT_ROCPROF);
    ck_assert_int_eq(model->slices.dur_ns[fill], 3565);
    ck_assert_uint_eq(model->kernel_configs[model->slices.detail[fill]].grid[0], 4);
    ck_assert_uint_eq(model->kernel_configs[model->slices.detail[fill]].shared_memory_bytes, 512);
    ck_assert_int_eq(model->devices[0].id, 2);
    imported_done(&imported);
    imported = import_text(ROCM_STATS);
    model = only(&imported);
    ck_assert_int_eq(model->info.format, LAC_FORMAT_ROCPROF);
    ck_assert_uint_eq(count_of(model, "NormKernel1(int, double)", &total_ns), 4);
    ck_assert_int_eq(total_ns, 4000);
    ck_assert_int_eq(model->slices.kind[find_slice(model, "hipLaunchKernel")], LAC_SLICE_API);
    imported_done(&imported);
}
END_TEST

START_TEST(the_table_of_the_pytorch_profiler_opens)
{
    struct imported imported = import_text(TORCH);
    struct lac_model *model = only(&imported);
    int64_t total_ns = 0;
    ck_assert_int_eq(model->info.format, LAC_FORMAT_TORCH_TABLE);
    ck_assert_uint_eq(count_of(model, "aten::conv2d", &total_ns), 2);
    ck_assert_int_eq(total_ns, 100000);
    ck_assert_int_eq(model->slices.kind[find_slice(model, "aten::conv2d")], LAC_SLICE_OP);
    ck_assert_uint_eq(count_of(model, "sgemm", &total_ns), 5);
    ck_assert_int_eq(total_ns, 3500000);
    ck_assert_int_eq(model->slices.kind[find_slice(model, "sgemm")], LAC_SLICE_KERNEL);
    ck_assert_uint_eq(model->info.dropped_count, 0);
    imported_done(&imported);
}
END_TEST

START_TEST(logs_become_the_counters_that_the_diagnosis_knows)
{
    struct imported imported = import_text(SMI);
    struct lac_model *model = only(&imported);
    ck_assert_int_eq(model->info.format, LAC_FORMAT_GPU_LOG);
    ck_assert_int_eq(model->info.t0_ns, INT64_C(1777133166780000000));
    ck_assert_double_eq(sample(model, "GPU 0: GPU utilization (%)", 1), 95);
    ck_assert_double_eq(sample(model, "GPU 1: GPU utilization (%)", 0), 3);
    ck_assert_double_eq(sample(model, "GPU 0: memory used (MB)", 0), 1048.576);
    ck_assert_double_eq(sample(model, "GPU 0: clocks held down (reasons)", 0), 4);
    ck_assert_double_eq(sample(model, "GPU 0: power (W)", 0), 301.5);
    ck_assert_uint_eq(report_count(model, "times_without_zone"), 1);
    imported_done(&imported);
    imported = import_text(DMON);
    model = only(&imported);
    ck_assert_double_eq(sample(model, "GPU 0: GPU utilization (%)", 1), 20);
    ck_assert_double_eq(sample(model, "GPU 0: SM clock (MHz)", 0), 1980);
    ck_assert_int_eq(model->info.t0_ns, INT64_C(1777133166000000000));
    imported_done(&imported);
    imported = import_text(DCGM);
    model = only(&imported);
    ck_assert_double_eq(sample(model, "GPU 0: GPU utilization (%)", 1), 96);
    ck_assert_double_eq_tol(sample(model, "GPU 1: tensor cores active (%)", 0), 50.0, 1e-9);
    ck_assert_uint_eq(report_count(model, "rounds_without_time"), 1);
    imported_done(&imported);
    imported = import_text(NMON);
    model = only(&imported);
    ck_assert_double_eq(sample(model, "CPU_ALL: User%", 1), 4.1);
    ck_assert_int_eq(model->info.duration_ns, INT64_C(2000000000));
    imported_done(&imported);
}
END_TEST

START_TEST(logs_of_real_gpus_open)
{
    static const struct {
        const char *path;
        const char *counter;
        uint64_t rows;
        uint64_t samples;
    } LOGS[] = {{"smi/plato_gpu_log.csv", "GPU 0: column 7 (W)", 1923, 1923},
                {"smi/xypp3_nvidia_smi.csv", "GPU 7: power (W)", 43, 5}};
    for (size_t i = 0; i < 2; i++) {
        struct imported imported = import_path(real_trace(LOGS[i].path));
        struct lac_model *model = only(&imported);
        ck_assert_uint_eq(model->info.event_count, LOGS[i].rows);
        ck_assert_uint_eq(counter(model, LOGS[i].counter)->count, LOGS[i].samples);
        ck_assert_uint_eq(model->info.dropped_count, 0);
        imported_done(&imported);
    }
}
END_TEST

/* The number of the GPU, also when it is told twice, and the size of its memory: neither is drawn. */
START_TEST(what_never_changes_in_a_log_is_no_counter)
{
    static const char *const TEXTS[] = {
        "timestamp,gpu,index,memory.used,memory.total,power.draw,temperature.gpu\n"
        "2025-09-08T17:26:50+08:00,0, 0, 4, 81559, 74.01, 33\n"
        "2025-09-08T17:26:50+08:00,1, 0, 4, 81559, 73.23, 34\n"
        "2025-09-08T17:26:51+08:00,0, 0, 4, 81559, 74.06, 33\n",
        "timestamp, index, memory.used [MiB], memory.total [MiB], power.draw [W]\n"
        "2025/09/08 17:26:50.000, 0, 4 MiB, 81559 MiB, 74.01 W\n"
        "2025/09/08 17:26:50.000, 1, 4 MiB, [N/A], 73.23 W\n"};
    for (size_t i = 0; i < 2; i++) {
        struct imported imported = import_text(TEXTS[i]);
        const struct lac_model *model = only(&imported);
        for (uint32_t t = 0; t < model->track_count; t++) {
            const char *name = lac_model_str(model, model->tracks[t].name);
            ck_assert_msg(strstr(name, "index") == NULL && strstr(name, "total") == NULL, "%s",
                          name);
        }
        ck_assert_double_eq_tol(sample(model, "GPU 1: power (W)", 0), 73.23, 1e-9);
        ck_assert_uint_eq(model->device_count, i == 0 ? 2 : 1);
        ck_assert_int_eq(model->devices[0].memory_bytes, INT64_C(81559) * 1048576);
        imported_done(&imported);
    }
}
END_TEST

START_TEST(a_table_cut_anywhere_opens_or_says_why)
{
    const char *text = ALL[_i];
    size_t whole = strlen(text);
    for (size_t size = 0; size < whole; size += rounds_step()) {
        struct imported imported = import_sized(text, size);
        if (imported.status == LAC_OK) {
            ck_assert(lac_model_is_valid(imported.models[0]));
        } else {
            ck_assert_str_ne(imported.error.message, "");
        }
        imported_done(&imported);
    }
}
END_TEST

START_TEST(reading_in_small_steps_gives_the_same)
{
    const char *text = ALL[_i];
    struct imported at_once = import_text(text);
    struct imported slowly = import_tuned(text, strlen(text), NULL, 512, 3, true);
    const struct lac_model *a = only(&at_once);
    const struct lac_model *b = only(&slowly);
    ck_assert_uint_eq(a->slices.count, b->slices.count);
    ck_assert_uint_eq(a->sample_count, b->sample_count);
    ck_assert_uint_eq(a->strings.count, b->strings.count);
    for (uint64_t i = 0; i < a->slices.count; i++) {
        ck_assert_int_eq(a->slices.start_ns[i], b->slices.start_ns[i]);
        ck_assert_uint_eq(a->slices.name[i], b->slices.name[i]);
    }
    imported_done(&at_once);
    imported_done(&slowly);
}
END_TEST

/* A million columns, a line without an end, calls without number: each meets a limit with a name. */
START_TEST(hostile_tables_meet_named_limits)
{
    size_t columns = 1000000;
    char *text = malloc(columns * 2 + 4096);
    size_t used = strlen(GPU_TRACE_CSV);
    memcpy(text, GPU_TRACE_CSV, used);
    for (size_t i = 0; i < columns; i++) {
        text[used++] = '1';
        text[used++] = ',';
    }
    struct imported imported = import_sized(text, used);
    ck_assert_int_eq(imported.status, LAC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(imported.error.message, "4096 columns"));
    imported_done(&imported);
    struct lac_import_limits limits;
    lac_import_limits_default(&limits);
    limits.event_bytes_max = 100000;
    imported = import_tuned(text, used, &limits, 0, 0, false);
    ck_assert_int_eq(imported.status, LAC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(imported.error.message, "event_bytes_max"));
    imported_done(&imported);
    free(text);
    imported = import_text("Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
                           "50.0,3000,99999999999,1,many\n50.0,2000,2,1,few\n");
    struct lac_model *model = only(&imported);
    ck_assert_uint_eq(model->slices.count, 3);
    ck_assert_uint_eq(report_count(model, "calls_merged"), 1);
    imported_done(&imported);
}
END_TEST

START_TEST(what_is_no_table_stays_with_its_importer)
{
    static const char *const OTHERS[] = {
        "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"timestamp, index, utilization.gpu "
        "[%]\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2}]}",
        "[\n{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2}]",
    };
    for (size_t i = 0; i < 2; i++) {
        struct imported imported = import_text(OTHERS[i]);
        ck_assert_int_eq(only(&imported)->info.format, LAC_FORMAT_CHROME);
        imported_done(&imported);
    }
    struct imported imported = import_text("name,value\nfoo,1\nbar,2\n");
    ck_assert_int_eq(imported.status, LAC_ERR_CORRUPT);
    imported_done(&imported);
    imported = import_text("utilization.gpu [%], power.draw [W]\n3 %, 70.1 W\n");
    ck_assert_int_eq(imported.status, LAC_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(imported.error.message, "--query-gpu=timestamp"));
    imported_done(&imported);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import tables");
    TCase *tables = tcase_create("tables");
    tcase_add_test(tables, what_never_changes_in_a_log_is_no_counter);
    tcase_add_test(tables, a_summary_keeps_calls_totals_and_extremes_and_has_no_time);
    tcase_add_test(tables, without_times_nothing_is_said_of_gaps_or_steps);
    tcase_add_test(tables, a_gpu_trace_in_csv_has_times_launches_and_copies);
    tcase_add_test(tables, a_gpu_trace_in_text_reads_the_same);
    tcase_add_test(tables, tables_of_nsys_stats_open);
    tcase_add_test(tables, launches_of_nsight_compute_have_rates);
    tcase_add_test(tables, tables_of_rocm_open);
    tcase_add_test(tables, counters_of_rocm_are_arguments_of_kernels);
    tcase_add_test(tables, counters_of_dispatches_side_by_side_stay_together);
    tcase_add_test(tables, whole_numbers_are_whole);
    tcase_add_test(tables, counters_of_rocm_have_limits);
    tcase_add_test(tables, tables_of_rocm_beside_the_kernels_open);
    tcase_add_test(tables, the_table_of_the_pytorch_profiler_opens);
    suite_add_tcase(suite, tables);
    TCase *logs = tcase_create("logs");
    tcase_add_test(logs, logs_become_the_counters_that_the_diagnosis_knows);
    if (access(real_trace("smi"), R_OK) == 0) {
        tcase_add_test(logs, logs_of_real_gpus_open);
    } else {
        printf("skip: logs of real GPUs: no %s (make traces)\n", real_trace("smi"));
    }
    suite_add_tcase(suite, logs);
    TCase *hostile = tcase_create("hostile");
    tcase_set_timeout(hostile, 120);
    tcase_add_loop_test(hostile, a_table_cut_anywhere_opens_or_says_why, 0, ALL_COUNT);
    tcase_add_loop_test(hostile, reading_in_small_steps_gives_the_same, 0, ALL_COUNT);
    tcase_add_test(hostile, hostile_tables_meet_named_limits);
    tcase_add_test(hostile, what_is_no_table_stays_with_its_importer);
    suite_add_tcase(suite, hostile);
    return check_main(suite);
}
