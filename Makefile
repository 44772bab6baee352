# make          builds the server, ./coredns
# make run      builds it and serves the example in examples/ on port 1053
# make test     runs all tests
# make help     lists the rest

# What builds of one's own may set: make SYSTEM="GOOS=linux GOARCH=arm64" GITCOMMIT=v1 BINARY=dns. A line added to plugin.cfg is taken
# over by the next build, and its module fetched. GITTAG is the tag that the sources are at, which makes the build a release.
GO          ?= go
BINARY      ?= coredns
GITCOMMIT   ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
GITTAG      ?= $(shell git diff --quiet HEAD 2>/dev/null && git describe --tags --exact-match 2>/dev/null)
SYSTEM      ?=
CHECKS      ?= check
BUILDOPTS   ?= -trimpath $(COLD:%=-gcflags=%=-l)
GOTAGS      ?= grpcnotrace
CGO_ENABLED ?= 0
STRIP_FLAGS ?= -s -w
PORT        ?= 1053
TESTFLAGS   ?=
PEERS       ?=
PLUGINS     ?=
LIST        ?=
# What make release and make packages build for, and the version that they bear.
TARGETS     ?= linux/amd64 linux/arm64 linux/arm linux/riscv64 linux/ppc64le linux/s390x linux/mips64le linux/mips \
               linux/loong64 darwin/amd64 darwin/arm64 windows/amd64
PACKAGES    ?= amd64 arm64
VERSION     ?= $(or $(patsubst v%,%,$(GITTAG)),$(shell sed -n 's/.*CoreVersion = "\(.*\)"/\1/p' coremain/version.go)-dev)

# COLD is the packages of which nothing is inlined.
include cold.mk

MAIN      := github.com/coredns/coredns/coremain
LDFLAGS   := $(STRIP_FLAGS) -X $(MAIN).GitCommit=$(GITCOMMIT) -X $(MAIN).gitTag=$(GITTAG)

RELEASE = GO='$(GO)' BUILDOPTS='$(BUILDOPTS)' GOTAGS='$(GOTAGS)' LDFLAGS='$(LDFLAGS)' VERSION='$(VERSION)' \
          TARGETS='$(TARGETS)' PACKAGES='$(PACKAGES)'

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
# It needs a C compiler. PAGES are what it reads.
VALE        := github.com/vale-cli/vale/v3/cmd/vale@v3.21.0
PAGES       ?= $(wildcard plugin/*/README.md docs/*.md man/*.md) README.md CONTRIBUTING.md deploy/README.md bench/README.md examples/README.md

.PHONY: all build coredns image check custom k8s gen pb lint release packages man docs prose run run-k8s certs bench plots test race soak kills clients clean help

all: coredns

build: coredns ## the same as coredns

coredns: $(CHECKS) ## the server, ./coredns
	@echo "$(GO) build -o $(BINARY)"
	@CGO_ENABLED=$(CGO_ENABLED) $(SYSTEM) $(GO) build $(BUILDOPTS) -tags '$(GOTAGS)' -ldflags '$(LDFLAGS)' -o $(BINARY) .

image: ## a container image with the server, coredns
	docker build -t coredns --build-arg GITCOMMIT=$(GITCOMMIT) --build-arg GITTAG=$(GITTAG) .

release: check ## dist/: the server for all systems in TARGETS, with SBOMs, licences and checksums
	@$(RELEASE) deploy/release.sh binaries

man: ## dist/man/: manual pages of the program, the Corefile and each plugin
	@$(RELEASE) deploy/release.sh manuals

prose: ## how the pages are written: docs/style
	@$(GO) run $(VALE) --config docs/style/vale.ini $(PAGES)

docs: ## dist/site/: what is to be read here, as pages for a browser
	@$(RELEASE) deploy/release.sh site

packages: check ## dist/: .deb and .rpm for the processors in PACKAGES
	@$(RELEASE) deploy/release.sh packages

check: ## what is generated is what plugin.cfg and COREDNS_PLUGINS ask for, and their modules are there
	@$(GO) run directives_generate.go

custom: ## a server with more plugins: make custom PLUGINS="rrl:github.com/coredns/rrl/plugins/rrl after=acl, ./my/plugin"
	@CGO_ENABLED=$(CGO_ENABLED) $(SYSTEM) $(GO) run custom_build.go $(if $(LIST),-list $(LIST)) "$(PLUGINS)" $(BINARY) $(BUILDOPTS) \
		-tags '$(GOTAGS)' -ldflags '$(LDFLAGS)'

k8s: LIST = plugin.cfg.k8s
k8s: custom ## a server for Kubernetes clusters, with the plugins of plugin.cfg.k8s alone

gen: ## what is generated from plugin.cfg and CODEOWNERS, and the modules that plugin.cfg asks for
	$(GO) generate coredns.go

pb: ## what is generated from pb/dns.proto, by protoc
	$(GO) generate ./pb

lint: ## format, vet, staticcheck, and that what is generated is up to date
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "these files are not gofmt-ed"; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) generate coredns.go
	git diff --exit-code -- core plugin/chaos/zowners.go

run: build ## the server with examples/Corefile on $(PORT)
	@sed "s|PORT|$(PORT)|" examples/try.txt
	./$(BINARY) -conf examples/Corefile -dns.port $(PORT)

run-k8s: build ## a real Kubernetes API, the stock Corefile, and what it answers
	test/cluster/build.sh >/dev/null
	$(GO) run ./test/k8s/show -server ./$(BINARY)

certs: ## a certificate of one's own for the examples with TLS, in examples/
	$(GO) run ./examples/certs examples

bench: build ## the server under load, beside others: make bench PEERS="knotd nsd unbound"
	$(GO) run ./bench -server ./$(BINARY) -peers "$(PEERS)"

test: ## all tests; the first time this builds the programs of the test cluster
	@GO="$(GO)" test/run.sh $(TESTFLAGS)

race: ## the tests of what is concurrent, with the race detector
	$(GO) test -race -timeout 25m $(TESTFLAGS) ./core/... ./request/... ./plugin/... ./test/...

plots: build ## draw how costs grow, into docs/plots: make plots PEERS="knotd nsd" MOST=5000000
	$(GO) run ./bench -server ./$(BINARY) -peers "$(PEERS)" -growth docs/plots $(if $(MOST),-most $(MOST))

soak: ## reloads and hand-overs under load, for ten minutes: none of a million queries may be lost
	RATE=10000 RELOADS=10000 HANDOVERS=150 $(GO) test -count=1 -timeout 30m -v -run 'TestHandOverToSuccessor|TestUpgrade|TestReloadsBySignal' ./test

kills: ## a process that makes 2,000 updates a second is killed 500 times: no acknowledged one may be lost
	DYNUPDATE_KILLS=500 $(GO) test -count=1 -timeout 20m -v -run 'TestKill$$' ./plugin/dynupdate

clients: ## ACME by lego against the server; a module of its own
	cd test/lego && $(GO) test -count=1 -timeout 10m .

clean: ## what was built here
	rm -f $(BINARY)
	rm -rf dist

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | sed 's/$$(PORT)/$(PORT)/' | expand -t 12
