package validator

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
)

// settings is what the directive configures.
type settings struct {
	zones      []string // wire form, lower case
	root       string   // that paths are relative to
	conf       validate.Config
	anchors    map[string]*validate.Anchor
	nta        map[string]time.Duration
	ntaFile    string
	state      string // file
	follow     bool   // keys of anchors (RFC 5011)
	signal     bool
	sha1       string // "": as it was usual at validation_time
	noAlg      []int
	noDigest   []int
	permissive bool
	logBogus   bool
	sentinel   bool
	fixed      time.Time // zero: the time that it is

	mu     sync.Mutex
	second int64 // of the last line about a bogus reply
	lines  int   // in that second
}

const longestNTA = 7 * 24 * time.Hour // RFC 7646 §2

func defaults() *settings {
	s := &settings{
		anchors: map[string]*validate.Anchor{}, nta: map[string]time.Duration{}, sentinel: true, follow: true, signal: true,
		conf: validate.Config{
			Digests: validate.DefaultDigests(), Iterations: unset, SkewLeast: time.Hour, SkewMost: 24 * time.Hour, BogusTTL: time.Minute,
			Budget: validate.DefaultBudget(),
		},
	}
	s.conf.Budget.Hashes = unset
	return s
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Args: corefile.Args[settings]{Syntax: "[ZONES...]", Max: -1, Set: setZones},
	Options: corefile.Table[settings]{
		corefile.Row("anchor", "RR|file FILE", "a DS or DNSKEY record that is believed, or a file of such", 1, 2, setAnchor),
		corefile.Row("state", "FILE", "where the states of anchors' keys are kept", 1, 1, func(s *settings, l *corefile.Line) error {
			s.state = s.file(l.Args[0])
			return nil
		}),
		corefile.Enum("rfc5011", []string{"on", "off"}, "follow the keys of anchors", func(s *settings, w string) { s.follow = w == "on" }),
		corefile.Row("nta", "NAME [DURATION]", "do not validate the name, nor what is below it (RFC 7646)", 1, 2, setNTA),
		corefile.Row("nta_file", "FILE", "where those are kept that are added at run time", 1, 1, func(s *settings, l *corefile.Line) error {
			s.ntaFile = s.file(l.Args[0])
			return nil
		}),
		corefile.Enum("sha1", []string{"insecure", "validate"}, "what signatures with SHA-1 are worth (RFC 9905)", func(s *settings, w string) { s.sha1 = w }),
		corefile.Row("disable_algorithm", "N...", "algorithms of keys that count as unknown", 1, -1, func(s *settings, l *corefile.Line) error {
			return octets("disable_algorithm", &s.noAlg, l.Args)
		}),
		corefile.Row("disable_digest", "N...", "digests of DS records that count as unknown", 1, -1, func(s *settings, l *corefile.Line) error {
			return octets("disable_digest", &s.noDigest, l.Args)
		}),
		corefile.Int("nsec3_iterations", 0, 150, "denials with more iterations are insecure (RFC 9276)", func(s *settings, n int) { s.conf.Iterations = n }),
		corefile.Row("skew", "MIN MAX", "least and most that clocks may differ by", 2, 2, setSkew),
		corefile.Duration("bogus_ttl", time.Second, 5*time.Minute, "how long keys that do not hold are kept", func(s *settings, d time.Duration) { s.conf.BogusTTL = d }),
		corefile.Row("budget", "NAME N", "work that a query may cause", 2, 2, setBudget),
		corefile.Flag("permissive", "let bogus replies pass, without AD", func(s *settings) { s.permissive = true }),
		corefile.Flag("log_bogus", "log bogus replies, ten a second at most", func(s *settings) { s.logBogus = true }),
		corefile.Enum("sentinel", []string{"on", "off"}, "tell clients which keys of the root are believed (RFC 8509)", func(s *settings, w string) { s.sentinel = w == "on" }),
		corefile.Enum("signal", []string{"on", "off"}, "tell the servers of anchors which keys are believed (RFC 8145)", func(s *settings, w string) { s.signal = w == "on" }),
		corefile.Row("validation_time", "RFC3339|UNIX", "validate as it was right at this time, for laboratories", 1, 1, setTime),
	},
})

func setZones(s *settings, l *corefile.Line) error {
	zones, err := plugin.ZonesFromArgs(l.Args, l.Controller().ServerBlockKeys)
	if err != nil {
		return err
	}
	for _, z := range zones {
		name, err := rrset.Name(z)
		if err != nil {
			return fmt.Errorf("invalid zone %q", z)
		}
		s.zones = append(s.zones, name)
	}
	return nil
}

func setAnchor(s *settings, l *corefile.Line) error {
	if len(l.Args) == 1 {
		rr, err := dns.NewRR(l.Args[0])
		if err == nil && rr == nil {
			err = fmt.Errorf("there is no record")
		}
		if err == nil {
			err = s.anchor(rr)
		}
		if err != nil {
			return fmt.Errorf("anchor %q: %w", l.Args[0], err)
		}
		return nil
	}
	if l.Args[0] != "file" {
		return l.CountErr()
	}
	path := s.file(l.Args[1])
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	n, p := 0, dns.NewZoneParser(zonefile.Unmarked(f), ".", path)
	p.SetDefaultTTL(3600)
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		if err := s.anchor(rr); err != nil {
			return fmt.Errorf("anchor %q: %w", rr, err)
		}
		n++
	}
	if p.Err() == nil && n == 0 {
		return fmt.Errorf("anchor file %q has no record", path)
	}
	return p.Err()
}

// file is a path relative to the root of the server block.
func (s *settings) file(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.root, path)
	}
	return filepath.Clean(path)
}

// What was copied in part speaks for no key: all below it would be bogus.
var (
	digestOctets = map[uint8]int{dns.SHA1: 20, dns.SHA256: 32, dns.SHA384: 48}
	keyOctets    = map[uint8]int{dns.ECDSAP256SHA256: 64, dns.ECDSAP384SHA384: 96, dns.ED25519: 32, dns.ED448: 57}
)

// anchor takes a record that is believed.
func (s *settings) anchor(rr dns.RR) error {
	name, err := rrset.Name(rr.Header().Name)
	if err != nil {
		return err
	}
	b := make([]byte, dns.Len(rr)+16)
	n, err := dns.PackRR(rr, b, 0, nil, false)
	if err != nil {
		return err
	}
	if n < len(name)+10 {
		return fmt.Errorf("it is no whole record")
	}
	rdata, a := string(b[len(name)+10:n]), s.anchors[name]
	if a == nil {
		a = &validate.Anchor{}
	}
	algorithm := uint8(0)
	switch k := rr.(type) {
	case *dns.DS:
		if want, known := digestOctets[k.DigestType]; known && len(k.Digest) != 2*want {
			return fmt.Errorf("a digest of type %d has %d octets, not %d", k.DigestType, want, len(k.Digest)/2)
		}
		a.DS, algorithm = append(a.DS, rdata), k.Algorithm
	case *dns.DNSKEY:
		if k.Flags&dns.ZONE == 0 || k.Flags&dns.REVOKE != 0 || k.Protocol != 3 {
			return fmt.Errorf("the key is revoked, or none of a zone")
		}
		if want, known := keyOctets[k.Algorithm]; known && len(rdata) != 4+want {
			return fmt.Errorf("a key of algorithm %d has %d octets, not %d", k.Algorithm, want, len(rdata)-4)
		}
		a.Keys, algorithm = append(a.Keys, rdata), k.Algorithm
	default:
		return fmt.Errorf("it is neither DS nor DNSKEY")
	}
	if algorithm == dns.RSASHA1 || algorithm == dns.RSASHA1NSEC3SHA1 {
		if a.Own == nil {
			a.Own = map[uint8]bool{}
		}
		a.Own[algorithm] = true
	}
	s.anchors[name] = a
	return nil
}

func setNTA(s *settings, l *corefile.Line) (err error) {
	name, err := rrset.Name(l.Args[0])
	if err != nil || l.Args[0] == "" { // which is not the root, but a variable of the environment that is not set, say
		return fmt.Errorf("invalid name %q", l.Args[0])
	}
	d := time.Hour
	if len(l.Args) > 1 {
		if d, err = corefile.ParseDuration("nta", l.Args[1], time.Second, longestNTA); err != nil {
			return err
		}
	}
	s.nta[name] = d
	return nil
}

func octets(what string, to *[]int, args []string) error {
	for _, a := range args {
		n, err := corefile.ParseInt(what, a, 0, 255)
		if err != nil {
			return err
		}
		*to = append(*to, n)
	}
	return nil
}

func setSkew(s *settings, l *corefile.Line) (err error) {
	if s.conf.SkewLeast, err = corefile.ParseDuration("skew", l.Args[0], 0, 7*24*time.Hour); err != nil {
		return err
	}
	if s.conf.SkewMost, err = corefile.ParseDuration("skew", l.Args[1], 0, 7*24*time.Hour); err != nil {
		return err
	}
	if s.conf.SkewLeast > s.conf.SkewMost {
		return fmt.Errorf("skew %s is more than %s", l.Args[0], l.Args[1])
	}
	return nil
}

func setBudget(s *settings, l *corefile.Line) error {
	b := &s.conf.Budget
	all := []struct {
		name string
		of   *int
	}{
		{"rrsigs_per_rrset", &b.Sigs}, {"keys_per_tag", &b.Tagged}, {"trials", &b.Trials}, {"checks", &b.Checks}, {"ds_per_zone", &b.DS},
		{"dnskeys_per_zone", &b.Keys}, {"nsec3_records", &b.NSEC3}, {"nsec3_hashes", &b.Hashes}, {"rrsets_any", &b.Any}, {"fetches", &b.Fetches},
	}
	var names []string
	for _, x := range all {
		if x.name == l.Args[0] {
			n, err := corefile.ParseInt("budget "+x.name, l.Args[1], 1, 1000)
			*x.of = n
			return err
		}
		names = append(names, x.name)
	}
	return fmt.Errorf("unknown budget %q: one of %s", l.Args[0], strings.Join(names, ", "))
}

func setTime(s *settings, l *corefile.Line) error {
	if n, err := strconv.ParseInt(l.Args[0], 10, 64); err == nil {
		s.fixed = time.Unix(n, 0)
		return nil
	}
	t, err := time.Parse(time.RFC3339, l.Args[0])
	if err != nil {
		return fmt.Errorf("invalid time %q: as 2006-01-02T15:04:05Z, or seconds since 1970", l.Args[0])
	}
	s.fixed = t
	return nil
}

// finish makes of the options what holds for all replies.
func (s *settings) finish() error {
	if err := s.trustRoot(); err != nil {
		return err
	}
	s.limitNSEC3()
	s.conf.Anchors, s.conf.Algorithms = s.anchors, validate.DefaultAlgorithms(s.countsSHA1())
	for _, n := range s.noAlg {
		s.conf.Algorithms[n] = false
		for _, a := range s.anchors {
			delete(a.Own, uint8(n))
		}
	}
	for _, n := range s.noDigest {
		s.conf.Digests[n] = false
	}
	return nil
}

// warnUnusable tells of zones whose anchors cannot be used: they count as unsigned.
func (s *settings) warnUnusable() {
	for name, a := range s.anchors {
		serves := func(algorithm uint8) bool { return s.conf.Algorithms[algorithm] || a.Own[algorithm] }
		if !slices.ContainsFunc(a.DS, func(r string) bool { return serves(r[2]) && s.conf.Digests[r[3]] }) &&
			!slices.ContainsFunc(a.Keys, func(r string) bool { return serves(r[3]) }) {
			logger.Warningf("No anchor of %s is of an algorithm and digest that are validated: its zone counts as unsigned", rrset.Text(name))
		}
	}
}

// now is the time by which signatures are judged.
func (s *settings) now() time.Time {
	if !s.fixed.IsZero() {
		return s.fixed
	}
	return clock.Now()
}

const linesPerSecond = 10

// mayLog reports whether one more line may be logged in this second.
func (s *settings) mayLog() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now().Unix(); now != s.second {
		s.second, s.lines = now, 0
	}
	s.lines++
	return s.lines <= linesPerSecond
}
