"""A trace as something to take along: a page, a picture, a table.

Nothing here needs a model, torch or a network. Text of a trace is data everywhere: it is escaped
for the format it goes into, and no part of it can become markup, script or a formula.
"""
