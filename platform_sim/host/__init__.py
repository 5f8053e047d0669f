"""Real sockets and real processes: the app, its store, its receiver and its schedule."""
