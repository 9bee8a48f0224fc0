"""From the JSON of a spec to a :class:`~lintfit.memory.spec.Spec`, with one-line errors."""
