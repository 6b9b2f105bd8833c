"""Database URLs as they may be shown, stored and logged: without what is secret, or may be."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote_plus

MASK = "***"
# All other options of a URL are masked: a new kind of secret is one before this list knows it.
HARMLESS = frozenset((
    "application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname", "fallback_application_name",
    "gssencmode", "host", "hostaddr", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval",
    "load_balance_hosts", "port", "replication", "sslmode", "sslnegotiation", "target_session_attrs",
    "tcp_user_timeout", "user",
))  # fmt: skip
_PLAIN = re.compile(r"[\w.,:/@%+*~-]*")  # a value in which no other option hides
_PORT = re.compile(r"\d*(/|$)")  # what follows the colon of a host, and not of a user
_URL = re.compile(r"(?:postgres|mysql|mariadb|oracle|mssql|sqlite)[\w+.-]*://[^\s'\"<>]+", re.IGNORECASE)


def masked(text: str) -> str:
    """A URL, or an argument that ends in one, without passwords and without values of options that may hold one.

    >>> masked("--db-url=postgresql+psycopg://me:secret@host/name?sslmode=require&sslpassword=secret")
    '--db-url=postgresql+psycopg://me:***@host/name?sslmode=require&sslpassword=***'
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        return text
    place, mark, query = rest.partition("?")
    if mark and "=" not in query.partition("@")[0] and "@" in query:  # it was a password with a question mark
        place, query = rest, ""
        mark = ""
    shown = "&".join(_masked_option(option) for option in query.split("&")) if mark else ""
    return f"{scheme}://{_masked_place(place)}{mark}{shown}"


def masked_text(text: str, secrets: Iterable[str] = ()) -> str:
    """A text in which every database URL is masked, and each of the secrets wherever it stands as a word."""
    for secret in filter(None, secrets):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
    return _URL.sub(lambda found: masked(found[0]), text) if "://" in text else text


def _masked_place(place: str) -> str:
    """User, host and database without the password: all between the first colon and the last at sign."""
    user, colon, rest = place.partition(":")
    if not colon or "/" in user or ("@" in user and "@" not in rest):
        return place
    secret, at, host = rest.rpartition("@")
    if at:
        return f"{user}:{MASK}@{host}" if secret else place
    return place if user.startswith("[") or _PORT.match(rest) else f"{user}:{MASK}"


def _masked_option(option: str) -> str:
    name, equals, value = option.partition("=")
    is_harmless = unquote_plus(name) in HARMLESS and _PLAIN.fullmatch(unquote_plus(value))
    if not equals:
        return option if option in HARMLESS or not option else MASK
    return option if is_harmless else f"{name}={MASK}"
