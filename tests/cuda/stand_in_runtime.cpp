// What XLA's GPU run time does with a handler, in its order, for the tests: it asks the stages about themselves, makes
// a state, prepares a device, and executes with a stream. The buffers are f64 vectors of the host.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "xla/ffi/api/c_api.h"

struct XLA_FFI_Error {
    std::string text;
};
struct Context {
    void *state = nullptr;
    int64_t state_type = 0;
    int device = 0;
    void *stream = nullptr;
};

namespace {

int64_t g_types = 100;
std::string g_text;

// What XLA calls a context is ours.
Context *Of(XLA_FFI_ExecutionContext *context) { return reinterpret_cast<Context *>(context); }

XLA_FFI_Error *CreateError(XLA_FFI_Error_Create_Args *a) { return new XLA_FFI_Error{a->message}; }
#if XLA_FFI_API_MINOR < 5
#define XLA_FFI_Error_GetDetails XLA_FFI_Error_GetMessage
#define XLA_FFI_Error_GetDetails_Args XLA_FFI_Error_GetMessage_Args
#endif
void GetDetails(XLA_FFI_Error_GetDetails_Args *a) { a->message = a->error->text.c_str(); }
void DestroyError(XLA_FFI_Error_Destroy_Args *a) { delete a->error; }
XLA_FFI_Error *RegisterType(XLA_FFI_Type_Register_Args *a) {
    a->type_id->type_id = ++g_types;
    return nullptr;
}
XLA_FFI_Error *SetState(XLA_FFI_State_Set_Args *a) {
    Of(a->ctx)->state = a->state;
    Of(a->ctx)->state_type = a->type_id->type_id;
    return nullptr;
}
XLA_FFI_Error *GetState(XLA_FFI_State_Get_Args *a) {
    if (Of(a->ctx)->state_type != a->type_id->type_id) return new XLA_FFI_Error{"a state of another type"};
    a->state = Of(a->ctx)->state;
    return nullptr;
}
XLA_FFI_Error *GetStream(XLA_FFI_Stream_Get_Args *a) {
    if (Of(a->ctx)->stream == nullptr) return new XLA_FFI_Error{"there is no stream yet"};
    a->stream = Of(a->ctx)->stream;
    return nullptr;
}
XLA_FFI_Error *GetDevice(XLA_FFI_DeviceOrdinal_Get_Args *a) {
    a->device_ordinal = Of(a->ctx)->device;
    return nullptr;
}

const XLA_FFI_Api *Api() {
    static const XLA_FFI_Api api = [] {
        XLA_FFI_Api made = {};
        made.struct_size = XLA_FFI_Api_STRUCT_SIZE;
        made.api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR};
        made.XLA_FFI_Error_Create = CreateError;
        made.XLA_FFI_Error_GetDetails = GetDetails;
        made.XLA_FFI_Error_Destroy = DestroyError;
        made.XLA_FFI_Type_Register = RegisterType;
        made.XLA_FFI_State_Set = SetState;
        made.XLA_FFI_State_Get = GetState;
        made.XLA_FFI_Stream_Get = GetStream;
        made.XLA_FFI_DeviceOrdinal_Get = GetDevice;
        return made;
    }();
    return &api;
}

XLA_FFI_CallFrame Frame(Context *context, XLA_FFI_ExecutionStage stage) {
    XLA_FFI_CallFrame frame = {};
    frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;
    frame.api = Api();
    frame.ctx = reinterpret_cast<XLA_FFI_ExecutionContext *>(context);
    frame.stage = stage;
    frame.args.struct_size = XLA_FFI_Args_STRUCT_SIZE;
    frame.rets.struct_size = XLA_FFI_Rets_STRUCT_SIZE;
    frame.attrs.struct_size = XLA_FFI_Attrs_STRUCT_SIZE;
    return frame;
}

bool Failed(XLA_FFI_Error *error) {
    if (error != nullptr) g_text = error->text;
    delete error;
    return error != nullptr;
}

// Attributes, which XLA sorts by name.
class Attributes {
  public:
    void Text(const char *name, const char *text) {
        texts_.push_back(new XLA_FFI_ByteSpan{text, std::strlen(text)});
        Add(name, XLA_FFI_AttrType_STRING, texts_.back());
    }
    void Array(const char *name, XLA_FFI_DataType type, const void *data, size_t size) {
        arrays_.push_back(new XLA_FFI_Array{type, size, const_cast<void *>(data)});
        Add(name, XLA_FFI_AttrType_ARRAY, arrays_.back());
    }
    XLA_FFI_Attrs Get() {
        return {XLA_FFI_Attrs_STRUCT_SIZE,
                nullptr,
                static_cast<int64_t>(types_.size()),
                types_.data(),
                names_.data(),
                values_.data()};
    }

  private:
    void Add(const char *name, XLA_FFI_AttrType type, void *value) {
        names_.push_back(new XLA_FFI_ByteSpan{name, std::strlen(name)});
        types_.push_back(type);
        values_.push_back(value);
    }
    std::vector<XLA_FFI_ByteSpan *> names_, texts_;
    std::vector<XLA_FFI_Array *> arrays_;
    std::vector<XLA_FFI_AttrType> types_;
    std::vector<void *> values_;
};

} // namespace

extern "C" {

const char *runtime_text() { return g_text.c_str(); }

// The traits of a stage, and whether it says which type of state it has; -1 where it does not answer.
int runtime_ask(XLA_FFI_Handler *stage) {
    XLA_FFI_Metadata metadata = {};
    metadata.struct_size = XLA_FFI_Metadata_STRUCT_SIZE;
    XLA_FFI_Metadata_Extension extension = {
        {XLA_FFI_Metadata_Extension_STRUCT_SIZE, XLA_FFI_Extension_Metadata, nullptr}, &metadata};
    XLA_FFI_CallFrame frame = Frame(nullptr, XLA_FFI_ExecutionStage_EXECUTE);
    frame.extension_start = &extension.extension_base;
    if (Failed(stage(&frame))) return -1;
    if (metadata.api_version.major_version != XLA_FFI_API_MAJOR) return -1;
    return static_cast<int>(metadata.traits) | (metadata.state_type_id.type_id > 0 ? 256 : 0);
}

// A program with one call of a function that takes buffers 0 (operand) and 1 (result).
void *runtime_instantiate(XLA_FFI_Handler *stage, const char *key, const char *recipe, const int64_t *launch,
                          const int64_t *strides, int64_t batch) {
    const int32_t arguments[2] = {0, -1}, results[2] = {-1, 0}, zero[2] = {0, 1};
    const int64_t growth[2] = {0, 0};
    Attributes attributes;
    attributes.Array("arguments", XLA_FFI_DataType_S32, arguments, 2);
    attributes.Array("growth", XLA_FFI_DataType_S64, growth, 2);
    attributes.Text("key", key);
    attributes.Array("launch", XLA_FFI_DataType_S64, launch, 11);
    attributes.Text("name", "probe");
    attributes.Text("recipe", recipe);
    attributes.Array("results", XLA_FFI_DataType_S32, results, 2);
    attributes.Array("sizes", XLA_FFI_DataType_S64, &batch, 1);
    attributes.Array("strides", XLA_FFI_DataType_S64, strides, 2);
    attributes.Array("zero", XLA_FFI_DataType_S32, zero, 2);
    auto *context = new Context();
    XLA_FFI_CallFrame frame = Frame(context, XLA_FFI_ExecutionStage_INSTANTIATE);
    frame.attrs = attributes.Get();
    return Failed(stage(&frame)) ? nullptr : context;
}

int runtime_initialize(XLA_FFI_Handler *stage, void *program, int device) {
    auto *context = static_cast<Context *>(program);
    context->device = device;
    XLA_FFI_CallFrame frame = Frame(context, XLA_FFI_ExecutionStage_INITIALIZE);
    return Failed(stage(&frame)) ? 1 : 0;
}

int runtime_execute(XLA_FFI_Handler *stage, void *program, int device, void *stream, double *x, double *y, int64_t n) {
    auto *context = static_cast<Context *>(program);
    context->device = device;
    context->stream = stream;
    XLA_FFI_Buffer in = {XLA_FFI_Buffer_STRUCT_SIZE, nullptr, XLA_FFI_DataType_F64, x, 1, &n};
    XLA_FFI_Buffer out = {XLA_FFI_Buffer_STRUCT_SIZE, nullptr, XLA_FFI_DataType_F64, y, 1, &n};
    XLA_FFI_ArgType arg = XLA_FFI_ArgType_BUFFER;
    XLA_FFI_RetType ret = XLA_FFI_RetType_BUFFER;
    void *args[1] = {&in}, *rets[1] = {&out};
    XLA_FFI_CallFrame frame = Frame(context, XLA_FFI_ExecutionStage_EXECUTE);
    frame.args = {XLA_FFI_Args_STRUCT_SIZE, nullptr, 1, &arg, args};
    frame.rets = {XLA_FFI_Rets_STRUCT_SIZE, nullptr, 1, &ret, rets};
    return Failed(stage(&frame)) ? 1 : 0;
}

} // extern "C"
