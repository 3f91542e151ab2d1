// One compilation for all files: beside RcppArmadillo's headers, which take most of the time of each,
// their own code is nothing.
#include "attention.cpp"
#include "blocks.cpp"
#include "build.cpp"
#include "compare.cpp"
#include "dag.cpp"
#include "embedding.cpp"
#include "fit.cpp"
#include "glue.cpp"
#include "rotary.cpp"
#include "simulate.cpp"
#include "theory.cpp"
#include "RcppExports.cpp"
