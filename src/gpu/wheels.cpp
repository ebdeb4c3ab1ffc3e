#include "gpu/wheels.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "gpu/cuda_tables.hpp"

namespace pipeline::gpu {
namespace {

/// The variant of torch or jaxlib that `cu118`, `cuda12` or `cpu` names.
struct Variant {
  std::string name;  ///< `cpu` or `cuda`.
  std::optional<Version> cuda;
  std::string because;
};

/// Returns the variant that the word names: `cu118` and `cu92` are CUDA 11.8 and 9.2, `cuda12` is
/// CUDA 12, `cpu` has none.
std::optional<Variant> variant_of(std::string_view word, std::string because) {
  if (word == "cpu" || word.starts_with("cpu.")) return Variant{"cpu", {}, std::move(because)};
  std::string_view digits = word;
  if (digits.starts_with("cuda"))
    digits.remove_prefix(4);
  else if (digits.starts_with("cu"))
    digits.remove_prefix(2);
  else
    return std::nullopt;
  std::string number;
  for (const char c : digits.substr(0, 4)) {
    if (!core::is_digit(c)) break;
    number += c;
  }
  if (number.size() == 2)
    return Variant{"cuda",
                   number >= "80"  // 8.0 is the oldest version in the tables.
                       ? Version{{unsigned(number[0] - '0'), unsigned(number[1] - '0')}, {}}
                       : Version{{unsigned(std::stoi(number))}, {}},
                   std::move(because)};
  if (number.size() == 3)
    return Variant{
        "cuda", Version{{unsigned(std::stoi(number.substr(0, 2))), unsigned(number[2] - '0')}, {}},
        std::move(because)};
  return std::nullopt;
}

/// Finds the variant in an index's or a wheel's address: `.../whl/cu118/...`,
/// `...%2Bcpu-cp311-...`.
std::optional<Variant> variant_of_address(std::string_view address) {
  if (const auto whl = address.find("/whl/"); whl != std::string_view::npos) {
    const auto word = address.substr(whl + 5);
    if (auto variant =
            variant_of(word.substr(0, word.find('/')),
                       "the index " + std::string(address.substr(0, address.find_first_of(" #")))))
      return variant;
  }
  for (const std::string_view plus : {"%2B", "%2b", "+"})
    if (const auto at = address.find(plus);
        at != std::string_view::npos && !address.starts_with("git+")) {
      const auto word = address.substr(at + plus.size());
      const auto name = word.substr(0, word.find_first_of("-#."));
      if (auto variant = variant_of(name, "+" + std::string(name))) return variant;
    }
  return std::nullopt;
}

struct Requirement {
  std::string text, package;
  std::vector<std::string> extras;
  std::string local;  ///< The part of its version after the `+`.
  std::optional<Version> version;
  std::string address;
};

std::string normalized(std::string_view name) {
  std::string text;
  for (const char c : name)
    text += c == '_' || c == '.' ? '-' : static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  return text;
}

/// Returns true if a requirement with this marker is not installed on Linux.
bool excludes_linux(std::string_view marker) {
  if (marker.find("platform") == std::string_view::npos &&
      marker.find("os_name") == std::string_view::npos)
    return false;
  const bool names_other = marker.find("darwin") != std::string_view::npos ||
                           marker.find("Darwin") != std::string_view::npos ||
                           marker.find("win32") != std::string_view::npos ||
                           marker.find("Windows") != std::string_view::npos;
  return names_other && marker.find("!=") == std::string_view::npos &&
         marker.find(" or ") == std::string_view::npos;
}

/// Returns the requirement in a line; nothing for a requirement that is not for Linux.
std::optional<Requirement> parse_requirement(const std::string& line) {
  Requirement requirement;
  requirement.text = core::trimmed(std::string_view(line).substr(0, line.find(" --")));  // --hash.
  std::string_view text = requirement.text;
  if (const auto marker = text.find(" ;"); marker != std::string_view::npos) {
    if (excludes_linux(text.substr(marker))) return std::nullopt;
    text = text.substr(0, marker);
  } else if (const auto semicolon = text.find(';');
             semicolon != std::string_view::npos && text.find("://") == std::string_view::npos) {
    if (excludes_linux(text.substr(semicolon))) return std::nullopt;
    text = text.substr(0, semicolon);
  }
  const auto name_end = std::min(text.find_first_of(" [<>=!~@"), text.size());
  requirement.package = normalized(text.substr(0, name_end));
  text.remove_prefix(name_end);
  if (text.starts_with('[')) {
    const auto close = std::min(text.find(']'), text.size());
    std::string extra;
    for (const char c : text.substr(1, close - 1)) {
      if (c == ',')
        requirement.extras.push_back(std::move(extra)), extra.clear();
      else if (c != ' ')
        extra += c == '_' ? '-' : c;
    }
    requirement.extras.push_back(std::move(extra));
    text.remove_prefix(std::min(close + 1, text.size()));
  }
  if (const auto at = text.find('@'); at != std::string_view::npos)
    requirement.address = std::string(text.substr(at + 1));
  std::string compact;
  for (const char c : text)
    if (c != ' ') compact += c;
  if (compact.starts_with("==") && compact.find(',') == std::string::npos) {
    std::string version = compact.substr(std::min(compact.find_first_not_of('='), compact.size()));
    if (const auto plus = version.find('+'); plus != std::string::npos) {
      requirement.local = version.substr(plus + 1);
      version.resize(plus);
    }
    if (version.ends_with(".*")) version.resize(version.size() - 2);
    requirement.version = Version::parse(version);
  }
  return requirement;
}

/// Returns the CUDA version of the wheel that the package index has for this version of the
/// package; nothing if it is not known.
std::optional<Version> default_cuda(std::string_view package,
                                    const std::optional<Version>& version) {
  if (!version) return std::nullopt;
  std::optional<Version> cuda;
  for (const auto& row : tables::wheel_defaults)
    if (package == row.package && *version >= *Version::parse(row.since))
      cuda = Version::parse(row.cuda);
  return cuda;
}

/// Classifies single requirements.
class Classifier {
 public:
  /// @param index the variant that the package index has, if its address names one
  Classifier(std::optional<Variant> index, bool is_x86)
      : index_(std::move(index)), is_x86_(is_x86) {}

  /// Returns nothing for a package without a known relation to CUDA.
  std::optional<Wheel> classify(const Requirement& requirement) const {
    const std::string& package = requirement.package;
    Wheel wheel{Wheel::Kind::carries, package, requirement.text, requirement.version, {}, "", ""};
    if (package == "torch" || is_any(tables::need_torch, package))
      return torch(requirement, std::move(wheel));
    if (package == "jax" || package == "jaxlib") return jax(requirement, std::move(wheel));
    const auto has_extra = [&](std::string_view name) {
      return std::any_of(requirement.extras.begin(), requirement.extras.end(),
                         [&](const auto& each) { return each.starts_with(name); });
    };
    if (has_extra("and-cuda") || has_extra("cuda") || has_extra("ctk")) {
      wheel.cuda = default_cuda(package, requirement.version);
      wheel.because = "its extra";
      return wheel;
    }
    for (const auto& row : tables::need_system_cuda)
      if (package == row.package) {
        wheel.kind = Wheel::Kind::needs;
        wheel.cuda =
            default_cuda(package == "tensorflow-gpu" ? "tensorflow" : package, requirement.version);
        wheel.instead = row.instead;
        return wheel;
      }
    for (const auto& row : tables::cpu_only)
      if (package == row.package)
        return as_cpu(std::move(wheel), "it has no GPU code", row.instead);
    if (is_any(tables::carry_cuda, package)) return wheel;
    // For example nvidia-cublas-cu12, cudf-cu12, faiss-gpu-cu12, tensorrt-cu12.
    if (const auto dash = package.rfind('-'); dash != std::string::npos)
      if (const auto variant = variant_of(std::string_view(package).substr(dash + 1), "its name");
          variant && variant->cuda) {
        wheel.cuda = variant->cuda;
        wheel.because = variant->because;
        return wheel;
      }
    return std::nullopt;
  }

 private:
  template <class Table>
  static bool is_any(const Table& table, std::string_view package) {
    return std::find(table.begin(), table.end(), package) != table.end();
  }

  static Wheel as_cpu(Wheel wheel, std::string because, std::string instead) {
    wheel.kind = Wheel::Kind::cpu;
    wheel.because = std::move(because);
    wheel.instead = std::move(instead);
    return wheel;
  }

  Wheel torch(const Requirement& requirement, Wheel wheel) const {
    std::optional<Variant> variant;
    if (!requirement.local.empty())
      variant = variant_of(requirement.local, "+" + requirement.local);
    if (!variant && !requirement.address.empty()) variant = variant_of_address(requirement.address);
    if (!variant) variant = index_;
    if (variant && variant->name == "cpu")
      return as_cpu(std::move(wheel), variant->because,
                    requirement.package == "torch" && requirement.version
                        ? "torch==" + requirement.version->text()
                        : requirement.package);
    if (variant) {
      wheel.cuda = variant->cuda;
      wheel.because = variant->because;
    } else if (requirement.package == "torch" && is_x86_ && requirement.address.empty()) {
      wheel.cuda = default_cuda("torch", requirement.version);
      wheel.because = "the package index's default";
    }
    if (requirement.package != "torch") wheel.version.reset();
    return wheel;
  }

  Wheel jax(const Requirement& requirement, Wheel wheel) const {
    for (const auto& extra : requirement.extras) {
      // Not for CUDA: without `cuda`, no version is compared with the driver's or the image's.
      if (extra == "tpu" || extra.starts_with("rocm")) return wheel;
      if (const auto variant = variant_of(extra.substr(0, extra.find_first_of("-")), "its extra")) {
        if (variant->name == "cpu") break;
        wheel.kind =
            extra.find("local") == std::string::npos ? Wheel::Kind::carries : Wheel::Kind::needs;
        wheel.cuda = variant->cuda;
        wheel.because = variant->because;
        return wheel;
      }
      if (extra == "cuda") return wheel;
    }
    const auto local = requirement.local.empty()
                           ? std::nullopt
                           : variant_of(requirement.local.substr(0, requirement.local.find('.')),
                                        "+" + requirement.local);
    if (local && local->cuda) {
      wheel.cuda = local->cuda;
      return wheel;
    }
    return as_cpu(std::move(wheel), "without an extra it has no GPU code",
                  "jax[cuda12]" + (requirement.version ? "==" + requirement.version->text() : ""));
  }

  std::optional<Variant> index_;
  bool is_x86_;
};

}  // namespace

std::vector<Wheel> wheels_of(std::span<const std::string> requirements,
                             const std::map<std::string, Json>& installer_args, bool is_x86) {
  std::optional<Variant> index;
  for (const char* option :
       {"index-url", "extra-index-url", "find-links", "default-index", "index"}) {
    const auto found = installer_args.find(option);
    if (found == installer_args.end()) continue;
    const nlohmann::json& value = *found->second;
    const auto addresses = value.is_array() ? value : nlohmann::json::array({value});
    for (const auto& address : addresses)
      if (address.is_string() && !index) index = variant_of_address(address.get<std::string>());
  }
  if (const auto backend = installer_args.find("torch-backend");
      backend != installer_args.end() && backend->second->is_string())
    if (auto variant = variant_of(backend->second->get<std::string>(),
                                  "torch-backend: " + backend->second->get<std::string>()))
      index = variant;
  std::vector<Requirement> parsed;
  for (const std::string& line : requirements) {
    if (line.starts_with('-')) {
      const auto value = line.find_first_of(" =");
      if (value != std::string::npos && !index)
        index = variant_of_address(std::string_view(line).substr(value + 1));
    } else if (auto requirement = parse_requirement(line)) {
      parsed.push_back(std::move(*requirement));
    }
  }
  const Classifier classifier(std::move(index), is_x86);
  std::vector<Wheel> wheels;
  for (const auto& requirement : parsed)
    if (auto wheel = classifier.classify(requirement)) wheels.push_back(std::move(*wheel));
  // torch itself is more specific than a package that depends on it. A package that another package
  // of the list overrides is ignored (`jax` beside `jaxlib+cuda12`, a plugin).
  const auto has_wheel = [&](auto accepts) {
    return std::any_of(wheels.begin(), wheels.end(), accepts);
  };
  if (has_wheel([](const Wheel& each) { return each.package == "torch"; }))
    std::erase_if(wheels, [](const Wheel& each) {
      return each.package != "torch" &&
             std::find(tables::need_torch.begin(), tables::need_torch.end(), each.package) !=
                 tables::need_torch.end();
    });
  const bool has_jax_plugin =
      std::any_of(parsed.begin(), parsed.end(),
                  [](const Requirement& each) { return each.package.starts_with("jax-cuda"); });
  const bool has_jax_cuda =
      has_jax_plugin || has_wheel([](const Wheel& each) {
        return each.package.starts_with("jax") && each.kind != Wheel::Kind::cpu;
      });
  if (has_jax_cuda)
    std::erase_if(wheels, [](const Wheel& each) {
      return each.package.starts_with("jax") && each.kind == Wheel::Kind::cpu;
    });
  return wheels;
}

}  // namespace pipeline::gpu
