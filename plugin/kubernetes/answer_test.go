package kubernetes

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

var update = flag.Bool("update", false, "write the answers that come into the scripts in testdata")

// script is a file of questions with the answers that are expected.
//
//	# a remark
//	kubernetes cluster.local {    the stanza that answers what follows, up to a line "}"
//	}
//	? NAME TYPE
//	the reply, as describe has it, up to an empty line
type script struct {
	path  string
	parts []string // paragraphs
}

func scripts(t testing.TB) (all []script) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, script{path, strings.Split(strings.TrimSpace(string(b)), "\n\n")})
	}
	return all
}

// each calls f with each question and the answer expected; what f returns takes its place when scripts are written.
func (s script) each(t testing.TB, f func(k *Kubernetes, qname string, typ uint16, want string) string) {
	t.Helper()
	var k *Kubernetes
	for i, part := range s.parts {
		switch {
		case strings.HasPrefix(part, "kubernetes"):
			k = serving(t, part)
		case strings.HasPrefix(part, "? "):
			question, want, _ := strings.Cut(part, "\n")
			f0 := strings.Fields(question)
			typ, ok := dns.StringToType[f0[2]]
			if !ok || len(f0) != 3 {
				t.Fatalf("%s: %s", s.path, question)
			}
			s.parts[i] = question + "\n" + f(k, f0[1], typ, want)
		}
	}
	if *update {
		if err := os.WriteFile(s.path, []byte(strings.Join(s.parts, "\n\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestScripts asks all questions of testdata in the message lane.
func TestScripts(t *testing.T) {
	for _, s := range scripts(t) {
		t.Run(filepath.Base(s.path), func(t *testing.T) {
			s.each(t, func(k *Kubernetes, qname string, typ uint16, want string) string {
				got := describe(ask(t, k, qname, typ))
				if got != want && !*update {
					t.Errorf("%s\n got %s\nwant %s", questionText(qname, typ), indent(got), indent(want))
				}
				return got
			})
		})
	}
}

func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n     ") }

// TestLanesAgree asks all questions of testdata in both lanes, as they are written and in mixed case, and sees how many of
// them the wire lane answers by itself.
func TestLanesAgree(t *testing.T) {
	asked, answered := 0, 0
	for _, s := range scripts(t) {
		s.each(t, func(k *Kubernetes, qname string, typ uint16, want string) string {
			for _, name := range []string{qname, mixed(qname)} {
				got, outcome := askWire(t, k, name, typ)
				asked++
				if outcome != wire.Done {
					continue
				}
				answered++
				if want := describe(ask(t, k, name, typ)); describe(got) != want {
					t.Errorf("%s\nwire %s\nmsg  %s", questionText(name, typ), indent(describe(got)), indent(want))
				}
			}
			return want
		})
	}
	t.Logf("%d of %d questions were answered in the wire lane", answered, asked)
	if answered*100 < asked*85 {
		t.Errorf("only %d of %d questions were answered in the wire lane", answered, asked)
	}
}

// mixed turns every third letter of a name into upper case.
func mixed(name string) string {
	b := []byte(name)
	for i := 0; i < len(b); i += 3 {
		if b[i] >= 'a' && b[i] <= 'z' {
			b[i] -= 'a' - 'A'
		}
	}
	return string(b)
}
