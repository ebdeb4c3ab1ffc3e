/// @file
/// Fuzzes whole pipelines, from their text to all that can be made of them without an engine or a
/// cluster: keys, images, Jobs. Each refusal has a reason. The corpus is made from the JSON Schema
/// (tests/e2e/generated_pipelines_test.py makes such pipelines for the command itself), and whole
/// values in it are changed.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "docker/image_plan.hpp"
#include "orchestrators/kubernetes/example_job.hpp"
#include "settings/settings.hpp"
#include "spec/code_resolver.hpp"
#include "spec/pipeline_file.hpp"

namespace {

using namespace pipeline;
using nlohmann::json;

/// Does the work, which may be refused, but only with a reason.
void attempt(const auto& work) {
  try {
    work();
  } catch (const core::InputError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
  } catch (const core::EnvironmentError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
  }
}

/// Removes settings that would run a program which the file names, or read folders of others.
void make_harmless(DockerSettings& docker) {
  docker.replicate_local_python_environment.reset();
  docker.pyproject_export_command = {};
  docker.build_context_root.reset();
  docker.dockerfile.reset();
  docker.pyproject_path.reset();
}

void look_at(const StepSpec& step, const std::filesystem::path& root) {
  attempt([&] {
    const auto plan = docker::plan_image(step, {.root = root});
    docker::plan_digest(plan, {});
  });
  attempt([&] { orchestrators::kubernetes::example_job(step, {.state = "/state"}); });
  settings::to_json(step.settings);
}

/// Adds the value, and all values in it at any depth, to `found`.
void collect(json& value, std::vector<json*>& found) {
  found.push_back(&value);
  if (value.is_structured())
    for (auto& each : value) collect(each, found);
}

json odd_value(std::minstd_rand& random) {
  static const std::array<const char*, 26> values{"null",
                                                  "true",
                                                  "0",
                                                  "-1",
                                                  "5",
                                                  "0.5",
                                                  "1e300",
                                                  "[]",
                                                  "[[]]",
                                                  "{}",
                                                  "\"\"",
                                                  "\" \"",
                                                  "\"-1\"",
                                                  "\"x\"",
                                                  "[1,2]",
                                                  "[null]",
                                                  "\"${\"",
                                                  "\"${params.a}\"",
                                                  "\"../x\"",
                                                  "\"/\"",
                                                  "9223372036854775808",
                                                  "18446744073709551615",
                                                  "-9223372036854775808",
                                                  "\"a\\tb\"",
                                                  "\"\\u202e\"",
                                                  "{\"\":1}"};
  return json::parse(values[random() % values.size()]);
}

void change(json& document, std::minstd_rand& random) {
  std::vector<json*> all;
  collect(document, all);
  auto& place = *all[random() % all.size()];
  const json other = *all[random() % all.size()];
  switch (random() % 6) {
    case 0: place = odd_value(random); break;
    case 1: place = other; break;
    case 2:
      if (place.is_structured() && !place.empty()) {
        auto victim = place.begin();
        std::advance(victim, random() % place.size());
        place.erase(victim);
      }
      break;
    case 3:
      if (place.is_object()) place["a" + std::to_string(random() % 4)] = other;
      if (place.is_array()) place.push_back(other);
      break;
    case 4:
      if (place.is_number_integer()) place = place.get<std::int64_t>() / 2 - 1 + random() % 7;
      if (place.is_string()) {
        auto text = place.get<std::string>();
        if (!text.empty()) text[random() % text.size()] = "a1 -_.:/=@$\"\n{}"[random() % 15];
        place = std::move(text);
      }
      break;
    default:
      if (place.is_object() && !place.empty()) {  // another's value under its key
        auto chosen = place.begin();
        std::advance(chosen, random() % place.size());
        *chosen = other;
      }
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::minstd_rand random(seed + 1);
  auto document = core::parse_json(std::string_view(reinterpret_cast<char*>(data), size));
  if (document.is_discarded()) return LLVMFuzzerMutate(data, size, most);
  for (unsigned i = 1 + random() % 3; i > 0; --i) change(document, random);
  const auto text = document.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::ranges::copy(text, reinterpret_cast<char*>(data));
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const core::TemporaryFolder folder;
  static const bool ready = [] {
    core::write_file_atomically(folder.path() / "train.py", "import numpy\n");
    return true;
  }();
  attempt([&] {
    auto pipeline = spec::parse(std::string_view(reinterpret_cast<const char*>(data), size),
                                folder.path() / "pipeline.yaml");
    spec::CodeResolver resolver(pipeline);
    for (std::size_t i = 0; ready && i < std::min<std::size_t>(pipeline.steps.size(), 4); ++i) {
      auto& step = pipeline.steps[i];
      make_harmless(step.settings->docker);
      attempt([&] { resolver.code_of(step); });
      look_at(step, folder.path());
    }
  });
  return 0;
}
