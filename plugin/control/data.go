package control

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/rcode"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// caches is the plugins that keep answers.
func (a *api) caches() (all []status.Cache) {
	for _, h := range a.handlers() {
		if c, ok := h.(status.Cache); ok {
			all = append(all, c)
		}
	}
	return all
}

// match reads the parameters name, zone, all and type. It reports false if none of the first three is there.
func match(r *http.Request) (m status.Match, ok bool, err error) {
	name, zone := r.FormValue("name"), r.FormValue("zone")
	all, err := truth(r.FormValue, "all")
	if err != nil {
		return m, false, err
	}
	if name != "" && zone != "" || all && name+zone != "" {
		return m, false, refusef("name, zone and all exclude each other")
	}
	m.Below = zone != "" || all
	if m.Type, err = typeOf(r.FormValue("type")); err != nil {
		return m, false, err
	}
	if name+zone == "" && !all {
		return m, false, nil
	}
	if m.Name, err = wire.LowerName(dns.Fqdn(name + zone)); err != nil {
		return m, false, refusef("%q is no domain name", name+zone)
	}
	return m, true, nil
}

// mostEntries is how many answers are told of at one time at most.
const mostEntries = 100_000

func (a *api) cache(r *http.Request) (any, error) {
	m, entries, err := match(r)
	if err != nil {
		return nil, err
	}
	limit, err := number(r, "limit", 1000, mostEntries)
	if err != nil {
		return nil, err
	}
	if !entries {
		all := []status.CacheStatus{}
		for _, c := range a.caches() {
			all = append(all, c.CacheStatus())
		}
		return map[string]any{"caches": all}, nil
	}
	all, more := []status.CacheEntry{}, false
	for _, c := range a.caches() {
		c.CacheEntries(m, func(e status.CacheEntry) bool {
			if more = len(all) >= limit; !more {
				all = append(all, e)
			}
			return !more
		})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name+" "+all[i].Type < all[j].Name+" "+all[j].Type })
	return map[string]any{"entries": all, "more": more}, nil
}

func (a *api) flush(r *http.Request) (any, error) {
	m, ok, err := match(r)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, refusef("what to forget is missing: name=NAME, zone=ZONE or all=true")
	}
	n := 0
	for _, h := range a.handlers() {
		if f, ok := h.(status.Flusher); ok {
			n += f.CacheFlush(m)
		}
	}
	return map[string]int{"flushed": n}, nil
}

func (a *api) upstreams(*http.Request) (any, error) {
	all := a.allUpstreams()
	if err := measure(all); err != nil {
		return nil, err
	}
	return map[string]any{"upstreams": all}, nil
}

// allUpstreams is the upstreams of all plugins.
func (a *api) allUpstreams() []status.Upstream {
	all := []status.Upstream{}
	for _, h := range a.handlers() {
		if u, ok := h.(status.Upstreams); ok {
			all = append(all, u.UpstreamStatus()...)
		}
	}
	return all
}

func (a *api) transfers(*http.Request) (any, error) {
	all := []status.Transfer{}
	for _, h := range a.handlers() {
		if t, ok := h.(status.Transfers); ok {
			all = append(all, t.TransferStatus()...)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].Time.After(all[j].Time) })
	return map[string]any{"transfers": all}, nil
}

// ranked is a place of a list of what came most often.
type ranked struct {
	Key     string  `json:"key"`
	Count   uint64  `json:"count"`
	Percent float64 `json:"percent"`
}

func (a *api) top(r *http.Request) (any, error) {
	if !a.state.counts {
		return nil, &refusal{http.StatusNotFound, "nothing is counted: the directive control says top off"}
	}
	what, err := oneOf(r, "what", "names", "nxdomain", "clients", "types", "rcodes")
	if err != nil {
		return nil, err
	}
	n, err := number(r, "n", 20, keptNames)
	if err != nil {
		return nil, err
	}
	list, total := a.rank(what, n)
	return map[string]any{"what": what, "total": total, "top": list}, nil
}

// rank is the n that came most often, and how many came in all.
func (a *api) rank(what string, n int) ([]ranked, uint64) {
	counts, total, show := a.state.tops.collect(what)
	list := []ranked{}
	for _, c := range most(counts, n) {
		list = append(list, ranked{show(c.key), c.count, 100 * float64(c.count) / float64(max(total, 1))})
	}
	return list, total
}

// collect is what was counted, and how a key is shown.
func (t *tops) collect(what string) (counts map[string]uint64, total uint64, show func(key string) string) {
	counts = map[string]uint64{}
	show = func(key string) string { return key }
	sketched := func(of func(*top) *sketch) {
		var s *sketch
		t.look(func(all *top) { s = of(all).clone() })
		s.addTo(counts)
		total = s.total
	}
	switch what {
	case "names":
		sketched(func(t *top) *sketch { return t.names })
		show = nameOf
	case "nxdomain":
		sketched(func(t *top) *sketch { return t.missing })
		show = nameOf
	case "clients":
		sketched(func(t *top) *sketch { return t.clients })
		show = addressOf
	case "types":
		t.look(func(all *top) {
			total = all.queries
			for typ, n := range all.common {
				addCount(counts, dns.Type(typ).String(), n)
			}
			for typ, n := range all.types {
				addCount(counts, dns.Type(typ).String(), *n)
			}
		})
	case "rcodes":
		t.look(func(all *top) {
			total = all.queries
			for code, n := range all.rcodes {
				text := "no reply"
				if code != noReply {
					text = rcode.ToString(code)
				}
				addCount(counts, text, n)
			}
		})
	}
	return counts, total, show
}

func addCount(counts map[string]uint64, key string, n uint64) {
	if n > 0 {
		counts[key] += n
	}
}

func (a *api) resetTop(*http.Request) (any, error) {
	a.state.tops.look((*top).reset)
	return map[string]bool{"reset": true}, nil
}

// certificate is what there is to tell of one that a listener shows.
type certificate struct {
	Listeners []string  `json:"listeners"`
	Subject   string    `json:"subject"`
	Names     []string  `json:"names"`
	Issuer    string    `json:"issuer"`
	Begin     time.Time `json:"begin"`
	End       time.Time `json:"end"`
	Days      float64   `json:"daysLeft"`
}

func (a *api) certificates(*http.Request) (any, error) {
	all := []*certificate{}
	bySerial := map[string]*certificate{}
	for _, s := range dnsserver.Servers(a.controller) {
		for _, c := range dnsserver.Configs(a.controller) {
			if c.TLSConfig == nil || !s.Serves(c) {
				continue
			}
			for _, leaf := range leaves(c) {
				key := string(leaf.Raw)
				known := bySerial[key]
				if known == nil {
					known = &certificate{
						Subject: leaf.Subject.String(), Names: leaf.DNSNames, Issuer: leaf.Issuer.String(), Begin: leaf.NotBefore, End: leaf.NotAfter,
						Days: float64(time.Until(leaf.NotAfter)/time.Minute) / (24 * 60),
					}
					bySerial[key] = known
					all = append(all, known)
				}
				if !slices.Contains(known.Listeners, s.Addr) {
					known.Listeners = append(known.Listeners, s.Addr)
				}
			}
		}
	}
	return map[string]any{"certificates": all}, nil
}

// leaves is the certificates that a block's listeners show: to who asks for its zone, and to who asks for one of the names that
// they are for, where it is known which these are, as with ACME.
func leaves(c *dnsserver.Config) (all []*x509.Certificate) {
	certs := slices.Clone(c.TLSConfig.Certificates)
	if get := c.TLSConfig.GetCertificate; get != nil {
		for _, name := range append(strings.Fields(c.TLSIdentity), strings.TrimSuffix(c.Zone, ".")) {
			hello := &tls.ClientHelloInfo{ServerName: name, SupportedVersions: []uint16{tls.VersionTLS13}}
			if cert, err := get(hello); err == nil && cert != nil {
				certs = append(certs, *cert)
			}
		}
	}
	for _, c := range certs {
		leaf := c.Leaf
		if leaf == nil && len(c.Certificate) > 0 {
			leaf, _ = x509.ParseCertificate(c.Certificate[0])
		}
		if leaf != nil {
			all = append(all, leaf)
		}
	}
	return all
}
