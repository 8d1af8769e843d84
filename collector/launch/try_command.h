#ifndef LAC_COLLECTOR_LAUNCH_TRY_COMMAND_H
#define LAC_COLLECTOR_LAUNCH_TRY_COMMAND_H

/** `try CHANGE -- CMD`: the engine compares, so the program that has it takes over; without it
 *  beside this one, one line says so. @return exit status */
int lac_try_command(char **argv);

#endif
