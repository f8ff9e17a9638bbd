// One physical GPU: its memory pool, its events, and the clock that turns their instants into
// seconds of the run.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <vector>

#include "executor/cuda/module/handles.h"

namespace doppler::cuda {

using HostClock = std::chrono::steady_clock;

class Gpu {
 public:
  // Throws RunError if CUDA has no such GPU or it has no stream-ordered memory.
  explicit Gpu(int number);

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] int n_processors() const { return n_processors_; }
  [[nodiscard]] std::size_t free_memory() const { return free_memory_; }  // when it was opened
  [[nodiscard]] cudaMemPool_t pool() const { return pool_.get(); }

  // Memory is taken and given back on a stream that holds nothing else, so that what is given back
  // is free at once, whatever the other streams are doing. The memory may be used by what `user`,
  // a stream of any GPU, gets from now on.
  void* allocate(std::size_t bytes, cudaStream_t user);
  void release(void* data);      // nothing uses it any more; a failure leaves it allocated
  void wait_for_memory() const;  // until the host may touch what was allocated
  // Lets another GPU read and write the memory of this one.
  void give_access(int other_gpu);

  // Timed events, kept for the next command. Any thread; take_event() with this GPU as the current
  // one.
  OwnedEvent take_event();
  void give_back(OwnedEvent event);

  // Records the base event and brackets it by the host's clock. Nothing is under way.
  void set_base();
  [[nodiscard]] HostClock::time_point base() const { return base_time_; }
  [[nodiscard]] double alignment_error() const { return alignment_error_; }  // seconds
  // The host's time at which an event of this GPU, which has ended, happened, in seconds since
  // `zero`.
  [[nodiscard]] double seconds(cudaEvent_t event, HostClock::time_point zero) const;

 private:
  int number_ = 0;
  int n_processors_ = 1;
  std::size_t free_memory_ = 0;
  OwnedStream memory_stream_;
  OwnedEvent allocated_;
  OwnedPool pool_;
  OwnedEvent base_;
  HostClock::time_point base_time_;
  double alignment_error_ = 0;
  std::mutex mutex_;  // of events_
  std::vector<OwnedEvent> events_;
};

}  // namespace doppler::cuda
