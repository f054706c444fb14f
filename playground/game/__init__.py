"""The ten-round game: texts, bets and scores."""
