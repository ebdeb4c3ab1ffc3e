#include <algorithm>
#include <tuple>

#include "core/text.hpp"
#include "sbom/image_record.hpp"

namespace pipeline::sbom {

const char* const contents_script = R"SH(
(. /etc/os-release && printf 'os\t%s\t%s\n' "$ID" "$VERSION_ID") 2>/dev/null
if command -v dpkg-query >/dev/null; then
  dpkg-query -W -f='deb\t${Package}\t${Version}\t${Architecture}\n'
elif command -v rpm >/dev/null; then
  rpm -qa --qf 'rpm\t%{NAME}\t%{VERSION}-%{RELEASE}\t%{ARCH}\n'
elif [ -r /lib/apk/db/installed ]; then
  awk -F: '/^P:/{n=$2} /^V:/{v=$2} /^A:/{a=$2} /^$/{print "apk\t" n "\t" v "\t" a}' /lib/apk/db/installed
fi
for python in python python3; do
  command -v "$python" >/dev/null || continue
  exec "$python" -c '
from importlib import metadata
for each in metadata.distributions():
    data = each.metadata
    if data["Name"]:
        license = data["License-Expression"] or data["License"] or ""
        print("pypi", data["Name"], each.version, "", license if len(license) < 100 else "", sep="\t")'
done
exit 0)SH";

void add_contents(ImageRecord& image, const std::string& lines) {
  for (const auto line : core::split(lines, '\n')) {
    auto parts = core::split(line, '\t');
    parts.resize(5);  // Type, name, version, architecture and license.
    const std::vector<std::string> fields(parts.begin(), parts.end());
    if (fields[0] == "os") {
      image.distribution = fields[1];
      image.distribution_version = fields[2];
    } else if (fields[0] == "deb" || fields[0] == "rpm" || fields[0] == "apk" ||
               fields[0] == "pypi") {
      image.packages.push_back({.type = fields[0],
                                .name = fields[1],
                                .version = fields[2],
                                .architecture = fields[3],
                                .license = fields[4],
                                .sha256 = {}});
    }
  }
  const auto order = [](const Package& a, const Package& b) {
    return std::tie(a.type, a.name, a.version, a.architecture) <
           std::tie(b.type, b.name, b.version, b.architecture);
  };
  std::ranges::sort(image.packages, order);
  const auto equal = [](const Package& a, const Package& b) {
    return a.type == b.type && a.name == b.name && a.version == b.version &&
           a.architecture == b.architecture;
  };
  const auto rest = std::ranges::unique(image.packages, equal);
  image.packages.erase(rest.begin(), rest.end());
}

}  // namespace pipeline::sbom
