#include "executor/cuda/cuda_devices.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "graphs/enum_names.h"
#include "graphs/error.h"

namespace doppler::cuda {
namespace {

constexpr EnumName<Precision> kPrecisions[] = {
    {Precision::float32, "float32"}, {Precision::tf32, "tf32"}, {Precision::bfloat16, "bfloat16"}};
constexpr EnumName<Transport> kTransports[] = {
    {Transport::peer, "peer"}, {Transport::staged, "staged"}, {Transport::nccl, "nccl"}};

constexpr const char* kModuleFile = "doppler_cuda.so";

// Folders of the file that holds this code (the extension, or a program) and of the program.
std::vector<std::filesystem::path> folders() {
  std::vector<std::filesystem::path> found;
  const auto add = [&](const std::filesystem::path& file) {
    std::error_code error;
    const auto real = std::filesystem::canonical(file, error);
    if (!error) found.push_back(real.parent_path());
  };
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&open_cuda_devices), &info) != 0) add(info.dli_fname);
  add("/proc/self/exe");
  return found;
}

struct Module {
  OpenDevices* open_devices = nullptr;
  NeedGpu* need_gpu = nullptr;
};

template <class Function>
Function* symbol(void* module, const char* name, const std::string& path) {
  void* found = dlsym(module, name);
  if (found == nullptr) {
    throw RunError(path + " is not the CUDA module of this build; build doppler-gym again");
  }
  return reinterpret_cast<Function*>(found);
}

Module load_module() {
  std::string tried;
  for (const std::filesystem::path& folder : folders()) {
    for (const char* place : {"", "../lib/doppler"}) {
      const std::filesystem::path path = folder / place / kModuleFile;
      std::error_code error;
      if (!std::filesystem::exists(path, error)) continue;
      void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (module == nullptr) {
        const char* why = dlerror();
        throw RunError("the CUDA module cannot be loaded: " +
                       std::string(why != nullptr ? why : "unknown reason") +
                       "; docs/cuda-engine.md says what it needs");
      }
      const std::string build = symbol<BuildOf>(module, kBuildName, path)();
      if (build != DOPPLER_BUILD_ID) {
        throw RunError(path.string() + " is of build " + build + ", this is build " +
                       DOPPLER_BUILD_ID + "; build doppler-gym again");
      }
      return {symbol<OpenDevices>(module, kOpenDevicesName, path),
              symbol<NeedGpu>(module, kNeedGpuName, path)};
    }
    tried += (tried.empty() ? "" : " or ") + folder.string();
  }
  throw RunError("engine 'cuda' needs " + std::string(kModuleFile) + ", which is not in " + tried +
                 "; build with -DDOPPLER_CUDA=ON (docs/cuda-engine.md), or choose another engine");
}

// Loaded once; after a failure the next call tries again.
const Module& module() {
  static const Module loaded = load_module();
  return loaded;
}

}  // namespace

std::string_view to_string(Precision precision) {
  return enum_name<Precision>(kPrecisions, precision);
}
std::string_view to_string(Transport transport) {
  return enum_name<Transport>(kTransports, transport);
}

std::unique_ptr<runtime::DeviceApi> open_cuda_devices(std::size_t n_devices,
                                                      const CudaOptions& options) {
  if (!options.gpus.empty() && options.gpus.size() != n_devices) {
    throw UsageError("engine 'cuda': gpus names " + std::to_string(options.gpus.size()) +
                     " devices, the cluster has " + std::to_string(n_devices) +
                     "; name a GPU for each device, or none");
  }
  return std::unique_ptr<runtime::DeviceApi>(module().open_devices(n_devices, options));
}

void need_gpu() { module().need_gpu(); }

}  // namespace doppler::cuda
