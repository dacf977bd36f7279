// A library in the place of NVIDIA's driver, or, with HIP defined, of AMD's: it notes what it is asked, keeps the rules
// that a driver keeps (a context has to be current, the block has to be the one that was compiled for), and has a
// registered function do the work of a launch. Memory is that of the host.

#ifdef HIP
#define cuInit hipInit
#define cuGetErrorName hipDrvGetErrorName
#define cuGetErrorString hipDrvGetErrorString
#define cuDeviceGet hipDeviceGet
#define cuDeviceGetAttribute hipDeviceGetAttribute
#define cuDevicePrimaryCtxRetain hipDevicePrimaryCtxRetain
#define cuCtxPushCurrent_v2 hipCtxPushCurrent
#define cuCtxPopCurrent_v2 hipCtxPopCurrent
#define cuModuleLoadDataEx hipModuleLoadDataEx
#define cuModuleGetFunction hipModuleGetFunction
#define cuFuncGetAttribute hipFuncGetAttribute
#define cuMemsetD8Async hipMemsetD8Async
#define cuMemcpyDtoDAsync_v2 hipMemcpyDtoDAsync
#define cuMemcpyDtoHAsync_v2 hipMemcpyDtoHAsync
#define cuStreamSynchronize hipStreamSynchronize
#define cuLaunchKernel hipModuleLaunchKernel
#endif

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

enum { kInvalidValue = 1, kInvalidContext = 201, kInvalidPtx = 218, kNotFound = 500, kInvalidDevice = 101 };

// PTX, or a code object.
struct Module {
    std::string code;
};
struct Function {
    Module *module;
    std::string name;
    int dynamic_limit;
};

using Run = int (*)(const char *code, size_t size, const char *name, const unsigned *geometry, void **parameters);

std::recursive_mutex g_mutex;
std::string g_log;
std::map<std::string, int> g_failures;
#ifdef HIP
std::map<int, int> g_device = {{56, 1024},       {26, 1024},  {27, 1024},  {28, 1024},
                               {29, 2147483647}, {30, 65535}, {31, 65535}, {74, 65536}};
#else
std::map<int, int> g_device = {{1, 1024},  {2, 1024},  {3, 1024}, {4, 64}, {5, 2147483647},
                               {6, 65535}, {7, 65535}, {75, 9},   {76, 0}, {97, 232448}};
#endif
std::string g_architecture = "gfx90a:sramecc+:xnack-";
std::map<int, int> g_function = {{0, 1024}, {1, 0}};
thread_local std::vector<void *> g_stack;
Run g_run = nullptr;
int g_contexts[2];

int Note(const char *name, const std::string &detail = "") {
    std::lock_guard<std::recursive_mutex> lock(g_mutex);
    g_log += std::string(name) + (detail.empty() ? "" : " " + detail) + "\n";
    const auto found = g_failures.find(name);
    return found == g_failures.end() ? 0 : found->second;
}

#ifdef HIP
// The section headers are the last thing in a linked object.
size_t Size(const void *image) {
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof(header));
    return header.e_shoff + static_cast<size_t>(header.e_shentsize) * header.e_shnum;
}
bool Has(const std::string &code, const std::string &kernel) { return code.find(kernel + ".kd") != std::string::npos; }
bool IsFor(const std::string &code, const std::string &) { return std::memcmp(code.data(), ELFMAG, SELFMAG) == 0; }
#else
size_t Size(const void *image) { return std::strlen(static_cast<const char *>(image)); }
bool Has(const std::string &code, const std::string &kernel) {
    return code.find(".entry " + kernel + "(") != std::string::npos;
}
bool IsFor(const std::string &code, const std::string &block) {
    return code.find(".reqntid " + block) != std::string::npos;
}
#endif

std::string Number(long long n) { return std::to_string(n); }

std::string Device() {
    for (int i = 0; i < 2; ++i) {
        if (!g_stack.empty() && g_stack.back() == &g_contexts[i]) return Number(i);
    }
    return "";
}

} // namespace

extern "C" {

void stand_in_run(Run run) { g_run = run; }
void stand_in_device(int attribute, int value) { g_device[attribute] = value; }
void stand_in_function(int attribute, int value) { g_function[attribute] = value; }
void stand_in_fail(const char *name, int error) {
    if (error == 0) {
        g_failures.erase(name);
    } else {
        g_failures[name] = error;
    }
}
const char *stand_in_log() { return g_log.c_str(); }
void stand_in_forget() { g_log.clear(); }
int stand_in_depth() { return static_cast<int>(g_stack.size()); }

int cuInit(unsigned) { return Note("cuInit"); }
int cuGetErrorName(int error, const char **text) {
    *text = error == kInvalidPtx ? "CUDA_ERROR_INVALID_PTX" : "CUDA_ERROR_OF_THE_STAND_IN";
    return 0;
}
int cuGetErrorString(int, const char **text) {
    *text = "the stand-in was told to fail";
    return 0;
}
int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return ordinal < 2 ? Note("cuDeviceGet", Number(ordinal)) : kInvalidDevice;
}
int cuDeviceGetAttribute(int *value, int attribute, int) {
    const auto found = g_device.find(attribute);
    if (found == g_device.end()) return kInvalidValue;
    *value = found->second;
    return 0;
}
#ifdef HIP
int hipGetDevicePropertiesR0600(void *properties, int) {
    std::strcpy(static_cast<char *>(properties), "A GPU that stands in, no gfx");
    std::strcpy(static_cast<char *>(properties) + 1160, g_architecture.c_str());
    return 0;
}
void stand_in_architecture(const char *name) { g_architecture = name; }
#endif
int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = &g_contexts[device];
    return Note("cuDevicePrimaryCtxRetain", Number(device));
}
int cuCtxPushCurrent_v2(void *context) {
    g_stack.push_back(context);
    return 0;
}
int cuCtxPopCurrent_v2(void **context) {
    if (g_stack.empty()) return kInvalidContext;
    *context = g_stack.back();
    g_stack.pop_back();
    return 0;
}
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    if (g_stack.empty()) return kInvalidContext;
    const int failed = Note("cuModuleLoadDataEx", Device());
    if (failed != 0) {
        for (unsigned i = 0; i < count; ++i) {
            if (options[i] == 5) std::strcpy(static_cast<char *>(values[i]), "line 7: what the log says");
        }
        return failed;
    }
    *module = new Module{std::string(static_cast<const char *>(image), Size(image))};
    return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    auto *found = static_cast<Module *>(module);
    if (!Has(found->code, name)) return kNotFound;
    *function = new Function{found, name, 48 * 1024};
    return Note("cuModuleGetFunction", name);
}
int cuFuncGetAttribute(int *value, int attribute, void *) {
    const auto found = g_function.find(attribute);
    if (found == g_function.end()) return kInvalidValue;
    *value = found->second;
    return 0;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
    if (attribute == 8) static_cast<Function *>(function)->dynamic_limit = value;
    return Note("cuFuncSetAttribute", Number(attribute) + " " + Number(value));
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *) {
    if (g_stack.empty()) return kInvalidContext;
    std::memset(reinterpret_cast<void *>(to), value, bytes);
    return Note("cuMemsetD8Async", Number(static_cast<long long>(bytes)));
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *) {
    if (g_stack.empty()) return kInvalidContext;
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    return Note("cuMemcpyDtoDAsync", Number(static_cast<long long>(bytes)));
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *) {
    if (g_stack.empty()) return kInvalidContext;
    std::memcpy(to, reinterpret_cast<void *>(from), bytes);
    return Note("cuMemcpyDtoHAsync", Number(static_cast<long long>(bytes)));
}
int cuStreamSynchronize(void *stream) {
    return Note("cuStreamSynchronize", Number(static_cast<long long>(reinterpret_cast<intptr_t>(stream))));
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **) {
    if (g_stack.empty()) return kInvalidContext;
    auto *found = static_cast<Function *>(function);
    const unsigned geometry[7] = {gx, gy, gz, bx, by, bz, shared};
    std::string text = found->name;
    for (const unsigned n : geometry) text += " " + Number(n);
    text += " device " + Device() + " stream " + Number(static_cast<long long>(reinterpret_cast<intptr_t>(stream)));
    const int failed = Note("cuLaunchKernel", text);
    if (failed != 0) return failed;
    const std::string block = Number(bx) + ", " + Number(by) + ", " + Number(bz);
    if (!IsFor(found->module->code, block) || shared > static_cast<unsigned>(found->dynamic_limit)) {
        return kInvalidValue;
    }
    return g_run == nullptr ? 0
                            : g_run(found->module->code.data(), found->module->code.size(), found->name.c_str(),
                                    geometry, parameters);
}

} // extern "C"
