// cape.core: what every stage shares and nothing of what a stage does, each idea in a partition of
// its name.
export module cape.core;
export import :errors;
export import :run;
export import :matrix;
export import :options;
export import :random;
export import :checkpoint;
export import :build;
