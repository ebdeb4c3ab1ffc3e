#include "orchestrators/slurm/job_monitor.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/file.hpp"
#include "orchestrators/slurm/job_script.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

using namespace std::chrono_literals;

constexpr auto event_pause = 100ms;
constexpr const char* cancelled = "CANCELLED";
/// Pause between two questions to Slurm: after a change, and when nothing has changed for long.
constexpr std::chrono::milliseconds min_pause = 2s, max_pause = 30s;
constexpr auto pause_when_expected = 500ms;
/// squeue may not list a job at once that sbatch has just returned.
constexpr auto time_to_be_listed = 5s;

/// Changes the folder, because a network file system may otherwise show an old list of its files
/// for a minute.
void refresh_folder(const std::filesystem::path& folder) {
  const auto file = folder / ".refresh";
  try {
    core::write_file_atomically(file, "");
    core::remove_tree(file);
  } catch (const core::EnvironmentError&) {  // The disk may be full; the list may be old then.
  }
}

}  // namespace

JobMonitor::JobMonitor(Client& client, std::filesystem::path events,
                       const asio::any_io_executor& executor)
    : client_(client),
      events_(std::move(events)),
      executor_(executor),
      has_work_(executor),
      wants_news_(executor),
      has_settled_(executor),
      pause_(min_pause) {}

async::Task<> JobMonitor::settle() {
  if (!entries_.empty()) co_return;
  if (is_over_) {  // Another caller ends them.
    co_await has_settled_.wait();
    co_return;
  }
  is_over_ = true;
  has_settled_.close();
  has_work_.tell();
  wants_news_.tell();
  const auto looking = std::exchange(looking_, nullptr), asking = std::exchange(asking_, nullptr);
  if (looking) co_await looking->join();
  if (asking) co_await asking->join();
  is_over_ = false;
  has_settled_.open();
  if (!entries_.empty()) start();  // A job was submitted meanwhile.
}

void JobMonitor::start() {
  if (looking_ || is_over_) return;  // settle() calls this again once the former tasks have ended.
  answered_ = Clock::now();
  looking_ = std::make_unique<async::JoinableTask>(executor_, look_for_events());
  asking_ = std::make_unique<async::JoinableTask>(executor_, ask());
}

JobMonitor::Entry& JobMonitor::watch(const std::string& name, const SubmittedJob& job,
                                     std::function<void()> on_change) {
  if (entries_.empty()) answered_ = asked_ = Clock::now();
  auto& entry = entries_[name];
  entry = {};
  entry.job = job;
  entry.submitted = entry.changed = Clock::now();
  entry.on_change = std::move(on_change);
  start();
  has_work_.tell();
  pause_ = std::min(pause_, min_pause);
  wants_news_.tell();
  return entry;
}

void JobMonitor::forget(const std::string& name) { entries_.erase(name); }

void JobMonitor::expect_news() {
  if (pause_ <= pause_when_expected) return;
  pause_ = pause_when_expected;
  wants_news_.tell();
}

JobView JobMonitor::view(const Entry& entry) const {
  const auto now = Clock::now();
  JobView view;
  view.has_begun = entry.has_begun;
  view.has_ended = entry.has_ended;
  view.state = entry.state;
  view.node = entry.node;
  view.is_gone = entry.is_gone;
  view.since_change = std::chrono::duration_cast<std::chrono::seconds>(now - entry.changed);
  view.without_answer = std::chrono::duration_cast<std::chrono::seconds>(now - answered_);
  return view;
}

void JobMonitor::take_event(const std::string& file) {
  for (const std::string_view suffix : {JobPaths::begun_suffix, JobPaths::ended_suffix}) {
    if (!file.ends_with(suffix)) continue;
    const auto found = entries_.find(file.substr(0, file.size() - suffix.size()));
    if (found == entries_.end()) return;
    auto& entry = found->second;
    auto& known = suffix == JobPaths::begun_suffix ? entry.has_begun : entry.has_ended;
    if (known) return;
    known = true;
    if (entry.on_change) entry.on_change();
  }
}

async::Task<> JobMonitor::look_for_events() {
  asio::steady_timer pause(executor_);
  while (!is_over_) {
    if (entries_.empty()) {
      co_await has_work_.wait();
      continue;
    }
    for (const auto& file : core::entries_of(events_)) take_event(file.filename().string());
    pause.expires_after(event_pause);
    co_await pause.async_wait(asio::use_awaitable);
  }
}

bool JobMonitor::knows(const Entry& entry) const {
  const auto now = Clock::now();
  if (now - entry.submitted < time_to_be_listed) return true;
  return !entry.state.empty() && !entry.is_gone && now - answered_ < max_pause + 5s;
}

void JobMonitor::take(const JobQueue& queue, Clock::time_point asked) {
  answered_ = Clock::now();
  error_.clear();
  std::vector<Entry*> changed;
  for (auto& [name, entry] : entries_) {
    if (entry.submitted > asked) continue;
    auto* job = queue.find(entry.job.id);
    // A controller that was killed may give a number again, to another job.
    if (job && job->name != entry.job.name) job = nullptr;
    auto state = job ? job->state : std::string();
    const auto* before = find_state(entry.state);
    const bool has_waited = !entry.has_begun && (!before || before->phase == JobPhase::waiting);
    const bool may_be_cancelled = has_waited || entry.state == cancelled;
    // squeue lists the array of a task that was cancelled before its begin, but not the task.
    if (!job && may_be_cancelled && queue.has_only_array_of(entry.job.id)) state = cancelled;
    const bool is_gone = state.empty();
    if (is_gone && asked - entry.submitted < time_to_be_listed) continue;
    entry.asked = asked;
    const bool is_new_state = is_gone != entry.is_gone || (!is_gone && state != entry.state);
    if (!is_new_state && (!job || job->reason == entry.reason)) continue;
    if (is_new_state) entry.changed = answered_;
    entry.is_gone = is_gone;
    if (!is_gone) entry.state = state;
    if (job) entry.reason = job->reason;
    if (job && !job->node.empty()) entry.node = job->node;
    changed.push_back(&entry);
  }
  pause_ = !changed.empty() ? min_pause : std::min(pause_ * 3 / 2, max_pause);
  for (auto* entry : changed)
    if (entry->on_change) entry->on_change();
}

async::Task<> JobMonitor::ask() {
  while (!is_over_) {
    if (entries_.empty()) {
      co_await wants_news_.wait(Clock::now() + 1s);
      continue;
    }
    if (const auto next = asked_ + pause_; Clock::now() < next) {
      co_await wants_news_.wait(next);
      continue;
    }
    refresh_folder(events_);
    const auto asked = asked_ = Clock::now();
    try {
      auto jobs = co_await client_.jobs();
      take(JobQueue(std::move(jobs)), asked);
    } catch (const core::EnvironmentError& error) {
      error_ = error.what();
      pause_ = std::min(std::max(pause_, min_pause) * 3 / 2, max_pause);
      for (auto& [name, entry] : entries_)
        if (entry.on_change) entry.on_change();
    }
  }
}

bool waits_again(const JobMonitor::Entry& entry, JobMonitor::Clock::time_point ended) {
  const auto* state = entry.is_gone ? nullptr : find_state(entry.state);
  return state && state->phase == JobPhase::waiting && entry.asked > ended;
}

}  // namespace pipeline::orchestrators::slurm
