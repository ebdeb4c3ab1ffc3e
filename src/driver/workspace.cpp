#include "driver/workspace.hpp"

#include <cstdlib>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "dsl/builder.hpp"
#include "spec/pipeline_file.hpp"
#include "spec/profile_file.hpp"

namespace pipeline::driver {
namespace {

namespace fs = std::filesystem;

constexpr const char* state_name = ".pipe";

/// Returns the state folder that --state or $PIPE_HOME names; nothing if neither does.
std::optional<fs::path> chosen_state(const WorkspaceOptions& options) {
  if (!options.state.empty()) return fs::absolute(options.state);
  if (const char* home = std::getenv("PIPE_HOME"); home && *home) return fs::absolute(home);
  return std::nullopt;
}

/// Returns advice for a pipeline file that does not exist.
std::string suggest_file(const fs::path& missing) {
  std::vector<std::string> names;
  std::error_code ignored;
  const fs::path folder = missing.parent_path();
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (const auto extension = entry.path().extension();
        (extension == ".yaml" || extension == ".yml") && entry.is_regular_file(ignored))
      names.push_back(shown_path(entry.path()));
  if (auto hint = core::did_you_mean(shown_path(missing), names); !hint.empty()) return hint;
  if (names.size() == 1) return "did you mean '" + names.front() + "'?";
  return "`pipe init` writes a pipeline to start from";
}

}  // namespace

std::string shown_path(const fs::path& path) {
  std::error_code error;
  const auto working_folder = fs::current_path(error);
  if (error) return path.string();
  const auto relative = path.lexically_relative(working_folder);
  if (relative.empty() || *relative.begin() == "..") return path.string();
  const auto shown = relative.string();
  return shown.starts_with('-') ? "./" + shown : shown;  // No command takes it for an option.
}

Workspace::Workspace(WorkspaceOptions options, Note note)
    : options_(std::move(options)), note_(std::move(note)) {}

fs::path Workspace::pipeline_file() const {
  if (options_.program)
    return (options_.root.empty() ? dsl::root_of(*options_.program) : options_.root) /
           options_.program->name();
  if (options_.file.empty())
    throw core::InputError("the name of the pipeline file is empty",
                           "a variable in the command line may be unset");
  auto file = fs::absolute(options_.file).lexically_normal();
  std::error_code error;
  if (fs::is_directory(file, error)) file = (file / "pipeline.yaml").lexically_normal();
  if (!fs::exists(file, error))
    throw core::InputError("there is no file " + shown_path(file), suggest_file(file));
  return file;
}

PipelineSpec Workspace::load_pipeline() const {
  std::vector<std::string> notices;
  auto pipeline = options_.program
                      ? dsl::build(*options_.program, options_.parameters, options_.root)
                      : spec::load(pipeline_file(), {.parameters = options_.parameters,
                                                     .parameter_places = options_.parameter_places,
                                                     .notices = &notices});
  for (const auto& notice : notices) note("note: " + core::printable(notice));
  if (!options_.profile.empty()) {
    const auto folder = pipeline_file().parent_path();
    for (const auto& file : spec::profile_files(folder)) pipeline.sources.push_back(file);
    for (const auto& change : spec::apply(spec::find_profile(options_.profile, folder), pipeline))
      note("note: by profile " + options_.profile + ", " + core::printable(change));
  }
  if (options_.execution_mode == "fail_fast") pipeline.execution_mode = ExecutionMode::fail_fast;
  if (options_.execution_mode == "stop_on_failure")
    pipeline.execution_mode = ExecutionMode::stop_on_failure;
  if (options_.execution_mode == "continue_on_failure")
    pipeline.execution_mode = ExecutionMode::continue_on_failure;
  return pipeline;
}

fs::path Workspace::state_beside(const fs::path& file) const {
  return chosen_state(options_).value_or(file.parent_path() / state_name);
}

std::optional<fs::path> Workspace::existing_state() const {
  return find_state(chosen_state(options_));
}

std::optional<fs::path> Workspace::find_state(std::optional<fs::path> chosen) const {
  std::error_code error;
  if (!chosen && options_.program) chosen = pipeline_file().parent_path() / state_name;
  if (chosen) return fs::is_directory(*chosen, error) ? chosen : std::nullopt;
  for (auto folder = fs::current_path(error); !error; folder = folder.parent_path()) {
    if (fs::is_regular_file(folder / state_name / "pipe.db", error)) return folder / state_name;
    if (folder == folder.root_path()) break;
    error.clear();
  }
  return std::nullopt;
}

fs::path Workspace::required_state() const {
  if (auto state = existing_state()) return *state;
  if (const auto chosen = chosen_state(options_))
    throw core::InputError("there is no state folder " + chosen->string(),
                           "--state and $PIPE_HOME name the folder that `pipe run` has used");
  throw core::InputError("no run has been made in this folder or above it: there is no .pipe",
                         "go to the pipeline's folder, or name its state with --state DIR");
}

std::string Workspace::state_option(const fs::path& folder) const {
  const auto found = find_state(chosen_state(WorkspaceOptions()));  // Without --state.
  if (found && fs::absolute(*found) == fs::absolute(folder)) return {};
  return " --state " + core::shell_quote(shown_path(folder));
}

store::RunStore& Workspace::store(const fs::path& state) {
  if (store_) return *store_;
  std::error_code error;
  const bool is_new = !fs::exists(state, error);
  store_ = std::make_unique<store::RunStore>(state);
  // Git ignores the state folder, which therefore does not make the user's sources dirty.
  if (is_new) core::write_file_atomically(state / ".gitignore", "*\n");
  return *store_;
}

store::ArtifactStore& Workspace::artifacts() {
  if (!artifacts_)
    artifacts_ = std::make_unique<store::ArtifactStore>(store_->folder() / "artifacts");
  return *artifacts_;
}

store::StatIndex& Workspace::stats() {
  if (!stats_) stats_ = std::make_unique<store::StatIndex>(store_->folder() / "stat-index");
  return *stats_;
}

store::RunRecord Workspace::find_run(store::RunStore& store, const std::string& name) const {
  if (auto run = store.runs().find(name)) return *run;
  throw core::InputError(name == "latest"
                             ? "there is no run yet in " + shown_path(store.folder())
                             : "there is no run '" + name + "' in " + shown_path(store.folder()),
                         "`pipe runs` lists them");
}

asio::io_context& Workspace::loop() {
  if (!loop_) loop_ = std::make_unique<asio::io_context>(1);
  return *loop_;
}

remote_driver::DriverContext Workspace::driver_context() { return {loop(), note_, options_.name}; }

}  // namespace pipeline::driver
