# Tensile. `make build`, `make demo`, `make test` need Go, gcc and make, nothing else.

GO ?= go

# What the tag gpu needs of cgo (device/cuda/cudaabi). Where gcc is there, builds and tests without the tag have the same
# settings, so that the go command compiles for both once.
SETTINGS = settings=$$(device/cuda/cudaabi/build.sh) && eval "$$settings" &&
MACHINE := $(shell $(GO) env GOOS GOARCH CGO_ENABLED) $(if $(shell command -v gcc),gcc)
ifeq ($(MACHINE),linux amd64 1 gcc)
GPU = gpu
WITH = $(SETTINGS)
endif

.PHONY: build gpu demo demo-page release wheel test test-all test-long test-gpu-fake test-torch test-torch-all gpu-check gpu-check-fake race lint count golden ptx ptx-check onnx-cases bench fuzz chaos soak mutants upgrade-check clean

build: ## bin/tensile, on linux/amd64 with gcc with the CUDA device, which needs no GPU to build
	@echo "building bin/tensile with all that it needs: two minutes the first time, seconds after that"
	$(WITH) $(GO) build $(GPU:%=-tags %) -o bin/tensile ./cmd/tensile

gpu: ## bin/tensile with the CUDA device; wants gcc, on linux/amd64 or linux/arm64, and nothing of NVIDIA's
	$(SETTINGS) $(GO) build -tags gpu -o bin/tensile ./cmd/tensile

release: ## bin/release: the stripped binary without paths of this machine and without CUDA (see NOTICE), with all licences
	rm -rf bin/release
	$(WITH) $(GO) build -trimpath -buildvcs=auto -ldflags "-s -w" -o bin/release/tensile ./cmd/tensile
	cp LICENSE NOTICE CHANGELOG.md bin/release/
	GO="$(GO)" scripts/licenses.sh bin/release/licenses
	@bin/release/tensile --version
	@ls -l bin/release/tensile

DIST ?= dist
wheel: ## dist/*.whl for pip install: the command, without CUDA as release, and the package; dist/other has those of other machines
	rm -rf "$(DIST)"
	GO="$(GO)" python3 -m pip wheel -q --no-deps -w "$(DIST)" .
	for arch in amd64 arm64; do test $$($(GO) env GOHOSTARCH) = $$arch || \
		GO="$(GO)" GOARCH=$$arch python3 -m pip wheel -q --no-deps -w "$(DIST)/other" . || exit 1; done
	@ls -l "$(DIST)"/*.whl "$(DIST)/other"

demo: build ## two networks at once, in 60 % of the memory they need, compared with a plain run
	@echo "two demonstrations follow: each trains two networks without a plan, and then in 60 % of the memory; about a minute"
	bin/tensile run mlp lenet --batch 128 --iterations 50 --budget 60% --compare
	bin/tensile run resnet50 vgg16 --image 32 --batch 8 --iterations 12 --budget 60% --compare

demo-page: build ## two controllers with jobs, a simulated a6000 and the cpu, and the URLs of their pages; Ctrl-C ends them
	@scripts/demo-page.sh bin/tensile

test: ## everything in short form, seven to ten minutes on two cores; its last lines say what was left out and why
	$(if $(GPU),$(MAKE) --no-print-directory test-gpu-fake)
	$(WITH) $(GO) run ./internal/testrun -count=1 -timeout 60m ./...

test-all: test test-long ## all tests at full length, an hour on two cores; CI runs it

# The packages whose tests ask package long how long they may be.
LONG = $$(grep -rlE --include='*_test.go' '\blong\.(Only|On|Or|Rounds|Soak)\(' . | xargs -n 1 dirname | sort -u)
test-long: ## what test-all has beyond test, and vet, of which go test runs a part
	$(WITH) $(GO) vet ./...
	$(if $(GPU),$(SETTINGS) $(GO) vet -tags gpu $(TAGGED))
	$(WITH) $(GO) run ./internal/testrun -count=1 -timeout 2h $(LONG) -long

TAGGED = ./device/cuda/cudaabi ./device/cuda/driver ./device/cuda/fakecuda/bridge ./device/cuda/fakecuda/library ./cmd/tensile
test-gpu-fake: ## what needs the tag gpu, on a driver without a GPU
	$(SETTINGS) $(GO) run ./internal/testrun -tags gpu -count=1 -timeout 60m \
		./device/cuda/cudaabi ./device/cuda/fakecuda/bridge ./device/cuda/driver

PYTHON ?= python3
test-torch: ## the tests of python/tensile on the PyTorch of PYTHON; adds a row for its version to docs/pytorch.md
	scripts/test-torch.sh $(PYTHON)

TORCHES ?= 2.6.0 2.11.0 2.15.0
VENVS = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tensile-torch-
test-torch-all: ## test-torch on each PyTorch of TORCHES, in virtual environments of 6 GB in the user's cache
	for version in $(TORCHES); do \
		{ [ -d $(VENVS)$$version ] || $(PYTHON) -m venv $(VENVS)$$version; } && \
		$(VENVS)$$version/bin/python3 -m pip install -q torch==$$version numpy && \
		scripts/test-torch.sh $(VENVS)$$version/bin/python3 || exit 1; \
	done

gpu-check: ## bin/gpu-check.tar.xz, at most 45 MiB: all that the check of a machine with an NVIDIA GPU needs (docs/cuda.md)
	$(SETTINGS) GO="$(GO)" scripts/gpu/pack.sh bin/gpu-check
	@ls -l bin/gpu-check.tar.xz

gpu-check-fake: gpu-check ## the three stages of the check on a driver without a GPU, some minutes
	scripts/gpu/fake.sh bin/gpu-check/libfakecuda.so
	failed=0; for stage in 1 2 3; do $(PYTHON) bin/gpu-check/check.py $$stage bin/gpu-results/$$stage --fake || failed=1; done; exit $$failed

CHAOS ?= 200
CHAOS_FROM ?= 0
chaos: ## real processes that are killed, stopped, left without disk and damaged, for CHAOS seeds from CHAOS_FROM on, five minutes
	$(WITH) $(GO) test -count=1 -timeout 12h -v ./cmd/tensile -run 'Chaos' -long=$(CHAOS) -chaos-seed=$(CHAOS_FROM)

SOAK ?= 5000
soak: ## machines under mishaps, attacks on the proofs and killed processes, for SOAK seeds, 200 times as many messages, hours; keep what it prints in bench/results
	@echo "commit $$(git rev-parse --short HEAD), $$($(GO) version), $$(nproc) CPUs, $(SOAK) seeds"
	$(GO) test -count=1 -timeout 12h -v ./controller -run 'UnderFire' -long=$(SOAK)
	$(GO) test -count=1 -timeout 12h -v ./internal/simtest -run 'Everything' -long=$(SOAK)
	$(GO) test -count=1 -timeout 12h -v ./plan/randtest -run 'Attack|SameBits' -long=$(SOAK)
	$(GO) test -count=1 -timeout 12h -v ./controller -run 'Door' -long=$$(($(SOAK)*200))
	$(GO) test -count=1 -timeout 12h -v ./cmd/tensile -run 'TestKills$$|ClusterKills|HostCutOff' -long=$$(($(SOAK)/50))
	$(MAKE) chaos CHAOS=$$(($(SOAK)*2/5))

mutants: ## one change at a time in what proves plans: is there a test that notices?
	$(GO) run ./internal/mutants

upgrade-check: ## jobs of the newest earlier commit with state folders of this form go on with this one, to the same bits; minutes
	$(WITH) GO="$(GO)" scripts/upgrade-check.sh $(COMMIT)

race: ## the suite with the race detector, self-checks on and dropped memory poisoned
	$(WITH) $(GO) test -race -tags invariants ./...

lint: ## staticcheck, formatting, order of imports, lines of at most 120 columns
	$(WITH) $(GO) tool staticcheck ./...
	$(if $(GPU),$(WITH) $(GO) tool staticcheck -tags gpu $(TAGGED))
	@files=$$($(GO) tool goimports -local tensile -l .) && test -z "$$files" || \
		{ echo "goimports -local tensile -w is due for:"; echo "$$files"; exit 1; }
	scripts/lines.sh .

count: ## the lines of Go that a maintainer must know; its target is 82,000 (scripts/count.sh has the rule)
	@scripts/count.sh

golden: ## rewrite the testdata of all tests that use internal/golden or datadriven; read the diff
	$(GO) test $$($(GO) list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | \
		grep -E 'internal/golden|cockroachdb/datadriven' | cut -d ' ' -f 1) -rewrite

ptx: ## compile the CUDA kernels anew with clang-19; read the diff, and commit the text
	rm -f device/cuda/kernels/ptx/*.ptx
	scripts/ptx.sh device/cuda/kernels/ptx

ptx-check: ## registers and spills of the CUDA kernels, where ptxas is installed
	scripts/ptx-check.sh

onnx-cases: ## ONNX files of PyTorch, and what it computes of them, for tests; wants PyTorch 2.15 and onnxscript, as scripts/test-packages.sh installs them
	python3 scripts/onnx-cases.py models/onnx/testdata

FUZZTIME ?= 30s
fuzz: ## every fuzz target, one after the other, FUZZTIME each
	@grep -rEo '^func Fuzz[A-Za-z]+' --include='*_test.go' . | sort | while IFS=: read -r file name; do \
		echo "$$file $${name#func }"; \
		$(GO) test "$$(dirname $$file)" -run '^$$' -fuzz "^$${name#func }\$$" -fuzztime $(FUZZTIME) || exit 1; \
	done

bench: ## Go benchmarks in benchstat form
	$(GO) test -run '^$$' -bench . -benchmem ./...

clean:
	rm -rf bin dist
