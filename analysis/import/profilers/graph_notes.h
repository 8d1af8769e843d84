#ifndef LAC_ANALYSIS_IMPORT_PROFILERS_GRAPH_NOTES_H
#define LAC_ANALYSIS_IMPORT_PROFILERS_GRAPH_NOTES_H

/*
 * Annotations of CUDA graphs as a model (format LAC_FORMAT_GRAPH_NOTES): a range a node, called as
 * the module that the node belongs to, "" where none is named. Its arguments are an object whose
 * first member is LAC_GRAPH_NOTES_ID, the one number that they take; all others are text of the
 * template.
 */

/** The id of a node, as CUPTI and Kineto tell it. */
#define LAC_GRAPH_NOTES_ID "graph node id"

#endif
