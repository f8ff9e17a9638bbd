#include "executor/cuda/module/machine.h"

#include <algorithm>
#include <set>

namespace doppler::cuda {
namespace {

// Memory of each GPU that is left to the libraries' workspaces and to the scratch of nodes.
constexpr std::size_t kReserve = std::size_t{1} << 30;

}  // namespace

int count_gpus() {
  int n = 0;
  const cudaError_t status = cudaGetDeviceCount(&n);
  if (status == cudaSuccess && n > 0) return n;
  static_cast<void>(cudaGetLastError());
  std::string why = cudaGetErrorString(status);
  if (status == cudaSuccess) why = "CUDA sees none";
  if (status == cudaErrorInsufficientDriver) {
    why = "there is no NVIDIA driver, or one too old for CUDA " +
          std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
  }
  throw RunError("engine 'cuda' finds no GPU: " + why +
                 "; use the engine 'cpu' or 'simulator' here");
}

Machine::Machine(std::size_t n_devices, const CudaOptions& options) : options_(options) {
  const int n_gpus = count_gpus();
  std::vector<std::int32_t> numbers = options.gpus;
  for (std::size_t d = numbers.size(); d < n_devices; ++d) {
    numbers.push_back(static_cast<std::int32_t>(d % static_cast<std::size_t>(n_gpus)));
  }
  for (std::int32_t number : numbers) {
    if (number >= 0 && number < n_gpus) continue;
    throw RunError("engine 'cuda': there is no GPU " + std::to_string(number) + "; GPUs are 0 to " +
                   std::to_string(n_gpus - 1));
  }
  open_gpus(numbers);
  connect_peers();
  in_use_.assign(n_devices, 0);
  for (std::size_t d = 0; d < n_devices; ++d) {
    const Gpu* gpu = gpu_of_device_[d];
    const auto n_sharing = std::count(gpu_of_device_.begin(), gpu_of_device_.end(), gpu);
    const std::size_t free = gpu->free_memory() - std::min(gpu->free_memory(), kReserve);
    std::size_t limit = free / static_cast<std::size_t>(n_sharing);
    if (d < options.memory.size() && options.memory[d] < static_cast<double>(limit)) {
      limit = static_cast<std::size_t>(options.memory[d]);
    }
    limits_.push_back(limit);
  }
}

void Machine::open_gpus(const std::vector<std::int32_t>& numbers) {
  for (std::int32_t number : std::set<std::int32_t>(numbers.begin(), numbers.end())) {
    gpus_.push_back(std::make_unique<Gpu>(number));
  }
  for (std::int32_t number : numbers) {
    const auto found = std::find_if(gpus_.begin(), gpus_.end(),
                                    [&](const auto& gpu) { return gpu->number() == number; });
    gpu_of_device_.push_back(found->get());
  }
}

void Machine::connect_peers() {
  for (const auto& from : gpus_) {
    for (const auto& to : gpus_) {
      int reaches = from == to ? 1 : 0;
      if (from != to) {
        check(cudaDeviceCanAccessPeer(&reaches, from->number(), to->number()),
              "ask whether one GPU reaches another");
        // Its own memory, to the other one.
        if (reaches != 0) to->give_access(from->number());
      }
      reaches_[{from.get(), to.get()}] = reaches != 0;
    }
  }
}

bool Machine::reaches(const Gpu& from, const Gpu& to) const { return reaches_.at({&from, &to}); }

NcclTransport& Machine::nccl() {
  if (!nccl_) {
    std::vector<Gpu*> ranks;
    for (const auto& gpu : gpus_) ranks.push_back(gpu.get());
    nccl_ = std::make_unique<NcclTransport>(std::move(ranks));
  }
  return *nccl_;
}

runtime::Buffer Machine::allocate(DeviceId device, std::size_t bytes, cudaStream_t user) {
  std::size_t& in_use = in_use_[device.index()];
  if (bytes > limits_[device.index()] - std::min(limits_[device.index()], in_use)) {
    throw RunError(std::to_string(in_use) + " of " + std::to_string(limits_[device.index()]) +
                   " bytes are taken");
  }
  void* data = gpu(device).allocate(bytes, user);
  in_use += bytes;
  return {device, data, bytes};
}

void Machine::release(const runtime::Buffer& buffer) {
  in_use_[buffer.device.index()] -= buffer.bytes;
  gpu(buffer.device).release(buffer.data);
}

}  // namespace doppler::cuda
