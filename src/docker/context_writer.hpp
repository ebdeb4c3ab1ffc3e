/// @file
/// Collects the files of a build context, generated ones and those of the user.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "docker/image_plan.hpp"
#include "templates/templates.hpp"

namespace pipeline::docker {

class ContextWriter {
 public:
  explicit ContextWriter(const std::filesystem::path& template_dir)
      : template_dir_(template_dir),
        common_(templates::template_text("image/common.sh", template_dir)) {}
  void add(std::string path, std::string content) {
    files_.push_back(text_file(std::move(path), std::move(content)));
  }
  void add_lines(std::string path, const std::vector<std::string>& lines) {
    std::string content;
    for (auto& line : lines) content += line + "\n";
    add(std::move(path), std::move(content));
  }
  /// Adds the template `name`, preceded by the functions of common.sh.
  void add_script(std::string path, std::string_view name) {
    add(std::move(path), common_ + templates::template_text(name, template_dir_));
  }
  void add_files(std::string_view folder, std::vector<ContextFile> files) {
    for (auto& file : files) {
      file.path = std::string(folder) + "/" + file.path;
      files_.push_back(std::move(file));
    }
  }
  std::vector<ContextFile> sorted() && {
    std::ranges::sort(files_, {}, &ContextFile::path);
    return std::move(files_);
  }

 private:
  const std::filesystem::path& template_dir_;
  std::string common_;
  std::vector<ContextFile> files_;
};

}  // namespace pipeline::docker
