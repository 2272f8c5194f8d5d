/* A pool of threads, and a barrier for the steps of a task. Work is split by columns or rows of a
   result, so that results never depend on the number of threads. */

#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define MAX_THREADS 64
#define SPINS 200             /* checks of a number before yielding the processor */
#define AWAKE_SECONDS 2e-4    /* before a waiting thread sleeps; waking it takes about 1e-5 */

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

/* Where threads sleep that have waited for long: another process may need the processor, even to
   let go on whom they wait for. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_int sleeping;
} bed = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Wait until a number is not `old`: busily at first, then asleep. */
static void await_change(atomic_uint *number, unsigned old) {
    double since = 0;
    for (int spin = 0; atomic_load(number) == old;) {
        if (++spin < SPINS) {
            PAUSE();
            continue;
        }
        since = since > 0 ? since : seconds();
        if (seconds() - since < AWAKE_SECONDS) {
            sched_yield();
            continue;
        }
        pthread_mutex_lock(&bed.lock);
        atomic_fetch_add(&bed.sleeping, 1);
        while (atomic_load(number) == old) pthread_cond_wait(&bed.wake, &bed.lock);
        atomic_fetch_sub(&bed.sleeping, 1);
        pthread_mutex_unlock(&bed.lock);
    }
}

/* Change a number for those who await it: whoever sleeps now has counted before looking at it. */
static void change(atomic_uint *number, unsigned value) {
    atomic_store(number, value);
    if (!atomic_load(&bed.sleeping)) return;
    pthread_mutex_lock(&bed.lock);
    pthread_cond_broadcast(&bed.wake);
    pthread_mutex_unlock(&bed.lock);
}

typedef struct {
    atomic_int arrived;
    atomic_uint phase;
} barrier;

static void meet(barrier *place, int num_threads) {
    if (num_threads == 1) return;
    unsigned phase = atomic_load(&place->phase);
    if (atomic_fetch_add(&place->arrived, 1) == num_threads - 1) {
        atomic_store(&place->arrived, 0);
        change(&place->phase, phase + 1);
    } else {
        await_change(&place->phase, phase);
    }
}

static struct {
    pthread_mutex_t in_use;
    int num_workers;
    unsigned first_round[MAX_THREADS]; /* the round before each worker's first */
    atomic_uint round, finished;       /* finished: the last round that all workers have left */
    atomic_int running;
    task job;
    void *argument;
    int num_threads;
} pool = {.in_use = PTHREAD_MUTEX_INITIALIZER};

static void *work(void *identity) {
    int thread = (int)(intptr_t)identity;
    unsigned seen = pool.first_round[thread];
    for (;;) {
        await_change(&pool.round, seen);
        seen = atomic_load(&pool.round);
        if (thread < pool.num_threads) pool.job(pool.argument, thread, pool.num_threads);
        if (atomic_fetch_sub(&pool.running, 1) == 1) change(&pool.finished, seen);
    }
    return NULL;
}

/* A forked child has none of its parent's threads. */
static void forget_sleepers(void) {
    pthread_mutex_init(&bed.lock, NULL);
    pthread_cond_init(&bed.wake, NULL);
    atomic_store(&bed.sleeping, 0);
}
static void forget_workers(void) {
    pool.num_workers = 0;
    atomic_store(&pool.finished, atomic_load(&pool.round));
    pthread_mutex_init(&pool.in_use, NULL);
    forget_sleepers();
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
    if (!pool.num_workers) {
        job(argument, 0, 1);
        pthread_mutex_unlock(&pool.in_use);
        return;
    }
    pool.job = job, pool.argument = argument, pool.num_threads = num_threads;
    atomic_store(&pool.running, pool.num_workers);
    unsigned finished = atomic_load(&pool.finished);
    change(&pool.round, finished + 1);
    job(argument, 0, num_threads);
    await_change(&pool.finished, finished);
    pthread_mutex_unlock(&pool.in_use);
}
