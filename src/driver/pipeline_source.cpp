#include "driver/pipeline_source.hpp"

#include <algorithm>
#include <set>

#include "core/digest.hpp"
#include "core/file.hpp"
#include "driver/step_errors.hpp"
#include "engine/graph/selection.hpp"

namespace pipeline::driver {
namespace {

/// Adds the texts that a C++ program gives the step as files; they replace files of the same names.
/// Each text is written to a file that is named by its content, so that an unchanged text keeps its
/// time stamp.
void add_scripts(const StepSpec& step, const std::filesystem::path& scripts,
                 std::vector<store::TreeEntry>& tree) {
  for (const auto& [name, text] : step.files) {
    const auto path = scripts / core::sha256(text).hex();
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      core::make_folders(path.parent_path());
      core::write_file_atomically(path, text, core::Durability::power);
    }
    std::erase_if(
        tree, [&own = name](const store::TreeEntry& entry) { return entry.relative_path == own; });
    tree.push_back({name, path});
  }
  std::ranges::sort(tree, {}, &store::TreeEntry::relative_path);
}

}  // namespace

const PipelineSpec& PipelineSource::pipeline() {
  if (!pipeline_) pipeline_ = workspace_.load_pipeline();
  return *pipeline_;
}

spec::CodeResolver& PipelineSource::resolver() {
  if (!resolver_) resolver_.emplace(pipeline());
  return *resolver_;
}

std::vector<const StepSpec*> PipelineSource::selected_steps() {
  std::vector<const StepSpec*> selected;
  for (const auto i : engine::select_steps(pipeline(), workspace_.options().step))
    selected.push_back(&pipeline().steps[i]);
  return selected;
}

std::vector<std::filesystem::path> PipelineSource::sources() {
  std::set<std::filesystem::path> sources(pipeline().sources.begin(), pipeline().sources.end());
  std::set<const spec::CodeSet*> seen;
  for (const auto* step : selected_steps()) {
    const auto& set = resolver().code_of(*step);
    if (seen.insert(&set).second) sources.insert(set.looked_at.begin(), set.looked_at.end());
  }
  std::error_code ignored;
  if (const auto& folder = workspace_.options().template_dir; !folder.empty())
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored))
      sources.insert(entry.path());
  return {sources.begin(), sources.end()};
}

engine::CodeProvider PipelineSource::code(std::filesystem::path scripts) {
  return {.files = [this, scripts = std::move(scripts)](const StepSpec& step)
              -> const std::vector<store::TreeEntry>& { return files_of(step, scripts); },
          .failure_advice =
              [this](const StepSpec& step, std::string_view output) {
                return resolver().failure_advice(step, output);
              }};
}

const std::vector<store::TreeEntry>& PipelineSource::files_of(
    const StepSpec& step, const std::filesystem::path& scripts) {
  const spec::CodeSet* set = nullptr;
  StepErrors errors;
  errors.collect(step, [&] { set = &resolver().code_of(step); });
  errors.report(pipeline());
  const auto [tree, is_new] = trees_.try_emplace({set, *step.files});
  if (is_new) {
    for (const auto& found : set->files)
      tree->second.push_back({found.relative_path, found.source});
    add_scripts(step, scripts, tree->second);
  }
  return tree->second;
}

}  // namespace pipeline::driver
