// What the bare machine does: floor line | small | copies | futex | threads yield|sleep | start
//
//   line     8 bytes in one cache line each way, both sides polling: the unit all ratios refer to
//   small    pingpong.h over slots of one cache line (62 bytes, sequence, flag)
//   copies   pingpong.h over a ring of 16 chunks of 32 KiB: one copy in, one copy out, overlapped
//   futex    wake a process on the other core that has slept for 200 µs: from before the wake-up until it runs
//   threads  1, 2, 4, 8 pairs of processes on all cores; a waiting side spins and then yields (fair), or spins, yields
//            a little and then sleeps (more messages, but pairs take long turns)
//   start    fork and exec 64 times, and wait
//
// CORE_A and CORE_B say where the two sides run.
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "pingpong.h"

typedef _Atomic uint32_t word;

static pid_t split(void) {
  fflush(stdout);
  pid_t child = fork();
  if (!child) prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(child ? "CORE_A" : "CORE_B");
  return child;
}

static void done(pid_t child) {
  if (!child) _exit(0);
  waitpid(child, 0, 0);
}

static void line(void) {
  enum { ROUND_TRIPS = 150000, WARM = 2000 };
  char *shared = memory(4096, MAP_SHARED);
  word *there = (word *)shared, *back = (word *)(shared + 256);
  pid_t child = split();
  double start = 0;
  for (uint32_t i = 2; i < ROUND_TRIPS + WARM; i++) {
    if (i == WARM) start = now();
    if (child) atomic_store_explicit(there, i, memory_order_release);
    while (atomic_load_explicit(child ? back : there, memory_order_acquire) != i);
    if (!child) atomic_store_explicit(back, i, memory_order_release);
  }
  if (child) report("line", 8, (now() - start) / ROUND_TRIPS / 2 * 1e9);
  done(child);
}

enum { SLOTS = 4096, PAYLOAD = 62, CHUNKS = 16, CHUNK = 32 << 10 };
// So many slots are read before the sender is told: it looks at that word as rarely.
enum { RELEASE = SLOTS / 4 };

struct slot {
  uint8_t payload[PAYLOAD], sequence;
  _Atomic uint8_t lap;
} __attribute__((aligned(64)));

// One direction. A slot's lap tells a new message from an old one, so nothing is cleared.
struct way {
  struct slot slots[SLOTS];
  _Atomic uint64_t released __attribute__((aligned(128)));
  _Atomic uint64_t head __attribute__((aligned(128)));
  _Atomic uint64_t tail __attribute__((aligned(128)));
  char chunks[CHUNKS][CHUNK] __attribute__((aligned(128)));
};

static struct way *out, *in;
static uint64_t sent, received, may_send = SLOTS, chunks_out, chunks_in;

static uint8_t lap(uint64_t position) { return 1 + (position / SLOTS & 1); }

static void send_one(const void *from, size_t size) {
  if (size <= PAYLOAD) {
    while (sent == may_send) may_send = atomic_load_explicit(&out->released, memory_order_acquire) + SLOTS;
    struct slot *slot = &out->slots[sent % SLOTS];
    memcpy(slot->payload, from, size);
    slot->sequence = sent;
    atomic_store_explicit(&slot->lap, lap(sent++), memory_order_release);
    return;
  }
  for (size_t at = 0; at < size; at += CHUNK) {
    while (chunks_out - atomic_load_explicit(&out->tail, memory_order_acquire) >= CHUNKS);
    memcpy(out->chunks[chunks_out % CHUNKS], (const char *)from + at, size - at < CHUNK ? size - at : CHUNK);
    atomic_store_explicit(&out->head, ++chunks_out, memory_order_release);
  }
}

static void receive_one(void *into, size_t size) {
  if (size <= PAYLOAD) {
    struct slot *slot = &in->slots[received % SLOTS];
    while (atomic_load_explicit(&slot->lap, memory_order_acquire) != lap(received));
    memcpy(into, slot->payload, size);
    if (++received % RELEASE == 0) atomic_store_explicit(&in->released, received, memory_order_release);
    return;
  }
  for (size_t at = 0; at < size; at += CHUNK) {
    while (atomic_load_explicit(&in->head, memory_order_acquire) == chunks_in);
    memcpy((char *)into + at, in->chunks[chunks_in % CHUNKS], size - at < CHUNK ? size - at : CHUNK);
    atomic_store_explicit(&in->tail, ++chunks_in, memory_order_release);
  }
}

static void send_window(const void *from, size_t size, int count) {
  for (int i = 0; i < count; i++) send_one(from, size);
}

// Looks at the last slot of the window first: a receiver on the sender's heels would take each line away half written.
static void receive_window(void *into, size_t size, int count) {
  uint64_t last = received + count - 1;
  while (size <= PAYLOAD && atomic_load_explicit(&in->slots[last % SLOTS].lap, memory_order_acquire) != lap(last));
  for (int i = 0; i < count; i++) receive_one(into, size);
}

static void through_memory(const char *test) {
  struct way *ways = (struct way *)memory(2 * sizeof(struct way), MAP_SHARED);
  memset(ways, 0, 2 * sizeof(struct way));
  pid_t child = split();
  out = &ways[child != 0], in = &ways[child == 0];
  measure(test, child != 0, LARGEST);
  done(child);
}

static void sleep_on(word *at, uint32_t value) {
  struct timespec most = {.tv_nsec = 10000000};
  syscall(SYS_futex, at, FUTEX_WAIT, value, &most, 0, 0);
}

static void wake(word *at) { syscall(SYS_futex, at, FUTEX_WAKE, 1, 0, 0, 0); }

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void futex(void) {
  enum { MESSAGES = 500, WARM = 20 };
  char *shared = memory(4096, MAP_SHARED);
  word *there = (word *)shared, *back = (word *)(shared + 256);
  volatile double *sent_at = (double *)(shared + 512);
  double took[MESSAGES + WARM];
  atomic_store(there, 0), atomic_store(back, 0);
  pid_t child = split();
  for (uint32_t i = 1; i <= MESSAGES + WARM; i++) {
    if (child) {
      while (atomic_load(there) != i) sleep_on(there, i - 1);
      took[i - 1] = now() - *sent_at;
      atomic_store(back, i);
    } else {
      for (double start = now(); now() - start < 200e-6;);
      *sent_at = now();
      atomic_store(there, i);
      wake(there);
      while (atomic_load(back) != i);
    }
  }
  if (child) {
    qsort(took + WARM, MESSAGES, sizeof *took, ascending);
    report("asleep", 8, took[WARM + MESSAGES / 2] * 1e9);
  }
  done(child);
}

// What a pair shares; each word in a line of its own.
struct pair {
  word there __attribute__((aligned(128))), back __attribute__((aligned(128)));
  word sleeps[2] __attribute__((aligned(128)));
  uint64_t round_trips __attribute__((aligned(128)));
  double longest;
};

static void wait_for(word *other, uint32_t i, word *asleep, int may_sleep, word *over) {
  for (long polls = 0; atomic_load(other) != i && !atomic_load(over); polls++) {
    if (!may_sleep) {
      if (polls > 50) sched_yield();
    } else if (polls > 2020) {
      atomic_store(asleep, 1);
      if (atomic_load(other) != i) sleep_on(other, i - 1);
      atomic_store(asleep, 0);
    } else if (polls > 2000) {
      sched_yield();
    }
  }
}

static void pair_side(struct pair *pair, int first, int may_sleep, word *over) {
  word *mine = first ? &pair->there : &pair->back, *other = first ? &pair->back : &pair->there;
  double last = now();
  for (uint32_t i = 1; !atomic_load(over); i++) {
    if (!first) wait_for(other, i, &pair->sleeps[first], may_sleep, over);
    atomic_store(mine, i);
    if (atomic_load(&pair->sleeps[!first])) wake(mine);
    if (!first) continue;
    wait_for(other, i, &pair->sleeps[first], may_sleep, over);
    double time = now();
    if (time - last > pair->longest) pair->longest = time - last;
    last = time;
    pair->round_trips = i;
  }
  _exit(0);
}

static void threads(int count, int may_sleep) {
  enum { MOST = 8 };
  struct pair *pairs = (struct pair *)memory(MOST * sizeof *pairs + 4096, MAP_SHARED);
  memset(pairs, 0, MOST * sizeof *pairs + 4096);
  word *over = (word *)(pairs + MOST);
  fflush(stdout);
  for (int i = 0; i < 2 * count; i++)
    if (!fork()) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      pair_side(&pairs[i / 2], i & 1, may_sleep, over);
    }
  double start = now();
  usleep(400000);
  atomic_store(over, 1);
  double elapsed = now() - start;
  while (wait(0) > 0);
  double sum = 0, each[MOST], longest = 0;
  for (int i = 0; i < count; i++) {
    sum += each[i] = pairs[i].round_trips;
    if (pairs[i].longest > longest) longest = pairs[i].longest;
  }
  qsort(each, count, sizeof *each, ascending);
  report("threads", count, 2 * sum / elapsed);
  if (each[0]) report("worst", count, each[count / 2] / each[0]);
  report("gap", count, longest * 1e9);
}

static void start(void) {
  enum { PROCESSES = 64 };
  double from = now();
  for (int i = 0; i < PROCESSES; i++)
    if (!fork()) {
      execl("/bin/true", "true", (char *)0);
      _exit(127);
    }
  while (wait(0) > 0);
  report("start", PROCESSES, now() - from);
}

int main(int count, char **arguments) {
  if (count < 2) return 1;
  alarm(30);
  const char *test = arguments[1];
  if (!strcmp(test, "line")) line();
  else if (!strcmp(test, "futex")) futex();
  else if (!strcmp(test, "start")) start();
  else if (!strcmp(test, "threads") && count > 2)
    for (int pairs = 1; pairs <= 8; pairs *= 2) threads(pairs, !strcmp(arguments[2], "sleep"));
  else through_memory(test);
  return 0;
}
