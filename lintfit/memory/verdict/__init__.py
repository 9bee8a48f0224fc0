"""The range around the likely peak, the verdict on a card, and the assumptions that both rest on."""
