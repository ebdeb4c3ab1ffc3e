#include "engine/data/pinned_data.hpp"

#include <algorithm>
#include <set>

#include "async/parallel.hpp"
#include "core/error.hpp"
#include "core/quantity.hpp"
#include "engine/data/data_input.hpp"
#include "engine/data/download.hpp"
#include "engine/run/refusal.hpp"
#include "lockfile/lock_file.hpp"
#include "model/step_span.hpp"

namespace pipeline::engine {
namespace {

constexpr std::size_t max_fetched_at_once = 8, max_asked_at_once = 64;
/// A plan does not wait long for a server.
constexpr async::RetryPolicy plan_retries{.first_pause = std::chrono::milliseconds(300),
                                          .max_pause = std::chrono::milliseconds(1000),
                                          .max_tries = 3};

std::string address_of(const DataSpec& data) {
  return lockfile::data_address(data.url, data.version);
}

/// Returns the names that the pipeline's inputs give to each address.
std::map<std::string, std::set<std::string>> names_of(const PipelineSpec& pipeline) {
  std::map<std::string, std::set<std::string>> names;
  for (const auto& step : pipeline.steps)
    for (const auto& input : step.inputs)
      if (input.data && is_locked_data(*input.data))
        names[address_of(*input.data)].insert(input.name);
  return names;
}

/// Returns what the server says about the data, as an entry of the lock file without a digest.
lockfile::LockedData entry_without_digest(const DataSpec& data, const fetch::ContentState& state) {
  return {.address = address_of(data),
          .sha256 = {},
          .size = state.size.value_or(0),
          .files = state.objects.size(),
          .etag = state.etag,
          .modified = state.modified,
          .version = state.version};
}

}  // namespace

bool is_locked_data(const DataSpec& data) { return !data.url.empty() && data.sha256.empty(); }

PinnedData::PinnedData(const Services& services)
    : pipeline_(services.pipeline), lock_(services.lock) {
  if (lock_) lock_->use_data(names_of(pipeline_));
}

std::optional<lockfile::LockedData> PinnedData::of(const DataSpec& data) const {
  if (!is_locked_data(data))
    return lockfile::LockedData{.address = address_of(data), .sha256 = data.sha256};
  const auto* found = lock_ ? lock_->find_data(address_of(data)) : nullptr;
  return found ? std::optional(*found) : std::nullopt;
}

/// Returns the inputs of the steps with is_locked_data(), each address once.
std::vector<PinnedData::LockedInput> PinnedData::inputs_of(
    const std::vector<const StepSpec*>& steps) const {
  std::vector<LockedInput> found;
  std::set<std::string> seen;
  for (const auto* step : steps)
    for (const auto& input : step->inputs) {
      if (!input.data || !is_locked_data(*input.data)) continue;
      auto address = address_of(*input.data);
      if (seen.insert(address).second) found.push_back({&*input.data, std::move(address)});
    }
  return found;
}

std::vector<core::Diagnostic> PinnedData::missing(const std::vector<const StepSpec*>& steps) const {
  std::vector<core::Diagnostic> wrong;
  std::set<std::string> seen;
  for (const auto* step : steps)
    for (const auto& input : step->inputs) {
      if (!input.data || of(*input.data) || !seen.insert(address_of(*input.data)).second) continue;
      const auto file = lock_ ? lock_->path().filename().string() : "the lock file";
      core::Diagnostic diagnostic;
      diagnostic.code = "lock-differs";
      diagnostic.message = "the input '" + input.name + "' of step '" + step->name + "', " +
                           name_of(*input.data) + ", is not in " + file +
                           ", and --locked adds nothing to it";
      diagnostic.span = model::span_of(*step);
      diagnostic.suggestion = "run `pipe lock`, look at `git diff`, and commit " + file;
      wrong.push_back(std::move(diagnostic));
    }
  return wrong;
}

async::Task<> PinnedData::lock(const std::vector<const StepSpec*>& steps, Downloads& downloads,
                               EventSink& events, core::CancelSource& stop) {
  if (!lock_) co_return;
  if (lock_->options().frozen) {
    refuse(missing(steps), pipeline_);
    co_return;
  }
  auto wanted = inputs_of(steps);
  std::erase_if(wanted, [&](const LockedInput& each) {
    return lock_->find_data(each.address) && !lock_->upgrades_data(each.address);
  });
  // Stays empty for data that has not changed; has no digests in a dry run.
  std::vector<lockfile::LockedData> entries(wanted.size());
  const std::function<async::Task<>(std::size_t)> fetch = [&](std::size_t i) -> async::Task<> {
    const auto& data = *wanted[i].data;
    const auto state = co_await downloads.state(data, stop, fetch::source_retries);
    const auto found = entry_without_digest(data, state);
    const auto* before = lock_->find_data(found.address);
    if (before && lockfile::is_same_content(*before, found)) co_return;
    entries[i] = found;
    if (lock_->options().dry_run) co_return;
    const auto digest = co_await downloads.fetch_new(data, state);
    entries[i].sha256 = digest.hex();
    if (!state.size) entries[i].size = downloads.size_of(digest);
  };
  std::exception_ptr error;
  try {
    co_await async::for_each(wanted.size(), max_fetched_at_once, fetch);
  } catch (...) {
    error = std::current_exception();
  }
  // After an error, what was fetched is locked all the same, so that it is not fetched again.
  std::erase_if(entries, [&](const auto& each) {
    return each.address.empty() || (each.sha256.empty() && !lock_->options().dry_run);
  });
  if (!entries.empty())
    if (auto notice = lock_->put_data(std::move(entries)); !notice.empty())
      events.emit(event::Notice{"", std::move(notice)});
  if (error) std::rethrow_exception(error);
}

async::Task<> PinnedData::find_changes(const std::vector<const StepSpec*>& steps,
                                       Downloads& downloads, core::CancelSource& stop) {
  if (!lock_ || lock_->options().frozen) co_return;
  auto wanted = inputs_of(steps);
  std::erase_if(wanted, [&](const LockedInput& each) {
    return !each.data->version.empty() && lock_->find_data(each.address);
  });
  std::map<std::string, std::string> silent;  // Servers that do not respond, with the error.
  const std::function<async::Task<>(std::size_t)> ask_for = [&](std::size_t i) -> async::Task<> {
    const auto& data = *wanted[i].data;
    const auto server = fetch::address_of(data.url, {}).server();
    const auto* locked = lock_->find_data(wanted[i].address);
    auto& findings = findings_[wanted[i].address];
    std::string problem;
    if (const auto known = silent.find(server); known != silent.end()) {
      problem = known->second;
    } else {
      try {
        const auto state = co_await downloads.state(data, stop, plan_retries);
        const auto found = entry_without_digest(data, state);
        if (!locked)
          findings = {"is not in " + lock_->path().filename().string() + " yet: " +
                      core::format_bytes(static_cast<Bytes>(found.size)) + " at the source"};
        else if (!lockfile::is_same_content(*locked, found))
          findings = downloads.changes_since(*locked, found, state);
      } catch (const fetch::Unreachable& error) {
        problem = error.what();
        silent.emplace(server, problem);
      } catch (const core::EnvironmentError& error) {
        problem = error.what();
      }
    }
    if (!problem.empty()) findings = {"cannot find out whether it has changed: " + problem};
  };
  co_await async::for_each(wanted.size(), max_asked_at_once, ask_for);
}

std::vector<std::string> PinnedData::changes_at_source(const InputSpec& input) const {
  if (!input.data || !is_locked_data(*input.data)) return {};
  const auto found = findings_.find(address_of(*input.data));
  if (found == findings_.end()) return {};
  std::vector<std::string> lines;
  for (const auto& line : found->second) lines.push_back("data " + input.name + ": " + line);
  if (!lines.empty() && found->second.front() == changed_at_source_line)
    lines.front() += ": run `pipe lock --upgrade " + input.name + "`";
  return lines;
}

}  // namespace pipeline::engine
