package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// delv is BIND's validator. It gets what it checks from a named that resolves and does not validate.
type delv struct{ anchors string }

func newDelv(t *testing.T, l *signedLab) *delv {
	t.Helper()
	l.write(t, "resolver.conf", fmt.Sprintf(namedConf, 5403, l.dir, filepath.Join(l.dir, "hints")))
	program(t, "named", "-4", "-f", "-L", filepath.Join(l.dir, "resolver.log"), "-c", filepath.Join(l.dir, "resolver.conf"))
	awaitSigned(t, l, "127.0.0.1:5403")
	ds := record(l.root).(*dns.DS)
	d := &delv{filepath.Join(l.dir, "anchors")}
	text := fmt.Sprintf("trust-anchors { . static-ds %d %d %d %q; };\n", ds.KeyTag, ds.Algorithm, ds.DigestType, ds.Digest)
	if err := os.WriteFile(d.anchors, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

// States of data as delv has them. It tells no return code of what does not hold.
const (
	secure   = "secure"
	insecure = "insecure"
	failed   = "failed"
)

// ask is what delv says of a name.
func (d *delv) ask(name string, typ uint16) string {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // in some zones it does not come to an end
	defer cancel()
	cmd := exec.CommandContext(ctx, "delv", "-a", d.anchors, "+root=.", "@127.0.0.1", "-p", "5403", "-q", name, "-t", dns.Type(typ).String())
	out, _ := cmd.CombinedOutput()
	text := string(out)
	switch {
	case ctx.Err() != nil:
		return failed
	case strings.Contains(text, "resolution failed") && !strings.Contains(text, "resolution failed: ncache"),
		strings.Contains(text, "pending validation"):
		return failed
	case strings.Contains(text, "unsigned answer"), strings.Contains(text, "negative response, unsigned"):
		return insecure
	case strings.Contains(text, "fully validated"):
		return secure
	}
	return strings.TrimSpace(text)
}

// status is the state of data by what a resolver said.
func status(said string) string {
	switch {
	case strings.HasPrefix(said, "SERVFAIL"):
		return failed
	case strings.Contains(said, " AD "):
		return secure
	case strings.HasPrefix(said, "NOERROR"), strings.HasPrefix(said, "NXDOMAIN"):
		return insecure
	}
	return said
}
