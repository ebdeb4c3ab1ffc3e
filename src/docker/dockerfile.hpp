/// @file
/// The generated Dockerfile: from values to text, each one encoded for its place; and what must be
/// known of a Dockerfile that the user wrote.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/settings.hpp>

#include "settings/image_reference.hpp"

namespace pipeline::docker {

/// What the templates' holes are filled with.
struct DockerfileValues {
  std::string parent_image;
  StringMap environment;
  bool apt = false;
  bool python = false;   ///< There are requirements, or a pyproject.toml.
  bool project = false;  ///< There is a local_project_install_command.
  PackageInstaller installer = PackageInstaller::uv;
  std::optional<std::string> user;
  std::string
      parent_user;  ///< USER of the parent image; put back after the installs, which need root.

  bool installs() const { return apt || python || project || user.has_value(); }
};

enum class Builder { buildkit, classic };

/// The Dockerfile's text. Throws InputError for a value that no encoding makes safe.
std::string dockerfile_text(const DockerfileValues& values, Builder builder,
                            const std::filesystem::path& template_dir);

/// A value of ENV: in double quotes, so that the builder expands nothing in it.
std::string quote_env(std::string_view value);

/// The images that a Dockerfile starts from or copies from, in order, without stages and `scratch`;
/// ARG values before the first FROM are filled in. A reference that cannot be told (an ARG without
/// a value) is left out.
std::vector<std::string> images_used(std::string_view dockerfile, const StringMap& build_args);

struct Instruction {
  unsigned line = 0;  ///< Of its first word, from 1.
  std::string text;   ///< Continued lines joined, blanks collapsed, comments left out.
};
std::vector<Instruction> instructions_of(std::string_view dockerfile);

}  // namespace pipeline::docker
