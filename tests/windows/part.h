/* A DLL with code that uses coroutines, for dll.cpp and unload.c. */
#ifndef TESTS_WINDOWS_PART_H
#define TESTS_WINDOWS_PART_H

#include "aco.h"

#ifdef BUILDS_PART
#define PART __declspec(dllexport)
#else
#define PART
#endif

#ifdef __cplusplus
extern "C" {
#endif

PART void *part_counts(void *arg);                 /* an entry function: yields 1 to *(int *)arg, returns arg */
PART void *part_send(aco_t *co, void *value);      /* resumes in the DLL */
PART void part_resume(aco_t *co);                  /* the same by aco_resume() */
PART void *part_yield(void *value);                /* suspends in the DLL; its frame has a destructor, see part_gone */
PART aco_t *part_running(void);
PART void *part_error(void);                       /* ACO_ERROR */
PART void part_throw(int n);
PART int part_catch(void (*fn)(int), int n);       /* 1: fn(n) threw an int, n */
PART int part_gone(void);                          /* how many frames of part_yield() have been left */

/* For unload.c: makes and ends some of everything, in the calling thread. 0, or how many checks failed. */
PART int part_work(void);
typedef int part_work_t(void);

#ifdef __cplusplus
}
#endif

#endif
