#include "stager/checkpoint.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"
#include "file_tree/content.hpp"
#include "file_tree/tree.hpp"
#include "file_tree/unpack.hpp"
#include "stager/cached_items.hpp"
#include "stager/parts.hpp"

namespace pipeline::stager {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr std::size_t max_note = 1024;  ///< Bytes.
/// Indices of the slots that the upload of a folder in use, or at rest, takes by turns. The last
/// upload, of a folder at rest, has a slot of its own, because a request of the upload before may
/// still be on its way.
constexpr std::pair<std::size_t, std::size_t> slots_in_use{0, 1}, slots_at_rest{2, 0};

/// The state of a folder by the kernel's time stamps. If two states are equal, the folder has not
/// changed between them.
struct Marks {
  std::string digest;  ///< Empty for an empty folder.
  std::chrono::nanoseconds newest{0};
};

Marks marks_of(const fs::path& folder) {
  std::vector<std::string> lines;
  Marks marks;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) != 0) continue;  // The entry was removed.
    const auto time = [](const timespec& stamp) {
      return std::chrono::seconds(stamp.tv_sec) + std::chrono::nanoseconds(stamp.tv_nsec);
    };
    const auto modified = time(status.st_mtim), changed = time(status.st_ctim);
    marks.newest = std::max({marks.newest, modified, changed});
    std::string line = entry->path().native();
    for (const auto number :
         {static_cast<long long>(status.st_mode), static_cast<long long>(status.st_ino),
          static_cast<long long>(status.st_size), static_cast<long long>(modified.count()),
          static_cast<long long>(changed.count())})
      line += '\0' + std::to_string(number);
    lines.push_back(std::move(line));
  }
  if (lines.empty()) return marks;
  std::ranges::sort(lines);
  core::Hasher hasher;
  for (const auto& line : lines) hasher.field(line);
  marks.digest = hasher.finish().hex();
  return marks;
}

/// The head object, which names the slot that was sent last.
struct Head {
  std::string slot, digest;
  std::size_t parts = 0;
};

/// Reads the head; returns nothing if there is none, and a head without a slot if it is damaged.
std::optional<Head> read_head(const std::string& url, Transfer& transfer) {
  const auto text = transfer.find("the checkpoint", url);
  if (!text) return std::nullopt;
  try {
    const auto written = core::parse_json(*text);
    return Head{written.at("slot"), written.at("sha256"),
                core::integer_of<std::size_t>(written.at("parts"))};
  } catch (const json::exception&) {
    return Head{};
  }
}

constexpr const char* damaged_head = "its description is damaged";

/// Unpacks the slot; returns an empty text, or the reason why the slot cannot be used.
std::string fetch_slot(const Head& head, const json& parts, const fs::path& to,
                       Transfer& transfer) {
  const auto urls = part_urls(parts);
  if (head.parts == 0 || head.parts > urls.size()) return damaged_head;
  core::Hasher hasher;
  try {
    file_tree::Unpacker unpacker(to);
    for (std::size_t part = 0; part < head.parts; ++part)
      transfer.receive("the checkpoint", urls[part], [&](std::string_view bytes) {
        hasher.update(bytes);
        unpacker.feed(bytes);
      });
    unpacker.finish();
  } catch (const TransferError& error) {
    if (error.code() != "NoSuchKey") throw;
    return "a part is missing";
  } catch (const file_tree::ArchiveError& error) {
    return error.what();
  }
  return hasher.finish().hex() == head.digest ? "" : "its SHA-256 is not the one that was recorded";
}

}  // namespace

std::string restore_checkpoint(const json& document, const fs::path& marks, Transfer& transfer) {
  const fs::path to = document.at("to").get<std::string>();
  core::make_folders(to);
  const auto head = read_head(document.at("head"), transfer);
  if (!head) return {};
  const auto& slots = document.at("slots");
  std::string damage = damaged_head;
  if (slots.contains(head->slot))
    damage = fetch_slot(*head, slots.at(head->slot), to, transfer);
  else if (!head->slot.empty())
    damage = "it was replaced by an attempt that is unknown to this one";
  if (!damage.empty()) {
    clear(to);
    return "is empty, because the uploaded checkpoint cannot be used: " + damage;
  }
  core::write_file_atomically(marks, marks_of(to).digest);
  return "has the files that an earlier attempt uploaded last";
}

CheckpointSaver::CheckpointSaver(const json& document, const fs::path& marks, Transfer& transfer)
    : document_(document),
      folder_(document.at("path").get<std::string>()),
      note_(document.at("note").get<std::string>()),
      copy_(document.at("copy").get<std::string>()),
      transfer_(transfer) {
  sent_ = core::read_untrusted_file(note_, max_note)
              .value_or(core::read_untrusted_file(marks, max_note).value_or(""));
}

bool CheckpointSaver::save(FolderUse use) {
  auto marks = marks_of(folder_).digest;
  if (marks == sent_) return false;
  if (use == FolderUse::at_rest) {
    send(folder_, slots_at_rest);
  } else {
    const auto copied = copy_at_rest();
    if (!copied) return false;
    marks = *copied;
    send(copy_, slots_in_use);
    core::remove_tree(copy_);
  }
  sent_ = std::move(marks);
  core::write_file_atomically(note_, sent_);
  return true;
}

/// Copies the folder in a moment without changes, and returns its marks; nothing without one.
std::optional<std::string> CheckpointSaver::copy_at_rest() {
  constexpr int max_tries = 100;
  // Time stamps are a timer tick apart: a file that has just changed can change again unnoticed.
  constexpr auto tick = 10ms, pause = 3ms;
  for (int tries = 0; tries < max_tries; ++tries, std::this_thread::sleep_for(pause)) {
    const auto before = marks_of(folder_);
    if (std::chrono::system_clock::now().time_since_epoch() - before.newest < tick) continue;
    core::remove_tree(copy_);
    core::make_folders(copy_);
    try {
      auto nodes = file_tree::scan_tree(folder_, {folder_});
      file_tree::copy_tree(folder_, nodes, copy_);
    } catch (const core::EnvironmentError&) {
      core::remove_tree(copy_);
      if (marks_of(folder_).digest == before.digest) throw;
      continue;  // A file has been removed meanwhile.
    }
    if (marks_of(folder_).digest != before.digest) continue;
    return before.digest;
  }
  core::remove_tree(copy_);
  return std::nullopt;
}

/// Sends to the first of two slots, or to the second if the head names the first.
void CheckpointSaver::send(const fs::path& folder, std::pair<std::size_t, std::size_t> slots) {
  const file_tree::Content content(folder, file_tree::scan_tree(folder, {folder}));
  const auto last = read_head(document_.at("seen"), transfer_);
  const auto& first = document_.at("slots").at(slots.first);
  const bool is_taken = last && first.at("name") == last->slot;
  const auto& slot = is_taken ? document_.at("slots").at(slots.second) : first;
  const auto urls = part_urls(slot);
  const auto sent = send_parts("the checkpoint", content, urls,
                               {part_size(content.size(), urls.size())}, transfer_);
  const json head{{"slot", slot.at("name")},
                  {"parts", sent.tags.size()},
                  {"bytes", content.size()},
                  {"sha256", sent.digest.hex()}};
  transfer_.send_text("the checkpoint", document_.at("head"), head.dump());
}

void keep_checkpoint(const std::function<json()>& read_document, const fs::path& marks,
                     Transfer& transfer) {
  constexpr auto poll_interval = 1s, min_pause = 2s, pause_after_error = 30s;
  constexpr int pause_factor = 20;  // Uploads take a twentieth of the time.
  std::string reported;
  for (;;) {
    std::this_thread::sleep_for(poll_interval);
    const auto begin = Clock::now();
    try {
      const auto document = read_document();
      if (!CheckpointSaver(document, marks, transfer).save(FolderUse::in_use)) continue;
      std::this_thread::sleep_for(
          std::max<Clock::duration>(min_pause, pause_factor * (Clock::now() - begin)));
    } catch (const std::exception& error) {
      if (reported != error.what())
        std::fprintf(stderr, "pipe: ${checkpoint} was not uploaded, retrying: %s\n", error.what());
      reported = error.what();
      std::this_thread::sleep_for(pause_after_error);
    }
  }
}

}  // namespace pipeline::stager
