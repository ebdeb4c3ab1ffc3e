#include "lockfile/text.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "lockfile/conflict.hpp"
#include "settings/decode.hpp"
#include "yaml/document.hpp"

namespace pipeline::lockfile {
namespace {

using core::Value;
using nlohmann::json;
using settings::Diagnostics;
using Names = std::vector<std::string>;

constexpr std::string_view schema_version = "1";
constexpr std::string_view header =
    "# The packages that the environments of this pipeline's steps consist of. `pipe` writes this\n"
    "# file: commit it, and change it with `pipe lock`, not by hand.\n";
constexpr const char* write_again =
    "take the file from git (`git checkout -- FILE`), or remove it: the next run or `pipe lock` "
    "writes another";

const Names file_keys{"version", "environments", "data"};
const Names environment_keys{"parent",       "parent_digest", "python",       "tag",
                             "platform",     "installer",     "requirements", "apt_snapshot",
                             "apt_packages", "packages"};
const Names package_keys{"name",   "version", "file", "size",
                         "origin", "sha256",  "url",  "required_by"};
const Names data_keys{"address", "sha256", "size", "files", "etag", "modified", "version"};
const Names origins{"index", "url", "repository", "path"};

/// Returns the advice with the file's name in place of FILE.
std::string with_file_name(const char* advice, const std::string& file) {
  std::string text = advice;
  const auto at = text.find("FILE");
  if (at != text.npos) text.replace(at, 4, file);
  return text;
}

/// Returns an error for the first of git's conflict markers.
std::optional<core::Diagnostic> find_conflict(std::string_view text) {
  unsigned number = 0;
  for (const auto line : core::split(text, '\n')) {
    ++number;
    if (!is_conflict_marker(line)) continue;
    core::Diagnostic conflict;
    conflict.code = "lock-conflict";
    conflict.message = "git could not merge two versions of this file: it has conflict markers";
    conflict.span = {number, 1, core::span_length(line.size())};
    conflict.notes = {
        "the two sides locked different packages; the lock follows from the requirements"};
    conflict.suggestion =
        "merge the pipeline file first, then run `pipe lock`: it takes what both sides have "
        "locked, and resolves what the merged requirements ask for beyond that";
    return conflict;
  }
  return std::nullopt;
}

/// Reads the members of a map of the file.
class Reader {
 public:
  Reader(const Value& map, const Names& keys, std::string_view place, Diagnostics& diagnostics)
      : map_(map), place_(place), diagnostics_(diagnostics) {
    is_map_ = map.kind == Value::Kind::map;
    if (is_map_)
      settings::report_unknown_keys(map, keys, place, diagnostics);
    else
      settings::report_type(diagnostics, place, "a map", map);
  }

  explicit operator bool() const { return is_map_; }

  /// Returns the text of a member; empty if the map does not have the member.
  std::string text(const char* key) {
    const auto* value = map_.find(key);
    if (!value) return {};
    if (value->kind == Value::Kind::scalar) return value->scalar;
    settings::report_type(diagnostics_, key, "a text", *value);
    return {};
  }

  std::string required_text(const char* key) {
    if (!map_.find(key))
      settings::report(diagnostics_, "missing-key", std::string(place_) + " has no '" + key + "'",
                       map_.span);
    return text(key);
  }

  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> result;
    for (const auto* item : items(key))
      if (item->kind == Value::Kind::scalar)
        result.push_back(item->scalar);
      else
        settings::report_type(diagnostics_, key, "a list of texts", *item);
    return result;
  }

  std::vector<const Value*> items(const char* key) {
    std::vector<const Value*> result;
    const auto* value = map_.find(key);
    if (!value || value->kind == Value::Kind::null) return result;
    if (value->kind != Value::Kind::list)
      settings::report_type(diagnostics_, key, "a list", *value);
    for (const auto& item : value->items) result.push_back(&item);
    return result;
  }

  std::uint64_t number(const char* key) {
    const auto* value = map_.find(key);
    std::uint64_t result = 0;
    if (!value) return result;
    const auto& text = value->scalar;
    if (std::from_chars(text.data(), text.data() + text.size(), result).ptr !=
            text.data() + text.size() ||
        text.empty())
      settings::report_type(diagnostics_, key, "a number of bytes", *value);
    return result;
  }

  /// Reports an error in a member that the map has.
  void report_value(const char* key, std::string message) {
    settings::report(diagnostics_, "bad-lock", std::move(message), map_.find(key)->span);
  }

 private:
  const Value& map_;
  std::string_view place_;  ///< `a package`, for messages.
  Diagnostics& diagnostics_;
  bool is_map_ = false;
};

LockedPackage read_package(const Value& value, Diagnostics& diagnostics) {
  LockedPackage package;
  Reader reader(value, package_keys, "a package", diagnostics);
  if (!reader) return package;
  package.name = reader.required_text("name");
  package.version = reader.required_text("version");
  package.file = reader.text("file");
  package.size = reader.number("size");
  package.sha256 = reader.text("sha256");
  package.url = reader.text("url");
  package.required_by = reader.texts("required_by");
  for (const auto& [key, why] : faults_of(package)) reader.report_value(key, why);
  if (const auto origin = reader.text("origin"); !origin.empty()) {
    const auto known = std::ranges::find(origins, origin);
    if (known == origins.end())
      reader.report_value(
          "origin", "'" + origin + "' is not an origin: expected index, url, repository or path");
    else
      package.origin = static_cast<PackageOrigin>(known - origins.begin());
  }
  return package;
}

LockedEnvironment read_environment(const Value& value, Diagnostics& diagnostics) {
  LockedEnvironment environment;
  Reader reader(value, environment_keys, "an environment", diagnostics);
  if (!reader) return environment;
  environment.parent = reader.required_text("parent");
  environment.parent_digest = reader.text("parent_digest");
  environment.python = reader.text("python");
  environment.tag = reader.text("tag");
  environment.platform = reader.text("platform");
  environment.installer = reader.required_text("installer");
  environment.requirements = reader.texts("requirements");
  environment.apt_snapshot = reader.text("apt_snapshot");
  environment.apt_packages = reader.texts("apt_packages");
  for (const auto* package : reader.items("packages"))
    environment.packages.push_back(read_package(*package, diagnostics));
  std::ranges::sort(environment.packages, {}, &LockedPackage::name);
  const auto duplicate = std::ranges::adjacent_find(environment.packages, {}, &LockedPackage::name);
  if (duplicate != environment.packages.end() && !duplicate->name.empty())
    reader.report_value("packages", "'" + duplicate->name + "' is in the list twice");
  return environment;
}

LockedData read_data(const Value& value, Diagnostics& diagnostics) {
  LockedData data;
  Reader reader(value, data_keys, "the data of an address", diagnostics);
  if (!reader) return data;
  data.address = reader.required_text("address");
  data.sha256 = reader.required_text("sha256");
  data.size = reader.number("size");
  data.files = reader.number("files");
  data.etag = reader.text("etag");
  data.modified = reader.text("modified");
  data.version = reader.text("version");
  if (value.find("sha256") &&
      (data.sha256.size() != 64 || !core::all(data.sha256, core::is_hex_digit)))
    reader.report_value("sha256", "a SHA-256 has 64 digits, 0 to 9 and a to f");
  const std::pair<const char*, const std::string*> texts[] = {{"address", &data.address},
                                                              {"etag", &data.etag},
                                                              {"modified", &data.modified},
                                                              {"version", &data.version}};
  for (const auto& [key, text] : texts)
    if (!is_plain_text(*text)) reader.report_value(key, "the text has control characters");
  return data;
}

std::string in_quotes(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string list_of(const std::vector<std::string>& texts) {
  std::string list;
  for (const auto& text : texts) list += (list.empty() ? "" : ", ") + in_quotes(text);
  return "[" + list + "]";
}

std::string line_of(const LockedPackage& package) {
  std::string line =
      "name: " + in_quotes(package.name) + ", version: " + in_quotes(package.version);
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) line += std::string(", ") + key + ": " + in_quotes(value);
  };
  add("file", package.file);
  if (package.size) line += ", size: " + std::to_string(package.size);
  if (package.origin != PackageOrigin::index)
    add("origin", origins[static_cast<std::size_t>(package.origin)]);
  add("sha256", package.sha256);
  add("url", package.url);
  if (!package.required_by.empty()) line += ", required_by: " + list_of(package.required_by);
  return "      - {" + line + "}\n";
}

std::string line_of(const LockedData& data) {
  std::string line = "address: " + in_quotes(data.address);
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) line += std::string(", ") + key + ": " + in_quotes(value);
  };
  add("sha256", data.sha256);
  line += ", size: " + std::to_string(data.size);
  if (data.files) line += ", files: " + std::to_string(data.files);
  add("etag", data.etag);
  add("modified", data.modified);
  add("version", data.version);
  return "  - {" + line + "}\n";
}

}  // namespace

LockContent parse(std::string_view text, const std::string& file) {
  Diagnostics diagnostics;
  LockContent content;
  if (auto conflict = find_conflict(text)) {
    diagnostics.push_back(std::move(*conflict));
  } else if (const auto document = yaml::parse_yaml(text, diagnostics)) {
    Reader reader(*document, file_keys, "a lock file", diagnostics);
    const auto version = reader ? reader.required_text("version") : std::string();
    if (!version.empty() && version != schema_version)
      throw core::InputError(
          {core::Diagnostic{"lock-version",
                            "this file has version " + version +
                                ", and this `pipe` reads version " + std::string(schema_version),
                            document->find("version")->span,
                            {},
                            "update `pipe`: a newer one has written this file"}},
          file, std::string(text));
    if (reader)
      for (const auto* environment : reader.items("environments"))
        content.environments.push_back(read_environment(*environment, diagnostics));
    if (reader)
      for (const auto* data : reader.items("data"))
        content.data.push_back(read_data(*data, diagnostics));
    std::ranges::sort(content.data, {}, &LockedData::address);
    const auto duplicate = std::ranges::adjacent_find(content.data, {}, &LockedData::address);
    if (duplicate != content.data.end() && diagnostics.empty())
      reader.report_value("data", "'" + duplicate->address + "' is in the list twice");
  }
  if (diagnostics.empty()) return content;
  for (auto& diagnostic : diagnostics)
    if (diagnostic.suggestion.empty()) diagnostic.suggestion = with_file_name(write_again, file);
  throw core::InputError(std::move(diagnostics), file, std::string(text));
}

std::string to_text(LockContent content) {
  auto& environments = content.environments;
  std::ranges::sort(environments, {}, [](const LockedEnvironment& each) {
    return std::tie(each.parent, each.tag, each.platform, each.installer, each.requirements,
                    each.parent_digest);
  });
  std::string text(header);
  text += "version: " + std::string(schema_version) + "\n";
  if (!environments.empty() || content.data.empty()) text += "environments:\n";
  for (auto& environment : environments) {
    text += "  - parent: " + in_quotes(environment.parent) + "\n";
    const auto add = [&](const char* key, const std::string& value) {
      if (!value.empty()) text += std::string("    ") + key + ": " + in_quotes(value) + "\n";
    };
    add("parent_digest", environment.parent_digest);
    add("python", environment.python);
    add("tag", environment.tag);
    add("platform", environment.platform);
    add("installer", environment.installer);
    text += "    requirements:\n";
    for (const auto& line : environment.requirements) text += "      - " + in_quotes(line) + "\n";
    add("apt_snapshot", environment.apt_snapshot);
    if (!environment.apt_packages.empty()) {
      text += "    apt_packages:\n";
      for (const auto& line : environment.apt_packages) text += "      - " + in_quotes(line) + "\n";
    }
    text += "    packages:\n";
    std::ranges::sort(environment.packages, {}, &LockedPackage::name);
    for (const auto& package : environment.packages) text += line_of(package);
  }
  if (content.data.empty()) return text;
  text += "# What the steps fetch, as it was when it was locked.\ndata:\n";
  std::ranges::sort(content.data, {}, &LockedData::address);
  for (const auto& data : content.data) text += line_of(data);
  return text;
}

}  // namespace pipeline::lockfile
