// The Python side of the extension: what jax.ffi registers, and the table of entry points.

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "cpu_handler.h"
#include "gpu_driver.h"
#include "gpu_handler.h"
#include "gpu_kernels.h"
#include "kernel_table.h"

namespace py = pybind11;

namespace jax_enzyme {
namespace {

// The exception's name and text. Where in Python it was raised is nothing to whoever reads the error of a call.
std::string Message(py::error_already_set& exception) {
  return py::str(exception.type().attr("__name__")).cast<std::string>() + ": " +
         py::str(exception.value()).cast<std::string>();
}

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
  } catch (py::error_already_set& exception) {
    *error = Message(exception);
  } catch (const std::exception& exception) {
    *error = exception.what();
  }
  return nullptr;
}

// Calls jax_enzyme.xla_ffi.gpu.make_ptx(recipe, capability, dimensions, counts), likewise.
std::string MakePtxInPython(std::string_view recipe, int capability, size_t dimensions, bool counts,
                            std::string* error) {
  py::gil_scoped_acquire lock;
  try {
    py::object make = py::module_::import("jax_enzyme.xla_ffi.gpu").attr("make_ptx");
    return make(py::str(recipe.data(), recipe.size()), capability, dimensions, counts).cast<std::string>();
  } catch (py::error_already_set& exception) {
    *error = Message(exception);
  } catch (const std::exception& exception) {
    *error = exception.what();
  }
  return "";
}

template <typename T>
py::capsule Capsule(T* pointer) {
  return py::capsule(reinterpret_cast<void*>(pointer), [](void*) {});
}

PYBIND11_MODULE(_ext, module) {
  module.doc() = "The run time of jax_enzyme: one XLA FFI handler per platform.";
  SetRebuild(&RebuildInPython);
  SetMakePtx(&MakePtxInPython);
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
  module.def(
      "cuda_handlers",
      [](bool counts, bool on_host) {
        py::dict handlers;
        handlers["instantiate"] = Capsule(on_host ? &GpuOnHostInstantiate : &GpuInstantiate);
        handlers["initialize"] = Capsule(on_host ? &GpuOnHostInitialize : &GpuInitialize);
        handlers["execute"] = Capsule(on_host ? (counts ? &GpuOnHostCountAndExecute : &GpuOnHostExecute)
                                              : (counts ? &GpuCountAndExecute : &GpuExecute));
        return handlers;
      },
      py::arg("counts") = false, py::arg("on_host") = false,
      "The stages of the CUDA handler, for jax.ffi.register_ffi_target. One that counts first finds out how much "
      "memory "
      "the kernel needs; those for platform cpu are for tests.");
  module.def(
      "cuda_driver_error",
      [] {
        std::string error;
        return Driver::Get(&error) == nullptr ? error : std::string();
      },
      "What is wrong with NVIDIA's driver; an empty string where there is one.");
}

}  // namespace
}  // namespace jax_enzyme
