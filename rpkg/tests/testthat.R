library(testthat)
library(capeOmics)

test_check("capeOmics")
