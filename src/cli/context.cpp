#include "cli/context.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "dsl/builder.hpp"
#include "spec/pipeline_file.hpp"
#include "spec/profile_file.hpp"

namespace pipeline::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* state_name = ".pipe";

std::optional<fs::path> chosen_state(const Options& options) {
  if (!options.state.empty()) return fs::absolute(options.state);
  if (const char* home = std::getenv("PIPE_HOME"); home && *home) return fs::absolute(home);
  return std::nullopt;
}

std::string suggest_file(const fs::path& missing) {
  std::vector<std::string> names;
  std::error_code ignored;
  const fs::path folder = missing.parent_path();
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (const auto extension = entry.path().extension();
        extension == ".yaml" || extension == ".yml")
      names.push_back(shown_path(entry.path()));
  if (auto hint = core::did_you_mean(shown_path(missing), names); !hint.empty()) return hint;
  if (names.size() == 1) return "did you mean '" + names.front() + "'?";
  return "`pipe init` writes a pipeline to start from";
}

}  // namespace

std::string shown_path(const fs::path& path) {
  std::error_code error;
  const auto here = fs::current_path(error);
  if (error) return path.string();
  const auto relative = path.lexically_relative(here);
  return relative.empty() || *relative.begin() == ".." ? path.string() : relative.string();
}

Context::Context(Options options)
    : options_(std::move(options)), out_(Terminal::of(STDOUT_FILENO)), paint_{out_.colours} {}
Context::~Context() = default;

void Context::print(std::string_view text) const {
  if (const int error = core::write_all(STDOUT_FILENO, text))
    throw core::system_error("cannot write the output", error);
}

void Context::print_file(const fs::path& file) const {
  std::ifstream in(file, std::ios::binary);
  for (std::string piece(1 << 16, '\0'); in;) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    print(std::string_view(piece.data(), static_cast<std::size_t>(in.gcount())));
  }
  if (!in.eof()) throw core::EnvironmentError("cannot read " + file.string());
}

void Context::print_json(const nlohmann::json& document) const {
  print(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void Context::note(std::string_view text) const {
  core::write_all(STDERR_FILENO, std::string(text) + "\n");
}

fs::path Context::pipeline_file() const {
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

PipelineSpec Context::load_pipeline(bool* is_task) const {
  spec::FileNotes notes;
  auto pipeline =
      options_.program
          ? dsl::build(*options_.program, options_.parameters, options_.root)
          : spec::load(pipeline_file(), {.parameters = options_.parameters, .notes = &notes});
  if (is_task) *is_task = notes.is_task;
  for (const auto& notice : notes.notices) note("note: " + core::printable(notice));
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

fs::path Context::state_beside(const fs::path& file) const {
  return chosen_state(options_).value_or(file.parent_path() / state_name);
}

std::optional<fs::path> Context::existing_state(bool without_option) const {
  std::error_code error;
  auto chosen = chosen_state(without_option ? Options() : options_);
  if (!chosen && options_.program) chosen = pipeline_file().parent_path() / state_name;
  if (chosen) return fs::is_directory(*chosen, error) ? chosen : std::nullopt;
  for (auto folder = fs::current_path(error); !error; folder = folder.parent_path()) {
    if (fs::is_regular_file(folder / state_name / "pipe.db", error)) return folder / state_name;
    if (folder == folder.root_path()) break;
    error.clear();
  }
  return std::nullopt;
}

fs::path Context::required_state() const {
  if (auto state = existing_state()) return *state;
  if (const auto chosen = chosen_state(options_))
    throw core::InputError("there is no state folder " + chosen->string(),
                           "--state and $PIPE_HOME name the folder that `pipe run` has used");
  throw core::InputError("no run has been made in this folder or above it: there is no .pipe",
                         "go to the pipeline's folder, or name its state with --state DIR");
}

std::string Context::state_option(const fs::path& folder) const {
  const auto found = existing_state(true);
  if (found && fs::absolute(*found) == fs::absolute(folder)) return {};
  return " --state " + core::shell_quote(shown_path(folder));
}

store::RunStore& Context::store(const fs::path& state) {
  if (store_) return *store_;
  std::error_code error;
  const bool is_new = !fs::exists(state, error);
  store_ = std::make_unique<store::RunStore>(state);
  // The state folder is no part of the user's sources, so git ignores it, and it does not make them
  // dirty.
  if (is_new) core::write_file_atomically(state / ".gitignore", "*\n");
  return *store_;
}

store::ArtifactStore& Context::artifacts() {
  if (!artifacts_)
    artifacts_ = std::make_unique<store::ArtifactStore>(store_->folder() / "artifacts");
  return *artifacts_;
}

store::StatIndex& Context::stats() {
  if (!stats_) stats_ = std::make_unique<store::StatIndex>(store_->folder() / "stat-index");
  return *stats_;
}

store::RunRecord Context::find_run(store::RunStore& store) const {
  if (auto run = store.runs().find(options_.run)) return *run;
  throw core::InputError(
      options_.run == "latest"
          ? "there is no run yet in " + shown_path(store.folder())
          : "there is no run '" + options_.run + "' in " + shown_path(store.folder()),
      "`pipe runs` lists them");
}

asio::io_context& Context::loop() {
  if (!loop_) loop_ = std::make_unique<asio::io_context>(1);
  return *loop_;
}

detached::DriverContext Context::driver_context() {
  return {loop(), [this](std::string_view text) { note(text); }, options_.name};
}

}  // namespace pipeline::cli
