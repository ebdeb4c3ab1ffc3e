/// @file
/// The Lease of a run, held by the process that drives it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "async/joinable_task.hpp"
#include "kubernetes_api/lease.hpp"
#include "remote_driver/driver_context.hpp"
#include "store/run_store.hpp"

namespace pipeline::remote_driver {

/// Acquires the Lease at construction, waits for that if another process holds the Lease, and
/// renews it while the context's loop runs. If the Lease is lost, the process ends at once, because
/// another process may then drive the run and own its steps.
class HeldLease {
 public:
  /// @param name that of the Lease
  /// @param on_message,owners see kubernetes_api::Lease
  HeldLease(DriverContext context, const kubernetes_api::AccessOptions& cluster,
            const std::string& name, std::function<void(const std::string&)> on_message = {},
            nlohmann::json owners = {});
  /// Releases the Lease; removes it if the run has ended.
  ~HeldLease();
  HeldLease(const HeldLease&) = delete;
  HeldLease& operator=(const HeldLease&) = delete;

  /// Ends the process if another process may hold the Lease by now, for example after this process
  /// was suspended. Call it before each write to the run's record.
  void check() const;
  /// Makes each commit to the run store call check() as long as the Lease is held.
  void guard(store::RunStore& store);
  /// Records that the run has ended.
  void record_end() { has_run_ended_ = true; }
  /// Releases the Lease and ends the process without writing anything in between. Must be called
  /// from within the loop.
  [[noreturn]] void hand_on();

 private:
  async::Task<> keep();
  async::Task<> finish();
  [[noreturn]] void exit_without_lease(const std::string& why) const;

  DriverContext context_;
  const std::string name_, holder_;
  kubernetes_api::Client client_;
  kubernetes_api::Lease lease_;
  core::CancelSource stop_;
  std::optional<async::JoinableTask> keeping_;
  bool has_run_ended_ = false;
  store::RunStore* guarded_ = nullptr;
};

}  // namespace pipeline::remote_driver
