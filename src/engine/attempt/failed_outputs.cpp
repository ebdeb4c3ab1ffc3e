#include "engine/attempt/failed_outputs.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "store/private_folder.hpp"

namespace pipeline::engine {

void FailedOutputs::keep(const std::filesystem::path& outputs) const {
  std::error_code error;
  if (std::filesystem::is_empty(outputs, error) || error) return;
  const auto kept = folder_of(number_);
  try {
    core::make_folders(folder_);
    store::keep_from_others(folder_);
    core::remove_tree(kept);
    remove_all_earlier();
    std::filesystem::rename(outputs, kept);
  } catch (const std::exception& failed) {
    core::log::info(std::string("the outputs of a failed attempt are not kept: ") + failed.what());
  }
}

void FailedOutputs::remove_earlier() const {
  try {
    remove_all_earlier();
  } catch (const core::EnvironmentError& error) {
    core::log::info(error.what());
  }
}

void FailedOutputs::remove_all_earlier() const {  // Throws, unlike remove_earlier().
  for (auto number = number_; number-- > 1;) core::remove_tree(folder_of(number));
}

}  // namespace pipeline::engine
