#include "settings/formats.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/identifier.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "settings/failure_pattern.hpp"
#include "settings/image_archive.hpp"
#include "settings/image_reference.hpp"
#include "settings/snapshot.hpp"

namespace pipeline::settings::formats {
namespace {

using core::all;
using core::is_alnum;
using core::is_digit;
using core::is_lower;
using core::split;

bool is_line(std::string_view text) { return !core::has_control_characters(text); }
bool is_word(std::string_view text) { return !text.empty() && is_line(text); }
bool is_text(std::string_view text) {
  return all(text, [](char c) {
    return (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) || c == '\n' || c == '\t';
  });
}

/// Returns the reference in lower case, without scheme, tag and digest. Adds the name `pipe` to a
/// registry, `host:5000`.
std::string nearest_repository(std::string_view text) {
  if (const auto scheme = text.find("://"); scheme != text.npos) text.remove_prefix(scheme + 3);
  while (text.ends_with('/')) text.remove_suffix(1);
  const auto result = core::lower(text.substr(0, text.find('@')));
  const auto colon = result.rfind(':');
  if (colon == result.npos || result.find('/', colon) != result.npos) return result;
  const bool is_port = result.find('/') == result.npos &&
                       all(std::string_view(result).substr(colon + 1), core::is_digit);
  return is_port ? result + "/pipe" : result.substr(0, colon);
}

/// An architecture's name in kernels and distributions, and in Go, images and nodes' labels.
struct ArchitectureName {
  std::string_view other, go;
};
constexpr std::array other_architectures{
    ArchitectureName{"x86_64", "amd64"},     ArchitectureName{"x86-64", "amd64"},
    ArchitectureName{"x64", "amd64"},        ArchitectureName{"aarch64", "arm64"},
    ArchitectureName{"i386", "386"},         ArchitectureName{"i686", "386"},
    ArchitectureName{"x86", "386"},          ArchitectureName{"armhf", "arm/v7"},
    ArchitectureName{"armv7l", "arm/v7"},    ArchitectureName{"armel", "arm/v6"},
    ArchitectureName{"mips64el", "mips64le"}};

bool is_platform(std::string_view text) {
  const auto parts = split(text, '/');
  return (parts.size() == 2 || parts.size() == 3) &&
         std::all_of(parts.begin(), parts.end(),
                     [](std::string_view part) {
                       return !part.empty() &&
                              all(part, [](char c) { return is_lower(c) || is_digit(c); });
                     }) &&
         std::ranges::find(other_architectures, parts[1], &ArchitectureName::other) ==
             other_architectures.end();
}

std::string nearest_platform(std::string_view text) {
  auto result = core::lower(text);
  const auto parts = split(result, '/');
  if (parts.size() < 2) return {};
  const auto* const name =
      std::ranges::find(other_architectures, parts[1], &ArchitectureName::other);
  if (name != other_architectures.end())
    result.replace(parts[0].size() + 1, name->other.size(), name->go);
  return result;
}

bool is_id(std::string_view text) {
  constexpr std::size_t max_digits = 10;  // An id has 32 bits.
  return !text.empty() && text.size() <= max_digits && all(text, core::is_digit);
}
bool is_user(std::string_view text) {
  constexpr std::size_t max_name = 32;  // useradd(8) allows as many.
  if (text.empty() || text.size() > max_name) return false;
  if (is_digit(text[0])) {
    const auto parts = split(text, ':');
    return parts.size() <= 2 && std::all_of(parts.begin(), parts.end(), is_id);
  }
  return (is_alnum(text[0]) || text[0] == '_') &&
         all(text, [](char c) { return is_alnum(c) || c == '_' || c == '-' || c == '.'; });
}

bool is_docker_name(std::string_view text) {
  return !text.empty() && is_alnum(text[0]) &&
         all(text, [](char c) { return is_alnum(c) || c == '_' || c == '.' || c == '-'; });
}
bool is_network(std::string_view text) {
  return is_docker_name(text.starts_with("container:") ? text.substr(10) : text);
}

bool is_volume(std::string_view text) {
  if (!is_line(text)) return false;
  const auto parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return false;
  const auto source = parts[0], target = parts[1];
  const bool is_path = source.starts_with('/') || source.starts_with("./") ||
                       source.starts_with("../") || source == "." || source == ".." ||
                       source == "~" || source.starts_with("~/");
  if (!is_path && !is_docker_name(source)) return false;
  const auto components = split(target, '/');
  if (!target.starts_with('/') || target == "/" ||
      std::find(components.begin(), components.end(), "..") != components.end())
    return false;
  return parts.size() == 2 || parts[2] == "ro" || parts[2] == "rw";
}

bool is_label(std::string_view text) {
  return !text.empty() && text.size() <= 256 && all(text, [](char c) {
    return is_alnum(c) || c == '.' || c == '_' || c == '-' || c == '/';
  });
}

bool is_apt_package(std::string_view text) {
  const auto name_end = std::min(text.find_first_of(":=/"), text.size());
  const auto name = text.substr(0, name_end);
  if (name.size() < 2 || !(is_lower(name[0]) || is_digit(name[0]))) return false;
  if (!all(name,
           [](char c) { return is_lower(c) || is_digit(c) || c == '+' || c == '-' || c == '.'; }))
    return false;
  auto rest = text.substr(name_end);
  if (rest.starts_with(':')) {
    const auto end = std::min(rest.find_first_of("=/"), rest.size());
    const auto architecture = rest.substr(1, end - 1);
    if (architecture.empty() ||
        !all(architecture, [](char c) { return is_lower(c) || is_digit(c) || c == '-'; }))
      return false;
    rest = rest.substr(end);
  }
  if (rest.empty()) return true;
  const auto version = rest.substr(1);
  return !version.empty() && version[0] != '-' && all(version, [](char c) {
    return is_alnum(c) || c == '.' || c == '+' || c == '-' || c == '~' || c == ':';
  });
}

/// Returns true for a path below the folder, such as `./wheels/x.whl`, perhaps with a marker.
bool is_path_below(std::string_view text) {
  text = text.substr(0, text.find(" ;"));
  if (!text.starts_with("./") || text.find(' ') != std::string_view::npos) return false;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('/', begin), text.size());
    if (text.substr(begin, end - begin) == "..") return false;
    begin = end + 1;
  }
  return true;
}

/// Returns true for text that can follow a package's name: `[extra] >=1.2`, `; marker`, `@ URL`.
bool follows_a_name(std::string_view text) {
  const auto skip_blanks = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  };
  skip_blanks();
  if (text.starts_with('[')) text.remove_prefix(std::min(text.find(']'), text.size() - 1) + 1);
  skip_blanks();
  return text.empty() ||
         std::ranges::any_of(
             std::initializer_list<const char*>{"==", "~=", "!=", "<", ">", ";", "@", "(", "--"},
             [&](const char* start) { return text.starts_with(start); });
}

bool is_requirement(std::string_view text) {
  if (!is_word(text) || text.front() == ' ' || text.back() == ' ') return false;
  if (text.find("file:") != std::string_view::npos) return false;
  if (is_path_below(text)) return true;
  if (text.starts_with("-e ") || text.starts_with("--editable "))
    return is_path_below(text.substr(text.find(' ') + 1));
  if (text.starts_with("-r ") || text.starts_with("-c ")) return text.size() > 3;
  if (text.starts_with("--")) {
    const auto option = text.substr(0, text.find_first_of(" ="));
    return option.size() > 2 && option != "--editable" && option != "--requirement";
  }
  if (text.starts_with("git+") || text.starts_with("http://") || text.starts_with("https://") ||
      text.starts_with("hg+") || text.starts_with("svn+"))
    return true;
  const auto name = text.substr(0, text.find_first_of(" [<>=!~;@("));
  return !name.empty() && is_alnum(name[0]) &&
         all(name, [](char c) { return is_alnum(c) || c == '_' || c == '-' || c == '.'; }) &&
         follows_a_name(text.substr(name.size()));
}

/// Returns `numpy==1.26` for conda's `numpy=1.26`.
std::string nearest_requirement(std::string_view text) {
  std::string meant(text);
  if (const auto sign = meant.find('='); sign != std::string::npos) meant.insert(sign, "=");
  return meant;
}

bool is_installer_option(std::string_view text) {
  return !text.empty() && (is_lower(text[0]) || is_digit(text[0])) &&
         all(text, [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
}

bool is_host_entry(std::string_view text) {
  const auto colon = text.find(':');
  return is_word(text) && colon != std::string_view::npos && colon > 0 && colon + 1 < text.size() &&
         text.find(' ') == std::string_view::npos && is_docker_name(text.substr(0, colon));
}

bool is_compute_capability(std::string_view text) {
  const auto dot = text.find('.');
  return (dot == 1 || dot == 2) && text.size() == dot + 2 && text[0] != '0' &&
         all(text.substr(0, dot), core::is_digit) && is_digit(text.back());
}

bool is_instance_type(std::string_view text) {
  const auto parts = split(text, '.');
  return parts.size() == 2 && text.size() <= 64 &&
         std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           return !part.empty() &&
                  all(part, [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
         });
}

/// Accepts lower-case letters, digits and `-` between dots; no part may begin or end with `-`.
bool is_kubernetes_name(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  const auto parts = split(text, '.');
  return std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
    return !part.empty() && part.front() != '-' && part.back() != '-' &&
           all(part, [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
  });
}

bool is_kubernetes_label(std::string_view text) {
  if (text.empty()) return true;
  return text.size() <= 63 && is_alnum(text.front()) && is_alnum(text.back()) &&
         all(text, [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_kubernetes_key(std::string_view text) {
  if (const auto slash = text.find('/'); slash != std::string_view::npos) {
    if (!is_kubernetes_name(text.substr(0, slash))) return false;
    text.remove_prefix(slash + 1);
  }
  return !text.empty() && is_kubernetes_label(text);
}

bool is_own_label(std::string_view text) {
  return is_kubernetes_key(text) && !text.starts_with("pipe.");
}

bool is_quantity(std::string_view text) { return core::parse_quantity(text).has_value(); }

bool is_toleration(std::string_view text) {
  if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    const auto effect = text.substr(colon + 1);
    if (effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute")
      return false;
    text = text.substr(0, colon);
  }
  const auto equals = text.find('=');
  return is_kubernetes_key(text.substr(0, equals)) &&
         (equals == std::string_view::npos || is_kubernetes_label(text.substr(equals + 1)));
}

bool is_secret_or_configmap(std::string_view kind) {
  return kind == "secret" || kind == "configmap";
}

bool is_env_from_source(std::string_view text) {
  const auto parts = split(text, '/');
  return parts.size() == 2 && is_secret_or_configmap(parts[0]) && is_kubernetes_name(parts[1]);
}

bool is_env_source(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || !core::is_variable_name(text.substr(0, equals)))
    return false;
  const auto parts = split(text.substr(equals + 1), '/');
  return parts.size() == 3 && is_secret_or_configmap(parts[0]) && is_kubernetes_name(parts[1]) &&
         !parts[2].empty() &&
         all(parts[2], [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_volume_source(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3 ||
      (parts.size() == 3 && parts[2] != "ro" && parts[2] != "rw"))
    return false;
  const auto slash = std::min(parts[0].find('/'), parts[0].size());
  const auto kind = parts[0].substr(0, slash);
  return (kind == "pvc" || is_secret_or_configmap(kind)) &&
         is_kubernetes_name(parts[0].substr(std::min(slash + 1, parts[0].size()))) &&
         parts[1].starts_with('/') && is_word(parts[1]);
}

bool is_whole_number(std::string_view text) {
  constexpr std::size_t max_digits = 9;
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.size() <= max_digits && all(text, is_digit);
}

/// Long options of sbatch that `pipe` leaves to users (docs/slurm.md): `pipe` neither sets them nor
/// depends on their defaults.
constexpr std::array<std::string_view, 26> sbatch_options{
    "acctg-freq", "bb",        "begin",      "contiguous",   "cores-per-socket",
    "cpu-freq",   "deadline",  "delay-boot", "distribution", "exclusive",
    "gpu-bind",   "gpu-freq",  "hint",       "licenses",     "mail-type",
    "mail-user",  "mcs-label", "mincpus",    "network",      "nodelist",
    "prefer",     "priority",  "switches",   "tmp",          "threads-per-core",
    "wckey"};

bool is_sbatch_option(std::string_view text) {
  if (!is_line(text) || !text.starts_with("--") || text.ends_with('=')) return false;
  const auto name = text.substr(2, text.find('=') - 2);
  return std::ranges::find(sbatch_options, name) != sbatch_options.end();
}

/// Returns `--licenses=matlab:1` for `licenses matlab:1`.
std::string nearest_sbatch_option(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('-'), text.size()));
  std::string option = "--" + std::string(core::trimmed(text));
  if (const auto blank = option.find(' '); blank < option.find('=')) option[blank] = '=';
  return option;
}

/// Returns `my-secret` for `My_Secret`.
std::string nearest_kubernetes_name(std::string_view text) {
  return core::replaced(core::replaced(core::lower(text), "_", "-"), " ", "-");
}

/// Returns `8Gi` for `8GiB`, `500m` for `500 m`.
std::string nearest_quantity(std::string_view text) {
  std::string amount;
  for (const char c : text)
    if (c != ' ') amount += c;
  if (amount.ends_with('B')) amount.pop_back();
  if (amount.ends_with('K')) amount.back() = 'k';
  return amount;
}

}  // namespace

const Format line{"a text without control characters and line ends", is_line,
                  "^[^\\u0000-\\u001f\\u007f]*$"};
const Format word{"a text without control characters and line ends, and not empty", is_word,
                  "^[^\\u0000-\\u001f\\u007f]+$"};
const Format text{"a text without control characters", is_text, nullptr};
const Format path{"a path, without control characters and not empty", is_word,
                  "^[^\\u0000-\\u001f\\u007f]+$"};
const Format image{
    "an image such as `python:3.11-slim`, `ghcr.io/owner/name:tag` or `name@sha256:...`",
    is_image_reference, "^[A-Za-z0-9][A-Za-z0-9._:/-]*(@[A-Za-z0-9+._-]+:[0-9a-f]{32,})?$"};
const Format parent_image{
    "an image such as `python:3.11-slim`, `ghcr.io/owner/name:tag` or `name@sha256:...`, or an "
    "archive such as `oci-archive:FILE[:TAG]` or `docker-archive:FILE[:NAME]`",
    is_parent_image,
    "^((oci|oci-archive|docker-archive):[^:]+(:.+)?|"
    "[A-Za-z0-9][A-Za-z0-9._:/-]*(@[A-Za-z0-9+._-]+:[0-9a-f]{32,})?)$"};
const Format repository{
    "a repository name in lower case such as `pipe` or `ghcr.io/owner/name`, without a tag",
    is_image_repository, "^[A-Za-z0-9][A-Za-z0-9._:/-]*$", nearest_repository};
const Format image_tag{"a tag of at most 128 letters, digits, `_`, `.` and `-`", is_image_tag,
                       "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"};
const Format platform{"a platform such as `linux/amd64` or `linux/arm64/v8`", is_platform,
                      "^[a-z0-9]+/[a-z0-9]+(/[a-z0-9]+)?$", nearest_platform};
const Format user{"a user as NAME, UID or UID:GID", is_user,
                  "^([A-Za-z_][A-Za-z0-9_.-]*|[0-9]+(:[0-9]+)?)$"};
const Format network{"`bridge`, `host`, `none`, `container:NAME` or a network's name", is_network,
                     "^(container:)?[A-Za-z0-9][A-Za-z0-9_.-]*$"};
const Format volume{
    "`SOURCE:TARGET[:ro|rw]` with a path or a volume's name as the source, and an absolute path as "
    "the target",
    is_volume, "^[^:]+:/[^:]+(:(ro|rw))?$"};
const Format label{"a label's name of letters, digits, `.`, `_`, `-` and `/`", is_label,
                   "^[A-Za-z0-9._/-]+$"};
const Format variable{
    "a variable's name of letters, digits and `_` that does not begin with a digit",
    core::is_variable_name, "^[A-Za-z_][A-Za-z0-9_]*$"};
const Format apt_package{"a Debian package such as `libgomp1` or `curl=7.88.1-10`", is_apt_package,
                         "^[a-z0-9][a-z0-9+.-]+(:[a-z0-9-]+)?([=/][A-Za-z0-9.+:~-]+)?$"};
const Format failure{
    "`exit 75`, `signal 9`, a kind of failure such as `out_of_memory`, `infrastructure` or "
    "`timeout`, or a text of the step's output, which is more than one lower-case word",
    [](std::string_view named) { return parse_failure(named).has_value(); }, nullptr,
    nearest_failure};
const Format snapshot{
    "a date that has passed (UTC), as in `2026-11-01` or `2026-11-01T12:00:00Z`", is_snapshot,
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?$|^[0-9]{8}T[0-9]{6}Z$",
    nearest_snapshot};
const Format requirement{
    "a requirement such as `numpy==1.26.4`, `name @ https://...`, `./wheels/x.whl` or `./project` "
    "below the pipeline's folder, a file (`-r FILE`, `-c FILE`), or an option such as "
    "`--extra-index-url URL`",
    is_requirement, "^[^\\u0000-\\u001f\\u007f]+$", nearest_requirement};
const Format installer_option{
    "a long option of the installer without its dashes, such as `index-url`", is_installer_option,
    "^[a-z0-9][a-z0-9-]*$"};
const Format host_entry{"`NAME:ADDRESS`", is_host_entry, "^[A-Za-z0-9][A-Za-z0-9_.-]*:.+$"};
const Format build_argument{"a build argument's name of letters, digits and `_`",
                            core::is_variable_name, "^[A-Za-z_][A-Za-z0-9_]*$"};
const Format compute_capability{"a compute capability such as `8.0`", is_compute_capability,
                                "^[1-9][0-9]?\\.[0-9]$"};
const Format instance_type{"an instance type such as `g5.xlarge`", is_instance_type,
                           "^[a-z0-9-]+\\.[a-z0-9-]+$"};
const Format kubernetes_name{"a name of lower-case letters, digits, `-` and `.`",
                             is_kubernetes_name, "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
                             nearest_kubernetes_name};
const Format kubernetes_key{
    "a name such as `example.org/pool`: a DNS name and `/` if need be, then at most 63 letters, "
    "digits, `-`, `_` and `.`",
    is_kubernetes_key, "^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"};
const Format kubernetes_label{
    "at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at each end",
    is_kubernetes_label, "^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$"};
const Format own_label{
    "a name such as `example.org/team` that does not begin with `pipe.`, which is reserved",
    is_own_label, "^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"};
const Format quantity{
    "an amount as Kubernetes writes it, such as `2`, `500m`, `8Gi` or `20G`", is_quantity,
    "^[0-9.]+(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?$", nearest_quantity};
const Format toleration{
    "a taint such as `pool=gpu:NoSchedule`, `pool:NoExecute` or `pool`", is_toleration,
    "^[A-Za-z0-9./_-]+(=[A-Za-z0-9._-]*)?(:(NoSchedule|PreferNoSchedule|NoExecute))?$"};
const Format env_source{"`NAME=secret/OBJECT/KEY` or `NAME=configmap/OBJECT/KEY`", is_env_source,
                        "^[A-Za-z_][A-Za-z0-9_]*=(secret|configmap)/[a-z0-9.-]+/[A-Za-z0-9._-]+$"};
const Format env_from_source{"`secret/OBJECT` or `configmap/OBJECT`", is_env_from_source,
                             "^(secret|configmap)/[a-z0-9.-]+$"};
const Format volume_source{
    "`pvc/CLAIM:TARGET[:ro|rw]`, `secret/OBJECT:TARGET` or `configmap/OBJECT:TARGET` with an "
    "absolute path as the target",
    is_volume_source, "^(pvc|secret|configmap)/[a-z0-9.-]+:/[^:]*(:(ro|rw))?$"};
const Format whole_number{"a whole number such as `100` or `-5`", is_whole_number,
                          "^-?[0-9]{1,9}$"};
const Format sbatch_option{
    "a long option of sbatch that `pipe` leaves to you, such as `--exclusive` or "
    "`--licenses=matlab:1`",
    is_sbatch_option, "^--[a-z-]+(=.+)?$", nearest_sbatch_option};
const NumberFormat positive{"a number above 0 and below 1000000, such as `0.5` or `4`",
                            [](double number) { return number > 0 && number < 1e6; }, 0, true};
const NumberFormat at_least_one{"a number of at least 1 and below 1000000, such as `2`",
                                [](double number) { return number >= 1 && number < 1e6; }, 1,
                                false};

}  // namespace pipeline::settings::formats
