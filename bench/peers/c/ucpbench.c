// UCX, tag matching (ucp_tag_send_nbx, ucp_tag_recv_nbx) between two processes: ucpbench small | copies
//
// ucx_perftest never rewrites the buffer it sends from; this program also echoes, as MPI benchmarks do.
// CORE_A and CORE_B say where the two sides run.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>

#include "pingpong.h"

static ucp_worker_h worker;
static ucp_ep_h endpoint;

static void fail(const char *what, ucs_status_t status) {
  fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
  exit(1);
}

static void complete(void *request) {
  if (!request) return;
  if (UCS_PTR_IS_ERR(request)) fail("request", UCS_PTR_STATUS(request));
  ucs_status_t status;
  while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) ucp_worker_progress(worker);
  if (status != UCS_OK) fail("request", status);
  ucp_request_free(request);
}

static void *start_send(const void *from, size_t size) {
  ucp_request_param_t plain = {0};
  return ucp_tag_send_nbx(endpoint, from, size, 1, &plain);
}

static void *start_receive(void *into, size_t size) {
  ucp_request_param_t plain = {0};
  return ucp_tag_recv_nbx(worker, into, size, 1, ~0ul, &plain);
}

static void send_one(const void *from, size_t size) { complete(start_send(from, size)); }

static void receive_one(void *into, size_t size) { complete(start_receive(into, size)); }

static void send_window(const void *from, size_t size, int count) {
  void *requests[WINDOW];
  for (int i = 0; i < count; i++) requests[i] = start_send(from, size);
  for (int i = 0; i < count; i++) complete(requests[i]);
}

static void receive_window(void *into, size_t size, int count) {
  void *requests[WINDOW];
  for (int i = 0; i < count; i++) requests[i] = start_receive(into, size);
  for (int i = 0; i < count; i++) complete(requests[i]);
}

static void transfer(ssize_t done, size_t wanted) {
  if (done == (ssize_t)wanted) return;
  perror("the other side");
  exit(1);
}

// Opens a worker, exchanges addresses through `wire`, connects.
static void connect_through(int wire) {
  ucp_params_t wishes = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
  ucp_worker_params_t mode = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE};
  ucp_config_t *config;
  ucp_context_h context;
  ucp_address_t *mine;
  size_t length;
  ucs_status_t status = ucp_config_read(0, 0, &config);
  if (status == UCS_OK) status = ucp_init(&wishes, config, &context);
  if (status == UCS_OK) status = ucp_worker_create(context, &mode, &worker);
  if (status == UCS_OK) status = ucp_worker_get_address(worker, &mine, &length);
  if (status != UCS_OK) fail("worker", status);
  transfer(write(wire, &length, sizeof length), sizeof length);
  transfer(write(wire, mine, length), length);
  transfer(recv(wire, &length, sizeof length, MSG_WAITALL), sizeof length);
  ucp_address_t *other = malloc(length);
  transfer(recv(wire, other, length, MSG_WAITALL), length);
  ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = other};
  status = ucp_ep_create(worker, &to, &endpoint);
  if (status != UCS_OK) fail("ucp_ep_create", status);
}

int main(int count, char **arguments) {
  int wire[2];
  if (count < 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, wire)) return 1;
  alarm(30);
  pid_t child = fork();
  if (!child) prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(child ? "CORE_A" : "CORE_B");
  connect_through(wire[child != 0]);
  measure(arguments[1], child != 0, LARGEST);
  if (!child) {
    // The last message may still need this side's progress.
    for (double start = now(); now() - start < 0.1;) ucp_worker_progress(worker);
    _exit(0);
  }
  waitpid(child, 0, 0);
  return 0;
}
