"""Planted bugs in what comes in: HTTP, walks, decoding, files, settings, the disk."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

MUTANTS: Final = (
    # --- http: retries, deadlines, redirects, limits, addresses
    Mutant(
        "a-write-is-retried-like-a-read",
        "sources/http/retries.py",
        'if verb != "GET":',
        'if verb == "DELETE":',
        "tests/sources/http/test_retries.py",
    ),
    Mutant(
        "retry-after-is-ignored",
        "sources/http/retries.py",
        "return retry_after + random * policy.base_s",
        "return random * policy.base_s",
        "tests/sources/http/test_retries.py",
    ),
    Mutant(
        "any-retry-after-is-waited-for",
        "sources/http/retries.py",
        "            or (failure.retry_after_s or 0.0) > policy.retry_after_max_s\n",
        "",
        "tests/sources/http/test_retries.py",
    ),
    Mutant(
        "a-wrong-key-is-tried-again",
        "sources/http/retries.py",
        "RETRIED_STATUSES: Final = (408, 429)",
        "RETRIED_STATUSES: Final = (401, 408, 429)",
        "tests/sources/http/test_retries.py",
    ),
    Mutant(
        "the-deadline-of-a-request-is-not-applied-to-its-reads",
        "sources/http/network.py",
        "return left if timeout is None else min(timeout, left)",
        "return left if timeout is None else timeout",
        "tests/sources/http",
    ),
    Mutant(
        "the-read-budget-is-not-applied-to-the-last-attempt",
        "sources/http/client.py",
        "min(self._timeouts.total_s, call.budget_until - began)",
        "self._timeouts.total_s",
        "tests/sources/http/test_promises.py",
    ),
    Mutant(
        "a-byte-that-left-is-taken-for-unsent",
        "sources/http/network.py",
        "exchange.is_sent |= self._carries_requests",
        "exchange.is_sent |= False",
        "tests/sources/http",
    ),
    Mutant(
        "a-redirect-within-the-same-host-is-followed",
        "sources/http/exchange.py",
        "            return self._exchange(verb, target, body, seconds)\n",
        "            reply = self._exchange(verb, target, body, seconds)\n"
        "            if 300 <= reply.status <= 399 and reply.location.startswith('/'):\n"
        "                reply = self._exchange(verb, reply.location, body, seconds)\n"
        "            return reply\n",
        "tests/sources/http/test_promises.py",
    ),
    Mutant(
        "http-is-allowed-for-private-networks",
        "sources/urls.py",
        "ipaddress.ip_address(host).is_loopback",
        "ipaddress.ip_address(host).is_private",
        "tests/sources/http/test_promises.py",
    ),
    Mutant(
        "a-body-that-was-cut-off-is-whole",
        "sources/http/body.py",
        "if not decoder.eof:",
        "if False:",
        "tests/sources/http/test_client.py",
    ),
    Mutant(
        "a-body-has-any-size",
        "sources/http/body.py",
        "        if size > most:",
        "        if size < 0:",
        "tests/sources/http/test_client.py",
    ),
    Mutant(
        "an-error-repeats-a-key-as-its-code",
        "sources/http/error_responses.py",
        "is_echo = any(_reveals(text, secret) for secret in secrets) or ",
        "is_echo = ",
        "tests/sources/http/test_client.py",
    ),
    Mutant(
        "a-404-of-another-server-rejects-a-write",
        "sources/http/client.py",
        "400 <= reply.status <= 499 and reply.status != 408 and error.shaped",
        "400 <= reply.status <= 499 and reply.status != 408",
        "tests/sources/http/test_client.py",
    ),
    # --- extract: paginators, sweeps, proof, spool
    Mutant(
        "pages-are-taken-in-order-of-arrival",
        "sources/extract/fetch.py",
        "                request, future = pending.popleft()\n",
        "                request, future = next((pair for pair in pending if pair[1].done()), pending[0])\n"
        "                pending.remove((request, future))\n",
        "tests/sources/extract/test_walk_promises.py",
    ),
    Mutant(
        "a-page-that-is-not-on-disk-is-handed-out",
        "sources/extract/fetch.py",
        "                spool.write(request.label, raw)\n"
        "                yield FetchedPage(request, body, offset, is_listed)\n",
        "                yield FetchedPage(request, body, offset, is_listed)\n"
        "                spool.write(request.label, raw)\n",
        "tests/sources/extract/test_walk_promises.py",
    ),
    Mutant(
        "several-pages-are-requested-at-once-after-a-429",
        "sources/extract/fetch.py",
        "is_single = self._throttled.is_set() or ",
        "is_single = ",
        "tests/sources/extract/test_walk_promises.py",
    ),
    Mutant(
        "a-page-under-half-of-page-1-ends-the-list",
        "sources/extract/legacy_pages.py",
        "        self._pages, self._last_count = self._pages + 1, page.count\n",
        "        self._pages, self._last_count = self._pages + 1, page.count\n"
        "        if page.count * 2 < self.size:\n"
        "            self._ended_by = 'short page'\n",
        "tests/sources/extract/test_walk_promises.py",
    ),
    Mutant(
        "a-total-that-moves-leaves-a-sweep-clean",
        "sources/extract/legacy_pages.py",
        "if len(self._totals) > 1:",
        "if len(self._totals) > 1 and False:",
        "tests/sources/extract/test_walk.py",
    ),
    Mutant(
        "has-more-without-a-cursor-ends-the-list",
        "sources/extract/v1_pages.py",
        "if page.has_more and not page.cursor:",
        "if page.has_more and not page.cursor and self.limit < 0:",
        "tests/sources/extract",
    ),
    Mutant(
        "a-cursor-beside-the-end-is-passed-over",
        "sources/extract/v1_pages.py",
        "if not page.has_more and page.cursor:",
        "if not page.has_more and page.cursor and self.limit < 0:",
        "tests/sources/extract/test_hostile.py tests/sources/extract/test_paginators.py",
    ),
    Mutant(
        "a-cursor-that-was-issued-before-is-followed",
        "sources/extract/v1_pages.py",
        "if page.cursor in self._cursors:",
        "if not page.cursor:",
        "tests/sources/extract",
    ),
    Mutant(
        "both-sweeps-have-pages-of-one-size",
        "sources/extract/proof.py",
        "SECOND_SIZE: Final = 0.61",
        "SECOND_SIZE: Final = 1.0",
        "tests/sources/extract/test_walk.py",
    ),
    Mutant(
        "an-end-assumed-after-a-full-page-is-proven",
        "sources/extract/proof.py",
        'if by_end.keys() <= {"", "short"}:',
        'if by_end.keys() <= {"", "short", "full"}:',
        "tests/sources/extract/test_walk.py tests/sources/extract/test_hostile.py",
    ),
    Mutant(
        "sweeps-agree-although-the-second-has-one-row-more",
        "sources/extract/page_files.py",
        "return len(own) == len(others) and bool(",
        "return bool(",
        "tests/sources/extract/test_walk_promises.py",
    ),
    Mutant(
        "a-platform-that-ignores-limit-is-proven",
        "sources/extract/walk.py",
        "if ignores_limit(*sweeps[-2:]):",
        "if not sweeps:",
        "tests/sources/extract/test_walk.py",
    ),
    Mutant(
        "a-duplicate-id-leaves-a-sweep-clean",
        "sources/extract/walk.py",
        "        if sweep.duplicates:\n",
        "        if sweep.duplicates < 0:\n",
        "tests/sources/extract tests/pipelines/pull/test_faults.py",
    ),
    Mutant(
        "quarantined-rows-leave-a-list-complete",
        "sources/extract/walk.py",
        "any(sweep.issues or sweep.quarantined for sweep in sweeps[-2:])",
        "any(sweep.issues for sweep in sweeps[-2:])",
        "tests/sources/extract/test_walk.py",
    ),
    Mutant(
        "the-oldest-row-of-an-id-wins",
        "sources/extract/walk.py",
        "for _, sweep_files in reversed(used):",
        "for _, sweep_files in used:",
        "tests/sources/extract/test_walk.py",
    ),
    Mutant(
        "a-spool-of-another-host-is-replayed",
        "pipelines/pull/walking.py",
        '"host": settings.base_url,',
        '"host": "",',
        "tests/pipelines/pull/test_faults.py tests/pipelines/pull/test_kills.py",
    ),
    Mutant(
        "a-spool-of-another-key-is-replayed",
        "sources/extract/spool.py",
        'is_same_key = hmac.compare_digest(digest, described.pop("key_digest"))',
        'is_same_key = bool(digest and described.pop("key_digest"))',
        "tests/sources/extract/test_spool.py",
    ),
    Mutant(
        "a-spool-of-yesterday-is-replayed",
        "sources/extract/spool.py",
        "RESUME_WITHIN_S: Final = 3600.0",
        "RESUME_WITHIN_S: Final = 3600.0e6",
        "tests/sources/extract/test_spool.py",
    ),
    Mutant(
        "a-torn-frame-of-a-spool-is-replayed",
        "sources/extract/spool.py",
        "if len(payload) < label_bytes + body_bytes or zlib.crc32(payload) != crc:",
        "if len(payload) < label_bytes + body_bytes:",
        "tests/sources/extract/test_spool.py",
    ),
    # --- decode and files
    Mutant(
        "a-field-that-occurs-twice-is-taken",
        "sources/decode/rows.py",
        "if len(values) != len(pairs):",
        "if len(values) > len(pairs):",
        "tests/sources/decode",
    ),
    Mutant(
        "a-text-cut-inside-an-emoji-is-loaded",
        "sources/decode/rows.py",
        '    if "\\\\u" in text:\n        _check_surrogates(row)\n',
        "",
        "tests/sources/decode",
    ),
    Mutant(
        "an-identifier-becomes-a-float",
        "sources/decode/row_by_row.py",
        "        text = rows.canonical(value)\n        if text is None:",
        "        text = str(float(value))\n        if text is None:",
        "tests/sources/decode",
    ),
    Mutant(
        "a-header-with-fewer-cells-than-its-rows-is-a-preamble",
        "sources/files/ambiguity.py",
        "    _check_line_above(records[at - 1] if at else None, header, width)\n",
        "",
        "tests/sources/files/test_ambiguity.py tests/sources/files/test_text.py",
    ),
    Mutant(
        "a-cell-for-people-is-a-formula",
        "sources/files/formulas.py",
        """return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text""",
        "return text",
        "tests/sources/files/test_formulas.py tests/pipelines/plan/test_make.py -k formula or spreadsheet or neutral",
    ),
    # --- settings and the disk
    Mutant(
        "two-environments-are-mixed",
        "sources/settings/loaders.py",
        "if legacy.environment != public_v1.environment:",
        "if not legacy.environment:",
        "tests/sources/settings tests/pipelines/pull/test_pull.py -k environment",
    ),
    Mutant(
        "a-key-is-printed",
        "sources/settings/secret.py",
        '    def __repr__(self) -> str:\n        return "***"',
        "    def __repr__(self) -> str:\n        return self._text",
        "tests/sources/settings",
    ),
    Mutant(
        "the-content-of-a-build-is-not-synced-before-it-is-renamed",
        "sources/disk.py",
        "    sync(source)\n    source.replace(target)",
        "    source.replace(target)",
        "tests/sources/test_disk.py tests/pipelines/warehouse/test_build.py",
    ),
    Mutant(
        "the-folder-is-not-synced-after-the-rename",
        "sources/disk.py",
        "    source.replace(target)\n    sync(target.parent)",
        "    source.replace(target)",
        "tests/sources/test_disk.py tests/pipelines/warehouse/test_build.py",
    ),
    Mutant(
        "passwords-are-not-synced",
        "sources/disk.py",
        "        if is_durable:\n",
        '        if is_durable and target.name != "passwords.csv":\n',
        "tests/pipelines/push/test_push.py -k password",
    ),
    Mutant(
        "passwords-are-readable-by-others",
        "sources/disk.py",
        "    with replace_file(path, is_only_writer=is_only_writer) as file:",
        "    with replace_file(path, 0o644, is_only_writer=is_only_writer) as file:",
        "tests/pipelines/push/test_push.py tests/sources/test_disk.py -k password or replaced",
    ),
    Mutant(
        "a-private-file-of-another-user-is-accepted",
        "sources/disk.py",
        "if status.st_uid not in (os.geteuid(), 0):",
        "if status.st_uid < 0:",
        "tests/sources/test_disk.py",
    ),
    Mutant(
        "a-file-that-others-can-write-is-accepted",
        "sources/disk.py",
        "if status.st_mode & 0o022:",
        "if status.st_mode & 0o000:",
        "tests/sources/test_disk.py",
    ),
    Mutant(
        "a-link-in-place-of-a-private-file-is-followed",
        "sources/disk.py",
        "flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC",
        "flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC",
        "tests/sources/test_disk.py",
    ),
)
