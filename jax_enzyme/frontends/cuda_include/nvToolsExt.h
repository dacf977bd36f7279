// Marks for profilers, which nobody reads here.
#pragma once
#include <stdint.h>

typedef uint64_t nvtxRangeId_t;
inline int nvtxRangePushA(const char *) { return 0; }
inline int nvtxRangePop() { return 0; }
inline void nvtxMarkA(const char *) {}
inline nvtxRangeId_t nvtxRangeStartA(const char *) { return 0; }
inline void nvtxRangeEnd(nvtxRangeId_t) {}
#define nvtxRangePush nvtxRangePushA
#define nvtxMark nvtxMarkA
#define nvtxRangeStart nvtxRangeStartA
