#include "oci/image_tree.hpp"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "file_tree/tar_writer.hpp"

namespace pipeline::oci {
namespace {

namespace fs = std::filesystem;
using file_tree::TarReader;

constexpr std::size_t max_path_length = 4096, max_name_length = 255, max_depth = 512;
constexpr unsigned max_links = 40;  ///< Linux's own limit for a path.
constexpr std::size_t piece_size = std::size_t{1} << 20;
constexpr std::string_view whiteout_prefix = ".wh.", opaque_whiteout = ".wh..wh..opq",
                           aufs_prefix = ".wh..wh.";

[[noreturn]] void refuse(const std::string& why) {
  throw file_tree::ArchiveError("cannot unpack a layer: " + why);
}

/// Returns the names in a path; empty ones and `.` are left out.
std::vector<std::string> parts_of(std::string_view path) {
  if (path.size() > max_path_length) refuse("a path is longer than 4,096 bytes");
  std::vector<std::string> parts;
  for (const auto part : core::split(path, '/')) {
    if (part.size() > max_name_length) refuse("a name is longer than 255 bytes");
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  return parts;
}

/// Returns the names in an entry's path. An absolute path is below the image's root, as in engines.
std::vector<std::string> entry_parts(std::string_view path) {
  auto parts = parts_of(path);
  if (std::ranges::find(parts, "..") != parts.end()) refuse("a path has `..` in it");
  return parts;
}

core::Descriptor open_to_read(const fs::path& file) {
  core::Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened) throw core::system_error("cannot read " + file.string(), errno);
  return opened;
}

}  // namespace

/// A file, a link or a folder of the image.
struct ImageTree::Node {
  char type = '5';          ///< Type in a tar: `0` a file, `2` a symbolic link, `5` a folder.
  std::uint32_t layer = 0;  ///< The layer that wrote it last, counted from 1; 0: none.
  unsigned mode = 0755;
  std::int64_t time = 0;
  std::uint64_t offset = 0, size = 0;  ///< A file's content in the layer's tar.
  std::uint32_t source = 0;            ///< The layer with the content, counted as `layer` is.
  std::uint32_t cleared = 0;           ///< The last layer that has hidden what was below.
  std::string link;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> children;

  /// Removes everything in the folder that layers below `top` have written. A second call for the
  /// same layer returns at once, because a layer may have millions of whiteouts.
  void remove_lower(std::uint32_t top) {
    if (std::exchange(cleared, top) == top) return;
    std::erase_if(children, [top](auto& child) {
      auto& node = *child.second;
      node.remove_lower(top);
      return node.layer != top && node.children.empty();
    });
  }
};

/// Reads the entries of one layer.
class ImageTree::Layer final : public TarReader::Sink {
 public:
  Layer(ImageTree& tree, std::uint32_t number) : tree_(tree), number_(number) {}
  void read(const fs::path& tar);

 private:
  void begin(const TarReader::Entry& entry) override;
  void content(std::string_view bytes) override {
    if (file_ && !has_offset_)
      file_->offset = offset_ + static_cast<std::uint64_t>(bytes.data() - piece_.data());
    has_offset_ = true;
  }
  void end() override { file_ = nullptr; }
  void hide(Node& folder, std::string_view name);
  void link_to(Node& node, const std::string& target);

  ImageTree& tree_;
  const std::uint32_t number_;
  std::string piece_;  ///< The piece that is being read, and where it begins in the tar.
  std::uint64_t offset_ = 0;
  Node* file_ = nullptr;  ///< The file whose content is arriving.
  bool has_offset_ = false;
};

void ImageTree::Layer::read(const fs::path& tar) {
  const auto file = open_to_read(tar);
  file_tree::TarLimits limits;
  limits.entries = tree_.max_entries_ - tree_.entries_;
  TarReader reader(*this, limits);
  for (;;) {
    piece_.resize(piece_size);
    const auto count = ::read(file.get(), piece_.data(), piece_.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw core::system_error("cannot read " + tar.string(), errno);
    if (count == 0) break;
    piece_.resize(static_cast<std::size_t>(count));
    reader.feed(piece_);
    offset_ += piece_.size();
  }
  if (offset_ > 0) reader.finish();  // A layer without any entry may be no bytes at all.
}

void ImageTree::Layer::begin(const TarReader::Entry& entry) {
  file_ = nullptr;
  has_offset_ = false;
  tree_.count_entry();
  auto parts = entry_parts(entry.name);
  if (parts.empty()) return;  // The root, whose mode is the same in all images.
  const auto name = std::move(parts.back());
  parts.pop_back();
  auto& folder = tree_.folder_of(parts, number_);
  if (name.starts_with(whiteout_prefix)) return hide(folder, name);
  auto& slot = folder.children[name];
  const bool is_kept = slot && slot->type == '5' && entry.type == '5';
  if (!is_kept) slot = std::make_unique<Node>();
  auto& node = *slot;
  node.layer = number_;
  node.mode = entry.mode;
  node.time = entry.time;
  switch (entry.type) {
    case '5': break;
    case '0':
    case '7':
      node.type = '0';
      node.size = entry.size;
      node.source = number_;
      file_ = &node;
      break;
    case '2':
      if (entry.linked.empty() || entry.linked.size() > max_path_length)
        refuse("a symbolic link has no target, or one that is longer than 4,096 bytes");
      node.type = '2';
      node.link = entry.linked;
      break;
    case '1': link_to(node, entry.linked); break;
    case '3':  // Devices and named pipes.
    case '4':
    case '6': folder.children.erase(name); break;
    default:
      refuse(std::string("it has an entry of the kind '") +
             (entry.type > 0x20 && entry.type < 0x7f ? entry.type : '?') + "'");
  }
}

void ImageTree::Layer::hide(Node& folder, std::string_view name) {
  if (name == opaque_whiteout) return folder.remove_lower(number_);
  if (name.starts_with(aufs_prefix)) return;  // A file of the file system aufs itself.
  const auto hidden = name.substr(whiteout_prefix.size());
  if (hidden.empty() || hidden == "." || hidden == "..") refuse("a whiteout names no file");
  const auto found = folder.children.find(hidden);
  if (found == folder.children.end()) return;
  found->second->remove_lower(number_);
  if (found->second->layer != number_ && found->second->children.empty())
    folder.children.erase(found);
}

/// Makes the node a copy of a hard link's target; mksquashfs stores equal contents once.
void ImageTree::Layer::link_to(Node& node, const std::string& target) {
  auto parts = entry_parts(target);
  if (parts.empty()) refuse("a hard link has no target");
  const auto name = std::move(parts.back());
  parts.pop_back();
  const auto& children = tree_.folder_of(parts, number_).children;
  const auto found = children.find(name);
  if (found == children.end() || found->second->type == '5' || found->second.get() == &node)
    refuse("a hard link leads to no file");
  const auto& file = *found->second;
  node.type = file.type;
  node.mode = file.mode;
  node.time = file.time;
  node.offset = file.offset;
  node.size = file.size;
  node.source = file.source;
  node.link = file.link;
}

ImageTree::ImageTree(std::uint64_t max_entries)
    : root_(std::make_unique<Node>()), max_entries_(max_entries) {}
ImageTree::~ImageTree() = default;

void ImageTree::count_entry() {
  if (++entries_ > max_entries_)
    refuse("the image has more than " + std::to_string(max_entries_) + " entries");
}

/// Returns the folder at this path in the image. Follows symbolic links as the kernel does for a
/// process whose root is the image, and adds missing folders.
ImageTree::Node& ImageTree::folder_of(const std::vector<std::string>& parts, std::uint32_t layer) {
  std::vector<Node*> folders{root_.get()};  // From the root to the folder that is reached.
  std::deque<std::string> left(parts.begin(), parts.end());
  unsigned links = 0;
  while (!left.empty()) {
    const auto part = std::move(left.front());
    left.pop_front();
    if (part == "..") {
      if (folders.size() > 1) folders.pop_back();
      continue;
    }
    auto& slot = folders.back()->children[part];
    if (!slot) {
      count_entry();  // A path of an archive's few bytes can name hundreds of folders.
      slot = std::make_unique<Node>();
      slot->layer = layer;
    }
    if (slot->type == '2') {
      if (++links > max_links) refuse("its links lead in a circle");
      if (slot->link.starts_with('/')) folders.resize(1);
      auto target = parts_of(slot->link);
      left.insert(left.begin(), std::make_move_iterator(target.begin()),
                  std::make_move_iterator(target.end()));
      continue;
    }
    if (slot->type != '5') refuse("a path leads through a file");
    folders.push_back(slot.get());
    if (folders.size() > max_depth) refuse("its folders are deeper than 512");
  }
  return *folders.back();
}

void ImageTree::add_layer(const fs::path& tar) {
  layers_.push_back(tar);
  Layer(*this, static_cast<std::uint32_t>(layers_.size())).read(tar);
}

ImageTree::Node* ImageTree::add_missing(std::string_view path, std::int64_t time) {
  auto parts = entry_parts(path);
  const auto name = std::move(parts.back());
  parts.pop_back();
  auto& slot = folder_of(parts, 0).children[name];
  if (slot) return nullptr;
  slot = std::make_unique<Node>();
  slot->time = time;
  return slot.get();
}

void ImageTree::add_missing_folder(std::string_view path, std::int64_t time) {
  add_missing(path, time);
}

void ImageTree::add_missing_file(std::string_view path, std::int64_t time) {
  if (auto* node = add_missing(path, time)) {
    node->type = '0';
    node->mode = 0644;
  }
}

void ImageTree::write(const fs::path& tar) const {
  const core::Descriptor file(::open(tar.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) throw core::system_error("cannot write " + tar.string(), errno);
  std::vector<core::Descriptor> opened;
  std::vector<int> layers;
  for (const auto& layer : layers_) {
    opened.push_back(open_to_read(layer));
    layers.push_back(opened.back().get());
  }
  write_content(file.get(), *root_, "", tar, layers);
  core::write_fully(file.get(), file_tree::tar_end(), tar);
}

void ImageTree::write_content(int tar, const Node& folder, const std::string& path,
                              const fs::path& name, const std::vector<int>& layers) {
  std::string buffer;
  for (const auto& [child, node] : folder.children) {
    const auto child_path = path + child;
    const auto header = file_tree::tar_header({.type = node->type,
                                               .name = child_path,
                                               .link = node->link,
                                               .mode = node->mode,
                                               .size = node->size,
                                               .time = node->time});
    core::write_fully(tar, header, name);
    for (std::uint64_t done = 0; done < node->size;) {
      buffer.resize(std::min<std::uint64_t>(piece_size, node->size - done));
      const auto count = ::pread(layers[node->source - 1], buffer.data(), buffer.size(),
                                 static_cast<off_t>(node->offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw core::system_error("cannot read a layer of the image", errno);
      if (count == 0) refuse("it became shorter while it was read");
      core::write_fully(tar, std::string_view(buffer).substr(0, static_cast<std::size_t>(count)),
                        name);
      done += static_cast<std::uint64_t>(count);
    }
    core::write_fully(tar, file_tree::tar_padding(node->size), name);
    if (node->type == '5') write_content(tar, *node, child_path + "/", name, layers);
  }
}

}  // namespace pipeline::oci
