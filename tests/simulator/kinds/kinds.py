"""All kinds, by name."""
import loading
import recordings
import streams

KINDS = {kind.name: kind for kind in (
    *recordings.KINDS, *loading.KINDS, *streams.KINDS,
)}
