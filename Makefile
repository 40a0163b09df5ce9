# Every target sets up what it needs: a private .venv from pinned, hashed requirements; the machine needs Python 3.11 or
# newer and make. `setup` installs what orderbridge runs with, `dev` adds the tools of tests. Another interpreter:
# make PYTHON=python3.12 test

PYTHON ?= python3
PYTHON_FOUND := $(shell command -v $(PYTHON))
VENV := .venv
AUDIT_VENV := .venv-audit
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input --quiet
# byte code is written when a module is first imported: most of what is installed never is
INSTALL := $(PIP) install --no-compile --require-hashes
LOCK := $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate $(if $(UPGRADE),--upgrade)

# What requirements-NAME.txt installs over requirements.txt: the extras of pyproject.toml, and other versions of DuckDB.
PACKAGE_EXTRAS := dask postgres s3 gs az bigquery snowflake
ALL_EXTRAS := $(PACKAGE_EXTRAS) ducklake duckdb2
# Those of this checkout: `setup` keeps them in .make-extras, which `clean` leaves. EXTRAS adds to them, and EXTRAS= keeps none.
KEPT_EXTRAS := $(shell cat .make-extras 2>/dev/null)
EXTRAS ?= $(KEPT_EXTRAS)
CHOSEN_EXTRAS := $(if $(EXTRAS),$(sort $(KEPT_EXTRAS) $(EXTRAS)))
UNKNOWN_EXTRAS := $(filter-out $(ALL_EXTRAS),$(CHOSEN_EXTRAS))
ifneq ($(UNKNOWN_EXTRAS),)
$(error there is no extra $(UNKNOWN_EXTRAS), only $(ALL_EXTRAS). Choose anew: make setup EXTRAS= && make setup EXTRAS="postgres dask")
endif
INSTALLED_EXTRAS := $(patsubst $(VENV)/.extra-%,%,$(wildcard $(VENV)/.extra-*))
ifneq ($(filter-out $(CHOSEN_EXTRAS),$(INSTALLED_EXTRAS)),)
.PHONY: $(VENV)/.requirements # one is no longer wanted: the environment is made anew
endif

# a setting of the caller's for Python must not reach into the checks
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONDONTWRITEBYTECODE
.PHONY: help help-dev setup dev demo notebooks test lint types bytecode unit desk-tests duckdb2 ducklake dbt orchestrators upgrades smoke soak mutants bench bench-accuracy bench-outside bench-setup docs site audit sbom release format lock clean

help:
	@echo 'To use orderbridge:'
	@echo '  make setup      .venv with what orderbridge runs with: .venv/bin/orderbridge'
	@echo '                  EXTRAS="postgres dask" adds these to what it installs, now and later; EXTRAS= removes all of them'
	@echo '  make demo       the whole bridge against the built-in sandbox; leaves demo/ to look at'
	@echo '  make notebooks  the notebooks executed, of your warehouse or else the demo: notebooks/executed/*.html'
	@echo '  make site       the documentation as a site in site/'
	@echo '  make test       whether all is well here: lint, types, tests, and the command in an empty environment'
	@echo '  make clean      remove what these targets made'
	@echo 'To work on it: make help-dev'

help-dev:
	@echo 'make dev        the tools of tests; make lint, types, unit, smoke: the parts of make test'
	@echo 'make docs       write the generated pages of docs/, and the settings in .dlt'
	@echo 'make format     lay out the code'
	@echo 'make soak       long seeded campaigns of pulls, pushes, files … (SEEDS=1000 FIRST=0 CAMPAIGNS="pull push" JOBS=2)'
	@echo 'make mutants    planted bugs, each of which must fail a test (NAMES="redirect* spool*" JOBS=2)'
	@echo '                CHANGE=HEAD: likely bugs in the lines of a commit, for which no test fails; five minutes'
	@echo 'make desk-tests the desk in a real browser (Debian: apt-get install chromium chromium-driver)'
	@echo 'make duckdb2    the tests with DuckDB 2, in an environment of its own'
	@echo 'make ducklake   the copy in a DuckLake, with the extension from PyPI, in an environment of its own'
	@echo 'make dbt        the sources that `export dbt` writes, run by dbt, in an environment of its own'
	@echo 'make orchestrators  the examples for Dagster, Airflow and Prefect, run by each in an environment of its own'
	@echo 'make upgrades   projects that each release makes with its own code, upgraded (UPGRADES="ad26ab6f --data DIR")'
	@echo 'make bench      speed and memory compared with floors and peers, as one table (BENCH="--quick", "--write", "--help")'
	@echo 'make bench-accuracy  how right and how complete its matches are, compared with splink'
	@echo 'make bench-outside  the same on customers of an outsider, by kind of dirt (BENCH="--seeds 4 --examples 20")'
	@echo 'make audit      known vulnerabilities of the pinned dependencies; needs network, and says so if it had none'
	@echo 'make sbom       bill of materials and licences of the runtime dependencies, into dist/'
	@echo 'make release    wheel and sdist, installed from the file and run on every Python found (docs/release.md)'
	@echo 'make lock       write the requirements files anew (UPGRADE=1 for the newest versions)'

setup: $(VENV)/.project
	@echo '$(CHOSEN_EXTRAS)' >.make-extras

dev: $(VENV)/.dev

$(VENV)/.requirements: requirements-build.txt requirements.txt
	@test ! -L $(VENV) || { echo '$(VENV) is a symbolic link: setting it up would empty what it points to. Remove the link (rm $(VENV)), or use that environment without make.' >&2; exit 2; }
	@test -n '$(PYTHON_FOUND)' || { echo '$(PYTHON) is not there: install Python 3.11 or newer, or name one: make PYTHON=…' >&2; exit 2; }
	@$(PYTHON_FOUND) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("$(PYTHON) is Python " + sys.version.split()[0] + ": orderbridge needs 3.11 or newer. Name one: make PYTHON=python3.12 …")'
	@echo 'setting up $(VENV) (once, about half a minute)'
	@$(PYTHON_FOUND) -m venv --clear $(VENV)
	@$(INSTALL) -r requirements-build.txt
	@$(INSTALL) -r requirements.txt
	@touch $@

$(VENV)/.extra-%: requirements-%.txt $(VENV)/.requirements
	@$(INSTALL) -r $<
	@touch $@

$(VENV)/.project: pyproject.toml $(VENV)/.requirements | $(CHOSEN_EXTRAS:%=$(VENV)/.extra-%)
	@for folder in sources sandbox transforms pipelines; do \
		test -e src/orderbridge/$$folder/__init__.py || ln -sfn ../../$$folder src/orderbridge/$$folder; \
	done # an archive that was unpacked without its links
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.notebooks: requirements-notebooks.txt $(VENV)/.project
	@$(INSTALL) -r requirements-notebooks.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.project
	@$(INSTALL) -r requirements-dev.txt
	@$(foreach extra,$(CHOSEN_EXTRAS),$(INSTALL) -r requirements-$(extra).txt || exit;) # one may have another version of DuckDB
	@touch $@

demo: setup
	@$(VENV)/bin/orderbridge demo

notebooks: $(VENV)/.notebooks
	@$(PY) -m tests.notebooks

test: lint # mypy takes one core: the other one has the wheel, and writes the byte code of what the tests import
	@$(MAKE) --no-print-directory -j2 types smoke bytecode
	@$(MAKE) --no-print-directory unit

lint: dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/bin/lint-imports --no-logo
	@if grep -rnE --include='*.py' '^def test_\w{75}' tests; then echo 'the name of a test has fewer than 80 characters' >&2; exit 1; fi
	@$(PY) -m tests.mutants --check # the planted bugs fit the code

types: dev
	$(PY) -m mypy

bytecode: dev # what cannot be imported is reported by `unit`
	@$(PY) -m pytest -n0 --collect-only -q >/dev/null 2>&1 || true

unit: dev
	$(PY) -m pytest $(PYTEST)

.venv-duckdb2/.requirements .venv-ducklake/.requirements: .venv-%/.requirements: requirements-dev.txt requirements-%.txt | dev
	@$(PY) -m venv --clear .venv-$*
	@$(PIP) --python .venv-$*/bin/python install --no-compile --require-hashes -r requirements-dev.txt
	@$(PIP) --python .venv-$*/bin/python install --no-compile --require-hashes -r requirements-$*.txt
	@$(PIP) --python .venv-$*/bin/python install --no-deps --no-build-isolation -e .
	@touch $@

duckdb2: .venv-duckdb2/.requirements
	.venv-duckdb2/bin/python -m pytest $(PYTEST)

ducklake: .venv-ducklake/.requirements
	NO_SKIPS=1 .venv-ducklake/bin/python -m pytest -n0 tests/pipelines/warehouse/test_destination.py -k ducklake

desk-tests: $(VENV)/.desk # in Chromium, which is not installed here
	$(PY) -m pytest -n0 tests/desk $(PYTEST)

$(VENV)/.desk: requirements-desk.txt $(VENV)/.dev # what drives a browser
	@$(INSTALL) -r requirements-desk.txt
	@touch $@

dbt: dev # in an environment of its own, with the warehouse's version of DuckDB
	@test -x .venv-dbt/bin/dbt || { $(PY) -m venv .venv-dbt && .venv-dbt/bin/python -m pip --disable-pip-version-check --no-input --quiet \
		install --only-binary :all: dbt-duckdb "$$($(PY) -m pip freeze | grep ^duckdb==)"; }
	NO_SKIPS=1 $(PY) -m pytest -n0 tests/pipelines/reporting/test_dbt.py

orchestrators: dev # each in an environment of its own
	@for one in dagster:dagster airflow:apache-airflow prefect:prefect; do \
		test -x .venv-$${one%%:*}/bin/python || { $(PY) -m venv .venv-$${one%%:*} \
		&& .venv-$${one%%:*}/bin/python -m pip --disable-pip-version-check --no-input --quiet install $${one#*:}; } || exit; \
	done
	NO_SKIPS=1 $(PY) -m pytest -n0 tests/test_orchestrators.py

upgrades: dev # each release in an environment of its own
	@$(PY) -m tests.upgrades $(UPGRADES)

smoke: dev
	.ci/smoke $(PY)

soak: dev
	@$(PY) -m pytest -q -n $(or $(JOBS),2) --dist=load tests/soak/judges.py
	@$(PY) -m tests.soak --jobs $(or $(JOBS),2) $(or $(SEEDS),100) $(or $(FIRST),0) $(CAMPAIGNS)

mutants: dev
	@$(PY) -m tests.mutants --jobs $(or $(JOBS),2) $(if $(CHANGE),--change $(CHANGE) $(TESTS),$(NAMES))

bench: bench-setup
	$(PY) -m tests.bench $(BENCH)

bench-accuracy: bench-setup
	$(PY) -m tests.bench.match_accuracy $(BENCH)

bench-outside: bench-setup
	$(PY) -m tests.bench.outside_match $(BENCH)

bench-setup: $(VENV)/.bench

$(VENV)/.bench: requirements-bench.txt $(VENV)/.dev # what only benchmarks compare with
	@$(INSTALL) -r requirements-bench.txt
	@touch $@

docs: dev
	$(PY) -m docs.generate

$(AUDIT_VENV)/.requirements: requirements-build.txt requirements-audit.txt
	@$(PYTHON_FOUND) -m venv --clear $(AUDIT_VENV)
	@$(AUDIT_VENV)/bin/python -m pip -q --disable-pip-version-check install --require-hashes -r requirements-build.txt
	@$(AUDIT_VENV)/bin/python -m pip -q --disable-pip-version-check install --require-hashes -r requirements-audit.txt
	@touch $@

audit: $(AUDIT_VENV)/.requirements
	.ci/audit $(AUDIT_VENV)/bin/pip-audit requirements.txt requirements-dev.txt requirements-audit.txt

release: dev
	.ci/release $(PY)

sbom: $(AUDIT_VENV)/.requirements
	.ci/sbom $(AUDIT_VENV)/bin/python dist

.venv-docs/.requirements: requirements-docs.txt $(VENV)/.requirements
	@$(PY) -m venv --clear --without-pip .venv-docs
	@$(PIP) --python .venv-docs/bin/python install --no-compile --require-hashes -r requirements-docs.txt
	@touch $@

site: .venv-docs/.requirements docs
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet

format: dev
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(PY) -m tests.notebooks strip

# Extras are installed beside each other, so all versions are chosen together: in .make-lock.txt, which keeps those of the files.
lock: dev
	cat requirements-dev.txt $(wildcard $(PACKAGE_EXTRAS:%=requirements-%.txt)) >.make-lock.txt
	$(LOCK) --all-extras --group dev pyproject.toml -o .make-lock.txt
	$(LOCK) --constraints .make-lock.txt --group dev pyproject.toml -o requirements-dev.txt
	$(LOCK) --constraints .make-lock.txt pyproject.toml -o requirements.txt
	for extra in $(PACKAGE_EXTRAS); do \
		$(LOCK) --constraints .make-lock.txt --extra $$extra pyproject.toml -o requirements-$$extra.txt \
			$$(sed -n 's/^\([^ ]*\)==.*/--no-emit-package \1/p' requirements.txt) || exit; \
	done
	rm .make-lock.txt
	$(LOCK) --group duckdb2 -o requirements-duckdb2.txt
	$(LOCK) --group ducklake -o requirements-ducklake.txt
	$(LOCK) --constraints requirements-dev.txt --group build -o requirements-build.txt
	$(LOCK) --constraints requirements-dev.txt --group notebooks -o requirements-notebooks.txt
	$(LOCK) --constraints requirements-dev.txt --group bench -o requirements-bench.txt
	$(LOCK) --constraints requirements-dev.txt --group desk -o requirements-desk.txt
	$(LOCK) --group docs -o requirements-docs.txt
	$(LOCK) --group audit -o requirements-audit.txt

clean:
	rm -rf $(VENV) $(AUDIT_VENV) .venv-* demo dist notebooks/executed site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
