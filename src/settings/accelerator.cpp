#include "settings/accelerator.hpp"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "core/text.hpp"
#include "settings/gpu_option.hpp"

namespace pipeline::settings {
namespace {

using nlohmann::json;
using Selection = GpuRequest::Selection;
using Problems = std::vector<GpuProblem>;

constexpr std::int64_t max_devices = 1'000'000;

/// Parses `0` to `4095`, far more than a machine has GPUs. Refuses a sign and leading zeros, which
/// would give one device two names.
std::optional<unsigned> parse_index(std::string_view text) {
  if (text.empty() || text.size() > 4 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > 4095)
    return std::nullopt;
  return number;
}

std::optional<std::int64_t> parse_device_count(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Parses `devices` as Lightning's _parse_gpu_ids does (lightning,
/// fabric/utilities/device_parser.py): a number is a count; a text with a comma, or a list, names
/// devices. Lightning reads -2 as "none available" and reports "3,3" as an error of the backend;
/// both are errors of their own here. UUIDs and MIG devices are additions of pipe.
class Devices {
 public:
  Devices(GpuRequest& request, Problems& problems) : request_(request), problems_(problems) {}

  void read(const json& value) {
    if (value.is_number_integer())
      read_number(value.is_number_unsigned() &&
                          value.get<std::uint64_t>() > std::uint64_t{max_devices}
                      ? max_devices + 1
                      : value.get<std::int64_t>());
    else if (value.is_string())
      read_text(value.get<std::string>());
    else if (value.is_array())
      read_list(value);
    else
      problem({},
              "'devices' must be a whole number, a text such as \"1, 3\", or a list, not " +
                  std::string(value.is_boolean() ? "the boolean " : "") + value.dump(),
              value.is_boolean()
                  ? (value ? "did you mean `devices: 1`?" : "did you mean `accelerator: cpu`?")
                  : "");
  }

 private:
  void problem(std::optional<std::size_t> item, std::string message, std::string suggestion = {},
               std::vector<std::string> notes = {}) {
    problems_.push_back({"bad-devices", "devices", item, std::move(message), std::move(notes),
                         std::move(suggestion)});
  }

  void read_number(std::int64_t number) {
    if (number < -1 || number > max_devices)
      return problem({}, "'devices' must be a number of GPUs, or -1 for all, not " +
                             (number > 0 ? "more than 1000000" : std::to_string(number)));
    request_.selection = number == 0    ? Selection::none
                         : number == -1 ? Selection::all
                                        : Selection::first;
    request_.count = number > 0 ? static_cast<unsigned>(number) : 0;
  }

  void read_text(const std::string& whole) {
    const auto text = core::trimmed(whole);
    if (text == "auto") {
      request_.selection = Selection::all;
    } else if (const auto number = parse_device_count(text)) {
      read_number(*number);
    } else if (text.find(',') == std::string_view::npos) {
      const auto device = parse_gpu_device(text);
      if (device) return add(*device, {});
      static const std::vector<std::string> words{"auto"};
      problem({},
              text.empty()
                  ? "'devices' is empty"
                  : "'devices' must be a number, indices such as \"1, 3\", or a UUID, not '" +
                        std::string(text.substr(0, 60)) + "'",
              text == "all" ? "did you mean `devices: -1`?" : core::did_you_mean(text, words),
              {"-1 means all GPUs"});
    } else {
      read_indices(text);
    }
  }

  /// Parses `1, 3`; also `3,`, which is the list of 3 alone.
  void read_indices(std::string_view rest) {
    const std::size_t before = problems_.size();
    for (bool more = true; more;) {
      const auto comma = rest.find(',');
      more = comma != std::string_view::npos;
      const auto part = rest.substr(0, comma);
      rest.remove_prefix(more ? comma + 1 : rest.size());
      if (part.empty()) continue;  // Lightning does the same.
      if (const auto device = parse_gpu_device(core::trimmed(part)))
        add(*device, {});
      else
        bad_item(std::string(core::trimmed(part)), {});
    }
    if (request_.devices.empty() && problems_.size() == before)
      problem({}, "'devices' names no GPU");
  }

  void read_list(const json& list) {
    if (list.empty()) request_.selection = Selection::none;
    bool has_numbers = false, has_texts = false;
    for (const json& item : list) (item.is_number_integer() ? has_numbers : has_texts) = true;
    if (has_numbers && has_texts && std::all_of(list.begin(), list.end(), [](const json& item) {
          return item.is_number_integer() || item.is_string();
        }))
      return problem({}, "'devices' mixes numbers and texts",
                     "give all GPUs by index, or all by UUID");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const json& item = list[i];
      if (!item.is_number_integer() && !item.is_string())
        problem(i, "each of 'devices' must be an index, a UUID or a MIG device, not " +
                       std::string(item.is_boolean() ? "the boolean " : "") + item.dump());
      else if (const auto device =
                   parse_gpu_device(item.is_string() ? item.get<std::string>() : item.dump());
               !device)
        bad_item(item.is_string() ? item.get<std::string>() : item.dump(), i);
      else if (item.is_string() && device->index && !device->mig)
        problem(i, "the index \"" + item.get<std::string>() + "\" in the list 'devices' is a text",
                "write " + item.get<std::string>() + " without quotes");
      else
        add(*device, i);
    }
  }

  void bad_item(const std::string& text, std::optional<std::size_t> item) {
    problem(item, "'" + text.substr(0, 60) + "' in 'devices' is not a GPU",
            text == "-1" ? "did you mean `devices: -1`, all GPUs?" : "",
            {"an index such as 0, a UUID such as GPU-8932f937, or a MIG device such as MIG-... or "
             "0:1"});
  }

  void add(const GpuDevice& device, std::optional<std::size_t> item) {
    request_.selection = Selection::devices;
    if (std::find(request_.devices.begin(), request_.devices.end(), device) !=
        request_.devices.end())
      return problem(item, "'devices' names GPU " + device.text() + " twice");
    request_.devices.push_back(device);
  }

  GpuRequest& request_;
  Problems& problems_;
};

/// Returns the keys that give a number of GPUs or select them, in their order of precedence.
std::vector<std::string> selecting_keys(const ResourceSettings& resources) {
  std::vector<std::string> keys;
  if (resources.gpu_count) keys.emplace_back("gpu_count");
  if (!resources.devices.is_null()) keys.emplace_back("devices");
  if (resources.gpus) keys.emplace_back("gpus");
  return keys;
}

void select(const ResourceSettings& resources, GpuRequest& request, Problems& problems) {
  if (resources.gpu_count) {
    request.selection = *resources.gpu_count > 0 ? Selection::count : Selection::none;
    request.count = *resources.gpu_count;
  } else if (!resources.devices.is_null()) {
    Devices(request, problems).read(*resources.devices);
  } else if (resources.gpus) {
    read_gpu_option(*resources.gpus, request, problems);
  } else if (resources.accelerator && *resources.accelerator != Accelerator::cpu) {
    request.selection = Selection::all;
  }
}

/// Checks the accelerator against the number of GPUs requested.
/// @param key the key that gives the number; empty if there is none
void check_accelerator(const ResourceSettings& resources, GpuRequest& request,
                       const std::string& key, Problems& problems) {
  if (!resources.accelerator || key.empty()) return;
  // With the CPU, Lightning's `devices` is the number of its processes.
  const bool is_auto = resources.devices->is_string() &&
                       core::trimmed(resources.devices->get_ref<const std::string&>()) == "auto";
  if (*resources.accelerator == Accelerator::cpu && key == "devices" &&
      (request.selection == Selection::first || is_auto))
    request = {};
  if (*resources.accelerator == Accelerator::cpu && request.wanted())
    problems.push_back({"contradiction",
                        key,
                        {},
                        "'" + key + "' asks for GPUs, but 'accelerator' is cpu",
                        {},
                        "set `accelerator: gpu`, or remove '" + key + "'"});
  if (*resources.accelerator == Accelerator::gpu && !request.wanted())
    problems.push_back({"contradiction",
                        key,
                        {},
                        "'accelerator' is gpu, but '" + key + "' asks for no GPU",
                        {},
                        "give a number above 0, or set `accelerator: cpu`"});
}

void check_auto_select(const ResourceSettings& resources, GpuRequest& request,
                       const std::string& key, Problems& problems) {
  if (!resources.auto_select_gpus.value_or(false)) return;
  if (request.selection == Selection::devices)
    problems.push_back(
        {"contradiction",
         "auto_select_gpus",
         {},
         "'auto_select_gpus' chooses GPUs, but '" + key + "' already names them",
         {},
         "give a number of GPUs, as in `devices: " + std::to_string(request.devices.size()) +
             "`, or remove 'auto_select_gpus'"});
  else if (!key.empty() && !request.wanted())
    problems.push_back({"contradiction",
                        "auto_select_gpus",
                        {},
                        "'auto_select_gpus' chooses GPUs, but '" + key + "' asks for none",
                        {},
                        "remove one"});
  else if (resources.accelerator == Accelerator::cpu)
    problems.push_back({"contradiction",
                        "auto_select_gpus",
                        {},
                        "'auto_select_gpus' chooses GPUs, but 'accelerator' is cpu",
                        {},
                        "remove one"});
  request.auto_select = true;
  if (request.selection == Selection::first) request.selection = Selection::count;
}

}  // namespace

std::string GpuDevice::text() const {
  if (!index) return uuid;
  return std::to_string(*index) + (mig ? ":" + std::to_string(*mig) : "");
}

std::optional<GpuDevice> parse_gpu_device(std::string_view text) {
  constexpr std::size_t uuid_length = 36, max_mig_name = 60;
  const auto is_of_uuid = [](char c) {
    return core::is_hex_digit(c) || (c >= 'A' && c <= 'F') || c == '-';
  };
  const auto rest = text.size() > 4 ? text.substr(4) : std::string_view();
  if (text.starts_with("GPU-")) {
    if (rest.empty() || rest.size() > uuid_length || !core::all(rest, is_of_uuid))
      return std::nullopt;
    return GpuDevice{{}, {}, std::string(text)};
  }
  if (text.starts_with("MIG-")) {
    // Older drivers write MIG-GPU-UUID/GI/CI.
    const auto accepts = [&](char c) {
      return is_of_uuid(c) || c == '/' || c == 'G' || c == 'P' || c == 'U';
    };
    if (rest.empty() || rest.size() > max_mig_name || !core::all(rest, accepts))
      return std::nullopt;
    return GpuDevice{{}, {}, std::string(text)};
  }
  const auto colon = text.find(':');
  const auto index = parse_index(text.substr(0, colon));
  if (!index) return std::nullopt;
  if (colon == std::string_view::npos) return GpuDevice{index, {}, {}};
  const auto mig = parse_index(text.substr(colon + 1));
  if (!mig) return std::nullopt;
  return GpuDevice{index, mig, {}};
}

std::optional<ComputeCapability> parse_compute_capability(std::string_view text) {
  const auto dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto major = parse_index(text.substr(0, dot)), minor = parse_index(text.substr(dot + 1));
  if (!major || !minor) return std::nullopt;
  return ComputeCapability{*major, *minor};
}

GpuRequest gpu_request(const ResourceSettings& resources, std::vector<GpuProblem>& problems) {
  GpuRequest request;
  const std::size_t before = problems.size();
  const auto keys = selecting_keys(resources);
  for (std::size_t i = 1; i < keys.size(); ++i)
    problems.push_back({"contradiction",
                        keys[i],
                        {},
                        "'" + keys[0] + "' and '" + keys[i] + "' both say which GPUs the step gets",
                        {},
                        "remove one"});
  if (problems.size() == before) select(resources, request, problems);
  if (problems.size() == before) {
    const std::string key = keys.empty() ? "" : keys[0];
    check_accelerator(resources, request, key, problems);
    check_auto_select(resources, request, key, problems);
  }
  request.if_present = resources.accelerator == Accelerator::automatic && request.wanted();
  request.model = resources.gpu_class;
  request.min_memory = resources.gpu_memory;
  if (resources.compute_capability)
    request.min_capability = parse_compute_capability(*resources.compute_capability);
  request.preflight = resources.preflight.value_or(Preflight::on) == Preflight::on;
  return request;
}

GpuRequest gpu_request(const ResourceSettings& resources) {
  std::vector<GpuProblem> problems;
  GpuRequest request = gpu_request(resources, problems);
  if (problems.empty()) return request;
  std::vector<core::Diagnostic> diagnostics;
  for (auto& each : problems)
    diagnostics.push_back(
        {each.code, "settings.resources: " + each.message, {}, each.notes, each.suggestion});
  throw core::InputError(std::move(diagnostics), "", "");
}

void merge_gpu_settings(ResourceSettings& merged, const ResourceSettings& pipeline,
                        const ResourceSettings& step) {
  const bool selects = !selecting_keys(step).empty();
  const bool is_cpu = step.accelerator == Accelerator::cpu;
  std::vector<GpuProblem> ignored;  // Reported where the settings are decoded.
  // The pipeline's number is not one of GPUs if it counts processes (`accelerator: cpu`) or is 0.
  const bool is_number_void = step.accelerator && (pipeline.accelerator == Accelerator::cpu ||
                                                   !gpu_request(pipeline, ignored).wanted());
  if (selects || is_cpu || is_number_void) {
    merged.gpu_count = step.gpu_count;
    merged.devices = step.devices;
    merged.gpus = step.gpus;
  }
  if (is_cpu && !step.auto_select_gpus) merged.auto_select_gpus.reset();
  if (!selects) return;
  // The pipeline's accelerator and choice apply unless they contradict the step's request.
  ResourceSettings only = step;
  only.accelerator.reset();
  only.auto_select_gpus.reset();
  const GpuRequest request = gpu_request(only, ignored);
  if (!step.accelerator && (merged.accelerator == Accelerator::cpu) == request.wanted())
    merged.accelerator.reset();
  if (!step.auto_select_gpus && (!request.wanted() || request.selection == Selection::devices))
    merged.auto_select_gpus.reset();
}

}  // namespace pipeline::settings
