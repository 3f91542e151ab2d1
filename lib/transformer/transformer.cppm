// cape.transformer: models of the features of a cell, from values to embeddings.
export module cape.transformer;
import cape.core;
export import :bins;
