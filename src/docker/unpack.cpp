#include "docker/unpack.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"

namespace pipeline::docker {
namespace {

constexpr std::size_t block = 512;
constexpr std::uint64_t longest_text = 1u << 20;

[[noreturn]] void refuse(const std::string& why) {
  throw core::EnvironmentError("cannot unpack what was sent: " + why);
}

std::string_view field(std::string_view header, std::size_t offset, std::size_t size) {
  const auto text = header.substr(offset, size);
  return text.substr(0, text.find('\0'));
}

/// Octal digits, or GNU's big-endian number behind a set high bit.
std::uint64_t number(std::string_view header, std::size_t offset, std::size_t size) {
  const auto raw = header.substr(offset, size);
  std::uint64_t value = 0;
  if (static_cast<unsigned char>(raw[0]) & 0x80) {
    for (std::size_t i = 1; i < raw.size(); ++i) {
      if (value >> 55) refuse("a size is beyond all reason");
      value = value << 8 | static_cast<unsigned char>(raw[i]);
    }
    return value;
  }
  for (const char c : raw)
    if (c >= '0' && c <= '7')
      value = value << 3 | static_cast<unsigned>(c - '0');
    else if (c != ' ' && c != '\0')
      refuse("it is no tar");
  return value;
}

/// The sum of a header's bytes, its own field taken for spaces.
void check_sum(std::string_view header) {
  std::uint64_t sum = 8 * ' ';
  for (std::size_t i = 0; i < header.size(); ++i)
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(header[i]);
  if (sum != number(header, 148, 8)) refuse("it is no tar");
}

}  // namespace

std::filesystem::path Unpacker::place_of(const std::string& name) const {
  auto path = target_;
  bool first = true;
  for (std::size_t begin = 0; begin <= name.size();) {
    const auto end = std::min(name.find('/', begin), name.size());
    const auto part = name.substr(begin, end - begin);
    if (part == ".." || (begin == 0 && part.empty()))
      refuse("the name '" + name + "' leaves the folder that it should be in");
    if (!part.empty() && part != "." && !first) path /= part;
    first = false;
    begin = end + 1;
  }
  return path;
}

void Unpacker::make(char type, const std::string& name, const std::string& linked, unsigned mode) {
  const auto path = place_of(name);
  if (path == target_) {
    if (type != '5') refuse("'" + name + "' should be a folder");
    return;
  }
  switch (type) {
    case '5':
      // Its owner, the caller, must be able to read it, write in it and remove it.
      if (mkdir(path.c_str(), (mode & 0777) | 0700) != 0)
        throw core::system_error("cannot make the folder " + path.string(), errno);
      break;
    case '2': links_.emplace_back(path, linked); break;
    case '1': {
      const auto other = place_of(linked);
      const auto link = std::find_if(links_.begin(), links_.end(),
                                     [&](const auto& each) { return each.first == other; });
      if (link != links_.end())
        links_.emplace_back(path, link->second);
      else if (::link(other.c_str(), path.c_str()) != 0)
        throw core::system_error("cannot make " + path.string(), errno);
      break;
    }
    case '0':
    case '7':
      file_ =
          core::Descriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                                (mode & 0777) | 0600));
      if (!file_) throw core::system_error("cannot make the file " + path.string(), errno);
      file_name_ = path.string();
      break;
    default:
      refuse("'" + name +
             "' is neither file, folder nor link: a step's outputs cannot hold devices and pipes");
  }
}

void Unpacker::begin_entry() {
  const auto header = std::exchange(header_, {});
  if (header.find_first_not_of('\0') == header.npos) {
    ended_ = true;
    return;
  }
  check_sum(header);
  const char type = header[156] == '\0' ? '0' : header[156];
  auto size = number(header, 124, 12);
  if (type == 'x' || type == 'L' || type == 'K' || type == 'g') {
    if (size > longest_text) refuse("a name is longer than 1 MiB");
    kind_ = type;
  } else {
    kind_ = 0;
    std::string name(field(header, 0, 100)), linked(field(header, 157, 100));
    if (header.substr(257, 6) == std::string_view("ustar\0", 6))
      if (const auto prefix = field(header, 345, 155); !prefix.empty())
        name = std::string(prefix) + "/" + name;
    if (auto own = own_.find("path"); own != own_.end()) name = own->second;
    if (auto own = own_.find("linkpath"); own != own_.end()) linked = own->second;
    if (auto own = own_.find("size"); own != own_.end()) {
      const auto& text = own->second;
      if (std::from_chars(text.data(), text.data() + text.size(), size).ptr !=
              text.data() + text.size() ||
          text.empty())
        refuse("it is no tar");
    }
    own_.clear();
    make(type, name, linked, static_cast<unsigned>(number(header, 100, 8) & 07777));
    if (type == '1' || type == '2' || type == '5') size = 0;
  }
  if (size > std::uint64_t{1} << 60) refuse("a size is beyond all reason");
  left_ = size;
  padding_ = (block - size % block) % block;
  if (left_ == 0) end_body();
}

/// `LENGTH KEY=VALUE\n`, the length counting itself.
void Unpacker::read_records(std::string_view text) {
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [digits_end, error] =
        std::from_chars(text.data(), text.data() + text.size(), length);
    const auto space = static_cast<std::size_t>(digits_end - text.data());
    if (error != std::errc() || length <= space + 1 || length > text.size() || text[space] != ' ' ||
        text[length - 1] != '\n')
      refuse("it is no tar");
    const auto record = text.substr(space + 1, length - space - 2);
    const auto equals = record.find('=');
    if (equals == record.npos) refuse("it is no tar");
    own_[std::string(record.substr(0, equals))] = record.substr(equals + 1);
    text.remove_prefix(length);
  }
}

void Unpacker::end_body() {
  file_ = core::Descriptor();
  const auto text = std::exchange(text_, {});
  switch (std::exchange(kind_, 0)) {
    case 'x': read_records(text); break;
    case 'L': own_["path"] = text.c_str(); break;  // to its first NUL
    case 'K': own_["linkpath"] = text.c_str(); break;
    default: break;  // of a file; or what holds for all entries, which is nothing that matters here
  }
}

void Unpacker::feed(std::string_view bytes) {
  while (!bytes.empty() && !ended_) {
    if (left_ > 0) {
      const auto piece = bytes.substr(0, std::min<std::uint64_t>(left_, bytes.size()));
      if (kind_ != 0) {
        text_ += piece;
      } else if (file_) {
        for (auto rest = piece; !rest.empty();) {
          const auto written = write(file_.get(), rest.data(), rest.size());
          if (written < 0 && errno == EINTR) continue;
          if (written < 0) throw core::system_error("cannot write " + file_name_, errno);
          rest.remove_prefix(static_cast<std::size_t>(written));
        }
      }
      bytes.remove_prefix(piece.size());
      left_ -= piece.size();
      if (left_ == 0) end_body();
    } else if (padding_ > 0) {
      const auto skipped = std::min<std::uint64_t>(padding_, bytes.size());
      bytes.remove_prefix(skipped);
      padding_ -= skipped;
    } else {
      const auto piece = bytes.substr(0, block - header_.size());
      header_ += piece;
      bytes.remove_prefix(piece.size());
      if (header_.size() == block) begin_entry();
    }
  }
}

void Unpacker::finish() {
  if (!ended_) refuse("it was cut short");
  for (const auto& [path, linked] : links_)
    if (symlink(linked.c_str(), path.c_str()) != 0)
      throw core::system_error("cannot make the link " + path.string(), errno);
}

}  // namespace pipeline::docker
