// The Python side of the extension: what jax.ffi registers, and the table of entry points.

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checked_calls.h"
#include "cpu_handler.h"
#include "gpu_driver.h"
#include "gpu_handler.h"
#include "gpu_kernels.h"
#include "kept_memory.h"
#include "kept_tapes.h"
#include "kernel_table.h"

namespace py = pybind11;

namespace jax_enzyme {
namespace {

// The exception's name and text. Where in Python it was raised is nothing to whoever reads the error of a call.
std::string Message(py::error_already_set& exception) {
  return py::str(exception.type().attr("__name__")).cast<std::string>() + ": " +
         py::str(exception.value()).cast<std::string>();
}

// Python objects that own machine code which nobody needs any more. The last of an executable may go in any thread of
// XLA's, with locks of XLA's held, where waiting for the interpreter lock could take forever.
class Released {
 public:
  static Released& Instance() {
    static Released* released = new Released();  // never destroyed, as the table
    return *released;
  }

  // From any thread. The interpreter is asked to let go of the object when it can.
  void Add(void* owner) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      owners_.push_back(static_cast<PyObject*>(owner));
    }
    if (Py_IsInitialized()) Py_AddPendingCall([](void*) { return Instance().LetGo(); }, nullptr);
  }

  // With the interpreter lock.
  int LetGo() {
    std::vector<PyObject*> owners;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      owners.swap(owners_);
    }
    for (PyObject* owner : owners) Py_DECREF(owner);
    return 0;
  }

 private:
  std::mutex mutex_;
  std::vector<PyObject*> owners_;
};

std::shared_ptr<Code> Publish(std::string key, std::uintptr_t address, py::object owner) {
  Released::Instance().LetGo();
  auto code = std::make_shared<Code>(reinterpret_cast<Entry>(address), owner.release().ptr(),
                                     [](void* released) { Released::Instance().Add(released); });
  KernelTable::Instance().Publish(std::move(key), code);
  return code;
}

// Calls jax_enzyme.xla_ffi.published.rebuild(key, recipe), which builds the function and publishes it. Runs in a thread
// of XLA's, which does not hold the interpreter lock.
std::shared_ptr<Code> RebuildInPython(std::string_view key, std::string_view recipe, std::string* error) {
  py::gil_scoped_acquire lock;
  try {
    py::object rebuild = py::module_::import("jax_enzyme.xla_ffi.published").attr("rebuild");
    return rebuild(py::str(key.data(), key.size()), py::str(recipe.data(), recipe.size()))
        .cast<std::shared_ptr<Code>>();
  } catch (py::error_already_set& exception) {
    *error = Message(exception);
  } catch (const std::exception& exception) {
    *error = exception.what();
  }
  return nullptr;
}

// Calls jax_enzyme.xla_ffi.gpu.make_code(recipe, device, dimensions, counts), likewise.
std::string MakeCodeInPython(std::string_view recipe, const std::string& device, size_t dimensions, bool counts,
                             std::string* error) {
  py::gil_scoped_acquire lock;
  try {
    py::object make = py::module_::import("jax_enzyme.xla_ffi.gpu").attr("make_code");
    return make(py::str(recipe.data(), recipe.size()), device, dimensions, counts).cast<std::string>();
  } catch (py::error_already_set& exception) {
    *error = Message(exception);
  } catch (const std::exception& exception) {
    *error = exception.what();
  }
  return "";
}

// Whether Ctrl-C raises KeyboardInterrupt, as it does where nobody has said otherwise.
bool RaisesKeyboardInterrupt() {
  if (!Py_IsInitialized()) return true;
  py::gil_scoped_acquire lock;
  try {
    py::module_ signal = py::module_::import("signal");
    return signal.attr("getsignal")(signal.attr("SIGINT")).is(signal.attr("default_int_handler"));
  } catch (py::error_already_set&) {
    return false;
  }
}

template <typename T>
py::capsule Capsule(T* pointer) {
  return py::capsule(reinterpret_cast<void*>(pointer), [](void*) {});
}

PYBIND11_MODULE(_ext, module) {
  module.doc() = "The run time of jax_enzyme: one XLA FFI handler per platform.";
  SetRebuild(&RebuildInPython);
  SetMakeCode(&MakeCodeInPython);
  SetEndsByInterrupt(&RaisesKeyboardInterrupt);
  py::class_<Code, std::shared_ptr<Code>>(module, "Code", "Machine code that is known as long as this lives.");
  module.def("publish", &Publish, py::arg("key"), py::arg("address"), py::arg("owner"),
             "Makes an entry point known under its content key, as long as what is returned or an executable of XLA's "
             "lives. So long lives `owner`.");
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
      "gpu_handlers",
      [](bool counts, bool on_host, bool amd) {
        py::dict handlers;
        handlers["instantiate"] = Capsule(on_host ? (amd ? &RocmOnHostInstantiate : &GpuOnHostInstantiate)
                                                  : (amd ? &RocmInstantiate : &GpuInstantiate));
        handlers["initialize"] = Capsule(on_host ? &GpuOnHostInitialize : &GpuInitialize);
        handlers["execute"] = Capsule(on_host ? (counts ? &GpuOnHostCountAndExecute : &GpuOnHostExecute)
                                              : (counts ? &GpuCountAndExecute : &GpuExecute));
        return handlers;
      },
      py::arg("counts") = false, py::arg("on_host") = false, py::arg("amd") = false,
      "The stages of the handler for GPUs, for jax.ffi.register_ffi_target. One that counts first finds out how much "
      "memory "
      "the kernel needs; those for platform cpu are for tests.");
  module.def(
      "kept_memory",
      [] {
        const KeptMemory kept = Kept();
        return py::make_tuple(kept.blocks, kept.bytes, kept.asked);
      },
      "The large blocks that are kept between calls, their bytes, and how many the C library has been asked for so "
      "far.");
  module.def(
      "kept_tapes",
      [] {
        const KeptTapes kept = Tapes();
        return py::make_tuple(kept.count, kept.bytes);
      },
      "The tapes that wait for a pullback, or have been read by one, and their bytes.");
  module.def(
      "release_memory",
      [] {
        ReleaseTapes();
        return ReleaseKept();
      },
      "Gives what is kept between calls, tapes among it, back to the C library. Returns the bytes of the large "
      "blocks.");
  module.def(
      "driver_error",
      [](bool amd) {
        std::string error;
        return Driver::Get(amd ? Vendor::kAmd : Vendor::kNvidia, &error) == nullptr ? error : std::string();
      },
      py::arg("amd") = false, "What is wrong with NVIDIA's driver, or AMD's; an empty string where there is one.");
}

}  // namespace
}  // namespace jax_enzyme
