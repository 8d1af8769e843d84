#ifndef LAC_COLLECTOR_SAMPLE_HOST_FACTS_H
#define LAC_COLLECTOR_SAMPLE_HOST_FACTS_H

struct lac_sample_spool;

/** Write "host.*" settings: cores, affinity, quota, memory, NUMA nodes,
 *  /dev/shm, kernel, driver; who started the job, of which commit. */
void lac_host_facts(struct lac_sample_spool *spool);

#endif
