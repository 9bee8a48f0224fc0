"""The named values of a run: which there are (:mod:`.registry`) and what a run knows of each (:mod:`.model`)."""
