#include "engine/cache/run_fingerprint.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include "core/digest.hpp"
#include "engine/clock.hpp"
#include "engine/run/journal.hpp"

namespace pipeline::engine {
namespace {

/// Kind of the stored fingerprints, and their first line with the version of the format. `memo` was
/// the name of a fingerprint when the format was made.
constexpr auto fingerprint_kind = "memo";
constexpr std::string_view fingerprint_header = "pipe memo 2";
/// A file that was read sooner than this after its last change could change again within the same
/// tick of the file system's clock.
constexpr std::int64_t racy_nanoseconds = 50'000'000;

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Returns the attributes of a path that must stay the same; `-` if the path does not exist.
/// @param changed receives the time of the last change, in nanoseconds since 1970
std::string stamp_of(const char* path, std::int64_t* changed = nullptr) {
  struct stat status;
  if (::stat(path, &status) != 0) return "-";
  if (changed) *changed = std::max(nanoseconds(status.st_mtim), nanoseconds(status.st_ctim));
  std::string stamp;
  const auto add = [&](auto number) {
    char text[24];
    const auto end = std::to_chars(text, text + sizeof text, number).ptr;
    stamp.append(text, end).push_back('.');
  };
  add(status.st_ino);
  add(status.st_dev);
  add(nanoseconds(status.st_mtim));
  if (!S_ISDIR(status.st_mode)) {
    add(nanoseconds(status.st_ctim));
    add(status.st_size);
  }
  return stamp;
}

std::string value_stamp(const char* name) {
  const char* value = std::getenv(name);
  return value ? core::sha256(value).hex() : "-";
}

std::string_view next_line(std::string_view& text) {
  const auto end = text.find('\n');
  const auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

/// Adds a file, or a folder with everything below it.
void look_at_data(RunFingerprint& fingerprint, const std::filesystem::path& path) {
  fingerprint.add_path(path);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return;
  std::filesystem::recursive_directory_iterator entries(path, error);
  for (; !error && entries != std::filesystem::recursive_directory_iterator();
       entries.increment(error))
    fingerprint.add_path(entries->path());
  if (error) fingerprint.invalidate();
}

/// Returns the fingerprint's run if nothing that it depends on has changed.
/// @param text a fingerprint as save() writes it: each line begins with a letter, `t` for a tag,
/// `f` for a file, `v` for a variable, `e` for an environment and `a` for an artifact
async::Task<std::optional<UnchangedRun>> unchanged_run(std::string_view text,
                                                       orchestrators::Routes& routes,
                                                       store::ArtifactStore& artifacts) {
  if (next_line(text) != fingerprint_header) co_return std::nullopt;
  UnchangedRun found{.run = std::string(next_line(text))};
  const std::string counts(next_line(text));
  char* rest = nullptr;
  found.steps = std::strtoull(counts.c_str(), &rest, 10);
  found.skipped = std::strtoull(rest, nullptr, 10);
  for (auto line = next_line(text); line != "end"; line = next_line(text)) {
    const char letter = line.empty() ? '?' : line[0];
    line.remove_prefix(line.empty() ? 0 : 1);
    const auto space = line.find(' ');
    bool is_same = false;
    if (letter == 't') {
      found.tags.emplace_back(line);
      is_same = true;
    } else if (letter == 'a') {
      is_same = artifacts.is_kept(core::Digest::from_hex(line));
    } else if (letter == 'e') {
      is_same = co_await routes.matches(std::string(line));
    } else if ((letter == 'f' || letter == 'v') && space != std::string_view::npos) {
      const std::string name(line.substr(space + 1));
      is_same = line.substr(0, space) ==
                (letter == 'f' ? stamp_of(name.c_str()) : value_stamp(name.c_str()));
    }
    if (!is_same) co_return std::nullopt;
  }
  co_return found;
}

}  // namespace

void RunFingerprint::add_path(const std::filesystem::path& path) {
  std::int64_t changed = 0;
  auto stamp = stamp_of(path.c_str(), &changed);
  const auto now = now_().time_since_epoch() / std::chrono::nanoseconds(1);
  if (changed > now - racy_nanoseconds || path.native().find('\n') != std::string::npos)
    invalidate();
  files_.push_back({path.string(), std::move(stamp)});
}

void RunFingerprint::add_variable(const std::string& name) {
  variables_.push_back({name, value_stamp(name.c_str())});
}

void RunFingerprint::add_environment(const std::string& environment) {
  if (environment.empty() || environment.find('\n') != std::string::npos) invalidate();
  environments_.push_back(environment);
}

void RunFingerprint::save(store::RunStore& store, const std::string& run, std::size_t steps,
                          std::size_t skipped, const std::vector<std::string>& tags) const {
  const auto key = core::sha256(identity_).hex();
  if (is_invalid_) return store.key_values().remove(fingerprint_kind, key);
  std::string text(fingerprint_header);
  text.append("\n").append(run).append("\n").append(std::to_string(steps));
  if (skipped) text.append(" ").append(std::to_string(skipped));
  text.append("\n");
  for (const auto& tag : tags) text.append("t").append(tag).append("\n");
  for (const auto& [path, stamp] : files_)
    text.append("f").append(stamp).append(" ").append(path).append("\n");
  for (const auto& [name, stamp] : variables_)
    text.append("v").append(stamp).append(" ").append(name).append("\n");
  for (const auto& environment : environments_) text.append("e").append(environment).append("\n");
  for (const auto& artifact : artifacts_) text.append("a").append(artifact.hex()).append("\n");
  text.append("end\n");
  store.key_values().put(fingerprint_kind, key, text);
}

void look_at_sources(RunFingerprint& fingerprint, const Services& services,
                     const std::vector<std::filesystem::path>& sources,
                     const std::vector<const StepSpec*>& steps) {
  for (const auto& path : sources) fingerprint.add_path(path);
  std::set<const void*> seen;
  std::set<std::filesystem::path> paths;
  for (const auto* step : steps) {
    const auto& files = services.code.files(*step);
    if (seen.insert(&files).second)
      for (const auto& file : files) fingerprint.add_path(file.source);
    for (const auto& [name, value] : step->environment)
      if (!value) fingerprint.add_variable(name);
    for (const auto& input : step->inputs)
      if (input.data && !input.data->artifact.empty())
        fingerprint.invalidate();  // Another version may be current by the next run.
      else if (input.data && input.data->url.empty() && paths.insert(input.data->path).second)
        look_at_data(fingerprint, input.data->path);
    if (const auto& function = step->program;
        function && seen.insert(function->program.get()).second) {
      fingerprint.add_path(function->program->executable);
      for (const auto& library : function->program->libraries) fingerprint.add_path(library);
    }
    // A step that runs each time, whose result grows too old, or that takes a secret, must be
    // checked by each run. A step that waits for a failure does not run in a run that succeeds.
    if ((!step->cache && step->run_on != RunOn::failure) || step->cache_max_age ||
        !step->secrets.empty())
      fingerprint.invalidate();
  }
}

async::Task<std::optional<RunSummary>> reuse_by_fingerprint(orchestrators::Routes& routes,
                                                            store::RunStore& store,
                                                            store::ArtifactStore& artifacts,
                                                            EventSink& events,
                                                            EngineOptions options) {
  const auto began = Clock::now();
  const auto identity = core::sha256(options.identity).hex();
  const auto text = store.key_values().find(fingerprint_kind, identity);
  if (!text || !text->ends_with("\nend\n")) co_return std::nullopt;
  const auto unchanged = co_await unchanged_run(*text, routes, artifacts);
  if (!unchanged) co_return std::nullopt;
  co_return Journal::reuse_whole_run(store, events, options, *unchanged, began);
}

}  // namespace pipeline::engine
