if ! command -v apt-get >/dev/null 2>&1; then
  fail "apt_packages needs apt-get, which $(distribution) does not have" \
    "choose a parent_image of Debian or Ubuntu, or install the packages in a 'dockerfile' of your own"
fi
[ "$(id -u)" = 0 ] || fail "apt_packages needs root, and the parent image runs as user $(id -u)"

# Copies apt's sources to the folder $sources, with the archives of Debian and Ubuntu as they were at $snapshot. Archives lie at the top of their
# host: what others publish for Debian has a longer path, and no snapshots.
sources_of_snapshot() {
  debian=${PIPE_APT_SNAPSHOT_MIRROR:-http://snapshot.debian.org/archive} ubuntu=${PIPE_APT_SNAPSHOT_MIRROR:-https://snapshot.ubuntu.com}
  case $debian$ubuntu in *[!A-Za-z0-9:/._~%@+-]*) fail "PIPE_APT_SNAPSHOT_MIRROR is not an address" "write it as https://HOST/PATH" ;; esac
  rm -rf "$sources"
  mkdir -p "$sources/parts"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ -e "$file" ] || continue
    case $file in */sources.list) copy=$sources/list ;; *) copy=$sources/parts/${file##*/} ;; esac
    sed -E -e "s#https?://[^/ ]+(/archive)?/(debian|debian-security)(/[0-9]+T[0-9]+Z)?/?([[:space:]]|\$)#${debian%/}/\2/$snapshot\4#g" \
      -e "s#https?://[^/ ]+/(ubuntu|ubuntu-ports)(/[0-9]+T[0-9]+Z)?/?([[:space:]]|\$)#${ubuntu%/}/\1/$snapshot\3#g" "$file" >"$copy"
  done
  [ -e "$sources/list" ] || : >"$sources/list"
  grep -rqE "^[^#]*/$snapshot([[:space:]]|\$)" "$sources" || fail "apt_snapshot pins the archives of Debian and Ubuntu, and $(distribution) has neither in its sources" \
    "leave apt_snapshot out, or name versions: apt_packages: [NAME=VERSION]"
  grep -rhE "^[[:space:]]*(deb|URIs:)[[:space:]]" "$sources" | grep -v "/$snapshot" | sed 's/^/apt_snapshot pins no packages of: /' || :
}

# Lists and archives live in the build's cache: the image's own folders stay as they were, and its docker-clean hook finds nothing to delete.
mkdir -p "$cache/apt/archives/partial" "$cache/apt/lists/partial"
apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -q -o Dir::Cache="$cache/apt" -o Dir::Cache::archives="$cache/apt/archives" \
    -o Dir::State::lists="$cache/apt/lists" -o APT::Sandbox::User=root -o APT::Keep-Downloaded-Packages=true \
    -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 ${certificates:+-o "Acquire::https::CAInfo=$certificates"} \
    ${snapshot:+-o "Dir::Etc::sourcelist=$sources/list" -o "Dir::Etc::sourceparts=$sources/parts" -o Acquire::Check-Valid-Until=false} ${unverified:+-o Acquire::https::Verify-Peer=false} "$@"
}
snapshot= unverified=
if [ -e "$here/snapshot" ]; then
  snapshot=$(cat "$here/snapshot")
  sources=$cache/apt/sources
  sources_of_snapshot
  # Few parent images have certificates. The distribution's signature verifies all that apt downloads.
  [ -n "$certificates" ] || [ -s /etc/ssl/certs/ca-certificates.crt ] || unverified=yes
fi
set --
while IFS= read -r package; do set -- "$@" "$package"; done <"$here/packages"
apt update
apt install -y --no-install-recommends -- "$@"
rm -f /var/log/apt/*.log /var/log/apt/*.xz /var/log/dpkg.log /var/log/alternatives.log /var/cache/debconf/*-old /var/lib/dpkg/*-old
