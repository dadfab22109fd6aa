// NNG, pair0 sockets between two processes: nngbench small | copies
// CORE_A and CORE_B say where the two sides run.
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "pingpong.h"

static nng_socket channel;

static void check(int status, const char *what) {
  if (!status) return;
  fprintf(stderr, "%s: %s\n", what, nng_strerror(status));
  exit(1);
}

static void send_one(const void *from, size_t size) { check(nng_send(channel, (void *)from, size, 0), "nng_send"); }

static void receive_one(void *into, size_t size) { check(nng_recv(channel, into, &size, 0), "nng_recv"); }

static void send_window(const void *from, size_t size, int count) {
  for (int i = 0; i < count; i++) send_one(from, size);
}

static void receive_window(void *into, size_t size, int count) {
  for (int i = 0; i < count; i++) receive_one(into, size);
}

int main(int count, char **arguments) {
  char address[64];
  if (count < 2) return 1;
  alarm(30);
  snprintf(address, sizeof address, "ipc:///tmp/nngbench.%d", getpid());
  pid_t child = fork();
  if (!child) prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(child ? "CORE_A" : "CORE_B");
  check(nng_pair0_open(&channel), "nng_pair0_open");
  nng_socket_set_size(channel, NNG_OPT_RECVMAXSZ, 0);
  nng_socket_set_int(channel, NNG_OPT_RECVBUF, 128);
  nng_socket_set_int(channel, NNG_OPT_SENDBUF, 128);
  if (child) {
    int status = 1;
    for (int i = 0; i < 100 && status; i++) {
      status = nng_dial(channel, address, 0, 0);
      if (status) usleep(20000);
    }
    check(status, "nng_dial");
  } else {
    check(nng_listen(channel, address, 0, 0), "nng_listen");
  }
  measure(arguments[1], child != 0, 4 << 20);
  usleep(100000);  // what nng still has to send, it sends from threads of its own
  nng_close(channel);
  if (!child) _exit(0);
  waitpid(child, 0, 0);
  unlink(address + strlen("ipc://"));
  return 0;
}
