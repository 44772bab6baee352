package dnsutil

import "testing"

func TestTypeOf(t *testing.T) {
	for text, want := range map[string]int{
		"A": 1, "aaaa": 28, "TYPE65280": 65280, "type1": 1, "TYPE0": 0, "": -1, "TYPE": -1, "TYPE65536": -1, "TYPE-1": -1, "FOO": -1, "TYPEA": -1, "1": -1,
	} {
		got, ok := TypeOf(text)
		if ok != (want >= 0) || ok && int(got) != want {
			t.Errorf("%q: %d %t", text, got, ok)
		}
	}
}
