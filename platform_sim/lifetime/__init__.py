"""The rules of a request's life. Knows no process and no socket."""
