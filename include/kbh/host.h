/* kbh host lane: the C ABI between the worker and a submission that brings its own host code.
 *
 * A submission is one shared object built from submission.cpp (CPU decks). It exports
 *
 *     int  kbh_run(void* self, const kbh_tensor* inputs, int32_t n_inputs,
 *                  const kbh_tensor* outputs, int32_t n_outputs, void* stream);        // required
 *     int  kbh_create(const kbh_context* context, void** self);                        // optional
 *     void kbh_destroy(void* self);                                                    // optional
 *
 * All return 0 for success. kbh_create is called once per shape (and per state), untimed; kbh_run is what is timed.
 *
 * Contract, enforced by the grader:
 *   - every element of every output is written by every call, before the call returns;
 *   - inputs and state are read-only mappings: a write to them is a fault;
 *   - content and address of inputs and outputs differ from call to call;
 *   - data is at least 64-byte aligned, rows are dense (row-major), and nothing lies behind the last element: buffers
 *     end at, or start behind, an unmapped page;
 *   - threads may live longer than a call only asleep.
 *
 * Define KBH_EXPORT functions as extern "C"; including this header from C++ declares them so.
 */
#ifndef KBH_HOST_H
#define KBH_HOST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KBH_HOST_ABI 1
#define KBH_EXPORT __attribute__((visibility("default")))

typedef enum kbh_dtype {
  KBH_F32 = 1,
  KBH_F64 = 2,
  KBH_F16 = 3,
  KBH_BF16 = 4,
  KBH_E4M3 = 5,
  KBH_I8 = 6,
  KBH_U8 = 7,
  KBH_I32 = 8,
  KBH_I64 = 9,
  KBH_BOOL = 10
} kbh_dtype;

typedef enum kbh_device { KBH_CPU = 1, KBH_CUDA = 2 } kbh_device; /* the numbers of DLPack */

typedef enum kbh_flags { KBH_READ_ONLY = 1 } kbh_flags;

/* Field order of DLTensor, with a plain dtype code, a name and flags. */
typedef struct kbh_tensor {
  void* data; /* host pointer on CPU decks, device pointer on CUDA decks */
  int32_t device;
  int32_t device_id;
  int32_t ndim;
  int32_t dtype; /* kbh_dtype */
  const int64_t* shape;
  const int64_t* strides; /* in elements */
  uint64_t flags;         /* kbh_flags */
  const char* name;       /* as `kbh problems ID` prints it */
} kbh_tensor;

/* One number of the shape, such as {"batch", 64}. */
typedef struct kbh_dim {
  const char* name;
  int64_t value;
} kbh_dim;

typedef struct kbh_context {
  uint32_t abi;    /* KBH_HOST_ABI */
  int32_t device;  /* kbh_device */
  int32_t threads; /* processors this process may run on (CPU decks) */
  int32_t n_dims;
  const kbh_dim* dims;
  const kbh_tensor* state; /* weights and other data given once; empty for most problems */
  int32_t n_state;
} kbh_context;

KBH_EXPORT int kbh_create(const kbh_context* context, void** self);
KBH_EXPORT int kbh_run(void* self, const kbh_tensor* inputs, int32_t n_inputs, const kbh_tensor* outputs,
                       int32_t n_outputs, void* stream);
KBH_EXPORT void kbh_destroy(void* self);

#ifdef __cplusplus
} /* extern "C" */

#include <string_view>

namespace kbh::host {

/* The number called `name` of the shape; `missing` when the problem has none of that name. */
inline int64_t dim(const kbh_context& context, std::string_view name, int64_t missing = 0) {
  for (int32_t i = 0; i < context.n_dims; ++i)
    if (name == context.dims[i].name) return context.dims[i].value;
  return missing;
}

} /* namespace kbh::host */
#endif

#endif
