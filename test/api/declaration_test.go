package api

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"strings"
	"testing"
)

// declaration is a line of a list.
type declaration struct {
	pkg       string // below the module
	text      string
	qualified bool // the package's own names stand behind its name
}

func (d declaration) String() string { return d.pkg + ": " + d.text }

// read reads a list.
func read(t *testing.T, file string) (all []declaration) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pkg := ""
	for in := bufio.NewScanner(f); in.Scan(); {
		switch line := strings.TrimSpace(in.Text()); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "package "):
			pkg = strings.TrimPrefix(line, "package ")
			all = append(all, declaration{pkg: pkg, text: line})
		default:
			all = append(all, declaration{pkg, line, file == "used.txt"})
		}
	}
	return all
}

var (
	fieldLine = regexp.MustCompile(`^field (\w+)\.(\w+) (.*)$`)
	constLine = regexp.MustCompile(`^const (\w+)( \w+)? = iota$|^const (\w+)$`)
	qualifier = regexp.MustCompile(`\b(\w+)\.`)
)

// foreign are names of packages of ours whose declarations mean another package by them: crypto/tls, golang-dnstap.
var foreign = map[string]bool{"tls": true, "dnstap": true}

// verify reports what is wrong with our side of a declaration.
func (s *sources) verify(d declaration) error {
	p, err := s.check(d.pkg)
	if err != nil {
		return err
	}
	if p == nil {
		return fmt.Errorf("there is no such package")
	}
	text := d.text
	if d.qualified && !foreign[p.Name()] {
		text = regexp.MustCompile(`\b`+p.Name()+`\.([a-zA-Z])`).ReplaceAllString(text, "$1")
	}
	var mentioned []string
	for _, m := range qualifier.FindAllStringSubmatch(text, -1) {
		mentioned = append(mentioned, m[1])
	}
	c := checker{sources: s, own: p, in: s.scope(p, mentioned)}
	switch {
	case strings.HasPrefix(text, "package "):
		return nil
	case fieldLine.MatchString(text):
		m := fieldLine.FindStringSubmatch(text)
		e, err := parser.ParseExpr(m[3])
		if err != nil {
			return err
		}
		return c.field(m[1], m[2], e)
	case constLine.MatchString(text):
		m := constLine.FindStringSubmatch(text)
		return c.exists(m[1]+m[3], (*types.Const)(nil))
	case strings.HasSuffix(text, " struct"):
		text += "{}"
	}
	f, err := parser.ParseFile(s.fset, "", "package p\n"+text, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("the list itself: %w", err)
	}
	switch decl := f.Decls[0].(type) {
	case *ast.FuncDecl:
		return c.function(decl)
	case *ast.GenDecl:
		switch spec := decl.Specs[0].(type) {
		case *ast.TypeSpec:
			return c.typeSpec(spec)
		case *ast.ValueSpec:
			return c.value(spec, decl.Tok)
		}
	}
	return fmt.Errorf("the list itself: %s is no declaration", text)
}

// checker compares declarations with the package own.
type checker struct {
	*sources
	own, in *types.Package
}

// eval is the type that an expression of the list stands for.
func (c checker) eval(e ast.Expr) (types.Type, error) {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	if err := types.CheckExpr(c.fset, c.in, token.NoPos, e, info); err != nil {
		return nil, fmt.Errorf("the type in the list cannot be resolved: %w", err)
	}
	return info.Types[e].Type, nil
}

func (c checker) exists(name string, kind types.Object) error {
	o := c.own.Scope().Lookup(name)
	if o == nil {
		return fmt.Errorf("there is no %s", name)
	}
	if fmt.Sprintf("%T", o) != fmt.Sprintf("%T", kind) {
		return fmt.Errorf("%s is a %T", name, o)
	}
	return nil
}

func (c checker) value(spec *ast.ValueSpec, tok token.Token) error {
	name := spec.Names[0].Name
	var kind types.Object = (*types.Var)(nil)
	if tok == token.CONST {
		kind = (*types.Const)(nil)
	}
	if err := c.exists(name, kind); err != nil {
		return err
	}
	o := c.own.Scope().Lookup(name)
	if spec.Type != nil {
		want, err := c.eval(spec.Type)
		if err != nil {
			return err
		}
		if !types.Identical(want, o.Type()) {
			return fmt.Errorf("%s is of type %s", name, o.Type())
		}
	}
	if tok == token.CONST && len(spec.Values) == 1 {
		tv, err := types.Eval(c.fset, c.in, token.NoPos, types.ExprString(spec.Values[0]))
		if err != nil {
			return fmt.Errorf("the value in the list cannot be resolved: %w", err)
		}
		if got := o.(*types.Const).Val(); tv.Value.ExactString() != got.ExactString() {
			return fmt.Errorf("%s is %s", name, got)
		}
	}
	return nil
}

func (c checker) typeSpec(spec *ast.TypeSpec) error {
	if err := c.exists(spec.Name.Name, (*types.TypeName)(nil)); err != nil {
		return err
	}
	got := c.own.Scope().Lookup(spec.Name.Name).Type().Underlying()
	st, isStruct := spec.Type.(*ast.StructType)
	if !isStruct {
		want, err := c.eval(spec.Type)
		if err != nil {
			return err
		}
		if !types.Identical(want.Underlying(), got) {
			return fmt.Errorf("%s is %s", spec.Name.Name, got)
		}
		return nil
	}
	if _, ok := got.(*types.Struct); !ok {
		return fmt.Errorf("%s is %s", spec.Name.Name, got)
	}
	for _, f := range st.Fields.List {
		name := ""
		if len(f.Names) == 1 {
			name = f.Names[0].Name
		} else {
			e := f.Type
			if star, ok := e.(*ast.StarExpr); ok {
				e = star.X
			}
			if sel, ok := e.(*ast.SelectorExpr); ok {
				e = sel.Sel
			}
			name = types.ExprString(e)
		}
		if err := c.field(spec.Name.Name, name, f.Type); err != nil {
			return err
		}
	}
	return nil
}

func (c checker) field(structName, name string, e ast.Expr) error {
	if err := c.exists(structName, (*types.TypeName)(nil)); err != nil {
		return err
	}
	want, err := c.eval(e)
	if err != nil {
		return err
	}
	o, _, _ := types.LookupFieldOrMethod(c.own.Scope().Lookup(structName).Type(), true, c.own, name)
	v, ok := o.(*types.Var)
	if !ok {
		return fmt.Errorf("%s has no field %s", structName, name)
	}
	if !types.Identical(want, v.Type()) {
		return fmt.Errorf("%s.%s is of type %s", structName, name, v.Type())
	}
	return nil
}

// function checks a function or method. Type parameters are tried with int.
func (c checker) function(f *ast.FuncDecl) error {
	generic := f.Type.TypeParams != nil
	f.Type.TypeParams = nil
	var got types.Type
	if f.Recv == nil {
		if err := c.exists(f.Name.Name, (*types.Func)(nil)); err != nil {
			return err
		}
		got = c.own.Scope().Lookup(f.Name.Name).Type()
	} else {
		recv := f.Recv.List[0].Type
		star, pointer := recv.(*ast.StarExpr)
		if pointer {
			recv = star.X
		}
		if index, ok := recv.(*ast.IndexExpr); ok {
			recv, generic = index.X, true
		}
		name := types.ExprString(recv)
		if err := c.exists(name, (*types.TypeName)(nil)); err != nil {
			return err
		}
		t := c.own.Scope().Lookup(name).Type()
		if named, ok := t.(*types.Named); ok && generic {
			t, _ = types.Instantiate(nil, named, []types.Type{types.Typ[types.Int]}, false)
		}
		o, _, _ := types.LookupFieldOrMethod(t, pointer, c.own, f.Name.Name)
		m, ok := o.(*types.Func)
		if !ok {
			return fmt.Errorf("%s has no method %s", name, f.Name.Name)
		}
		got = m.Type()
	}
	if generic {
		if sig := got.(*types.Signature); sig.TypeParams().Len() > 0 {
			got, _ = types.Instantiate(nil, sig, []types.Type{types.Typ[types.Int]}, false)
		}
		c.in.Scope().Insert(types.NewTypeName(token.NoPos, c.in, "T", types.Typ[types.Int]))
	}
	want, err := c.eval(f.Type)
	if err != nil {
		return err
	}
	if !types.Identical(want, got) {
		return fmt.Errorf("it is %s", got)
	}
	return nil
}
