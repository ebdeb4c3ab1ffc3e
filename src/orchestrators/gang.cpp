#include "orchestrators/gang.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <random>
#include <system_error>

#include "async/sleep.hpp"
#include "async/task_group.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/quantity.hpp"
#include "orchestrators/failure_of.hpp"
#include "orchestrators/layout.hpp"
#include "orchestrators/odd_rank.hpp"

namespace pipeline::orchestrators {
namespace {

namespace fs = std::filesystem;
using TimePoint = std::chrono::steady_clock::time_point;

/// Pause after the first failure that is seen, before the other processes are stopped. A process
/// that loses a failed peer fails, too, and its end may be seen before that of the peer.
constexpr std::chrono::milliseconds time_to_fail{100};

/// Returns whether the path is a folder itself. A step may have replaced its folder by a link, and
/// files behind a link are not the step's.
bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() == fs::file_type::directory;
}

/// Moves a file, or a folder that may be read-only, into another folder of the file system.
void move_entry(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  const int why = errno;
  struct stat status {};
  const bool is_closed = why == EACCES && ::lstat(from.c_str(), &status) == 0 &&
                         S_ISDIR(status.st_mode) && ::chmod(from.c_str(), 0700) == 0;
  if (!is_closed || ::rename(from.c_str(), to.c_str()) != 0)
    throw core::system_error("cannot move " + from.string() + " to " + to.string(), why);
  ::chmod(to.c_str(), status.st_mode & 07777);
}

template <class T>
void add(std::optional<T>& sum, const std::optional<T>& value) {
  if (value) sum = sum.value_or(T{}) + *value;
}

void add(core::Usage& sum, const core::Usage& usage) {
  add(sum.user, usage.user);
  add(sum.system, usage.system);
  add(sum.peak_memory, usage.peak_memory);
  add(sum.memory_limit, usage.memory_limit);
  add(sum.read, usage.read);
  add(sum.written, usage.written);
  add(sum.memory_kills, usage.memory_kills);
}

/// Returns the indices of the GPUs that a process uses. If it sees one GPU for each process of its
/// node, that is assumed to be the GPU of its local rank.
std::vector<unsigned> taken_gpus(const AttemptSpec& spec, unsigned rank) {
  const auto& process = *spec.process;
  const bool has_one_of_many = spec.gpus.size() == process.local_ranks && spec.gpus.size() > 1;
  std::vector<unsigned> indices;
  for (std::size_t i = 0; i < spec.gpus.size(); ++i)
    if (!has_one_of_many || i == rank % process.local_ranks) indices.push_back(spec.gpus[i].index);
  return indices;
}

/// Returns `rank 3 of 4, on node 1, GPU 5`.
std::string title_of(const AttemptSpec& spec, unsigned rank) {
  const auto& process = *spec.process;
  std::string title = "rank " + std::to_string(rank) + " of " + std::to_string(process.ranks) +
                      ", on node " + std::to_string(process.node);
  for (const auto index : taken_gpus(spec, rank)) title += ", GPU " + std::to_string(index);
  return title;
}

/// Fills in the end of a process that is a session itself, without an agent.
void add_end(const AttemptResult& result, NodeProcessEnd& end) {
  end.exit_code = result.signal > 0 ? 128 + result.signal : result.exit_code;
  end.usage = result.usage;
  if (result.began && result.ended)
    end.running =
        std::chrono::duration_cast<std::chrono::milliseconds>(*result.ended - *result.began);
}

/// Fills in the end of a process as the agent of its node reported it.
/// @param began when the command of the node started
void add_end(const RankEnd& reported, std::optional<TimePoint> began, NodeProcessEnd& end) {
  end.exit_code = reported.code;
  end.usage.user = reported.cpu;
  end.usage.peak_memory = reported.peak_memory;
  // The node's clock may be ahead of this machine's.
  const auto time = std::min(reported.time, std::chrono::steady_clock::now());
  if (began && time > *began)
    end.running = std::chrono::duration_cast<std::chrono::milliseconds>(time - *began);
}

}  // namespace

RankLog::RankLog(LogSink& log, unsigned rank, std::function<void(const RankEnd&)> on_end)
    : log_(log), prefix_(rank_prefix(rank)), on_end_(std::move(on_end)) {}

void RankLog::write(Stream stream, std::string_view bytes) {
  lines_[static_cast<int>(stream)].feed(bytes, [&](std::string_view line) { pass(stream, line); });
}

void RankLog::finish() {
  for (const auto stream : {Stream::out, Stream::err}) {
    auto& lines = lines_[static_cast<int>(stream)];
    if (!lines.rest().empty()) pass(stream, lines.rest());
    lines.clear();
  }
}

void RankLog::pass(Stream stream, std::string_view line) {
  if (on_end_ && line.starts_with('!')) {
    if (const auto end = rank_end_of(line)) on_end_(*end);
    return;
  }
  if (on_end_ && rank_of_line(line)) return log_.write(stream, std::string(line) + "\n");
  log_.write(stream, prefix_ + std::string(line) + "\n");
}

Gang::Member::Member(const Attempt& whole, AttemptSpec spec,
                     std::function<void(const RankEnd&)> on_end)
    : log(whole.io.log, spec.process->rank, std::move(on_end)),
      attempt{std::move(spec),
              {.log = log, .cancel = stop, .replace_checkpoint = whole.io.replace_checkpoint}} {}

Gang::Gang(AttemptRunner& runner, const Attempt& attempt, std::chrono::milliseconds max_pause)
    : runner_(runner),
      attempt_(attempt),
      spec_(attempt.step.nodes),
      max_pause_(max_pause),
      processes_(processes_of(spec_, attempt.gpus.size() / spec_.count)) {}

async::Task<AttemptResult> Gang::run() {
  for (;;) {
    auto result = co_await try_once();
    if (attempt_.io.cancel.level() != core::StopLevel::none) co_return result;
    if (addresses_.gives_back && failed_rank_)
      co_await give_back(result);
    else if (!begins_again(result))
      co_return result;
    reset();
  }
}

/// Removes what the try has left, and pauses for a random time, because another gang may have
/// released its nodes at the same moment to make room for this one.
async::Task<> Gang::give_back(AttemptResult& result) {
  if (result.cleanup) result.cleanup();
  co_await runner_.settle();
  static std::minstd_rand random{std::random_device{}()};
  const auto pause = pause_of(max_pause_, random);
  attempt_.io.log.write(Stream::err, rank_prefix(*failed_rank_) + "[nodes] " +
                                         result.failure->message +
                                         ": the step releases all nodes, and tries again in " +
                                         core::format_duration(pause) + "\n");
  co_await async::sleep(pause, &attempt_.io.cancel);
}

/// Returns whether all processes are to start again. Agents restart their processes themselves, so
/// a failure that reaches the gang is final.
bool Gang::begins_again(const AttemptResult& result) {
  const auto& failure = result.failure;
  const bool has_ended_itself =
      failure && (failure->kind == FailureKind::exit_code || failure->kind == FailureKind::signal ||
                  failure->kind == FailureKind::out_of_memory);
  if (addresses_.has_agents || !has_ended_itself || !failed_rank_ || restarts_ >= spec_.restarts)
    return false;
  attempt_.io.log.write(Stream::err, rank_prefix(*failed_rank_) + "[nodes] " + failure->message +
                                         "; all processes start again (restart " +
                                         std::to_string(++restarts_) + " of " +
                                         std::to_string(spec_.restarts) + ")\n");
  return true;
}

void Gang::reset() {
  members_.clear();
  addresses_ = {};
  over_.rearm();
  ended_.rearm();
  begun_ = 0;
  failed_rank_.reset();
}

async::Task<AttemptResult> Gang::try_once() {
  AttemptResult refused;
  try {
    addresses_ = co_await runner_.connect_nodes(attempt_, spec_.count, spec_.count * processes_);
    addresses_.restarts = restarts_;
    if (addresses_.gpus > 0) processes_ = processes_of(spec_, addresses_.gpus);
  } catch (const core::EnvironmentError& error) {
    refused.failure = failure_of(error);
  }
  if (refused.failure) co_return refused;
  std::exception_ptr error;
  try {
    make_members();
    co_await run_members();
  } catch (...) {
    error = std::current_exception();
  }
  co_await runner_.disconnect_nodes(attempt_);
  for (const auto& member : members_)
    if (!error) error = member.error;
  if (error) std::rethrow_exception(error);
  co_return result();
}

async::Task<std::vector<std::string>> Gang::waits() const {
  std::vector<std::string> lines;
  WaitsByRank waits;
  for (const auto& member : members_) {
    if (member.has_ended) continue;
    const auto& process = *member.attempt.process;
    auto own = co_await runner_.waits_of(member.attempt);
    waits.emplace_back(process.rank, own);
    // An agent reports the waits of all processes of its node.
    const auto prefix = addresses_.has_agents && processes_ > 1
                            ? "node " + std::to_string(process.node) + ": "
                            : rank_prefix(process.rank);
    for (auto& line : own) lines.push_back(prefix + std::move(line));
  }
  auto odd = odd_rank_text(waits, addresses_.has_agents ? processes_ : 1);
  if (!odd.empty()) lines.insert(lines.begin(), std::move(odd));
  co_return lines;
}

async::Task<ActivityByRank> Gang::activity() const {
  ActivityByRank all;
  for (const auto& member : members_) {
    if (member.has_ended) continue;
    const auto done = co_await runner_.activity_of(member.attempt);
    if (!done) co_return ActivityByRank{};
    all.emplace_back(member.attempt.process->rank, *done);
  }
  co_return all;
}

RunningProcess Gang::process_of(unsigned rank) const {
  const auto node = rank / processes_;
  return {.run_id = attempt_.run_id,
          .step = attempt_.step.name,
          .number = attempt_.number,
          .rank = rank,
          .first_rank_of_node = node * processes_,
          .node = node};
}

void Gang::make_members() {
  const auto ranks = spec_.count * processes_;
  const auto step = addresses_.has_agents ? processes_ : 1;
  for (unsigned rank = 0; rank < ranks; rank += step) {
    const NodeProcess process{
        .rank = rank,
        .ranks = ranks,
        .node = rank / processes_,
        .nodes = spec_.count,
        .local_rank = rank % processes_,
        .local_ranks = processes_,
        .gpus_of_node = addresses_.gpus > 0 ? addresses_.gpus : attempt_.gpus.size() / spec_.count,
        .addresses = &addresses_};
    std::function<void(const RankEnd&)> on_end;
    if (addresses_.has_agents)
      on_end = [this, node = process.node](const RankEnd& end) { take_end(members_[node], end); };
    auto& member = members_.emplace_back(attempt_, spec_of(process), std::move(on_end));
    member.attempt.io.on_began = [this, &member](std::chrono::milliseconds ago) {
      begin(member, ago);
    };
  }
}

std::vector<AssignedGpu> Gang::gpus_of(const NodeProcess& process) const {
  auto count = attempt_.gpus.size() / spec_.count;
  auto first = process.node * count;
  if (spec_.visible == VisibleGpus::own && !addresses_.has_agents) {
    count /= process.local_ranks;
    first += process.local_rank * count;
  }
  const auto from = attempt_.gpus.begin() + static_cast<std::ptrdiff_t>(first);
  return {from, from + static_cast<std::ptrdiff_t>(count)};
}

fs::path Gang::outputs_of(unsigned node) const {
  if (node == 0) return attempt_.outputs;
  return attempt_.outputs.parent_path() / "nodes" / std::to_string(node) / "outputs";
}

AttemptSpec Gang::spec_of(const NodeProcess& process) const {
  AttemptSpec spec = attempt_;
  spec.outputs = outputs_of(process.node);
  if (process.rank > 0)
    spec.scratch = attempt_.outputs.parent_path() / "nodes" / std::to_string(process.node) /
                   ("scratch." + std::to_string(process.local_rank));
  for (const auto& folder : {spec.outputs, spec.scratch}) core::make_folders(folder);
  spec.gpus = gpus_of(process);
  spec.process = process;
  return spec;
}

async::Task<> Gang::run_members() {
  const core::CancelSource::Listener from_outside(attempt_.io.cancel,
                                                  [this](core::StopLevel level) { stop(level); });
  const auto executor = co_await asio::this_coro::executor;
  async::TaskGroup group(executor), watch(executor);
  watch.spawn(stop_others());
  for (auto& member : members_) group.spawn(run_member(member));
  co_await group.join();
  ended_.stop(core::StopLevel::graceful);
  over_.stop(core::StopLevel::graceful);
  co_await watch.join();
}

/// Waits until the attempt is over, and then stops the processes that still run.
async::Task<> Gang::stop_others() {
  constexpr std::chrono::hours no_limit{24};  // The stop of `over_` ends the pause.
  while (over_.level() == core::StopLevel::none) co_await async::sleep(no_limit, &over_);
  if (failed_rank_) co_await async::sleep(time_to_fail, &ended_);
  if (ended_.level() == core::StopLevel::none) stop(core::StopLevel::graceful);
}

/// After a failure, the agent that reported it is not stopped: it ends the processes of its node
/// itself, and then exits with the failure's exit code, which a signal would replace.
void Gang::stop(core::StopLevel level) {
  const bool is_from_outside = attempt_.io.cancel.level() != core::StopLevel::none;
  for (auto& member : members_)
    if (is_from_outside || !member.failed) member.stop.stop(level);
}

async::Task<> Gang::run_member(Member& member) {
  try {
    member.result = co_await runner_.run(member.attempt);
    member.log.finish();
  } catch (...) {
    member.error = std::current_exception();
  }
  end(member);
}

/// The attempt has begun when all of its processes have.
void Gang::begin(Member& member, std::chrono::milliseconds ago) {
  if (std::exchange(member.has_begun, true) || ++begun_ < members_.size()) return;
  if (attempt_.io.on_began) attempt_.io.on_began(ago);
}

void Gang::end(Member& member) {
  member.has_ended = true;
  const bool has_failed = member.error || member.result.failure;
  const bool is_enough = spec_.done == NodesDone::first && member.attempt.process->rank == 0;
  if (has_failed)
    fail(member.attempt.process->rank);
  else if (is_enough)
    over_.stop(core::StopLevel::graceful);
}

void Gang::take_end(Member& member, const RankEnd& end) {
  const auto first = member.attempt.process->rank;
  // A step can imitate an agent's lines, with ranks of other nodes and with failures of its own.
  if (end.rank < first || end.rank - first >= processes_) return;
  member.ends.insert_or_assign(end.rank, end);
  if (!end.has_failed || member.failed || member.stop.level() != core::StopLevel::none) return;
  member.failed = end;
  fail(end.rank);
}

void Gang::fail(unsigned rank) {
  if (over_.level() != core::StopLevel::none) return;
  if (attempt_.io.cancel.level() == core::StopLevel::none) failed_rank_ = rank;
  over_.stop(core::StopLevel::graceful);
}

/// Compares the times of the failures: the one that was seen first need not be the first.
const Gang::Member* Gang::first_failed() const {
  if (!failed_rank_) return nullptr;
  const auto time_of = [](const Member& member) {
    if (member.failed) return member.failed->time;
    return member.result.ended.value_or(TimePoint::min());
  };
  const auto* first = &members_[addresses_.has_agents ? *failed_rank_ / processes_ : *failed_rank_];
  for (const auto& member : members_) {
    const auto& failure = member.result.failure;
    if (failure && failure->kind != FailureKind::cancelled && time_of(member) < time_of(*first))
      first = &member;
  }
  return first;
}

AttemptResult Gang::result() {
  AttemptResult whole;
  const auto& main = members_.front().result;
  whole.image = main.image;
  whole.node = main.node;
  whole.exit_code = main.exit_code;
  whole.signal = main.signal;
  whole.remove_checkpoint = main.remove_checkpoint;
  std::vector<std::function<void()>> cleanups;
  for (auto& member : members_) {
    auto& result = member.result;
    add(whole.usage, result.usage);
    if (result.began) whole.began = std::min(whole.began.value_or(*result.began), *result.began);
    if (result.ended) whole.ended = std::max(whole.ended.value_or(*result.ended), *result.ended);
    whole.moved_in = std::max(whole.moved_in, result.moved_in);
    whole.moved_out = std::max(whole.moved_out, result.moved_out);
    whole.was_preempted |= result.was_preempted;
    if (result.cleanup) cleanups.push_back(std::move(result.cleanup));
    whole.gpus.insert(whole.gpus.end(), result.gpus.begin(), result.gpus.end());
  }
  if (!cleanups.empty())
    whole.cleanup = [cleanups = std::move(cleanups)] {
      for (const auto& clean_up : cleanups) clean_up();
    };
  if (const auto* failed = first_failed()) {
    take_failure(*failed, whole);
  } else if (attempt_.io.cancel.level() != core::StopLevel::none) {
    const auto stopped = std::ranges::find_if(
        members_, [](const Member& member) { return member.result.failure.has_value(); });
    if (stopped != members_.end()) whole.failure = stopped->result.failure;
  }
  if (!whole.failure) whole.failure = gather_outputs();
  whole.processes = process_ends();
  return whole;
}

std::vector<NodeProcessEnd> Gang::process_ends() const {
  std::vector<NodeProcessEnd> ends;
  for (const auto& member : members_) {
    const auto& process = *member.attempt.process;
    const auto count = addresses_.has_agents ? process.local_ranks : 1;
    for (auto rank = process.rank; rank < process.rank + count; ++rank) {
      auto& end = ends.emplace_back();
      end.rank = rank;
      end.node = process.node;
      end.machine = member.result.node;
      end.gpus = taken_gpus(member.attempt, rank);
      end.has_failed_first = failed_rank_ == rank;
      const auto found = member.ends.find(rank);
      if (!addresses_.has_agents)
        add_end(member.result, end);
      else if (found != member.ends.end())
        add_end(found->second, member.result.began, end);
    }
  }
  return ends;
}

void Gang::take_failure(const Member& member, AttemptResult& result) {
  const auto& spec = member.attempt;
  failed_rank_ = member.failed ? member.failed->rank : spec.process->rank;
  result.failure = member.result.failure.value_or(
      Failure{FailureKind::exit_code, "failed, although its agent exited with code 0", {}, {}});
  result.exit_code = member.result.exit_code;
  result.signal = member.result.signal;
  if (spec.process->ranks > 1)
    result.failure->message = title_of(spec, *failed_rank_) + ", " + result.failure->message;
  if (spec.process->rank == 0 || !is_folder(attempt_.scratch)) return;
  // The engine reads the step's own description of its failure from the attempt's folder.
  std::error_code none;
  const auto file = attempt_.scratch / failure_file_name;
  fs::remove(file, none);
  if (is_folder(spec.scratch)) fs::rename(spec.scratch / failure_file_name, file, none);
}

std::optional<Failure> Gang::gather_outputs() const {
  for (const auto& output : attempt_.output_names) {
    if (!output.from_all_nodes) continue;
    if (auto failure = gather(output)) return failure;
  }
  return std::nullopt;
}

/// Makes the output a folder with an entry for each node, named by its number: moves the file or
/// folder that each node has written into it.
std::optional<Failure> Gang::gather(const AttemptOutput& output) const {
  const auto folder = attempt_.outputs.parent_path() / "nodes" / ("all." + output.name);
  core::make_folders(folder);
  for (unsigned node = 0; node < spec_.count; ++node) {
    const auto own = outputs_of(node);
    const auto from = own / output.file_name;
    std::error_code hidden;
    if (!is_folder(own) || fs::symlink_status(from, hidden).type() == fs::file_type::not_found)
      return Failure{FailureKind::missing_output,
                     "succeeded, but its node " + std::to_string(node) +
                         " did not write the output '" + output.name + "', which is `from: all`",
                     {"each node must write a file or folder at ${outputs." + output.name +
                      "}; an output without `from: all` is the first node's"},
                     {}};
    move_entry(from, folder / std::to_string(node));
  }
  move_entry(folder, attempt_.outputs / output.file_name);
  return std::nullopt;
}

}  // namespace pipeline::orchestrators
