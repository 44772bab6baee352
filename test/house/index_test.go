package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// index is what the module declares outside of tests, so that a name in a text can be looked up.
type index struct {
	packages map[string]*pkg // by folder
	files    map[string]bool // of all kinds, by path from the root
	used     map[string]bool // names of packages of others that the source uses: dns.Msg
}

// pkg is one package.
type pkg struct {
	dir, name string
	doc       string
	decls     map[string][]string // package-level name: the files that declare it
	members   map[string][]string // Type.Member, of methods and fields: the same
	embedded  map[string][]string // type: the types that it embeds, as they are written
	lines     share
}

// place is the path of a file from the root.
func place(path string) string {
	return strings.TrimPrefix(filepath.ToSlash(path), "../../")
}

var theIndex = sync.OnceValue(func() func(t *testing.T) *index {
	var once sync.Once
	x := &index{packages: map[string]*pkg{}, files: map[string]bool{}, used: map[string]bool{}}
	return func(t *testing.T) *index {
		t.Helper()
		once.Do(func() {
			sources(t, func(path string) {
				x.files[place(path)] = true
				if filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go") {
					x.read(t, path)
				}
			})
		})
		return x
	}
})

// read takes in the declarations of a file.
func (x *index) read(t *testing.T, path string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if f.Name.Name == "main" && strings.HasSuffix(path, "_generate.go") {
		return // of no package: it is run by go generate
	}
	file := place(path)
	dir := filepath.Dir(file)
	p := x.packages[dir]
	if p == nil {
		p = &pkg{dir: dir, name: f.Name.Name, decls: map[string][]string{}, members: map[string][]string{}, embedded: map[string][]string{}}
		x.packages[dir] = p
	}
	if f.Doc != nil {
		p.doc += f.Doc.Text()
	}
	p.lines.read(t, path)
	for _, d := range f.Decls {
		p.declare(file, d)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := sel.X.(*ast.Ident); ok {
				x.used[of.Name+"."+sel.Sel.Name] = true
			}
		}
		return true
	})
}

func (p *pkg) declare(file string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			p.add(p.decls, d.Name.Name, file)
			return
		}
		p.add(p.members, typeName(d.Recv.List[0].Type)+"."+d.Name.Name, file)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					p.add(p.decls, n.Name, file)
				}
			case *ast.TypeSpec:
				p.add(p.decls, s.Name.Name, file)
				p.fields(file, s.Name.Name, s.Type)
			}
		}
	}
}

// fields takes in what a type has, be it a struct or an interface.
func (p *pkg) fields(file, name string, typ ast.Expr) {
	var list *ast.FieldList
	switch t := typ.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		if of := typeName(typ); of != "" {
			p.embedded[name] = append(p.embedded[name], of) // an alias, or close enough to one
		}
		return
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			p.add(p.members, name+"."+n.Name, file)
		}
		if of := typeName(f.Type); len(f.Names) == 0 && of != "" {
			p.embedded[name] = append(p.embedded[name], of)
			p.add(p.members, name+"."+of[strings.LastIndex(of, ".")+1:], file)
		}
	}
}

func (p *pkg) add(to map[string][]string, name, file string) {
	if !slices.Contains(to[name], file) {
		to[name] = append(to[name], file)
	}
}

// typeName is T or pkg.T of T, *T, T[E] and the like, "" of other types.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok {
			return of.Name + "." + e.Sel.Name
		}
	}
	return ""
}

// named is the packages of that name.
func (x *index) named(name string) (all []*pkg) {
	for _, p := range x.packages {
		if p.name == name {
			all = append(all, p)
		}
	}
	return all
}

// member is the files that declare Type.Member of p, be it in a type that Type embeds.
func (x *index) member(p *pkg, typ, member string) []string {
	if files := p.members[typ+"."+member]; files != nil {
		return files
	}
	for _, of := range p.embedded[typ] {
		in, name, ok := strings.Cut(of, ".")
		if !ok {
			if files := x.member(p, of, member); of != typ && files != nil {
				return files
			}
			continue
		}
		for _, q := range x.named(in) {
			if files := x.member(q, name, member); files != nil {
				return files
			}
		}
	}
	return nil
}

// resolve is the files that declare a name as texts say it: Name, Type.Member, pkg.Name or pkg.Type.Member. home is the package whose text it
// is, nil if it is that of none; a bare Name must be of home. What is of a package of others has no file, but ok.
func (x *index) resolve(home *pkg, name string) (files []string, ok bool) {
	part := strings.Split(name, ".")
	switch {
	case len(part) == 1 && home != nil:
		files = home.decls[name]
	case len(part) == 2:
		if home != nil {
			files = x.member(home, part[0], part[1])
		}
		for _, p := range x.named(part[0]) {
			files = append(files, p.decls[part[1]]...)
		}
		for _, p := range x.packages {
			if home == nil {
				files = append(files, x.member(p, part[0], part[1])...)
			}
		}
	case len(part) == 3:
		for _, p := range x.named(part[0]) {
			files = append(files, x.member(p, part[1], part[2])...)
		}
	}
	return files, len(files) > 0 || x.used[name]
}

func TestResolve(t *testing.T) {
	x := theIndex()(t)
	home := x.packages["core/internal/exec"]
	for name, want := range map[string]bool{
		"dnsserver.NewServer": true, "dnsserver.NewServers": false, "Chain.ServeWire": true, "Chain.ServeWires": false,
		"chain.Chain.ServeWire": true, "exec.Chain.ServeWire": false, "Service.ServeWire": true, // by way of Decider
		"dns.Msg": true, "dns.Message": false, "dnsserver.Key": true, "loop.batch": true, "nobody.nothing": false,
	} {
		if _, ok := x.resolve(nil, name); ok != want {
			t.Errorf("%s: %v", name, ok)
		}
	}
	for name, want := range map[string]bool{"Later": true, "Run.Serve": true, "Run": true, "Chain": false, "loop.batch": false, "udp.New": true} {
		if _, ok := x.resolve(home, name); ok != want {
			t.Errorf("%s of exec: %v", name, ok)
		}
	}
}
