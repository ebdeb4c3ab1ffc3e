/// @file
/// Reserves this machine's GPUs for a run's steps, each for one step alone, in a fair order among
/// all runs on the machine.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "async/semaphore.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "engine/run_context.hpp"
#include "engine/types.hpp"
#include "gpu/choose.hpp"
#include "gpu/lock_folder.hpp"
#include "orchestrators/routes.hpp"

namespace pipeline::engine {

/// A step waits for GPUs without a job slot, which a step without GPUs can use. When GPUs become
/// available, it takes a slot first and then the GPUs, so that neither is idle because of the
/// other. A step gets all its GPUs or none, so no two steps can wait for each other.
///
///   acquire()       for each step: waits for an offer -> takes a slot -> try_reserve()
///                     granted:  returns with slot and GPUs
///                     not:      gives the slot back, queues the request, waits for the next offer
///   offer_gpus()    one for the run, while steps wait: merges their requests into the machine's
///                   queue -> opens the offers of those that are granted something ->
///                   wait_for_change()
///   wake()          ends wait_for_change(), as does any change in the machine's lock folder
///
/// An offer is a hint: only try_reserve(), which holds the folder's mutex, takes GPUs.
class GpuReserver {
 public:
  /// @param slots the job slots of this machine
  GpuReserver(const RunContext& context, async::Semaphore& slots);
  ~GpuReserver();

  /// Finds the machine's GPUs, before anything is built. Throws InputError with all requests that
  /// can never be satisfied here, and EnvironmentError if there is no driver. Costs nothing if no
  /// step asks for GPUs.
  async::Task<> check(const std::vector<const StepSpec*>& steps, const PipelineSpec& pipeline);

  bool wants(const StepSpec& step) const { return demand_of(step).count > 0; }

  /// Waits for the step's GPUs and a job slot. Returns both, or nothing once `stop` is stopped.
  /// @param avoided UUIDs of GPUs that are used only if no others are left
  async::Task<std::optional<GpuReservation>> acquire(const StepSpec& step, std::size_t rank,
                                                     core::CancelSource& stop,
                                                     const std::set<std::string>& avoided);

 private:
  struct Ticket;
  using Session = gpu::LockFolder::Session;

  const gpu::Demand& demand_of(const StepSpec& step) const;
  using Request = std::pair<const StepSpec*, settings::GpuRequest>;
  std::vector<Request> requests_of(const std::vector<const StepSpec*>& steps,
                                   const PipelineSpec& pipeline) const;
  async::Task<std::optional<gpu::Inventory>> inventory_for(const StepSpec& step);
  std::optional<gpu::Shortage> require_whole_nodes(const StepSpec& step, gpu::Demand& demand) const;
  void add_demand(const Request& request, const gpu::Inventory& inventory,
                  std::vector<core::Diagnostic>& wrong);
  void check_together(const std::vector<const StepSpec*>& steps, const std::string& owner,
                      std::vector<core::Diagnostic>& wrong) const;
  async::Task<> offer_gpus();
  async::Task<bool> wait_for_change(Duration timeout);
  void wake() { timer_.cancel(); }
  /// Locks the folder; tries again while `is_wanted` returns true.
  async::Task<std::optional<Session>> enter(std::function<bool()> is_wanted);
  async::Task<> refresh_processes();
  async::Task<> refresh_containers();
  async::Task<std::optional<GpuReservation>> try_reserve(Ticket& ticket, core::CancelSource& stop);
  std::optional<GpuReservation> take_granted(Session& session, Ticket& ticket);
  std::vector<gpu::LockEntry> merge_queue(const Session& session);
  std::vector<gpu::Grant> grants(const Session& session,
                                 const std::vector<gpu::LockEntry>& entries) const;
  bool is_of(const gpu::LockEntry& entry, const Ticket& ticket);
  std::string shortage_of(const Ticket& ticket) const;
  std::vector<gpu::DeviceState> devices(const Session& session) const;
  void report_reasons(const Session& session, const std::vector<gpu::LockEntry>& entries);
  /// @param ahead the entries of the queue before the ticket's
  std::string reason(const Session& session, const Ticket& ticket,
                     std::span<const gpu::LockEntry> ahead) const;

  const RunContext& context_;
  orchestrators::Routes& routes_;
  async::Semaphore& slots_;

  std::map<std::string, gpu::Demand> demands_;  ///< Keyed by step.
  gpu::Machine* machine_;  ///< Null: the GPUs are on another machine, or NVML is not in use yet.
  std::unique_ptr<gpu::Machine> own_machine_;
  std::vector<gpu::Unit> units_;
  std::set<std::string> lost_;  ///< UUIDs of units that have stopped working since the run's start.
  std::set<std::string> in_containers_;  ///< UUIDs of units that containers of other runs use.
  std::optional<gpu::LockFolder> folder_;
  std::list<Ticket*> tickets_;     ///< In the order of arrival.
  bool processes_matter_ = false;  ///< A process of another program can make a step wait.
  bool is_offering_ = false;
  asio::steady_timer timer_;
  std::optional<asio::posix::stream_descriptor> changes_;  ///< Changes in the lock folder.
};

}  // namespace pipeline::engine
