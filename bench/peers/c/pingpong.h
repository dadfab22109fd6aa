// The two-sided measurements, written once: every C program here includes this file and supplies the four functions
// declared first, so that all libraries are measured by the same loops.
//
// Compile with -D_GNU_SOURCE. Prints one line per figure, `R <metric> <size> <value>`:
//   lat   one-way time (half a round trip), ns; the receiver sends back the buffer it received into
//   sep   the same, but each side sends from one buffer, which nobody rewrites, and receives into another
//   rate  messages per second, one way, in windows of 64; the best of six: three times acknowledged after each window,
//         three times after 256 (some libraries like one, some the other; and a receiver on the sender's heels slows it)
//   bw    bytes per second, one way, in windows, each acknowledged; all messages from one buffer into one other
#ifndef PINGPONG_H
#define PINGPONG_H
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void send_one(const void *from, size_t size);
static void receive_one(void *into, size_t size);
static void send_window(const void *from, size_t size, int count);
static void receive_window(void *into, size_t size, int count);

enum { LARGEST = 64 << 20, WINDOW = 64, RARELY = 256 };

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static inline void report(const char *metric, size_t size, double value) {
  printf("R %s %zu %.6g\n", metric, size, value);
  fflush(stdout);
}

// Binds the caller to the core that the environment variable names; without it, or if it is negative, to none.
static inline void pin(const char *variable) {
  const char *core = getenv(variable);
  if (!core || atoi(core) < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(atoi(core), &set);
  if (sched_setaffinity(0, sizeof set, &set)) perror("sched_setaffinity");
}

// Memory whose pages are all present: no page fault is measured.
static inline char *memory(size_t size, int kind) {
  char *at = mmap(0, size, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    perror("mmap");
    exit(1);
  }
  memset(at, 1, size);
  return at;
}

// Per thread: the two sides may be threads of one process.
static __thread char *inbox, *outbox;

static void round_trips(int first, const void *from, void *into, size_t size, long count) {
  for (long i = 0; i < count; i++) {
    if (first) send_one(from, size);
    receive_one(into, size);
    if (!first) send_one(from, size);
  }
}

// Sends `count` times `batch` windows and waits for one acknowledgement of each batch.
static void windows(int first, size_t size, int window, int batch, long count) {
  for (long i = 0; i < count; i++) {
    if (first) {
      for (int j = 0; j < batch; j++) send_window(outbox, size, window);
      receive_one(inbox, 8);
    } else {
      for (int j = 0; j < batch; j++) receive_window(inbox, size, window);
      send_one(outbox, 8);
    }
  }
}

// How often to repeat what took `elapsed` for `count`, to fill `seconds`. The first side decides and tells the other.
static long repetitions(int first, double elapsed, long count, double seconds) {
  int64_t n = 0;
  if (first) {
    n = seconds / (elapsed / count);
    n = n < 3 ? 3 : n > 2000000 ? 2000000 : n;
    send_one(&n, sizeof n);
  } else {
    receive_one(&n, sizeof n);
  }
  return n;
}

static void latency(int first, const char *metric, size_t size, double seconds) {
  const char *from = strcmp(metric, "sep") ? inbox : outbox;
  long count = size <= 8192 ? 300 : size <= 1 << 20 ? 20 : 3;
  double start = now();
  round_trips(first, from, inbox, size, count);
  count = repetitions(first, now() - start, count, seconds);
  start = now();
  round_trips(first, from, inbox, size, count);
  if (first) report(metric, size, (now() - start) / count / 2 * 1e9);
}

// Messages per second, as the first side sees it.
static double stream(int first, size_t size, int batch, double seconds) {
  int window = size >= 1 << 20 ? 16 : WINDOW;
  long count = 2;
  double start = now();
  windows(first, size, window, batch, count);
  count = repetitions(first, now() - start, count, seconds);
  start = now();
  windows(first, size, window, batch, count);
  return (double)window * batch * count / (now() - start);
}

static void bandwidth(int first, size_t size, double seconds) {
  double messages = stream(first, size, 1, seconds);
  if (first) report("bw", size, messages * size);
}

static void rate(int first, size_t size, double seconds) {
  double best = 0;
  for (int i = 0; i < 6; i++) {
    double messages = stream(first, size, i % 2 ? RARELY : 1, seconds);
    if (messages > best) best = messages;
  }
  if (first) report("rate", size, best);
}

static void allocate_buffers(size_t size) {
  inbox = memory(size, MAP_PRIVATE);
  outbox = memory(size, MAP_PRIVATE);
}

static const size_t SMALL[] = {8, 32, 56, 64, 96, 128, 256, 512};
static const size_t LARGE[] = {1 << 10,  2 << 10,  4 << 10,   8 << 10, 16 << 10,
                               32 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20};
#define EACH(size, sizes) (const size_t *size = sizes; size < sizes + sizeof sizes / sizeof *sizes; size++)

static inline void measure_small(int first) {
  allocate_buffers(4096);
  for EACH (size, SMALL) latency(first, "lat", *size, 0.06);
  for EACH (size, SMALL) latency(first, "sep", *size, 0.06);
  rate(first, 8, 0.035);
}

static inline void measure_copies(int first, size_t largest) {
  allocate_buffers(largest);
  for EACH (size, LARGE)
    if (*size <= largest) latency(first, "lat", *size, 0.06);
  if (largest == LARGEST) latency(first, "lat", LARGEST, 0.12);
  for EACH (size, LARGE)
    if (*size <= largest) latency(first, "sep", *size, 0.06);
  if (largest == LARGEST) latency(first, "sep", LARGEST, 0.12);
  for EACH (size, LARGE)
    if (*size <= largest) bandwidth(first, *size, 0.08);
}

// `small` or `copies`, as the program's argument says. Libraries through sockets stop at 4 MiB: `largest`.
static inline void measure(const char *what, int first, size_t largest) {
  if (!strcmp(what, "small")) measure_small(first);
  else if (!strcmp(what, "copies")) measure_copies(first, largest);
  else {
    fprintf(stderr, "unknown test %s\n", what);
    exit(1);
  }
}
#endif
