package corefile

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestFormat(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"blanks and braces", ".:53\t{\nbind   127.0.0.1\n  cache 30 {\nsuccess  5\n}\n}\n", ".:53 {\n    bind 127.0.0.1\n    cache 30 {\n        success 5\n    }\n}\n"},
		{"comments", "# one\n. { #two\n#  three\nwhoami#four\n}  \n", "# one\n. { #two\n    #  three\n    whoami #four\n}\n"},
		{"empty lines", "\n\n. {\n\nlog\n\n\n\nwhoami\n\n}\n\n\n", ". {\n    log\n\n    whoami\n}\n"},
		{"quotes", ". {\nlog .   \"{remote}  {name}\" \nerr \"a\n   b\" c\n}", ". {\n    log . \"{remote}  {name}\"\n    err \"a\n   b\" c\n}\n"},
		{"escapes", `a "x \" # y" z`, "a \"x \\\" # y\" z\n"},
		{"carriage returns", ". {\r\n  whoami\r\n}\r\n", ". {\n    whoami\n}\n"},
		{"braces on a line", "a {\nb { c\n}\n}\nd", "a {\n    b { c\n    }\n}\nd\n"},
		{"too many", "}\n}\na", "}\n}\na\n"},
		{"none", "", ""},
	} {
		got, err := Format([]byte(tc.in))
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %v, %q, want %q", tc.name, err, got, tc.want)
		}
	}
	if _, err := Format([]byte("a \xff")); err == nil {
		t.Error("what is no text was formatted")
	}
}

// What is formatted means what it did, and stays as it is when it is formatted again.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{". {\n  log \"a\n b\" # c\n}\n", "a\r\nb#c\rd", "\"x\\", "\uFEFFa {", "{\n}\n}\n{ a }", "a\"b c\" \"d\"e"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		once, err := Format(text)
		if err != nil {
			return
		}
		if !sameWords(text, once) {
			t.Errorf("%q became %q", text, once)
		}
		if again, err := Format(once); err != nil || !bytes.Equal(once, again) {
			t.Errorf("%q became %q, and then %q (%v)", text, once, again, err)
		}
	})
}

// Arbitrary text has an outline, a doubt and an explanation, or none, and nothing worse.
func FuzzOutline(f *testing.F) {
	f.Add([]byte("a, b {\nforward . x {\nc\n}\n}\n(s) {\nx\n}\nc {\nimport s\n}"))
	f.Add([]byte("(s) {\nimport s\n}\nimport s"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Contains(text, []byte("/")) || bytes.Contains(text, []byte("*")) || bytes.Contains(text, []byte("..")) {
			return // of no file outside of this folder
		}
		Doubts(Read("Corefile", text), []string{"forward", "grpc", "recurse", "erratic", "whoami"})
		for _, m := range []string{"Unknown directive 'c'", "Unexpected EOF", "File to import not found: t", "x"} {
			err := ErrorAt(Word{File: "Corefile", Line: 2}, "%s", m)
			if got := Explain(err, "Corefile", text, []string{"forward"}); got.Error()[:len(err.Error())] != err.Error() && !errors.As(got, new(*misled)) {
				t.Errorf("%v became %v", err, got)
			}
		}
	})
}

// What is said of a '}' at the end of a line is not said of one that is right.
func TestExplainBrace(t *testing.T) {
	const text = "Wrong argument count or unexpected line ending after '}'"
	for body, odd := range map[string]bool{". {\nheader {\n}\n}": false, ". {\nheader {\na }\n}\n}": true} {
		got := Explain(ErrorAt(Word{File: "Corefile", Line: 3}, text), "Corefile", []byte(body), nil)
		if strings.HasSuffix(got.Error(), text) == odd {
			t.Errorf("%q: %v", body, got)
		}
	}
}

func TestDoubts(t *testing.T) {
	order := []string{"bind", "template", "hosts", "kubernetes", "file", "auto", "forward", "grpc", "recurse", "erratic", "whoami", "view"}
	for _, tc := range []struct {
		name, in string
		want     []string
	}{
		{"none", ". {\nhosts\nforward . 192.0.2.1\n}", nil},
		{"behind forward", ". {\nwhoami\nforward . 192.0.2.1\n}", []string{"Corefile:2 plugin/whoami: no query gets here: 'forward' at Corefile:3 answers all of them"}},
		{"two of them", ". {\nforward . 192.0.2.1\nforward . 192.0.2.2\n}", []string{"Corefile:3 plugin/forward: no query gets here: 'forward' at Corefile:2 answers all of them"}},
		{"other zones", "example.org example.net {\nforward example.org 192.0.2.1\nwhoami\n}", nil},
		{"what grpc passes on", ". {\ngrpc . 192.0.2.1 {\nfallthrough\n}\nwhoami\n}", nil},
		{"other zones than those of erratic", ". {\nerratic example.org\nwhoami\n}", nil},
		{"zones of a folder, and all else", ". {\nauto {\ndirectory d\n}\nforward . 192.0.2.1\n}", nil},
		{"behind erratic", "a.example.org {\nerratic example.org\nwhoami\n}", []string{"Corefile:3 plugin/whoami: no query gets here: 'erratic' at Corefile:2 answers all of them"}},
		{"recurse behind forward", ". {\nforward . 192.0.2.1\nrecurse\n}", []string{"Corefile:3 plugin/recurse: no query gets here: 'forward' at Corefile:2 answers all of them"}},
		{"recurse beside forward", ". {\nforward a.example 192.0.2.1\nrecurse\n}", nil},
		{"all zones", "a.example.org {\nforward example.org 192.0.2.1\nwhoami\n}", []string{"Corefile:3 plugin/whoami: no query gets here: 'forward' at Corefile:2 answers all of them"}},
		{"next", ". {\nforward . 192.0.2.1 {\nnext NXDOMAIN\n}\nforward . 192.0.2.2\n}", nil},
		{"except", ". {\nforward . 192.0.2.1 {\nexcept a\n}\nwhoami\n}", nil},
		{"a file", "example.org {\nfile db\nforward . 192.0.2.1\n}", []string{"Corefile:3 plugin/forward: no query gets here: 'file' at Corefile:2 answers all of them"}},
		{"a file that lets pass", "example.org {\nfile db {\nfallthrough\n}\nforward . 192.0.2.1\n}", nil},
		{"a file of another zone", ". {\nfile db example.org\nforward . 192.0.2.1\n}", nil},
		{"a port", ". {\nforward . tls://192.0.2.1:70000\n}", []string{"Corefile:2 plugin/forward: 'tls://192.0.2.1:70000' has no port that there can be: it must be between 1 and 65535"}},
		{"a port's name", ". {\nforward . 192.0.2.1:nosuch 192.0.2.1:domain tls://192.0.2.1:853%dns.example\n}", []string{"Corefile:2 plugin/forward: '192.0.2.1:nosuch' has no port that there can be: it must be between 1 and 65535"}},
		{"a scheme", ". {\ngrpc . tls://192.0.2.1 grpc://192.0.2.1 unix:///run/dns 192.0.2.1\n}", []string{"Corefile:2 plugin/grpc: 'tls://192.0.2.1' is no address that gRPC can be spoken with (dns, grpc, unix)"}},
		{"no certificate", "quic://. {\nwhoami\n}", []string{"Corefile:1 'quic://.' is served without a certificate: the block has no tls"}},
		{"a view behind", ". {\nwhoami\n}\n. {\nview a {\nexpr true\n}\n}", []string{"Corefile:4 no query gets to this view: the block at Corefile:1 takes all for '.' before"}},
		{"a view before", ". {\nview a {\nexpr true\n}\n}\n. {\nwhoami\n}", nil},
		{"views elsewhere", ". {\nbind 127.0.0.1\nwhoami\n}\n. {\nbind 127.0.0.2\nview a {\nexpr true\n}\n}\n.:54 {\nwhoami\n}\na.:54 {\nview b {\nexpr true\n}\n}", nil},
		{"unset", ". {\nbind {$NO_SUCH_VARIABLE}\n}", []string{"Corefile:2 {$NO_SUCH_VARIABLE} (the environment variable NO_SUCH_VARIABLE is not set)"}},
		{"imported", "(s) {\nforward . 192.0.2.1\n}\n. {\nimport s\nwhoami\n}", []string{"Corefile:6 plugin/whoami: no query gets here: 'forward' at Corefile:2 answers all of them"}},
	} {
		var got []string
		for _, d := range Doubts(Read("Corefile", []byte(tc.in)), order) {
			got = append(got, d.Place+" "+d.Text)
		}
		if len(got) != len(tc.want) || len(got) > 0 && got[0] != tc.want[0] {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
