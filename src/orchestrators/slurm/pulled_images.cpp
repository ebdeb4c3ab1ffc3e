#include "orchestrators/slurm/pulled_images.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "async/on_pool.hpp"
#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/joined.hpp"
#include "core/json_member.hpp"
#include "core/quantity.hpp"
#include "docker/archived_parent.hpp"
#include "docker/image_identity.hpp"
#include "docker/reference.hpp"
#include "oci/image_tree.hpp"
#include "orchestrators/containers/container_layout.hpp"
#include "orchestrators/containers/step_images.hpp"
#include "orchestrators/owner.hpp"
#include "orchestrators/slurm/shell_work.hpp"
#include "orchestrators/slurm/squashfs_files.hpp"
#include "settings/image_archive.hpp"
#include "settings/settings.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string parent_of(const StepSpec& step) {
  return step.settings->docker.parent_image.value_or(std::string(settings::default_parent_image));
}

/// Returns the key under which the step's parent image is recorded.
std::string key_of(const StepSpec& step) {
  return parent_of(step) + " " + step.settings->docker.platform.value_or("");
}

/// Returns true for a part of a plan that needs no engine: see ImagePackages.
bool is_made_here(std::string_view part) {
  constexpr std::string_view parts[] = {"environment", "python_package_installer", "requirements",
                                        "packages", "pyproject"};
  return std::ranges::find(parts, part) != std::end(parts);
}

/// Returns the settings for which an engine has to build.
std::vector<std::string> built_settings(const StepSpec& step, const docker::ImagePlan& plan) {
  std::vector<std::string> names;
  for (const auto& [part, lines] : plan.parts) {
    if (!is_made_here(part)) names.push_back("docker." + part);
  }
  if (names.empty() && step.settings->docker.dockerfile) names.emplace_back("docker.dockerfile");
  return names;
}

/// @param settings that only an engine carries out
core::EnvironmentError needs_engine(const std::string& why, const std::string& settings) {
  return core::EnvironmentError(
      "its image cannot be made without a Docker Engine, and none answers: " + why + settings,
      {"build it once where an engine is (`pipe build PIPELINE`, `docker save -o FILE IMAGE`), and "
       "name the archive here: `parent_image: docker-archive:FILE`, without " +
           settings + "; docs/slurm.md has an example",
       "a `parent_image` of a registry that has all of it needs no engine: `pipe` pulls it",
       "`export DOCKER_HOST=ssh://HOST` names the engine of another machine; rootless Podman on "
       "this one is enough, too",
       "without `container_runtime` in the profile, the step runs in a virtual environment, which "
       "needs no engine"});
}

/// Adds the empty folders and files over which the runtimes mount. An image that an engine has
/// exported has them already.
void add_mount_points(oci::ImageTree& tree, std::int64_t time) {
  tree.add_missing_folder(containers::container_folder, time);
  for (const auto* folder : {"dev", "dev/pts", "dev/shm", "proc", "sys"})
    tree.add_missing_folder(folder, time);
  for (const auto* file : {"etc/hostname", "etc/hosts", "etc/resolv.conf"})
    tree.add_missing_file(file, time);
}

}  // namespace

PulledImages::PulledImages(asio::io_context& loop, processes::ProcessReaper& reaper,
                           const OrchestratorOptions& options)
    : reaper_(reaper),
      options_{.root = options.root,
               .template_dir = options.template_dir,
               .run_id = options.run_id,
               .owner = options.state.empty() ? std::string() : owner_of(options.state),
               .state = options.state},
      client_(loop) {}

docker::ImagePlan PulledImages::plan(const StepSpec& step) const {
  const auto& settings = step.settings->docker;
  if (settings.replicate_local_python_environment.value_or(false))
    throw needs_engine("only an engine carries out ",
                       "`docker.replicate_local_python_environment`");
  auto plan = docker::plan_image(step, options_);
  const auto built = built_settings(step, plan);
  if (!built.empty())
    throw needs_engine("root is needed for ", core::joined(built, ", ", [](const auto& name) {
                         return "`" + name + "`";
                       }));
  return plan;
}

std::optional<PulledImage> PulledImages::find(const StepSpec& step,
                                              const docker::ImagePlan& plan) const {
  if (docker::has_archived_parent(plan)) {
    const auto& parent = plan.parent_image;
    return image_of(step, parent, archived_image(parent, plan.platform).description);
  }
  const auto record = core::parse_json(recorded_image(key_of(step)));
  if (!record.is_object() || !record.contains("parent") || !record.at("parent").is_object())
    return std::nullopt;
  return image_of(step, core::text_at(record, "name"), record.at("parent"));
}

std::string PulledImages::fingerprint_of(const StepSpec& step) {
  const auto record = recorded_image(key_of(step));
  if (record.empty() || !containers::images_decide(step.settings->docker)) return {};
  return core::sha256(record).hex() + " " + key_of(step);
}

bool PulledImages::matches(const std::string& fingerprint) {
  const auto space = fingerprint.find(' ');
  if (space == fingerprint.npos) return false;
  const auto record = recorded_image(std::string_view(fingerprint).substr(space + 1));
  return !record.empty() && core::sha256(record).hex() == fingerprint.substr(0, space);
}

async::Task<PulledImage> PulledImages::look_up(const StepSpec& step, core::CancelSource& cancel) {
  const auto plan = this->plan(step);
  if (docker::has_archived_parent(plan)) co_return *find(step, plan);
  const auto parent = parent_of(step);
  const auto image =
      co_await client_.find(parent, step.settings->docker.platform.value_or(""), cancel);
  auto name =
      docker::split_reference(parent.substr(0, parent.find('@'))).first + "@" + image.manifest;
  co_return image_of(step, std::move(name), image.description);
}

PulledImage PulledImages::image_of(const StepSpec& step, std::string name, json parent) const {
  PulledImage image;
  image.name = std::move(name);
  image.file = squashfs_file(docker::image_identity(parent));
  image.variables = step.settings->docker.environment;
  for (const auto& [variable, value] : variables_of_image(parent))
    image.variables.try_emplace(variable, value);
  image.parent = std::move(parent);
  return image;
}

/// Returns the archive's image for the platform, or else for this machine's processor, which the
/// nodes are assumed to have, too.
const oci::ArchivedImage& PulledImages::archived_image(const std::string& parent,
                                                       std::string platform) const {
  if (platform.empty()) platform = oci::own_platform();
  auto& image = archived_[parent + " " + platform];
  if (!image) image = oci::read_archive(*settings::image_archive(parent), options_.root, platform);
  return *image;
}

async::Task<oci::Image> PulledImages::contents_of(std::string name, std::string platform,
                                                  core::CancelSource& cancel) {
  if (!settings::image_archive(name)) co_return co_await client_.find(name, platform, cancel);
  const auto& archived = archived_image(name, platform);
  co_return oci::Image{{}, archived.description, archived.layers};
}

async::Task<> PulledImages::fetch_layer(std::string name, std::string platform, std::size_t layer,
                                        oci::Blob blob, fs::path to, core::CancelSource& cancel) {
  if (!settings::image_archive(name)) co_return co_await client_.download(name, blob, to, cancel);
  const auto& archived = archived_image(name, platform);
  const auto copy = [&] {
    oci::copy_layer(archived, layer, to);
    return true;
  };
  co_await async::on_pool(pool_, copy);
}

void PulledImages::record(const StepSpec& step, const PulledImage& image) {
  json record = json::object();
  record["name"] = image.name;
  record["parent"] = image.parent;
  record_image(image.file, key_of(step),
               record.dump(-1, ' ', false, json::error_handler_t::replace));
}

async::Task<> PulledImages::write_files(PulledImage image, std::string platform, fs::path tar,
                                        const std::function<void(std::string)>& on_line,
                                        core::CancelSource& cancel) {
  const auto found = co_await contents_of(image.name, platform, cancel);
  const auto& digests = found.description.at("RootFS").at("Layers");
  if (docker::image_identity(found.description) != docker::image_identity(image.parent))
    throw core::EnvironmentError("the registry has another image under " + image.name);
  oci::ImageTree tree;
  const auto folder = tar.parent_path();
  const auto packed = folder / "packed";
  std::vector<fs::path> layers;
  for (std::size_t i = 0; i < found.layers.size(); ++i) {
    const auto& layer = found.layers[i];
    on_line("layer " + std::to_string(i + 1) + " of " + std::to_string(found.layers.size()) + ", " +
            core::format_bytes(layer.size));
    co_await fetch_layer(image.name, platform, i, layer, packed, cancel);
    layers.push_back(folder / ("layer-" + std::to_string(i)));
    co_await unpack(layer, packed, layers.back(), cancel);
    const auto wanted = digests.at(i).get<std::string>();
    const auto add = [&] {
      if ("sha256:" + core::sha256_file(layers.back()).hex() != wanted)
        throw core::EnvironmentError("a layer of " + image.name + " is not the one that its " +
                                     "configuration names");
      tree.add_layer(layers.back());
      return true;
    };
    co_await async::on_pool(pool_, add);
  }
  const auto time = seconds_of(core::text_at(found.description, "Created"));
  const auto write = [&] {
    add_mount_points(tree, time);
    tree.write(tar);
    return true;
  };
  co_await async::on_pool(pool_, write);
  for (const auto& layer : layers) core::remove_tree(layer);
}

async::Task<> PulledImages::unpack(const oci::Blob& layer, fs::path packed, fs::path unpacked,
                                   core::CancelSource& cancel) {
  const auto packing = oci::packing_of(layer);
  if (packing == oci::Packing::none) {
    fs::rename(packed, unpacked);
    co_return;
  }
  ShellWork work;
  work.program = packing == oci::Packing::gzip ? "gzip" : "zstd";
  work.arguments =
      "-dc <" + core::shell_quote(packed.string()) + " >" + core::shell_quote(unpacked.string());
  work.folder = packed.parent_path();
  const auto program = work.program;
  const auto end = co_await run_work(std::move(work), reaper_, cancel);
  if (end.is_missing)
    throw core::EnvironmentError(program + ", which unpacks a layer of the image, is not on PATH",
                                 {"install it here"});
  if (!end.succeeded)
    throw core::EnvironmentError(
        "a layer of the image cannot be unpacked" + end.output_end,
        {"it takes room in " + packed.parent_path().string() + " (PIPE_CACHE_DIR)"});
  core::remove_tree(packed);
}

}  // namespace pipeline::orchestrators::slurm
