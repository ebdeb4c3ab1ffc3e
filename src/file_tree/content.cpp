#include "file_tree/content.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "file_tree/tar_writer.hpp"

namespace pipeline::file_tree {
namespace {

std::string header_of(const TreeNode& node) {
  using Kind = TreeNode::Kind;
  const bool is_file = node.kind == Kind::file;
  return tar_header({.type = node.kind == Kind::directory ? '5'
                             : node.kind == Kind::link    ? '2'
                                                          : '0',
                     .name = "./" + node.path,
                     .link = node.target,
                     .mode = is_file && !node.executable ? 0644U : 0755U,
                     .size = is_file ? node.bytes : 0});
}

}  // namespace

/// Files that no thread is reading, each with its piece.
struct Content::OpenFiles {
  std::mutex mutex;
  std::vector<std::pair<const Piece*, core::Descriptor>> idle;

  /// Returns the piece's file, opened anew unless it is idle.
  core::Descriptor take(const Piece& piece) {
    {
      const std::lock_guard lock(mutex);
      const auto found = std::ranges::find(idle, &piece, &decltype(idle)::value_type::first);
      if (found != idle.end()) {
        auto file = std::move(found->second);
        idle.erase(found);
        return file;
      }
    }
    core::Descriptor file(::open(piece.file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) throw core::system_error("cannot read " + piece.file.string(), errno);
    return file;
  }

  void give_back(const Piece& piece, core::Descriptor file) {
    constexpr std::size_t max_idle = 16;
    const std::lock_guard lock(mutex);
    idle.emplace_back(&piece, std::move(file));
    if (idle.size() > max_idle) idle.erase(idle.begin());
  }
};

Content::Content(Content&& other) noexcept = default;
Content::~Content() = default;

Content::Content(const std::filesystem::path& file) : open_files_(std::make_unique<OpenFiles>()) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0)
    throw core::system_error("cannot read " + file.string(), errno);
  check_holes(file, holes_in(file, status));
  pieces_.push_back({0, {}, file});
  size_ = static_cast<std::uint64_t>(status.st_size);
}

Content::Content(const std::filesystem::path& folder, const std::vector<TreeNode>& nodes)
    : open_files_(std::make_unique<OpenFiles>()) {
  TreeNode root;
  root.kind = TreeNode::Kind::directory;
  add(header_of(root));
  for (const auto& node : nodes) {
    add(header_of(node));
    if (node.kind != TreeNode::Kind::file || node.bytes == 0) continue;
    pieces_.push_back({size_, {}, folder / node.path});
    size_ += node.bytes;
    add(tar_padding(node.bytes));
  }
  add(tar_end());
}

void Content::add(std::string text) {
  if (text.empty()) return;
  const auto begin = size_;
  size_ += text.size();
  if (!pieces_.empty() && pieces_.back().file.empty())
    pieces_.back().text += text;
  else
    pieces_.push_back({begin, std::move(text), {}});
}

std::size_t Content::read(std::uint64_t offset, std::span<char> into) const {
  std::size_t done = 0;
  while (done < into.size() && offset + done < size_) {
    const auto position = offset + done;
    const auto next = std::ranges::upper_bound(pieces_, position, {}, &Piece::begin);
    const auto& piece = *std::prev(next);
    const auto end = next == pieces_.end() ? size_ : next->begin;
    const auto part =
        into.subspan(done, std::min<std::uint64_t>(into.size() - done, end - position));
    if (piece.file.empty())
      std::memcpy(part.data(), piece.text.data() + (position - piece.begin), part.size());
    else if (read_file(piece, position - piece.begin, part) != part.size())
      throw core::EnvironmentError("cannot read " + piece.file.string() +
                                   ": it became shorter meanwhile");
    done += part.size();
  }
  return done;
}

std::size_t Content::read_file(const Piece& piece, std::uint64_t offset,
                               std::span<char> into) const {
  auto file = open_files_->take(piece);
  std::size_t done = 0;
  while (done < into.size()) {
    const auto count = ::pread(file.get(), into.data() + done, into.size() - done,
                               static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw core::system_error("cannot read " + piece.file.string(), errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  open_files_->give_back(piece, std::move(file));
  return done;
}

std::vector<std::uint64_t> Content::file_offsets() const {
  std::vector<std::uint64_t> offsets;
  for (const auto& piece : pieces_)
    if (!piece.file.empty()) offsets.push_back(piece.begin);
  return offsets;
}

FileDigests::FileDigests(const Content& content, std::vector<TreeNode>& nodes) {
  const auto offsets = content.file_offsets();
  for (auto& node : nodes) {
    if (node.kind != TreeNode::Kind::file) continue;
    if (node.bytes == 0)
      node.digest = core::sha256({});
    else
      files_.push_back({offsets.at(files_.size()), &node});
  }
}

void FileDigests::update(std::string_view tar) {
  while (!tar.empty() && next_ < files_.size()) {
    const auto [begin, node] = files_[next_];
    const auto end = begin + node->bytes;
    const bool is_within = position_ >= begin;
    const auto part = tar.substr(0, (is_within ? end : begin) - position_);
    if (is_within) hasher_.update(part);
    position_ += part.size();
    tar.remove_prefix(part.size());
    if (position_ < end) continue;
    node->digest = hasher_.finish();
    ++next_;
  }
  position_ += tar.size();
}

}  // namespace pipeline::file_tree
