package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

const module = "github.com/coredns/coredns"

// sources type-checks packages of this module from their files; what they import comes from
// the compiler's export data.
type sources struct {
	fset   *token.FileSet
	listed map[string]*listed
	types  types.Importer
	done   map[string]*types.Package
}

// listed is what go list tells of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
	Standard                bool
}

var load = sync.OnceValues(func() (*sources, error) {
	list := exec.Command("go", "list", "-export", "-e", "-deps", "-tags", "gofuzz", "-json=ImportPath,Dir,Export,GoFiles,Imports,Standard", "./...")
	list.Dir = filepath.Join("..", "..")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	s := &sources{fset: token.NewFileSet(), listed: map[string]*listed{}, done: map[string]*types.Package{}}
	all, err := decodeListed(out)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		s.listed[p.ImportPath] = p
	}
	s.types = importer.ForCompiler(s.fset, "gc", s.export)
	return s, nil
})

// decodeListed reads what go list printed.
func decodeListed(out []byte) (all []*listed, err error) {
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// export opens the compiler's export data of a package.
func (s *sources) export(path string) (io.ReadCloser, error) {
	p := s.listed[path]
	if p == nil || p.Export == "" {
		return nil, fmt.Errorf("no export data for %s", path)
	}
	return os.Open(p.Export)
}

func sourcesOf(t *testing.T) *sources {
	t.Helper()
	s, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check returns the package at a path below the module, nil if there is none.
func (s *sources) check(path string) (*types.Package, error) {
	path = module + "/" + path
	if p := s.done[path]; p != nil {
		return p, nil
	}
	l := s.listed[path]
	if l == nil {
		return nil, nil
	}
	var files []*ast.File
	for _, name := range l.GoFiles {
		f, err := parser.ParseFile(s.fset, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: s.types, IgnoreFuncBodies: true}
	p, err := conf.Check(path, s.fset, files, nil)
	if err == nil {
		s.done[path] = p
	}
	return p, err
}

// others are packages by the names that declarations use, where those are not the packages' own or
// the package at hand does not import them itself.
var others = map[string]string{
	"context": "context", "net": "net", "time": "time", "http": "net/http", "tls": "crypto/tls", "testing": "testing", "sync": "sync",
	"caddy": "github.com/coredns/caddy", "dns": "github.com/miekg/dns", "prometheus": "github.com/prometheus/client_golang/prometheus",
	"ot": "github.com/opentracing/opentracing-go", "tap": "github.com/dnstap/golang-dnstap", "dnstap": "github.com/dnstap/golang-dnstap",
	"quic": "github.com/quic-go/quic-go", "grpc": "google.golang.org/grpc", "protoreflect": "google.golang.org/protobuf/reflect/protoreflect",
	"proxyproto": "github.com/pires/go-proxyproto", "v1": "k8s.io/apimachinery/pkg/apis/meta/v1", "runtime": "k8s.io/apimachinery/pkg/runtime",
	"cache":  "k8s.io/client-go/tools/cache",
	"plugin": module + "/plugin", "request": module + "/request", "dnsserver": module + "/core/dnsserver", "pb": module + "/pb",
	"msg": module + "/plugin/etcd/msg", "dnstest": module + "/plugin/pkg/dnstest", "response": module + "/plugin/pkg/response",
	"transport": module + "/plugin/pkg/transport", "proxy": module + "/plugin/pkg/proxy", "upstream": module + "/plugin/pkg/upstream",
	"replacer": module + "/plugin/pkg/replacer", "object": module + "/plugin/kubernetes/object",
}

// scope is a package like p in which a declaration can be evaluated: it has p's names and the
// packages that declarations mention.
func (s *sources) scope(p *types.Package, fields []string) *types.Package {
	fake := types.NewPackage(p.Path(), p.Name())
	for _, name := range p.Scope().Names() {
		fake.Scope().Insert(p.Scope().Lookup(name))
	}
	for _, name := range fields {
		path, ok := others[name]
		if !ok || p.Path() == path || fake.Scope().Lookup(name) != nil {
			continue
		}
		if imported, err := s.types.Import(path); err == nil {
			fake.Scope().Insert(types.NewPkgName(token.NoPos, fake, name, imported))
		}
	}
	return fake
}
