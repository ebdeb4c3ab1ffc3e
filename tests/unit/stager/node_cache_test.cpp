// The folder of a node in which its pods share what they download.
#include "stager/node_cache.hpp"

#include <atomic>
#include <csignal>
#include <set>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/digest.hpp"
#include "file_tree/content.hpp"
#include "file_tree/tree.hpp"
#include "stager/staging.hpp"
#include "unit/stager/server_fixture.hpp"

namespace pipeline::stager {
namespace {

using nlohmann::json;
using test::HttpExchange;
using testing::HasSubstr;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::uint64_t plenty = 1 << 30;

class NodeCacheTest : public ServerFixture {
 protected:
  async::Task<> serve(HttpExchange& exchange) override {
    ++asked;
    if (objects.contains(exchange.target))
      co_await exchange.answer(200, objects[exchange.target]);
    else
      co_await exchange.answer(404, "<Error><Code>NoSuchKey</Code><Message>no</Message></Error>");
  }

  fs::path cache_folder() {
    fs::create_directories(folder.path() / "cache");
    return folder.path() / "cache";
  }
  /// An item that the server has; each is made at another place, as in another pod.
  json file_item(const std::string& text) {
    objects["/file"] = text;
    return {{"kind", "file"},
            {"to", (folder.path() / ("pod" + std::to_string(pods++)) / "file").string()},
            {"url", server.url() + "/file"},
            {"digest", core::sha256(text).hex()},
            {"executable", true}};
  }
  json tree_item() {
    const auto tree = folder.path() / "tree";
    fs::create_directories(tree / "deep");
    core::write_file_atomically(tree / "deep/f", std::string(100'000, 'f'));
    auto nodes = file_tree::scan_tree(tree);
    file_tree::hash_tree(tree, nodes);
    const file_tree::Content content(tree, nodes);
    objects["/tree"].resize(content.size());
    content.read(0, objects["/tree"]);
    return {{"kind", "tree"},
            {"to", (folder.path() / ("pod" + std::to_string(pods++))).string()},
            {"url", server.url() + "/tree"},
            {"digest", file_tree::tree_digest(nodes).hex()}};
  }
  /// Fetches the item as a pod does, and returns what is said of the cache.
  std::string fetch_item(const json& item, std::uint64_t budget = plenty) {
    NodeCache cache(cache_folder(), budget, {1ms, 200ms});
    Transfer transfer("", hasty);
    fetch({{"items", json::array({item})}}, transfer, SourceReader({}), &cache);
    cache.trim();
    return cache.summary();
  }
  std::set<std::string> cached() {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(cache_folder()))
      names.insert(entry.path().filename());
    return names;
  }

  std::atomic<int> asked = 0;
  int pods = 0;
};

TEST_F(NodeCacheTest, a_second_pod_downloads_nothing) {
  const std::string text(300'000, 'x');
  const auto first = file_item(text);
  EXPECT_EQ(fetch_item(first), "inputs: 0 B from the node's cache, 293 KiB downloaded to it");
  const auto second = file_item(text);
  EXPECT_EQ(fetch_item(second), "inputs: 293 KiB from the node's cache, 0 B downloaded to it");
  EXPECT_EQ(asked, 1);
  const fs::path made = second.at("to").get<std::string>();
  EXPECT_EQ(core::read_file(made), text);
  EXPECT_EQ(fs::status(made).permissions() & fs::perms::all, fs::perms(0555) & ~fs::perms(0));
  EXPECT_EQ(fs::hard_link_count(made), 1) << "the step may be the file's owner";
  EXPECT_EQ(cached(), (std::set<std::string>{core::sha256(text).hex()}));
  EXPECT_EQ(fs::status(cache_folder() / core::sha256(text).hex()).permissions(), fs::perms(0444));
}

TEST_F(NodeCacheTest, a_folder_is_kept_as_a_tar) {
  fetch_item(tree_item());
  const auto second = tree_item();
  fetch_item(second);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(core::read_file(fs::path(second.at("to").get<std::string>()) / "deep/f"),
            std::string(100'000, 'f'));
}

TEST_F(NodeCacheTest, files_that_were_changed_in_it_are_downloaded_again) {
  for (const bool is_tree : {false, true}) {
    for (const std::string bad : {"y", "", "other than before, and longer than a header is"}) {
      asked = 0;
      const auto item = is_tree ? tree_item() : file_item("what is right");
      fetch_item(item);
      const auto name = item.at("digest").get<std::string>() + (is_tree ? ".tar" : "");
      fs::permissions(cache_folder() / name, fs::perms(0600));
      core::write_file_atomically(cache_folder() / name, bad);
      const auto again = is_tree ? tree_item() : file_item("what is right");
      fetch_item(again);
      EXPECT_EQ(asked, 2) << bad;
      const fs::path to = again.at("to").get<std::string>();
      EXPECT_TRUE(fs::exists(is_tree ? to / "deep/f" : to));
      const auto third = is_tree ? tree_item() : file_item("what is right");
      fetch_item(third);
      EXPECT_EQ(asked, 2) << "the cache has been mended";
      fs::remove_all(cache_folder());
    }
  }
}

TEST_F(NodeCacheTest, a_file_of_holes_in_it_fills_no_disk_of_a_pod) {
  for (const bool is_tree : {false, true}) {
    asked = 0;
    const auto item = is_tree ? tree_item() : file_item("what is right");
    const auto path =
        cache_folder() / (item.at("digest").get<std::string>() + (is_tree ? ".tar" : ""));
    core::write_file_atomically(path, "");
    fs::resize_file(path, std::uintmax_t{15} << 40);
    fetch_item(item);
    EXPECT_EQ(asked, 1) << is_tree;
    EXPECT_TRUE(fs::exists(item.at("to").get<std::string>()));
    EXPECT_LT(fs::file_size(path), 1u << 20) << "the cache has been mended";
  }
}

TEST_F(NodeCacheTest, a_folder_that_is_a_volume_of_the_pod_stays) {
  const auto item = tree_item();
  fetch_item(item);
  const auto object = cache_folder() / (item.at("digest").get<std::string>() + ".tar");
  fs::permissions(object, fs::perms(0600));
  fs::resize_file(object, fs::file_size(object) / 2);
  const auto again = tree_item();
  const fs::path volume = again.at("to").get<std::string>();
  fs::create_directory(volume);
  const core::Descriptor open(::open(volume.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  fetch_item(again);
  EXPECT_EQ(asked, 2);
  const auto same = "/proc/self/fd/" + std::to_string(open.get());
  EXPECT_TRUE(fs::exists(fs::path(same) / "deep/f")) << "another folder has been put in its place";
}

TEST_F(NodeCacheTest, a_damaged_download_is_not_kept) {
  auto item = file_item("right");
  objects["/file"] = "wrong";
  try {
    fetch_item(item);
    FAIL();
  } catch (const TransferError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is damaged: its SHA-256 is"));
    EXPECT_TRUE(error.is_transient());
  }
  EXPECT_THAT(cached(), testing::IsEmpty());
  EXPECT_FALSE(fs::exists(item.at("to").get<std::string>()));
}

TEST_F(NodeCacheTest, an_object_that_the_server_lacks_leaves_nothing) {
  auto item = file_item("x");
  objects.clear();
  EXPECT_THROW(fetch_item(item), TransferError);
  EXPECT_THAT(cached(), testing::IsEmpty());
}

TEST_F(NodeCacheTest, special_files_under_a_name_are_not_followed) {
  const auto item = file_item("right");
  fs::create_symlink("/etc/passwd", cache_folder() / item.at("digest").get<std::string>());
  fetch_item(item);
  EXPECT_EQ(core::read_file(item.at("to").get<std::string>()), "right");
  EXPECT_TRUE(fs::exists("/etc/passwd"));
}

TEST_F(NodeCacheTest, pods_that_fetch_at_the_same_time_download_once) {
  NodeCacheWaits waits{1ms, 20s};
  std::atomic<int> downloads = 0, found = 0;
  std::vector<std::jthread> running;
  for (int i = 0; i < 8; ++i)
    running.emplace_back([&] {
      NodeCache cache(cache_folder(), plenty, waits);
      const auto object = cache.open("x", [&](int file, const fs::path& path) {
        ++downloads;
        std::this_thread::sleep_for(50ms);
        core::write_fully(file, "content", path);
      });
      std::string text(7, ' ');
      if (object && ::pread(object->file.get(), text.data(), text.size(), 0) == 7 &&
          text == "content")
        ++found;
    });
  running.clear();
  EXPECT_EQ(downloads, 1);
  EXPECT_EQ(found, 8);
  EXPECT_EQ(cached(), std::set<std::string>{"x"});
}

TEST_F(NodeCacheTest, the_next_pod_takes_over_from_one_that_died) {
  const auto place = cache_folder();
  const auto child = ::fork();
  if (child == 0) {
    NodeCache cache(place, plenty);
    cache.open("x", [](int file, const fs::path& path) {
      core::write_fully(file, "half", path);
      ::raise(SIGKILL);
    });
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(cached(), std::set<std::string>{"x.part"});
  NodeCache cache(place, plenty, {1ms, 20s});
  const auto object = cache.open(
      "x", [](int file, const fs::path& path) { core::write_fully(file, "whole", path); });
  ASSERT_TRUE(object);
  EXPECT_TRUE(object->is_new);
  EXPECT_EQ(core::read_file(place / "x"), "whole");
  EXPECT_EQ(cached(), std::set<std::string>{"x"});
}

TEST_F(NodeCacheTest, a_pod_whose_download_makes_no_progress_is_not_waited_for) {
  NodeCache slow(cache_folder(), plenty), other(cache_folder(), plenty, {1ms, 20ms});
  bool is_given_up = false;
  const auto object = slow.open("x", [&](int file, const fs::path& path) {
    core::write_fully(file, "half", path);
    is_given_up = !other.open("x", [](int, const fs::path&) { FAIL(); });
    core::write_fully(file, "whole", path);
  });
  EXPECT_TRUE(is_given_up);
  EXPECT_THAT(other.summary(), HasSubstr("makes no progress"));
  EXPECT_TRUE(object);
}

TEST_F(NodeCacheTest, a_full_disk_is_not_a_failure) {
  const auto unused = cache_folder() / "unused";
  core::write_file_atomically(unused, std::string(1000, 'u'));
  NodeCache cache(cache_folder(), 1000);
  EXPECT_FALSE(cache.open("x", [](int, const fs::path& path) {
    throw core::system_error("cannot write " + path.string(), ENOSPC);
  }));
  EXPECT_THAT(cache.summary(), HasSubstr("No space left"));
  EXPECT_THAT(cached(), testing::IsEmpty()) << "unused entries are removed to make room";
}

TEST_F(NodeCacheTest, without_a_folder_everything_is_downloaded) {
  const auto item = file_item("right");
  NodeCache cache(folder.path() / "none", plenty);
  Transfer transfer("", hasty);
  fetch({{"items", json::array({item})}}, transfer, SourceReader({}), &cache);
  EXPECT_EQ(core::read_file(item.at("to").get<std::string>()), "right");
  EXPECT_THAT(cache.summary(), HasSubstr("cannot write to the node's cache: No such file"));
}

TEST_F(NodeCacheTest, the_longest_unused_are_removed_when_the_budget_is_used_up) {
  NodeCache cache(cache_folder(), 2500);
  const auto put = [&](const std::string& name) {
    return cache.open(name, [](int file, const fs::path& path) {
      core::write_fully(file, std::string(1000, 'x'), path);
    });
  };
  const auto age = [&](const std::string& name, int hours) {
    fs::last_write_time(cache_folder() / name,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  core::write_file_atomically(cache_folder() / "dead.part", std::string(1000, 'x'));
  auto used = put("used");
  put("a");
  EXPECT_EQ(cached(), (std::set<std::string>{"a", "used"}));
  age("used", 3);
  age("a", 2);
  put("b");
  EXPECT_EQ(cached(), (std::set<std::string>{"b", "used"})) << "somebody reads it";
  used.reset();
  age("used", 3);
  put("used");  // Taken again: it is the last one that was used.
  age("b", 1);
  put("c");
  EXPECT_EQ(cached(), (std::set<std::string>{"c", "used"}));
}

}  // namespace
}  // namespace pipeline::stager
