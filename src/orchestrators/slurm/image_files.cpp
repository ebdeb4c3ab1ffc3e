#include "orchestrators/slurm/image_files.hpp"

#include "async/on_pool.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/json_member.hpp"
#include "core/log.hpp"
#include "core/project.hpp"
#include "docker/image_identity.hpp"
#include "docker/package_layers.hpp"
#include "docker/unreachable.hpp"
#include "model/step_span.hpp"
#include "orchestrators/containers/container_layout.hpp"
#include "orchestrators/owner.hpp"
#include "orchestrators/processes/file_lock.hpp"
#include "orchestrators/slurm/image_export.hpp"
#include "orchestrators/slurm/shell_work.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

namespace fs = std::filesystem;

/// The beginning of fingerprints of images that were pulled without an engine.
constexpr std::string_view pulled_prefix = "pulled ";

/// Returns the step without its program, for which no image is made: see program_folder().
StepSpec without_program(const StepSpec& step) {
  auto own = step;
  own.program = {};
  return own;
}

}  // namespace

bool names_image(const StepSpec& step) {
  const auto& docker = step.settings->docker;
  return docker.parent_image.has_value() || docker.dockerfile.has_value();
}

ImageFiles::ImageFiles(asio::io_context& loop, processes::ProcessReaper& reaper,
                       const OrchestratorOptions& options, const std::string& runtime)
    : engine_(loop, docker::find_endpoint(), docker::limits_from_environment(), options.run),
      images_(loop, engine_, options),
      pulled_(loop, reaper, options),
      packages_(loop, reaper, options, runtime),
      reaper_(reaper),
      run_(options.run_id),
      state_(options.state),
      made_(loop) {}

async::Task<bool> ImageFiles::has_engine() {
  if (!has_engine_) {
    try {
      co_await engine_.info();
      has_engine_ = true;
    } catch (const docker::UnreachableEngine& error) {
      core::log::info(std::string("images are pulled without an engine: ") + error.what());
      has_engine_ = false;
    }
  }
  co_return *has_engine_;
}

async::Task<Environment> ImageFiles::environment(const StepSpec& step) {
  const bool on_engine = co_await has_engine();
  if (!on_engine) co_return co_await pulled_environment(step);
  const auto own = without_program(step);
  auto environment = co_await images_.environment(own);
  if (!environment.ready) co_return environment;
  const auto image = co_await images_.image_of(own);
  const auto known = co_await look_up(image.id);
  co_await require_file(environment, known.file);
  co_return environment;
}

std::optional<ImageFiles::PulledStepImage> ImageFiles::find_pulled_image(
    const StepSpec& step) const {
  const auto own = without_program(step);
  auto plan = pulled_.plan(own);
  auto parent = pulled_.find(own, plan);
  if (!parent) return std::nullopt;
  PulledStepImage image{std::move(*parent), {}, {}};
  image.packages = packages_.plan(own, std::move(plan), image.parent.parent);
  image.file = image.parent.file;
  if (image.packages.adds_files() && image.packages.is_known())
    image.file = squashfs_file(
        core::Hasher().field("packages 1").field(image.packages.digest).finish().hex());
  return image;
}

async::Task<Environment> ImageFiles::pulled_environment(const StepSpec& step) {
  Environment environment;
  const auto image = find_pulled_image(step);
  environment.description =
      image && image->packages.is_known()
          ? image->packages.reference
          : step.settings->docker.parent_image.value_or(std::string("its parent image"));
  if (!image) {
    environment.reason = "its parent image is missing: it will be pulled, without an engine";
    co_return environment;
  }
  environment.requirements = image->packages.requirements;
  environment.reason = image->packages.unknown;
  if (!image->packages.is_known()) co_return environment;
  environment.id = core::Hasher()
                       .field(image->packages.digest)
                       .field(containers::runtime_part(step.settings->docker))
                       .finish()
                       .hex();
  environment.ready = true;
  co_await require_file(environment, image->file);
  if (!environment.ready && image->file != image->parent.file)
    environment.reason = "its packages are installed, without an engine: " +
                         docker::describe_layers({}, image->packages.plan.layers);
  const auto fingerprint = environment.ready ? PulledImages::fingerprint_of(step) : std::string();
  if (!fingerprint.empty()) environment.fingerprint = std::string(pulled_prefix) + fingerprint;
  co_return environment;
}

async::Task<> ImageFiles::require_file(Environment& environment, fs::path file) {
  const bool is_made = co_await can_be_used(std::move(file));
  if (is_made) co_return;
  environment.ready = false;
  environment.reason = "its SquashFS file for the nodes is made";
}

async::Task<bool> ImageFiles::matches(std::string fingerprint) {
  const bool on_engine = co_await has_engine();
  const bool is_pulled = fingerprint.starts_with(pulled_prefix);
  if (on_engine == is_pulled) co_return false;  // The image is looked up in another way now.
  if (is_pulled) co_return PulledImages::matches(fingerprint.substr(pulled_prefix.size()));
  co_return co_await images_.matches(std::move(fingerprint));
}

async::Task<std::string> ImageFiles::packages(const StepSpec& step) {
  const bool on_engine = co_await has_engine();
  if (!on_engine) co_return std::string();  // Environment::resolves is not set without an engine.
  const auto own = without_program(step);
  co_return co_await images_.packages(own);
}

async::Task<> ImageFiles::lock(const StepSpec& step, EventSink& events,
                               core::CancelSource& cancel) {
  const bool on_engine = co_await has_engine();
  const auto own = without_program(step);
  if (on_engine) co_return co_await images_.builder().lock(own, events, cancel);
  if (!packages_.has_requirements(own)) co_return;
  auto image = find_pulled_image(own);
  if (image && image->packages.is_known()) co_return;
  if (core::only_looks()) {
    const auto why = image ? image->packages.unknown : std::string("its parent image is missing");
    events.emit(event::Notice{step.name, "its packages are not known until it runs: " + why});
    packages_.keep_all_environments();
    co_return;
  }
  if (!image) image = co_await pull_parent(own, events, cancel);
  if (!image->packages.is_known()) co_await resolve(own, std::move(*image), events, cancel);
}

async::Task<Environment> ImageFiles::prepare(const StepSpec& step, EventSink& events,
                                             core::CancelSource& cancel) {
  const bool on_engine = co_await has_engine();
  if (!on_engine) co_return co_await prepare_pulled(step, events, cancel);
  const auto own = without_program(step);
  auto environment = co_await images_.prepare(own, events, cancel);
  const auto image = co_await images_.image_of(own);
  const auto known = co_await look_up(image.id);
  const ExportedImage exported{image.id, step.settings->docker.platform.value_or(""), run_,
                               owner_of(state_)};
  const FilesWriter write = [&](const fs::path& tar) {
    return export_image(engine_, exported, tar, cancel);
  };
  const docker::BuildReport report{known.file.filename().string(), step.name,
                                   "the SquashFS file of its image for the nodes"};
  const std::function<async::Task<std::string>()> work = [&]() {
    return make(known, report, write, events, cancel);
  };
  co_await made_.get(known.file.string(), work, &cancel);
  co_return environment;
}

async::Task<ImageFiles::PulledStepImage> ImageFiles::pull_parent(const StepSpec& step,
                                                                 EventSink& events,
                                                                 core::CancelSource& cancel) {
  auto found = pulled_.find(step, pulled_.plan(step));
  const bool is_newer_wanted =
      step.settings->docker.build_config.build_options.pull.value_or(false);
  if (!found || is_newer_wanted) found = co_await pulled_.look_up(step, cancel);
  const auto image = std::move(*found);
  for (const auto& notice : pulled_.notices())
    if (reported_.insert(notice).second) events.emit(event::Notice{"", notice});
  const ImageFacts known{image.file, image.variables,
                         seconds_of(core::text_at(image.parent, "Created"))};
  const auto platform = step.settings->docker.platform.value_or("");
  const docker::BuildReport report{known.file.filename().string(), step.name,
                                   image.name + " for the nodes, without an engine"};
  const std::function<void(std::string)> on_line = [&](std::string line) {
    events.emit(event::BuildProgress{report.image, std::move(line)});
  };
  const FilesWriter write = [&](const fs::path& tar) {
    return pulled_.write_files(image, platform, tar, on_line, cancel);
  };
  const std::function<async::Task<std::string>()> work = [&]() {
    return make(known, report, write, events, cancel);
  };
  co_await made_.get(known.file.string(), work, &cancel);
  PulledImages::record(step, image);
  auto pulled = find_pulled_image(step);
  if (!pulled)
    throw core::EnvironmentError("the image file " + known.file.string() + " was removed",
                                 {"run again: the file will be made again"});
  co_return std::move(*pulled);
}

async::Task<ImageFiles::PulledStepImage> ImageFiles::resolve(const StepSpec& step,
                                                             PulledStepImage image,
                                                             EventSink& events,
                                                             core::CancelSource& cancel) {
  co_await packages_.resolve(step, std::move(image.packages), image.parent.parent,
                             image.parent.file, events, cancel);
  auto resolved = find_pulled_image(step);
  if (!resolved || !resolved->packages.is_known())
    throw core::EnvironmentError("the requirements of '" + step.name + "' cannot be known" +
                                 (resolved ? ": " + resolved->packages.unknown : std::string()));
  co_return std::move(*resolved);
}

async::Task<> ImageFiles::install(const StepSpec& step, const PulledStepImage& image,
                                  EventSink& events, core::CancelSource& cancel) {
  const ImageFacts known{image.file, {}, seconds_of(core::text_at(image.parent.parent, "Created"))};
  const docker::BuildReport report{known.file.filename().string(), step.name,
                                   image.packages.reference + " for the nodes: " +
                                       docker::describe_layers({}, image.packages.plan.layers)};
  const std::function<void(std::string)> on_line = [&](std::string line) {
    events.emit(event::BuildProgress{report.image, std::move(line)});
  };
  const FilesWriter write = [&](const fs::path& tar) {
    return packages_.install(image.packages, image.parent.variables, image.parent.file,
                             tar.parent_path(), on_line, cancel);
  };
  const std::function<async::Task<std::string>()> work = [&]() {
    return make(known, report, write, events, cancel);
  };
  co_await made_.get(known.file.string(), work, &cancel);
}

async::Task<Environment> ImageFiles::prepare_pulled(const StepSpec& step, EventSink& events,
                                                    core::CancelSource& cancel) {
  auto image = co_await pull_parent(step, events, cancel);
  if (!image.packages.is_known()) image = co_await resolve(step, std::move(image), events, cancel);
  for (const auto& notice : image.packages.plan.notices)
    if (reported_.insert(notice).second) events.emit(event::Notice{step.name, notice});
  if (image.file != image.parent.file) co_await install(step, image, events, cancel);
  co_return co_await pulled_environment(step);
}

async::Task<> ImageFiles::check(const StepSpec& step, std::vector<core::Diagnostic>& found) {
  core::Diagnostic diagnostic{.code = "slurm-resources",
                              .message = "'" + step.name + "' cannot run: ",
                              .span = model::span_of(step)};
  if (!step.settings->docker.volumes.items().empty()) {
    diagnostic.message += "containers of Slurm's jobs have no `docker.volumes`";
    diagnostic.suggestion = "make the data that it reads an input (docs/artifacts.md)";
    found.push_back(diagnostic);
    co_return;
  }
  const bool on_engine = co_await has_engine();
  if (on_engine) co_return;
  try {
    find_pulled_image(step);
  } catch (const core::EnvironmentError& error) {
    diagnostic.message += error.what();
    diagnostic.notes = error.advice();
    if (!diagnostic.notes.empty()) {
      diagnostic.suggestion = diagnostic.notes.front();
      diagnostic.notes.erase(diagnostic.notes.begin());
    }
    found.push_back(diagnostic);
  }
}

async::Task<ImageFile> ImageFiles::file_of(const StepSpec& step) {
  const bool on_engine = co_await has_engine();
  ImageFile file;
  if (on_engine) {
    const auto own = without_program(step);
    const auto image = co_await images_.image_of(own);
    const auto known = co_await look_up(image.id);
    file = ImageFile{known.file, known.variables};
  } else if (const auto image = find_pulled_image(step)) {
    file = ImageFile{image->file, image->parent.variables};
  }
  if (!is_whole_squashfs(file.path))
    throw core::EnvironmentError(
        "the image file " + file.path.string() + " of '" + step.name + "' does not exist",
        {"run again: the file will be made again"});
  co_return file;
}

async::Task<ImageFiles::ImageFacts> ImageFiles::look_up(std::string image) {
  if (const auto found = known_.find(image); found != known_.end()) co_return found->second;
  const auto inspected = co_await engine_.inspect_image(image);
  if (!inspected)
    throw core::EnvironmentError("the engine no longer has the image " + image,
                                 {"run again: the image will be made again"});
  ImageFacts known;
  known.file = squashfs_file(docker::image_identity(*inspected));
  known.created = seconds_of(inspected->value("Created", std::string()));
  known.variables = variables_of_image(*inspected);
  co_return known_.emplace(image, std::move(known)).first->second;
}

async::Task<std::string> ImageFiles::make(ImageFacts image, docker::BuildReport report,
                                          const FilesWriter& write, EventSink& events,
                                          core::CancelSource& cancel) {
  if (co_await can_be_used(image.file)) co_return image.file.string();
  core::make_folders(image.file.parent_path());
  const auto lock = co_await processes::take_lock(
      image.file.string() + ".lock",
      [&] {
        events.emit(event::Notice{report.step,
                                  "waiting for another `pipe`, which is making " + report.image});
      },
      cancel);
  if (co_await can_be_used(image.file)) co_return image.file.string();
  const auto work = [&]() -> async::Task<std::string> {
    co_await make_locked(image, write, cancel);
    co_return report.image;
  };
  co_await docker::reported(work(), report, events, cancel);
  co_return image.file.string();
}

/// Makes the SquashFS file. mksquashfs of Debian 12 makes equal files of equal images, because
/// SOURCE_DATE_EPOCH gives files that the engine has added the image's time.
async::Task<> ImageFiles::make_locked(const ImageFacts& image, const FilesWriter& write,
                                      core::CancelSource& cancel) {
  const core::TemporaryFolder folder(image.file.parent_path());
  const auto tar = folder.path() / "files.tar", made = folder.path() / "image.sqsh";
  co_await write(tar);
  ShellWork work;
  work.program = "mksquashfs";
  std::error_code error;
  const bool is_unpacked = fs::is_directory(folder.path() / "root", error);
  work.arguments = (is_unpacked ? "root " : "- ") + core::shell_quote(made.string()) +
                   " -comp zstd -Xcompression-level 3 -all-root -root-mode 755"
                   " -no-progress -quiet" +
                   (is_unpacked ? std::string() : " -tar <" + core::shell_quote(tar.string()));
  work.variables["SOURCE_DATE_EPOCH"] = std::to_string(image.created);
  work.folder = folder.path();
  const auto end = co_await run_work(std::move(work), reaper_, cancel);
  if (end.is_missing)
    throw core::EnvironmentError("mksquashfs, which makes images for the nodes, is not on PATH",
                                 {"install it here (Debian, Ubuntu, Fedora: squashfs-tools, 4.5 or "
                                  "newer)"});
  if (!end.succeeded || !is_whole_squashfs(made))
    throw core::EnvironmentError(
        "mksquashfs could not make the image for the nodes" + end.output_end,
        {"it has to read tar archives and to know zstd, as squashfs-tools from 4.5 on do",
         "the image takes room in " + image.file.parent_path().string() + " (PIPE_CACHE_DIR)"});
  core::sync_to_disk(made);
  const auto record = [&] { record_content(made, image.file); };
  co_await async::on_pool(pool_, record);
  fs::rename(made, image.file);
}

async::Task<bool> ImageFiles::can_be_used(fs::path file) {
  const auto check = [&] { return is_whole_squashfs(file) && has_recorded_content(file); };
  co_return co_await async::on_pool(pool_, check);
}

}  // namespace pipeline::orchestrators::slurm
