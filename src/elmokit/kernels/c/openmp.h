/* Runs tasks on PyTorch's own OpenMP threads, where its runtime has GNU's entry point. They
   busy-wait for milliseconds after parallel work, and would compete with other threads. */

#pragma once

#include "threads.h"

typedef void (*region)(void *);
static void (*openmp_parallel)(region, void *, unsigned, unsigned);
static int (*openmp_thread)(void), (*openmp_threads)(void);

/* The runtime's threads do not survive a fork: the child uses our own. */
static int is_child;
static void forget_openmp(void) {
    openmp_parallel = NULL, is_child = 1;
    forget_sleepers();
}

void elmokit_use_openmp(void *parallel, void *thread_num, void *num_threads) {
    if (is_child) return;
    if (!openmp_parallel) pthread_atfork(NULL, NULL, forget_openmp);
    openmp_parallel = (void (*)(region, void *, unsigned, unsigned))parallel;
    openmp_thread = (int (*)(void))thread_num;
    openmp_threads = (int (*)(void))num_threads;
}

typedef struct {
    task job;
    void *argument;
} openmp_work;

static void openmp_region(void *argument) {
    openmp_work *one = argument;
    one->job(one->argument, openmp_thread(), openmp_threads());
}

/* Run a task on `num_threads` threads, this one among them. */
static void share(task job, void *argument, int num_threads) {
    openmp_work one = {job, argument};
    if (openmp_parallel && num_threads > 1)
        openmp_parallel(openmp_region, &one, (unsigned)num_threads, 0);
    else run(job, argument, num_threads);
}
