// row_sums: OpenCL C
// row_sums: blocks (5, 1, 1) of threads (13, 1, 1)
#pragma OPENCL EXTENSION cl_khr_byte_addressable_store : enable
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
#define INT64_MIN LONG_MIN
#define INT64_MAX LONG_MAX
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define _Alignas(n) __attribute__((aligned(n)))
#if __OPENCL_C_VERSION__ >= 200
#define UNROLL(n) __attribute__((opencl_unroll_hint(n)))
#else
#define UNROLL(n)
#endif

// A: float32 [5, 13]
// B: float32 [5]
__kernel __attribute__((reqd_work_group_size(13, 1, 1)))
void row_sums(const __global float *restrict A, __global float *restrict B, const int64_t begin,
    const int64_t end) {
  __local float B_total[13] __attribute__((aligned(64)));
  __local float reduced[13] __attribute__((aligned(64)));
  {
    const int32_t i = (int32_t)get_group_id(0);
    {
      const int32_t k = (int32_t)get_local_id(0);
      float B_partial;
      // B_partial[0]
      B_partial = 0.0f;
      // B_partial[0] <- B_partial[0], A[i, k]
      B_partial = B_partial + A[i * 13 + k];
      // reduced[k] <- B_partial[0]
      reduced[k] = B_partial;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    {
      const int32_t k_2 = (int32_t)get_local_id(0);
      if (k_2 < 5) {
        // reduced[k] <- reduced[k], reduced[k + 8]
        reduced[k_2] = reduced[k_2] + reduced[k_2 + 8];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    {
      const int32_t k_3 = (int32_t)get_local_id(0);
      if (k_3 < 4) {
        // reduced[k] <- reduced[k], reduced[k + 4]
        reduced[k_3] = reduced[k_3] + reduced[k_3 + 4];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    {
      const int32_t k_4 = (int32_t)get_local_id(0);
      if (k_4 < 2) {
        // reduced[k] <- reduced[k], reduced[k + 2]
        reduced[k_4] = reduced[k_4] + reduced[k_4 + 2];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    {
      const int32_t k_5 = (int32_t)get_local_id(0);
      if (k_5 < 1) {
        // reduced[k] <- reduced[k], reduced[k + 1]
        reduced[k_5] = reduced[k_5] + reduced[k_5 + 1];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    {
      const int32_t k_6 = (int32_t)get_local_id(0);
      // B_total[k, 0] <- reduced[0]
      B_total[k_6] = reduced[0];
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    {
      const int32_t k_7 = (int32_t)get_local_id(0);
      if (k_7 == 0) {
        // B[i] <- B_total[k, 0]
        B[i] = B_total[k_7];
      }
    }
  }
}

