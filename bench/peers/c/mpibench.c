// MPI, any implementation: mpibench small | copies | threads | calls | idle | null | version
//
//   small, copies  between ranks 0 and 1: pingpong.h
//   threads        1, 2, 4, 8 threads of rank 0, each with one of rank 1 (MPI_THREAD_MULTIPLE, told apart by tag)
//   calls          a remote call by hand: a header, which says how long the body is, and the body, into memory that the
//                  receiver makes when it has the header; and both back
//   idle           CPU use of a rank that waits in MPI_Recv for one second, per cent
//   null           MPI_Init and MPI_Finalize only, to time a start-up from outside
#include <mpi.h>
#include <pthread.h>
#include <sys/resource.h>

#include "pingpong.h"

static int rank;

static void send_one(const void *from, size_t size) { MPI_Send(from, size, MPI_BYTE, !rank, 1, MPI_COMM_WORLD); }

static void receive_one(void *into, size_t size) {
  MPI_Recv(into, size, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_window(const void *from, size_t size, int count) {
  MPI_Request requests[WINDOW];
  for (int i = 0; i < count; i++) MPI_Isend(from, size, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, &requests[i]);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void receive_window(void *into, size_t size, int count) {
  MPI_Request requests[WINDOW];
  for (int i = 0; i < count; i++) MPI_Irecv(into, size, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, &requests[i]);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

// One thread of each process and its counterpart. Rank 0 ends the exchange by a word in the message when the time is
// over: some libraries need milliseconds a message, so a count could take minutes.
enum { MOST_THREADS = 8 };
static const double THREAD_SECONDS = 0.4;

struct pair {
  int tag;
  long round_trips;
  double elapsed, longest;
};

static pthread_barrier_t all_ready;

static void *exchange(void *argument) {
  struct pair *pair = argument;
  int64_t over = 0;
  pthread_barrier_wait(&all_ready);
  double start = now(), last = start;
  while (!over) {
    if (rank == 0) {
      over = last - start > THREAD_SECONDS;
      MPI_Send(&over, 8, MPI_BYTE, 1, pair->tag, MPI_COMM_WORLD);
      MPI_Recv(&over, 8, MPI_BYTE, 1, pair->tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      double time = now();
      if (time - last > pair->longest) pair->longest = time - last;
      last = time;
      pair->round_trips++;
    } else {
      MPI_Recv(&over, 8, MPI_BYTE, 0, pair->tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&over, 8, MPI_BYTE, 0, pair->tag, MPI_COMM_WORLD);
    }
  }
  pair->elapsed = last - start;
  return 0;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void threads(int count) {
  pthread_t thread[MOST_THREADS];
  struct pair pair[MOST_THREADS];
  pthread_barrier_init(&all_ready, 0, count);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < count; i++) {
    pair[i] = (struct pair){.tag = 100 + i};
    pthread_create(&thread[i], 0, exchange, &pair[i]);
  }
  double messages = 0, longest = 0, one_way[MOST_THREADS];
  for (int i = 0; i < count; i++) {
    pthread_join(thread[i], 0);
    messages += 2 * pair[i].round_trips / pair[i].elapsed;
    one_way[i] = pair[i].elapsed / pair[i].round_trips / 2;
    if (pair[i].longest > longest) longest = pair[i].longest;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank) return;
  qsort(one_way, count, sizeof *one_way, ascending);
  report("threads", count, messages);
  report("worst", count, one_way[count - 1] / one_way[(count - 1) / 2]);
  report("gap", count, longest * 1e9);
}

enum { HEADER = 32 };

static void send_call(const void *body, size_t size) {
  uint64_t header[HEADER / 8] = {size};
  MPI_Send(header, HEADER, MPI_BYTE, !rank, 2, MPI_COMM_WORLD);
  if (size) MPI_Send(body, size, MPI_BYTE, !rank, 3, MPI_COMM_WORLD);
}

// Into `into`, or into new memory, which is returned.
static void *receive_call(void *into) {
  uint64_t header[HEADER / 8];
  MPI_Status status;
  MPI_Recv(header, HEADER, MPI_BYTE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status);
  if (!into) into = malloc(header[0] + 1);
  if (header[0]) MPI_Recv(into, header[0], MPI_BYTE, status.MPI_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return into;
}

// Nanoseconds of a round trip, as rank 0 sees it.
static double call_many(char *body, size_t size, long rounds) {
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now();
  for (long i = 0; i < rounds; i++) {
    if (rank == 0) {
      send_call(body, size);
      receive_call(body);
    } else {
      void *made = receive_call(0);
      send_call(made, size);
      free(made);
    }
  }
  return (now() - start) / rounds * 1e9;
}

static void calls(void) {
  static const size_t sizes[] = {0, 8, 1 << 10, 64 << 10, 1 << 20, 4 << 20};
  char *body = malloc(LARGEST);
  memset(body, 1, LARGEST);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    long rounds = 50;
    // Both sides agree on how many rounds take a tenth of a second.
    double each = call_many(body, sizes[i], rounds);
    rounds = 1e8 / each > 20 ? 1e8 / each : 20;
    MPI_Bcast(&rounds, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    double times[3];
    for (int run = 0; run < 3; run++) times[run] = call_many(body, sizes[i], rounds);
    qsort(times, 3, sizeof *times, ascending);
    if (rank == 0) report("rtt", sizes[i], times[1]);
  }
  free(body);
}

static double cpu_seconds(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return use.ru_utime.tv_sec + use.ru_stime.tv_sec + (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static void idle(void) {
  int64_t word = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    sleep(1);
    send_one(&word, 8);
  } else {
    double used = cpu_seconds(), start = now();
    receive_one(&word, 8);
    report("idle", 0, (cpu_seconds() - used) / (now() - start) * 100);
  }
}

int main(int count, char **arguments) {
  if (count < 2) return 1;
  alarm(30);
  const char *test = arguments[1];
  int wanted = strcmp(test, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, got;
  MPI_Init_thread(&count, &arguments, wanted, &got);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (got < wanted) {
    fprintf(stderr, "MPI_THREAD_MULTIPLE is not supported\n");
    return 1;
  }
  if (!strcmp(test, "threads")) for (int n = 1; n <= MOST_THREADS; n *= 2) threads(n);
  else if (!strcmp(test, "idle")) idle();
  else if (!strcmp(test, "calls")) calls();
  else if (!strcmp(test, "version")) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    if (rank == 0) puts(version);
  } else if (strcmp(test, "null")) measure(test, rank == 0, LARGEST);
  MPI_Finalize();
  return 0;
}
