/* What passes between a sealed submission's plan function and the planner: plain C, so that it has one layout whatever
   compiles either side. Submissions include <kbh/sealed.h>, which hides it. */
#ifndef KBH_SEALED_ABI_H
#define KBH_SEALED_ABI_H

#include <stdint.h>

#define KBH_SEALED_ABI 1

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kbh_sealed_buffer {
  KBH_SEALED_STATE = 1,    /* read-only, given once */
  KBH_SEALED_INPUT = 2,    /* read-only, new content for every call */
  KBH_SEALED_OUTPUT = 3,   /* poisoned before every call */
  KBH_SEALED_SCRATCH = 4,  /* poisoned before every call */
  KBH_SEALED_COUNTERS = 5, /* zero before the first call; every call must leave zeros */
  KBH_SEALED_PREPARED = 6  /* written by `prepare` launches once per state, read-only afterwards */
} kbh_sealed_buffer;

typedef enum kbh_sealed_phase { KBH_SEALED_PREPARE = 1, KBH_SEALED_RUN = 2 } kbh_sealed_phase;

typedef enum kbh_sealed_argument_kind {
  KBH_SEALED_VALUE = 1,     /* bytes, as the kernel's parameter holds them */
  KBH_SEALED_POINTER = 2,   /* address of a buffer, plus an offset in bytes */
  KBH_SEALED_TENSOR_MAP = 3 /* encoded by the worker, for the slot's own address */
} kbh_sealed_argument_kind;

typedef struct kbh_sealed_argument {
  int32_t kind;
  uint32_t id;     /* of the buffer or tensor map */
  uint64_t offset; /* in bytes */
  const void* bytes;
  uint32_t size;     /* of the kernel's parameter, in bytes */
  uint32_t writable; /* whether the kernel's parameter is a pointer to non-const */
} kbh_sealed_argument;

typedef struct kbh_sealed_launch {
  int64_t grid[3];
  int64_t block[3];
  int64_t cluster[3]; /* {0, 0, 0}: none */
  int64_t shared;     /* dynamic shared memory, in bytes */
  uint32_t cooperative;
  uint32_t overlap;
} kbh_sealed_launch;

typedef struct kbh_sealed_tensor_map {
  uint32_t buffer;
  uint64_t offset; /* in bytes */
  int32_t type;    /* CUtensorMapDataType */
  int32_t rank;
  uint64_t dims[5];            /* elements, innermost first */
  uint64_t strides[5];         /* bytes, of dims 1 .. rank-1 */
  uint32_t box[5];             /* elements */
  uint32_t element_strides[5]; /* elements */
  int32_t interleave, swizzle, promotion, fill;
} kbh_sealed_tensor_map;

/* The planner's ears. */
typedef struct kbh_sealed_sink {
  uint32_t abi;
  void* self;
  uint32_t (*buffer)(void* self, int32_t kind, uint32_t index, uint64_t bytes);
  uint32_t (*tensor_map)(void* self, const kbh_sealed_tensor_map* map);
  void (*launch)(void* self, int32_t phase, const void* kernel, const kbh_sealed_launch* launch,
                 const kbh_sealed_argument* arguments, uint32_t count);
  void (*zero)(void* self, uint32_t buffer);
  void (*refuse)(void* self, const char* why);
} kbh_sealed_sink;

typedef struct kbh_sealed_dim {
  const char* name;
  int64_t value;
} kbh_sealed_dim;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
