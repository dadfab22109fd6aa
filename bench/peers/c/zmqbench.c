// ZeroMQ, PAIR sockets: zmqbench ipc | inproc  block | poll  small | copies
// ipc: two processes; inproc: two threads. CORE_A and CORE_B say where the two sides run.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <zmq.h>

#include "pingpong.h"

static void *context;
static int flags;
static const char *test;
static char address[64];

// Per thread, as both sides of inproc live in this process.
static __thread void *channel;

static void fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, zmq_strerror(errno));
  exit(1);
}

static void send_one(const void *from, size_t size) {
  if (zmq_send(channel, from, size, 0) < 0) fail("zmq_send");
}

static void receive_one(void *into, size_t size) {
  while (zmq_recv(channel, into, size, flags) < 0)
    if (errno != EAGAIN) fail("zmq_recv");
}

static void send_window(const void *from, size_t size, int count) {
  for (int i = 0; i < count; i++) send_one(from, size);
}

static void receive_window(void *into, size_t size, int count) {
  for (int i = 0; i < count; i++) receive_one(into, size);
}

static void *side(void *first) {
  int unlimited = 0;
  pin(first ? "CORE_A" : "CORE_B");
  channel = zmq_socket(context, ZMQ_PAIR);
  zmq_setsockopt(channel, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
  zmq_setsockopt(channel, ZMQ_RCVHWM, &unlimited, sizeof unlimited);
  if (first ? zmq_connect(channel, address) : zmq_bind(channel, address)) fail(address);
  measure(test, first != 0, 4 << 20);
  zmq_close(channel);
  return 0;
}

int main(int count, char **arguments) {
  if (count < 4) return 1;
  alarm(30);
  int threads = !strcmp(arguments[1], "inproc");
  flags = strcmp(arguments[2], "poll") ? 0 : ZMQ_DONTWAIT;
  test = arguments[3];
  snprintf(address, sizeof address, threads ? "inproc://peer" : "ipc:///tmp/zmqbench.%d", getpid());
  if (threads) {
    pthread_t other;
    context = zmq_ctx_new();
    pthread_create(&other, 0, side, 0);
    side(&other);
    pthread_join(other, 0);
  } else {
    pid_t child = fork();
    if (!child) prctl(PR_SET_PDEATHSIG, SIGKILL);
    context = zmq_ctx_new();
    side(child ? &child : 0);
    zmq_ctx_term(context);
    if (!child) _exit(0);
    waitpid(child, 0, 0);
    unlink(address + strlen("ipc://"));
  }
  return 0;
}
