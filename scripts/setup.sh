# Sourced by scripts/demo and scripts/test: installs what they need on Debian 12 or 13 (as root, or
# with sudo), and defines the steps that both take. Second runs install nothing and build nothing.
set -euo pipefail
called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
top=$PWD
work=$top/build

say() { printf '==> %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# What a user's shell and home say about compilers, CMake and R is meant for other projects. Here
# Debian's programs and packages work together alone: neither a cmake of pip nor an R of conda.
for name in $(compgen -e); do
  case $name in
    CMAKE_* | CTEST_* | NINJA_STATUS | MAKE* | MFLAGS | CC | CXX | FC | F77 | CPP | LD | AR | NM | RANLIB | DESTDIR | \
    CFLAGS | CXXFLAGS | CPPFLAGS | FFLAGS | FCFLAGS | LDFLAGS | CPATH | *_INCLUDE_PATH | LIBRARY_PATH | \
    LD_LIBRARY_PATH | LD_PRELOAD | PKG_CONFIG_* | R_* | LC_* | LANGUAGE | BASH_ENV | ENV | CDPATH | GREP_OPTIONS | \
    GIT_* | CONDA_* | PYTHON* | CAPE_HOME | CAPE_FORCE_BUNDLED | CAPE_CXX | CAPE_JOBS) unset "$name" ;;
  esac
done
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME="${HOME:-/tmp}"
export R_PROFILE_USER=/dev/null R_ENVIRON_USER=/dev/null R_MAKEVARS_USER=/dev/null R_BUILD_ENVIRON=/dev/null \
       R_LIBS_USER=/nonexistent R_LIBS_SITE=/usr/lib/R/site-library
[ -d "${TMPDIR:-/tmp}" ] && [ -w "${TMPDIR:-/tmp}" ] || export TMPDIR=$work/tmp

# As many compilations at once as there are processors, and a gigabyte of memory for each.
jobs=$(nproc)
memory=$(awk '$1 == "MemAvailable:" { print int($2 / 1048576) }' /proc/meminfo 2>/dev/null || true)
[ "${memory:-$jobs}" -ge "$jobs" ] || jobs=$((memory > 1 ? memory : 1))

# Packages are installed readable for all, whatever the user's umask is.
as_root() (
  umask 022
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "installing packages needs root: run as root or install sudo"; fi
)

demo_packages=(
  # the core
  clang-19 clang-tools-19 cmake ninja-build git
  libarmadillo-dev libopenblas-serial-dev gfortran libtbb-dev libhwy-dev librandom123-dev nlohmann-json3-dev
  # the R package
  g++ make r-base-dev r-bioc-singlecellexperiment r-bioc-delayedarray r-bioc-biocparallel
  r-cran-rcpparmadillo r-cran-matrix r-cran-igraph r-cran-ggplot2 r-cran-cli r-cran-parallelly
  r-cran-seuratobject
)
packages=(
  "${demo_packages[@]}"
  # tests of the core
  libclang-rt-19-dev libboost-test-dev zlib1g-dev binutils pkg-config
  # tests of the R package
  r-bioc-hdf5array r-cran-testthat r-cran-knitr r-cran-rmarkdown pandoc
)

# logged LOG COMMAND...: its output goes into LOG, and what it is at is told: on a terminal in place, else
# every 15 seconds.
logged() {
  local log=$1 line start=$SECONDS told=$SECONDS every=15 end='\n'
  shift
  [ ! -t 2 ] || { every=1; end='\033[K\r'; }
  "$@" </dev/null 2>&1 | tee "$log" | while IFS= read -r line; do
    [ $((SECONDS - told)) -ge $every ] && [ -n "$line" ] || continue
    told=$SECONDS
    line=${line//[^[:print:]]/}
    [[ $line != *' -c '* ]] || line="compiling ${line##* -c }"
    printf "    %d:%02d  %s$end" $(((told - start) / 60)) $(((told - start) % 60)) "${line:0:70}" >&2
  done && set -- 0 || set -- 1
  [ ! -t 2 ] || printf '\033[K' >&2
  return "$1"
}

# The end of a log, and why.
failed() { # LOG MESSAGE
  tail -30 "$1" >&2
  ! grep -q 'No space left on device\|enough free space' "$1" || die "$2: the disk is full"
  die "$2"
}

# (Also on hold; of a package of two architectures it says so twice.)
installed() { [[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null) == [hi]i\ * ]]; }
recent_cmake() {
  command -v cmake >/dev/null &&
    dpkg --compare-versions "$(cmake --version | awk 'NR == 1 { print $3 }')" ge 3.28
}

# apt, waiting for another one that holds its locks: of its packages by its own option, of its lists
# (where it has none) by trying again.
apt() { # LOG ARGUMENTS...
  local log=$1 tries
  shift
  for ((tries = 1; tries <= 120; ++tries)); do
    logged "$log" as_root env DEBIAN_FRONTEND=noninteractive APT_LISTCHANGES_FRONTEND=none NEEDRESTART_SUSPEND=1 \
      LC_ALL=C.UTF-8 apt-get -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 \
      -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@" && return 0
    grep -q 'Could not get lock\|Unable to lock\|Unable to acquire' "$log" || return 1
    [ "$tries" != 1 ] || say "waiting for another apt"
    sleep "${lock_pause:-5}"
  done
  return 1
}

# A source of another vendor that is broken makes this fail, and takes nothing from Debian's: what is
# really missing, the installation tells.
update() { # LOG
  apt "$1" update && return 0
  grep '^[EW]:' "$1" >&2 || true
  say "apt-get update failed in part (above); going on with the lists that there are"
}

# The suite's packages from backports, from the same mirror as the system's own packages. Asks apt, not
# the files, since those come in two forms; apt knows once it has lists.
add_backports() {
  local mirror
  mirror=$(apt-get indextargets --format '$(RELEASE) $(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
             awk '($1 == "bookworm" || $2 == "bookworm") && $3 == "main" && $4 !~ /security|^cdrom:/ && !m { m = $4 }
                  END { print m }')
  [ -n "$mirror" ] || die "apt has no lists of bookworm from any source, which CMake 3.28 or newer comes from:" \
                          "is the network there, and does /etc/apt name a mirror of Debian?"
  printf 'deb %s bookworm-backports main\n' "$mirror" |
    as_root tee /etc/apt/sources.list.d/cape-backports.list >/dev/null
}

set_up() {
  command -v apt-get >/dev/null ||
    die "this set-up is for Debian 12 and 13; docs/architecture.md lists what other systems need"
  local missing=() backports=() p log suite
  for p in "$@"; do installed "$p" || missing+=("$p"); done
  recent_cmake || [[ " ${missing[*]-} " == *" cmake "* ]] || missing+=(cmake)
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || command -v sudo >/dev/null ||
    die "installing packages needs root: run as root, install sudo, or have installed: ${missing[*]}"
  suite=$(. "${os_release:-/etc/os-release}" && echo "${DEBIAN_CODENAME:-${VERSION_CODENAME-}}")
  case $suite in
    bookworm | trixie) ;;
    *) say "this set-up is made for Debian 12 and 13, not for '$suite': trying" ;;
  esac
  say "installing Debian packages: ${#missing[@]}, and what they need"
  log=$(mktemp)
  update "$log"
  # Debian 12's own CMake is too old: 3.31 is in its backports.
  if [ "$suite" = bookworm ] && ! recent_cmake; then
    if ! [[ $(apt-cache policy) == *n=bookworm-backports* ]]; then
      add_backports
      update "$log"
    fi
    backports=(cmake/bookworm-backports cmake-data/bookworm-backports)
  fi
  apt "$log" install -y --no-install-recommends "${missing[@]}" "${backports[@]}" ||
    failed "$log" "apt-get install failed"
  rm -f "$log"
  hash -r
  recent_cmake || die "$(cmake --version | head -1) is too old: 3.28 or newer is needed"
}

# build PRESET: configure, and compile what has changed.
build() {
  local log=$work/$1.log fresh=() free need=1500
  [ "$1" != demo ] || need=300
  case $top in *[[:space:]]*) die "the path '$top' has a space, which R's make cannot take: move the clone" ;; esac
  mkdir -p "$work" "${TMPDIR:-/tmp}"
  [ -w "$work" ] || die "$work belongs to another user: remove it, or run as that user"
  free=$(df -Pm "$work" | awk 'NR == 2 { print $4 }')
  [ "$free" -ge "$need" ] || [ -e "$work/$1/lib/libcape_modules.a" ] ||
    die "$work has $free MB of free space: $need are needed to build"
  # A clone that was moved or copied with its build folder.
  ! [ -e "$work/$1/CMakeCache.txt" ] || grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$top" "$work/$1/CMakeCache.txt" ||
    fresh=(--fresh)
  say "building the core (preset $1; log: build/$1.log)"
  compile() { cmake --preset "$1" "${fresh[@]}" && cmake --build --preset "$1" --parallel "$jobs"; }
  logged "$log" compile "$1" || failed "$log" "the build failed"
}

# install_r PRESET: install the C library under build/PRESET/prefix and the R package under
# build/PRESET/rlib; nothing is done when neither has changed.
install_r() {
  local where=$work/$1 stamp log
  cmake --install "$where" --prefix "$where/prefix" >/dev/null
  stamp=$({ find "$where/prefix" -name 'libcape.so.*' -print0
            find rpkg -type f -not -name '*.o' -not -name '*.so' -print0
          } | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
  [ "$(cat "$where/rlib.stamp" 2>/dev/null)" != "$stamp" ] || return 0
  say "installing the R package (log: build/$1/r-install.log)"
  log=$where/r-install.log
  mkdir -p "$where/rlib" "$where/rbuild"
  build_and_install() {
    cd "$where/rbuild" && rm -f capeOmics_*.tar.gz &&
      R CMD build --no-build-vignettes --no-manual --no-resave-data "$top/rpkg" &&
      CAPE_HOME=$where/prefix R CMD INSTALL --no-html --no-test-load --library="$where/rlib" capeOmics_*.tar.gz
  }
  logged "$log" build_and_install || failed "$log" "the R package does not install"
  printf '%s\n' "$stamp" >"$where/rlib.stamp"
}
