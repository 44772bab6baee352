package custom

import (
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestReadList(t *testing.T) {
	for _, tc := range []struct {
		text, want string // entries, or the error
	}{
		{"", ""},
		{"a:b\n", "a b 1"},
		{"  a : b  \n\n# c:d\n\t#\ne:github.com/x/y # why\n", "a b 1, e github.com/x/y 5"},
		{"a:b\r\nc:d", "a b 1, c d 2"},
		{"a:b\nc\n", `plugin.cfg:2: "c" is not of the form name:package`},
		{"a:", `plugin.cfg:1: "a:" is not of the form name:package`},
		{":b", `plugin.cfg:1: ":b" is not of the form name:package`},
		{"a:b:c", `plugin.cfg:1: "a:b:c" is not of the form name:package`},
		{"a b:c", `plugin.cfg:1: "a b:c" is not of the form name:package`},
		{"a:b c", `plugin.cfg:1: "a:b c" is not of the form name:package`},
		{"a:b\nc:d\na:e", `plugin.cfg:3: Duplicate entry "a": it stands in plugin.cfg:1, too`},
	} {
		entries, err := ReadList(strings.NewReader(tc.text), ListFile)
		got := ""
		for i, e := range entries {
			if i > 0 {
				got += ", "
			}
			got += e.Name + " " + e.Package + " " + strings.TrimPrefix(e.Where, "plugin.cfg:")
		}
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%q: got %s, want %s", tc.text, got, tc.want)
		}
	}
}

func TestExtend(t *testing.T) {
	first := []Entry{{"a", "b", "plugin.cfg:1"}}
	got, err := Extend(first, " c:d, ,e:f")
	if want := []Entry{first[0], {"c", "d", "COREDNS_PLUGINS"}, {"e", "f", "COREDNS_PLUGINS"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for more, want := range map[string]string{"a:x": `COREDNS_PLUGINS: Duplicate entry "a": it stands in plugin.cfg:1, too`, "x": `COREDNS_PLUGINS: "x" is not`} {
		if _, err := Extend(first, more); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", more, err)
		}
	}
}

func TestParsePlugins(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []Plugin // nil: refused
	}{
		{"github.com/coredns/rrl/plugins/rrl", []Plugin{{Package: "github.com/coredns/rrl/plugins/rrl"}}},
		{"rrl:github.com/coredns/rrl/plugins/rrl@v1.2 after=acl, ./my/plugin", []Plugin{
			{Name: "rrl", Package: "github.com/coredns/rrl/plugins/rrl", Version: "v1.2", After: "acl"}, {Package: "./my/plugin"}}},
		{"/a/b before=cache ../c", []Plugin{{Package: "/a/b", Before: "cache"}, {Package: "../c"}}},
		{"x:. after=y,", []Plugin{{Name: "x", Package: ".", After: "y"}}},
		{"", nil}, {" , ", nil}, {"after=x", nil}, {"a/b after=", nil}, {"a/b beside=c", nil}, {"a/b after=x before=y", nil},
		{":a/b", nil}, {"a/b@", nil}, {"./a@v1", nil}, {"a//b", nil}, {"x:", nil}, {"a/b/", nil},
	} {
		got, err := ParsePlugins(tc.text)
		if (err == nil) != (tc.want != nil) || err == nil && !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%q: got %+v, %v", tc.text, got, err)
		}
	}
}

func TestInsert(t *testing.T) {
	order := []string{"errors", "acl", "cache", "file"}
	for _, tc := range []struct {
		plugins []Plugin
		want    string // the order, or the error
	}{
		{[]Plugin{{Name: "x"}}, "errors acl cache file x"},
		{[]Plugin{{Name: "x", After: "acl"}, {Name: "y", After: "acl"}, {Name: "z", Before: "acl"}}, "errors z acl x y cache file"},
		{[]Plugin{{Name: "x", Before: "cache"}, {Name: "y", Before: "cache"}}, "errors acl x y cache file"},
		{[]Plugin{{Name: "x", After: "file"}, {Name: "y", After: "x"}, {Name: "z", Before: "errors"}}, "z errors acl cache file x y"},
		{[]Plugin{{Name: "x", After: "none"}}, "x: there is no plugin none that it could stand beside"},
		{[]Plugin{{Name: "acl", Package: "p"}}, "p: the build has a plugin acl already"},
	} {
		got, err := insert(order, tc.plugins)
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if text != tc.want {
			t.Errorf("%+v: got %s, want %s", tc.plugins, text, tc.want)
		}
	}
}

func TestRegistered(t *testing.T) {
	for source, want := range map[string]string{
		`func init() { plugin.Register("one", setup) }`:                                                                                                       "[one]",
		"const name = \"two\"\nfunc init() { plugin.Register(name, setup) }":                                                                                  "[two]",
		"func init() { plugin.Register(`a`, s); plugin.Register(\"b\", s) }":                                                                                  "[a b]",
		`func init() { plugin.Register(made(), setup); other.Register("x"); f("y", 1)}`:                                                                       "[]",
		"const (\n\tother = \"no\"\n\tname string = \"three\" // its name\n)\nfunc init() { plugin.Register(name, func(a, b int) error { return f(a, b) }) }": "[three]",
		"var a, b = f(\"x\", 1), \"four\"\nfunc init() { plugin.Register(\n\tb,\n\tsetup,\n) }":                                                               "[four]",
		"const name = \"five\"\nfunc f() { name := \"no\"; name = \"no\"; g(name) }\nfunc init() { plugin.Register(name, setup); x.Register(\"no\", 1, 2) }":  "[five]",
		"const name = \"a\" + \"b\"\nfunc init() { plugin.Register(name, setup) }":                                                                            "[]",
	} {
		dir := t.TempDir()
		write(t, dir, "p.go", "package p\n"+source)
		write(t, dir, "p_test.go", "package p\nfunc init() { plugin.Register(\"test\", nil) }")
		if got, err := registers(dir); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, %v, want %s", source, got, err, want)
		}
	}
}

// What is generated stands as gofmt would have it.
func TestGeneratedIsFormatted(t *testing.T) {
	ours, others := Entry{"file", Module + "/plugin/file", ""}, Entry{"x", "example.org/x", ""}
	caddys := Entry{"on", "github.com/coredns/caddy/onevent", ""}
	for _, entries := range [][]Entry{{ours}, {others}, {ours, others, caddys, others}, {others, ours, {"y", "example.com/y", ""}}} {
		for _, text := range []string{importsText(entries), directivesText(entries)} {
			if formatted, err := format.Source([]byte(text)); err != nil || string(formatted) != text {
				t.Errorf("%v\n%s\nis to be\n%s", err, text, formatted)
			}
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sources is a folder as this module's is, with little in it.
func sources(t *testing.T, list string) string {
	dir := t.TempDir()
	write(t, dir, "go.mod", "module "+Module+"\n\ngo 1.24\n")
	write(t, dir, "plugin/file/file.go", "package file\n")
	write(t, dir, ListFile, list)
	return dir
}

func text(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Folders of one name become packages of their own: the files of neither get among those of the other.
func TestFoldersOfOneName(t *testing.T) {
	dir, b := t.TempDir(), &builder{dir: t.TempDir()}
	var packages []string
	for _, name := range []string{"north", "south", "south"} {
		folder := filepath.Join(dir, name, "stamp")
		write(t, folder, name+".go", "package stamp\n")
		p := Plugin{Package: folder}
		if err := b.addFolder(&p); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(b.dir, strings.TrimPrefix(p.Package, "coredns.custom/"), "*"))
		if err != nil || len(files) != 1 || filepath.Base(files[0]) != name+".go" {
			t.Errorf("%s is %s with %v, %v", folder, p.Package, files, err)
		}
		packages = append(packages, p.Package)
	}
	if packages[0] != "coredns.custom/stamp" || packages[1] == packages[0] || packages[2] == packages[1] {
		t.Errorf("got %v", packages)
	}
}

// What is generated follows the list by what it says, and not by when it was written.
func TestUpdate(t *testing.T) {
	dir := sources(t, "file:file\nauto:file # the same package\n")
	for i, want := range []bool{true, false} {
		if changed, err := Update(dir, ""); err != nil || changed != want {
			t.Fatalf("run %d: %v, %v", i, changed, err)
		}
	}
	if s := text(t, dir, directivesFile); !strings.Contains(s, "\t\"file\",\n\t\"auto\",\n}") {
		t.Error(s)
	}
	if s := text(t, dir, importsFile); strings.Count(s, "_ \""+Module+"/plugin/file\"") != 1 {
		t.Error(s)
	}
	write(t, dir, directivesFile, "package dnsserver\n") // newer than the list, and wrong
	if changed, err := Update(dir, "other:"+Module+"/plugin/file"); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if s := text(t, dir, directivesFile); !strings.Contains(s, "\t\"auto\",\n\t\"other\",\n}") {
		t.Error(s)
	}
}

// When a module cannot be fetched, that is told with its line, and nothing has changed.
func TestUpdateFails(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	dir := sources(t, "file:file\n")
	if _, err := Update(dir, ""); err != nil {
		t.Fatal(err)
	}
	before := map[string]string{}
	for _, name := range []string{importsFile, directivesFile, "go.mod"} {
		before[name] = text(t, dir, name)
	}
	write(t, dir, ListFile, "file:file\n\nfar:example.org/not/there\n")
	_, err := Update(dir, "")
	if err == nil || !strings.HasPrefix(err.Error(), "plugin.cfg:3: far: go get example.org/not/there: ") {
		t.Errorf("got %v", err)
	}
	for _, pkg := range []string{"own/path", "own", "./own", "-x"} { // what is allowed is told, too
		write(t, dir, ListFile, "file:file\nnear:"+pkg+"\n")
		_, err := Update(dir, "")
		want := fmt.Sprintf("plugin.cfg:2: near: %q is neither a folder below plugin/ nor an import path such as example.org/near", pkg)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", pkg, err)
		}
	}
	for name, want := range before {
		if got := text(t, dir, name); got != want {
			t.Errorf("%s has changed:\n%s", name, got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "go.sum")); err == nil {
		t.Error("go.sum is there")
	}
}

// A module that go.mod has in a folder need not be asked for, where nobody can be asked either.
func TestUpdateReplaced(t *testing.T) {
	t.Setenv("GOPROXY", "http://127.0.0.1:1")
	t.Setenv("GOFLAGS", "")
	near := t.TempDir()
	write(t, near, "go.mod", "module example.org/near\n\ngo 1.24\n")
	write(t, near, "near.go", "package near\n")
	dir := sources(t, "file:file\nnear:example.org/near\n")
	write(t, dir, "go.mod", text(t, dir, "go.mod")+"\nreplace example.org/near => "+near+"\n")
	if changed, err := Update(dir, ""); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if s := text(t, dir, importsFile); !strings.Contains(s, `_ "example.org/near"`) {
		t.Error(s)
	}
	if _, err := goTool(dir, nil, "list", "-deps", "example.org/near"); err != nil {
		t.Errorf("the module is not required: %v", err)
	}
}

func FuzzParsePlugins(f *testing.F) {
	f.Add("rrl:github.com/coredns/rrl/plugins/rrl@v1.2 after=acl, ./my/plugin")
	f.Fuzz(func(t *testing.T, s string) {
		all, err := ParsePlugins(s)
		if err == nil && len(all) == 0 {
			t.Error("nothing, and no error")
		}
		for _, p := range all {
			if err == nil && (p.Package == "" || p.After != "" && p.Before != "") {
				t.Errorf("%+v", p)
			}
		}
	})
}

// A build has the flags that the user has for all builds, and may add to its go.mod whatever these say.
func TestBuildKeepsFlags(t *testing.T) {
	t.Setenv("GOENV", "off")
	t.Setenv("GOWORK", "here.work") // is of no build
	for _, flags := range []string{"", "-modcacherw -tags=a,b", "-mod=readonly", "-mod=vendor -modfile=other.mod", "'-ldflags=-X a=b c'"} {
		t.Setenv("GOFLAGS", flags)
		b := &builder{dir: t.TempDir()}
		got, err := b.goTool("env", "GOFLAGS")
		if err != nil || !strings.HasPrefix(got, flags) {
			t.Errorf("%q: %q, %v", flags, got, err)
		}
		if err := os.WriteFile(filepath.Join(b.dir, "go.mod"), []byte("module coredns.custom\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.dir, "main.go"), []byte("package main\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := b.goTool("list", "."); err != nil || got != "coredns.custom" {
			t.Errorf("%q: %q, %v", flags, got, err)
		}
	}
}
