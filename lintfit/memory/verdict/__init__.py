"""The range around the likely peak, the verdict on a GPU, and the assumptions that both rest on."""
