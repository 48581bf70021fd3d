# Needs JDK 17, Python 3.10 or later, git and make; everything else lands in .venv and .tools.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
SPARK ?= 4.1
DEFAULT_SPARK := 4.1
spark_lines := $(shell sed -nE 's/.*spark = "([0-9]+\.[0-9]+)\..*/\1/p' project/SparkLine.scala)

ifeq ($(filter $(SPARK),$(spark_lines)),)
$(error SPARK must be one of $(spark_lines), but is '$(SPARK)')
endif

line = spark$(subst .,,$(1))
staging := $(foreach one,$(spark_lines),$(call line,$(one))/stage)
stamps := $(addprefix .staged-,$(spark_lines))
bin := .venv/bin
sbt := build/sbt
jars := python/iceberg_writer_compat/jars
# The jar of the default line with its POM, sources and documentation, in a folder that is a Maven repository.
maven := target/maven/.published
scala_sources := $(shell find scala -path '*/main/*' -type f) build.sbt VERSION $(wildcard project/*.scala project/*.sbt project/build.properties)

.PHONY: help setup stage demo test test-all lint lint-python check format docs docs-site pictures stress bench nessie conformance wheel say-wheel release clean distclean

help: ## Show what there is to run
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.installed $(jars)/.staged-$(DEFAULT_SPARK) .tools/browser/.installed ## Install and build everything a session needs

demo: setup ## Make a table in a scratch folder, publish it, and let others read and write it
	@mkdir -p target
	@$(bin)/python demo/demo.py 2>target/demo.log || { tail -n 30 target/demo.log >&2; exit 1; }

pytest := $(bin)/pytest -c python/pyproject.toml --rootdir . -v -o console_output_style=count tests
side_by_side := $(bin)/python build/side_by_side.py

test: setup $(maven) ## Run every test; SPARK=4.0 runs the Scala tests of another Spark line
	$(side_by_side) scala "$(sbt) $(call line,$(SPARK))/test" python "$(pytest)"

test-all: .venv/.installed stage $(maven) .tools/browser/.installed .tools/nessie/.installed .tools/conformance/.installed ## Run every test, and the smoke tests of other Spark lines and Deltas
	$(side_by_side) scala "$(sbt) testAll" python "$(pytest) -o 'python_files=test_*.py with_*.py'"

lint-python: .venv/.installed
	$(bin)/ruff check --config python/pyproject.toml python tests demo build
	$(bin)/ruff format --check --config python/pyproject.toml python tests demo build
	$(bin)/mypy --config-file python/pyproject.toml python/iceberg_writer_compat tests demo build

lint: setup lint-python ## Check the format and types of all code, with warnings as errors
	$(sbt) "all scalafmtCheckAll scalafmtSbtCheck $(call line,$(DEFAULT_SPARK))/Test/compile"

# What `lint` and `stage` do, in one sbt for all lines.
check: .tools/launcher/sbt-launch.jar ## Check all code, and build the jars of all Spark lines
	$(side_by_side) \
	  scala "$(sbt) 'all scalafmtCheckAll scalafmtSbtCheck $(staging) $(call line,$(DEFAULT_SPARK))/publish $(call line,$(DEFAULT_SPARK))/Test/compile'" \
	  python "$(MAKE) --no-print-directory lint-python"
	@touch $(jars)/.staged $(addprefix $(jars)/,$(stamps)) $(maven)

format: setup ## Format all code
	$(bin)/ruff check --fix --config python/pyproject.toml python tests demo build
	$(bin)/ruff format --config python/pyproject.toml python tests demo build
	$(sbt) scalafmtAll scalafmtSbt

docs: setup ## Write the pages of docs/ that are made from the code
	$(sbt) "$(call line,$(DEFAULT_SPARK))/Test/runMain org.icebergwritercompat.docs.GeneratedPages write"

docs-site: .venv/.installed ## Build the site of the documents into target/site
	NO_MKDOCS_2_WARNING=1 $(bin)/mkdocs build --strict -f build/mkdocs.yml

pictures: setup ## Take the pictures of docs/images anew, with the tests' browser
	PYTHONPATH=python:tests $(bin)/python -m pictures

stress: setup ## Kill, race and fill disks; ARGS="--minutes 60 kills" for longer or one part
	PYTHONPATH=python:tests $(bin)/python -m stress $(ARGS)

nessie: setup .tools/nessie/.installed ## Fetch a Nessie server (280 MB) and run its tests
	$(bin)/pytest -c python/pyproject.toml --rootdir . -v tests/with_nessie.py

conformance: setup .tools/conformance/.installed ## Run Iceberg's compatibility kit, and write docs/conformance.md anew
	CONFORMANCE_PAGE=write $(bin)/pytest -c python/pyproject.toml --rootdir . -v tests/with_conformance.py

bench: setup ## Measure what the guard costs, as ratios in one run
	$(sbt) "$(call line,$(DEFAULT_SPARK))/Test/runMain org.icebergwritercompat.bench.Benchmarks"
	PYTHONPATH=python:tests $(bin)/python -m bench_requests --write

stage: $(jars)/.staged ## Build the jars of all Spark lines

$(maven): $(scala_sources) NOTICE | .tools/launcher/sbt-launch.jar
	$(sbt) $(call line,$(DEFAULT_SPARK))/publish
	@touch $@

wheel: say-wheel stage ## Build the Python wheel and source distribution into dist/
	$(bin)/python -m build --outdir dist python
	@ls dist

say-wheel:
	@echo "Building a wheel with the jars of Spark $(spark_lines) into dist/. The first time this installs what the build needs"
	@echo "into .venv and .tools and compiles everything, which takes about four minutes; later only what has changed."

release: wheel ## Build what a release needs: dist/ and target/maven, with their SBOMs (see RELEASING.md)
	$(bin)/twine check --strict dist/*.whl dist/*.tar.gz
	$(sbt) publishAll
	$(bin)/python build/sbom.py target/maven dist

clean: ## Remove what was built
	rm -rf target project/target project/project dist $(jars) spark-warehouse

distclean: clean ## Remove what was built and what was installed
	rm -rf .venv .tools

# Stamps lie beside what they vouch for, so that removing one removes the other. `.basic` is what
# building and releasing needs, without the tools of tests.
.venv/.basic: python/pyproject.toml VERSION build/setup
	build/setup venv release $(PYTHON)
	@touch $@

.venv/.installed: .venv/.basic
	build/setup venv dev $(PYTHON)
	@touch $@

.tools/launcher/sbt-launch.jar: project/build.properties | .venv/.basic
	build/setup launcher
	@touch $@

.tools/browser/.installed: build/setup build/unpack_browser.py | .venv/.installed
	build/setup browser
	@mkdir -p $(@D)
	@touch $@

.tools/nessie/.installed: build/setup build/nessie-ivy.xml build/nessie-java.txt | .venv/.installed
	build/setup nessie
	@touch $@

.tools/conformance/.installed: build/setup build/conformance-ivy.xml | .venv/.installed
	build/setup conformance
	@touch $@

# One sbt for all lines; `.staged-4.1` is what `setup` needs.
$(jars)/.staged: $(scala_sources) .tools/launcher/sbt-launch.jar | .venv/.basic
	$(sbt) "all $(staging)"
	@touch $(addprefix $(jars)/,$(stamps)) $@

$(jars)/.staged-%: $(scala_sources) .tools/launcher/sbt-launch.jar | .venv/.basic
	$(sbt) $(call line,$*)/stage
	@touch $@
