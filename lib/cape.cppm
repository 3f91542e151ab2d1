// import cape; gives every stage.
export module cape;
export import cape.core;
export import cape.optim;
export import cape.graph;
export import cape.simulate;
export import cape.preprocess;
export import cape.dag;
export import cape.hyperbolic;
export import cape.rotary;
export import cape.theory;
export import cape.attention;
export import cape.tensors;
export import cape.layers;
export import cape.transformer;
export import cape.evaluate;
export import cape.pipeline;
