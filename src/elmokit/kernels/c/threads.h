/* A pool of threads, and a barrier for the steps of a task. Work is split by columns or rows of a
   result, so that results never depend on the number of threads. */

#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define MAX_THREADS 64
#define SPINS 200             /* checks of a flag before yielding the processor */
#define IDLE_SECONDS 0.003    /* before an idle worker sleeps */

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() atomic_signal_fence(memory_order_seq_cst)
#endif

typedef void (*task)(void *argument, int thread, int num_threads);

/* Loop over this thread's share of `count` items. */
#define FOR_SHARE(k, count)                                         \
    for (int64_t k = (count) * (int64_t)thread / num_threads,       \
                 k##_end = (count) * (int64_t)(thread + 1) / num_threads; \
         k < k##_end; k++)

static struct {
    pthread_mutex_t in_use, lock;
    pthread_cond_t wake;
    int num_workers, sleeping;
    unsigned first_round[MAX_THREADS]; /* the round before each worker's first */
    atomic_uint round;
    atomic_int running;
    task job;
    void *argument;
    int num_threads;
} pool = {.in_use = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER};

typedef struct {
    atomic_int arrived;
    atomic_uint phase;
} barrier;

static void meet(barrier *place, int num_threads) {
    if (num_threads == 1) return;
    unsigned phase = atomic_load(&place->phase);
    if (atomic_fetch_add(&place->arrived, 1) == num_threads - 1) {
        atomic_store(&place->arrived, 0);
        atomic_store(&place->phase, phase + 1);
        return;
    }
    for (int spin = 0; atomic_load(&place->phase) == phase;)
        if (++spin < SPINS) PAUSE();
        else sched_yield();
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *work(void *identity) {
    int thread = (int)(intptr_t)identity;
    unsigned seen = pool.first_round[thread];
    for (;;) {
        double idle_since = seconds();
        for (int spin = 0; atomic_load(&pool.round) == seen;) {
            if (++spin < SPINS) PAUSE();
            else if (seconds() - idle_since < IDLE_SECONDS) sched_yield();
            else break;
        }
        if (atomic_load(&pool.round) == seen) {
            pthread_mutex_lock(&pool.lock);
            pool.sleeping++;
            while (atomic_load(&pool.round) == seen) pthread_cond_wait(&pool.wake, &pool.lock);
            pool.sleeping--;
            pthread_mutex_unlock(&pool.lock);
        }
        seen = atomic_load(&pool.round);
        if (thread < pool.num_threads) pool.job(pool.argument, thread, pool.num_threads);
        atomic_fetch_sub(&pool.running, 1);
    }
    return NULL;
}

/* A forked child has none of its parent's threads. */
static void forget_workers(void) {
    pool.num_workers = pool.sleeping = 0;
    pthread_mutex_init(&pool.in_use, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
}

/* Start workers until there are `wanted`. */
static void hire(int wanted) {
    static int prepared = 0;
    if (!prepared) pthread_atfork(NULL, NULL, forget_workers), prepared = 1;
    while (pool.num_workers < wanted) {
        pthread_t thread;
        int number = pool.num_workers + 1;
        pool.first_round[number] = atomic_load(&pool.round);
        if (pthread_create(&thread, NULL, work, (void *)(intptr_t)number)) return;
        pthread_detach(thread);
        pool.num_workers = number;
    }
}

/* Run a task on `num_threads` threads, this one among them; alone if the pool is busy. */
static void run(task job, void *argument, int num_threads) {
    if (num_threads > MAX_THREADS) num_threads = MAX_THREADS;
    if (num_threads < 2 || pthread_mutex_trylock(&pool.in_use)) {
        job(argument, 0, 1);
        return;
    }
    hire(num_threads - 1);
    if (pool.num_workers < num_threads - 1) num_threads = pool.num_workers + 1;
    pool.job = job, pool.argument = argument, pool.num_threads = num_threads;
    atomic_store(&pool.running, pool.num_workers);
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(&pool.round, 1);
    if (pool.sleeping) pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    job(argument, 0, num_threads);
    for (int spin = 0; atomic_load(&pool.running);)
        if (++spin < SPINS) PAUSE();
        else sched_yield();
    pthread_mutex_unlock(&pool.in_use);
}
