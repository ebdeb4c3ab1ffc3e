#include "settings/gpu_option.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "core/diagnostic.hpp"
#include "core/text.hpp"

namespace pipeline::settings {
namespace {

struct CsvField {
  std::string text;  ///< Without quotes and the blanks around it.
  bool quoted = false;
};

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> items;
  for (const auto item : core::split(text, ',')) items.emplace_back(core::trimmed(item));
  return items;
}

/// Parses as Go's strconv.Atoi does; returns nothing for numbers beyond a plausible count of GPUs.
std::optional<long> parse_gpu_count(std::string_view text) {
  if (text.starts_with("+-")) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > 1'000'000 ||
      number < -1'000'000)
    return std::nullopt;
  return number;
}

/// The start of a GPU's name in the Container Device Interface.
constexpr std::string_view cdi_kind = "nvidia.com/gpu=";

/// Returns true for a capability, which users write where docker expects a count.
bool is_capability(std::string_view text) {
  constexpr std::array words{"compute", "utility", "graphics", "video", "display", "compat32"};
  return std::find(words.begin(), words.end(), text) != words.end();
}

class Option {
 public:
  Option(std::string_view text, GpuRequest& request, std::vector<GpuProblem>& problems)
      : text_(text), request_(request), problems_(problems) {}

  void read() {
    const std::size_t before = problems_.size();
    fields_ = read_csv(text_);
    for (std::size_t i = 0; i < fields_.size() && problems_.size() == before; ++i)
      read_field(fields_[i]);
    if (problems_.size() > before) return;
    if (counted_ && !request_.devices.empty())
      return problem("'gpus' gives both devices and a count",
                     {"docker's engine answers `cannot set both Count and DeviceIDs`"},
                     "leave the count out: the list says how many");
    if (!request_.devices.empty())
      request_.selection = GpuRequest::Selection::devices;
    else if (!counted_)
      take_count(1);  // docker does the same for `capabilities=compute` alone.
  }

 private:
  void problem(std::string message, std::vector<std::string> notes = {},
               std::string suggestion = {}) {
    problems_.push_back(
        {"bad-gpus", "gpus", {}, std::move(message), std::move(notes), std::move(suggestion)});
  }

  /// Parses one record as Go's encoding/csv does: a field that begins with a quote ends with one,
  /// quotes inside it are doubled, and unquoted fields contain none.
  std::vector<CsvField> read_csv(std::string_view rest) {
    std::vector<CsvField> fields;
    for (bool more = true; more;) {
      CsvField& field = fields.emplace_back();
      rest = core::trimmed(rest);
      if (rest.starts_with('"')) {
        field.quoted = true;
        std::size_t i = 1;
        for (; i < rest.size(); ++i) {
          if (rest[i] != '"')
            field.text += rest[i];
          else if (rest.substr(i + 1).starts_with('"'))
            field.text += rest[i++];
          else
            break;
        }
        const bool closed = i < rest.size();
        rest = closed ? core::trimmed(rest.substr(i + 1)) : std::string_view();
        more = rest.starts_with(',');
        if (!closed) {
          problem("'gpus' has a quote that does not end", {"in YAML: `gpus: '\"device=0,1\"'`"});
          return {};
        }
        if (!more && !rest.empty()) {
          problem("'gpus' has text after a closing quote: " + std::string(rest.substr(0, 40)),
                  {"a quote ends the whole field: a comma has to follow"});
          return {};
        }
        if (more) rest.remove_prefix(1);
      } else {
        const auto comma = rest.find(',');
        field.text = core::trimmed(rest.substr(0, comma));
        more = comma != std::string_view::npos;
        rest.remove_prefix(more ? comma + 1 : rest.size());
        if (const auto quote = field.text.find('"'); quote != std::string::npos) {
          std::string whole = text_.size() < 60 ? std::string(text_) : std::string();
          whole.erase(std::remove(whole.begin(), whole.end(), '"'), whole.end());
          problem("'gpus' has a quote within a field",
                  {"docker's grammar is CSV: quotes go around the whole of `KEY=VALUE`"},
                  whole.empty() ? "" : "did you mean `gpus: '\"" + whole + "\"'`?");
          return {};
        }
      }
    }
    return fields;
  }

  void read_field(const CsvField& field) {
    const std::string& text = field.text;
    const auto equals = text.find('=');
    if (equals == std::string::npos) return read_bare(field);
    const std::string key = text.substr(0, equals),
                      value(core::trimmed(std::string_view(text).substr(equals + 1)));
    list_open_ = false;
    if (!seen_.insert(key).second)
      return problem("'gpus' gives '" + key + "' twice", {},
                     "join the two: one quoted field holds a list, as `\"" + key + "=...,...\"`");
    if (key == "count") {
      read_count(value);
    } else if (key == "device") {
      list_open_ = !field.quoted;
      for (const auto& device : list_of(value)) read_device(device);
    } else if (key == "driver") {
      request_.driver = value;
    } else if (key == "capabilities") {
      for (const auto& capability : list_of(value)) read_capability(capability);
    } else if (key == "options") {
      read_options(value);
    } else if (text.starts_with(cdi_kind)) {
      read_device(text);
    } else {
      static const std::vector<std::string> keys{"count", "device", "driver", "capabilities",
                                                 "options"};
      problem("'gpus' has an unknown key '" + key.substr(0, 40) + "'",
              {"allowed: count, device, driver, capabilities, options"},
              core::did_you_mean(key, keys));
    }
  }

  /// Reads a field without a key: a count, a device after an unquoted `device=0`, or a UUID.
  void read_bare(const CsvField& field) {
    const auto device = parse_gpu_device(field.text);
    const bool is_id = device && (!device->index || device->mig);
    // A bare number is a count, unless it continues the list of an unquoted `device=0,1`.
    if (device && (list_open_ || is_id)) return read_device(field.text);
    read_count(field.text);
  }

  void read_count(const std::string& text) {
    static const std::vector<std::string> words{"all",   "compute", "utility", "graphics",
                                                "video", "display", "compat32"};
    if (counted_ && !is_capability(text))
      return problem("'gpus' gives the count twice", {}, with_device_key());
    if (text == "all") return take_count(-1);
    const auto number = parse_gpu_count(text);
    if (number && *number >= -1) return take_count(*number);
    if (number)
      return problem("the count of 'gpus' must not be " + text, {"-1 and `all` mean all GPUs"});
    std::string suggestion = core::did_you_mean(text, words);
    if (is_capability(text)) suggestion = with_quoted_capabilities();
    if (text == "none") suggestion = "did you mean `accelerator: cpu`?";
    if (text == "true") suggestion = "did you mean `gpus: all`?";
    problem(text.empty() ? "'gpus' has an empty field"
                         : "'gpus' must be a count, `all`, a device's UUID or KEY=VALUE, not '" +
                               text.substr(0, 60) + "'",
            {"as in `all`, `2`, `device=0,1`, `GPU-8932f937`, "
             "`\"device=0,1\",\"capabilities=compute,utility\"`"},
            std::move(suggestion));
  }

  /// Suggests `device=` before a list of indices alone; nothing for other texts.
  std::string with_device_key() const {
    const auto is_index = [](const CsvField& field) {
      const auto device = parse_gpu_device(field.text);
      return device && device->index && !device->mig;
    };
    const bool are_indices = text_.size() < 60 && std::ranges::all_of(fields_, is_index);
    return are_indices ? "did you mean `gpus: \"device=" + std::string(text_) + "\"`?" : "";
  }

  /// Suggests the fields with quotes around lists: without quotes, docker reads
  /// `capabilities=compute,utility` as one capability and a count of `utility`.
  std::string with_quoted_capabilities() const {
    std::string others, capabilities;
    bool has_selection = false;  // `capabilities=compute` alone asks for one GPU.
    for (const CsvField& field : fields_) {
      const auto equals = field.text.find('=');
      const bool is_bare = equals == std::string::npos;
      const auto key = is_bare ? "count" : field.text.substr(0, equals);
      const auto value = is_bare ? field.text : field.text.substr(equals + 1);
      const bool is_list = key == "capabilities";
      if (is_list || (key == "count" && is_capability(value))) {
        has_selection |= is_list;
        capabilities += (capabilities.empty() ? "" : ",") + value;
      } else {
        has_selection |= key == "count" || key == "device";
        others += (field.quoted ? '"' + field.text + '"' : field.text) + ",";
      }
    }
    return std::string("did you mean `gpus: '") + (has_selection ? "" : "all,") + others +
           "\"capabilities=" + capabilities + "\"'`?";
  }

  void take_count(long number) {
    counted_ = true;
    request_.selection = number < 0    ? GpuRequest::Selection::all
                         : number == 0 ? GpuRequest::Selection::none
                                       : GpuRequest::Selection::count;
    request_.count = number > 0 ? static_cast<unsigned>(number) : 0;
  }

  void read_device(const std::string& text) {
    auto device = parse_gpu_device(text);
    if (!device && text.starts_with(cdi_kind))
      return problem("'gpus' names a device as the Container Device Interface does: '" +
                         text.substr(0, 60) + "'",
                     {"pipe asks for GPUs by that interface itself where the engine has it"},
                     text.substr(cdi_kind.size()) == "all"
                         ? "did you mean `gpus: all`?"
                         : "did you mean `gpus: device=" + text.substr(cdi_kind.size(), 60) + "`?");
    if (!device)
      return problem("'" + text.substr(0, 60) + "' in 'gpus' is not a device",
                     {"an index such as 0, a UUID such as GPU-8932f937, or a MIG device such as "
                      "MIG-... or 0:1"},
                     text == "all" ? "did you mean `gpus: all`?" : "");
    if (std::find(request_.devices.begin(), request_.devices.end(), *device) !=
        request_.devices.end())
      return problem("'gpus' names device " + text.substr(0, 60) + " twice");
    request_.devices.push_back(std::move(*device));
  }

  /// Accepts the capabilities of docker's nvidia driver (moby, daemon/nvidia_linux.go), and any
  /// capability of other drivers.
  void read_capability(const std::string& text) {
    static const std::vector<std::string> known{"gpu",      "nvidia",  "compute", "compat32",
                                                "graphics", "utility", "video",   "display"};
    // Searches the whole text, because `driver=` may follow the capabilities.
    const bool is_nvidia = text_.find("driver=") == std::string_view::npos ||
                           text_.find("driver=nvidia") != std::string_view::npos;
    if (text.empty() || (is_nvidia && std::find(known.begin(), known.end(), text) == known.end()))
      return problem("'" + text.substr(0, 60) + "' in 'gpus' is not a capability",
                     {"allowed: compute, utility, graphics, video, display, compat32"},
                     core::did_you_mean(text, known));
    if (text != "gpu") request_.capabilities.push_back(text);
  }

  void read_options(const std::string& text) {
    for (const CsvField& option : read_csv(text)) {
      const auto equals = option.text.find('=');
      if (equals == 0 || option.text.empty())
        return problem("an option of 'gpus' has no name",
                       {"as in `\"options=name=value,other=value\"`"});
      request_.options.insert_or_assign(
          option.text.substr(0, equals),
          equals == std::string::npos ? "" : option.text.substr(equals + 1));
    }
  }

  std::string_view text_;
  GpuRequest& request_;
  std::vector<GpuProblem>& problems_;
  std::vector<CsvField> fields_;
  std::set<std::string> seen_;
  bool counted_ = false;
  /// Whether the previous field is an unquoted `device=`, or a device that belongs to one.
  bool list_open_ = false;
};

}  // namespace

void read_gpu_option(std::string_view text, GpuRequest& request,
                     std::vector<GpuProblem>& problems) {
  Option(text, request, problems).read();
}

}  // namespace pipeline::settings
