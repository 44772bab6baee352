package house

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// rules are those of Prometheus in deploy/monitoring/rules.yaml.
type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Record, Alert, Expr, For string
			Labels, Annotations      map[string]string
		}
	}
}

// dashboard is what a test looks at of deploy/monitoring/dashboard.json.
type dashboard struct {
	Templating struct {
		List []struct{ Definition string }
	}
	Panels []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ X, Y, W, H int }
		Targets                  []struct{ Expr, LegendFormat string }
	}
}

var (
	ofUs     = regexp.MustCompile(`[\w:]*\bcoredns_[\w:]+|\w+:coredns_[\w:]+`)
	grouping = regexp.MustCompile(`by \(([^)]*)\)`)
)

// knownMetrics are the names of all metrics of the module.
func knownMetrics(t *testing.T) (names []string) {
	t.Helper()
	for dir := range theIndex()(t).packages {
		if !strings.HasPrefix(dir, "test") && !strings.HasPrefix(dir, "examples") {
			names = append(names, metricNames(t, filepath.Join("..", "..", dir))...)
		}
	}
	return names
}

// checkExpr looks up the metrics that an expression names: defined by the source, or recorded by a rule.
func checkExpr(t *testing.T, where, expr string, known, recorded []string) (looked int) {
	t.Helper()
	for _, name := range ofUs.FindAllString(expr, -1) {
		looked++
		plain := name
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			plain = strings.TrimSuffix(plain, part)
		}
		if !slices.Contains(known, name) && !slices.Contains(known, plain) && !slices.Contains(recorded, name) {
			t.Errorf("%s: there is no metric %s", where, name)
		}
	}
	if looked == 0 && !strings.Contains(expr, "process_") {
		t.Errorf("%s: no metric in %q", where, expr)
	}
	return looked
}

// TestRulesNameMetrics looks up the metrics of rules; an alert says how bad it is, what is, and what to do.
func TestRulesNameMetrics(t *testing.T) {
	var all rules
	if err := yaml.UnmarshalStrict([]byte(page(t, "deploy/monitoring/rules.yaml")), &all); err != nil {
		t.Fatal(err)
	}
	known, alerts := knownMetrics(t), map[string]bool{}
	var recorded []string
	for _, g := range all.Groups {
		for _, r := range g.Rules {
			if r.Record != "" {
				recorded = append(recorded, r.Record)
			}
		}
	}
	for _, g := range all.Groups {
		for _, r := range g.Rules {
			checkExpr(t, r.Alert+r.Record, r.Expr, known, recorded)
			if r.Alert == "" {
				continue
			}
			if alerts[r.Alert] {
				t.Errorf("%s stands there twice", r.Alert)
			}
			alerts[r.Alert] = true
			if s := r.Labels["severity"]; s != "warning" && s != "critical" {
				t.Errorf("%s has the severity %q", r.Alert, s)
			}
			if !strings.HasSuffix(r.Annotations["summary"], ".") || !strings.HasSuffix(r.Annotations["description"], ".") {
				t.Errorf("%s does not say in sentences what is wrong, and what to do: %v", r.Alert, r.Annotations)
			}
		}
	}
	if len(alerts) < 10 || len(recorded) < 5 {
		t.Errorf("only %d alerts and %d records", len(alerts), len(recorded))
	}
}

// TestDashboardNamesMetrics looks up the metrics of the dashboard; legends have labels that the query keeps, and panels do not overlap.
func TestDashboardNamesMetrics(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(page(t, "deploy/monitoring/dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	known, looked, ids := knownMetrics(t), 0, map[int]bool{}
	for _, v := range d.Templating.List {
		if v.Definition != "" {
			looked += checkExpr(t, "a variable", v.Definition, known, nil)
		}
	}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %d, %q, has the id of another, or no title, description or query", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x > 23 {
					t.Fatalf("%s covers %s, or leaves the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, q := range p.Targets {
			looked += checkExpr(t, p.Title, q.Expr, known, nil)
			for _, m := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				if by := grouping.FindStringSubmatch(q.Expr); by != nil && !regexp.MustCompile(`\b`+m[1]+`\b`).MatchString(by[1]) {
					t.Errorf("%s: the legend has %s, but the query keeps %s", p.Title, m[1], by[1])
				}
			}
		}
	}
	if looked < 25 {
		t.Errorf("only %d metrics were looked up", looked)
	}
}
