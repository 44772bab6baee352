package main

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed conf
var confFS embed.FS

var configurations = template.Must(template.ParseFS(confFS, "conf/*"))

// settings fill in the configuration of a server.
type settings struct {
	Port     int
	Upstream int    // port of the upstreams, 0 if the workload has none
	Behind   int    // how many upstreams there are
	Zone     string // path of the zone file
	Origin   string
	Dir      string // the server's own
	Threads  int    // of servers that must be told
	Log      bool   // log each query
	Spare    []int  // three more ports, for metrics and the like
	Count    int    // of what grows
	Stub     string // the zone that the upstream is an authority for, empty if it is a resolver
	Anchor   string // the DS record of Stub, empty if it is not signed
	Zones    []string
}

// Servers are the upstreams: each has an address of its own.
func (s settings) Servers() (all []string) {
	for i := range s.Behind {
		all = append(all, fmt.Sprintf("127.0.0.%d:%d", 1+i, s.Upstream))
	}
	return all
}

// Silent is the address of the upstream that never answers.
func (s settings) Silent() string { return fmt.Sprintf("127.0.0.%d", 1+s.Behind) }

// Stanzas are the zones that are forwarded one by one.
func (s settings) Stanzas() (all []string) {
	for i := range stanzas {
		all = append(all, missZone(stanzas-1-i))
	}
	return all
}

// Views is a number for each view but the last block, which takes what they do not.
func (s settings) Views() []int {
	all := make([]int, max(0, s.Count-1))
	for i := range all {
		all[i] = i % 250
	}
	return all
}

// File is the file of one of many zones.
func (s settings) File(zone string) string { return filepath.Join(s.Zone, "db."+zone) }

// writeConfig writes the configuration called name into s.Dir and returns its path.
func writeConfig(name string, s settings) (string, error) {
	path := filepath.Join(s.Dir, name)
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	if err := configurations.ExecuteTemplate(f, name, s); err != nil {
		f.Close()
		return "", fmt.Errorf("configuration %s: %w", name, err)
	}
	return path, f.Close()
}

// product is a server program that the benchmark knows how to start.
type product struct {
	config string   // its configuration; that of CoreDNS depends on the workload
	args   []string // before the path of the configuration
}

var products = map[string]product{
	"coredns": {args: []string{"-conf"}},
	"knotd":   {"knotd.conf", []string{"-c"}},
	"nsd":     {"nsd.conf", []string{"-d", "-c"}},
	"unbound": {"unbound.conf", []string{"-d", "-c"}},
	"dnsdist": {"dnsdist.conf", []string{"--supervised", "--disable-syslog", "-C"}},
}
