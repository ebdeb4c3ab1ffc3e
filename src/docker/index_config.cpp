#include "docker/index_config.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include <unistd.h>

#include "core/address.hpp"
#include "core/file.hpp"
#include "core/glob.hpp"
#include "core/identifier.hpp"
#include "core/joined.hpp"
#include "core/text.hpp"
#include "settings/image_archive.hpp"

namespace pipeline::docker {

namespace fs = std::filesystem;

namespace {

// The keys of pip's configuration that tell how to reach packages. Others (target, user, cache-dir,
// ...) concern this machine only.
constexpr std::array pip_keys{"index-url", "extra-index-url", "trusted-host", "find-links",
                              "timeout",   "default-timeout", "retries",      "proxy"};
constexpr std::array uv_variables{"UV_INDEX_URL",       "UV_DEFAULT_INDEX",  "UV_INDEX",
                                  "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS",     "UV_INSECURE_HOST",
                                  "UV_HTTP_TIMEOUT",    "UV_INDEX_STRATEGY", "UV_NATIVE_TLS"};
constexpr std::array proxy_variables{"http_proxy", "https_proxy", "ftp_proxy",   "no_proxy",
                                     "all_proxy",  "HTTP_PROXY",  "HTTPS_PROXY", "FTP_PROXY",
                                     "NO_PROXY",   "ALL_PROXY"};
constexpr std::array ca_variables{"PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
                                  "CURL_CA_BUNDLE"};

/// Variable with the images that get logins of package indexes: patterns separated by blanks.
constexpr auto index_parents = "PIPE_INDEX_PARENTS";
/// Variable that names a server of snapshots of Debian's and Ubuntu's archives.
constexpr auto snapshot_mirror = "PIPE_APT_SNAPSHOT_MIRROR";

/// Returns only the network addresses of a list; a folder of this machine does not exist in a
/// build.
std::string urls_of(const std::string& list) {
  auto words = core::words_of(list);
  std::erase_if(words, [](const std::string& word) {
    return word.find("://") == word.npos || word.starts_with("file:");
  });
  return core::joined(words, " ");
}

std::string one_line(std::string_view text) { return core::joined(core::words_of(text), " "); }

bool has_certificates(const fs::path& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".crt") return true;
  return false;
}

/// Values of pip's configuration by key, of one section each.
struct PipConfig {
  StringMap global, install;
};

/// Adds the values in a pip.conf's sections [global] and [install], with `-` for `_` in their keys.
void add_pip_conf(std::string_view text, PipConfig& config) {
  std::istringstream stream{std::string(text)};
  StringMap* section = nullptr;
  std::string key;
  for (std::string line; std::getline(stream, line);) {
    const std::string content(core::trimmed(line));
    if (content.empty() || content.starts_with('#') || content.starts_with(';')) continue;
    if (content.front() == '[') {
      const auto name = content.substr(1, content.find(']') - 1);
      section = name == "global" ? &config.global : name == "install" ? &config.install : nullptr;
      key.clear();
      continue;
    }
    if (!section) continue;
    // As in Python's configparser, an indented line continues the value.
    if (std::isspace(static_cast<unsigned char>(line.front())) && !key.empty()) {
      auto& value = (*section)[key];
      value += (value.empty() ? "" : " ") + content;
      continue;
    }
    auto separator = content.find_first_of("=:");
    if (separator == content.npos) continue;
    key = core::trimmed(std::string_view(content).substr(0, separator));
    std::ranges::replace(key, '_', '-');
    (*section)[key] = core::trimmed(std::string_view(content).substr(separator + 1));
  }
}

/// Returns the values that `pip install` uses: those of [install] take precedence over those of
/// [global], whichever file has them, and empty ones do not count.
StringMap read_pip_files(const std::vector<fs::path>& files) {
  PipConfig config;
  for (const auto& file : files)
    if (::access(file.c_str(), R_OK) == 0) add_pip_conf(core::read_if_file(file), config);
  for (const auto& [key, value] : config.install)
    if (!value.empty()) config.global[key] = value;
  return std::move(config.global);
}

}  // namespace

IndexSources this_machine() {
  IndexSources sources;
  sources.variable = [](const std::string& name) -> std::optional<std::string> {
    auto* value = std::getenv(name.c_str());
    return value && *value ? std::optional<std::string>(value) : std::nullopt;
  };
  for (char** entry = environ; entry && *entry; ++entry) {
    std::string_view text = *entry;
    sources.variable_names.emplace_back(text.substr(0, text.find('=')));
  }
  auto home = sources.variable("HOME");
  auto config = sources.variable("PIP_CONFIG_FILE");
  if (config == "/dev/null") return sources;  // pip's notation for "no configuration files".
  sources.pip_files = {"/etc/xdg/pip/pip.conf", "/etc/pip.conf"};
  if (home)
    sources.pip_files.insert(sources.pip_files.end(), {fs::path(*home) / ".pip/pip.conf",
                                                       fs::path(*home) / ".config/pip/pip.conf"});
  if (auto xdg = sources.variable("XDG_CONFIG_HOME"))
    sources.pip_files.push_back(fs::path(*xdg) / "pip/pip.conf");
  if (auto venv = sources.variable("VIRTUAL_ENV"))
    sources.pip_files.push_back(fs::path(*venv) / "pip.conf");
  if (config) sources.pip_files.emplace_back(*config);
  return sources;
}

IndexConfig read_index_config(const IndexSources& sources) {
  IndexConfig config;
  auto pip = read_pip_files(sources.pip_files);
  for (std::string key : pip_keys) {
    auto name = core::variable_name("PIP_", key);
    if (auto value = sources.variable(name)) pip[key] = *value;
    auto found = pip.find(key);
    if (found == pip.end()) continue;
    auto value = key == "find-links" ? urls_of(found->second) : one_line(found->second);
    if (!value.empty()) config.variables[name] = value;
  }
  // uv reads no pip configuration, so the values are repeated under its own names.
  auto translate = [&](const char* from, const char* to) {
    if (auto found = config.variables.find(from); found != config.variables.end())
      config.variables.emplace(to, found->second);
  };
  for (auto* name : uv_variables)
    if (auto value = sources.variable(name)) {
      auto kept = std::string_view(name) == "UV_FIND_LINKS" ? urls_of(*value) : one_line(*value);
      if (!kept.empty()) config.variables[name] = kept;
    }
  for (auto& name : sources.variable_names)
    if (name.starts_with("UV_INDEX_") &&
        (name.ends_with("_USERNAME") || name.ends_with("_PASSWORD")))
      if (auto value = sources.variable(name)) config.variables[name] = *value;
  if (!config.variables.contains("UV_DEFAULT_INDEX")) translate("PIP_INDEX_URL", "UV_INDEX_URL");
  if (!config.variables.contains("UV_INDEX"))
    translate("PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL");
  translate("PIP_TRUSTED_HOST", "UV_INSECURE_HOST");
  translate("PIP_FIND_LINKS", "UV_FIND_LINKS");

  if (auto mirror = sources.variable(snapshot_mirror)) config.variables[snapshot_mirror] = *mirror;
  for (auto* name : proxy_variables)
    if (auto value = sources.variable(name)) config.proxies[name] = config.variables[name] = *value;

  std::error_code error;
  auto use = [&](const std::string& path) {
    if (!config.ca && !path.empty() && fs::is_regular_file(path, error))
      config.ca = fs::absolute(path);
  };
  for (auto* name : ca_variables)
    if (auto value = sources.variable(name)) use(*value);
  if (auto found = pip.find("cert"); found != pip.end()) use(found->second);
  if (!config.ca && has_certificates(sources.own_certificates)) use(sources.system_bundle);
  return config;
}

IndexConfig config_for_build(const IndexSources& sources, const std::vector<std::string>& images,
                             std::vector<std::string>& notices) {
  auto config = read_index_config(sources);
  const auto patterns = core::words_of(sources.variable(index_parents).value_or(""));
  const auto is_trusted = [&](const std::string& image) {
    return (image.find('/') == image.npos && !settings::image_archive(image)) ||
           std::ranges::any_of(patterns, [&](const std::string& pattern) {
             return core::matches_glob(pattern, image);
           });
  };
  const auto other = std::ranges::find_if_not(images, is_trusted);
  if (other == images.end()) return config;
  const auto before = config.variables;
  for (auto entry = config.variables.begin(); entry != config.variables.end();) {
    auto& [name, value] = *entry;
    if (!config.proxies.contains(name)) value = core::without_credentials(value);
    const bool is_login = name.ends_with("_USERNAME") || name.ends_with("_PASSWORD");
    entry = is_login ? config.variables.erase(entry) : std::next(entry);
  }
  if (config.variables != before)
    notices.push_back("builds on " + *other +
                      " get no login of a package index: `export PIPE_INDEX_PARENTS='" + *other +
                      "'` trusts the image, and what is built on it, with the logins of this "
                      "machine");
  return config;
}

std::vector<ContextFile> host_files(const IndexConfig& config) {
  std::string script = "# How the caller's machine reaches package indexes.\n";
  for (auto& [name, value] : config.variables)
    if (core::is_variable_name(name) && !core::has_control_characters(value))
      script += "export " + name + "=" + core::shell_quote(value) + "\n";
  std::vector<ContextFile> files;
  if (config.ca) {
    std::error_code error;
    files.push_back(
        {.path = "host/ca.crt", .source = *config.ca, .bytes = fs::file_size(*config.ca, error)});
  }
  files.push_back({.path = "host/env.sh", .content = script, .bytes = script.size()});
  return files;
}

}  // namespace pipeline::docker
