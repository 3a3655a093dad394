"""What every attack is judged on.

1 the target outside is as before, or the row's own safe outcome holds   (also at the fixture's end)
2 the log has a record with operation, real object and decision
3 the program got a clear error and still runs
4 `nd7 verify` answers rightly
5 no other session or process outside was harmed                         (fixture's bystander)
"""

STILL = "; echo still-running"


def refused_paths(session):
    return {body[key] for body in session.refused() for key in ("path", "from", "to", "addr")
            if isinstance(body.get(key), str)}


def judge(ran, refused=(), errors="Permission denied", secrets=()):
    """`refused`: absolute paths (resolved) of which each must have a record. `errors`: a word that
    the program's error must hold, or None. `secrets`: texts that must not have come out."""
    assert ran.session is not None, ran
    assert "still-running" in ran.out, ran
    if errors:
        assert errors in ran.err + ran.out, ran
    found = refused_paths(ran.session)
    for path in refused:
        assert str(path) in found, "no record of %s, but of %s\n%r" % (path, sorted(found), ran)
    for body in ran.session.refused():
        assert body["op"] and body["rule"] and body["result"] in ("EACCES", "EPERM"), body
        assert "open_with" in body and body["pid"] > 0, body
    for text in secrets:
        assert text not in ran.out + ran.err, "a secret came out"
        log = (ran.session.directory / "events.ndjson").read_text(errors="replace")
        assert text not in log, "a secret stands in the log"
    verified = ran.session.verify()
    assert verified.status == 0, verified
    return ran
