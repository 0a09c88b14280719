// SPDX-License-Identifier: Apache-2.0
// The interface between the files that write kernels in OpenCL C.
#ifndef PLEAT_TARGET_OPENCL_EMIT_H
#define PLEAT_TARGET_OPENCL_EMIT_H

#include "target/device/emit.h"

extern const DeviceDialect opencl_dialect;

// texture.c: hooks for loads and stores of textures.
bool texture_load(CEmit *emit, Expr *e, CValue *value);
bool texture_store(CEmit *emit, const Stmt *s);
// The type of an image's channels, and the bytes of a texel, for elements or texels of this type.
uint32_t texture_channel_type(DType type);
int texture_texel_bytes(DType type);
bool texture_is_supported(CEmit *emit, const Buffer *buffer);

#endif
