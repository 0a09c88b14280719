// SPDX-License-Identifier: Apache-2.0
// Lets a kernel in CUDA C++ be compiled by g++ and run on the processor, for the tests: a block's
// threads are threads of the process that meet at barriers, and blocks follow one another.
#pragma once
#include <atomic>
#include <condition_variable>
#include <math.h>
#include <mutex>
#include <stdint.h>
#include <thread>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(n)

struct Three {
  unsigned x, y, z;
};
static thread_local Three threadIdx, blockIdx;
static Three blockDim;

struct Barrier {
  std::mutex mutex;
  std::condition_variable all;
  unsigned waiting = 0, turn = 0;
  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    const unsigned mine = turn;
    if (++waiting == blockDim.x * blockDim.y * blockDim.z) {
      waiting = 0;
      turn++;
      all.notify_all();
    } else {
      all.wait(lock, [&] { return turn != mine; });
    }
  }
};
static Barrier barrier;
#define __syncthreads() barrier.wait()

// Runs kernel() in all threads of all blocks.
template <class Kernel> static void launch(Three blocks, Three threads, Kernel kernel) {
  std::vector<std::thread> running;
  blockDim = threads;
  const unsigned count = threads.x * threads.y * threads.z;
  for (unsigned t = 0; t < count; t++)
    running.emplace_back([=] {
      threadIdx = {t % threads.x, t / threads.x % threads.y, t / threads.x / threads.y};
      for (unsigned b = 0; b < blocks.x * blocks.y * blocks.z; b++) {
        blockIdx = {b % blocks.x, b / blocks.x % blocks.y, b / blocks.x / blocks.y};
        kernel();
        barrier.wait();
      }
    });
  for (std::thread &thread : running) thread.join();
}

template <class... A, size_t... I>
static void call_with(void (*kernel)(A...), void **arguments, std::index_sequence<I...>) {
  kernel(*(A *)arguments[I]...);
}

// The same with the addresses of the arguments, as the driver takes them.
template <class... A>
static void launch_with(void (*kernel)(A...), Three blocks, Three threads, void **arguments) {
  launch(blocks, threads, [=] { call_with(kernel, arguments, std::index_sequence_for<A...>()); });
}
