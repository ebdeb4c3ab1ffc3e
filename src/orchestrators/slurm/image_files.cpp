#include "orchestrators/slurm/image_files.hpp"

#include <cstdio>
#include <ctime>
#include <deque>

#include <fcntl.h>
#include <unistd.h>

#include "async/on_pool.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/lines.hpp"
#include "core/scope_guard.hpp"
#include "docker/image_identity.hpp"
#include "docker/unreachable.hpp"
#include "file_tree/tar_stream.hpp"
#include "orchestrators/containers/container_layout.hpp"
#include "orchestrators/owner.hpp"
#include "orchestrators/processes/installer.hpp"
#include "orchestrators/processes/process.hpp"
#include "orchestrators/processes/virtual_environment.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t identity_length = 32, max_lines = 10;
/// Makes `pipe`'s files of the same image differ where they are made in another way.
constexpr const char* format = "1";

/// An image has no mount point of pipe's, and a read-only one can be given none.
async::Task<> add_mount_point(docker::EngineApi& engine, const std::string& container,
                              core::CancelSource& cancel) {
  const std::function<net::BodySource()> tar = [] {
    file_tree::ContextFile folder;
    folder.path = std::string(containers::container_folder).substr(1);
    folder.mode = 0755;
    folder.kind = file_tree::ContextFile::Kind::directory;
    return file_tree::tar_stream({folder});
  };
  co_await engine.put_archive(container, "/", tar, cancel);
}

/// A login node seldom has an engine.
core::EnvironmentError no_engine(const std::string& step, const docker::UnreachableEngine& error) {
  std::vector<std::string> advice{
      "`export DOCKER_HOST=ssh://HOST` names the engine of another machine; rootless Podman on "
      "this one is enough, too",
      "without `container_runtime` in the profile, it runs in a virtual environment, which takes "
      "no engine"};
  advice.insert(advice.end(), error.advice().begin(), error.advice().end());
  return core::EnvironmentError(
      "'" + step + "' runs in an image, which is made on an engine, and " + error.what(),
      std::move(advice));
}

}  // namespace

bool names_image(const StepSpec& step) {
  const auto& docker = step.settings->docker;
  return docker.parent_image.has_value() || docker.dockerfile.has_value();
}

std::int64_t seconds_of(const std::string& time) {
  std::tm parts{};
  if (std::sscanf(time.c_str(), "%d-%d-%dT%d:%d:%d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6)
    return 0;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return std::max<std::int64_t>(0, timegm(&parts));
}

ImageFiles::ImageFiles(asio::io_context& loop, processes::ProcessReaper& reaper,
                       const OrchestratorOptions& options)
    : engine_(loop, docker::find_endpoint(), docker::limits_from_environment(), options.run),
      images_(loop, engine_, options),
      reaper_(reaper),
      run_(options.run_id),
      state_(options.state),
      made_(loop) {}

async::Task<Environment> ImageFiles::environment(const StepSpec& step) {
  Environment environment;
  try {
    environment = co_await images_.environment(step);
  } catch (const docker::UnreachableEngine& error) {
    throw no_engine(step.name, error);
  }
  if (!environment.ready) co_return environment;
  const auto image = co_await images_.image_of(step);
  const auto known = co_await look_up(image.id);
  const bool is_made = co_await can_be_used(known.file);
  if (!is_made) {
    environment.ready = false;
    environment.reason = "its SquashFS file for the nodes is made";
  }
  co_return environment;
}

async::Task<std::string> ImageFiles::packages(const StepSpec& step) {
  return images_.packages(step);
}

async::Task<> ImageFiles::lock(const StepSpec& step, EventSink& events,
                               core::CancelSource& cancel) {
  return images_.builder().lock(step, events, cancel);
}

async::Task<Environment> ImageFiles::prepare(const StepSpec& step, EventSink& events,
                                             core::CancelSource& cancel) {
  auto environment = co_await images_.prepare(step, events, cancel);
  const auto image = co_await images_.image_of(step);
  const auto platform = step.settings->docker.platform.value_or("");
  const std::function<async::Task<std::string>()> work = [&]() {
    return make(image.id, step.name, platform, events, cancel);
  };
  co_await made_.get(image.id, work, &cancel);
  co_return environment;
}

async::Task<ImageFile> ImageFiles::file_of(const StepSpec& step) {
  const auto image = co_await images_.image_of(step);
  const auto known = co_await look_up(image.id);
  if (!is_whole_squashfs(known.file))
    throw core::EnvironmentError("the image file " + known.file.string() + " is not there",
                                 {"run again: it will be made again"});
  co_return ImageFile{known.file, known.variables, image.program, image.id};
}

async::Task<ImageFiles::Known> ImageFiles::look_up(std::string image) {
  if (const auto found = known_.find(image); found != known_.end()) co_return found->second;
  const auto inspected = co_await engine_.inspect_image(image);
  if (!inspected)
    throw core::EnvironmentError("the engine has the image " + image + " no more",
                                 {"run again: it will be made again"});
  Known known;
  known.file = squashfs_folder() / (docker::image_identity(*inspected).substr(0, identity_length) +
                                    "-" + format + ".sqsh");
  known.created = seconds_of(inspected->value("Created", std::string()));
  const auto variables = inspected->value(json::json_pointer("/Config/Env"), json());
  if (variables.is_array())
    for (const auto& variable : variables) {
      const auto text = variable.get<std::string>();
      const auto end = text.find('=');
      if (end != text.npos) known.variables[text.substr(0, end)] = text.substr(end + 1);
    }
  co_return known_.emplace(image, std::move(known)).first->second;
}

async::Task<std::string> ImageFiles::make(std::string image, std::string step, std::string platform,
                                          EventSink& events, core::CancelSource& cancel) {
  const auto known = co_await look_up(image);
  if (co_await can_be_used(known.file)) co_return known.file.string();
  core::make_folders(known.file.parent_path());
  const auto name = known.file.filename().string();
  const auto lock = co_await processes::take_lock(
      known.file.string() + ".lock",
      [&] {
        events.emit(event::Notice{step, "waiting for another `pipe`, which is making " + name});
      },
      cancel);
  if (co_await can_be_used(known.file)) co_return known.file.string();
  const auto begin = std::chrono::steady_clock::now();
  events.emit(event::BuildStarted{name, {step}, "the SquashFS file of its image for the nodes"});
  std::exception_ptr error;
  std::optional<Failure> failure;
  try {
    co_await make_locked(known, image, platform, cancel);
  } catch (const core::EnvironmentError& failed) {
    error = std::current_exception();
    failure = Failure{
        cancel.level() == core::StopLevel::none ? FailureKind::environment : FailureKind::cancelled,
        failed.what(),
        failed.advice(),
        {}};
  }
  events.emit(event::BuildFinished{name, name,
                                   std::chrono::duration_cast<std::chrono::milliseconds>(
                                       std::chrono::steady_clock::now() - begin),
                                   failure});
  if (error) std::rethrow_exception(error);
  co_return known.file.string();
}

/// Programs of Debian 12 write equal files for equal images: their times are those of the image, as
/// SOURCE_DATE_EPOCH says of what the engine has added.
async::Task<> ImageFiles::make_locked(const Known& known, std::string image, std::string platform,
                                      core::CancelSource& cancel) {
  processes::ProcessOptions process;
  process.environment = processes::caller_variables();
  process.program = processes::find_program("mksquashfs", process.environment["PATH"]);
  if (process.program.empty())
    throw core::EnvironmentError("mksquashfs, which makes images for the nodes, is not on PATH",
                                 {"install it here (Debian, Ubuntu, Fedora: squashfs-tools, 4.5 or "
                                  "newer)"});
  const core::TemporaryFolder work(known.file.parent_path());
  const auto tar = work.path() / "files.tar", made = work.path() / "image.sqsh";
  co_await export_files(image, platform, tar, cancel);
  const auto command = core::shell_quote(process.program.string()) + " - " +
                       core::shell_quote(made.string()) +
                       " -tar -comp zstd -Xcompression-level 3 -all-root -root-mode 755"
                       " -no-progress -quiet <" +
                       core::shell_quote(tar.string());
  process.arguments = {"sh", "-c", "exec " + command};
  process.program = "/bin/sh";
  process.environment["SOURCE_DATE_EPOCH"] = std::to_string(known.created);
  process.folder = work.path();
  std::deque<std::string> last;
  core::Lines lines;
  const auto end = co_await processes::run_process(process, reaper_, cancel,
                                                   [&](Stream, std::string_view bytes) {
                                                     lines.feed(bytes, [&](std::string_view line) {
                                                       last.emplace_back(line);
                                                       if (last.size() > max_lines)
                                                         last.pop_front();
                                                     });
                                                   });
  if (cancel.level() != core::StopLevel::none)
    throw core::EnvironmentError("stopped while an image was made for the nodes");
  if (!end.exited || end.code != 0 || !is_whole_squashfs(made)) {
    std::string said;
    for (const auto& line : last) said += (said.empty() ? ": " : "; ") + line;
    throw core::EnvironmentError(
        "mksquashfs could not make the image for the nodes" + core::printable(said),
        {"it has to read tar archives and to know zstd, as squashfs-tools from 4.5 on do",
         "the image takes room in " + known.file.parent_path().string() + " (PIPE_CACHE_DIR)"});
  }
  core::sync_to_disk(made);
  const auto record = [&] { record_content(made, known.file); };
  co_await async::on_pool(pool_, record);
  fs::rename(made, known.file);
}

async::Task<bool> ImageFiles::can_be_used(fs::path file) {
  const auto check = [&] { return is_whole_squashfs(file) && has_recorded_content(file); };
  co_return co_await async::on_pool(pool_, check);
}

async::Task<> ImageFiles::export_files(std::string image, std::string platform, const fs::path& tar,
                                       core::CancelSource& cancel) {
  json body;
  body["Image"] = image;
  body["Entrypoint"] = {"/never-started"};
  body["Labels"]["pipe.run"] = run_;
  body["Labels"]["pipe.state"] = owner_of(state_);
  const auto name = "pipe-" + run_ + "-files-" + image.substr(image.find(':') + 1, 12);
  const auto container =
      co_await engine_.create_container(name, std::move(body), platform, &cancel);
  std::exception_ptr error;
  try {
    co_await add_mount_point(engine_, container, cancel);
    const core::Descriptor file(
        ::open(tar.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file) throw core::system_error("cannot write " + tar.string(), errno);
    const std::function<void(std::string_view)> on_bytes = [&](std::string_view bytes) {
      core::write_fully(file.get(), bytes, tar);
    };
    co_await engine_.get_archive(container, "/", on_bytes, cancel);
  } catch (...) {
    error = std::current_exception();
  }
  co_await engine_.remove_container(container);
  if (error) std::rethrow_exception(error);
}

}  // namespace pipeline::orchestrators::slurm
