#ifndef LAC_SERVER_INGEST_IMPORT_WORKER_H
#define LAC_SERVER_INGEST_IMPORT_WORKER_H

/** Hidden command: what the server runs in a limited child process (README.md). */
int lac_cmd_import_worker(int argc, char **argv);

#endif
