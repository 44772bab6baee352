package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
)

// TestDraw: each figure stands where the axes say, and the picture is well-formed.
func TestDraw(t *testing.T) {
	c := curve{name: "x", title: "Cost <of> things", of: "things", unit: "s"}
	c.title = strings.NewReplacer("<", "(", ">", ")").Replace(c.title)
	text := draw(c, map[string][]point{"a": {{1, 0.1}, {10, 1}, {100, 10}}, "b": {{1, 0}}})
	circles := 0
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			circles++
		}
	}
	if circles != 4 {
		t.Errorf("%d figures are drawn, want 4", circles)
	}
	a := newAxis(0, 300)
	for _, v := range []float64{2, 500} { // from 1 to 1000
		a.include(v)
	}
	for v, want := range map[float64]float64{1: 0, 10: 100, 1000: 300} {
		if got := a.at(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v is at %v, want %v", v, got, want)
		}
	}
	if ticks := a.ticks(); len(ticks) != 4 || short(ticks[3]) != "1k" {
		t.Errorf("ticks %v", ticks)
	}
}

// TestGrowthConfigurations: with many zones or views, each of them stands in the configuration.
func TestGrowthConfigurations(t *testing.T) {
	s := settings{Port: 53, Zone: "/zones", Origin: "example.org", Dir: t.TempDir(), Count: 3, Spare: []int{1, 2, 3}, Zones: []string{"a.example", "b.example"}}
	for name, want := range map[string][]string{
		"knotd.conf":     {"domain: a.example", `file: "/zones/db.b.example"`},
		"nsd.conf":       {"name: a.example", `zonefile: "/zones/db.b.example"`},
		"zones.corefile": {`directory /zones db\.(.*) {1}`},
		"views.corefile": {"view v0 ", "view v1 ", "file /zones example.org"},
	} {
		path, err := writeConfig(name, s)
		if err != nil {
			t.Fatal(err)
		}
		text := readText(t, path)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s has no %q:\n%s", name, w, text)
			}
		}
	}
	s.Zones = nil
	path, err := writeConfig("nsd.conf", s)
	if err != nil {
		t.Fatal(err)
	}
	if text := readText(t, path); strings.Count(text, "zone:") != 1 || !strings.Contains(text, `zonefile: "/zones"`) {
		t.Errorf("with one zone:\n%s", text)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
