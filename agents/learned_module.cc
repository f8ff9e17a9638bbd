#include "agents/learned_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

namespace doppler {

namespace {

constexpr const char* kMend =
    "install PyTorch for the Python that builds (pip install torch), then build again "
    "(docs/learned-agents.md)";

// The folder of the program, or of the shared library that holds this very function.
std::filesystem::path own_folder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<void*>(&learned_module), &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  std::error_code error;
  // A program that was found by the search path is known by its bare name only.
  if (const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
      !error && program.filename() == std::filesystem::path(info.dli_fname).filename()) {
    return program.parent_path();
  }
  return std::filesystem::absolute(info.dli_fname, error).parent_path();
}

std::filesystem::path module_path() {
  if (const char* given = std::getenv("DOPPLER_LEARNED_MODULE"); given != nullptr && *given) {
    return given;
  }
  const std::filesystem::path folder = own_folder();
  std::error_code error;
  for (const auto& candidate :
       {folder / kLearnedFile, folder.parent_path() / "lib" / "doppler" / kLearnedFile}) {
    if (std::filesystem::exists(candidate, error)) return candidate;
  }
  return {};
}

const LearnedModule& load() {
  if (std::string missing = missing_learned_module(); !missing.empty()) throw RunError(missing);
  const std::string path = module_path().string();
  // All symbols at once: one that another PyTorch lacks is told here, and ends no program later.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw RunError(std::string("the learned agents cannot be loaded: ") + dlerror() +
                   "; they need the PyTorch that they were built for: " + kMend);
  }
  const auto entry_point = reinterpret_cast<LearnedEntryPoint>(dlsym(library, kLearnedEntryPoint));
  if (entry_point == nullptr) {
    throw RunError(path +
                   " is no module of learned agents; unset DOPPLER_LEARNED_MODULE, or build "
                   "again");
  }
  static const LearnedHost host = {.make_agent = &make_agent};
  std::string problem;
  const LearnedModule* module =
      entry_point(host, {.project = DOPPLER_VERSION, .sizes = sizes_across_border()}, problem);
  if (module == nullptr) {
    throw RunError("the learned agents cannot be used: " + problem + "; " + kMend);
  }
  return *module;
}

}  // namespace

std::size_t sizes_across_border() {
  std::size_t sizes = 0;
  for (std::size_t size :
       {sizeof(Task), sizeof(PlacementModel), sizeof(PartialSchedule), sizeof(Parameters),
        sizeof(TrainProblem), sizeof(TrainProgress), sizeof(Decision), sizeof(AssignOptions)}) {
    sizes = sizes * 4099 + size;
  }
  return sizes;
}

const LearnedModule& learned_module() {
  static std::mutex mutex;
  static const LearnedModule* loaded = nullptr;
  const std::scoped_lock lock(mutex);
  if (loaded == nullptr) loaded = &load();
  return *loaded;
}

std::string missing_learned_module() {
  const std::filesystem::path path = module_path();
  std::error_code error;
  if (!path.empty() && std::filesystem::exists(path, error)) return {};
  return std::string("the learned agents are missing (") +
         (path.empty() ? kLearnedFile : path.string()) +
         "), for this build found no PyTorch: " + kMend;
}

}  // namespace doppler
