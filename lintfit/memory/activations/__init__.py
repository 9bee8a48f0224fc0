"""What the layers of a model keep in memory, by architecture family. See :mod:`.tape` for how it is counted."""
