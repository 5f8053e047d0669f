"""How each platform hands the handler its lifetime."""
