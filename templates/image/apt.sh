if ! command -v apt-get >/dev/null 2>&1; then
  fail "apt_packages needs apt-get, which $(distribution) does not have" \
    "choose a parent_image of Debian or Ubuntu, or install the packages in a 'dockerfile' of your own"
fi
[ "$(id -u)" = 0 ] || fail "apt_packages needs root, and the parent image runs as user $(id -u)"

# Lists and archives live in the build's cache: the image's own folders stay as they were, and its docker-clean hook finds nothing to delete.
mkdir -p "$cache/apt/archives/partial" "$cache/apt/lists/partial"
apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -q -o Dir::Cache="$cache/apt" -o Dir::Cache::archives="$cache/apt/archives" \
    -o Dir::State::lists="$cache/apt/lists" -o APT::Sandbox::User=root -o APT::Keep-Downloaded-Packages=true \
    -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 ${certificates:+-o "Acquire::https::CAInfo=$certificates"} "$@"
}
set --
while IFS= read -r package; do set -- "$@" "$package"; done <"$here/packages"
apt update
apt install -y --no-install-recommends -- "$@"
rm -f /var/log/apt/*.log /var/log/apt/*.xz /var/log/dpkg.log /var/log/alternatives.log /var/cache/debconf/*-old /var/lib/dpkg/*-old
