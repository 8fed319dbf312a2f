# `make demo` shows the main job, `make test` checks what CI checks, `make test-all` checks everything, `make docs` builds
# the site, `make wheel` builds a wheel and tries it. Each does all its set-up.
PYTHON ?= python3
BIN := .venv/bin
# Real data, when a copy is at hand; tests that need it are skipped by name otherwise.
export QORNN_DATA ?= $(if $(wildcard ../shared/data/mnist),$(abspath ../shared/data),)
# Build requirements too: pip before 26.2 takes the first name for them, later ones only the second.
export PIP_CONSTRAINT := $(abspath constraints.txt)
export PIP_BUILD_CONSTRAINT := $(PIP_CONSTRAINT)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

KERNEL := CMakeLists.txt $(wildcard src/qornn/recurrence/csrc/* src/qornn/runtime/*.[ch] src/qornn/runtime/host/*.[ch])
SANITIZED := build/sanitize/qornn/recurrence/libqornn_recurrence.so
SANITIZED_RUNTIME := build/sanitize/qornn/runtime/libqornn_runtime.so
# Empty where the compiler, if any, comes without AddressSanitizer: a bare name is its way to say "not found".
LIBASAN := $(filter /%,$(shell $(CXX) -print-file-name=libasan.so 2>/dev/null))

# Python is not built with the sanitizer, so its runtime must be loaded first, and the C++ runtime with it, or the
# sanitizer never finds the real __cxa_throw and torch's first exception aborts. Leaks: Python's own would drown ours.
UNDER_SANITIZERS = QORNN_RECURRENCE_LIBRARY=$(abspath $(SANITIZED)) ASAN_OPTIONS=detect_leaks=0 \
	QORNN_RUNTIME_LIBRARY=$(abspath $(SANITIZED_RUNTIME)) \
	LD_PRELOAD="$$(ldd $(SANITIZED) | awk '/libasan|libstdc/ {print $$3}' | tr '\n' ' ')"

# Native code has these tests; `make test` runs them on the sanitized build alone, where there is one.
NATIVE_TESTS := tests/recurrence/test_native.py tests/recurrence/test_hadamard.py tests/recurrence/test_scan.py tests/recurrence/test_mix.py \
	tests/recurrence/test_native_weights.py tests/recurrence/test_native_layers.py tests/integer/test_engine.py tests/integer/test_session.py tests/integer/test_engine_structured.py tests/integer/test_engine_stacks.py
PARALLEL := -n auto --dist loadgroup --no-loadscope-reorder
# $(call timed,NAME,COMMAND): the seconds of every step are printed at the end.
timed = @echo '$(2)'; began=$$(date +%s); $(2) && echo "$(1): $$(($$(date +%s) - began)) s" >> build/times

.PHONY: demo test test-all docs wheel sanitize attack clean

demo: .venv/built
	$(BIN)/qornn demo --out demo

test: CHOSEN = -m "not full" $(if $(LIBASAN),$(NATIVE_TESTS:%=--ignore=%))
test-all: CHOSEN = --hypothesis-profile=thorough
test test-all: .venv/ready
	@mkdir -p build && rm -f build/times
	$(call timed,lint,$(BIN)/ruff check . && $(BIN)/ruff format --check . && find src tests examples -name "*.[ch]" -o -name "*.cpp" | xargs $(BIN)/clang-format --dry-run -Werror)
	$(call timed,types,$(BIN)/mypy)
	$(if $(LIBASAN),$(call timed,sanitize,$(MAKE) --no-print-directory sanitize),\
	@echo 'sanitize: skipped, $(CXX) has no AddressSanitizer')
	$(call timed,tests,$(BIN)/python -m pytest -q $(PARALLEL) $(CHOSEN))
	$(if $(filter test-all,$@),$(if $(LIBASAN),$(call timed,attack,$(MAKE) --no-print-directory attack)))
	@cat build/times

docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo 'open build/docs/index.html'

# A wheel, tried in an empty environment without a compiler.
wheel: .venv/built
	$(BIN)/python tools/wheel.py

# The tests of the native code on a build that stops at the first access out of bounds or undefined operation.
# capture=sys: the report is written to the real stderr as the process dies.
sanitize: $(SANITIZED)
	$(UNDER_SANITIZERS) $(BIN)/python -m pytest -q --capture=sys $(PARALLEL) $(NATIVE_TESTS)

# Hostile files, random programs and kills for a given time, on the same build: make attack MINUTES=30
attack: $(SANITIZED)
	$(UNDER_SANITIZERS) $(BIN)/python tools/attack.py --minutes $(or $(MINUTES),4)

# Through pip, because it brings CMake where there is none and knows the flags.
$(SANITIZED): .venv/ready
	CXX='$(CXX)' $(BIN)/python -m pip install -q --no-deps --upgrade --target build/sanitize -C cmake.build-type=Sanitize .
	touch -c $@

# What the demo needs, and then what tests and docs add: the package that is installed is not built again.
.venv/built: pyproject.toml constraints.txt $(KERNEL)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -e '.[mcu]'
	touch $@

.venv/ready: .venv/built
	$(BIN)/python -m pip install -q 'qornn[dev]'
	touch $@

clean:
	rm -rf .venv build demo
