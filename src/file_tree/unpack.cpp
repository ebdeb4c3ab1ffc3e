#include "file_tree/unpack.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/diagnostic.hpp"
#include "file_tree/beneath.hpp"
#include "file_tree/tree.hpp"

namespace pipeline::file_tree {
namespace {

constexpr std::size_t max_winding_links = 1'000;

/// Quotes a name of the archive for messages: the name can be long or contain control characters.
std::string in_quotes(std::string_view name) {
  constexpr std::size_t max_shown = 200;
  return "'" + core::printable(std::string(name.substr(0, max_shown))) +
         (name.size() > max_shown ? "...'" : "'");
}

[[noreturn]] void refuse_link(const std::string& path, const std::string& linked) {
  throw ArchiveError("cannot keep " + in_quotes(path) + ": it is a symbolic link to " +
                         in_quotes(linked) + ", outside of the folder",
                     {"copy what it points to instead, e.g. with cp -L"});
}

/// Returns the path below the target, without the first component; empty for the target itself.
std::string path_of(const std::string& name, const std::filesystem::path& target) {
  std::string path;
  bool is_first = true;
  for (std::size_t begin = 0; begin <= name.size();) {
    const auto end = std::min(name.find('/', begin), name.size());
    const auto part = std::string_view(name).substr(begin, end - begin);
    if (part == ".." || (begin == 0 && part.empty()))
      refuse("the name " + in_quotes(name) + " leaves the folder that it should be in");
    if (!part.empty() && part != "." && !is_first)
      path.append(path.empty() ? "" : "/").append(part);
    is_first = false;
    begin = end + 1;
  }
  if (target.native().size() + 1 + path.size() >= PATH_MAX)
    refuse("the name " + in_quotes(name) + " is longer than a path can be");
  return path;
}

struct Split {
  std::string folder, name;
};
/// Splits a path into its folder, which may be empty, and its last component.
Split split(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == path.npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

/// Where a link leads. `winding`: the link's text does not show where, because it has a `..` after
/// a name.
enum class Way { inside, outside, winding };

/// Classifies a link's target by its text. All folders above the link are real, so leading `..` can
/// be counted; a `..` after a name cannot, because the name may be a link.
Way way_of(const std::string& path, const std::string& linked) {
  if (linked.empty() || linked.front() == '/') return Way::outside;
  auto depth = std::ranges::count(path, '/');
  bool descends = false;
  for (std::size_t begin = 0; begin <= linked.size();) {
    const auto end = std::min(linked.find('/', begin), linked.size());
    const auto part = std::string_view(linked).substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..")
      descends = true;
    else if (descends)
      return Way::winding;
    else if (--depth < 0)
      return Way::outside;
  }
  return Way::inside;
}

}  // namespace

Unpacker::Unpacker(std::filesystem::path target, TarLimits limits,
                   const std::filesystem::path& name)
    : target_(std::move(target)),
      names_(name.empty() ? FolderNames() : FolderNames{name}),
      reader_(*this, limits),
      root_(::open(target_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (!root_) throw core::system_error("cannot unpack into " + target_.string(), errno);
}

/// Returns the open folder that contains `path`, and keeps it open for the next entry, which is
/// usually in the same folder.
int Unpacker::parent_of(const std::string& path) {
  const auto folder = split(path).folder;
  if (folder.empty()) return root_.get();
  if (!parent_ || parent_path_ != folder) {
    parent_ = open_beneath(root_.get(), folder, O_PATH | O_DIRECTORY);
    if (!parent_) throw core::system_error("cannot unpack " + in_quotes(path), errno);
    parent_path_ = folder;
  }
  return parent_.get();
}

void Unpacker::begin(const TarReader::Entry& entry) {
  const auto path = path_of(entry.name, target_);
  if (path.empty()) {
    if (entry.type != '5') refuse(in_quotes(entry.name) + " should be a folder");
    return;
  }
  switch (entry.type) {
    case '5': return make_folder(path, entry.mode);
    case '2': return make_link(path, entry.linked);
    case '1': return make_hard_link(path, entry.linked);
    case '0':
    case '7': return make_file(path, entry.mode);
    default:
      refuse(in_quotes(entry.name) +
             " is neither file, folder nor link: a step's outputs cannot hold devices and pipes");
  }
}

void Unpacker::make_folder(const std::string& path, unsigned mode) {
  // The owner, the user of this process, must be able to read, write and remove the folder.
  if (::mkdirat(parent_of(path), split(path).name.c_str(), (mode & 0777) | 0700) != 0)
    throw core::system_error("cannot make the folder " + in_quotes(path), errno);
}

void Unpacker::make_file(const std::string& path, unsigned mode) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  file_ = core::Descriptor(
      ::openat(parent_of(path), split(path).name.c_str(), flags, (mode & 0777) | 0600));
  if (!file_) throw core::system_error("cannot make the file " + in_quotes(path), errno);
  file_name_ = path;
}

void Unpacker::make_link(const std::string& path, const std::string& written) {
  const auto linked = relative_target(path, written, names_);
  const auto way = way_of(path, linked);
  if (way == Way::outside) refuse_link(path, linked);
  if (way == Way::winding) {
    if (winding_links_.size() == max_winding_links)
      refuse("it has too many links with `..` in the middle");
    winding_links_.push_back(path);
  }
  if (::symlinkat(linked.c_str(), parent_of(path), split(path).name.c_str()) != 0)
    throw core::system_error("cannot make the link " + in_quotes(path), errno);
}

void Unpacker::make_hard_link(const std::string& path, const std::string& name) {
  const auto other = path_of(name, target_);
  const auto fail = [&] {
    throw core::system_error("cannot make " + in_quotes(path) + ", a link to " + in_quotes(name),
                             errno);
  };
  const auto folder = open_beneath(root_.get(), split(other).folder, O_PATH | O_DIRECTORY);
  const auto leaf = split(other).name;
  struct stat status {};
  if (!folder || ::fstatat(folder.get(), leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) fail();
  if (S_ISLNK(status.st_mode)) {  // At another path, the same target could lead outside.
    std::string text(PATH_MAX, '\0');
    const auto size = ::readlinkat(folder.get(), leaf.c_str(), text.data(), text.size());
    if (size < 0) fail();
    return make_link(path, text.substr(0, static_cast<std::size_t>(size)));
  }
  if (::linkat(folder.get(), leaf.c_str(), parent_of(path), split(path).name.c_str(), 0) != 0)
    fail();
}

void Unpacker::content(std::string_view bytes) {
  if (file_) core::write_fully(file_.get(), bytes, target_ / file_name_);
}

void Unpacker::finish() {
  reader_.finish();
  for (const auto& link : winding_links_)
    if (!stays_inside(target_, link))
      refuse_link(link, std::filesystem::read_symlink(target_ / link).string());
}

}  // namespace pipeline::file_tree
