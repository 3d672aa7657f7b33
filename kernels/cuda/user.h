/* user.h -- kernels that scripts bring: CUDA C or PTX, loaded on one device and launched on its
** stream. Read by bindings. Layer: kernels/cuda. */
#ifndef lm_cuda_user_h
#define lm_cuda_user_h

#include "device.h"

typedef struct lm_user_module lm_user_module;

/* What PTX says of a parameter. A pointer is said to be one only by newer compilers: it may also be
** an LM_USER_INT of 8 bytes. */
typedef enum { LM_USER_INT, LM_USER_FLOAT, LM_USER_POINTER, LM_USER_BYTES } lm_user_kind;
typedef struct {
    lm_user_kind kind;
    uint32_t size, align; /* bytes */
} lm_user_param;

#define LM_USER_PARAMS 64      /* of a kernel, at most */
#define LM_USER_PARAMETER 4096 /* bytes of all of them, at most */
typedef struct {
    char *name; /* as in the PTX, so perhaps mangled */
    int nparams;
    lm_user_param params[LM_USER_PARAMS];
} lm_user_kernel;

typedef struct {
    int64_t grid[3], block[3];
    int64_t shared; /* bytes of dynamic shared memory */
} lm_user_shape;

/* Text that is not PTX is compiled, with the options of NVRTC. *log becomes what the compiler said
** (malloc, the caller frees it) or NULL, after success and failure. */
luma_status lm_user_open(luma_state *S, lm_device *d, const char *text, int noptions,
                         const char *const *options, lm_user_module **out, char **log);
/* Waits for the device, then unloads. For finalizers: the message of the state stays what it is. */
void lm_user_close(lm_user_module *m);
const char *lm_user_ptx(const lm_user_module *m);
lm_device *lm_user_device(const lm_user_module *m);
int lm_user_count(const lm_user_module *m);
const lm_user_kernel *lm_user_at(const lm_user_module *m, int i);
/* By the name in the PTX, or by the one in the source where C++ mangles only one so. */
luma_status lm_user_find(luma_state *S, const lm_user_module *m, const char *name, int *at);
/* values[i] points at params[i].size bytes, copied at the call. */
luma_status lm_user_launch(luma_state *S, lm_user_module *m, int at, const lm_user_shape *shape,
                           void **values);

#endif
