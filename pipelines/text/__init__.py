"""Texts between programs and people, whatever they are about.

cleaning makes a text fit for who receives it, progress tells a person how far a work is, retry_after reads how long a
server wants to be left alone, server_errors what it says in an error.
"""
