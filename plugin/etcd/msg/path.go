package msg

import (
	"path"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
)

// Path returns the key of the name s under prefix: "/skydns/local/skydns/x" for "x.skydns.local." and "skydns".
func Path(s, prefix string) string {
	return join(prefix, dns.SplitDomainName(s))
}

// PathWithWildcard is Path, but of the part of s behind its last label that is "*" or "any", which stand for whatever
// there is: "/skydns/local" for "x.*.local.". It tells whether there is such a label.
func PathWithWildcard(s, prefix string) (string, bool) {
	labels := dns.SplitDomainName(s)
	for i, label := range slices.Backward(labels) {
		if label == "*" || label == "any" {
			return join(prefix, labels[i+1:]), true
		}
	}
	return join(prefix, labels), false
}

// Domain returns the name of a key whose prefix is its first element, fully qualified: "x.skydns.local." for
// "/skydns/local/skydns/x".
func Domain(s string) string {
	_, key, _ := strings.Cut(strings.TrimPrefix(s, "/"), "/")
	labels := strings.FieldsFunc(key, func(r rune) bool { return r == '/' }) // a slash too many makes no label
	slices.Reverse(labels)
	return dnsutil.Join(labels...)
}

// join puts labels, the last one first, below prefix.
func join(prefix string, labels []string) string {
	var b strings.Builder
	if prefix = path.Clean("/" + prefix); prefix != "/" {
		b.WriteString(prefix)
	}
	for _, label := range slices.Backward(labels) {
		b.WriteByte('/')
		b.WriteString(label)
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}
