"""Cut sweep: a request is killed at each of its resumptions in turn, and what is lost is named."""
