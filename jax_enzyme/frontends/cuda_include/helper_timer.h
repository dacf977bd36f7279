// Of CUDA's samples: stop watches. No time passes here: what a kernel computes does not depend on the clock.
#pragma once
#include <stdlib.h>

struct StopWatchInterface {
  int runs;
  void start() {}
  void stop() { ++runs; }
  void reset() { runs = 0; }
  float getTime() { return 0.0f; }
  float getAverageTime() { return 0.0f; }
};

inline bool sdkCreateTimer(StopWatchInterface **timer) {
  *timer = static_cast<StopWatchInterface *>(malloc(sizeof(StopWatchInterface)));
  (*timer)->runs = 0;
  return true;
}
inline bool sdkDeleteTimer(StopWatchInterface **timer) {
  free(*timer);
  *timer = 0;
  return true;
}
inline bool sdkStartTimer(StopWatchInterface **timer) { return *timer != 0; }
inline bool sdkStopTimer(StopWatchInterface **timer) {
  ++(*timer)->runs;
  return true;
}
inline bool sdkResetTimer(StopWatchInterface **timer) {
  (*timer)->runs = 0;
  return true;
}
inline float sdkGetTimerValue(StopWatchInterface **) { return 0.0f; }
inline float sdkGetAverageTimerValue(StopWatchInterface **) { return 0.0f; }
