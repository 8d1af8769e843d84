"""All kinds, by name."""
import loading
import machine_room
import ranks
import recordings
import serving
import streams

KINDS = {kind.name: kind for kind in (
    *recordings.KINDS, *loading.KINDS, *streams.KINDS, *ranks.KINDS, *serving.KINDS, *machine_room.KINDS,
)}
