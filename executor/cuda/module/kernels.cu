// The small kernels: each calls the functions of step_functions.h, which the host runs too, at the
// points of a step.
#include "executor/cuda/module/kernels.h"

#include <algorithm>
#include <cstdint>

#include "executor/cuda/module/check.h"
#include "executor/runtime/step_functions.h"

namespace doppler::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerProcessor = 32;
constexpr int kWarp = 32;

template <class Body>
__global__ void run_points(std::int64_t n, Body body) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t point = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       point < n; point += stride) {
    body(point);
  }
}

int n_blocks(std::int64_t n, int per_block, const Launch& at) {
  const std::int64_t needed = (n + per_block - 1) / per_block;
  const std::int64_t most = static_cast<std::int64_t>(at.n_processors) * kBlocksPerProcessor;
  return static_cast<int>(std::min(needed, most));
}

template <class Body>
void for_points(std::int64_t n, const Launch& at, const Body& body, const char* what) {
  if (n == 0) return;
  run_points<<<n_blocks(n, kThreads, at), kThreads, 0, at.stream>>>(n, body);
  check(cudaGetLastError(), what);
}

struct PointwiseBody {
  steps::Pointwise step;
  const void* x;
  const void* y;
  void* out;
  __device__ void operator()(std::int64_t point) const {
    steps::pointwise_at(step, x, y, out, point);
  }
};

struct JoinBody {
  bool maximum;
  int n;
  steps::Points points;
  steps::Access operands[steps::kMaxJoined];
  const void* buffers[steps::kMaxJoined];
  steps::Access to;
  void* out;
  __device__ void operator()(std::int64_t point) const {
    steps::join_at(maximum, points, operands, buffers, n, to, out, point);
  }
};

struct ReduceBody {
  steps::Reduce step;
  const void* x;
  const void* y;
  void* out;
  __device__ void operator()(std::int64_t kept) const {
    steps::store_reduced(step, out, kept, steps::reduce_part(step, x, y, kept, 0, 1));
  }
};

struct RotateBody {
  steps::Rotate step;
  const void* x;
  const void* y;
  void* out;
  __device__ void operator()(std::int64_t point) const { steps::rotate_at(step, x, y, out, point); }
};

struct RouteBody {
  steps::Route step;
  const void* x;
  void* out;
  __device__ void operator()(std::int64_t point) const { steps::route_at(step, x, out, point); }
};

struct CausalBody {
  steps::Causal step;
  void* out;
  __device__ void operator()(std::int64_t point) const { steps::causal_at(step, out, point); }
};

// A block of threads for each kept point: neighbours read neighbours.
__global__ void reduce_rows(ReduceBody body, std::int64_t n_kept) {
  __shared__ float parts[kWarp];
  const bool maximum = body.step.maximum;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int n_warps = static_cast<int>(blockDim.x) / kWarp;
  const auto join_warp = [&](float value) {
    for (int half = kWarp / 2; half > 0; half /= 2) {
      value = steps::combine(maximum, value, __shfl_down_sync(0xffffffffU, value, half));
    }
    return value;
  };
  for (std::int64_t kept = blockIdx.x; kept < n_kept; kept += gridDim.x) {
    const float own =
        join_warp(steps::reduce_part(body.step, body.x, body.y, kept, threadIdx.x, blockDim.x));
    if (lane == 0) parts[warp] = own;
    __syncthreads();
    if (warp == 0) {
      const float all = join_warp(lane < n_warps ? parts[lane] : steps::neutral(maximum));
      if (lane == 0) steps::store_reduced(body.step, body.out, kept, all);
    }
    __syncthreads();  // before `parts` is written again
  }
}

}  // namespace

void launch(const steps::Pointwise& step, const Launch& at) {
  const void* y = steps::takes_two(step.function) ? at.of(step.y) : nullptr;
  for_points(steps::n_points(step.points), at,
             PointwiseBody{step, at.of(step.x), y, at.of(step.out)},
             "launch an elementwise kernel");
}

void launch(const steps::Join& step, const Launch& at) {
  JoinBody body{};
  body.maximum = step.maximum;
  body.n = static_cast<int>(step.operands.size());
  body.points = step.points;
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    body.operands[k] = step.operands[k];
    body.buffers[k] = at.of(step.operands[k]);
  }
  body.to = step.out;
  body.out = at.of(step.out);
  for_points(steps::n_points(step.points), at, body, "launch an aggregation");
}

void launch(const steps::Reduce& step, const Launch& at) {
  const ReduceBody body{step, at.of(step.x), step.has_y ? at.of(step.y) : nullptr, at.of(step.out)};
  const std::int64_t n_kept = steps::n_points(steps::kept_points(step));
  const std::int64_t n_reduced = steps::n_points(steps::reduced_points(step));
  const bool is_by_row = step.reduced_axes > 0 && step.x.strides[step.points.axes - 1] == 1;
  if (!is_by_row || n_reduced < kWarp) {
    for_points(n_kept, at, body, "launch a reduction");
    return;
  }
  if (n_kept == 0) return;
  const int threads = n_reduced <= 2 * kWarp ? kWarp : n_reduced <= 512 ? 128 : kThreads;
  reduce_rows<<<n_blocks(n_kept, 1, at), threads, 0, at.stream>>>(body, n_kept);
  check(cudaGetLastError(), "launch a reduction");
}

void launch(const steps::Rotate& step, const Launch& at) {
  for_points(steps::n_points(step.points), at,
             RotateBody{step, at.of(step.x), at.of(step.y), at.of(step.out)}, "launch a rotation");
}

void launch(const steps::Route& step, const Launch& at) {
  for_points(step.groups * step.experts, at, RouteBody{step, at.of(step.x), at.of(step.out)},
             "launch a routing");
}

void launch(const steps::Causal& step, const Launch& at) {
  for_points(steps::n_points(step.points), at, CausalBody{step, at.of(step.out)}, "launch a mask");
}

}  // namespace doppler::cuda
