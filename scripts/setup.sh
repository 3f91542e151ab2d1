# Sourced by scripts/demo and scripts/test: installs what they need on Debian 12 or 13 (as root, or
# with sudo), and defines the steps that both take. Second runs install nothing and build nothing.
set -euo pipefail
called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
top=$PWD
jobs=$(nproc)

say() { printf '==> %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "installing packages needs root: run as root or install sudo"; fi
}

packages=(
  # the core
  clang-19 clang-tools-19 libclang-rt-19-dev cmake ninja-build git pkg-config
  libarmadillo-dev libopenblas-serial-dev gfortran libtbb-dev libhwy-dev librandom123-dev
  # its tests
  libboost-test-dev zlib1g-dev binutils
  # the R package and its tests
  g++ make r-base-dev r-bioc-singlecellexperiment r-bioc-delayedarray r-bioc-hdf5array r-bioc-biocparallel
  r-cran-rcpparmadillo r-cran-matrix r-cran-igraph r-cran-ggplot2 r-cran-cli
  r-cran-seuratobject r-cran-testthat r-cran-knitr r-cran-rmarkdown pandoc
)

installed() { [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ]; }
recent_cmake() {
  command -v cmake >/dev/null &&
    dpkg --compare-versions "$(cmake --version | awk 'NR == 1 { print $3 }')" ge 3.28
}

# apt, waiting for another one that holds its locks: of its packages by its own option, of its lists
# (where it has none) by trying again.
apt() { # LOG ARGUMENTS...
  local log=$1 tries
  shift
  for tries in $(seq 120); do
    as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -o DPkg::Lock::Timeout=600 "$@" \
      >"$log" 2>&1 && return 0
    grep -q 'Could not get lock\|Unable to lock\|Unable to acquire' "$log" || return 1
    [ "$tries" != 1 ] || say "waiting for another apt"
    sleep 5
  done
  return 1
}

# The suite's packages from backports, from the same mirror as the system's own packages. Asks apt, not
# the files, since those come in two forms; apt knows once it has lists.
add_backports() {
  local mirror
  mirror=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
             awk '$1 == "bookworm" && $2 == "main" && $3 !~ /security/ { print $3; exit }')
  [ -n "$mirror" ] || die "no apt source of bookworm found: install CMake 3.28 or newer by hand"
  printf 'deb %s bookworm-backports main\n' "$mirror" |
    as_root tee /etc/apt/sources.list.d/cape-backports.list >/dev/null
}

set_up() {
  command -v apt-get >/dev/null ||
    die "this set-up is for Debian 12 and 13; docs/architecture.md lists what other systems need"
  local missing=() backports=() p log
  for p in "$@"; do installed "$p" || missing+=("$p"); done
  recent_cmake || [[ " ${missing[*]-} " == *" cmake "* ]] || missing+=(cmake)
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${#missing[@]} Debian packages"
  log=$(mktemp)
  apt "$log" update || { tail -5 "$log" >&2; die "apt-get update failed"; }
  # Debian 12's own CMake is too old: 3.31 is in its backports.
  if [ "$(. /etc/os-release && echo "${VERSION_CODENAME-}")" = bookworm ] && ! recent_cmake; then
    if ! apt-cache policy | grep -q 'n=bookworm-backports'; then
      add_backports
      apt "$log" update || { tail -5 "$log" >&2; die "apt-get update failed with backports"; }
    fi
    backports=(cmake/bookworm-backports cmake-data/bookworm-backports)
  fi
  apt "$log" install -y --no-install-recommends "${missing[@]}" "${backports[@]}" ||
    { tail -20 "$log" >&2; die "apt-get install failed"; }
  rm -f "$log"
  recent_cmake || die "$(cmake --version | head -1) is too old: 3.28 or newer is needed"
}

# build PRESET: configure, and compile what has changed.
build() {
  local log=$top/build/$1.log
  say "building the core (preset $1; log: build/$1.log)"
  mkdir -p build
  { cmake --preset "$1" && cmake --build "build/$1" --parallel "$jobs"; } >"$log" 2>&1 ||
    { tail -30 "$log" >&2; die "the build failed"; }
}

# install_r PRESET: install the C library under build/PRESET/prefix and the R package under
# build/PRESET/rlib; nothing is done when neither has changed.
install_r() {
  local where=$top/build/$1 stamp log
  cmake --install "$where" --prefix "$where/prefix" >/dev/null
  stamp=$({ find "$where/prefix" -name 'libcape.so.*' -print0
            find rpkg -type f -not -name '*.o' -not -name '*.so' -print0
          } | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
  [ "$(cat "$where/rlib.stamp" 2>/dev/null)" != "$stamp" ] || return 0
  say "installing the R package (log: build/$1/r-install.log)"
  log=$where/r-install.log
  mkdir -p "$where/rlib" "$where/rbuild"
  (cd "$where/rbuild" && rm -f capeOmics_*.tar.gz &&
     R CMD build --no-build-vignettes "$top/rpkg" &&
     CAPE_HOME=$where/prefix R CMD INSTALL --library="$where/rlib" capeOmics_*.tar.gz) >"$log" 2>&1 ||
    { tail -30 "$log" >&2; die "the R package does not install"; }
  printf '%s\n' "$stamp" >"$where/rlib.stamp"
}
