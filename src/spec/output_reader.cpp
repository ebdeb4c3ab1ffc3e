#include "spec/output_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/step_span.hpp"
#include "settings/decode.hpp"
#include "spec/keys.hpp"

namespace pipeline::spec {
namespace {

constexpr settings::Format file_name{
    "a file name of letters, digits, `_`, `-` and `.` that begins with a letter or digit",
    core::is_name};

/// Returns the output that a wrong name probably stands for: `info` with the file `info.json` for
/// the text `info.json` and for the maps `{info: info.json}` and `{name: info, file: info.json}`.
std::optional<OutputSpec> meant_output(const core::Value& written) {
  OutputSpec meant;
  if (written.kind == core::Value::Kind::scalar) {
    meant = {written.scalar.substr(0, written.scalar.find('.')), written.scalar};
  } else if (const core::Value* name = written.find("name"); name) {
    const core::Value* file = written.find("file");
    meant = {name->scalar, file ? file->scalar : name->scalar};
  } else if (written.kind == core::Value::Kind::map && written.members.size() == 1) {
    meant = {written.members[0].first.scalar, written.members[0].second.scalar};
  }
  if (!slot_name.accepts(meant.name) || !file_name.accepts(meant.file_name)) return std::nullopt;
  return meant;
}

/// The values of an output besides its name and file.
struct OutputFlags {
  bool metrics = false, temp = false, from_all_nodes = false;
};

/// @param keys the keys that the map may have
OutputFlags read_flags(const core::Value& map, const std::vector<std::string>& keys,
                       settings::Diagnostics& diagnostics) {
  OutputFlags flags;
  settings::report_unknown_keys(map, keys, "an output", diagnostics);
  if (const core::Value* flag = map.find("metrics"))
    flags.metrics = settings::read_bool("metrics", *flag, diagnostics).value_or(false);
  if (const core::Value* flag = map.find("temp"))
    flags.temp = settings::read_bool("temp", *flag, diagnostics).value_or(false);
  const core::Value* from = map.find("from");
  if (from) flags.from_all_nodes = read_word("from", *from, {"first", "all"}, diagnostics) == "all";
  if (flags.metrics && flags.temp)
    settings::report(diagnostics, "contradiction",
                     "a `temp` output has no metrics, because they are read again whenever the "
                     "result is reused",
                     map.find("temp")->span, {},
                     "let the step write its metrics to an output of their own");
  if (flags.metrics && flags.from_all_nodes)
    settings::report(diagnostics, "contradiction",
                     "an output `from: all` is a folder, which has no metrics", from->span, {},
                     "let the first node write the metrics to an output of their own");
  return flags;
}

/// Reads the `outputs` of a step: a list of names, or a map of names to files.
class OutputReader {
 public:
  OutputReader(StepSpec& step, settings::Diagnostics& diagnostics)
      : step_(step), diagnostics_(diagnostics) {}

  void read_list(const core::Value& list) {
    static const std::vector<std::string> keys{"name", "file", "metrics", "temp", "from"};
    for (const core::Value& item : list.items) {
      const core::Value* name = item.find("name");
      if (!name || !item.find("from")) {
        add(item, item);
        continue;
      }
      const core::Value* file = item.find("file");
      add(*name, file ? *file : *name, read_flags(item, keys, diagnostics_));
    }
  }
  void read_map(const core::Value& map) {
    static const std::vector<std::string> keys{"file", "metrics", "temp", "from"};
    for (const auto& [name, file] : map.members) {
      const core::Value* written = &file;
      OutputFlags flags;
      if (file.kind == core::Value::Kind::map) {
        flags = read_flags(file, keys, diagnostics_);
        written = file.find("file");
      }
      const bool is_named = written && written->kind != core::Value::Kind::null;
      add(name, is_named ? *written : name, flags);
    }
  }

 private:
  void add(const core::Value& name, const core::Value& file, OutputFlags flags = {});
  void report_bad_name(const core::Value& name);

  StepSpec& step_;
  settings::Diagnostics& diagnostics_;
  std::unordered_map<std::string, std::string> makers_;  ///< Names of outputs by file name.
};

void OutputReader::add(const core::Value& name, const core::Value& file, OutputFlags flags) {
  if (name.kind != core::Value::Kind::scalar || !slot_name.accepts(name.scalar))
    return report_bad_name(name);
  if (file.kind != core::Value::Kind::scalar || !file_name.accepts(file.scalar)) {
    settings::report(diagnostics_, "bad-name",
                     "the file of output '" + name.scalar + "' must be " + file_name.expected +
                         ", not " + settings::describe(file),
                     file.span);
    // Added all the same, so that references to the output are not errors, too.
    step_.outputs.push_back({name.scalar, name.scalar});
    return;
  }
  const auto [other, is_new] = makers_.emplace(file.scalar, name.scalar);
  if (!is_new && other->second == name.scalar)
    return settings::report(diagnostics_, "duplicate-key",
                            "the output '" + name.scalar + "' is listed twice", name.span);
  if (!is_new)
    settings::report(diagnostics_, "duplicate-file",
                     "the outputs '" + other->second + "' and '" + name.scalar +
                         "' have the same file name '" + file.scalar + "'",
                     file.span);
  step_.outputs.push_back(
      {name.scalar, file.scalar, flags.metrics, flags.temp, flags.from_all_nodes});
}

void OutputReader::report_bad_name(const core::Value& name) {
  const auto meant = meant_output(name);
  settings::report(
      diagnostics_, "bad-name",
      "an output's name must be " + std::string(slot_name.expected) + ", not " +
          settings::describe(name),
      name.span, {},
      meant ? "a name with its file is `outputs: {" + meant->name + ": " + meant->file_name + "}`"
            : "");
  // Added all the same, so that references to the output are not errors, too.
  if (meant) step_.outputs.push_back(*meant);
}

/// Returns the files and folders that the pipeline is read from, and those that its steps take.
std::unordered_set<std::string> read_paths(const std::vector<StepSpec>& steps,
                                           const std::vector<std::filesystem::path>& sources) {
  std::unordered_set<std::string> paths;
  for (const auto& source : sources) paths.insert(source.lexically_normal().string());
  for (const auto& step : steps)
    for (const auto& input : step.inputs)
      if (input.data) paths.insert(input.data->path.lexically_normal().string());
  return paths;
}

}  // namespace

void read_outputs(const core::Value& value, StepSpec& step, settings::Diagnostics& diagnostics) {
  OutputReader reader(step, diagnostics);
  if (value.kind == core::Value::Kind::list)
    reader.read_list(value);
  else if (value.kind == core::Value::Kind::map)
    reader.read_map(value);
  else
    settings::report_type(
        diagnostics, "outputs",
        "a list of names, or a map of names to file names or {file, metrics, temp}", value);
}

void check_result_folders(const std::vector<StepSpec>& steps,
                          const std::vector<std::filesystem::path>& sources,
                          settings::Diagnostics& diagnostics) {
  if (std::ranges::all_of(steps, [](const auto& step) { return step.publish_to.empty(); })) return;
  const auto read = read_paths(steps, sources);
  std::unordered_map<std::string, const StepSpec*> makers;
  const auto refuse = [&](const StepSpec& step, std::string message) {
    settings::report(diagnostics, "contradiction", std::move(message), model::span_of(step), {},
                     "name a parameter in it: `publish_to: ./results/${params.X}`");
  };
  const StepSpec* refused = nullptr;
  // Instances have the line of their step, for which one error is enough.
  const auto is_reported = [&](const StepSpec& step) {
    return refused && refused->line == step.line && refused->file == step.file;
  };
  for (const auto& step : steps) {
    if (step.publish_to.empty()) continue;
    const bool has_copies =
        step.outputs.empty() || !std::ranges::all_of(step.outputs, &OutputSpec::temp);
    if (!has_copies && !is_reported(step)) {
      refused = &step;
      settings::report(diagnostics, "contradiction",
                       "the `publish_to` of '" + step.name +
                           "' gets nothing: all of its outputs are `temp`, which are not copied",
                       model::span_of(step), {}, "leave out `publish_to`, or `temp: true`");
    }
    if (step.matrix || step.repeat)
      refuse(step, "the run makes the steps of '" + step.name +
                       "', which would all write to its `publish_to`");
    std::error_code error;
    if (std::filesystem::exists(*step.publish_to, error) &&
        !std::filesystem::is_directory(*step.publish_to, error))
      settings::report(diagnostics, "contradiction",
                       "the `publish_to` of '" + step.name + "' is a folder, and " +
                           step.publish_to->string() + " is a file",
                       model::span_of(step), {}, "name another folder, or move the file away");
    for (const auto& output : step.outputs) {
      const auto [other, is_new] =
          makers.emplace((*step.publish_to / output.file_name).lexically_normal().string(), &step);
      if (is_new && !output.temp && read.contains(other->first))
        settings::report(diagnostics, "contradiction",
                         "the output '" + output.name + "' of '" + step.name + "' would replace " +
                             other->first + ", which the pipeline reads",
                         model::span_of(step), {}, "name another folder under `publish_to`");
      if (is_new || is_reported(step)) continue;
      refused = &step;
      refuse(step, "'" + other->second->name + "' and '" + step.name + "' would both write " +
                       other->first);
    }
  }
}

void check_temporary(const std::vector<StepSpec>& steps, settings::Diagnostics& diagnostics) {
  std::map<std::pair<std::string, std::string>, const StepSpec*> temporary;
  const auto refuse = [&](const StepSpec& step, const std::string& output, const std::string& why) {
    settings::report(diagnostics, "contradiction",
                     "the output '" + output + "' of '" + step.name + "' is `temp`, " + why,
                     model::span_of(step), {},
                     "leave `temp: true` out, or let the step make a second, small output");
  };
  for (const auto& step : steps)
    for (const auto& output : step.outputs) {
      if (!output.temp) continue;
      temporary[{step.name, output.name}] = &step;
      if (step.repeat) refuse(step, output.name, "and the step is repeated");
      if (step.publish.contains(output.name)) refuse(step, output.name, "and is published");
    }
  if (temporary.empty()) return;
  const auto check = [&](const StepSpec& reader, const SourceSpec& source) {
    const auto found = temporary.find({source.step, source.output});
    if (found != temporary.end())
      refuse(*found->second, source.output,
             "and decides about '" + reader.name + "' in later runs, too");
  };
  for (const auto& step : steps) {
    if (step.when)
      for (const auto& [name, value] : step.when->outputs) check(step, value.source);
    if (step.matrix)
      for (const auto& axis : step.matrix->axes)
        if (axis.items) check(step, axis.items->source);
  }
}

}  // namespace pipeline::spec
