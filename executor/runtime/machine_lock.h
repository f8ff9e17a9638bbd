// Real executions exclude each other on a machine: one that ran beside another would measure both.
#pragma once

#include <string>

namespace doppler::runtime {

// Held from construction to destruction, by one thread of one process on the machine. The others
// wait, in no particular order. The system gives it back if a process dies.
class MachineLock {
 public:
  // Throws RunError if the lock's file cannot be opened.
  MachineLock();
  ~MachineLock();
  MachineLock(const MachineLock&) = delete;
  MachineLock& operator=(const MachineLock&) = delete;

  // The file: what the environment variable DOPPLER_GYM_LOCK names, else doppler-gym.lock in the
  // system's folder for temporary files. Users share it.
  static std::string path();

 private:
  int file_;
};

}  // namespace doppler::runtime
