#include "docker/image_plan.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/quantity.hpp"
#include "docker/archived_parent.hpp"
#include "docker/context.hpp"
#include "docker/context_writer.hpp"
#include "docker/dockerfile.hpp"
#include "docker/index_config.hpp"
#include "docker/package_layers.hpp"
#include "lockfile/lock_file.hpp"
#include "python_packages/requirements.hpp"
#include "settings/image_archive.hpp"
#include "settings/settings.hpp"
#include "settings/snapshot.hpp"
#include "templates/templates.hpp"

namespace pipeline::docker {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view empty_image = "scratch";
/// From this size in bytes, a notice names the largest files of a build context.
constexpr std::uint64_t large_context = 100'000'000;

/// Returns true if the text is not empty, and consists of letters, digits and the other characters.
bool consists_of(std::string_view text, std::string_view others) {
  return !text.empty() && std::ranges::all_of(text, [&](unsigned char c) {
    return std::isalnum(c) || others.find(static_cast<char>(c)) != others.npos;
  });
}

std::string short_digest(std::string_view text) { return core::sha256(text).hex().substr(0, 12); }

/// Returns the requirement for a label. An address or an option can contain a password, so only its
/// digest is shown.
std::string without_secrets(const std::string& requirement) {
  auto name = requirement.substr(0, requirement.find_first_of(" =@"));
  if (requirement.find("://") == requirement.npos && !requirement.starts_with('-'))
    return requirement;
  return name + " #" + short_digest(requirement);
}

/// Returns true unless the user's own template has no layers: the build then resolves the
/// requirements.
bool has_layers(const fs::path& template_dir) {
  return templates::template_text("Dockerfile.mustache", template_dir).find("{{#layers}}") !=
         std::string::npos;
}

/// Returns a tar of empty files for the paths in /etc on which builders mount their own files. If
/// the parent lacks these files, BuildKit adds and removes them around each RUN, and each layer
/// contains the new time of /etc: equal layers then have different digests.
std::string mount_points() {
  auto tar =
      file_tree::tar_stream({{.path = "etc", .mode = 0755, .kind = ContextFile::Kind::directory},
                             {.path = "etc/hosts", .content = ""},
                             {.path = "etc/resolv.conf", .content = ""}});
  std::string bytes;
  std::array<char, 16384> buffer{};
  while (const auto count = tar(buffer)) bytes.append(buffer.data(), count);
  return bytes;
}

void note_large_context(ImagePlan& plan, const std::string& how_to_shrink) {
  auto total = size_of(plan.context);
  if (total > large_context)
    plan.notices.push_back("the build context is " + core::format_bytes(total) +
                           "; the largest files: " + largest(plan.context, 5) + ". " +
                           how_to_shrink);
}

std::string ignore_rules_for(const fs::path& dockerfile, const fs::path& context_root,
                             const BuildConfig& config, const fs::path& root) {
  if (config.dockerignore) return core::read_file(root / *config.dockerignore);
  auto beside = fs::path(dockerfile.string() + ".dockerignore");
  for (auto& file : {beside, context_root / ".dockerignore"})
    if (std::error_code error; fs::is_regular_file(file, error)) return core::read_file(file);
  return {};
}

/// Returns the plan of the user's own Dockerfile (`dockerfile` of the settings).
ImagePlan plan_own_dockerfile(const DockerSettings& settings, const BuilderOptions& options) {
  ImagePlan plan;
  plan.for_own_dockerfile = true;
  auto file = (options.root / *settings.dockerfile).lexically_normal();
  auto context_root = settings.build_context_root
                          ? (options.root / *settings.build_context_root).lexically_normal()
                          : file.parent_path();
  std::error_code error;
  if (!fs::is_directory(context_root, error))
    throw core::EnvironmentError("the build context " + context_root.string() + " is not a folder",
                                 {"correct build_context_root"});
  plan.dockerfile = core::read_file(file);
  auto in_context = file.lexically_relative(context_root).generic_string();
  auto& config = settings.parent_image_build_config;
  // The state folder changes with each run, and would rebuild the image each time.
  plan.context = folder_context(
      context_root, ignore_rules_for(file, context_root, config, options.root), {}, options.state);
  // The engine reads the Dockerfile from the context. If the context lacks the Dockerfile, it is
  // added under a name that no file of the user has; `COPY .` then copies it, too.
  const bool is_there = std::ranges::any_of(plan.context, [&](const auto& entry) {
    return entry.path == in_context && entry.kind == ContextFile::Kind::file;
  });
  plan.dockerfile_path = is_there ? in_context : ".pipe.dockerfile";
  if (!is_there) {
    std::erase_if(plan.context, [&](auto& entry) { return entry.path == plan.dockerfile_path; });
    plan.context.push_back(text_file(plan.dockerfile_path, plan.dockerfile));
    std::ranges::sort(plan.context, {}, &ContextFile::path);
  }
  plan.options = config.build_options;
  plan.platform = settings.platform.value_or("");
  plan.images_used = images_used(plan.dockerfile, plan.options.build_args);
  note_large_context(plan, "List what the Dockerfile does not use in " +
                               (context_root / ".dockerignore").string());
  plan.parts["dockerfile"] = {short_digest(plan.dockerfile)};
  return plan;
}

void check_apt_package(const std::string& package) {
  if (package.front() == '-' || !consists_of(package, "+-.:=/~_"))
    throw core::InputError("apt_packages: '" + package + "' is not a Debian package",
                           "write NAME or NAME=VERSION");
}

void check_user(const std::string& user) {
  if (!consists_of(user, "_-.:") || std::ranges::count(user, ':') > 1 || user.front() == '-')
    throw core::InputError("user '" + user + "' is not a user's name",
                           "write NAME, UID or UID:GID");
}

/// Builds the plan of one step's image: each setting adds its part.
class ImagePlanner {
 public:
  ImagePlanner(const StepSpec& step, const BuilderOptions& options, const std::string& parent_user,
               const lockfile::LockedEnvironment* locked)
      : step_(step),
        options_(options),
        locked_(locked),
        settings_(step.settings->docker),
        context_(options.template_dir) {
    values_.environment = settings_.environment;
    values_.installer = settings_.python_package_installer.value_or(PackageInstaller::uv);
    values_.parent_user = parent_user;
  }

  ImagePlan plan() && {
    read_parent_image();
    if (settings_.skip_build.value_or(false)) {
      if (has_archived_parent(plan_)) read_repository();  // The image is loaded under that name.
      plan_.build = false;
      return std::move(plan_);
    }
    read_repository();
    add_user();
    add_apt_packages();
    add_python_packages();
    add_project();
    add_tools();
    add_environment();
    if (settings_.dockerfile) add_own_dockerfile();
    if (parent_is_empty()) check_empty_parent();
    if (!values_.installs() && values_.environment.empty()) return std::move(*this).without_layer();
    add_dockerfiles();
    return std::move(plan_);
  }

 private:
  /// `scratch` is a keyword of the builder, not an image that could be pulled.
  bool parent_is_empty() const { return plan_.parent_image == empty_image; }

  void read_parent_image() {
    plan_.platform = settings_.platform.value_or("");
    plan_.parent_image =
        settings_.parent_image.value_or(std::string(settings::default_parent_image));
    if (!settings::is_parent_image(plan_.parent_image))
      throw core::InputError("parent_image '" + plan_.parent_image + "' is not an image reference",
                             "write NAME:TAG, REGISTRY/NAME:TAG or oci-archive:FILE");
    if (!parent_is_empty()) {
      plan_.images_used = {plan_.parent_image};
    } else if (!step_.program && !settings_.dockerfile) {
      throw core::InputError(
          "step '" + step_.name +
              "': parent_image 'scratch' is empty, so there is no program in it to run",
          "only the functions of a C++ program run in it, which bring all that they need");
    }
  }

  void read_repository() {
    plan_.options = settings_.build_config.build_options;
    plan_.repository = settings_.target_repository.value_or("pipe");
    if (!settings::is_image_reference(plan_.repository) ||
        plan_.repository.find('@') != plan_.repository.npos)
      throw core::InputError(
          "target_repository '" + plan_.repository + "' is not a repository's name",
          "write NAME or REGISTRY/NAME, without a tag");
    plan_.tag = settings_.image_tag.value_or("");
    const bool is_tag = consists_of(plan_.tag, "._-") && plan_.tag.size() <= 128 &&
                        plan_.tag.front() != '.' && plan_.tag.front() != '-';
    if (!plan_.tag.empty() && !is_tag)
      throw core::InputError("image_tag '" + plan_.tag + "' is not a tag",
                             "letters, digits, `_`, `.`, `-`");
    if (plan_.tag.starts_with("env-") || plan_.tag.starts_with("own-"))
      throw core::InputError("image_tag '" + plan_.tag + "' begins as the tags that pipe gives",
                             "choose another one");
    if (settings_.prevent_build_reuse.value_or(false))
      plan_.run_id = options_.run_id.empty() ? "always" : options_.run_id;
  }

  void add_user() {
    if (!settings_.user) return;
    check_user(*settings_.user);
    plan_.parts["user"] = {*settings_.user};
    // An empty parent has no user database to add the user to, so its containers use the number.
    if (parent_is_empty()) return;
    values_.user = settings_.user;
    context_.add_script("user/create.sh", "image/user.sh");
  }

  void add_apt_packages() {
    auto packages = settings_.apt_packages.items();
    if (packages.empty()) return;
    std::ranges::sort(packages);
    packages.erase(std::ranges::unique(packages).begin(), packages.end());
    for (const auto& package : packages) check_apt_package(package);
    values_.apt = true;
    context_.add_lines("apt/packages", packages);
    context_.add_script("apt/install.sh", "image/apt.sh");
    plan_.parts["apt_packages"] = std::move(packages);
    if (settings_.apt_snapshot) add_snapshot(*settings_.apt_snapshot);
  }

  void add_snapshot(const std::string& moment) {
    auto id = settings::snapshot_id(moment);
    if (!id)
      throw core::InputError("apt_snapshot '" + moment + "' is not a date",
                             "write it as 2026-11-01 or 2026-11-01T12:00:00Z");
    context_.add("apt/snapshot", *id);
    plan_.parts["apt_snapshot"] = {std::move(*id)};
  }

  void add_python_packages() {
    auto& python = plan_.python;
    python = python_packages::python_requirements(settings_, options_.root, plan_.notices);
    if (locked_ && has_layers(options_.template_dir)) return add_locked_packages();
    if (python.empty()) return;
    values_.python = true;
    context_.add_script("python/install.sh", "image/python.sh");
    if (locked_) return add_locked_requirements();
    plan_.resolves = python_packages::resolves(python.requirements) || !python.pyproject.empty();
    if (!python.requirements.empty())
      context_.add_lines("python/requirements.txt", python.requirements);
    for (const auto& line : python.requirements)
      if (const auto path = python_packages::local_path(line, options_.root))
        context_.add_files("python", local_files(*path, options_.root, options_.state));
    if (!python.constraints.empty())
      context_.add_lines("python/constraints.txt", python.constraints);
    std::ranges::transform(python.requirements, std::back_inserter(plan_.parts["requirements"]),
                           without_secrets);
    if (!python.pyproject.empty()) {
      plan_.parts["pyproject"] = {short_digest(python.pyproject)};
      context_.add("python/pyproject.toml", python.pyproject);
    }
    add_installer(python.arguments);
  }

  void add_installer(const std::vector<std::string>& arguments) {
    context_.add_lines("python/arguments", arguments);
    auto& installer = plan_.parts["python_package_installer"];
    installer = {plan_.python.installer};
    std::ranges::transform(arguments, std::back_inserter(installer), without_secrets);
  }

  /// Adds all locked packages at once, for a user's template that has no layers.
  void add_locked_requirements() {
    auto lines = install_options(plan_.python, options_.root);
    for (auto& line : lockfile::install_lines(*locked_)) lines.push_back(std::move(line));
    context_.add_lines("python/requirements.txt", lines);
    auto arguments = python_packages::install_arguments(plan_.python.arguments);
    arguments.emplace_back("--no-deps");
    add_installer(arguments);
  }

  /// Adds a folder for each layer of packages, so that the builder reuses unchanged layers.
  void add_locked_packages() {
    plan_.layers = package_layers(*locked_);
    const auto& layers = plan_.layers;
    if (layers.empty()) return;
    values_.layers = layers.size();
    for (std::size_t number = 0; number < layers.size(); ++number)
      add_layer(number, layers[number]);
    if (!built_.packages.empty()) add_lines("sources/sources.txt", built_);
    if (auto notice = lockfile::notice_of_sources(*locked_); !notice.empty())
      plan_.notices.push_back(std::move(notice));
    std::ranges::sort(plan_.parts["packages"]);
    index_options_ = install_options(plan_.python, options_.root);
    context_.add_script("python/layer.sh", "image/layer.sh");
    context_.add("python/finish.py",
                 templates::template_text("image/finish.py", options_.template_dir));
    context_.add("python/install_locked.py",
                 templates::template_text("lock/install_locked.py", options_.template_dir));
    context_.add("stubs.tar", mount_points());
    add_installer(python_packages::install_arguments(plan_.python.arguments));
  }

  /// Adds the hashes of packages to the context. Their addresses are not part of the image.
  void add_lines(const std::string& path, const lockfile::LockedEnvironment& environment) {
    context_.add_lines(path, lockfile::install_lines(environment));
    if (auto addresses = lockfile::address_lines(environment); !addresses.empty())
      addresses_.push_back(text_file(path + ".addresses", std::move(addresses)));
  }

  /// Returns true if a source package is built in a separate stage, which has none of the other
  /// packages: adding a package then does not build the source again. Without build isolation, a
  /// source needs the packages of the layers below, and cannot be built there.
  bool has_stage(const lockfile::LockedPackage& package) const {
    return package.origin == lockfile::PackageOrigin::index && !package.sha256.empty() &&
           std::ranges::none_of(plan_.python.arguments, [](const auto& word) {
             return word.starts_with("--no-build-isolation");
           });
  }

  void add_layer(std::size_t number, const std::vector<lockfile::LockedPackage>& packages) {
    const auto folder = "layers/" + std::to_string(number);
    lockfile::LockedEnvironment wheels, sources;
    std::vector<std::string> names;
    for (const auto& package : packages) {
      names.push_back(package.name);
      plan_.parts["packages"].push_back(package.name + "==" + package.version);
      if (package.origin == lockfile::PackageOrigin::path)
        context_.add_files(folder, local_files(package.url, options_.root, options_.state));
      const bool is_source = lockfile::is_built_from_source(package);
      (is_source ? sources : wheels).packages.push_back(package);
      if (!is_source || !has_stage(package)) continue;
      built_.packages.push_back(package);
      values_.built.insert(number);
    }
    context_.add_lines(folder + "/names", names);
    if (!wheels.packages.empty()) add_lines(folder + "/requirements.txt", wheels);
    if (!sources.packages.empty()) add_lines(folder + "/sources.txt", sources);
  }

  void add_project() {
    if (!settings_.local_project_install_command) return;
    const auto& command = *settings_.local_project_install_command;
    if (core::has_control_characters(command))
      throw core::InputError("local_project_install_command holds a control character");
    auto files = project_files(step_.code_root.empty() ? options_.root : *step_.code_root,
                               step_.code->items(), options_.state);
    if (options_.lock)  // The lock lists the packages that are installed beside the project.
      std::erase_if(files, [&](const auto& file) { return file.source == options_.lock->path(); });
    if (files.empty())
      throw core::InputError(
          "local_project_install_command has no files to work on: the step's code is empty",
          "name them with `code:`");
    values_.project = true;
    plan_.resolves = true;
    context_.add_files("project", std::move(files));
    context_.add("install/command.sh", command + "\n");
    context_.add_script("install/install.sh", "image/project.sh");
    plan_.parts["local_project_install_command"] = {command};
  }

  /// Adds the scripts that fetch the installer of Python packages.
  void add_tools() {
    if (!values_.python && values_.layers == 0 && !values_.project) return;
    context_.add_script("tools/fetch.sh", "image/tools.sh");
    for (const auto* name : {"lock/install_locked.py", "image/tools.txt"})
      context_.add("tools/" + fs::path(name).filename().string(),
                   templates::template_text(name, options_.template_dir));
  }

  void add_environment() {
    for (const auto& [name, value] : values_.environment)
      plan_.parts["environment"].push_back(name + "=" + value);
  }

  void add_own_dockerfile() {
    plan_.parent = std::make_unique<ImagePlan>(plan_own_dockerfile(settings_, options_));
    plan_.parent->repository = plan_.repository;
    plan_.parent->run_id = plan_.run_id;
  }

  void check_empty_parent() const {
    if (!settings_.dockerfile && (values_.apt || values_.python || values_.project))
      throw core::InputError(
          "step '" + step_.name +
              "': parent_image 'scratch' is empty, so nothing can be installed in it",
          "name a parent image with a package manager, or remove apt_packages, requirements and "
          "other packages");
  }

  /// Returns the plan if no setting adds a layer: the parent itself, or the user's own image.
  ImagePlan without_layer() && {
    if (!plan_.parent) {
      plan_.build = false;
      return std::move(plan_);
    }
    auto own = std::move(*plan_.parent);
    own.tag = plan_.tag;
    return own;
  }

  void add_dockerfiles() {
    values_.parent_image = settings_.dockerfile         ? "pipe:own-dockerfile"
                           : has_archived_parent(plan_) ? archived_parent_name
                                                        : plan_.parent_image;
    plan_.dockerfile = dockerfile_text(values_, Builder::buildkit, options_.template_dir);
    plan_.classic_dockerfile = dockerfile_text(values_, Builder::classic, options_.template_dir);
    plan_.context = std::move(context_).sorted();
    if (plan_.parent) {
      plan_.parent_image.clear();
      plan_.images_used.clear();
    }
    if (values_.installs()) add_host_files();
    note_large_context(
        plan_,
        "List what the step does not need in .dockerignore, or name what it needs with `code:`");
  }

  void add_host_files() {
    const auto& from = plan_.parent ? plan_.parent->images_used : plan_.images_used;
    plan_.host_only = host_files(config_for_build(this_machine(), from, plan_.notices));
    // Only the classic builder's Dockerfile uses this script, so it is not part of the digest.
    plan_.host_only.push_back(
        text_file("collect/collect.sh",
                  templates::template_text("image/common.sh", options_.template_dir) +
                      templates::template_text("image/collect.sh", options_.template_dir)));
    // Indexes may hold credentials, and equal packages may come from any index.
    std::string indexes;
    for (const auto& option : index_options_) indexes += option + "\n";
    if (!indexes.empty()) plan_.host_only.push_back(text_file("host/indexes.txt", indexes));
    std::ranges::move(addresses_, std::back_inserter(plan_.host_only));
    // A build with a network of its own reports all received bytes as its downloads.
    if (const auto network = plan_.options.network.value_or("default");
        network == "default" || network == "bridge")
      plan_.host_only.push_back(text_file("host/own-network", "yes\n"));
    std::ranges::sort(plan_.host_only, {}, &ContextFile::path);
  }

  const StepSpec& step_;
  const BuilderOptions& options_;
  const lockfile::LockedEnvironment* locked_;
  const DockerSettings& settings_;
  ImagePlan plan_;
  DockerfileValues values_;
  ContextWriter context_;
  std::vector<std::string> index_options_;
  lockfile::LockedEnvironment built_;   ///< Packages of the stage that builds sources.
  std::vector<ContextFile> addresses_;  ///< See address_lines().
};

}  // namespace

ImagePlan plan_image(const StepSpec& step, const BuilderOptions& options,
                     const std::string& parent_user, const lockfile::LockedEnvironment* locked) {
  return ImagePlanner(step, options, parent_user, locked).plan();
}

std::string plan_digest(const ImagePlan& plan, const std::vector<std::string>& image_ids) {
  core::Hasher hasher;
  hasher.field("pipe image 1").field(plan.dockerfile).field(plan.platform).field(plan.run_id);
  for (auto& id : image_ids) hasher.field("from").field(id);
  auto add = [&](std::string_view what, const StringMap& map) {
    for (auto& [name, value] : map) hasher.field(what).field(name).field(value);
  };
  add("arg", plan.options.build_args);
  add("label", plan.options.labels);
  hasher.field(plan.options.target.value_or(""));
  for (auto& file : plan.context) {
    hasher.field("file")
        .field(file.path)
        .field(std::to_string(static_cast<int>(file.kind)))
        .field(std::to_string(file.mode));
    if (file.kind == ContextFile::Kind::directory) continue;
    hasher.field(file.content ? *file.content : core::sha256_file(file.source).hex());
  }
  return hasher.finish().hex();
}

}  // namespace pipeline::docker
