"""All kinds, by name."""
import batches
import compiled
import credit
import epochs
import experts
import graphs
import no_cache
import offload
import passes
import pipeline
import recordings
import serving
import sharded
import side_streams
import slow_host
import solver
import spinning
import stacks
import tensor_parallel
import zero_grad

FAMILIES = (recordings, credit, stacks, side_streams, graphs, compiled, sharded, tensor_parallel, pipeline, experts, serving, batches, passes,
            offload, slow_host, no_cache, zero_grad, solver, spinning, epochs)
KINDS = {kind.name: kind for family in FAMILIES for kind in family.KINDS}
