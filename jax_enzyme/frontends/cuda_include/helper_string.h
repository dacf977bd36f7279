// Of CUDA's samples: arguments of a program, `-name` or `--name=value`.
#pragma once
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifndef EXIT_WAIVED
#define EXIT_WAIVED 2
#endif

// What follows the name in the argument that has it; null where none does.
inline const char *jax_enzyme_argument(int argc, const char **argv, const char *name) {
  size_t length = strlen(name);
  for (int i = 1; i < argc; ++i) {
    const char *word = argv[i];
    while (*word == '-') ++word;
    if (strncasecmp(word, name, length) == 0 && (word[length] == 0 || word[length] == '=')) return word + length;
  }
  return 0;
}

inline bool checkCmdLineFlag(int argc, const char **argv, const char *name) {
  return jax_enzyme_argument(argc, argv, name) != 0;
}
inline int getCmdLineArgumentInt(int argc, const char **argv, const char *name) {
  const char *value = jax_enzyme_argument(argc, argv, name);
  return value && *value == '=' ? atoi(value + 1) : 0;
}
inline float getCmdLineArgumentFloat(int argc, const char **argv, const char *name) {
  const char *value = jax_enzyme_argument(argc, argv, name);
  return value && *value == '=' ? static_cast<float>(atof(value + 1)) : 0.0f;
}
inline bool getCmdLineArgumentString(int argc, const char **argv, const char *name, char **found) {
  const char *value = jax_enzyme_argument(argc, argv, name);
  *found = value && *value == '=' ? const_cast<char *>(value + 1) : 0;
  return *found != 0;
}
inline char *sdkFindFilePath(const char *name, const char *program) { return const_cast<char *>(name); }
