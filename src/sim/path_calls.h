/* path_calls.c: calls that name a file by its path, and directories. */
#ifndef ACO_PATH_CALLS_H
#define ACO_PATH_CALLS_H

#include "sim/opened.h"

#include <dirent.h>

struct stat;

ACO__HIDDEN int aco__sim_open(aco_sim_t *sim, const char *path, int flags, unsigned mode);
ACO__HIDDEN int aco__sim_stat(aco_sim_t *sim, const char *path, struct stat *status);
ACO__HIDDEN int aco__sim_rename(aco_sim_t *sim, const char *from, const char *to);
ACO__HIDDEN int aco__sim_link(aco_sim_t *sim, const char *from, const char *to);
ACO__HIDDEN int aco__sim_unlink(aco_sim_t *sim, const char *path);
ACO__HIDDEN int aco__sim_mkdir(aco_sim_t *sim, const char *path, unsigned mode);
ACO__HIDDEN int aco__sim_rmdir(aco_sim_t *sim, const char *path);
ACO__HIDDEN DIR *aco__sim_opendir(aco_sim_t *sim, const char *path);
ACO__HIDDEN struct dirent *aco__sim_readdir(aco_sim_t *sim, DIR *folder);
ACO__HIDDEN int aco__sim_closedir(aco_sim_t *sim, DIR *folder);

#endif
