#!/bin/sh
# The rules of lib/ that a compiler does not check. Usage: layering.sh LIB_DIR
set -eu
cd "$1"
stages="core optim graph simulate preprocess dag hyperbolic rotary theory attention tensors layers transformer evaluate pipeline"
failed=0
fail() { echo "$*" >&2; failed=1; }

# A stage imports only earlier ones. Implementation units begin with `module cape.STAGE;`.
earlier=""
for stage in $stages; do
  [ -f "$stage/$stage.cppm" ] || fail "lib/$stage/$stage.cppm does not exist"
  imports=$(sed -n 's/^ *\(export \)\{0,1\}import cape\.\([a-z_]*\);.*/\2/p' "$stage"/*.cppm "$stage"/*.cpp | sort -u)
  for import in $imports; do
    case " $earlier " in
      *" $import "*) ;;
      *) fail "lib/$stage imports cape.$import, which is not an earlier stage ($earlier)" ;;
    esac
  done
  # Of other stages nothing is included but kernels of earlier ones.
  for header in $(find "$stage" -type f -exec sed -n 's/^ *#include "\(.*\)"/\1/p' {} + | sort -u); do
    case "$header" in
      "$stage"/*|internal/*|simd/*) ;;
      */kernels/*)
        case " $earlier " in
          *" ${header%%/*} "*) ;;
          *) fail "lib/$stage includes $header, whose stage is not an earlier one ($earlier)" ;;
        esac ;;
      *) fail "lib/$stage includes $header, which is not its own" ;;
    esac
  done
  for unit in "$stage"/*.cpp; do
    grep -q "^module cape\.$stage;" "$unit" || fail "lib/$unit is not a unit of cape.$stage"
  done
  earlier="$earlier $stage"
done

# Every stage is in the list above and in the umbrella.
for interface in */*.cppm; do
  stage=${interface%%/*}
  case " $stages " in *" $stage "*) ;; *) fail "lib/$stage is not in the order of stages" ;; esac
  grep -q "^export import cape\.$stage;" cape.cppm || fail "cape.cppm does not re-export cape.$stage"
done

# An interface can be read at a glance.
for interface in */*.cppm; do
  [ "$(wc -l < "$interface")" -le 250 ] || fail "lib/$interface has more than 250 lines"
done

# none PATTERN WHY FILES...: no file has a line that matches.
none() {
  pattern=$1 why=$2
  shift 2
  if grep -nE -e "$pattern" "$@"; then fail "$why"; fi
}
sources=$(find . -name '*.cpp' -o -name '*.hpp' -o -name '*.cppm')
none '^(export +)?(module|import) ' "kernels are compiled once per target, which no module unit can be" \
     simd/* */kernels/*
none '#include *[<"]armadillo' "Armadillo is included by lib/internal/arma.hpp alone" \
     $(echo "$sources" | grep -v '^\./internal/arma\.hpp$')
none 'armadillo|arma\.hpp|arma::' "an interface unit must not name Armadillo" $(find . -name '*.cppm')
none '^ *(export )?import +(std|<|")' "standard headers are included, not imported" $sources
none 'std::[a-z_]*_distribution|std::shuffle|std::random_device|[^a-z_]s?rand\(' \
     "random numbers come from cape::Rng alone" $sources
none 'std::c(out|err|log)|[^a-z_](printf|puts|abort|exit|assert)\(' \
     "the library neither prints nor ends the process" $sources
none '-march=native|-ffast-math' "the library is built for any CPU, in IEEE arithmetic" \
     CMakeLists.txt ../CMakeLists.txt ../capi/CMakeLists.txt

exit $failed
