"""Commands that are not one operation. Each module has ``run(verb, arguments) -> exit status``."""
