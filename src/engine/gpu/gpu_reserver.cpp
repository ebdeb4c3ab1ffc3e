#include "engine/gpu/gpu_reserver.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "async/on_pool.hpp"
#include "async/sleep.hpp"
#include "core/error.hpp"
#include "core/scope_guard.hpp"
#include "core/text.hpp"
#include "engine/clock.hpp"

namespace pipeline::engine {
namespace {

using gpu::LockEntry;
using std::chrono::milliseconds;

/// Interval of checks without a notification: nothing wakes the waiting steps when a container of a
/// dead driver, or a process of another program, ends.
constexpr milliseconds max_unnotified{1000};
/// The files of a killed driver are closed, and watchers are notified, slightly before its locks
/// are released. Therefore the queue is looked at again after these times.
constexpr milliseconds after_change[] = {milliseconds(5), milliseconds(50)};
/// Maximum number of this run's requests in the machine's queue, so that a run with thousands of
/// waiting steps does not fill it.
constexpr std::size_t max_queued = 64;

std::string user_name() {
  const auto* user = ::getpwuid(::getuid());
  return user ? user->pw_name : std::to_string(::getuid());
}

}  // namespace

/// A step's request while it waits.
struct GpuReserver::Ticket {
  const StepSpec& step;
  gpu::Waiting waiting;
  gpu::HolderInfo holder;
  async::Gate offered;
  bool is_served = false;       ///< The step has its GPUs, and is not queued any more.
  std::string reported_reason;  ///< The last reported reason.
};

GpuReserver::GpuReserver(const RunContext& context, async::Semaphore& slots)
    : context_(context),
      routes_(context.services.routes),
      slots_(slots),
      machine_(context.options.machine),
      timer_(context.executor) {}

GpuReserver::~GpuReserver() {
  if (changes_) changes_->release();  // The folder owns the descriptor.
}

const gpu::Demand& GpuReserver::demand_of(const StepSpec& step) const {
  static const gpu::Demand none;
  auto found = demands_.find(step.name);
  if (found == demands_.end() && step.instance)
    found = demands_.find(*step.instance->of);  // The instance was made after the check.
  return found == demands_.end() ? none : found->second;
}

async::Task<std::optional<GpuReservation>> GpuReserver::acquire(
    const StepSpec& step, std::size_t rank, core::CancelSource& stop,
    const std::set<std::string>& avoided) {
  Ticket ticket{step,
                {.demand = demand_of(step)},
                {.pid = ::getpid(),
                 .user = user_name(),
                 .run = context_.options.run_id,
                 .step = step.name,
                 .since = wall_now()},
                async::Gate(context_.executor)};
  std::ranges::stable_partition(ticket.waiting.demand.candidates,
                                [&](const auto& uuid) { return !avoided.contains(uuid); });
  tickets_.push_back(&ticket);
  const core::ScopeGuard leave([&] {
    tickets_.remove(&ticket);
    wake();
  });
  const core::CancelSource::Listener listener(stop,
                                              [&](core::StopLevel) { ticket.offered.open(); });

  std::optional<GpuReservation> reservation;
  ticket.offered.open();  // No other step may want GPUs.
  while (stop.level() == core::StopLevel::none) {
    co_await ticket.offered.wait();
    if (stop.level() != core::StopLevel::none) break;
    if (!slots_.try_acquire()) {
      ticket.waiting.paused = true;
      wake();
      co_await slots_.acquire(rank);
      ticket.waiting.paused = false;
    }
    ticket.offered.close();
    std::exception_ptr error;
    if (stop.level() == core::StopLevel::none) try {
        reservation = co_await try_reserve(ticket, stop);
      } catch (...) {
        error = std::current_exception();
      }
    if (reservation) break;
    slots_.release();
    if (error) std::rethrow_exception(error);
    if (!std::exchange(is_offering_, true)) context_.tasks.spawn(offer_gpus());
  }
  co_return reservation;
}

/// Runs while steps wait: after each change, determines which steps can have GPUs, and reports why
/// the others cannot.
async::Task<> GpuReserver::offer_gpus() {
  const core::ScopeGuard at_end([this] { is_offering_ = false; });
  std::size_t quiet = 0;  // The number of waits in a row without a change.
  for (;;) {
    if (processes_matter_ || quiet > std::size(after_change)) co_await refresh_processes();
    co_await refresh_containers();
    {
      const std::function<bool()> is_wanted = [this] { return !tickets_.empty(); };
      auto session = co_await enter(is_wanted);
      if (!session) co_return;
      const auto entries = merge_queue(*session);
      for (const auto& grant : grants(*session, entries))
        for (auto* ticket : tickets_)
          if (is_of(entries[grant.index], *ticket)) ticket->offered.open();
      for (auto* ticket : tickets_)
        if (!shortage_of(*ticket).empty())
          ticket->offered.open();  // The step fails when it gets its turn.
      report_reasons(*session, entries);
      session->put_queue(entries);
    }
    if (tickets_.empty()) co_return;
    const auto timeout = quiet < std::size(after_change) ? after_change[quiet] : max_unnotified;
    const bool has_changed = co_await wait_for_change(timeout);
    quiet = has_changed ? 0 : quiet + 1;
  }
}

/// Waits for a change of the machine's reservations, or a wake() of this run. Returns false if the
/// time is up before.
async::Task<bool> GpuReserver::wait_for_change(Duration timeout) {
  if (!changes_)
    if (const int watch = folder_->watch(); watch >= 0) changes_.emplace(context_.executor, watch);
  timer_.expires_after(timeout);
  if (changes_)
    changes_->async_wait(asio::posix::stream_descriptor::wait_read,
                         [this](boost::system::error_code error) {
                           if (!error) wake();
                         });
  boost::system::error_code cancelled;
  co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  if (changes_) {
    changes_->cancel();
    folder_->forget_changes();
  }
  co_return bool(cancelled);
}

/// Opens a session of the lock folder. Returns nothing once `is_wanted` returns false: another
/// user's program may keep the folder for itself.
async::Task<std::optional<GpuReserver::Session>> GpuReserver::enter(
    std::function<bool()> is_wanted) {
  // A different offset for each process, so that two processes that collide do not collide again.
  const std::chrono::microseconds offset(::getpid() % 100);
  for (auto wait = std::chrono::microseconds(100); is_wanted();
       wait = std::min(2 * wait, std::chrono::microseconds(5000))) {
    if (auto session = folder_->try_enter()) co_return session;
    co_await async::sleep(wait + offset);
  }
  co_return std::nullopt;
}

/// Reads again which processes use the GPUs, and which GPUs have stopped working.
async::Task<> GpuReserver::refresh_processes() {
  if (!machine_) co_return;  // The GPUs of another machine are read only once, by check().
  const auto inventory =
      co_await async::on_pool(context_.pool, [this] { return machine_->read(); });
  if (inventory.unavailable) co_return;  // The steps that use the GPUs report the error.
  const auto all = gpu::units_of(inventory);
  lost_.clear();
  for (auto& unit : units_) {
    const auto seen = std::ranges::find(all, unit.uuid, &gpu::Unit::uuid);
    if (seen == all.end()) {
      lost_.insert(unit.uuid);
    } else {
      unit.processes = seen->processes;
      unit.mode = seen->mode;
    }
  }
}

/// Returns the reason why the request cannot be satisfied any more; empty if it can be.
std::string GpuReserver::shortage_of(const Ticket& ticket) const {
  if (lost_.empty()) return {};
  const auto& demand = ticket.waiting.demand;
  std::string names;
  std::size_t left = demand.candidates.size();
  for (const auto& unit : units_) {
    if (!lost_.contains(unit.uuid) ||
        std::ranges::find(demand.candidates, unit.uuid) == demand.candidates.end())
      continue;
    names += (names.empty() ? "" : ", ") + unit.name();
    --left;
  }
  if (left >= demand.count) return {};
  return names + " can no longer be used, and the step asks for " +
         core::counted(demand.count, "GPU") +
         (demand.count < demand.candidates.size()
              ? " of " + std::to_string(demand.candidates.size())
              : "");
}

/// Asks the orchestrators again which GPUs the containers of other runs use.
async::Task<> GpuReserver::refresh_containers() {
  std::vector<orchestrators::GpuHold> holds;
  try {
    holds = co_await routes_.gpus_in_use();
  } catch (const core::EnvironmentError&) {  // The steps that use the engine report the error.
    co_return;
  }
  in_containers_.clear();
  for (const auto& hold : holds)
    if (hold.run != context_.options.run_id) in_containers_.insert(hold.uuid);
}

/// Returns the machine's queue with this run's current entries; new ones get their numbers.
std::vector<LockEntry> GpuReserver::merge_queue(const Session& session) {
  auto entries = session.queue();
  const auto& token = folder_->sign_in();
  std::uint64_t last = 0;
  for (const auto& entry : entries) {
    last = std::max(last, entry.waiting.number);
    if (entry.driver != token) continue;
    for (auto* ticket : tickets_)  // Other runs count in the queue how often they overtook it.
      if (ticket->waiting.number == entry.waiting.number)
        ticket->waiting.overtaken = std::max(ticket->waiting.overtaken, entry.waiting.overtaken);
  }
  std::erase_if(entries, [&](const LockEntry& entry) { return entry.driver == token; });
  std::size_t queued = 0;
  for (auto* ticket : tickets_) {
    if (ticket->is_served) continue;
    if (queued++ == max_queued) break;
    if (ticket->waiting.number == 0) ticket->waiting.number = ++last;
    entries.push_back({token, ticket->waiting, ticket->holder});
  }
  std::ranges::sort(entries, {}, gpu::order_of);
  for (const auto& entry : entries) processes_matter_ |= entry.waiting.demand.idle;
  return entries;
}

bool GpuReserver::is_of(const LockEntry& entry, const Ticket& ticket) {
  return entry.waiting.number == ticket.waiting.number && entry.driver == folder_->sign_in();
}

std::vector<gpu::Grant> GpuReserver::grants(const Session& session,
                                            const std::vector<LockEntry>& entries) const {
  std::vector<gpu::Waiting> waiting;
  for (const auto& entry : entries) waiting.push_back(entry.waiting);
  return gpu::grants(waiting, devices(session));
}

/// Returns the current state of the machine's GPUs, for the queue.
std::vector<gpu::DeviceState> GpuReserver::devices(const Session& session) const {
  std::vector<gpu::DeviceState> devices;
  for (const auto& unit : units_) {
    const bool is_occupied = !unit.processes.empty();
    devices.push_back(
        {unit.uuid, in_containers_.contains(unit.uuid) || session.is_held(unit.uuid), is_occupied,
         lost_.contains(unit.uuid) || (is_occupied && unit.mode == gpu::ComputeMode::exclusive),
         unit.machine});
  }
  return devices;
}

async::Task<std::optional<GpuReservation>> GpuReserver::try_reserve(Ticket& ticket,
                                                                    core::CancelSource& stop) {
  // After a wait, offer_gpus() has just read the processes. Reading them again takes time in which
  // the GPUs are idle.
  const bool is_first_try = ticket.waiting.number == 0;
  if (is_first_try || processes_matter_) co_await refresh_processes();
  if (is_first_try) co_await refresh_containers();
  if (const auto shortage = shortage_of(ticket); !shortage.empty())
    throw core::EnvironmentError(shortage, {"`nvidia-smi` and `dmesg | grep NVRM` say more"});
  for (;;) {
    std::optional<GpuReservation> reservation;
    {
      const std::function<bool()> is_wanted = [&stop] {
        return stop.level() == core::StopLevel::none;
      };
      auto session = co_await enter(is_wanted);
      if (session) reservation = take_granted(*session, ticket);
    }
    if (!reservation) co_return reservation;
    // A container that a killed driver had requested may have started since.
    co_await refresh_containers();
    if (std::ranges::none_of(reservation->gpus, [&](const orchestrators::AssignedGpu& gpu) {
          return in_containers_.contains(gpu.uuid);
        }))
      co_return reservation;
    ticket.is_served = false;
  }
}

/// Takes the GPUs that the queue grants the request now. If it grants none, queues the request and
/// returns nothing.
std::optional<GpuReservation> GpuReserver::take_granted(Session& session, Ticket& ticket) {
  auto entries = merge_queue(session);
  const auto granted = grants(session, entries);
  const auto grant = std::ranges::find_if(
      granted, [&](const gpu::Grant& each) { return is_of(entries[each.index], ticket); });
  if (grant == granted.end()) {
    session.put_queue(entries);
    return std::nullopt;
  }
  GpuReservation reservation{.machine = machine_};
  auto holder = ticket.holder;
  holder.since = wall_now();
  for (const auto& uuid : grant->uuids) {
    reservation.locks.push_back(session.take(uuid, holder));
    reservation.locks.push_back(session.share(uuid));
    const auto& unit = *std::ranges::find(units_, uuid, &gpu::Unit::uuid);
    reservation.gpus.push_back({unit.uuid, unit.index, unit.model, unit.profile, unit.memory,
                                reservation.locks.back().get(), unit.slice});
  }
  std::ranges::sort(reservation.gpus, {}, [this](const orchestrators::AssignedGpu& gpu) {
    const auto& unit = *std::ranges::find(units_, gpu.uuid, &gpu::Unit::uuid);
    return std::tuple(unit.machine, gpu.index, gpu.slice, gpu.uuid);
  });
  std::vector<gpu::Waiting> waiting;
  for (const auto& entry : entries) waiting.push_back(entry.waiting);
  gpu::count_overtaking(waiting, granted, *grant);
  for (std::size_t i = 0; i < entries.size(); ++i)
    entries[i].waiting.overtaken = waiting[i].overtaken;
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(grant->index));
  session.put_queue(entries);
  ticket.is_served = true;
  return reservation;
}

/// Reports why this run's steps wait.
void GpuReserver::report_reasons(const Session& session, const std::vector<LockEntry>& entries) {
  std::size_t ahead = 0;
  for (const auto& entry : entries) {
    const auto ticket =
        std::ranges::find_if(tickets_, [&](const Ticket* own) { return is_of(entry, *own); });
    // Each step's reason is reported when the step begins to wait. Later, only the reason of the
    // next step in the queue is reported, when it changes.
    if (ticket != tickets_.end() && !(*ticket)->offered.is_open() &&
        ((*ticket)->reported_reason.empty() || ahead == 0)) {
      auto text = reason(session, **ticket, std::span(entries).first(ahead));
      if (text != (*ticket)->reported_reason) {
        context_.events.emit(event::StepWaits{(*ticket)->step.name, text});
        (*ticket)->reported_reason = std::move(text);
      }
    }
    ++ahead;
  }
}

/// Returns what the step waits for: the requests ahead of it, or the holders of its GPUs.
std::string GpuReserver::reason(const Session& session, const Ticket& ticket,
                                std::span<const LockEntry> ahead) const {
  const auto& demand = ticket.waiting.demand;
  std::string text = core::counted(demand.count, "GPU");
  if (demand.count < demand.candidates.size())
    text += " of " + std::to_string(demand.candidates.size());
  if (ahead.size() == 1) return text + ", behind " + gpu::to_string(ahead.front().holder);
  if (!ahead.empty()) return text + ", behind " + std::to_string(ahead.size()) + " other steps";
  std::vector<std::pair<std::string, std::string>> holders;  // Names of GPUs, and their holders.
  for (const auto& unit : units_) {
    if (std::ranges::find(demand.candidates, unit.uuid) == demand.candidates.end()) continue;
    std::string holder_text;
    if (const auto holder = session.holder(unit.uuid)) {
      holder_text = "held by " + gpu::to_string(*holder);
    } else if (lost_.contains(unit.uuid)) {
      holder_text = "lost or unusable";
    } else if (in_containers_.contains(unit.uuid)) {
      holder_text = "used by a container whose driver is dead";
    } else if (!unit.processes.empty() &&
               (demand.idle || unit.mode == gpu::ComputeMode::exclusive)) {
      const auto& process = unit.processes[0];
      holder_text = "occupied by process " + std::to_string(process.pid) +
                    (process.name.empty() ? "" : " (" + process.name + ")");
    } else {
      continue;
    }
    const auto known =
        std::ranges::find(holders, holder_text, &std::pair<std::string, std::string>::second);
    if (known == holders.end()) {
      holders.emplace_back(unit.name(), std::move(holder_text));
    } else {
      known->first += " and " + unit.name();
    }
  }
  for (std::size_t i = 0; i < holders.size(); ++i)
    text += (i ? "; " : ": ") + holders[i].first +
            (holders[i].first.find(" and ") == std::string::npos ? " is " : " are ") +
            holders[i].second;
  return text;
}

}  // namespace pipeline::engine
