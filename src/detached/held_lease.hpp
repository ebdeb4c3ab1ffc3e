/// @file
/// The Lease of a run, held by the process that drives it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "async/joinable_task.hpp"
#include "detached/driver_context.hpp"
#include "kubernetes/lease.hpp"

namespace pipeline::detached {

/// Taken at construction, which waits for whoever has it, and renewed while the context's loop
/// runs. When it is lost the process ends at once: another may drive the run by then, whose steps
/// are left to it.
class HeldLease {
 public:
  /// @param on_signal,owners see kubernetes::Lease
  HeldLease(DriverContext context, const kubernetes::AccessOptions& cluster,
            const std::string& lease, std::function<void(const std::string&)> on_signal = {},
            nlohmann::json owners = {});
  /// Lets go of it for the next one; or removes it, if there need be none.
  ~HeldLease();
  HeldLease(const HeldLease&) = delete;
  HeldLease& operator=(const HeldLease&) = delete;

  /// Ends the process if the Lease may be another's by now, as after a pause of the whole process:
  /// to be called before each write to the run's record.
  void check() const;
  /// Makes each commit to the run store call check() as long as the Lease is held.
  void guard(store::RunStore& runs);
  /// The run has ended.
  void is_done() { done_ = true; }
  /// Lets go of it, and ends the process with nothing written meanwhile. To be called from within
  /// the loop.
  [[noreturn]] void hand_on();

 private:
  async::Task<> keep();
  async::Task<> finish();
  [[noreturn]] void lost(const std::string& why) const;

  DriverContext context_;
  const std::string name_, holder_;
  kubernetes::Client client_;
  kubernetes::Lease lease_;
  core::CancelSource stop_;
  std::optional<async::JoinableTask> keeping_;
  bool done_ = false;
  store::RunStore* guarded_ = nullptr;
};

}  // namespace pipeline::detached
