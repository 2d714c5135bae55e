"""Handlers, one module a noun.

A verb that writes is two functions: ``may_<verb>`` says who may (pure reads, run before the remembered reply is
looked up) and ``<verb>`` loads, decides with the kernel, and records. Both run inside one unit of work.
"""
