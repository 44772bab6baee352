// Command sbom tells what a program of Go was built from: its bill of materials, as JSON of CycloneDX 1.5, on standard output.
//
//	go run ./deploy/sbom VERSION FILE
//
// It reads what the linker wrote into FILE, so that it tells the modules that are in there, and not those of a go.mod.
// The program may be one for another system. The same file gives the same text, which has no time and no serial number.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

// bill is the part of a CycloneDX document that is told here.
type bill struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

// component is the program, a module, or the standard library. Ref is unique in the document.
type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	URL        string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"` // hexadecimal
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION FILE")
		os.Exit(2)
	}
	info, err := buildinfo.ReadFile(os.Args[2])
	if err != nil {
		fmt.Fprintf(os.Stderr, "sbom: what %s was built from: %v\n", os.Args[2], err)
		os.Exit(1)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	if err := out.Encode(billOf(info, os.Args[1])); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// billOf is the bill of a program that bears a version.
func billOf(info *debug.BuildInfo, version string) bill {
	program := moduleComponent(&debug.Module{Path: info.Main.Path, Version: version})
	program.Type = "application"
	for _, s := range info.Settings {
		// Paths of the machine and flags of the linker say nothing of what is in it.
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "-tags" || s.Key == "CGO_ENABLED" {
			program.Properties = append(program.Properties, property{"build:" + s.Key, s.Value})
		}
	}
	std := &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}
	all := []component{moduleComponent(std)}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, moduleComponent(m))
	}
	on := dependency{Ref: program.Ref, On: make([]string, len(all))}
	for i, c := range all {
		on.On[i] = c.Ref
	}
	return bill{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{program}, Components: all, Dependencies: []dependency{on}}
}

func moduleComponent(m *debug.Module) component {
	url := "pkg:golang/" + m.Path + "@" + m.Version
	c := component{Ref: url, Type: "library", Name: m.Path, Version: m.Version, URL: url}
	// The sum of go.sum is the SHA-256 of the list of files with theirs.
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		if b, err := base64.StdEncoding.DecodeString(sum); err == nil {
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(b)}}
		}
	}
	return c
}
