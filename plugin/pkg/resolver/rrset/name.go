package rrset

import (
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Root is the root's name.
const Root = "\x00"

// Name is the wire form, in lower case, of a name in presentation form.
func Name(text string) (string, error) {
	b, err := wire.LowerName(text)
	return string(b), err
}

// MustName is Name for constants; it panics on an error.
func MustName(text string) string { return Lower(string(wire.MustName(text))) }

// Text is the presentation form of a name, with its final dot.
func Text(name string) string { return wire.Text([]byte(name)) }

// Parent is name without its first label; the root's parent is the root.
func Parent(name string) string {
	if len(name) <= 1 {
		return Root
	}
	return name[1+int(name[0]):]
}

// Labels is the number of labels, the root's not counted.
func Labels(name string) (n int) {
	for i := 0; i < len(name) && name[i] != 0; i += int(name[i]) + 1 {
		n++
	}
	return n
}

// Below reports whether name is zone or a name below it.
func Below(name, zone string) bool {
	if len(zone) > len(name) || name[len(name)-len(zone):] != zone {
		return false
	}
	i := 0
	for i < len(name)-len(zone) {
		i += int(name[i]) + 1
	}
	return i == len(name)-len(zone)
}

// Minimisation tells names from the right: the root is no label of any.

// Last is the last n labels of name: name itself if it has no more.
func Last(name string, n int) string {
	for skip := Labels(name) - n; skip > 0; skip-- {
		name = Parent(name)
	}
	return name
}

// FirstLabel is the octets of the first label, empty for the root.
func FirstLabel(name string) string {
	if len(name) <= 1 {
		return ""
	}
	return name[1 : 1+int(name[0])]
}

// The rest of the name keeps its labels; only the suffix changes, which is what makes
// the alias of a DNAME one for all names below it.

// Replace is name with the suffix from, which it has, replaced by to (RFC 6672 §2.2).
// It reports false if the new name would be too long.
func Replace(name, from, to string) (string, bool) {
	n := len(name) - len(from)
	if n+len(to) > wire.MaxName {
		return "", false
	}
	return name[:n] + to, true
}
