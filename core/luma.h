/* luma.h -- the public C API of the tensor core. C11, usable from C++; no Lua, no CUDA.
**
** Conventions
**   luma_state *S comes first. A call returns a status; the message lives in S (luma_message).
**   Dims and positions are 0-based, negative dims count from the end.
**   Outputs: `luma_tensor *out` is either LUMA_NEW (all zero: the call makes a new tensor) or a
**   live tensor of exactly the right shape, dtype and device, into which the result is written (it
**   may overlap the inputs). On failure *out is as it was.
**   A luma_tensor is a value that owns one reference to its storage: release each with
**   luma_release.
**   Numbers stand for tensors where luma_number/luma_integer/luma_boolean values are passed: they
**   own nothing and are weak in promotion. */
#ifndef luma_h
#define luma_h

#include "luma_base.h"
#include "luma_ops.h"

#endif
