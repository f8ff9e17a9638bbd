#include "executor/cuda/module/nccl_transport.h"

#include <string>
#include <utility>

namespace doppler::cuda {
namespace {

void check(ncclResult_t status, const char* what) {
  if (status == ncclSuccess) return;
  throw RunError(std::string(what) + ": " + nccl_library().get_error_string(status));
}

// Version codes are 10000 major + 100 minor + patch.
void check_version(const NcclLibrary& nccl) {
  int loaded = 0;
  check(nccl.get_version(&loaded), "ask for NCCL's version");
  if (loaded / 10000 == NCCL_MAJOR && loaded >= NCCL_VERSION_CODE) return;
  const auto text = [](int code) {
    return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
           std::to_string(code % 100);
  };
  throw RunError("NCCL " + text(loaded) + " is loaded, but this build needs " +
                 text(NCCL_VERSION_CODE) +
                 " or a newer one of the same major version; load it before others do, or choose "
                 "transport=peer");
}

// A group that ends even if a call inside it fails.
class Group {
 public:
  explicit Group(const NcclLibrary& nccl) : nccl_(nccl) {
    check(nccl_.group_start(), "begin a group of NCCL");
  }
  ~Group() {
    if (is_open_) static_cast<void>(nccl_.group_end());
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  void end() {
    is_open_ = false;
    check(nccl_.group_end(), "end a group of NCCL");
  }

 private:
  const NcclLibrary& nccl_;
  bool is_open_ = true;
};

}  // namespace

NcclTransport::NcclTransport(std::vector<Gpu*> gpus) {
  check_version(nccl_);
  for (Gpu* gpu : gpus) {
    const CurrentGpu current(gpu->number());
    Rank rank;
    rank.gpu = gpu;
    rank.number = static_cast<int>(ranks_.size());
    rank.stream = make_stream();
    rank.done = make_event(false);
    ranks_.emplace(gpu, std::move(rank));
  }
  thread_ = std::thread([this] { work(); });
}

NcclTransport::~NcclTransport() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void NcclTransport::send(const Transfer& transfer, const Lane& lane, cudaEvent_t start,
                         cudaEvent_t end) {
  // What went wrong; nothing: "".
  std::packaged_task<std::string()> task([&]() -> std::string {
    try {
      if (!is_connected_) connect();
      issue(transfer, lane, start, end);
      return "";
    } catch (const RunError& error) {
      disconnect();
      return error.what();
    }
  });
  std::future<std::string> issued = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    tasks_.push(std::move(task));
  }
  changed_.notify_one();
  if (const std::string failure = issued.get(); !failure.empty()) throw RunError(failure);
}

void NcclTransport::work() {
  while (true) {
    std::packaged_task<std::string()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stops_ || !tasks_.empty(); });
      if (tasks_.empty()) break;
      task = std::move(tasks_.front());
      tasks_.pop();
    }
    task();
  }
  // What NCCL began on this thread ends on it.
  for (auto& [gpu, rank] : ranks_) {
    if (rank.communicator != nullptr) static_cast<void>(nccl_.comm_destroy(rank.communicator));
  }
}

void NcclTransport::connect() {
  std::vector<int> numbers;
  for (std::size_t n = 0; n < ranks_.size(); ++n) {
    for (const auto& [gpu, rank] : ranks_) {
      if (rank.number == static_cast<int>(n)) numbers.push_back(gpu->number());
    }
  }
  std::vector<ncclComm_t> communicators(numbers.size(), nullptr);
  check(nccl_.comm_init_all(communicators.data(), static_cast<int>(numbers.size()), numbers.data()),
        "connect the ranks of NCCL");
  for (auto& [gpu, rank] : ranks_) {
    rank.communicator = communicators[static_cast<std::size_t>(rank.number)];
  }
  is_connected_ = true;
}

// After a failure operations may never end: they are given up, and nothing is under way afterwards.
void NcclTransport::disconnect() {
  for (auto& [gpu, rank] : ranks_) {
    if (rank.communicator == nullptr) continue;
    static_cast<void>(nccl_.comm_abort(std::exchange(rank.communicator, nullptr)));
  }
  for (auto& [gpu, rank] : ranks_) static_cast<void>(cudaStreamSynchronize(rank.stream.get()));
  is_connected_ = false;
}

void NcclTransport::issue(const Transfer& transfer, const Lane& lane, cudaEvent_t start,
                          cudaEvent_t end) {
  Rank& from = ranks_.at(transfer.from_gpu);
  Rank& to = ranks_.at(transfer.to_gpu);
  check(cudaEventRecord(lane.ready, lane.stream), "record that a transfer may begin");
  for (Rank* rank : {&from, &to}) {
    check(cudaStreamWaitEvent(rank->stream.get(), lane.ready), "wait for a transfer's turn");
  }
  check(cudaEventRecord(start, from.stream.get()), "record a transfer's start");
  Group group(nccl_);
  check(nccl_.send(transfer.from, transfer.bytes, ncclInt8, to.number, from.communicator,
                   from.stream.get()),
        "send by NCCL");
  check(nccl_.recv(transfer.to, transfer.bytes, ncclInt8, from.number, to.communicator,
                   to.stream.get()),
        "receive by NCCL");
  group.end();
  // It has ended when both ends have.
  check(cudaEventRecord(from.done.get(), from.stream.get()), "record a transfer's end");
  check(cudaStreamWaitEvent(to.stream.get(), from.done.get()), "wait for a transfer's sender");
  check(cudaEventRecord(end, to.stream.get()), "record a transfer's end");
  check(cudaStreamWaitEvent(lane.stream, end), "wait for a transfer");
}

}  // namespace doppler::cuda
