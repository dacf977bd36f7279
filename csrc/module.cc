// The Python side of the extension: what jax.ffi registers, and the table of entry points.

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "cpu_handler.h"
#include "kernel_table.h"

namespace py = pybind11;

namespace jax_enzyme {
namespace {

// Calls jax_enzyme.xla_ffi.published.rebuild(recipe), which builds the function and returns its address. Runs in a
// thread of XLA's, which does not hold the interpreter lock.
Entry RebuildInPython(std::string_view key, std::string_view recipe, std::string* error) {
  py::gil_scoped_acquire lock;
  try {
    py::object rebuild = py::module_::import("jax_enzyme.xla_ffi.published").attr("rebuild");
    py::object address = rebuild(py::str(recipe.data(), recipe.size()));
    Entry entry = reinterpret_cast<Entry>(address.cast<std::uintptr_t>());
    KernelTable::Instance().Publish(std::string(key), entry);
    return entry;
  } catch (const std::exception& exception) {
    *error = exception.what();
    return nullptr;
  }
}

template <typename T>
py::capsule Capsule(T* pointer) {
  return py::capsule(reinterpret_cast<void*>(pointer), [](void*) {});
}

PYBIND11_MODULE(_ext, module) {
  module.doc() = "The run time of jax_enzyme: one XLA FFI handler per platform.";
  SetRebuild(&RebuildInPython);
  module.def(
      "publish",
      [](std::string key, std::uintptr_t address) {
        KernelTable::Instance().Publish(std::move(key), reinterpret_cast<Entry>(address));
      },
      py::arg("key"), py::arg("address"), "Makes an entry point known under its content key.");
  module.def(
      "is_published", [](std::string_view key) { return KernelTable::Instance().Find(key) != nullptr; }, py::arg("key"),
      "Whether an entry point is known under this key.");
  module.def(
      "cpu_handlers",
      [] {
        py::dict handlers;
        handlers["instantiate"] = Capsule(&CpuInstantiate);
        handlers["execute"] = Capsule(&CpuExecute);
        return handlers;
      },
      "The stages of the CPU handler, for jax.ffi.register_ffi_target.");
}

}  // namespace
}  // namespace jax_enzyme
