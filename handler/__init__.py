"""The deployable handler: accept, deliver after the answer, redrive what was left."""
