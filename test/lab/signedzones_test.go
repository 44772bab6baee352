package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// signedLab is a signed root with signed zones below it. BIND's tools sign the most, and two named serve them: one the
// root, one the zones and theirs. Other zones are signed by our plugin dnssec for each reply. Between the servers of the
// zones and the resolvers stands what changes replies (editor). Some zones have faults.
type signedLab struct {
	dir    string
	root   string // DS record of the root
	pen    *pen   // of the root
	zones  []*signedZone
	online string // Corefile of the zones that are signed for each reply
}

// signedZone is a zone below the root. sub below it is not signed, sec is.
type signedZone struct {
	name, algorithm, denial string
	fault                   *zoneFault
	lab                     *signedLab
	pen                     *pen
	rrs                     []dns.RR // of a zone that is signed beforehand
	sibling                 string
}

// online reports whether the zone is signed for each reply.
func (z *signedZone) online() bool { return z.denial == blackLies || z.denial == compact }

// The denials of zones that are signed for each reply (RFC 4470, 9824).
const (
	blackLies = "black lies"
	compact   = "compact"
)

// What is varied: zones go through all of these at their own pace.
var (
	algorithms  = []string{"13", "15", "8", "13", "16", "14", "15", "10", "16", "13", "8"}
	denialKinds = []string{"nsec", "nsec3", "opt-out", "nsec3 20", blackLies, "nsec", compact}
)

func tool(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return strings.TrimSpace(string(out))
}

// key makes a key, and tells its file and its DS record.
func (l *signedLab) key(t *testing.T, zone, algorithm string) (file, ds string) {
	args := []string{"-q", "-a", algorithm, "-f", "KSK"}
	if algorithm == "8" || algorithm == "10" {
		args = append(args, "-b", "1024")
	}
	file = tool(t, l.dir, "dnssec-keygen", append(args, zone)...)
	return file, tool(t, l.dir, "dnssec-dsfromkey", "-2", file+".key")
}

// sign is the records of a signed zone. The one key is made to sign all.
func (l *signedLab) sign(t *testing.T, zone, text, key string, args ...string) (rrs []dns.RR) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(l.dir, key+".key"))
	if err != nil {
		t.Fatal(err)
	}
	l.write(t, "in", text+string(b))
	args = append([]string{"-q", "-z", "-x", "-P", "-O", "full", "-o", zone, "-f", "out"}, args...)
	tool(t, l.dir, "dnssec-signzone", append(args, "in", key)...)
	if b, err = os.ReadFile(filepath.Join(l.dir, "out")); err != nil {
		t.Fatal(err)
	}
	p := dns.NewZoneParser(strings.NewReader(string(b)), zone, "out")
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		rrs = append(rrs, rr)
	}
	if p.Err() != nil {
		t.Fatal(p.Err())
	}
	return rrs
}

const zoneHead = "$TTL 300\n@ SOA ns h 1 3600 600 86400 300\n@ NS ns\nns A 127.9.1.1\n"

// mixed is so many zones, which go through all that is varied.
func mixed(n int) (zones []*signedZone) {
	for i := range n {
		zones = append(zones, &signedZone{algorithm: algorithms[i%len(algorithms)], denial: denialKinds[i%len(denialKinds)], fault: &zoneFaults[i%len(zoneFaults)]})
	}
	return zones
}

// chosen is zones with the faults named, each after one that has none.
func chosen(t *testing.T, faults ...string) []*signedZone {
	t.Helper()
	zones := mixed(2 * len(faults))
	for i, z := range zones {
		z.fault = &zoneFaults[0]
		if i%2 == 1 {
			n := slices.IndexFunc(zoneFaults, func(f zoneFault) bool { return f.name == faults[i/2] })
			if n < 0 {
				t.Fatalf("no fault %q", faults[i/2])
			}
			z.fault = &zoneFaults[n]
		}
	}
	return zones
}

// buildSigned makes zones.
func buildSigned(t *testing.T, zones []*signedZone) *signedLab {
	t.Helper()
	l := &signedLab{dir: t.TempDir(), zones: zones}
	key, ds := l.key(t, ".", "13")
	l.root, l.pen = ds, readPen(t, l.dir, key)
	root, conf := "$TTL 300\n. SOA ns.z0. h.z0. 1 3600 600 86400 300\n. NS a.root.\na.root. A 127.9.0.1\n", ""
	for i, z := range zones {
		z.name, z.lab, z.sibling = fmt.Sprintf("z%d.", i), l, fmt.Sprintf("z%d.", (i+1)%len(zones))
		z.suit()
		delegation, files := l.zone(t, z)
		root += delegation
		conf += files
	}
	l.write(t, "root", zoneText(l.sign(t, ".", root, key), nil))
	l.write(t, "named0.conf", fmt.Sprintf(authorityConf, rootBackend, l.dir)+`zone "." { type primary; file "root"; };`+"\n")
	l.write(t, "named1.conf", fmt.Sprintf(authorityConf, signedBackend, l.dir)+conf)
	l.write(t, "hints", ". 86400 IN NS a.root.\na.root. 86400 IN A 127.9.0.1\n")
	return l
}

// suit makes the zone one that can have its fault.
func (z *signedZone) suit() {
	if z.fault.algorithm != "" {
		z.algorithm = z.fault.algorithm
	}
	switch {
	case z.fault.denial == "nsec", z.fault.denial == "nsec3" && !strings.HasPrefix(z.denial, "nsec3") && z.denial != "opt-out":
		z.denial = z.fault.denial
	case z.online() && (z.fault.zone != nil || z.fault.args != nil || z.fault.unsigned):
		z.denial = "nsec"
	case z.online() && z.algorithm == "16": // our plugin does not sign so
		z.algorithm = "13"
	}
}

const authorityConf = `options {
 listen-on port 53 { %s; };
 listen-on-v6 { none; };
 directory %q;
 pid-file none;
 session-keyfile none;
 recursion no;
 dnssec-validation no;
 minimal-responses yes;
 check-integrity no;
};
controls { };
`

func (l *signedLab) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// text is the zone before it is signed.
func (z *signedZone) text(secDS string) string {
	return zoneHead + "www A 192.0.2.1\nwww TXT text\nwww TYPE65280 \\# 1 00\na.b.c A 192.0.2.1\n*.wild A 192.0.2.4\n*.cn CNAME www\nalias CNAME www\n" +
		"hop CNAME alias\ninsec CNAME www.sub\ndeep CNAME www.sec\nnowhere CNAME nothing\ndn DNAME c\n" +
		"far CNAME www." + z.sibling + "\nfarther CNAME far." + z.sibling + "\n" +
		"sub NS ns.sub\nns.sub A 127.9.1.1\nsec NS ns.sec\nns.sec A 127.9.1.1\nent.sub2 NS ns.sub\n" + secDS + "\n"
}

// zone makes a zone and those below it. It returns what stands in the root, and in the configuration of the server.
func (l *signedLab) zone(t *testing.T, z *signedZone) (delegation, conf string) {
	secKey, secDS := l.key(t, "sec."+z.name, "13")
	l.write(t, "sec."+z.name, zoneText(l.sign(t, "sec."+z.name, zoneHead+"www A 192.0.2.2\n", secKey), nil))
	l.write(t, "sub."+z.name, zoneHead+"www A 192.0.2.3\nback CNAME www."+z.name+"\n")
	key, _ := l.key(t, z.name, z.algorithm)
	z.pen = readPen(t, l.dir, key)
	var args []string
	switch z.denial {
	case "nsec3":
		args = []string{"-3", "-", "-H", "0"}
	case "nsec3 20":
		args = []string{"-3", "AABBCCDD", "-H", "20"}
	case "opt-out":
		args = []string{"-3", "-", "-H", "0", "-A"}
	}
	files := map[string]string{"sec.": "sec.", "sub.": "sub."}
	switch text := z.text(secDS); {
	case z.online():
		l.write(t, "zone."+z.name, "$ORIGIN "+z.name+"\n"+text)
		denial := map[string]string{blackLies: "blacklies", compact: "compact"}[z.denial]
		l.online += fmt.Sprintf("%s:53 {\n bind %s\n dnssec {\n  key file %s/%s\n  denial %s\n }\n file %s/zone.%s {\n  reload 0\n }\n}\n",
			z.name, onlineBackend, l.dir, key, denial, l.dir, z.name)
	case z.fault.unsigned:
		l.write(t, "zone."+z.name, text)
		files["zone."] = ""
	default:
		z.rrs = l.sign(t, z.name, text, key, append(args, z.fault.args...)...)
		if z.fault.zone != nil {
			z.rrs = z.fault.zone(z, z.rrs)
		}
		l.write(t, "zone."+z.name, zoneText(z.rrs, nil))
		files["zone."] = ""
	}
	for file, name := range files {
		conf += fmt.Sprintf("zone %q { type primary; file %q; };\n", name+z.name, file+z.name)
	}
	delegation = fmt.Sprintf("%s NS ns.%s\nns.%s A 127.9.1.1\n", z.name, z.name, z.name)
	for _, ds := range z.delegation() {
		ds.Hdr.Ttl = signedTTL
		delegation += ds.String() + "\n"
	}
	return delegation, conf
}

// delegation is the DS records of the zone.
func (z *signedZone) delegation() []*dns.DS {
	if z.fault.ds == nil {
		return []*dns.DS{z.digest(dns.SHA256)}
	}
	return z.fault.ds(z)
}

// digest is the zone's DS record of a kind.
func (z *signedZone) digest(kind uint8) *dns.DS { return z.pen.key.ToDS(kind) }
