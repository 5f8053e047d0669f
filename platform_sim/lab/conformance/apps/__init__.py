"""The recorded scenarios as ASGI apps and scheduled handlers, one small function each."""
