#include "lockfile/locked_environment.hpp"

#include <cctype>

#include "core/digest.hpp"
#include "core/text.hpp"

namespace pipeline::lockfile {

std::string digest(const LockedEnvironment& environment) {
  core::Hasher hasher;
  hasher.field("locked environment 1").field(environment.tag);
  for (const auto& package : environment.packages)
    hasher.field(package.name)
        .field(package.version)
        .field(package.sha256.empty() ? package.url : package.sha256);
  return hasher.finish().hex();
}

std::vector<std::string> install_lines(const LockedEnvironment& environment) {
  std::vector<std::string> lines;
  for (const auto& package : environment.packages) {
    auto line = package.origin == PackageOrigin::index  ? package.name + "==" + package.version
                : package.origin == PackageOrigin::path ? package.url
                                                        : package.name + " @ " + package.url;
    if (!package.sha256.empty()) line += " --hash=sha256:" + package.sha256;
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string address_lines(const LockedEnvironment& environment) {
  std::string text;
  for (const auto& package : environment.packages)
    if (!package.sha256.empty())
      text += package.sha256 + " " + std::to_string(package.size) + " " + package.file + " " +
              package.url + "\n";
  return text;
}

bool is_built_from_source(const LockedPackage& package) { return !package.file.ends_with(".whl"); }

std::string notice_of_sources(const LockedEnvironment& environment) {
  std::string names;
  for (const auto& package : environment.packages)
    if (is_built_from_source(package))
      names += (names.empty() ? "" : ", ") + package.name +
               (package.version.empty() ? "" : " " + package.version);
  if (names.empty()) return names;
  return "the lock pins the source of " + names +
         ", but not the build's own requirements, which are chosen when it is built";
}

bool is_package_name(std::string_view text) {
  return !text.empty() && core::is_alnum(text.front()) && core::all(text, [](char c) {
    return core::is_alnum(c) || std::string_view("-_.").find(c) != std::string_view::npos;
  });
}

bool is_version(std::string_view text) {
  return !text.empty() && core::is_alnum(text.front()) && core::all(text, [](char c) {
    return core::is_alnum(c) || std::string_view("-_.+!").find(c) != std::string_view::npos;
  });
}

bool is_address(std::string_view text) {
  return !text.empty() && text.front() != '-' &&
         core::all(text, [](char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7f; });
}

std::vector<PackageFault> faults_of(const LockedPackage& package) {
  std::vector<PackageFault> faults;
  const auto require = [&](const char* key, const std::string& text, bool is_right,
                           std::string why) {
    if (!text.empty() && !is_right) faults.push_back({key, std::move(why)});
  };
  const bool is_digest = package.sha256.size() == 64 && core::all(package.sha256, [](char c) {
                           return core::is_digit(c) || ('a' <= c && c <= 'f');
                         });
  require("name", package.name, is_package_name(package.name),
          "'" + package.name + "' is not a package's name");
  require("version", package.version, is_version(package.version),
          "'" + package.version + "' is not a version");
  require("file", package.file,
          core::all(package.file,
                    [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 0x7f; }),
          "the file's name has control characters");
  require("sha256", package.sha256, is_digest, "a SHA-256 has 64 digits, 0 to 9 and a to f");
  require("url", package.url, is_address(package.url),
          package.url.starts_with('-') ? "the address begins with `-`, as an option does"
                                       : "the address has blanks or control characters");
  return faults;
}

std::string normalised_name(std::string_view name) {
  std::string normalised;
  for (const unsigned char c : name) {
    const bool separates = c == '-' || c == '_' || c == '.';
    if (!separates)
      normalised += static_cast<char>(std::tolower(c));
    else if (!normalised.ends_with('-'))
      normalised += '-';
  }
  return normalised;
}

}  // namespace pipeline::lockfile
