"""Lessons: data files that guide a visitor, ask before they show, and answer with the visitor's own numbers.

vocabulary.py   the places, controls and actions that a file may name
reading.py      a file → Lesson, checked
facts.py        what a lesson may say of a visitor's own run, model and view: a function each
progress.py     what a visitor has done, guessed and been told, as the browser keeps it
judging.py      how far off a guess was, and what a step says once it is done
"""
