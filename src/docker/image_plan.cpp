#include "docker/image_plan.hpp"

#include <algorithm>
#include <cctype>

#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/quantity.hpp"
#include "docker/context.hpp"
#include "docker/dockerfile.hpp"
#include "docker/host_config.hpp"
#include "docker/requirements.hpp"
#include "docker/templates.hpp"
#include "settings/settings.hpp"

namespace pipeline::docker {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view empty_image = "scratch";
constexpr std::uint64_t large_context = 100'000'000;

bool made_of(std::string_view text, std::string_view others) {
  return !text.empty() && std::ranges::all_of(text, [&](unsigned char c) {
    return std::isalnum(c) || others.find(static_cast<char>(c)) != others.npos;
  });
}

std::string short_digest(std::string_view text) { return core::sha256(text).hex().substr(0, 12); }

/// Fit for a label: an address or an option may hold a password, so that only its digest is shown.
std::string without_secrets(const std::string& requirement) {
  auto name = requirement.substr(0, requirement.find_first_of(" =@"));
  if (requirement.find("://") == requirement.npos && !requirement.starts_with('-'))
    return requirement;
  return name + " #" + short_digest(requirement);
}

ContextFile generated(std::string path, std::string content) {
  auto bytes = content.size();
  return {.path = std::move(path), .content = std::move(content), .bytes = bytes};
}

/// Collects the context's files; a script is always common.sh and its own text.
class Context {
 public:
  explicit Context(const fs::path& template_dir)
      : template_dir_(template_dir), common_(template_text("image/common.sh", template_dir)) {}
  void add(std::string path, std::string content) {
    files_.push_back(generated(std::move(path), std::move(content)));
  }
  void add_lines(std::string path, const std::vector<std::string>& lines) {
    std::string content;
    for (auto& line : lines) content += line + "\n";
    add(std::move(path), std::move(content));
  }
  void add_script(std::string path, std::string_view name) {
    add(std::move(path), common_ + template_text(name, template_dir_));
  }
  void add_files(std::string_view folder, std::vector<ContextFile> files) {
    for (auto& file : files) {
      file.path = std::string(folder) + "/" + file.path;
      files_.push_back(std::move(file));
    }
  }
  std::vector<ContextFile> sorted() && {
    std::ranges::sort(files_, {}, &ContextFile::path);
    return std::move(files_);
  }

 private:
  const fs::path& template_dir_;
  std::string common_;
  std::vector<ContextFile> files_;
};

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
    if (std::error_code error; fs::exists(file, error)) return core::read_file(file);
  return {};
}

ImagePlan plan_own_dockerfile(const DockerSettings& settings, const BuilderOptions& options) {
  ImagePlan plan;
  plan.own = true;
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
  bool inside = !in_context.empty() && !in_context.starts_with("..");
  auto& config = settings.parent_image_build_config;
  // Our state folder has new logs and artifacts after each run: with it the image would be built
  // each time.
  plan.context = folder_context(
      context_root, ignore_rules_for(file, context_root, config, options.root) + "\n**/.pipe\n",
      inside ? std::vector{in_context} : std::vector<std::string>{});
  // The engine takes the Dockerfile from the context, wherever it lies here; under this name no
  // file of the user's is hidden.
  std::erase_if(plan.context, [](auto& entry) { return entry.path == ".pipe.dockerfile"; });
  plan.context.push_back(generated(".pipe.dockerfile", plan.dockerfile));
  std::ranges::sort(plan.context, {}, &ContextFile::path);
  plan.options = config.build_options;
  plan.platform = settings.platform.value_or("");
  plan.images_used = images_used(plan.dockerfile, plan.options.build_args);
  note_large_context(plan, "List what the Dockerfile does not use in " +
                               (context_root / ".dockerignore").string());
  plan.parts["dockerfile"] = {short_digest(plan.dockerfile)};
  return plan;
}

void check_apt_package(const std::string& package) {
  if (package.front() == '-' || !made_of(package, "+-.:=/~_"))
    throw core::InputError("apt_packages: '" + package + "' is not a Debian package",
                           "write NAME or NAME=VERSION");
}

}  // namespace

ImagePlan plan_image(const StepSpec& step, const BuilderOptions& options,
                     const std::string& parent_user) {
  auto& settings = step.settings.docker;
  ImagePlan plan;
  plan.platform = settings.platform.value_or("");
  plan.parent_image = settings.parent_image.value_or(std::string(settings::default_parent_image));
  if (!settings::is_image_reference(plan.parent_image))
    throw core::InputError("parent_image '" + plan.parent_image + "' is not an image reference",
                           "write NAME:TAG or REGISTRY/NAME:TAG");
  const bool is_empty =
      plan.parent_image == empty_image;  // a word of the builder's, no image that could be pulled
  if (!is_empty) plan.images_used = {plan.parent_image};
  if (is_empty && !step.program && !settings.dockerfile)
    throw core::InputError(
        "step '" + step.name +
            "': parent_image 'scratch' is empty, so there is no program in it to run",
        "only the functions of a C++ program run in it, which bring all that they need");
  if (settings.skip_build.value_or(false)) {
    plan.build = false;
    return plan;
  }

  plan.options = settings.build_config.build_options;
  plan.repository = settings.target_repository.value_or("pipe");
  plan.tag = settings.image_tag.value_or("");
  if (!settings::is_image_reference(plan.repository) ||
      plan.repository.find('@') != plan.repository.npos)
    throw core::InputError("target_repository '" + plan.repository + "' is not a repository's name",
                           "write NAME or REGISTRY/NAME, without a tag");
  if (!plan.tag.empty() && (plan.tag.size() > 128 || plan.tag.front() == '.' ||
                            plan.tag.front() == '-' || !made_of(plan.tag, "._-")))
    throw core::InputError("image_tag '" + plan.tag + "' is not a tag",
                           "letters, digits, `_`, `.`, `-`");
  if (settings.prevent_build_reuse.value_or(false))
    plan.run_id = options.run_id.empty() ? "always" : options.run_id;

  DockerfileValues values;
  values.parent_image = settings.dockerfile ? "pipe:own-dockerfile" : plan.parent_image;
  values.environment = settings.environment;
  values.installer = settings.python_package_installer.value_or(PackageInstaller::uv);
  values.parent_user = parent_user;
  if (settings.user) {
    if (!made_of(*settings.user, "_-.:") || std::ranges::count(*settings.user, ':') > 1 ||
        settings.user->front() == '-')
      throw core::InputError("user '" + *settings.user + "' is not a user's name",
                             "write NAME, UID or UID:GID");
    values.user = settings.user;
    plan.parts["user"] = {*settings.user};
  }
  Context context(options.template_dir);

  if (auto packages = settings.apt_packages.items(); !packages.empty()) {
    std::ranges::sort(packages);
    packages.erase(std::ranges::unique(packages).begin(), packages.end());
    for (auto& package : packages) check_apt_package(package);
    values.apt = true;
    context.add_lines("apt/packages", packages);
    context.add_script("apt/install.sh", "image/apt.sh");
    plan.parts["apt_packages"] = packages;
  }

  auto requirements = requirement_lines(settings, options.root, plan.notices);
  bool reads_pyproject = settings.pyproject_path && !settings.pyproject_export_command.has_value();
  plan.resolves =
      resolves(requirements) || reads_pyproject || settings.local_project_install_command;
  std::string installer = values.installer == PackageInstaller::uv ? "uv" : "pip";
  if (!requirements.empty() || reads_pyproject) {
    values.python = true;
    auto arguments = installer_arguments(settings.python_package_installer_args);
    context.add_lines("python/arguments", arguments);
    context.add_script("python/install.sh", "image/python.sh");
    if (!requirements.empty()) context.add_lines("python/requirements.txt", requirements);
    std::ranges::transform(requirements, std::back_inserter(plan.parts["requirements"]),
                           without_secrets);
    if (reads_pyproject) {
      auto text = core::read_file(options.root / *settings.pyproject_path);
      plan.parts["pyproject"] = {short_digest(text)};
      context.add("python/pyproject.toml", std::move(text));
    }
    plan.parts["python_package_installer"] = {installer};
    std::ranges::transform(arguments, std::back_inserter(plan.parts["python_package_installer"]),
                           without_secrets);
  }

  if (settings.local_project_install_command) {
    values.project = true;
    if (core::has_control_characters(*settings.local_project_install_command))
      throw core::InputError("local_project_install_command holds a control character");
    auto files = project_files(options.root, step.code.items());
    if (files.empty())
      throw core::InputError(
          "local_project_install_command has no files to work on: the step's code is empty",
          "name them with `code:`");
    context.add_files("project", std::move(files));
    context.add("install/command.sh", *settings.local_project_install_command + "\n");
    context.add_script("install/install.sh", "image/project.sh");
    plan.parts["local_project_install_command"] = {*settings.local_project_install_command};
  }
  if (values.python || values.project) context.add_script("tools/fetch.sh", "image/tools.sh");
  if (values.user) context.add_script("user/create.sh", "image/user.sh");

  for (auto& [name, value] : values.environment)
    plan.parts["environment"].push_back(name + "=" + value);
  if (settings.dockerfile) {
    plan.parent = std::make_unique<ImagePlan>(plan_own_dockerfile(settings, options));
    plan.parent->repository = plan.repository;
    plan.parent->run_id = plan.run_id;
  }
  if (is_empty && !settings.dockerfile && (values.apt || values.python || values.project))
    throw core::InputError(
        "step '" + step.name +
            "': parent_image 'scratch' is empty, so nothing can be installed in it",
        "name a parent image with a package manager, or drop apt_packages, requirements and what "
        "else is installed");
  if (is_empty)
    values.user.reset();  // there is no list of users to add it to: a container takes its number
  if (!values.installs() && values.environment.empty()) {
    if (!plan.parent) {
      plan.build = false;
      return plan;
    }
    auto own = std::move(*plan.parent);
    own.tag = plan.tag;
    return own;
  }
  plan.dockerfile = dockerfile_text(values, Builder::buildkit, options.template_dir);
  plan.classic_dockerfile = dockerfile_text(values, Builder::classic, options.template_dir);
  plan.context = std::move(context).sorted();
  if (plan.parent) {
    plan.parent_image.clear();
    plan.images_used.clear();
  }
  if (values.installs()) plan.host_only = host_files(read_host_config(this_machine()));
  if (values.installs()) {
    // Only the classic builder's Dockerfile uses it: no part of what the image is.
    auto script = template_text("image/common.sh", options.template_dir) +
                  template_text("image/collect.sh", options.template_dir);
    plan.host_only.push_back(generated("collect/collect.sh", std::move(script)));
    std::ranges::sort(plan.host_only, {}, &ContextFile::path);
  }
  note_large_context(
      plan,
      "List what the step does not need in .dockerignore, or name what it needs with `code:`");
  return plan;
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
