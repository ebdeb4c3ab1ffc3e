// Whatever an archive says, nothing outside of the target changes, and memory and descriptors stay
// bounded. The seed is printed; PIPE_ARCHIVE_SEED=N repeats a run, PIPE_ARCHIVE_COUNT=N makes more
// or fewer of them.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>
#include <set>
#include <vector>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "file_tree/tree.hpp"
#include "file_tree/unpack.hpp"
#include "support/tar.hpp"

namespace pipeline::file_tree {
namespace {

namespace fs = std::filesystem;
using namespace test::tar;

/// Makes one archive of a seed. Half of them avoid what is refused at once, so that they get
/// further.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed), is_polite_(chance(50)) {}

  std::string archive() {
    std::string tar;
    if (chance(80)) tar += entry('5', "o/");
    for (auto left = below(chance(5) ? 300 : 25); left > 0; --left) tar += any_entry();
    if (chance(3)) tar += deep_folders();
    if (chance(98)) tar += end;
    if (chance(3)) tar.resize(below(tar.size() + 1));
    if (chance(3) && !tar.empty()) tar[below(tar.size())] ^= static_cast<char>(1 << below(8));
    if (chance(2)) tar += std::string(below(4096), '\xa5');
    return tar;
  }
  std::size_t piece() { return 1 + below(chance(50) ? 600 : 100'000); }

 private:
  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class Items>
  std::string one_of(const Items& items) {
    return items[below(std::size(items))];
  }

  std::string component() {
    static const std::vector<std::string> few{"a", "A", "b", "B", "d", "D", "link", "LINK", "x"};
    static const std::vector<std::string> odd{
        "..",       ".", "",          "...", " ",    "-rf", "\xff\xfe", "new\nline",
        "\x1b[31m", "ü", "u\xcc\x88", "CON", "a\\b", "~",   "*"};
    if (chance(85)) return one_of(few);
    if (chance(10))
      return std::string(200 + below(is_polite_ ? 50 : 120),
                         'n');  // up to more than a name can have
    auto name = one_of(odd);
    return is_polite_ && name == ".." ? "b" : name;
  }
  std::string path() {
    if (!is_polite_ && chance(5))
      return one_of(std::vector<std::string>{"/etc/passwd", "..", "../victim/x",
                                             "o/../../victim/new", "", "/", "o"});
    std::string text = chance(95) ? "o" : ".";
    for (auto left = 1 + below(4); left > 0; --left) text += "/" + component();
    if (chance(5)) text += "/";
    made_.push_back(text);
    return text;
  }
  /// Returns a new path below an existing folder, as programs write archives; sometimes any path,
  /// in the polite half seldom.
  std::string new_path(bool is_folder) {
    if (!chance(is_polite_ ? 99 : 80)) return path();
    auto text = one_of(folders_) + "/" + component();
    while (!used_.insert(text).second) text += "2";
    if (is_folder) folders_.push_back(text);
    made_.push_back(text);
    return text;
  }
  std::string known_path() { return !made_.empty() && chance(70) ? one_of(made_) : path(); }
  /// Returns the target of a link.
  std::string target() {
    static const std::vector<std::string> outside{"/",
                                                  "/etc/passwd",
                                                  "../victim",
                                                  "../../victim",
                                                  "../../victim/secret",
                                                  "..",
                                                  "../../../",
                                                  "a/../..",
                                                  "link/../../victim",
                                                  "d/../../a",
                                                  "../target/a",
                                                  ""};
    if (!is_polite_ && chance(40)) return one_of(outside);
    if (chance(20))
      return one_of(std::vector<std::string>{".", "./.", "d/..", "link/..", "a/../b", "../a",
                                             "../o", "link", "a//b", "d/../link/.."});
    auto text = component();
    for (auto left = below(3); left > 0; --left) text += "/" + component();
    return text;
  }
  std::string content() {
    return std::string(chance(90) ? below(700) : below(20'000), static_cast<char>('a' + below(26)));
  }

  std::string any_entry() {
    const auto kind = below(100);
    if (kind < 30) return entry('5', new_path(true));
    if (kind < 60) return described() + entry(chance(90) ? '0' : '7', new_path(false), content());
    if (kind < 80) return described() + entry('2', new_path(false), "", target());
    if (kind < 85)
      return entry('1', new_path(false), "",
                   is_polite_ && !files_.empty() ? one_of(files_) : known_path());
    if (kind < 90) return entry('0', files_.emplace_back(new_path(false)), content());
    if (kind < 93) return entry('g', "pax_global_header", record("path", "../victim/global"));
    if (is_polite_) return entry('0', new_path(false), content());
    if (kind < 97)
      return entry(one_of(std::vector<std::string>{"3", "4", "6", "S", "V", "M", "D", "A", "Z"})[0],
                   path(), content());
    return entry('0', path(), "", "",
                 chance(50) ? std::uint64_t{077777777777}
                            : std::uint64_t{1} << 20);  // a size that is not true
  }
  /// Returns an entry that describes the next one; mostly nothing.
  std::string described() {
    if (!chance(is_polite_ ? 3 : 15)) return "";
    if (chance(30)) return entry('L', "././@LongLink", path() + std::string(1, '\0'));
    if (chance(30)) return entry('K', "././@LongLink", target() + std::string(1, '\0'));
    std::string records;
    if (chance(50))
      records += record("path", chance(10) ? "o/" + std::string(below(6000), 'p') : path());
    if (chance(30)) records += record("linkpath", target());
    if (!is_polite_ && chance(10))
      records += record(chance(50) ? "GNU.sparse.map" : "size", "0,99999999999");
    if (chance(20))
      records += record("SCHILY.xattr.security.capability", std::string(below(3000), 'x'));
    return records.empty() ? "" : entry('x', "PaxHeaders/0", records);
  }
  /// Returns nested folders, up to deeper than a path can be long.
  std::string deep_folders() {
    std::string tar, name = "o/deep";
    const auto levels = below(2200);
    for (std::size_t i = 0; i < levels; ++i) {
      tar += entry('x', "p", record("path", name)) + entry('5', "d");
      name += "/d";
    }
    return tar;
  }

  std::mt19937_64 random_;
  const bool is_polite_;
  std::vector<std::string> made_, folders_{"o"}, files_;
  std::set<std::string> used_;
};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Returns paths, modes, sizes, times and numbers of links of a folder and all its entries.
std::string state_of(const fs::path& folder) {
  std::string state;
  const auto add = [&](const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0);
    state += path.string() + " " + std::to_string(status.st_mode) + " " +
             std::to_string(status.st_nlink) + " " + std::to_string(status.st_size) + " " +
             std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) +
             "\n";
  };
  add(folder);
  std::vector<fs::path> paths;
  for (const auto& each : fs::recursive_directory_iterator(folder)) paths.push_back(each.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) add(path);
  return state;
}

/// Limits the files that this process can open to those that are open, and `more`.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const core::Descriptor next(::open("/dev/null", O_RDONLY));
    const rlimit now{static_cast<rlim_t>(next.get()) + more, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr long kept_by_sanitizer = 512;  ///< MiB: freed memory that it keeps, and its own.
#else
constexpr long kept_by_sanitizer = 0;
#endif

/// Measures by how much the process's peak of memory has grown since the object was made.
class Memory {
 public:
  Memory() {
    std::ofstream("/proc/self/clear_refs") << "5";  // the peak is now what is used
    before_ = peak_kib();
  }
  long grown_mib() const { return (peak_kib() - before_) / 1024; }

 private:
  static long peak_kib() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (long kib = 0; word == "VmHWM:" && status >> kib) return kib;
    return 0;
  }
  long before_;
};

class HostileArchives : public testing::Test {
 protected:
  HostileArchives() {
    fs::create_directory(victim);
    core::write_file_atomically(victim / "secret", "kept");
    // Removal opens a folder a level.
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }

  /// Returns the result for the archive: the digest of the unpacked files, or that it was refused.
  std::string unpack(std::uint64_t own_seed) {
    core::remove_tree(target);
    fs::create_directory(target);
    Generator generator(own_seed);
    const auto tar = generator.archive();
    const auto piece = generator.piece();
    const Memory memory;
    const auto try_it = [&] {
      const FewDescriptors few(6);
      Unpacker unpacker(target, {.bytes = 1 << 20, .entries = 5000});
      for (std::size_t i = 0; i < tar.size(); i += piece)
        unpacker.feed(std::string_view(tar).substr(i, piece));
      unpacker.finish();
    };
    bool is_refused = false;
    try {
      try_it();
    } catch (const core::EnvironmentError&) {
      is_refused = true;
    }
    max_memory = std::max(max_memory, memory.grown_mib());
    if (is_refused) return "refused";
    try {
      auto nodes = scan_tree(target);  // throws for what leads out, and for what no artifact can be
      hash_tree(target, nodes);
      return tree_digest(nodes).hex();
    } catch (const core::EnvironmentError&) {
      expect_circles_only();
      return "circles";
    }
  }
  /// Checks that the links that do not stay inside are circular, or would be if a missing folder
  /// existed, so they cannot be followed out of the folder.
  void expect_circles_only() {
    for (const auto& each : fs::recursive_directory_iterator(target)) {
      if (!each.is_symlink() ||
          stays_inside(target, each.path().lexically_relative(target).string()))
        continue;
      struct stat status {};
      EXPECT_TRUE(::stat(each.path().c_str(), &status) != 0 &&
                  (errno == ELOOP || errno == ENOENT || errno == ENOTDIR))
          << each.path() << " -> " << fs::read_symlink(each.path());
    }
  }

  // In memory where that can be: there are many small files.
  long max_memory = 0;  ///< In MiB, that an archive took to unpack.
  core::TemporaryFolder folder{fs::exists("/dev/shm") ? "/dev/shm" : ""};
  const fs::path target = folder.path() / "target", victim = folder.path() / "victim";
  const std::uint64_t seed = number_from("PIPE_ARCHIVE_SEED", std::random_device{}());
  const std::uint64_t count = number_from("PIPE_ARCHIVE_COUNT", 1000);
};

TEST_F(HostileArchives, nothing_outside_changes_and_memory_stays_bounded) {
  const auto before = state_of(victim);
  std::uint64_t refused = 0, circles = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    SCOPED_TRACE("PIPE_ARCHIVE_SEED=" + std::to_string(seed + i) + " PIPE_ARCHIVE_COUNT=1");
    std::string outcome;
    ASSERT_NO_THROW(outcome = unpack(seed + i));
    refused += outcome == "refused";
    circles += outcome == "circles";
    ASSERT_EQ(state_of(victim), before);
    ASSERT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 2);
    ASSERT_TRUE(fs::is_directory(fs::symlink_status(target)));
  }
  std::cout << "seed " << seed << ": " << count << " archives, " << refused << " refused, "
            << circles << " with links in circles, memory grew by at most " << max_memory
            << " MiB\n";
  EXPECT_LT(max_memory, 16 + kept_by_sanitizer);
  if (count >= 1000) {
    EXPECT_GT(refused, count / 10) << "the generator makes nothing hostile";
    EXPECT_LT(refused, count * 95 / 100) << "the generator makes nothing that can be unpacked";
  }
}

/// Makes openat2 fail in this process, as on a kernel before 5.6.
void hide_openat2() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(code), code};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    ::_exit(2);
}

TEST_F(HostileArchives, a_kernel_without_openat2_makes_no_difference) {
  const auto some = std::min<std::uint64_t>(count, 100);
  const auto digest_of_all = [&] {
    const auto before = state_of(victim);
    core::Hasher hasher;
    for (std::uint64_t i = 0; i < some; ++i) hasher.field(unpack(seed + i));
    return state_of(victim) == before ? hasher.finish().hex() : "something outside has changed";
  };
  const auto expected = digest_of_all();
  const auto child = ::fork();
  if (child == 0) {
    hide_openat2();
    ::_exit(digest_of_all() == expected ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "seed " << seed << ", status " << status;
}

/// Returns by how many MiB this process grew while it fed `count` pieces to an unpacker.
long memory_grown_by(const fs::path& target, const std::function<std::string(unsigned)>& piece,
                     unsigned count) {
  const Memory memory;
  try {
    Unpacker unpacker(target);
    for (unsigned i = 0; i < count; ++i) unpacker.feed(piece(i));
  } catch (const core::EnvironmentError&) {
  }
  return memory.grown_mib();
}

TEST_F(HostileArchives, endless_descriptions_take_no_memory) {
  fs::create_directory(target);
  const std::string value(1'000'000, 'v');
  const auto records = [&](unsigned i) {
    return entry('x', "p", record("key" + std::to_string(i), value));
  };
  EXPECT_LT(memory_grown_by(target, records, 200), 32 + kept_by_sanitizer);
}

TEST_F(HostileArchives, endless_links_take_no_memory) {
  fs::create_directory(target);
  const std::string filling(4000, 'l');
  const auto link = [&](unsigned i) {
    return entry('x', "p", record("linkpath", "a/../" + filling)) +
           entry('2', "o/" + std::to_string(i));
  };
  EXPECT_LT(memory_grown_by(target, link, 15'000), 64 + kept_by_sanitizer);
}

}  // namespace
}  // namespace pipeline::file_tree
