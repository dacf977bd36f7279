// Work that is written down rather than done: what a stream captures, in order, for each launch of the graph. An order
// in which the source asks for it is one that the graph allows.
#pragma once
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
void __assert_fail(const char *, const char *, unsigned, const char *) __attribute__((noreturn));

// What the lowering makes a record of a launch, with all that it is given, and such a launch of.
void *__je_record(const void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, size_t shared, void **arguments);
void __je_replay(void *record);
}

namespace {

enum Work { launch, copy_of_rows, filled_rows, call_of_host, kept_memory, nothing };

struct Node {
  Node *next;
  Work work;
  void *record;  // of a launch
  void *to;
  const void *from;
  size_t to_pitch, from_pitch, width, height;
  int byte;
  size_t to_plane, from_plane, depth;  // of a copy; no depth is one plane
  void (*function)(void *);            // of the host, called with the record
};

struct Graph {
  Node *first, *last;
  int holders;
};

// What is launched: it outlives the graph that it is made of, and may be given another one.
struct Executable {
  Graph *graph;
};

Graph *capturing;

// The streams that take part: the one that captures, and those that have waited for an event since then.
constexpr int most_streams = 64;
char handles[most_streams];
int streams;
void *joined[most_streams];
int joins;

void join(void *stream) {
  if (joins == most_streams) __assert_fail("a capture has at most 64 streams", "", 0, "");
  joined[joins++] = stream;
}

bool is_captured(void *stream) {
  if (capturing)
    for (int i = 0; i < joins; i++)
      if (joined[i] == stream) return true;
  return false;
}

Graph *new_graph() {
  Graph *made = (Graph *)malloc(sizeof(Graph));
  *made = {nullptr, nullptr, 1};
  return made;
}

Node *append(Graph *graph, Node node) {
  if (graph->holders > 1) __assert_fail("a CUDA graph has all its nodes before it is instantiated", "", 0, "");
  Node *made = (Node *)malloc(sizeof(Node));
  *made = node;
  if (graph->last) graph->last->next = made;
  else graph->first = made;
  graph->last = made;
  return made;
}

void let_go(Graph *graph) {
  if (--graph->holders) return;
  for (Node *node = graph->first; node;) {
    Node *next = node->next;
    if (node->work == launch) free(node->record);
    if (node->work == kept_memory) free(node->to);
    free(node);
    node = next;
  }
  free(graph);
}

void move_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height) {
  for (size_t row = 0; row < height; row++)
    memcpy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
}

void fill_rows(void *to, size_t pitch, int byte, size_t width, size_t height) {
  for (size_t row = 0; row < height; row++) memset((char *)to + row * pitch, byte, width);
}

void run_all(const Graph *graph) {
  for (const Node *node = graph->first; node; node = node->next) switch (node->work) {
      case launch: __je_replay(node->record); break;
      case copy_of_rows:
        for (size_t z = 0; z == 0 || z < node->depth; z++)
          move_rows((char *)node->to + z * node->to_plane, node->to_pitch,
                    (const char *)node->from + z * node->from_plane, node->from_pitch, node->width, node->height);
        break;
      case filled_rows: fill_rows(node->to, node->to_pitch, node->byte, node->width, node->height); break;
      case call_of_host: node->function(node->record); break;
      case kept_memory:
      case nothing: break;
    }
}

}  // namespace

extern "C" {

void __je_done_at_once() {
  if (capturing) __assert_fail("a stream captures launches, asynchronous copies and fills alone", "", 0, "");
}

int cudaStreamBeginCapture(void *stream, int) {
  __je_done_at_once();
  capturing = new_graph();
  joins = 0;
  join(stream);
  return 0;
}
int cudaStreamEndCapture(void *, Graph **made) {
  *made = capturing;
  capturing = nullptr;
  return 0;
}
int cudaStreamIsCapturing(void *stream, int *status) { return *status = is_captured(stream) ? 1 : 0, 0; }

int cudaGraphCreate(Graph **made, unsigned) { return *made = new_graph(), 0; }
int cudaGraphDestroy(Graph *graph) { return let_go(graph), 0; }
int cudaGraphInstantiate(Executable **made, Graph *graph, unsigned long long) {
  *made = (Executable *)malloc(sizeof(Executable));
  graph->holders++;
  (*made)->graph = graph;
  return 0;
}
int __je_graph_update(Executable *executable, Graph *graph) {
  graph->holders++;
  let_go(executable->graph);
  executable->graph = graph;
  return 0;
}
int cudaGraphUpload(Executable *, void *) { return 0; }
int cudaGraphLaunch(Executable *executable, void *stream) {
  if (is_captured(stream)) __je_done_at_once();
  run_all(executable->graph);
  return 0;
}
int cudaGraphExecDestroy(Executable *executable) {
  let_go(executable->graph);
  free(executable);
  return 0;
}
int cudaGraphGetNodes(Graph *graph, Node **nodes, size_t *count) {
  size_t found = 0;
  for (Node *node = graph->first; node; node = node->next, found++)
    if (nodes && found < *count) nodes[found] = node;
  *count = found;
  return 0;
}

struct cudaKernelNodeParams {
  void *func;
  struct {
    unsigned x, y, z;
  } gridDim, blockDim;
  unsigned sharedMemBytes;
  void **kernelParams, **extra;
};
int cudaGraphAddKernelNode(Node **made, Graph *graph, Node *const *, size_t, const cudaKernelNodeParams *p) {
  void *record = __je_record(p->func, p->gridDim.x, p->gridDim.y, p->gridDim.z, p->blockDim.x, p->blockDim.y,
                             p->blockDim.z, p->sharedMemBytes, p->kernelParams);
  return *made = append(graph, {nullptr, launch, record}), 0;
}
int cudaGraphAddMemcpyNode1D(Node **made, Graph *graph, Node *const *, size_t, void *to, const void *from, size_t size,
                             int) {
  return *made = append(graph, {nullptr, copy_of_rows, nullptr, to, from, 0, 0, size, 1}), 0;
}
int __je_graph_copy(Node **made, Graph *graph, void *to, size_t to_pitch, size_t to_plane, const void *from,
                    size_t from_pitch, size_t from_plane, size_t width, size_t height, size_t depth) {
  Node node = {nullptr, copy_of_rows, nullptr, to, from, to_pitch, from_pitch, width, height};
  node.to_plane = to_plane, node.from_plane = from_plane, node.depth = depth;
  return *made = append(graph, node), 0;
}
struct cudaHostNodeParams {
  void (*fn)(void *);
  void *userData;
};
int cudaGraphAddHostNode(Node **made, Graph *graph, Node *const *, size_t, const cudaHostNodeParams *p) {
  Node node = {nullptr, call_of_host, p->userData};
  node.function = p->fn;
  return *made = append(graph, node), 0;
}
struct cudaMemsetParams {
  void *dst;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height;
};
int cudaGraphAddMemsetNode(Node **made, Graph *graph, Node *const *, size_t, const cudaMemsetParams *p) {
  if (p->elementSize != 1 && p->value) __assert_fail("a node of a CUDA graph fills bytes, or with zeros", "", 0, "");
  size_t width = p->width * p->elementSize;
  return *made = append(graph,
                        {nullptr, filled_rows, nullptr, p->dst, nullptr, p->pitch, 0, width, p->height, (int)p->value}),
         0;
}
int cudaGraphAddEmptyNode(Node **made, Graph *graph, Node *const *, size_t) {
  return *made = append(graph, {nullptr, nothing}), 0;
}

}  // extern "C"
