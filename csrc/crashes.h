// Says which kernel a thread is in when it crashes, or when a library ends the process there.
//
// A kernel that reads memory which is not there ends the process: nothing that it has done can be relied on any more.
// What can be done is to say who it was. A signal handler writes one line to standard error, and hands the signal on to
// whoever handled it before (`faulthandler`, a debugger's, the system).

#ifndef JAX_ENZYME_CRASHES_H_
#define JAX_ENZYME_CRASHES_H_

namespace jax_enzyme {

// For as long as it lives, the calling thread is in this kernel. `name` is not copied.
class InKernel {
 public:
  explicit InKernel(const char* name);
  ~InKernel();
  InKernel(const InKernel&) = delete;
  InKernel& operator=(const InKernel&) = delete;

 private:
  const char* outer_;
};

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_CRASHES_H_
