#include "cli/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace doppler::cli {

void side_by_side(std::size_t n, int jobs, const std::function<bool(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> goes_on = true;
  const auto serve = [&] {
    for (std::size_t i = next++; i < n && goes_on; i = next++) {
      if (!work(i)) goes_on = false;
    }
  };
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t wanted = jobs > 0 ? static_cast<std::size_t>(jobs) : cores;
  std::vector<std::jthread> threads;
  try {
    for (std::size_t t = 1; t < std::min(wanted, n); ++t) threads.emplace_back(serve);
  } catch (const std::system_error&) {
    // The machine has no more threads; those that there are do the work.
  }
  serve();
}

}  // namespace doppler::cli
