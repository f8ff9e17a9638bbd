// Independent pieces of work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace doppler::cli {

// Calls work(i) for each i below n, in this order as threads become free, on `jobs` threads (0: one
// a core; fewer if the system gives no more), and waits for all. `work` returns whether to go on:
// after a false no further piece is begun. It must not throw.
void side_by_side(std::size_t n, int jobs, const std::function<bool(std::size_t)>& work);

}  // namespace doppler::cli
