// What the checks of Options(sanitize=True) have found: see checked.cc.

#ifndef JAX_ENZYME_CHECKED_H_
#define JAX_ENZYME_CHECKED_H_

#include <cstdint>
#include <string>

namespace jax_enzyme {

// The text of a failure of the kind kChecked. It is kept until it is taken, or until there are very many others.
std::string TakeReport(std::int32_t number);

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_CHECKED_H_
