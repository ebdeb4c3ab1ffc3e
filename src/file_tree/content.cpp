#include "file_tree/content.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"

namespace pipeline::file_tree {
namespace {

constexpr std::uint64_t tar_block = 512;

void put(std::string& header, std::size_t offset, const std::string& text) {
  std::memcpy(header.data() + offset, text.data(), text.size());
}

std::string octal(std::uint64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(value));
  return text;
}

std::string padding(std::uint64_t size) {
  return std::string((tar_block - size % tar_block) % tar_block, '\0');
}

/// Returns a header of POSIX's ustar format.
std::string header(const std::string& name, char type, unsigned mode, std::uint64_t size,
                   const std::string& link) {
  std::string text(tar_block, '\0');
  put(text, 0, name);
  put(text, 100, octal(mode, 7));
  put(text, 108, octal(0, 7));
  put(text, 116, octal(0, 7));
  put(text, 124, octal(size, 11));
  put(text, 136, octal(0, 11));
  put(text, 148, "        ");
  text[156] = type;
  put(text, 157, link);
  put(text, 257,
      std::string("ustar\0"
                  "00",
                  8));
  std::uint64_t sum = 0;
  for (const char c : text) sum += static_cast<unsigned char>(c);
  put(text, 148, octal(sum, 6));
  text[154] = '\0';
  return text;
}

/// Returns `LENGTH KEY=VALUE\n`; the length includes itself.
std::string record(const std::string& key, const std::string& value) {
  const auto rest = key.size() + value.size() + 3;
  auto length = rest + std::to_string(rest).size();
  length = rest + std::to_string(length).size();
  return std::to_string(length) + " " + key + "=" + value + "\n";
}

/// Returns the header, preceded by a pax extension for values that do not fit into it.
std::string headers(const TreeNode& node, const std::string& name) {
  constexpr std::size_t longest = 100;
  constexpr std::uint64_t largest = 077777777777;
  const char type = node.kind == TreeNode::Kind::directory ? '5'
                    : node.kind == TreeNode::Kind::link    ? '2'
                                                           : '0';
  const unsigned mode = node.kind == TreeNode::Kind::file && !node.executable ? 0644 : 0755;
  const auto size = node.kind == TreeNode::Kind::file ? node.bytes : 0;
  std::string more;
  if (name.size() > longest) more += record("path", name);
  if (node.target.size() > longest) more += record("linkpath", node.target);
  if (size > largest) more += record("size", std::to_string(size));
  std::string text;
  if (!more.empty())
    text = header("././@PaxHeader", 'x', 0644, more.size(), {}) + more + padding(more.size());
  return text + header(name.substr(0, longest), type, mode, std::min(size, largest),
                       node.target.substr(0, longest));
}

}  // namespace

Content::Content(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0)
    throw core::system_error("cannot read " + file.string(), errno);
  check_holes(file, holes_in(file, status));
  pieces_.push_back({0, {}, file});
  size_ = static_cast<std::uint64_t>(status.st_size);
}

Content::Content(const std::filesystem::path& folder, const std::vector<TreeNode>& nodes) {
  TreeNode root;
  root.kind = TreeNode::Kind::directory;
  add(headers(root, "./"));
  for (const auto& node : nodes) {
    add(headers(node, "./" + node.path + (node.kind == TreeNode::Kind::directory ? "/" : "")));
    if (node.kind != TreeNode::Kind::file || node.bytes == 0) continue;
    pieces_.push_back({size_, {}, folder / node.path});
    size_ += node.bytes;
    add(padding(node.bytes));
  }
  add(std::string(2 * tar_block, '\0'));
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
    const auto place = offset + done;
    const auto next = std::ranges::upper_bound(pieces_, place, {}, &Piece::begin);
    const auto& piece = *std::prev(next);
    const auto end = next == pieces_.end() ? size_ : next->begin;
    const auto part = into.subspan(done, std::min<std::uint64_t>(into.size() - done, end - place));
    if (piece.file.empty())
      std::memcpy(part.data(), piece.text.data() + (place - piece.begin), part.size());
    else if (read_file(piece, place - piece.begin, part) != part.size())
      throw core::EnvironmentError("cannot read " + piece.file.string() +
                                   ": it became shorter meanwhile");
    done += part.size();
  }
  return done;
}

std::size_t Content::read_file(const Piece& piece, std::uint64_t offset,
                               std::span<char> into) const {
  if (of_ != &piece) {
    open_ = core::Descriptor(::open(piece.file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!open_) throw core::system_error("cannot read " + piece.file.string(), errno);
    of_ = &piece;
  }
  std::size_t done = 0;
  while (done < into.size()) {
    const auto count = ::pread(open_.get(), into.data() + done, into.size() - done,
                               static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw core::system_error("cannot read " + piece.file.string(), errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

}  // namespace pipeline::file_tree
