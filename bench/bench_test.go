package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestWorkloads runs every workload for a moment, on little data.
func TestWorkloads(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("CPU time and memory are read from /proc")
	}
	path := filepath.Join(t.TempDir(), "coredns")
	if out, err := exec.Command("go", "build", "-o", path, "..").CombinedOutput(); err != nil {
		t.Fatalf("building the server: %v\n%s", err, out)
	}
	b := bench{
		sizes: sizes{
			smallNames: 100, largeNames: 2000, hitNames: 200, services: 100,
			flatQueries: 1000, largeQueries: 1000, walks: 50,
		},
		seed: 1, rounds: 1, length: 200 * time.Millisecond, clients: 2, window: 8, threads: 1, dir: t.TempDir(),
	}
	var err error
	if b.programs, err = findPrograms(path, "", t.Output()); err != nil {
		t.Fatal(err)
	}
	t.Run("a zone read again", func(t *testing.T) {
		c, err := selectCurves("records-reread", curves())
		if err != nil {
			t.Fatal(err)
		}
		if worst, err := b.point(c[0], b.programs[0], 1000); err != nil || worst <= 0 || worst > 1000 {
			t.Errorf("p99 is %v ms, %v", worst, err)
		}
	})
	for _, w := range workloads(b.sizes) {
		t.Run(w.name, func(t *testing.T) {
			rows, err := b.measure(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) != 1 || len(rows[0].rounds) != 1 {
				t.Fatalf("one server and one round were asked for: %+v", rows)
			}
			got := rows[0].rounds[0].tally
			if got.answered == 0 || got.wrong != 0 {
				t.Errorf("%d answered, %d not as expected (%s)", got.answered, got.wrong, got.shares())
			}
			if rows[0].memory == 0 || rows[0].ready == 0 {
				t.Errorf("memory %d, ready after %v", rows[0].memory, rows[0].ready)
			}
		})
	}
}

func TestSelectWorkloads(t *testing.T) {
	all := workloads(fullSizes)
	if got, err := selectWorkloads("all", all); err != nil || len(got) != 14 {
		t.Errorf("%d workloads, %v", len(got), err)
	}
	got, err := selectWorkloads("tcp, k8s", all)
	if err != nil || len(got) != 2 || got[0].name != "tcp" || got[1].name != "k8s" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := selectWorkloads("doq", all); err == nil || !strings.Contains(err.Error(), "auth-small") {
		t.Errorf("error %v does not list what there is", err)
	}
}

func TestFindPrograms(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no program to find")
	}
	for _, c := range []struct {
		peers, found, out, err string
	}{
		{peers: "", found: "coredns=coredns"},
		{peers: "old=" + sh + " knotd=" + sh, found: "coredns=coredns old=coredns knotd=knotd"},
		{peers: "nsd=./none,new=" + sh, found: "coredns=coredns new=coredns", out: "nsd is left out"},
		{peers: "bind", err: "not known"},
		{peers: "old=" + sh + " old=" + sh, err: "two servers"},
	} {
		var out bytes.Buffer
		programs, err := findPrograms(sh, c.peers, &out)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: error %v, not %q", c.peers, err, c.err)
			}
			continue
		}
		var found []string
		for _, p := range programs {
			found = append(found, p.name+"="+p.product)
		}
		if got := strings.Join(found, " "); err != nil || got != c.found || !strings.HasPrefix(out.String(), c.out) {
			t.Errorf("%q: %s, %q, %v", c.peers, got, out.String(), err)
		}
	}
	if _, err := findPrograms("./none", "", &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("error %v does not say how to get the server", err)
	}
}

func TestConfigurations(t *testing.T) {
	s := settings{Port: 40053, Upstream: 40054, Behind: 1, Zone: "some.zone", Origin: smallOrigin, Threads: 2, Spare: []int{1, 2, 3}}
	names := map[string]bool{}
	for _, w := range workloads(fullSizes) {
		names[w.corefile] = true
		for _, p := range w.peers {
			if known, ok := products[p]; !ok {
				t.Errorf("%s: peer %s is not known", w.name, p)
			} else if known.config != "" {
				names[known.config] = true
			}
		}
	}
	if len(names) != 9 {
		t.Errorf("%d configurations in use: %v", len(names), names)
	}
	for name := range names {
		var text bytes.Buffer
		if err := configurations.ExecuteTemplate(&text, name, s); err != nil {
			t.Error(err)
		}
		for _, want := range []string{"40053", "127.0.0.1"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s lacks %s:\n%s", name, want, text.String())
			}
		}
		if zone := strings.Contains(text.String(), s.Zone); zone == strings.Contains(text.String(), "40054") && name != "cluster.corefile" {
			t.Errorf("%s has neither or both of zone and upstream", name)
		}
	}
}

func TestTable(t *testing.T) {
	var m measure
	m.tally.answered, m.tally.sent, m.tally.lost = 2000, 2001, 1
	m.tally.rcodes[rcodeNXDomain] = 2000
	m.tally.waits = []time.Duration{time.Millisecond, 3 * time.Millisecond}
	m.took, m.cpu = time.Second, 0.01
	n := m
	n.cpu = 0.03
	var out strings.Builder
	err := writeTable(&out, "auth-small", []row{{"knotd", 250 * time.Millisecond, 5 << 20, []measure{m, n}}}, true)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err != nil || len(lines) != 3 {
		t.Fatalf("%v\n%s", err, out.String())
	}
	want := "knotd 2000 5.00 10.00 2 0 5 0.25 3000 3000 NXDOMAIN 100.0%"
	if got := strings.Join(strings.Fields(lines[2]), " "); got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
