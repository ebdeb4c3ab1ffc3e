/// @file
/// Generates Dockerfiles, with each value encoded for its position, and analyses Dockerfiles that
/// the user wrote.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/settings.hpp>

#include "settings/image_reference.hpp"

namespace pipeline::docker {

/// The values of the templates' placeholders.
struct DockerfileValues {
  std::string parent_image;
  StringMap environment;
  bool apt = false;
  bool python = false;  ///< There are requirements, or a pyproject.toml, that the build resolves.
  std::size_t layers = 0;       ///< Number of layers of locked packages.
  std::set<std::size_t> built;  ///< Numbers, from 0, of the layers whose sources a stage builds.
  bool project = false;         ///< There is a local_project_install_command.
  PackageInstaller installer = PackageInstaller::uv;
  std::optional<std::string> user;
  std::string parent_user;  ///< USER of the parent image; restored after installs, which need root.

  /// Returns true if the build runs anything as root.
  bool installs() const { return apt || python || layers > 0 || project || user.has_value(); }
};

enum class Builder { buildkit, classic };

/// Returns the Dockerfile's text. Throws InputError for a value that cannot be encoded safely.
std::string dockerfile_text(const DockerfileValues& values, Builder builder,
                            const std::filesystem::path& template_dir);

/// Returns a value of ENV in double quotes, so that the builder expands nothing in it.
std::string quote_env(std::string_view value);

/// Returns the images that a Dockerfile starts from or copies from, in order, without stages and
/// `scratch`. ARG values before the first FROM are filled in. A reference that cannot be resolved
/// (an ARG without a value) is omitted.
std::vector<std::string> images_used(std::string_view dockerfile, const StringMap& build_args);

/// An instruction of a Dockerfile.
struct Instruction {
  unsigned line = 0;  ///< Line of the instruction's first word, from 1.
  std::string text;   ///< Continued lines joined, blanks collapsed, without comments.
};
std::vector<Instruction> instructions_of(std::string_view dockerfile);

/// Returns the last USER of a Dockerfile's last stage; empty if that stage sets no user, or sets it
/// by a variable.
std::string last_user(std::string_view dockerfile);

}  // namespace pipeline::docker
