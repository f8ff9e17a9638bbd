// step() allocates nothing but in the last step of an episode. Every allocation of this program is
// counted.
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "datasets/tasks.h"
#include "env/env.h"
#include "tests/env/diamond.h"
#include "tests/support/catch.h"

namespace {

thread_local std::size_t n_allocations = 0;

void* allocate(std::size_t size) {
  ++n_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* allocate(std::size_t size, std::align_val_t alignment) {
  ++n_allocations;
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, alignment);
}
// Like every form that the standard library calls, so that all memory is of one kind.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++n_allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  ++n_allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  try {
    return allocate(size, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace doppler {
namespace {

// The first action that is legal by the mask; `action` has the right length.
void legal_action(const Env& env, std::vector<std::int64_t>& action) {
  const auto mask = env.action_mask();
  std::size_t first = 0;
  for (std::size_t i = 0; i < action.size(); ++i) {
    action[i] = 0;
    while (mask[first + static_cast<std::size_t>(action[i])] == 0) ++action[i];
    first += static_cast<std::size_t>(env.spec().action.sizes[i]);
  }
}

void check_steps(const Task& task, EnvOptions options) {
  options.on_illegal = OnIllegal::penalize;
  Env env(task, options);
  std::vector<std::int64_t> action(env.spec().action.sizes.size());
  const std::vector<std::int64_t> illegal(action.size(), -1);
  for (int episode = 0; episode < 2; ++episode) {
    env.reset({.seed = 1});
    const std::int64_t n_steps = env.options().mode == "sequential"
                                     ? 2 * static_cast<std::int64_t>(task.graph.n_nodes())
                                     : static_cast<std::int64_t>(task.graph.n_nodes());
    while (env.n_steps() + 1 < n_steps) {
      legal_action(env, action);
      const std::size_t before = n_allocations;
      if (env.n_illegal() == 0) env.step(illegal);
      env.step(action);
      REQUIRE(n_allocations == before);
    }
    legal_action(env, action);
    REQUIRE(env.step(action).terminated);
  }
}

TEST_CASE("the hook counts what is allocated") {
  const std::size_t before = n_allocations;
  const auto owned = std::make_unique<double>(1);
  CHECK(n_allocations == before + 1);
}

TEST_CASE("no step but the last of an episode allocates") {
  const Task layer = make_task("published/llama-layer");
  const Task mixed = make_task("random-dag(n=40,shards=1)@mixed");
  Task noisy = mixed;
  noisy.options.noise = 0.1;
  for (const char* mode : {"sequential", "joint", "place", "refine"}) {
    for (const Reward reward : {Reward::sparse, Reward::dense}) {
      for (const Features features : {Features::paper, Features::full}) {
        INFO(mode << " " << to_string(reward) << " " << to_string(features));
        const EnvOptions options{.mode = mode, .reward = reward, .features = features};
        check_steps(mixed, options);
        check_steps(noisy, options);
        check_steps(testing::tight_diamond(2), options);
        if (std::string(mode) != "joint") check_steps(layer, options);
      }
    }
  }
  check_steps(mixed, {.mode = "joint", .factored = true});
}

}  // namespace
}  // namespace doppler
